/*
 * test-values.c: values that random ones do not hit: halves near their limit, NaN,
 * infinity, the largest and the smallest floats. Batch norms, losses, selection and statistics of gradients
 * must give what the reference gives on F32 tensors, rounded once; both layouts, every type, both orders of
 * threads. It is two programs: on the simulated device, and check-values on a real one.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/gpu/device-run.h"
#include "tests/gpu/test-device.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/compare.h"

#include <float.h>
#include <math.h>
#include <runner/batch.h>
#include <string.h>

static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };
static RnDevice *ref;

/* @call, which is on F32 tensors in NCHW, in another type and layout. */
static RnOpCall
variant_of (RnOpCall call, RnDType t, gboolean nhwc)
{
  for (int i = 0; i < RN_OP_MAX_IN + RN_OP_MAX_OUT; i++)
    {
      RnTensorDesc *d = i < RN_OP_MAX_IN ? &call.in[i] : &call.out[i - RN_OP_MAX_IN];
      if (d->rank != 4)
        continue;
      d->dtype = t;
      d->cblk = nhwc ? d->dims[1] : 1;
    }
  g_assert_null (rn_op_check (&call));
  return call;
}

/* @fill: sets inputs of a call of any type and layout */
static void
check_on (RnDevice *device, const RnOpCall *call, double operations, void (*fill) (Buffers *))
{
  const RnOpCall wide = widened (*call);
  Buffers got, want;

  buffers_init (&got, call, 1, -1, -1);
  buffers_init (&want, &wide, 1, -1, -1);
  fill (&got);
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i) && rn_dtype_is_half (call->in[i].dtype))
      rn_floats_from (call->in[i].dtype, got.in[i], rn_desc_elements (&call->in[i]), want.in[i]);
    else if (RN_HAS_IN (call, i))
      memcpy (want.in[i], got.in[i], rn_desc_bytes (&call->in[i]));
  run_call (ref, &wide, &want);
  g_assert_true (run_on_device (device, find_kernel (device, call->op), call, &got, &(RunOptions){ 0 }));
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    if (RN_HAS_OUT (call, i) && !rn_dtype_is_float (call->out[i].dtype))
      g_assert_true (memcmp (got.out[i], want.out[i], rn_desc_bytes (&call->out[i])) == 0);
    else if (RN_HAS_OUT (call, i))
      compare_interval (call, i, got.out[i], want.out[i], operations);
  buffers_clear (&got);
  buffers_clear (&want);
}

static void
check (const RnOpCall *call, double operations, void (*fill) (Buffers *))
{
  for (int descending = 0; descending < 2; descending++)
    {
      g_autoptr (RnDevice) device = new_device (descending);
      for (guint t = 0; t < G_N_ELEMENTS (types); t++)
        for (int nhwc = 0; nhwc < 2; nhwc++)
          {
            const RnOpCall variant = variant_of (*call, types[t], nhwc);
            check_on (device, &variant, operations, fill);
          }
    }
}

/* ---- what the inputs are ---- */

/* Activations between 54000 and 60000, of either sign. */
static void
fill_large (Buffers *b)
{
  for (int slot = 0; slot < RN_OP_MAX_IN; slot++)
    {
      const RnTensorDesc *d = &b->call->in[slot];
      for (int64_t i = 0; RN_HAS_IN (b->call, slot) && d->rank == 4 && i < rn_desc_elements (d); i++)
        {
          float size = 57000 + 3000 * value_at (4, slot, i);
          rn_float_set (d->dtype, b->in[slot], i, value_at (3, slot, i) < 0 ? -size : size);
        }
    }
}

/* The same, with saved statistics as they are for such inputs: the gradient is in the range of F16. */
static void
fill_large_statistics (Buffers *b)
{
  fill_large (b);
  for (int64_t c = 0; c < b->call->in[RN_NORM_BWD_MEAN].dims[0] && b->call->args.norm.training; c++)
    {
      ((float *) b->in[RN_NORM_BWD_MEAN])[c] = 100;
      ((float *) b->in[RN_NORM_BWD_VAR])[c] = 1 / 57000.0f;
    }
}

/* A hundred with a spread of a few: sums of squares in F32 would be off by far more than allowed. */
static void
fill_far_from_zero (Buffers *b)
{
  const RnTensorDesc *d = &b->call->in[RN_NORM_SRC];
  for (int64_t i = 0; i < rn_desc_elements (d); i++)
    rn_float_set (d->dtype, b->in[RN_NORM_SRC], i, 100 + 8 * value_at (3, 0, i));
}

