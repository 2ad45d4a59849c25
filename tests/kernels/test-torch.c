/*
 * test-torch.c: the reference kernels against PyTorch (golden-torch.py). The other kernels are compared with
 * the reference.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/kernels/golden-torch.h"
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <runner/batch.h>
#include <string.h>

static RnDevice *ref;

/*
 * PyTorch sums in single precision: @length terms err by up to sqrt (length) ulp of the largest entry, 4 more
 * for the other operations.
 */
static void
assert_close (const float *got, const float *want, guint n, double length)
{
  double largest = 0;
  for (guint i = 0; i < n; i++)
    largest = fmax (largest, fabs (want[i]));
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat (fabs ((double) got[i] - want[i]), <=, (4 + sqrt (length)) * FLT_EPSILON * largest);
}

static void
assert_equal (const float *got, const float *want, guint n)
{
  for (guint i = 0; i < n; i++)
    g_assert_cmpfloat (got[i], ==, want[i]);
}

#define ASSERT_CLOSE(got, want, length) assert_close ((got), (want), G_N_ELEMENTS (want), (length))

static void
fill (float *data, guint seed, int slot, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    data[i] = value_at (seed, slot, i);
}

static void
bind_in (RnOpCall *call, Buffers *b, int slot, RnTensorDesc d, const void *data)
{
  set_in (call, slot, d);
  b->in[slot] = (void *) data;
}

static void
bind_out (RnOpCall *call, Buffers *b, int slot, RnTensorDesc d, void *data)
{
  set_out (call, slot, d);
  b->out[slot] = data;
}

static void
sgd_steps (RnSgdArgs args, float mu, gboolean has_momentum, const float *want)
{
  float p[7], v[7] = { 0 }, grad[7];
  float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = { [RN_HYPER_MOMENTUM] = mu,
                                                   [RN_HYPER_GRAD_MULTIPLIER] = 1,
                                                   [RN_HYPER_FIRST] = 1,
                                                   [RN_HYPER_COUNT + RN_GROUP_LR] = 0.1f };
  RnOpCall call = { .op = RN_OP_SGD, .args.sgd = args };
  Buffers b = { .call = &call };
  const RnTensorDesc d = rn_desc_vector (RN_F32, 7);

  bind_in (&call, &b, RN_SGD_GRAD, d, grad);
  bind_in (&call, &b, RN_SGD_HYPER, rn_desc_vector (RN_F32, G_N_ELEMENTS (hyper)), hyper);
  bind_out (&call, &b, RN_SGD_PARAM, d, p);
  if (has_momentum)
    bind_out (&call, &b, RN_SGD_MOMENTUM, d, v);
  fill (p, 1, 0, 7);
  for (guint step = 0; step < 3; step++)
    {
      hyper[RN_HYPER_FIRST] = step == 0;
      fill (grad, 2 + step, 0, 7);
      run_call (ref, &call, &b);
    }
  assert_close (p, want, 7, 3);
}

static void
test_sgd (void)
{
  RnSgdArgs args = { .weight_decay = 0.01 };
  sgd_steps (args, 0, FALSE, golden_sgd_plain);
  args.dampening = 0.25f;
  sgd_steps (args, 0.9f, TRUE, golden_sgd_momentum);
  args.dampening = 0;
  args.nesterov = TRUE;
  sgd_steps (args, 0.9f, TRUE, golden_sgd_nesterov);
}

/*
 * Four steps. The host's part of the arithmetic is in double, as PyTorch's. Rounding errors of a step are a
 * few ulp of m, of sqrt (v) and of p each; they do not grow from step to step, since the factors of m and v
 * are below 1.
 */
