/*
 * test-gradients.c: every backward op against finite differences of its forward op, both by the reference
 * kernels (the others are compared with those in test-kernels.c).
 *
 * For f (x) = sum of r * forward (x) with random r, the slope of t -> f (x + t d) at 0 is the inner product
 * of the gradient and d. It is taken by the five-point rule, whose truncation error is h^4 f^(5) / 30.
 * Forward results are rounded to single precision, which moves f by at most FLT_EPSILON / 2 of S = sum of |r
 * * forward|, and the rule weighs four of them by 18 / (12 h) in all. So the bound is S (FLT_EPSILON / h +
 * h^4), and without the last term for functions that are linear along d.
 */
#include "config.h"

#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <runner/batch.h>
#include <string.h>

#define STEP (1.0 / 16)

/* Where an input of the backward op comes from. */
typedef struct
{
  int slot;
  enum
  {
    FROM_R,
    FROM_IN,
    FROM_OUT
  } from; /* r, an input or an output of the forward op */
  int index;
} Wire;

/* An input of the forward op and the output of the backward op that is its gradient. */
typedef struct
{
  int input, gradient;
} Pair;

typedef struct
{
  RnOpCall fwd, bwd;
  const Wire *wires;
  int n_wires;
  const Pair *pairs;
  int n_pairs;
  void (*adjust) (Buffers *fwd); /* moves inputs away from kinks; may be NULL */
} Gradient;

static RnDevice *ref;

static double
objective (const RnOpCall *fwd, Buffers *b, const float *r, double *size)
{
  double sum = 0;
  *size = 0;
  run_call (ref, fwd, b);
  for (int64_t i = 0; i < rn_desc_stored_elements (&fwd->out[0]); i++)
    {
      sum += (double) r[i] * ((const float *) b->out[0])[i];
      *size += fabs ((double) r[i] * ((const float *) b->out[0])[i]);
    }
  return sum;
}

/* Entry @i of direction @d: zero where the tensor only fills up its blocks. */
static float
direction_at (const RnTensorDesc *desc, int d, int64_t i)
{
  return is_padding (desc, i) ? 0 : value_at (1000 + (guint) d, 0, i);
}

static void
check_direction (const Gradient *g, Buffers *fwd, const float *r, const Pair *pair, const float *gradient,
                 int d)
{
  const RnTensorDesc *desc = &g->fwd.in[pair->input];
  const int64_t n = rn_desc_stored_elements (desc);
  float *x = fwd->in[pair->input];
  g_autofree float *origin = g_memdup2 (x, rn_desc_bytes (desc));
  static const double steps[] = { -2, -1, 1, 2 }, weights[] = { 1, -8, 8, -1 };
  double slope = 0, size = 0, expected = 0;

  for (int k = 0; k < 4; k++)
    {
      double size_here;
      for (int64_t i = 0; i < n; i++)
        x[i] = origin[i] + (float) (steps[k] * STEP) * direction_at (desc, d, i);
      slope += weights[k] * objective (&g->fwd, fwd, r, &size_here) / (12 * STEP);
      size = fmax (size, size_here);
    }
  memcpy (x, origin, rn_desc_bytes (desc));
  for (int64_t i = 0; i < n; i++)
    expected += (double) gradient[i] * direction_at (desc, d, i);

  double bound = size * (FLT_EPSILON / STEP + pow (STEP, 4));
  if (!(fabs (slope - expected) <= bound))
    g_error ("%s: gradient of %s: %.9g by differences, %.9g by the op, bound %.3g", rn_op_name (g->bwd.op),
             rn_op_in_name (g->fwd.op, pair->input), slope, expected, bound);
}

