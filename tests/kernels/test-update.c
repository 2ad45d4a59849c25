/*
 * test-update.c: the ops of an update on numbers that can be worked out by hand, on the reference and on the
 * fastest kernels. What they compute on ordinary numbers is compared with PyTorch in test-torch.c.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MANY 40000 /* several chunks */

static RnDevice *devices[2];

static void
put_in (RnOpCall *call, Buffers *b, int slot, int64_t n, const float *data)
{
  call->in[slot] = rn_desc_vector (RN_F32, n);
  call->in_present |= 1u << slot;
  b->in[slot] = (void *) data;
}

static void
put_out (RnOpCall *call, Buffers *b, int slot, int64_t n, void *data)
{
  call->out[slot] = rn_desc_vector (RN_F32, n);
  call->out_present |= 1u << slot;
  b->out[slot] = data;
}

static void
get_stats (RnDevice *device, const float *grad, int64_t n, float type, float stats[RN_STATS_COUNT])
{
  RnOpCall call = { .op = RN_OP_GRAD_STATS };
  Buffers b = { .call = &call };

  put_in (&call, &b, RN_GRAD_STATS_GRAD, n, grad);
  put_in (&call, &b, RN_GRAD_STATS_NORM_TYPE, 1, &type);
  put_out (&call, &b, 0, RN_STATS_COUNT, stats);
  run_call (device, &call, &b);
}

static const float types[] = { 1, 2, 8, INFINITY };

/* (n * x^p)^(1/p) = x * n^(1/p), also where x^p is no float, and where it is no double. */
static void
test_large_and_small (void)
{
  static const float sizes[] = { 1e-45f, 1e-20f, 1, 1e20f, 1e30f };
  g_autofree float *grad = g_new (float, MANY);

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (guint t = 0; t < G_N_ELEMENTS (types); t++)
        {
          float stats[RN_STATS_COUNT];
          for (int i = 0; i < MANY; i++)
            grad[i] = i % 2 ? sizes[s] : -sizes[s];
          get_stats (devices[d], grad, MANY, types[t], stats);
          double want = (double) sizes[s] * pow (MANY, 1 / (double) types[t]);
          /* one rounding to float; a step of the smallest floats is 1.4e-45 */
          g_assert_cmpfloat (fabs ((double) stats[RN_STATS_NORM] - want), <=, FLT_EPSILON * want + 1.4e-45);
          g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, sizes[s]);
        }
}

static void
test_too_large_for_float (void)
{
  g_autofree float *grad = g_new (float, MANY);

  for (int i = 0; i < MANY; i++)
    grad[i] = -FLT_MAX;
  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      {
        float stats[RN_STATS_COUNT];
        get_stats (devices[d], grad, MANY, types[t], stats);
        g_assert_cmpfloat (stats[RN_STATS_NORM], ==, FLT_MAX);
        g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, FLT_MAX);
      }
}

/* Wherever they are, also behind one another. */
static void
test_not_finite (void)
{
  g_autofree float *grad = g_new0 (float, MANY);
  static const int places[] = { 0, 1, 20000, MANY - 1 };

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      {
        float stats[RN_STATS_COUNT];
        get_stats (devices[d], grad, MANY, types[t], stats);
        g_assert_cmpfloat (stats[RN_STATS_NORM], ==, 0);
        g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, 0);
        for (guint i = 0; i < G_N_ELEMENTS (places); i++)
          {
            grad[places[i]] = -INFINITY;
            get_stats (devices[d], grad, MANY, types[t], stats);
            g_assert_cmpfloat (stats[RN_STATS_NORM], ==, (float) INFINITY);
            g_assert_cmpfloat (stats[RN_STATS_MAX_ABS], ==, (float) INFINITY);
            grad[10000] = NAN;
            get_stats (devices[d], grad, MANY, types[t], stats);
            g_assert_true (isnan (stats[RN_STATS_NORM]) && isnan (stats[RN_STATS_MAX_ABS]));
            grad[places[i]] = grad[10000] = 0;
          }
      }
}