static void
adam_steps (RnAdamArgs args, gboolean amsgrad, const float *want)
{
  float p[7], m[7], v[7], top[7], grad[7];
  float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
    [RN_HYPER_MOMENTUM] = 0.9f, [RN_HYPER_TAKE] = (float) (1 - 0.9), [RN_HYPER_GRAD_MULTIPLIER] = 1
  };
  RnOpCall call = { .op = RN_OP_ADAM, .args.adam = args };
  Buffers b = { .call = &call };
  const RnTensorDesc d = rn_desc_vector (RN_F32, 7);

  bind_in (&call, &b, RN_ADAM_GRAD, d, grad);
  bind_in (&call, &b, RN_ADAM_HYPER, rn_desc_vector (RN_F32, G_N_ELEMENTS (hyper)), hyper);
  bind_out (&call, &b, RN_ADAM_PARAM, d, p);
  bind_out (&call, &b, RN_ADAM_EXP_AVG, d, m);
  bind_out (&call, &b, RN_ADAM_EXP_AVG_SQ, d, v);
  if (amsgrad)
    bind_out (&call, &b, RN_ADAM_MAX_EXP_AVG_SQ, d, top);
  memset (m, 0xff, sizeof m); /* NaN: not read in the first step */
  memset (v, 0xff, sizeof v);
  memset (top, 0xff, sizeof top);
  fill (p, 1, 0, 7);
  for (guint step = 0; step < 4; step++)
    {
      hyper[RN_HYPER_FIRST] = step == 0;
      hyper[RN_HYPER_BIAS2] = (float) sqrt (1 - pow (args.beta2, step + 1));
      hyper[RN_HYPER_COUNT + RN_GROUP_LR] = 0.1f;
      hyper[RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = (float) (0.1 / (1 - pow (0.9, step + 1)));
      fill (grad, 2 + step, 0, 7);
      for (int i = 0; step == 3 && i < 7; i++)
        grad[i] /= 16; /* v falls, the largest one stays */
      run_call (ref, &call, &b);
    }
  assert_close (p, want, 7, 4);
  assert_close (m, want + 7, 7, 4);
  assert_close (v, want + 14, 7, 4);
  if (amsgrad)
    assert_close (top, want + 21, 7, 4);
}

static void
test_adam (void)
{
  RnAdamArgs args = { .weight_decay = 0.25, .beta2 = 0.75, .eps = 1e-3 };
  adam_steps (args, FALSE, golden_adam_plain);
  adam_steps (args, TRUE, golden_adam_amsgrad);
  args.decoupled = TRUE;
  adam_steps (args, FALSE, golden_adam_decoupled);
}

/*
 * A hundred steps with states in BF16. The operations are those of golden-torch.py, one by one: equal bits,
 * else a state would round elsewhere, and the steps from there on would differ.
 */
static void
test_short_sgd (void)
{
  float p[7], grad[7], state[7];
  guint16 v[7];
  float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
    [RN_HYPER_MOMENTUM] = 0.9f, [RN_HYPER_GRAD_MULTIPLIER] = 1, [RN_HYPER_COUNT + RN_GROUP_LR] = 0.1f
  };
  RnOpCall call = { .op = RN_OP_SGD, .args.sgd = { .weight_decay = 0.01, .dampening = 0.25f } };
  Buffers b = { .call = &call };
  const RnTensorDesc d = rn_desc_vector (RN_F32, 7);

  bind_in (&call, &b, RN_SGD_GRAD, d, grad);
  bind_in (&call, &b, RN_SGD_HYPER, rn_desc_vector (RN_F32, G_N_ELEMENTS (hyper)), hyper);
  bind_out (&call, &b, RN_SGD_PARAM, d, p);
  bind_out (&call, &b, RN_SGD_MOMENTUM, rn_desc_vector (RN_BF16, 7), v);
  memset (v, 0xff, sizeof v); /* NaN: not read in the first step */
  fill (p, 1, 0, 7);
  for (guint step = 0; step < 100; step++)
    {
      hyper[RN_HYPER_FIRST] = step == 0;
      fill (grad, 2 + step, 0, 7);
      run_call (ref, &call, &b);
    }
  rn_floats_from (RN_BF16, v, 7, state);
  assert_equal (p, golden_bf16_sgd, 7);
  assert_equal (state, golden_bf16_sgd + 7, 7);
}

