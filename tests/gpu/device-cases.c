/* device-cases.c: the common table of calls, in the layouts and types of the CUDA device. */
#include "config.h"

#include "tests/gpu/device-cases.h"

#include "kernels/half.h"

#include <string.h>

/* ---- both layouts, every type ---- */

static gboolean
is_update (RnOp op)
{
  return op == RN_OP_SGD || op == RN_OP_ADAM;
}

/* Whether input or output @slot is an activation, or the gradient or the index of one: it has a layout. */
static gboolean
is_map_in (const RnOpCall *call, int slot)
{
  gboolean is_weights =
      ((call->op == RN_OP_CONV2D_FWD || call->op == RN_OP_CONV2D_BWD_DATA) && slot == (int) RN_CONV_WEIGHTS)
      || (call->op == RN_OP_CONV2D_BWD_WEIGHTS && slot == RN_CONV_BW_WEIGHTS);
  return RN_HAS_IN (call, slot) && call->in[slot].rank == 4 && !is_weights && !is_update (call->op);
}

static gboolean
is_map_out (const RnOpCall *call, int slot)
{
  gboolean is_weights = call->op == RN_OP_CONV2D_BWD_WEIGHTS && slot == RN_CONV_BW_DIFF_WEIGHTS;
  return RN_HAS_OUT (call, slot) && call->out[slot].rank == 4 && !is_weights && !is_update (call->op);
}

static void
set_map (RnTensorDesc *d, gboolean nhwc, RnDType t)
{
  d->cblk = nhwc ? d->dims[1] : 1;
  if (d->dtype == RN_F32)
    d->dtype = t;
}

/* In single precision, and in NCHW if it has a layout. */
static gboolean
is_plain (const RnOpCall *call)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (is_map_in (call, i) && (call->in[i].cblk != 1 || rn_dtype_is_half (call->in[i].dtype)))
      return FALSE;
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (is_map_out (call, i) && (call->out[i].cblk != 1 || rn_dtype_is_half (call->out[i].dtype)))
      return FALSE;
  return TRUE;
}

/* @call, with its maps in a layout and a type; all of @in_nhwc, @out_nhwc are the same except for REORDER. */
static RnOpCall
with_maps (RnOpCall call, gboolean in_nhwc, RnDType in_type, gboolean out_nhwc, RnDType out_type)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (is_map_in (&call, i))
      set_map (&call.in[i], in_nhwc, in_type);
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (is_map_out (&call, i))
      set_map (&call.out[i], out_nhwc, out_type);
  return call;
}

static void
add_case (GArray *cases, RnOpCall call, double tolerance)
{
  Case c = { call, tolerance };
  g_assert_cmpstr (rn_op_check (&call), ==, NULL);
  g_array_append_val (cases, c);
}

/* @plain in everything that the device has; what the layouts do not change is added once. */
static void
add_variants (GArray *cases, const Case *plain)
{
  const RnOpCall *call = &plain->call;
  const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };
  gboolean is_reorder = call->op == RN_OP_REORDER, is_conv = call->op <= RN_OP_CONV2D_BWD_WEIGHTS;

  for (int layouts = 0; layouts < 4; layouts++)
    for (guint t = 0; t < 9; t++)
      {
        gboolean in_nhwc = layouts & 1, out_nhwc = layouts >> 1;
        RnDType in_type = types[t % 3], out_type = types[t / 3];
        if (!is_reorder && (in_nhwc != out_nhwc || in_type != out_type))
          continue;
        if (is_conv && in_type != RN_F32) /* their halves have tolerances of their own */
          continue;
        RnOpCall variant = with_maps (*call, in_nhwc, in_type, out_nhwc, out_type);
        if (call->op == RN_OP_TOPK && in_type == RN_F16) /* these may differ */
          variant.in[RN_TOPK_DELTAS].dtype = RN_F32;
        if ((layouts == 0 && t == 0) || memcmp (&variant, call, sizeof variant) != 0)
          add_case (cases, variant, plain->tolerance);
      }
}