/* A step of SGD with lr 1 from 0 is the gradient that it used. */
static void
use_gradients (RnDevice *device, const float *grad, int64_t n, float multiplier, float limit, float *used)
{
  RnOpCall call = { .op = RN_OP_SGD };
  Buffers b = { .call = &call };
  const float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = { [RN_HYPER_GRAD_MULTIPLIER] = multiplier,
                                                         [RN_HYPER_CLIP_VALUE] = limit,
                                                         [RN_HYPER_COUNT + RN_GROUP_LR] = -1 };

  memset (used, 0, sizeof *used * (gsize) n);
  put_in (&call, &b, RN_SGD_GRAD, n, grad);
  put_in (&call, &b, RN_SGD_HYPER, G_N_ELEMENTS (hyper), hyper);
  put_out (&call, &b, RN_SGD_PARAM, n, used);
  run_call (device, &call, &b);
}

static void
test_clip (void)
{
  static const float grad[] = { 1, -1, 4, -4, 8, -8, INFINITY, -INFINITY, NAN };
  static const float cut[] = { 0.5f, -0.5f, 1.5f, -1.5f, 1.5f, -1.5f, 1.5f, -1.5f };
  float used[9];

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    {
      use_gradients (devices[d], grad, 9, 0.5f, 1.5f, used); /* the multiplier comes first */
      for (int i = 0; i < 8; i++)
        g_assert_cmpfloat (used[i], ==, cut[i]);
      g_assert_true (isnan (used[8]));
      use_gradients (devices[d], grad, 9, 0.5f, 0, used);
      for (int i = 0; i < 8; i++)
        g_assert_cmpfloat (used[i], ==, grad[i] / 2);
      g_assert_true (isnan (used[8]));
    }
}

/* What the guard makes of the statistics, in a vector that says the opposite before. */
static void
test_guard (void)
{
  static const struct
  {
    float norm, max_abs, max_norm;
    gboolean checks;
    double coefficient;
    gboolean skips;
  } rows[] = {
    { 8, 3, 0, FALSE, 1, FALSE },
    { 8, 3, 0, TRUE, 1, FALSE },
    { 8, 3, 2, FALSE, 2 / (4 + 1e-6), FALSE },
    { 8, 3, 2, TRUE, 2 / (4 + 1e-6), FALSE },
    { 8, 3, 5, TRUE, 1, FALSE },
    { 0, 0, 2, TRUE, 1, FALSE },
    /* the sum is what is compared: no division by a norm of 0 */
    { 0, 0, 1e-7f, TRUE, (double) 1e-7f / 1e-6, FALSE },
    { FLT_MAX, FLT_MAX, 2, TRUE, 2 / ((double) FLT_MAX / 2 + 1e-6), FALSE },
    { INFINITY, INFINITY, 0, TRUE, 1, TRUE },
    { INFINITY, INFINITY, 0, FALSE, 1, FALSE },
    { INFINITY, INFINITY, 2, FALSE, 0, FALSE },
    { NAN, NAN, 0, TRUE, 1, TRUE },
    { NAN, NAN, 0, FALSE, 1, FALSE },
    { NAN, NAN, 2, FALSE, NAN, FALSE },
    { NAN, NAN, 2, TRUE, NAN, TRUE },
  };

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
      {
        RnOpCall call = { .op = RN_OP_STEP_GUARD };
        Buffers b = { .call = &call };
        const float stats[RN_STATS_COUNT] = { rows[i].norm, rows[i].max_abs };
        float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT], was[G_N_ELEMENTS (hyper)];
        for (gsize k = 0; k < G_N_ELEMENTS (hyper); k++)
          hyper[k] = (float) (k + 3);
        hyper[RN_HYPER_GRAD_MULTIPLIER] = 0.5f;
        hyper[RN_HYPER_MAX_NORM] = rows[i].max_norm;
        hyper[RN_HYPER_CHECKS_FINITE] = rows[i].checks ? 1.0f : 0.0f;
        hyper[RN_HYPER_SKIPS] = rows[i].skips ? 0.0f : 1.0f;
        put_in (&call, &b, 0, RN_STATS_COUNT, stats);
        put_out (&call, &b, 0, G_N_ELEMENTS (hyper), hyper);
        memcpy (was, hyper, sizeof was);
        run_call (devices[d], &call, &b);
        g_assert_cmpfloat (hyper[RN_HYPER_SKIPS], ==, rows[i].skips);
        if (isnan (rows[i].coefficient))
          g_assert_true (isnan (hyper[RN_HYPER_GRAD_MULTIPLIER]));
        else
          g_assert_cmpfloat (hyper[RN_HYPER_GRAD_MULTIPLIER], ==, (float) (rows[i].coefficient / 2));
        for (gsize k = 0; k < G_N_ELEMENTS (hyper); k++)
          if (k != RN_HYPER_GRAD_MULTIPLIER && k != RN_HYPER_SKIPS)
            g_assert_cmpfloat (hyper[k], ==, was[k]);
      }
}