static void
test_short_adam (void)
{
  float p[7], grad[7], state[14];
  guint16 states[14];
  float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
    [RN_HYPER_MOMENTUM] = 0.9f, [RN_HYPER_TAKE] = (float) (1 - 0.9), [RN_HYPER_GRAD_MULTIPLIER] = 1
  };
  RnOpCall call = { .op = RN_OP_ADAM, .args.adam = { .weight_decay = 0.25, .beta2 = 0.75, .eps = 1e-3 } };
  Buffers b = { .call = &call };
  const RnTensorDesc d = rn_desc_vector (RN_F32, 7), s = rn_desc_vector (RN_BF16, 7);

  bind_in (&call, &b, RN_ADAM_GRAD, d, grad);
  bind_in (&call, &b, RN_ADAM_HYPER, rn_desc_vector (RN_F32, G_N_ELEMENTS (hyper)), hyper);
  bind_out (&call, &b, RN_ADAM_PARAM, d, p);
  bind_out (&call, &b, RN_ADAM_EXP_AVG, s, states);
  bind_out (&call, &b, RN_ADAM_EXP_AVG_SQ, s, states + 7);
  memset (states, 0xff, sizeof states);
  fill (p, 1, 0, 7);
  for (guint step = 0; step < 100; step++)
    {
      hyper[RN_HYPER_FIRST] = step == 0;
      hyper[RN_HYPER_BIAS2] = (float) sqrt (1 - pow (0.75, step + 1));
      hyper[RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = (float) (0.1 / (1 - pow (0.9, step + 1)));
      fill (grad, 2 + step, 0, 7);
      run_call (ref, &call, &b);
    }
  rn_floats_from (RN_BF16, states, 14, state);
  assert_equal (p, golden_bf16_adam, 7);
  assert_equal (state, golden_bf16_adam + 7, 14);
}

/*
 * Ops on halves: computed more exactly, rounded once. PyTorch's results are rounded from double; single
 * precision comes to the same but where it errs across a border: these values do not lie so close to one.
 */
static void
check_halves (RnDType t, const float *sum, const float *mean, const float *most, const float *diff)
{
  enum
  {
    N = 2 * 3 * 4 * 6
  };
  guint16 x[N], y[N], out[N];
  float wide[N], gamma[3] = { 1, 1, 1 }, beta[3] = { 0 }, means[3], invstds[3];
  const RnTensorDesc d = rn_desc_nchw (t, 2, 3, 4, 6, 1), pooled = rn_desc_nchw (t, 2, 3, 2, 3, 1),
                     v = rn_desc_vector (RN_F32, 3);

  fill (wide, 60, 0, N);
  rn_floats_to (t, wide, N, x);
  fill (wide, 60, 1, N);
  rn_floats_to (t, wide, N, y);

  RnOpCall add = { .op = RN_OP_ADD, .args.add.relu = TRUE };
  Buffers b = { .call = &add };
  bind_in (&add, &b, RN_ADD_A, d, x);
  bind_in (&add, &b, RN_ADD_B, d, y);
  bind_out (&add, &b, 0, d, out);
  run_call (ref, &add, &b);
  rn_floats_from (t, out, N, wide);
  assert_equal (wide, sum, N);

  RnOpCall pool = { .op = RN_OP_AVG_POOL_FWD, .args.pool = { .kernel = { 2, 2 }, .stride = { 2, 2 } } };
  b = (Buffers){ .call = &pool };
  bind_in (&pool, &b, 0, d, x);
  bind_out (&pool, &b, 0, pooled, out);
  run_call (ref, &pool, &b);
  rn_floats_from (t, out, N / 4, wide);
  assert_equal (wide, mean, N / 4);
  pool.op = RN_OP_MAX_POOL_FWD;
  run_call (ref, &pool, &b);
  rn_floats_from (t, out, N / 4, wide);
  assert_equal (wide, most, N / 4);

  RnOpCall fwd = { .op = RN_OP_BATCH_NORM_FWD, .args.norm = { .eps = 1e-5f, .training = TRUE } };
  b = (Buffers){ .call = &fwd };
  bind_in (&fwd, &b, RN_NORM_SRC, d, x);
  bind_in (&fwd, &b, RN_NORM_GAMMA, v, gamma);
  bind_in (&fwd, &b, RN_NORM_BETA, v, beta);
  bind_out (&fwd, &b, RN_NORM_DST, d, out);
  bind_out (&fwd, &b, RN_NORM_SAVED_MEAN, v, means);
  bind_out (&fwd, &b, RN_NORM_SAVED_INVSTD, v, invstds);
  run_call (ref, &fwd, &b);
  RnOpCall bwd = { .op = RN_OP_BATCH_NORM_BWD, .args = fwd.args };
  b = (Buffers){ .call = &bwd };
  bind_in (&bwd, &b, RN_NORM_BWD_SRC, d, x);
  bind_in (&bwd, &b, RN_NORM_BWD_DIFF_DST, d, y);
  bind_in (&bwd, &b, RN_NORM_BWD_GAMMA, v, gamma);
  bind_in (&bwd, &b, RN_NORM_BWD_MEAN, v, means);
  bind_in (&bwd, &b, RN_NORM_BWD_VAR, v, invstds);
  bind_out (&bwd, &b, RN_NORM_BWD_DIFF_SRC, d, out);
  run_call (ref, &bwd, &b);
  rn_floats_from (t, out, N, wide);
  assert_equal (wide, diff, N);
}