static void
set_some (Buffers *b, float value)
{
  const RnTensorDesc *d = &b->call->in[0];
  for (int64_t i = 0; i < rn_desc_elements (d); i += 11)
    rn_float_set (d->dtype, b->in[0], i, value);
}

static void
fill_nan (Buffers *b)
{
  set_some (b, NAN);
}

static void
fill_infinite (Buffers *b)
{
  set_some (b, INFINITY);
}

static void
fill_minus_infinite (Buffers *b)
{
  set_some (b, -INFINITY);
}

/* Every kind of zero, infinity and NaN, and cells all of whose logits are NaN. */
static void
fill_selection (Buffers *b)
{
  static const float values[] = { NAN, INFINITY, -INFINITY, 0, -0.0f, 1, -1, 0.5f, NAN };
  const RnTensorDesc *d = &b->call->in[RN_TOPK_LOGITS];
  for (int64_t n = 0; n < d->dims[0]; n++)
    for (int64_t c = 0; c < d->dims[1]; c++)
      for (int64_t y = 0; y < d->dims[2]; y++)
        for (int64_t x = 0; x < d->dims[3]; x++)
          rn_float_set (d->dtype, b->in[RN_TOPK_LOGITS], rn_desc_index (d, n, c, y, x),
                        x % 3 == 0 ? NAN : values[(n + 5 * c + 7 * y + x) % (int64_t) G_N_ELEMENTS (values)]);
}

/* ---- batch norm ---- */

/* 19 channels have no whole packs, 16 in NHWC and 9 * 16 cells in NCHW have. */
static const RnTensorDesc maps[] = { { RN_F32, 4, { 2, 19, 9, 11 }, 1 }, { RN_F32, 4, { 2, 16, 9, 16 }, 1 } };

static RnOpCall
norm_fwd (const RnTensorDesc *map, gboolean training, gboolean relu)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, map->dims[1]);
  RnOpCall call = { .op = RN_OP_BATCH_NORM_FWD,
                    .args.norm = { .eps = 1e-5f, .momentum = 0.1f, .training = training, .relu = relu } };

  set_in (&call, RN_NORM_SRC, *map);
  set_out (&call, RN_NORM_DST, *map);
  for (int slot = RN_NORM_GAMMA; slot <= (training ? RN_NORM_BETA : RN_NORM_VAR); slot++)
    set_in (&call, slot, v);
  for (int slot = RN_NORM_SAVED_MEAN; training && slot <= RN_NORM_RUNNING_VAR; slot++)
    set_out (&call, slot, v);
  return call;
}

static void
test_norm_fwd (void)
{
  for (guint m = 0; m < G_N_ELEMENTS (maps); m++)
    for (int training = 0; training < 2; training++)
      {
        RnOpCall call = norm_fwd (&maps[m], training, FALSE);
        check (&call, FEW_OPERATIONS, fill_large);
        call = norm_fwd (&maps[m], training, TRUE);
        check (&call, FEW_OPERATIONS, fill_nan);
      }
}

/*
 * The mean is 22 standard deviations, and the largest results are 1.7 of them: half a unit in the last place
 * of a mean in F32 is up to 22 / 1.7 / 2 = 6.5 FLT_EPSILON of these.
 */
static void
test_norm_mean (void)
{
  for (guint m = 0; m < G_N_ELEMENTS (maps); m++)
    {
      RnOpCall call = norm_fwd (&maps[m], TRUE, FALSE);
      check (&call, FEW_OPERATIONS, fill_far_from_zero);
    }
}

static void
test_norm_bwd (void)
{
  for (guint m = 0; m < G_N_ELEMENTS (maps); m++)
    for (int training = 0; training < 2; training++)
      {
        const RnTensorDesc v = rn_desc_vector (RN_F32, maps[m].dims[1]);
        RnOpCall call = { .op = RN_OP_BATCH_NORM_BWD, .args.norm = { .eps = 1e-5f, .training = training } };
        set_in (&call, RN_NORM_BWD_SRC, maps[m]);
        set_in (&call, RN_NORM_BWD_DIFF_DST, maps[m]);
        set_out (&call, RN_NORM_BWD_DIFF_SRC, maps[m]);
        for (int slot = RN_NORM_BWD_GAMMA; slot <= RN_NORM_BWD_VAR; slot++)
          set_in (&call, slot, v);
        for (int slot = RN_NORM_BWD_DIFF_GAMMA; slot <= RN_NORM_BWD_DIFF_BETA; slot++)
          set_out (&call, slot, v);
        check (&call, FEW_OPERATIONS, fill_large_statistics);
      }
}

/* ---- losses ---- */