static void
check_gradient (const Gradient *g)
{
  Buffers fwd, bwd;
  g_autofree float *r = g_new0 (float, rn_desc_stored_elements (&g->fwd.out[0]));
  double size;

  g_assert_null (rn_op_check (&g->fwd));
  g_assert_null (rn_op_check (&g->bwd));
  buffers_init (&fwd, &g->fwd, 7, -1, -1);
  buffers_init (&bwd, &g->bwd, 7, -1, -1);
  if (g->adjust != NULL)
    g->adjust (&fwd);
  for (int64_t i = 0; i < rn_desc_stored_elements (&g->fwd.out[0]); i++)
    r[i] = direction_at (&g->fwd.out[0], 50, i);
  objective (&g->fwd, &fwd, r, &size);

  for (int i = 0; i < g->n_wires; i++)
    {
      const Wire *w = &g->wires[i];
      const void *from = w->from == FROM_R ? r : w->from == FROM_IN ? fwd.in[w->index] : fwd.out[w->index];
      if (RN_HAS_IN (&g->bwd, w->slot))
        memcpy (bwd.in[w->slot], from, rn_desc_bytes (&g->bwd.in[w->slot]));
    }
  for (int i = 0; i < rn_op_n_out (g->bwd.op); i++)
    if (RN_HAS_OUT (&g->bwd, i) && ((rn_op_update_mask (g->bwd.op) >> i) & 1))
      memset (bwd.out[i], 0, rn_desc_bytes (&g->bwd.out[i]));
  run_call (ref, &g->bwd, &bwd);

  for (int i = 0; i < g->n_pairs; i++)
    for (int d = 0; d < 3; d++)
      check_direction (g, &fwd, r, &g->pairs[i], bwd.out[g->pairs[i].gradient], d);
  buffers_clear (&fwd);
  buffers_clear (&bwd);
}

#define ARRAY(a) (a), G_N_ELEMENTS (a)

/* ---- convolutions -------------------------------------------------------------------------------------- */

typedef struct
{
  RnOpCall fwd, bwd_data, bwd_weights;
} ConvCalls;

static ConvCalls
conv_calls (const RnConvArgs *args, gboolean folded)
{
  const RnTensorDesc src = rn_desc_nchw (RN_F32, 2, 12, 7, 6, 8);
  const RnTensorDesc weights =
      rn_desc_nchw (RN_F32, 18, 12 / args->groups, args->kernel[0], args->kernel[1], 1);
  const RnTensorDesc vector = rn_desc_vector (RN_F32, 18);
  ConvCalls c = { { .op = RN_OP_CONV2D_FWD },
                  { .op = RN_OP_CONV2D_BWD_DATA },
                  { .op = RN_OP_CONV2D_BWD_WEIGHTS } };
  RnTensorDesc dst = rn_desc_nchw (RN_F32, 2, 18, 0, 0, 16);

  for (int i = 0; i < 2; i++)
    dst.dims[2 + i] = rn_window_size (src.dims[2 + i], args->kernel[i], args->stride[i], args->pad[i],
                                      args->dilation[i], FALSE);
  c.fwd.args.conv = c.bwd_data.args.conv = c.bwd_weights.args.conv = *args;
  set_in (&c.fwd, RN_CONV_SRC, src);
  set_in (&c.fwd, RN_CONV_WEIGHTS, weights);
  set_out (&c.fwd, RN_CONV_DST, dst);
  set_in (&c.bwd_data, RN_CONV_BD_DIFF_DST, dst);
  set_in (&c.bwd_data, RN_CONV_BD_WEIGHTS, weights);
  set_out (&c.bwd_data, RN_CONV_BD_DIFF_SRC, src);
  set_in (&c.bwd_weights, RN_CONV_BW_SRC, src);
  set_in (&c.bwd_weights, RN_CONV_BW_DIFF_DST, dst);
  set_out (&c.bwd_weights, RN_CONV_BW_DIFF_WEIGHTS, weights);
  if (!folded)
    {
      set_in (&c.fwd, RN_CONV_BIAS, vector);
      set_out (&c.bwd_weights, RN_CONV_BW_DIFF_BIAS, vector);
      return c;
    }
  for (int slot = RN_CONV_GAMMA; slot <= RN_CONV_VAR; slot++)
    set_in (&c.fwd, slot, vector);
  for (int slot = RN_CONV_BD_GAMMA; slot <= RN_CONV_BD_VAR; slot++)
    set_in (&c.bwd_data, slot, vector);
  set_in (&c.bwd_weights, RN_CONV_BW_WEIGHTS, weights);
  for (int slot = RN_CONV_BW_GAMMA; slot <= RN_CONV_BW_VAR; slot++)
    set_in (&c.bwd_weights, slot, vector);
  set_out (&c.bwd_weights, RN_CONV_BW_DIFF_GAMMA, vector);
  set_out (&c.bwd_weights, RN_CONV_BW_DIFF_BETA, vector);
  return c;
}