static void
test_halves (void)
{
  check_halves (RN_F16, golden_f16_add, golden_f16_avg_pool, golden_f16_max_pool, golden_f16_norm_diff_src);
  check_halves (RN_BF16, golden_bf16_add, golden_bf16_avg_pool, golden_bf16_max_pool,
                golden_bf16_norm_diff_src);
}

static void
test_norms (void)
{
  static const float types[] = { 1, 2, 3.5f, INFINITY };
  float grad[1000], stats[RN_STATS_COUNT];

  fill (grad, 50, 0, 1000);
  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    {
      RnOpCall call = { .op = RN_OP_GRAD_STATS };
      Buffers b = { .call = &call };
      bind_in (&call, &b, RN_GRAD_STATS_GRAD, rn_desc_vector (RN_F32, 1000), grad);
      bind_in (&call, &b, RN_GRAD_STATS_NORM_TYPE, rn_desc_vector (RN_F32, 1), &types[i]);
      bind_out (&call, &b, 0, rn_desc_vector (RN_F32, RN_STATS_COUNT), stats);
      run_call (ref, &call, &b);
      assert_close (&stats[RN_STATS_NORM], &golden_norms[i], 1, 0); /* both sum in double */
      g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, golden_norms[3]);
    }
}

static void
test_norm (void)
{
  enum
  {
    N = 2 * 3 * 4 * 5,
    PER_CHANNEL = 2 * 4 * 5
  };
  float src[N], dst[N], diff_dst[N], diff_src[N], gamma[3], beta[3], mean[3], invstd[3];
  float running_mean[3] = { 0, 0, 0 }, running_var[3] = { 1, 1, 1 }, diff_gamma[3] = { 0 },
        diff_beta[3] = { 0 };
  const RnTensorDesc d = rn_desc_nchw (RN_F32, 2, 3, 4, 5, 1), v = rn_desc_vector (RN_F32, 3);
  RnOpCall fwd = { .op = RN_OP_BATCH_NORM_FWD,
                   .args.norm = { .eps = 1e-5f, .momentum = 0.1f, .training = TRUE } };
  RnOpCall bwd = { .op = RN_OP_BATCH_NORM_BWD, .args = fwd.args };
  Buffers f = { .call = &fwd }, b = { .call = &bwd };

  fill (src, 10, 0, N);
  fill (gamma, 10, 1, 3);
  fill (beta, 10, 2, 3);
  fill (diff_dst, 10, 3, N);
  bind_in (&fwd, &f, RN_NORM_SRC, d, src);
  bind_in (&fwd, &f, RN_NORM_GAMMA, v, gamma);
  bind_in (&fwd, &f, RN_NORM_BETA, v, beta);
  bind_out (&fwd, &f, RN_NORM_DST, d, dst);
  bind_out (&fwd, &f, RN_NORM_SAVED_MEAN, v, mean);
  bind_out (&fwd, &f, RN_NORM_SAVED_INVSTD, v, invstd);
  bind_out (&fwd, &f, RN_NORM_RUNNING_MEAN, v, running_mean);
  bind_out (&fwd, &f, RN_NORM_RUNNING_VAR, v, running_var);
  run_call (ref, &fwd, &f);
  ASSERT_CLOSE (dst, golden_norm_dst, PER_CHANNEL);
  ASSERT_CLOSE (running_mean, golden_norm_running_mean, PER_CHANNEL);
  ASSERT_CLOSE (running_var, golden_norm_running_var, PER_CHANNEL);

  bind_in (&bwd, &b, RN_NORM_BWD_SRC, d, src);
  bind_in (&bwd, &b, RN_NORM_BWD_DIFF_DST, d, diff_dst);
  bind_in (&bwd, &b, RN_NORM_BWD_GAMMA, v, gamma);
  bind_in (&bwd, &b, RN_NORM_BWD_MEAN, v, mean);
  bind_in (&bwd, &b, RN_NORM_BWD_VAR, v, invstd);
  bind_out (&bwd, &b, RN_NORM_BWD_DIFF_SRC, d, diff_src);
  bind_out (&bwd, &b, RN_NORM_BWD_DIFF_GAMMA, v, diff_gamma);
  bind_out (&bwd, &b, RN_NORM_BWD_DIFF_BETA, v, diff_beta);
  run_call (ref, &bwd, &b);
  ASSERT_CLOSE (diff_src, golden_norm_diff_src, PER_CHANNEL);
  ASSERT_CLOSE (diff_gamma, golden_norm_diff_gamma, PER_CHANNEL);
  ASSERT_CLOSE (diff_beta, golden_norm_diff_beta, PER_CHANNEL);
}