/* A step that is skipped leaves every bit of parameters and states, whatever the gradients are. */
static void
test_skips (void)
{
  enum
  {
    N = 700
  };
  float grad[N];

  for (int i = 0; i < N; i++)
    grad[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? -INFINITY : 1;
  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (int variant = 0; variant < 8; variant++)
      {
        const gboolean is_adam = variant & 1, half = variant & 2, skips = (variant & 4) == 0;
        RnOpCall call = { .op = is_adam ? RN_OP_ADAM : RN_OP_SGD };
        Buffers b = { .call = &call };
        float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
          [RN_HYPER_MOMENTUM] = 0.5f,
          [RN_HYPER_TAKE] = 0.5f,
          [RN_HYPER_BIAS2] = 1,
          [RN_HYPER_GRAD_MULTIPLIER] = 1,
          [RN_HYPER_SKIPS] = skips ? 1.0f : 0.0f,
          [RN_HYPER_COUNT + RN_GROUP_LR] = 0.5f,
          [RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = 1,
        };
        float values[4][N], was[4][N];

        if (is_adam)
          call.args.adam = (RnAdamArgs){ .weight_decay = 0.5, .beta2 = 0.5, .eps = 1, .decoupled = half };
        put_in (&call, &b, 0, N, grad);
        put_in (&call, &b, 1, G_N_ELEMENTS (hyper), hyper);
        for (int s = 0; s < (is_adam ? 4 : 2); s++)
          {
            for (int i = 0; i < N; i++)
              values[s][i] = 1 + value_at (7, s, i); /* of BF16 it has two in its place: any bits will do */
            put_out (&call, &b, s, N, values[s]);
            call.out[s].dtype = half && s > 0 ? RN_BF16 : RN_F32;
          }
        memcpy (was, values, sizeof was);
        run_call (devices[d], &call, &b);
        for (int s = 0; s < (is_adam ? 4 : 2); s++)
          g_assert_cmpint (memcmp (was[s], values[s], sizeof *was) == 0, ==, skips);
      }
}

/* Each op takes the learning rate of its group. */
static void
test_groups (void)
{
  static const float grad[] = { 1 };
  float hyper[RN_HYPER_COUNT + 3 * RN_GROUP_COUNT] = { [RN_HYPER_GRAD_MULTIPLIER] = 1 };

  for (int group = 0; group < 3; group++)
    hyper[RN_HYPER_COUNT + group * RN_GROUP_COUNT + RN_GROUP_LR] = (float) (group + 1);
  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (int group = 0; group < 3; group++)
      {
        RnOpCall call = { .op = RN_OP_SGD, .args.sgd = { .group = group } };
        Buffers b = { .call = &call };
        float param = 10;
        put_in (&call, &b, RN_SGD_GRAD, 1, grad);
        put_in (&call, &b, RN_SGD_HYPER, G_N_ELEMENTS (hyper), hyper);
        put_out (&call, &b, RN_SGD_PARAM, 1, &param);
        run_call (devices[d], &call, &b);
        g_assert_cmpfloat (param, ==, (float) (9 - group));
        call.args.sgd.group = 3;
        g_assert_cmpstr (rn_op_check (&call), ==, "hyper has no such group");
      }
}

/* Factors that are exact in binary. With eps much larger than the rest, the step is m / eps. */
static void
test_decay_of_adam (void)
{
  static const float grad[] = { 0 };
  const float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
    [RN_HYPER_MOMENTUM] = 0.5f,
    [RN_HYPER_TAKE] = 0.5f,
    [RN_HYPER_BIAS2] = 1,
    [RN_HYPER_GRAD_MULTIPLIER] = 1,
    [RN_HYPER_FIRST] = 1,
    [RN_HYPER_COUNT + RN_GROUP_LR] = 0.5f,
    [RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = 1,
  };

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (int decoupled = 0; decoupled < 2; decoupled++)
      {
        RnOpCall call = {
          .op = RN_OP_ADAM,
          .args.adam = { .weight_decay = 0.5, .beta2 = 0.5, .eps = 0x1p60, .decoupled = decoupled },
        };
        Buffers b = { .call = &call };
        float param = 8, m = NAN, v = NAN;
        put_in (&call, &b, RN_ADAM_GRAD, 1, grad);
        put_in (&call, &b, RN_ADAM_HYPER, G_N_ELEMENTS (hyper), hyper);
        put_out (&call, &b, RN_ADAM_PARAM, 1, &param);
        put_out (&call, &b, RN_ADAM_EXP_AVG, 1, &m);
        put_out (&call, &b, RN_ADAM_EXP_AVG_SQ, 1, &v);
        run_call (devices[d], &call, &b);
        g_assert_cmpfloat (m, ==, decoupled ? 0 : 2);     /* 0.5 * (0.5 * 8) */
        g_assert_cmpfloat (v, ==, decoupled ? 0 : 8);     /* 0.5 * 4 * 4 */
        g_assert_cmpfloat (param, ==, decoupled ? 6 : 8); /* 8 * (1 - 0.5 * 0.5) */
      }
}

/*
 * A hundred steps of SGD with momentum in BF16 and in F32. Storing v moves it by 2^-8 of its size at most,
 * and the momentum takes that over: so v errs by 2^-8 V mu / (1 - mu), V the largest of both, and each step
 * moves the parameter by lr times that at most. Without decay nothing else differs but the rounding of F32,
 * of which 2^-8 / 1000 is far more than 100 steps make. The same holds for both averages of Adam with beta1
 * and beta2 for mu.
 */
static void
test_short_states (void)
{
  enum
  {
    N = 100,
    STEPS = 100
  };
  const float mu = 0.9f, beta2 = 0.75f;

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (int is_adam = 0; is_adam < 2; is_adam++)
      {
        float grad[N], param[2][N], wide[2][N], stored[2][N], most[2] = { 0, 0 };
        guint16 halves[2][N];
        float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
          [RN_HYPER_MOMENTUM] = mu,
          [RN_HYPER_TAKE] = 1 - mu,
          [RN_HYPER_BIAS2] = 1,
          [RN_HYPER_GRAD_MULTIPLIER] = 1,
          [RN_HYPER_COUNT + RN_GROUP_LR] = 0.5f,
          [RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = 0.5f,
        };
        for (int i = 0; i < N; i++)
          param[0][i] = param[1][i] = value_at (1, 0, i);
        for (guint step = 0; step < STEPS; step++)
          {
            hyper[RN_HYPER_FIRST] = step == 0;
            for (int i = 0; i < N; i++)
              grad[i] = value_at (2 + step, 0, i);
            for (int half = 0; half < 2; half++)
              {
                RnOpCall call = { .op = is_adam ? RN_OP_ADAM : RN_OP_SGD };
                Buffers b = { .call = &call };
                if (is_adam)
                  call.args.adam = (RnAdamArgs){ .beta2 = (double) beta2, .eps = 1e-3 };
                put_in (&call, &b, 0, N, grad);
                put_in (&call, &b, 1, G_N_ELEMENTS (hyper), hyper);
                put_out (&call, &b, 0, N, param[half]);
                for (int s = 0; s <= is_adam; s++)
                  {
                    put_out (&call, &b, 1 + s, N, half ? (void *) halves[s] : wide[s]);
                    call.out[1 + s].dtype = half ? RN_BF16 : RN_F32;
                  }
                run_call (devices[d], &call, &b);
              }
            for (int s = 0; s <= is_adam; s++)
              {
                rn_floats_from (RN_BF16, halves[s], N, stored[s]);
                for (int i = 0; i < N; i++)
                  most[s] = fmaxf (most[s], fmaxf (fabsf (wide[s][i]), fabsf (stored[s][i])));
              }
          }
        double differs = 0;
        for (int s = 0; s <= is_adam; s++)
          {
            double keeps = s == 0 ? (double) mu : (double) beta2;
            /* the last rounding is of what is compared */
            double bound = 0x1p-8 * 1.001 * (double) most[s] * (keeps / (1 - keeps) + 1);
            for (int i = 0; i < N; i++)
              {
                differs += stored[s][i] != wide[s][i];
                g_assert_cmpfloat (fabs ((double) stored[s][i] - wide[s][i]), <=, bound);
              }
          }
        g_assert_cmpfloat (differs, >, 0);
        for (int i = 0; i < N && !is_adam; i++)
          g_assert_cmpfloat (fabs ((double) param[0][i] - param[1][i]), <=,
                             STEPS * 0.5 * 0x1p-8 * 1.001 * (double) (most[0] * mu / (1 - mu)));
      }
}

static void
test_mean (void)
{
  static const float src[] = { 3, -1, 1e30f };
  const float rows[][4] = { { 0.25f, 1.5f, 0.5f, 0.25f * 1e30f }, { 1, 3, -1, 1e30f } };

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint r = 0; r < G_N_ELEMENTS (rows); r++)
      {
        RnOpCall call = { .op = RN_OP_EMA_UPDATE };
        Buffers b = { .call = &call };
        float mean[] = { 1, 1, 1 };
        put_in (&call, &b, RN_EMA_SRC, 3, src);
        put_in (&call, &b, RN_EMA_MOMENTUM, 1, rows[r]);
        put_out (&call, &b, 0, 3, mean);
        run_call (devices[d], &call, &b);
        for (int i = 0; i < 3; i++)
          g_assert_cmpfloat (mean[i], ==, rows[r][i + 1]);
      }
}

