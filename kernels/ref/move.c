/*
 * move.c: ops that only move values: nearest upsampling with its gradient, a change of the channel block or
 * the element type, copies and zeros.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <string.h>

/* Nearest: cell @fine of @n_fine lies in cell min (floor (fine * n_coarse / n_fine), n_coarse - 1). */
static int64_t
coarse_of (int64_t fine, int64_t n_fine, int64_t n_coarse)
{
  return MIN (fine * n_coarse / n_fine, n_coarse - 1);
}

#define FOR_EACH(d, n, c, y, x)                               \
  for (int64_t n = 0; n < (d)->dims[0]; n++)                  \
    for (int64_t c = 0; c < rn_desc_stored_channels (d); c++) \
      for (int64_t y = 0; y < (d)->dims[2]; y++)              \
        for (int64_t x = 0; x < (d)->dims[3]; x++)

static RnStatus
upsample_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnTensorDesc *sd = &call->in[RN_UPSAMPLE_SRC], *dd = &call->out[0];
  const void *addend = in[RN_UPSAMPLE_ADDEND];
  const RnDType t = dd->dtype;

  FOR_EACH (dd, n, c, y, x)
    {
      int64_t at = rn_desc_index (dd, n, c, y, x);
      int64_t sy = coarse_of (y, dd->dims[2], sd->dims[2]), sx = coarse_of (x, dd->dims[3], sd->dims[3]);
      float value = rn_float_get (t, in[RN_UPSAMPLE_SRC], rn_desc_index (sd, n, c, sy, sx));
      rn_float_set (t, out[0], at, value + (addend != NULL ? rn_float_get (t, addend, at) : 0));
    }
  return RN_STATUS_OK;
}

static RnStatus
upsample_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnTensorDesc *fine = &call->in[RN_UPSAMPLE_SRC], *coarse = &call->out[0];
  const int64_t n_coarse = rn_desc_stored_elements (coarse);
  g_autofree float *sums = g_new0 (float, n_coarse);

  if (in[RN_UPSAMPLE_ADDEND] != NULL)
    rn_floats_from (coarse->dtype, in[RN_UPSAMPLE_ADDEND], n_coarse, sums);
  FOR_EACH (fine, n, c, y, x)
    {
      int64_t cy = coarse_of (y, fine->dims[2], coarse->dims[2]),
              cx = coarse_of (x, fine->dims[3], coarse->dims[3]);
      sums[rn_desc_index (coarse, n, c, cy, cx)] +=
          rn_float_get (fine->dtype, in[RN_UPSAMPLE_SRC], rn_desc_index (fine, n, c, y, x));
    }
  rn_floats_to (coarse->dtype, sums, n_coarse, out[0]);
  return RN_STATUS_OK;
}

static RnStatus
reorder (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
         void *workspace)
{
  const RnTensorDesc *sd = &call->in[0], *dd = &call->out[0];

  FOR_EACH (dd, n, c, y, x)
    {
      float value = c < dd->dims[1] ? rn_float_get (sd->dtype, in[0], rn_desc_index (sd, n, c, y, x)) : 0;
      rn_float_set (dd->dtype, out[0], rn_desc_index (dd, n, c, y, x), value);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_upsample_fwd = { .op = RN_OP_UPSAMPLE_FWD,
                                       .name = "ref:upsample_fwd",
                                       .run = upsample_fwd };
const RnKernel rn_ref_upsample_bwd = { .op = RN_OP_UPSAMPLE_BWD,
                                       .name = "ref:upsample_bwd",
                                       .run = upsample_bwd };
const RnKernel rn_ref_reorder = { .op = RN_OP_REORDER, .name = "ref:reorder", .run = reorder };

static RnStatus
copy (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  memcpy (out[0], in[0], rn_desc_bytes (&call->out[0]));
  return RN_STATUS_OK;
}

static RnStatus
zero (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  memset (out[0], 0, rn_desc_bytes (&call->out[0]));
  return RN_STATUS_OK;
}

const RnKernel rn_ref_copy = { .op = RN_OP_COPY, .name = "ref:copy", .run = copy };
const RnKernel rn_ref_zero = { .op = RN_OP_ZERO, .name = "ref:zero", .run = zero };
