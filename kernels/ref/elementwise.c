/*
 * elementwise.c: ReLU and addition. Padding channels are zero on the way in and so on the way out: storage is
 * walked as a vector.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

static RnStatus
relu_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnDType t = call->out[0].dtype;

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    {
      float value = rn_float_get (t, in[0], i);
      rn_float_set (t, out[0], i, value < 0 ? 0 : value); /* NaN stays NaN */
    }
  return RN_STATUS_OK;
}

/* Of what is stored, in double. */
static void
add_up_channels (const RnTensorDesc *d, const void *data, float *sums)
{
  for (int64_t c = 0; c < d->dims[1]; c++)
    {
      double sum = 0;
      for (int64_t n = 0; n < d->dims[0]; n++)
        for (int64_t y = 0; y < d->dims[2]; y++)
          for (int64_t x = 0; x < d->dims[3]; x++)
            sum += rn_float_get (d->dtype, data, rn_desc_index (d, n, c, y, x));
      sums[c] = (float) sum;
    }
}

static RnStatus
relu_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnDType t = call->out[0].dtype;
  const void *b = in[RN_RELU_BWD_B];

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    {
      float diff = rn_float_get (t, in[RN_RELU_BWD_A], i) + (b != NULL ? rn_float_get (t, b, i) : 0);
      rn_float_set (t, out[0], i, rn_float_get (t, in[RN_RELU_BWD_Y], i) > 0 ? diff : 0);
    }
  if (out[RN_RELU_BWD_SUMS] != NULL)
    add_up_channels (&call->out[0], out[0], out[RN_RELU_BWD_SUMS]);
  return RN_STATUS_OK;
}

static RnStatus
add (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnDType t = call->out[0].dtype;

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[0]); i++)
    {
      float sum = rn_float_get (t, in[RN_ADD_A], i) + rn_float_get (t, in[RN_ADD_B], i);
      rn_float_set (t, out[0], i, call->args.add.relu && sum < 0 ? 0 : sum);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_relu_fwd = { .op = RN_OP_RELU_FWD, .name = "ref:relu_fwd", .run = relu_fwd };
const RnKernel rn_ref_relu_bwd = { .op = RN_OP_RELU_BWD, .name = "ref:relu_bwd", .run = relu_bwd };
const RnKernel rn_ref_add = { .op = RN_OP_ADD, .name = "ref:add", .run = add };
