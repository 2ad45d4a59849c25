/*
 * test-large-values.c: halves near their limit. Sums, means, norms and losses of inputs at 60000 leave the
 * range of F16 on the way; the results must be those of the reference on F32 tensors, rounded once: infinite
 * only where that is.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/compare.h"

#include <math.h>
#include <runner/batch.h>
#include <string.h>

static RnDevice *devices[2];

static RnTensorDesc
with_type (RnTensorDesc d, RnDType t)
{
  if (d.rank == 4 && d.dtype == RN_F32)
    d.dtype = t;
  return d;
}

/* Activations between 54000 and 60000, of either sign if @both. */
static void
fill_large (const RnTensorDesc *d, int slot, gboolean both, void *data)
{
  for (int64_t i = 0; i < rn_desc_stored_elements (d); i++)
    {
      float v = value_at (3, slot, i), size = 57000 + 3000 * value_at (4, slot, i);
      rn_float_set (d->dtype, data, i, is_padding (d, i) ? 0 : both && v < 0 ? -size : size);
    }
}

static void
assert_finite (const RnTensorDesc *d, const float *values)
{
  for (int64_t i = 0; i < rn_desc_stored_elements (d); i++)
    g_assert_true (isfinite (values[i]));
}

/* @call is on F32 tensors. @adjust: sets inputs that are no activations; may be NULL. */
static void
check (const RnOpCall *call, gboolean both, double operations, void (*adjust) (Buffers *))
{
  static const RnDType types[] = { RN_F16, RN_BF16 };

  for (guint t = 0; t < G_N_ELEMENTS (types); t++)
    for (guint k = 0; k < G_N_ELEMENTS (devices); k++)
      {
        RnOpCall half = *call;
        Buffers got, want;
        for (int i = 0; i < RN_OP_MAX_IN; i++)
          half.in[i] = with_type (half.in[i], types[t]);
        for (int i = 0; i < RN_OP_MAX_OUT; i++)
          half.out[i] = with_type (half.out[i], types[t]);
        g_assert_null (rn_op_check (&half));
        buffers_init (&got, &half, 1, -1, -1);
        buffers_init (&want, call, 1, -1, -1);
        for (int i = 0; i < rn_op_n_in (call->op); i++)
          if (RN_HAS_IN (call, i) && rn_dtype_is_half (half.in[i].dtype))
            {
              fill_large (&half.in[i], i, both, got.in[i]);
              rn_floats_from (types[t], got.in[i], rn_desc_stored_elements (&half.in[i]), want.in[i]);
            }
        if (adjust != NULL)
          {
            adjust (&got);
            adjust (&want);
          }
        run_call (devices[0], call, &want);
        run_call (devices[k], &half, &got);
        for (int i = 0; i < rn_op_n_out (call->op); i++)
          if (RN_HAS_OUT (call, i))
            {
              assert_finite (&call->out[i], want.out[i]);
              compare_interval (&half, i, got.out[i], want.out[i], operations);
            }
        buffers_clear (&got);
        buffers_clear (&want);
      }
}

static const RnTensorDesc map = { RN_F32, 4, { 2, 19, 9, 11 }, 16 };

static void
test_batch_norm_fwd (void)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, 19);

  for (int training = 0; training < 2; training++)
    {
      RnOpCall call = { .op = RN_OP_BATCH_NORM_FWD,
                        .args.norm = { .eps = 1e-5f, .momentum = 0.1f, .training = training } };
      set_in (&call, RN_NORM_SRC, map);
      set_out (&call, RN_NORM_DST, map);
      for (int slot = RN_NORM_GAMMA; slot <= (training ? RN_NORM_BETA : RN_NORM_VAR); slot++)
        set_in (&call, slot, v);
      for (int slot = RN_NORM_SAVED_MEAN; training && slot <= RN_NORM_RUNNING_VAR; slot++)
        set_out (&call, slot, v);
      check (&call, TRUE, FEW_OPERATIONS, NULL);
    }
}

/* Saved statistics as they are for such inputs: then the gradient is in the range of F16. */
static void
large_statistics (Buffers *b)
{
  for (int c = 0; c < 19 && b->call->args.norm.training; c++)
    {
      ((float *) b->in[RN_NORM_BWD_MEAN])[c] = 100;
      ((float *) b->in[RN_NORM_BWD_VAR])[c] = 1 / 57000.0f;
    }
}

static void
test_batch_norm_bwd (void)
{
  const RnTensorDesc v = rn_desc_vector (RN_F32, 19);

  for (int training = 0; training < 2; training++)
    {
      RnOpCall call = { .op = RN_OP_BATCH_NORM_BWD, .args.norm = { .eps = 1e-5f, .training = training } };
      set_in (&call, RN_NORM_BWD_SRC, map);
      set_in (&call, RN_NORM_BWD_DIFF_DST, map);
      set_out (&call, RN_NORM_BWD_DIFF_SRC, map);
      for (int slot = RN_NORM_BWD_GAMMA; slot <= RN_NORM_BWD_VAR; slot++)
        set_in (&call, slot, v);
      for (int slot = RN_NORM_BWD_DIFF_GAMMA; slot <= RN_NORM_BWD_DIFF_BETA; slot++)
        set_out (&call, slot, v);
      check (&call, TRUE, FEW_OPERATIONS, large_statistics);
    }
}

