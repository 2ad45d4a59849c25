/*
 * pool.c: max and average pooling. Max pads with -inf and keeps the first maximum; average counts cells of
 * the source only.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

/* Source row or column (axis 0, 1) of window @out at kernel position @k; -1 in the padding. */
static int64_t
source_of (const RnPoolArgs *args, const RnTensorDesc *src, int axis, int64_t out, int k)
{
  int64_t in = out * args->stride[axis] - args->pad[axis] + k;
  return in < src->dims[2 + axis] ? in : -1;
}

#define FOR_EACH_WINDOW(d, n, c, y, x)                        \
  for (int64_t n = 0; n < (d)->dims[0]; n++)                  \
    for (int64_t c = 0; c < rn_desc_stored_channels (d); c++) \
      for (int64_t y = 0; y < (d)->dims[2]; y++)              \
        for (int64_t x = 0; x < (d)->dims[3]; x++)

#define FOR_EACH_CELL(args, u, v)             \
  for (int u = 0; u < (args)->kernel[0]; u++) \
    for (int v = 0; v < (args)->kernel[1]; v++)

static RnStatus
max_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnTensorDesc *sd = &call->in[0], *dd = &call->out[RN_POOL_DST];
  guint8 *index = out[RN_POOL_INDEX];

  FOR_EACH_WINDOW (dd, n, c, y, x)
    {
      float best = 0;
      int at = -1;
      FOR_EACH_CELL (args, u, v)
        {
          int64_t sy = source_of (args, sd, 0, y, u), sx = source_of (args, sd, 1, x, v);
          if (sy < 0 || sx < 0)
            continue;
          float value = rn_float_get (sd->dtype, in[0], rn_desc_index (sd, n, c, sy, sx));
          if (at < 0 || value > best || value != value) /* NaN wins, as in PyTorch */
            {
              best = value;
              at = u * args->kernel[1] + v;
            }
        }
      rn_float_set (dd->dtype, out[RN_POOL_DST], rn_desc_index (dd, n, c, y, x), best);
      if (index != NULL)
        index[rn_desc_index (dd, n, c, y, x)] = (guint8) at;
    }
  return RN_STATUS_OK;
}

static RnStatus
max_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnTensorDesc *sd = &call->out[0], *dd = &call->in[RN_POOL_BWD_DIFF_DST];
  const guint8 *index = in[RN_POOL_BWD_INDEX];
  const int64_t n_sums = rn_desc_stored_elements (sd);
  g_autofree float *sums = g_new0 (float, n_sums);

  FOR_EACH_WINDOW (dd, n, c, y, x)
    {
      int64_t at = rn_desc_index (dd, n, c, y, x);
      int64_t sy = source_of (args, sd, 0, y, index[at] / args->kernel[1]);
      int64_t sx = source_of (args, sd, 1, x, index[at] % args->kernel[1]);
      if (sy >= 0 && sx >= 0)
        sums[rn_desc_index (sd, n, c, sy, sx)] += rn_float_get (dd->dtype, in[RN_POOL_BWD_DIFF_DST], at);
    }
  rn_floats_to (sd->dtype, sums, n_sums, out[0]);
  return RN_STATUS_OK;
}

static int
cells_inside (const RnPoolArgs *args, const RnTensorDesc *sd, int64_t y, int64_t x)
{
  int count = 0;
  FOR_EACH_CELL (args, u, v)
    count += source_of (args, sd, 0, y, u) >= 0 && source_of (args, sd, 1, x, v) >= 0;
  return count;
}

static RnStatus
avg_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnTensorDesc *sd = &call->in[0], *dd = &call->out[0];

  FOR_EACH_WINDOW (dd, n, c, y, x)
    {
      double sum = 0;
      FOR_EACH_CELL (args, u, v)
        {
          int64_t sy = source_of (args, sd, 0, y, u), sx = source_of (args, sd, 1, x, v);
          if (sy >= 0 && sx >= 0)
            sum += rn_float_get (sd->dtype, in[0], rn_desc_index (sd, n, c, sy, sx));
        }
      rn_float_set (dd->dtype, out[0], rn_desc_index (dd, n, c, y, x),
                    (float) (sum / cells_inside (args, sd, y, x)));
    }
  return RN_STATUS_OK;
}

static RnStatus
avg_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnTensorDesc *sd = &call->out[0], *dd = &call->in[0];
  const int64_t n_sums = rn_desc_stored_elements (sd);
  g_autofree float *sums = g_new0 (float, n_sums);

  FOR_EACH_WINDOW (dd, n, c, y, x)
    {
      float share = rn_float_get (dd->dtype, in[0], rn_desc_index (dd, n, c, y, x))
                    / (float) cells_inside (args, sd, y, x);
      FOR_EACH_CELL (args, u, v)
        {
          int64_t sy = source_of (args, sd, 0, y, u), sx = source_of (args, sd, 1, x, v);
          if (sy >= 0 && sx >= 0)
            sums[rn_desc_index (sd, n, c, sy, sx)] += share;
        }
    }
  rn_floats_to (sd->dtype, sums, n_sums, out[0]);
  return RN_STATUS_OK;
}

const RnKernel rn_ref_max_pool_fwd = { .op = RN_OP_MAX_POOL_FWD,
                                       .name = "ref:max_pool_fwd",
                                       .run = max_pool_fwd };
const RnKernel rn_ref_max_pool_bwd = { .op = RN_OP_MAX_POOL_BWD,
                                       .name = "ref:max_pool_bwd",
                                       .run = max_pool_bwd };
const RnKernel rn_ref_avg_pool_fwd = { .op = RN_OP_AVG_POOL_FWD,
                                       .name = "ref:avg_pool_fwd",
                                       .run = avg_pool_fwd };
const RnKernel rn_ref_avg_pool_bwd = { .op = RN_OP_AVG_POOL_BWD,
                                       .name = "ref:avg_pool_bwd",
                                       .run = avg_pool_bwd };