static void
test_swap (void)
{
  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    {
      RnOpCall call = { .op = RN_OP_SWAP };
      Buffers b = { .call = &call };
      float first[] = { 1, 2, 3 }, second[] = { 4, 5, 6 };
      put_out (&call, &b, RN_SWAP_A, 3, first);
      put_out (&call, &b, RN_SWAP_B, 3, second);
      run_call (devices[d], &call, &b);
      for (int i = 0; i < 3; i++)
        {
          g_assert_cmpfloat (first[i], ==, (float) (i + 4));
          g_assert_cmpfloat (second[i], ==, (float) (i + 1));
        }
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
  g_test_add_func ("/update/stats/large-and-small", test_large_and_small);
  g_test_add_func ("/update/stats/too-large-for-float", test_too_large_for_float);
  g_test_add_func ("/update/stats/not-finite", test_not_finite);
  g_test_add_func ("/update/clip", test_clip);
  g_test_add_func ("/update/guard", test_guard);
  g_test_add_func ("/update/skips", test_skips);
  g_test_add_func ("/update/groups", test_groups);
  g_test_add_func ("/update/decay-of-adam", test_decay_of_adam);
  g_test_add_func ("/update/short-states", test_short_states);
  g_test_add_func ("/update/mean", test_mean);
  g_test_add_func ("/update/swap", test_swap);
  int result = g_test_run ();
  rn_device_free (devices[0]);
  rn_device_free (devices[1]);
  return result;
}