/* One gamma of 0: the folded formula must not divide by it. */
static void
zero_one_gamma (Buffers *fwd)
{
  ((float *) fwd->in[RN_CONV_GAMMA])[3] = 0;
}

static void
test_conv (void)
{
  static const RnConvArgs args[] = {
    { .kernel = { 3, 3 },
      .stride = { 1, 1 },
      .pad = { 1, 1 },
      .dilation = { 1, 1 },
      .groups = 1,
      .eps = 1e-5f },
    { .kernel = { 3, 2 },
      .stride = { 2, 1 },
      .pad = { 1, 0 },
      .dilation = { 1, 2 },
      .groups = 2,
      .eps = 1e-5f },
    { .kernel = { 1, 1 }, .stride = { 2, 2 }, .dilation = { 1, 1 }, .groups = 1, .eps = 1e-5f },
  };
  static const Wire data_wires[] = {
    { RN_CONV_BD_DIFF_DST, FROM_R, 0 },
    { RN_CONV_BD_WEIGHTS, FROM_IN, RN_CONV_WEIGHTS },
    { RN_CONV_BD_GAMMA, FROM_IN, RN_CONV_GAMMA },
    { RN_CONV_BD_VAR, FROM_IN, RN_CONV_VAR },
  };
  static const Wire weights_wires[] = {
    { RN_CONV_BW_SRC, FROM_IN, RN_CONV_SRC },         { RN_CONV_BW_DIFF_DST, FROM_R, 0 },
    { RN_CONV_BW_WEIGHTS, FROM_IN, RN_CONV_WEIGHTS }, { RN_CONV_BW_GAMMA, FROM_IN, RN_CONV_GAMMA },
    { RN_CONV_BW_MEAN, FROM_IN, RN_CONV_MEAN },       { RN_CONV_BW_VAR, FROM_IN, RN_CONV_VAR },
  };
  static const Pair data_pairs[] = { { RN_CONV_SRC, RN_CONV_BD_DIFF_SRC } };
  static const Pair plain_pairs[] = { { RN_CONV_WEIGHTS, RN_CONV_BW_DIFF_WEIGHTS },
                                      { RN_CONV_BIAS, RN_CONV_BW_DIFF_BIAS } };
  static const Pair folded_pairs[] = { { RN_CONV_WEIGHTS, RN_CONV_BW_DIFF_WEIGHTS },
                                       { RN_CONV_GAMMA, RN_CONV_BW_DIFF_GAMMA },
                                       { RN_CONV_BETA, RN_CONV_BW_DIFF_BETA } };

  for (guint i = 0; i < G_N_ELEMENTS (args); i++)
    for (int folded = 0; folded < 2; folded++)
      {
        const ConvCalls c = conv_calls (&args[i], folded);
        const Gradient data = { c.fwd, c.bwd_data, ARRAY (data_wires), ARRAY (data_pairs),
                                folded ? zero_one_gamma : NULL };
        check_gradient (&data);
        Gradient weights = { c.fwd, c.bwd_weights, ARRAY (weights_wires), ARRAY (plain_pairs), data.adjust };
        if (folded)
          {
            weights.pairs = folded_pairs;
            weights.n_pairs = G_N_ELEMENTS (folded_pairs);
          }
        check_gradient (&weights);
      }
}

/* ---- the others ---------------------------------------------------------------------------------------- */