static void
test_focal_loss (void)
{
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);

  for (int square = 0; square < 2; square++)
    {
      RnOpCall call = { .op = RN_OP_FOCAL_LOSS,
                        .args.focal = { .alpha = 0.25f,
                                        .gamma = square ? 2 : 1.5f,
                                        .weight = 1,
                                        .num_classes = 5,
                                        .anchors_per_cell = 3 } };
      set_in (&call, RN_FOCAL_LOGITS, rn_desc_nchw (RN_F32, 2, 15, 9, 7, 1));
      set_in (&call, RN_FOCAL_LABELS, (RnTensorDesc){ RN_I16, 2, { 2, 189, 1, 1 }, 1 });
      set_in (&call, RN_FOCAL_AVG, one);
      set_in (&call, RN_FOCAL_GRAD_SCALE, one);
      set_out (&call, RN_LOSS_VALUE, one);
      set_out (&call, RN_LOSS_DIFF, call.in[RN_FOCAL_LOGITS]);
      check (&call, LOSS_OPERATIONS, fill_large);
      check (&call, LOSS_OPERATIONS, fill_nan);
      check (&call, LOSS_OPERATIONS, fill_infinite);
      check (&call, LOSS_OPERATIONS, fill_minus_infinite);
    }
}

static void
test_box_loss (void)
{
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);

  for (int beta = 0; beta < 2; beta++)
    {
      RnOpCall call = { .op = RN_OP_BOX_LOSS,
                        .args.box = { .beta = (float) beta, .weight = 1, .anchors_per_cell = 3 } };
      set_in (&call, RN_BOX_PRED, rn_desc_nchw (RN_F32, 2, 12, 4, 3, 1));
      set_in (&call, RN_BOX_POSITIVES, rn_desc_vector (RN_U8, 20 * (int64_t) sizeof (RnPositive)));
      set_in (&call, RN_BOX_COUNT, rn_desc_vector (RN_I64, 1));
      set_in (&call, RN_BOX_AVG, one);
      set_in (&call, RN_BOX_GRAD_SCALE, one);
      set_out (&call, RN_LOSS_VALUE, one);
      set_out (&call, RN_LOSS_DIFF, call.in[RN_BOX_PRED]);
      check (&call, LOSS_OPERATIONS, fill_large);
      check (&call, LOSS_OPERATIONS, fill_nan);
      check (&call, LOSS_OPERATIONS, fill_infinite);
    }
}

/* ---- selection ---- */

/* NaN comes last, zeros are equal whatever their sign, ties are broken by the index. */
static void
test_topk (void)
{
  static const int64_t ks[] = { 1, 7, 40, 53, 54 };

  for (guint i = 0; i < G_N_ELEMENTS (ks); i++)
    {
      RnOpCall call = { .op = RN_OP_TOPK,
                        .args.topk = { .k = ks[i], .num_classes = 4, .anchors_per_cell = 2 } };
      set_in (&call, RN_TOPK_LOGITS, rn_desc_nchw (RN_F32, 2, 8, 3, 9, 1));
      set_in (&call, RN_TOPK_DELTAS, rn_desc_nchw (RN_F32, 2, 8, 3, 9, 1));
      set_out (&call, RN_TOPK_INDEX, (RnTensorDesc){ RN_I32, 2, { 2, ks[i], 1, 1 }, 1 });
      set_out (&call, RN_TOPK_ROW_LOGITS, (RnTensorDesc){ RN_F32, 3, { 2, ks[i], 4, 1 }, 1 });
      set_out (&call, RN_TOPK_ROW_DELTAS, (RnTensorDesc){ RN_F32, 3, { 2, ks[i], 4, 1 }, 1 });
      check (&call, 0, fill_selection);
    }
}

/* ---- statistics of gradients ---- */

/* Long enough for three parts. */
#define N_GRAD 40001

static void
check_stats (RnDevice *device, float *grad, float p)
{
  float got[RN_STATS_COUNT], want[RN_STATS_COUNT];
  RnOpCall call = { .op = RN_OP_GRAD_STATS };
  Buffers on_device = { .call = &call, .in = { grad, &p }, .out = { got } };
  Buffers on_ref = { .call = &call, .in = { grad, &p }, .out = { want } };

  set_in (&call, RN_GRAD_STATS_GRAD, rn_desc_vector (RN_F32, N_GRAD));
  set_in (&call, RN_GRAD_STATS_NORM_TYPE, rn_desc_vector (RN_F32, 1));
  set_out (&call, 0, rn_desc_vector (RN_F32, RN_STATS_COUNT));
  run_call (ref, &call, &on_ref);
  for (gsize shift = 0; shift <= sizeof (float); shift += sizeof (float))
    {
      run_on_device (device, find_kernel (device, call.op), &call, &on_device,
                     &(RunOptions){ .shift = shift });
      /* Sums are in double: the last bit of the norm may differ where its root or power is rounded. */
      compare_interval (&call, 0, got, want, isfinite (want[RN_STATS_NORM]) ? 1 : 0);
      g_assert_true (isnan (want[RN_STATS_MAX_ABS]) ? isnan (got[RN_STATS_MAX_ABS])
                                                    : got[RN_STATS_MAX_ABS] == want[RN_STATS_MAX_ABS]);
    }
}

