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

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    dst[i] = src[i] < 0 ? 0 : src[i]; /* NaN stays NaN */
  return RN_STATUS_OK;
}

static RnStatus
relu_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const float *y = in[RN_RELU_BWD_Y], *a = in[RN_RELU_BWD_A], *b = in[RN_RELU_BWD_B];
  float *dst = out[0];

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    dst[i] = y[i] > 0 ? a[i] + (b != NULL ? b[i] : 0) : 0;
  return RN_STATUS_OK;
}

static RnStatus
add (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const float *a = in[RN_ADD_A], *b = in[RN_ADD_B];
  float *dst = out[0];

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    {
      float sum = a[i] + b[i];
      dst[i] = call->args.add.relu && sum < 0 ? 0 : sum;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_relu_fwd = { .op = RN_OP_RELU_FWD, .name = "ref:relu_fwd", .run = relu_fwd };
const RnKernel rn_ref_relu_bwd = { .op = RN_OP_RELU_BWD, .name = "ref:relu_bwd", .run = relu_bwd };
const RnKernel rn_ref_add = { .op = RN_OP_ADD, .name = "ref:add", .run = add };
