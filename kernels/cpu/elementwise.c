/*
 * elementwise.c: ReLU and addition. Padding channels are zero on the way in and so on the way out: storage is
 * walked as a vector.
 */
#include "config.h"

#include "kernels/kernel-table.h"

static RnStatus
relu_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const float *src = in[0];
  float *dst = out[0];
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    dst[i] = src[i] < 0 ? 0 : src[i];
  return RN_STATUS_OK;
}

static RnStatus
relu_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const float *y = in[RN_RELU_BWD_Y], *a = in[RN_RELU_BWD_A], *b = in[RN_RELU_BWD_B];
  float *dst = out[0];
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

  if (b == NULL)
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        {
          float diff = a[i]; /* loaded in any case: then the loop has no branch */
          dst[i] = y[i] > 0 ? diff : 0;
        }
    }
  else
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        {
          float diff = a[i] + b[i];
          dst[i] = y[i] > 0 ? diff : 0;
        }
    }
  return RN_STATUS_OK;
}

static RnStatus
add (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const float *a = in[RN_ADD_A], *b = in[RN_ADD_B];
  float *dst = out[0];
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

  if (call->args.add.relu)
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i] < 0 ? 0 : a[i] + b[i];
    }
  else
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
    }
  return RN_STATUS_OK;
}

#define ROW(OP, fn)                                                                           \
  {                                                                                           \
    .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .run = fn \
  }

const RnKernel rn_cpu_relu_fwd = ROW (RELU_FWD, relu_fwd);
const RnKernel rn_cpu_relu_bwd = ROW (RELU_BWD, relu_bwd);
const RnKernel rn_cpu_add = ROW (ADD, add);
