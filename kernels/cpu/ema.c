/* ema.c: a running mean of the weights: its update, and trading places with them. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernel-table.h"

/* The operations of ref/ema.c: equal bits. */
static RnStatus
ema_update (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *src = in[RN_EMA_SRC], momentum = *(const float *) in[RN_EMA_MOMENTUM];
  float *mean = out[0];
  const int64_t n = call->out[0].dims[0];

  if (momentum == 1)
    {
      rn_parallel_copy (mean, src, (gsize) n * sizeof *src);
      return RN_STATUS_OK;
    }
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    mean[i] += momentum * (src[i] - mean[i]);
  return RN_STATUS_OK;
}

static RnStatus
swap (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  float *a = out[RN_SWAP_A], *b = out[RN_SWAP_B];
  const int64_t n = call->out[RN_SWAP_A].dims[0];

#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    {
      float kept = a[i];
      a[i] = b[i];
      b[i] = kept;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_ema_update = {
  .op = RN_OP_EMA_UPDATE, .name = "cpu:ema_update:openmp", .priority = RN_PRIORITY_OPENMP, .run = ema_update
};

const RnKernel rn_cpu_swap = {
  .op = RN_OP_SWAP, .name = "cpu:swap:openmp", .priority = RN_PRIORITY_OPENMP, .run = swap
};
