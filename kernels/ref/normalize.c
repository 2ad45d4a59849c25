/* normalize.c: the bytes of a batch become the model's input. */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

static RnStatus
normalize (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  const RnTensorDesc *dd = &call->out[0];
  const guint8 *pixels = in[RN_NORMALIZE_PIXELS];
  const int32_t (*sizes)[2] = in[RN_NORMALIZE_SIZES];
  const float (*table)[3][256] = in[RN_NORMALIZE_TABLE];
  const int64_t h = dd->dims[2], w = dd->dims[3];

  for (int64_t n = 0; n < dd->dims[0]; n++)
    for (int64_t c = 0; c < rn_desc_stored_channels (dd); c++)
      for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
          {
            gboolean exists = c < 3 && y < sizes[n][0] && x < sizes[n][1];
            float value = exists ? table[n][c][pixels[((n * h + y) * w + x) * 3 + c]] : 0;
            rn_float_set (dd->dtype, out[0], rn_desc_index (dd, n, c, y, x), value);
          }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_normalize = { .op = RN_OP_NORMALIZE, .name = "ref:normalize", .run = normalize };