static void
test_batch_norm (void)
{
  static const Wire training_wires[] = {
    { RN_NORM_BWD_SRC, FROM_IN, RN_NORM_SRC },           { RN_NORM_BWD_DIFF_DST, FROM_R, 0 },
    { RN_NORM_BWD_GAMMA, FROM_IN, RN_NORM_GAMMA },       { RN_NORM_BWD_MEAN, FROM_OUT, RN_NORM_SAVED_MEAN },
    { RN_NORM_BWD_VAR, FROM_OUT, RN_NORM_SAVED_INVSTD },
  };
  static const Wire evaluation_wires[] = {
    { RN_NORM_BWD_SRC, FROM_IN, RN_NORM_SRC },     { RN_NORM_BWD_DIFF_DST, FROM_R, 0 },
    { RN_NORM_BWD_GAMMA, FROM_IN, RN_NORM_GAMMA }, { RN_NORM_BWD_MEAN, FROM_IN, RN_NORM_MEAN },
    { RN_NORM_BWD_VAR, FROM_IN, RN_NORM_VAR },
  };
  static const Pair pairs[] = { { RN_NORM_SRC, RN_NORM_BWD_DIFF_SRC },
                                { RN_NORM_GAMMA, RN_NORM_BWD_DIFF_GAMMA },
                                { RN_NORM_BETA, RN_NORM_BWD_DIFF_BETA } };
  const RnTensorDesc d = rn_desc_nchw (RN_F32, 2, 10, 6, 5, 8), v = rn_desc_vector (RN_F32, 10);

  for (int training = 0; training < 2; training++)
    {
      Gradient g = { .fwd = { .op = RN_OP_BATCH_NORM_FWD,
                              .args.norm = { .eps = 1e-5f, .momentum = 0.1f, .training = training } } };
      g.bwd = (RnOpCall){ .op = RN_OP_BATCH_NORM_BWD, .args = g.fwd.args };
      g.wires = training ? training_wires : evaluation_wires;
      g.n_wires = G_N_ELEMENTS (training_wires);
      g.pairs = pairs;
      g.n_pairs = G_N_ELEMENTS (pairs);
      set_in (&g.fwd, RN_NORM_SRC, d);
      set_out (&g.fwd, RN_NORM_DST, d);
      for (int slot = RN_NORM_GAMMA; slot <= (training ? RN_NORM_BETA : RN_NORM_VAR); slot++)
        set_in (&g.fwd, slot, v);
      for (int slot = RN_NORM_SAVED_MEAN; training && slot <= RN_NORM_SAVED_INVSTD; slot++)
        set_out (&g.fwd, slot, v);
      set_in (&g.bwd, RN_NORM_BWD_SRC, d);
      set_in (&g.bwd, RN_NORM_BWD_DIFF_DST, d);
      for (int slot = RN_NORM_BWD_GAMMA; slot <= RN_NORM_BWD_VAR; slot++)
        set_in (&g.bwd, slot, v);
      set_out (&g.bwd, RN_NORM_BWD_DIFF_SRC, d);
      for (int slot = RN_NORM_BWD_DIFF_GAMMA; slot <= RN_NORM_BWD_DIFF_BETA; slot++)
        set_out (&g.bwd, slot, v);
      check_gradient (&g);
    }
}

/* |a + b| stays above 0.75, the steps below 2 * STEP. */
static void
away_from_zero (Buffers *fwd)
{
  float *a = fwd->in[RN_ADD_A], *b = fwd->in[RN_ADD_B];
  for (int64_t i = 0; i < rn_desc_stored_elements (&fwd->call->in[0]); i++)
    {
      a[i] += is_padding (&fwd->call->in[0], i) ? 0 : a[i] > 0 ? 1 : -1;
      b[i] *= 0.25f;
    }
}

static void
test_relu (void)
{
  static const Wire wires[] = { { RN_RELU_BWD_Y, FROM_OUT, 0 }, { RN_RELU_BWD_A, FROM_R, 0 } };
  static const Pair pairs[] = { { RN_ADD_A, 0 }, { RN_ADD_B, 0 } };
  const RnTensorDesc d = rn_desc_nchw (RN_F32, 2, 10, 6, 5, 8);
  Gradient g = { { .op = RN_OP_ADD, .args.add.relu = TRUE },
                 { .op = RN_OP_RELU_BWD },
                 ARRAY (wires),
                 ARRAY (pairs),
                 away_from_zero };

  set_in (&g.fwd, RN_ADD_A, d);
  set_in (&g.fwd, RN_ADD_B, d);
  set_out (&g.fwd, 0, d);
  set_in (&g.bwd, RN_RELU_BWD_Y, d);
  set_in (&g.bwd, RN_RELU_BWD_A, d);
  set_out (&g.bwd, 0, d);
  check_gradient (&g);
}