static void
test_conv (void)
{
  enum
  {
    SRC = 2 * 4 * 7 * 6,
    WEIGHTS = 6 * 2 * 3 * 2,
    DST = 2 * 6 * 4 * 4
  };
  float src[SRC], weights[WEIGHTS], bias[6], dst[DST], diff_dst[DST], diff_src[SRC],
      diff_weights[WEIGHTS] = { 0 }, diff_bias[6] = { 0 };
  const RnTensorDesc sd = rn_desc_nchw (RN_F32, 2, 4, 7, 6, 1), wd = rn_desc_nchw (RN_F32, 6, 2, 3, 2, 1);
  const RnTensorDesc dd = rn_desc_nchw (RN_F32, 2, 6, 4, 4, 1), v = rn_desc_vector (RN_F32, 6);
  const RnConvArgs args = {
    .kernel = { 3, 2 }, .stride = { 2, 1 }, .pad = { 1, 0 }, .dilation = { 1, 2 }, .groups = 2
  };
  RnOpCall fwd = { .op = RN_OP_CONV2D_FWD, .args.conv = args };
  RnOpCall data = { .op = RN_OP_CONV2D_BWD_DATA, .args.conv = args };
  RnOpCall grad = { .op = RN_OP_CONV2D_BWD_WEIGHTS, .args.conv = args };
  Buffers f = { .call = &fwd }, d = { .call = &data }, w = { .call = &grad };

  fill (src, 20, 0, SRC);
  fill (weights, 20, 1, WEIGHTS);
  fill (bias, 20, 2, 6);
  fill (diff_dst, 20, 3, DST);
  bind_in (&fwd, &f, RN_CONV_SRC, sd, src);
  bind_in (&fwd, &f, RN_CONV_WEIGHTS, wd, weights);
  bind_in (&fwd, &f, RN_CONV_BIAS, v, bias);
  bind_out (&fwd, &f, RN_CONV_DST, dd, dst);
  run_call (ref, &fwd, &f);
  ASSERT_CLOSE (dst, golden_conv_dst, 2 * 3 * 2);

  bind_in (&data, &d, RN_CONV_BD_DIFF_DST, dd, diff_dst);
  bind_in (&data, &d, RN_CONV_BD_WEIGHTS, wd, weights);
  bind_out (&data, &d, RN_CONV_BD_DIFF_SRC, sd, diff_src);
  run_call (ref, &data, &d);
  ASSERT_CLOSE (diff_src, golden_conv_diff_src, 3 * 3 * 2);

  bind_in (&grad, &w, RN_CONV_BW_SRC, sd, src);
  bind_in (&grad, &w, RN_CONV_BW_DIFF_DST, dd, diff_dst);
  bind_out (&grad, &w, RN_CONV_BW_DIFF_WEIGHTS, wd, diff_weights);
  bind_out (&grad, &w, RN_CONV_BW_DIFF_BIAS, v, diff_bias);
  run_call (ref, &grad, &w);
  ASSERT_CLOSE (diff_weights, golden_conv_diff_weights, 2 * 4 * 4);
  ASSERT_CLOSE (diff_bias, golden_conv_diff_bias, 2 * 4 * 4);
}