static void
test_grad_stats (void)
{
  static const float ps[] = { 1, 2, 1.5f, 3, 400, INFINITY };
  static const float sizes[] = { 0, 60000, FLT_MAX, 1e30f, 1e-30f, 0x1p-149f };
  g_autofree float *grad = g_new (float, N_GRAD);

  for (int descending = 0; descending < 2; descending++)
    {
      g_autoptr (RnDevice) device = new_device (descending);
      for (guint p = 0; p < G_N_ELEMENTS (ps); p++)
        {
          for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
            {
              for (int i = 0; i < N_GRAD; i++)
                grad[i] = i % 2 ? sizes[s] : -sizes[s];
              check_stats (device, grad, ps[p]);
            }
          /* One part is zero, and the others are of very different sizes. */
          for (int i = 0; i < N_GRAD; i++)
            grad[i] = i < 16384 ? 0 : value_at (1, 0, i) * (i < 32768 ? 1e20f : 1e-20f);
          check_stats (device, grad, ps[p]);
          grad[20000] = -INFINITY;
          check_stats (device, grad, ps[p]);
          grad[40000] = -NAN;
          check_stats (device, grad, ps[p]);
        }
    }
}

/* ---- what they mean for the step ---- */

/* As the reference, where the multiplier is no number too; see tests/kernels/test-update.c for that one. */
static void
test_step_guard (void)
{
  static const float values[] = { 0, 0x1p-149f, 3, 60000, FLT_MAX, INFINITY, NAN },
                     limits[] = { 0, 1e-7f, 2 };

  for (int descending = 0; descending < 2; descending++)
    {
      g_autoptr (RnDevice) device = new_device (descending);
      for (guint i = 0; i < G_N_ELEMENTS (values) * G_N_ELEMENTS (limits) * 2; i++)
        {
          float stats[RN_STATS_COUNT], got[RN_HYPER_COUNT + RN_GROUP_COUNT] = { [RN_HYPER_SKIPS] = 7 },
                                                            want[G_N_ELEMENTS (got)];
          RnOpCall call = { .op = RN_OP_STEP_GUARD };
          Buffers on_device = { .call = &call, .in = { stats }, .out = { got } };
          Buffers on_ref = { .call = &call, .in = { stats }, .out = { want } };

          stats[RN_STATS_NORM] = stats[RN_STATS_MAX_ABS] = values[i / 2 % G_N_ELEMENTS (values)];
          got[RN_HYPER_GRAD_MULTIPLIER] = 0.3f;
          got[RN_HYPER_CHECKS_FINITE] = (float) (i % 2);
          got[RN_HYPER_MAX_NORM] = limits[i / 2 / G_N_ELEMENTS (values)];
          memcpy (want, got, sizeof want);
          set_in (&call, 0, rn_desc_vector (RN_F32, RN_STATS_COUNT));
          set_out (&call, 0, rn_desc_vector (RN_F32, G_N_ELEMENTS (got)));
          run_call (ref, &call, &on_ref);
          run_on_device (device, find_kernel (device, call.op), &call, &on_device, &(RunOptions){ 0 });
          for (gsize k = 0; k < G_N_ELEMENTS (got); k++)
            g_assert_true (isnan (want[k]) ? isnan (got[k]) : got[k] == want[k]);
        }
    }
}

int
main (int argc, char **argv)
{
  test_device_begin ();
  g_test_init (&argc, &argv, NULL);
  ref = rn_device_new_ref ();
  g_test_add_func ("/gpu/values/batch-norm-fwd", test_norm_fwd);
  g_test_add_func ("/gpu/values/batch-norm-mean", test_norm_mean);
  g_test_add_func ("/gpu/values/batch-norm-bwd", test_norm_bwd);
  g_test_add_func ("/gpu/values/focal-loss", test_focal_loss);
  g_test_add_func ("/gpu/values/box-loss", test_box_loss);
  g_test_add_func ("/gpu/values/topk", test_topk);
  g_test_add_func ("/gpu/values/grad-stats", test_grad_stats);
  g_test_add_func ("/gpu/values/step-guard", test_step_guard);
  int status = g_test_run ();
  rn_device_free (ref);
  return status;
}