/*
 * Values that differ by at least 0.5, more than two steps of 2 * STEP: the maxima stay where they are. 7919
 * is prime.
 */
static void
spread (Buffers *fwd)
{
  const RnTensorDesc *d = &fwd->call->in[0];
  float *x = fwd->in[0];
  int64_t n = rn_desc_stored_elements (d);
  for (int64_t i = 0; i < n; i++)
    x[i] = is_padding (d, i) ? 0 : (float) (i * 7919 % n) * 0.5f - (float) n / 4;
}

static void
test_pool (void)
{
  static const Wire max_wires[] = { { RN_POOL_BWD_DIFF_DST, FROM_R, 0 },
                                    { RN_POOL_BWD_INDEX, FROM_OUT, RN_POOL_INDEX } };
  static const Wire avg_wires[] = { { 0, FROM_R, 0 } };
  static const Pair pairs[] = { { 0, 0 } };
  static const RnPoolArgs args[] = {
    { .kernel = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 } },
    { .kernel = { 2, 3 }, .stride = { 2, 1 }, .pad = { 0, 1 }, .ceil_mode = TRUE },
  };

  for (guint i = 0; i < G_N_ELEMENTS (args); i++)
    {
      const RnTensorDesc src = rn_desc_nchw (RN_F32, 2, 10, 7, 5, 8);
      RnTensorDesc dst = src, index;
      for (int k = 0; k < 2; k++)
        dst.dims[2 + k] = rn_window_size (src.dims[2 + k], args[i].kernel[k], args[i].stride[k],
                                          args[i].pad[k], 1, args[i].ceil_mode);
      index = dst;
      index.dtype = RN_U8;

      Gradient max = { { .op = RN_OP_MAX_POOL_FWD, .args.pool = args[i] },
                       { .op = RN_OP_MAX_POOL_BWD, .args.pool = args[i] },
                       ARRAY (max_wires),
                       ARRAY (pairs),
                       spread };
      set_in (&max.fwd, 0, src);
      set_out (&max.fwd, RN_POOL_DST, dst);
      set_out (&max.fwd, RN_POOL_INDEX, index);
      set_in (&max.bwd, RN_POOL_BWD_DIFF_DST, dst);
      set_in (&max.bwd, RN_POOL_BWD_INDEX, index);
      set_out (&max.bwd, 0, src);
      check_gradient (&max);

      Gradient avg = { { .op = RN_OP_AVG_POOL_FWD, .args.pool = args[i] },
                       { .op = RN_OP_AVG_POOL_BWD, .args.pool = args[i] },
                       ARRAY (avg_wires),
                       ARRAY (pairs),
                       NULL };
      set_in (&avg.fwd, 0, src);
      set_out (&avg.fwd, 0, dst);
      set_in (&avg.bwd, 0, dst);
      set_out (&avg.bwd, 0, src);
      check_gradient (&avg);
    }
}

static void
test_upsample (void)
{
  static const Wire wires[] = { { RN_UPSAMPLE_SRC, FROM_R, 0 } };
  static const Pair pairs[] = { { RN_UPSAMPLE_SRC, 0 } };
  const RnTensorDesc coarse = rn_desc_nchw (RN_F32, 2, 10, 4, 3, 8),
                     fine = rn_desc_nchw (RN_F32, 2, 10, 7, 6, 8);
  Gradient g = {
    { .op = RN_OP_UPSAMPLE_FWD }, { .op = RN_OP_UPSAMPLE_BWD }, ARRAY (wires), ARRAY (pairs), NULL
  };

  set_in (&g.fwd, RN_UPSAMPLE_SRC, coarse);
  set_in (&g.fwd, RN_UPSAMPLE_ADDEND, fine);
  set_out (&g.fwd, 0, fine);
  set_in (&g.bwd, RN_UPSAMPLE_SRC, fine);
  set_out (&g.bwd, 0, coarse);
  check_gradient (&g);
}

/*
 * A loss computes its gradient itself: the forward op alone gives the value, the backward op is the same call
 * with the gradient. The gradient is multiplied by GRAD_SCALE and the value is not, so a scale of r =
 * direction_at (50, 0) makes both agree.
 */
