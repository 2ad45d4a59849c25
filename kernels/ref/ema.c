/* ema.c: a running mean of the weights: its update, and trading places with them. */
#include "config.h"

#include "kernels/kernel-table.h"

static RnStatus
ema_update (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *src = in[RN_EMA_SRC], *momentum = in[RN_EMA_MOMENTUM];
  float *mean = out[0];

  for (int64_t i = 0; i < call->out[0].dims[0]; i++)
    mean[i] = *momentum == 1 ? src[i] : mean[i] + *momentum * (src[i] - mean[i]);
  return RN_STATUS_OK;
}

static RnStatus
swap (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  float *a = out[RN_SWAP_A], *b = out[RN_SWAP_B];

  for (int64_t i = 0; i < call->out[RN_SWAP_A].dims[0]; i++)
    {
      float kept = a[i];
      a[i] = b[i];
      b[i] = kept;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_ema_update = { .op = RN_OP_EMA_UPDATE, .name = "ref:ema_update", .run = ema_update };
const RnKernel rn_ref_swap = { .op = RN_OP_SWAP, .name = "ref:swap", .run = swap };