static void
test_focal_loss (void)
{
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);
  RnOpCall call = {
    .op = RN_OP_FOCAL_LOSS,
    .args.focal = { .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = 5, .anchors_per_cell = 3 },
  };

  set_in (&call, RN_FOCAL_LOGITS, rn_desc_nchw (RN_F32, 2, 15, 9, 7, 8));
  set_in (&call, RN_FOCAL_LABELS, (RnTensorDesc){ RN_I16, 2, { 2, 189, 1, 1 }, 1 });
  set_in (&call, RN_FOCAL_AVG, one);
  set_in (&call, RN_FOCAL_GRAD_SCALE, one);
  set_out (&call, RN_LOSS_VALUE, one);
  set_out (&call, RN_LOSS_DIFF, call.in[RN_FOCAL_LOGITS]);
  check (&call, TRUE, LOSS_OPERATIONS, NULL);
}

static void
test_box_loss (void)
{
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);

  for (int beta = 0; beta < 2; beta++)
    {
      RnOpCall call = {
        .op = RN_OP_BOX_LOSS,
        .args.box = { .beta = (float) beta, .weight = 1, .anchors_per_cell = 3 },
      };
      set_in (&call, RN_BOX_PRED, rn_desc_nchw (RN_F32, 2, 12, 4, 3, 8));
      set_in (&call, RN_BOX_POSITIVES, rn_desc_vector (RN_U8, 20 * (int64_t) sizeof (RnPositive)));
      set_in (&call, RN_BOX_COUNT, rn_desc_vector (RN_I64, 1));
      set_in (&call, RN_BOX_AVG, one);
      set_in (&call, RN_BOX_GRAD_SCALE, one);
      set_out (&call, RN_LOSS_VALUE, one);
      set_out (&call, RN_LOSS_DIFF, call.in[RN_BOX_PRED]);
      check (&call, TRUE, LOSS_OPERATIONS, NULL);
    }
}

/* Means of nine cells stay finite; so do the sums of shares of up to four windows. */
static void
test_avg_pool (void)
{
  RnOpCall fwd = {
    .op = RN_OP_AVG_POOL_FWD,
    .args.pool = { .kernel = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 } },
  };
  RnOpCall bwd = { .op = RN_OP_AVG_POOL_BWD, .args = fwd.args };
  RnTensorDesc pooled = map;

  pooled.dims[2] = 5;
  pooled.dims[3] = 6;
  set_in (&fwd, 0, map);
  set_out (&fwd, 0, pooled);
  check (&fwd, FALSE, FEW_OPERATIONS, NULL);
  set_in (&bwd, 0, pooled);
  set_out (&bwd, 0, map);
  check (&bwd, FALSE, FEW_OPERATIONS, NULL);
}

/* Sums of four cells: infinite in F16 where signs are equal, not where they cancel. */
static void
test_upsample_bwd (void)
{
  RnTensorDesc fine = map;
  RnOpCall call = { .op = RN_OP_UPSAMPLE_BWD };

  fine.dims[2] *= 2;
  fine.dims[3] *= 2;
  set_in (&call, RN_UPSAMPLE_SRC, fine);
  set_in (&call, RN_UPSAMPLE_ADDEND, map);
  set_out (&call, 0, map);
  check (&call, FALSE, 0, NULL);
  check (&call, TRUE, 0, NULL);
}

/* The norm of 10000 numbers of this size is 100 times it. */
static void
test_grad_stats (void)
{
  static const float two = 2;
  g_autofree float *grad = g_new (float, 10000);

  for (int i = 0; i < 10000; i++)
    grad[i] = i % 2 ? 60000 : -60000;
  for (guint k = 0; k < G_N_ELEMENTS (devices); k++)
    {
      float stats[RN_STATS_COUNT];
      RnOpCall call = { .op = RN_OP_GRAD_STATS };
      Buffers b = { .call = &call, .in = { grad, (void *) &two }, .out = { stats } };
      set_in (&call, RN_GRAD_STATS_GRAD, rn_desc_vector (RN_F32, 10000));
      set_in (&call, RN_GRAD_STATS_NORM_TYPE, rn_desc_vector (RN_F32, 1));
      set_out (&call, 0, rn_desc_vector (RN_F32, RN_STATS_COUNT));
      run_call (devices[k], &call, &b);
      g_assert_cmpfloat (stats[RN_STATS_NORM], ==, 6e6f);
      g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, 60000);
    }
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  devices[0] = rn_device_new_ref ();
  devices[1] = rn_device_new_cpu (2, &error);
  g_assert_no_error (error);
  g_test_add_func ("/large-values/batch-norm-fwd", test_batch_norm_fwd);
  g_test_add_func ("/large-values/batch-norm-bwd", test_batch_norm_bwd);
  g_test_add_func ("/large-values/focal-loss", test_focal_loss);
  g_test_add_func ("/large-values/box-loss", test_box_loss);
  g_test_add_func ("/large-values/avg-pool", test_avg_pool);
  g_test_add_func ("/large-values/upsample-bwd", test_upsample_bwd);
  g_test_add_func ("/large-values/grad-stats", test_grad_stats);
  int result = g_test_run ();
  rn_device_free (devices[0]);
  rn_device_free (devices[1]);
  return result;
}