static void
check_loss (RnOpCall call, int input, void (*adjust) (Buffers *))
{
  const int scale = call.op == RN_OP_FOCAL_LOSS ? RN_FOCAL_GRAD_SCALE : RN_BOX_GRAD_SCALE;
  Wire wires[RN_BOX_IN_COUNT];
  const Pair pairs[] = { { input, RN_LOSS_DIFF } };
  const int n_in = rn_op_n_in (call.op);

  for (int i = 0; i < n_in; i++)
    wires[i] = (Wire){ i, i == scale ? FROM_R : FROM_IN, i };
  Gradient g = { call, call, wires, n_in, ARRAY (pairs), adjust };
  g.fwd.out_present = 1u << RN_LOSS_VALUE;
  set_out (&g.bwd, RN_LOSS_DIFF, call.in[input]);
  check_gradient (&g);
}

static void
test_focal (void)
{
  static const float gammas[] = { 0, 1, 2, 2.5f };
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);

  for (guint i = 0; i < G_N_ELEMENTS (gammas); i++)
    {
      RnOpCall call = {
        .op = RN_OP_FOCAL_LOSS,
        .args.focal = { .alpha = 0.25f,
                        .gamma = gammas[i],
                        .weight = 1.5f,
                        .num_classes = 5,
                        .anchors_per_cell = 3 },
      };
      set_in (&call, RN_FOCAL_LOGITS, rn_desc_nchw (RN_F32, 2, 15, 4, 3, 8));
      set_in (&call, RN_FOCAL_LABELS, (RnTensorDesc){ RN_I16, 2, { 2, 36 }, 1 });
      set_in (&call, RN_FOCAL_AVG, one);
      set_in (&call, RN_FOCAL_GRAD_SCALE, one);
      set_out (&call, RN_LOSS_VALUE, one);
      check_loss (call, RN_FOCAL_LOGITS, NULL);
    }
}

/*
 * Targets at +-3, predictions in -1 .. 1: differences of 2 to 4, away from the kink of L1 at 0 and of smooth
 * L1 at 1 and at 8.
 */
static void
far_targets (Buffers *fwd)
{
  RnPositive *p = fwd->in[RN_BOX_POSITIVES];
  for (int64_t i = 0; i < fwd->call->in[RN_BOX_POSITIVES].dims[0] / (int64_t) sizeof *p; i++)
    for (int d = 0; d < 4; d++)
      p[i].target[d] = p[i].target[d] > 0 ? 3 : -3;
}

static void
test_box (void)
{
  static const float betas[] = { 0, 1, 8 };
  const RnTensorDesc one = rn_desc_vector (RN_F32, 1);

  for (guint i = 0; i < G_N_ELEMENTS (betas); i++)
    {
      RnOpCall call = { .op = RN_OP_BOX_LOSS,
                        .args.box = { .beta = betas[i], .weight = 2, .anchors_per_cell = 3 } };
      set_in (&call, RN_BOX_PRED, rn_desc_nchw (RN_F32, 2, 12, 4, 3, 8));
      set_in (&call, RN_BOX_POSITIVES, rn_desc_vector (RN_U8, 20 * (int64_t) sizeof (RnPositive)));
      set_in (&call, RN_BOX_COUNT, rn_desc_vector (RN_I64, 1));
      set_in (&call, RN_BOX_AVG, one);
      set_in (&call, RN_BOX_GRAD_SCALE, one);
      set_out (&call, RN_LOSS_VALUE, one);
      check_loss (call, RN_BOX_PRED, far_targets);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ref = rn_device_new_ref ();
  g_test_add_func ("/gradients/conv", test_conv);
  g_test_add_func ("/gradients/batch-norm", test_batch_norm);
  g_test_add_func ("/gradients/relu", test_relu);
  g_test_add_func ("/gradients/pool", test_pool);
  g_test_add_func ("/gradients/upsample", test_upsample);
  g_test_add_func ("/gradients/focal-loss", test_focal);
  g_test_add_func ("/gradients/box-loss", test_box);
  int status = g_test_run ();
  rn_device_free (ref);
  return status;
}