GArray *
device_cases_new (void)
{
  GArray *cases = g_array_new (FALSE, TRUE, sizeof (Case));
  g_autoptr (GArray) all = cases_new ();

  for (guint i = 0; i < all->len; i++)
    {
      const Case *c = &g_array_index (all, Case, i);
      if (is_plain (&c->call))
        add_variants (cases, c);
    }
  return cases;
}

/* ---- more than a grid ---- */

/* 4096 blocks of 256 threads, and some elements more. */
#define MANY (4096 * 256 + 4321)

static void
add_vectors (GArray *cases)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, MANY), hyper = rn_desc_vector (RN_F32, RN_HYPER_COUNT + 4),
                     one = rn_desc_vector (RN_F32, 1);

  add_case (cases,
            (RnOpCall){ .op = RN_OP_ADD, .in_present = 3, .out_present = 1, .in = { v, v }, .out = { v } },
            0);
  add_case (cases, (RnOpCall){ .op = RN_OP_SWAP, .out_present = 3, .out = { v, v } }, 0);
  add_case (
      cases,
      (RnOpCall){ .op = RN_OP_EMA_UPDATE, .in_present = 3, .out_present = 1, .in = { v, one }, .out = { v } },
      0);
  add_case (cases,
            (RnOpCall){ .op = RN_OP_SGD,
                        .args.sgd = { .weight_decay = 0.005 },
                        .in_present = 3,
                        .out_present = 3,
                        .in = { v, hyper },
                        .out = { v, v } },
            0);
}

static void
add_maps (GArray *cases)
{
  /* More rows than 4096 blocks of one, and rows of more than 64 blocks of 256 pixels. */
  static const int64_t sizes[][4] = { { 2, 70, 33, 130 }, { 1, 1, 2, 16500 } };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      const int64_t *s = sizes[i];
      RnTensorDesc fine = rn_desc_nchw (RN_F32, s[0], s[1], s[2], s[3], 1), coarse = fine;
      coarse.dims[2] = 1;
      coarse.dims[3] = s[3] / 3;
      add_case (cases,
                (RnOpCall){ .op = RN_OP_UPSAMPLE_FWD,
                            .in_present = 1,
                            .out_present = 1,
                            .in = { coarse },
                            .out = { fine } },
                0);
      add_case (cases,
                (RnOpCall){ .op = RN_OP_MAX_POOL_FWD,
                            .args.pool = { .kernel = { 3, 3 }, .stride = { 1, 1 }, .pad = { 1, 1 } },
                            .in_present = 1,
                            .out_present = 1,
                            .in = { fine },
                            .out = { fine } },
                0);
    }

  /* More tiles than 4096 in a plane; more images; more elements of few channels. */
  static const int64_t moved[][4] = { { 1, 33, 2, 35000 }, { 4100, 17, 1, 2 }, { 1, 5, 1000, 211 } };
  for (guint i = 0; i < G_N_ELEMENTS (moved); i++)
    {
      const int64_t *s = moved[i];
      RnTensorDesc nchw = rn_desc_nchw (RN_F32, s[0], s[1], s[2], s[3], 1), nhwc = nchw;
      nhwc.cblk = s[1];
      add_case (cases,
                (RnOpCall){
                    .op = RN_OP_REORDER, .in_present = 1, .out_present = 1, .in = { nchw }, .out = { nhwc } },
                0);
    }
}

/* More images than 4096. */
static void
add_pictures (GArray *cases)
{
  const int64_t n = 4100, h = 1, w = 2;

  for (int64_t cblk = 1; cblk <= 3; cblk += 2)
    add_case (cases,
              (RnOpCall){ .op = RN_OP_NORMALIZE,
                          .in_present = 7,
                          .out_present = 1,
                          .in = { { RN_U8, 3, { n, h, 3 * w, 1 }, 1 },
                                  { RN_I32, 2, { n, 2, 1, 1 }, 1 },
                                  { RN_F32, 3, { n, 3, 256, 1 }, 1 } },
                          .out = { rn_desc_nchw (RN_F32, n, 3, h, w, cblk) } },
              0);
}

GArray *
device_large_cases_new (void)
{
  GArray *cases = g_array_new (FALSE, TRUE, sizeof (Case));

  add_vectors (cases);
  add_maps (cases);
  add_pictures (cases);
  return cases;
}