static void
test_pool (void)
{
  float src[2 * 7 * 6], dst[2 * 4 * 4];
  const RnTensorDesc sd = rn_desc_nchw (RN_F32, 1, 2, 7, 6, 1), dd = rn_desc_nchw (RN_F32, 1, 2, 4, 4, 1);
  RnOpCall call = {
    .op = RN_OP_MAX_POOL_FWD,
    .args.pool = { .kernel = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 }, .ceil_mode = TRUE },
  };
  Buffers b = { .call = &call };

  fill (src, 30, 0, G_N_ELEMENTS (src));
  bind_in (&call, &b, 0, sd, src);
  bind_out (&call, &b, 0, dd, dst);
  run_call (ref, &call, &b);
  ASSERT_CLOSE (dst, golden_max_pool, 0);
  call.op = RN_OP_AVG_POOL_FWD;
  run_call (ref, &call, &b);
  ASSERT_CLOSE (dst, golden_avg_pool, 9);
}

/* Twelve differences: one image, one row of three cells with one anchor. */
static void
box_loss (float beta, const float *loss_wanted, const float *slope_wanted)
{
  float pred[12], values[12], diff[12], planar[12], loss, one = 1;
  RnPositive positives[3] = { { 0, 0, { 0 } }, { 0, 1, { 0 } }, { 0, 2, { 0 } } };
  int64_t count = 3;
  const RnTensorDesc d = rn_desc_nchw (RN_F32, 1, 4, 1, 3, 1), scalar = rn_desc_vector (RN_F32, 1);
  RnOpCall call = { .op = RN_OP_BOX_LOSS, .args.box = { .beta = beta, .weight = 1, .anchors_per_cell = 1 } };
  Buffers b = { .call = &call };

  fill (values, 40, 0, 12);
  for (int i = 0; i < 12; i++)
    {
      pred[i % 4 * 3 + i / 4] = values[i]; /* value i is coordinate i % 4 of anchor i / 4 */
      positives[i / 4].target[i % 4] = value_at (40, 1, i);
    }
  bind_in (&call, &b, RN_BOX_PRED, d, pred);
  bind_in (&call, &b, RN_BOX_POSITIVES, rn_desc_vector (RN_U8, sizeof positives), positives);
  bind_in (&call, &b, RN_BOX_COUNT, rn_desc_vector (RN_I64, 1), &count);
  bind_in (&call, &b, RN_BOX_AVG, scalar, &one);
  bind_in (&call, &b, RN_BOX_GRAD_SCALE, scalar, &one);
  bind_out (&call, &b, RN_LOSS_VALUE, scalar, &loss);
  bind_out (&call, &b, RN_LOSS_DIFF, d, planar);
  run_call (ref, &call, &b);
  for (int i = 0; i < 12; i++)
    diff[i] = planar[i % 4 * 3 + i / 4];
  assert_close (&loss, loss_wanted, 1, 12);
  assert_close (diff, slope_wanted, 12, 0);
}

static void
test_smooth_l1 (void)
{
  box_loss (0, golden_l1_loss, golden_l1_slope);
  box_loss (0.5f, golden_smooth_loss, golden_smooth_slope);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ref = rn_device_new_ref ();
  g_test_add_func ("/torch/sgd", test_sgd);
  g_test_add_func ("/torch/adam", test_adam);
  g_test_add_func ("/torch/short-states/sgd", test_short_sgd);
  g_test_add_func ("/torch/short-states/adam", test_short_adam);
  g_test_add_func ("/torch/halves", test_halves);
  g_test_add_func ("/torch/norms", test_norms);
  g_test_add_func ("/torch/batch-norm", test_norm);
  g_test_add_func ("/torch/conv", test_conv);
  g_test_add_func ("/torch/pool", test_pool);
  g_test_add_func ("/torch/smooth-l1", test_smooth_l1);
  int status = g_test_run ();
  rn_device_free (ref);
  return status;
}
