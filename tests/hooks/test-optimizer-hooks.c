/* The four optimizer hooks: order of a step, clipping, means of windows, overflows, keys. */
#include "config.h"

#include "tests/hooks/step-run.h"

#include "runner/base/error.h"

#include <math.h>
#include <string.h>

/* Of the iteration runs below; without momentum, so that a step can be told from the weights. */
#define ITERS(n, config)                                                                   \
  "runner: {type: IterBasedRunner, max_iters: " #n "}\noptimizer: {type: SGD, lr: 0.05}\n" \
  "log_config: {interval: 1, hooks: [{type: TextLoggerHook}]}\noptimizer_config: " config "\n"
#define CUMULATIVE(n, rest) "{type: GradientCumulativeOptimizerHook, cumulative_iters: " #n rest "}"

/* Floats near 8 and below that are the result of a few operations: each rounds by at most 8 * 2^-24. */
#define NEAR (8 * 8 * 0x1p-24)

static void
run_traced (const char *yaml, const char *expected)
{
  FakeRun run;
  g_autoptr (GString) trace = g_string_new (NULL);

  step_run_open (&run, yaml, NULL);
  run.fake.trace = trace;
  fake_run_go (&run);
  g_assert_cmpstr (trace->str, ==, expected);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* What is called in which order; gradients become zero at the start of a window only. */
static void
test_order (void)
{
  run_traced (ITERS (2, "{grad_clip: null}"),
              "zero forward backward update(1,first) zero forward backward update(1)");
  run_traced (ITERS (5, CUMULATIVE (2, "")),
              "zero forward backward forward backward update(1,first) zero forward backward forward backward "
              "update(1) zero forward backward update(1)");
  run_traced (ITERS (3, CUMULATIVE (2, ", tail: drop")),
              "zero forward backward forward backward update(1,first) forward");
  run_traced (ITERS (2, CUMULATIVE (2, ", grad_clip: {max_norm: 1e9}")),
              "zero forward backward forward backward norm update(1,first)");
  run_traced (ITERS (1, "{type: Fp16OptimizerHook, loss_scale: 4, grad_clip: {max_norm: 1e9}}"),
              "zero forward backward norm update(0.25,first)");
  run_traced (ITERS (1, "{type: Fp16OptimizerHook, loss_scale: 4}"),
              "zero forward backward norm update(0.25,first)");
}

/* ---- Clipping ---- */

/* The run of one iteration with grad_clip @clip; its only line. */
static char *
clip_once (const char *clip, float *w)
{
  FakeRun run;
  g_autofree char *yaml = g_strdup_printf (ITERS (1, "{grad_clip: %s}"), clip);

  step_run_open (&run, yaml, NULL);
  fake_run_go (&run);
  memcpy (w, run.fake.w, sizeof run.fake.w);
  g_autoptr (GPtrArray) lines = step_run_lines (run.dir);
  g_assert_cmpuint (lines->len, ==, 1);
  fake_run_remove (run.dir);
  fake_run_close (&run);
  return g_strdup (g_ptr_array_index (lines, 0));
}

static void
test_clip_norm (void)
{
  static const struct
  {
    const char *type;
    double p;
  } norms[] = { { "2", 2 }, { "1", 1 }, { "3.5", 3.5 }, { "inf", INFINITY }, { ".inf", INFINITY } };
  static const float zero[FAKE_N];
  double gradient[FAKE_N];

  step_run_gradient (0, zero, gradient);
  for (gsize i = 0; i < G_N_ELEMENTS (norms); i++)
    {
      float w[FAKE_N];
      double norm = 0;
      for (int k = 0; k < FAKE_N; k++)
        norm =
            isinf (norms[i].p) ? MAX (norm, fabs (gradient[k])) : norm + pow (fabs (gradient[k]), norms[i].p);
      if (!isinf (norms[i].p))
        norm = pow (norm, 1 / norms[i].p);
      g_autofree char *clip = g_strdup_printf ("{max_norm: 0.5, norm_type: %s}", norms[i].type);
      g_autofree char *line = clip_once (clip, w);
      /* 9 digits of the log: half of the last one */
      g_assert_cmpfloat_with_epsilon (step_run_value (line, "grad_norm"), norm, 5e-9 * norm);
      for (int k = 0; k < FAKE_N; k++)
        g_assert_cmpfloat_with_epsilon ((double) w[k], -0.05 * gradient[k] * 0.5 / (norm + 1e-6), NEAR);
    }
}

static void
test_clip_value (void)
{
  static const float zero[FAKE_N];
  double gradient[FAKE_N];
  float w[FAKE_N];

  step_run_gradient (0, zero, gradient);
  g_autofree char *line = clip_once ("{type: value, clip_value: 1.5}", w);
  g_assert_true (isnan (step_run_value (line, "grad_norm")));
  for (int k = 0; k < FAKE_N; k++)
    g_assert_cmpfloat_with_epsilon ((double) w[k], -0.05 * CLAMP (gradient[k], -1.5, 1.5), NEAR);
}

/* ---- Means of windows ---- */

/* The weights after one window from zero: what each iteration's gradient counts is @weights. */
static void
assert_window (const char *yaml, int n, const double *weights)
{
  static const float zero[FAKE_N];
  double expected[FAKE_N] = { 0 };
  float w[FAKE_N];

  for (int k = 0; k < n; k++)
    {
      double gradient[FAKE_N];
      step_run_gradient (k, zero, gradient);
      for (int i = 0; i < FAKE_N; i++)
        expected[i] -= 0.05 * weights[k] * gradient[i];
    }
  step_run_weights (yaml, w);
  for (int i = 0; i < FAKE_N; i++)
    g_assert_cmpfloat_with_epsilon ((double) w[i], expected[i], NEAR);
}

/* normalize: positives is what one batch of all the images would give: the sum of their gradients over the
 * sum of their positives. */
static void
test_normalize (void)
{
  double equal[4], images[4], positives[4], n_images = 0, n_positives = 0;

  for (int k = 0; k < 4; k++)
    {
      n_images += images[k] = step_run_images (k);
      n_positives += positives[k] = (double) step_run_positives (k);
    }
  for (int k = 0; k < 4; k++)
    {
      equal[k] = 0.25;
      images[k] /= n_images;
      positives[k] /= n_positives;
    }
  assert_window (ITERS (4, CUMULATIVE (4, "")), 4, equal);
  assert_window (ITERS (4, CUMULATIVE (4, ", normalize: samples")), 4, images);
  assert_window (ITERS (4, CUMULATIVE (4, ", normalize: positives")), 4, positives);
  assert_window (ITERS (4, CUMULATIVE (4, ", normalize: positives, grad_clip: {max_norm: 1e9}")), 4,
                 positives);

  /* A window of 4 that ends the run as one of 8: half of it. */
  for (int k = 0; k < 4; k++)
    {
      equal[k] /= 2;
      positives[k] /= 2;
    }
  assert_window (ITERS (4, CUMULATIVE (8, ", tail: scale")), 4, equal);
  assert_window (ITERS (4, CUMULATIVE (8, ", tail: scale, normalize: positives")), 4, positives);
}

/* Powers of two do not round: the weights are those without a scale, bit for bit. */
static void
test_scale_cancels (void)
{
  static const char *const pairs[][2] = {
    { STEP_RUN "optimizer_config: {grad_clip: {max_norm: 1}}\n",
      STEP_RUN "optimizer_config: {type: Fp16OptimizerHook, grad_clip: {max_norm: 1}}\n" },
    { STEP_RUN "optimizer_config: " CUMULATIVE (4, "") "\n",
      STEP_RUN "optimizer_config: {type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, "
               "loss_scale: {init_scale: 16, growth_interval: 1}}\n" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (pairs); i++)
    {
      float plain[FAKE_N], scaled[FAKE_N];
      step_run_weights (pairs[i][0], plain);
      step_run_weights (pairs[i][1], scaled);
      /* the norm is a float's sum in another binade: no bit differs */
      g_assert_cmpmem (scaled, sizeof scaled, plain, sizeof plain);
    }
}

/* ---- Overflows ---- */

/* In whichever micro-batch of the second window: one skip, one halving, the weights as if that window had not
 * been. */
static void
test_overflow (void)
{
  for (int at = 3; at < 6; at++)
    {
      FakeRun run;
      const char *yaml = ITERS (9, "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 3, "
                                   "loss_scale: dynamic, grad_clip: {max_norm: 1e9}}");
      float before[FAKE_N];
      step_run_weights (ITERS (3, CUMULATIVE (3, "")), before);
      step_run_overflows = (guint64) 1 << at;
      step_run_open (&run, yaml, NULL);
      step_run_count ("*");
      fake_run_go (&run);
      g_assert_cmpint (rn_runner_opt_step (run.runner), ==, 2);
      g_assert_cmpuint (step_run_count ("iteration 6: *skipped*65536 to 32768"), ==, 1);

      g_autoptr (GPtrArray) lines = step_run_lines (run.dir);
      for (guint i = 0; i < 9; i++)
        {
          const char *line = g_ptr_array_index (lines, i);
          g_assert_cmpfloat (step_run_value (line, "loss_scale"), ==, i < 6 ? 65536 : 32768);
          g_assert_cmpfloat (step_run_value (line, "skipped"), ==, i < 5 ? 0 : 1);
          g_assert_cmpfloat (step_run_value (line, "micro_batches"), ==, i % 3 + 1);
          g_assert_cmpfloat (step_run_value (line, "opt_step"), ==, i < 2 ? 0 : i < 8 ? 1 : 2);
          g_assert_true (isnan (step_run_value (line, "grad_norm")) == (i != 2 && i != 8));
        }
      /* The third window begins with the weights of the first. */
      for (int k = 0; k < FAKE_N; k++)
        {
          double sum = 0;
          for (gint64 i = 6; i < 9; i++)
            {
              double gradient[FAKE_N];
              step_run_gradient (i, before, gradient);
              sum += gradient[k] / 3;
            }
          g_assert_cmpfloat_with_epsilon ((double) run.fake.w[k], (double) before[k] - 0.05 * sum, NEAR);
        }
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
  step_run_overflows = 0;
}

/* A scale that stays: warned of at the first of a row; the row may be as long as max_skips. */
static void
test_static_overflow (void)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;

  step_run_overflows = 3 | 3 << 3;
  step_run_open (&run, ITERS (8, "{type: Fp16OptimizerHook, loss_scale: 512, max_skips: 3}"), NULL);
  step_run_count ("*");
  fake_run_go (&run);
  g_assert_cmpint (rn_runner_opt_step (run.runner), ==, 4);
  g_assert_cmpuint (step_run_count ("iteration *skipped*stays 512*loss_scale: dynamic*"), ==, 2);
  fake_run_remove (run.dir);
  fake_run_close (&run);

  step_run_overflows = 7 << 2;
  step_run_open (&run, ITERS (8, "{type: Fp16OptimizerHook, loss_scale: 512, max_skips: 3}"), NULL);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_cmpint (rn_runner_iter (run.runner), ==, 4);
  g_assert_true (g_pattern_match_simple ("Fp16OptimizerHook: after_train_iter: *3 steps in a row, to "
                                         "iteration 5*512*max_skips*loss_scale: dynamic*",
                                         error->message));
  step_run_overflows = 0;
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- before_step ---- */

static double seen[FAKE_N]; /* the gradient, as a hook sees it */
static guint n_seen;

static gboolean
double_gradient (RnHook *hook, RnRunner *runner, GError **error)
{
  float values[FAKE_N];

  if (!rn_runner_read_grad (runner, 0, values, error))
    return FALSE;
  for (int i = 0; i < FAKE_N; i++)
    {
      seen[i] = (double) values[i];
      values[i] *= 2;
    }
  n_seen++;
  return rn_runner_write_grad (runner, 0, values, error);
}

typedef struct
{
  RnHook hook;
} DoubleHook;

RN_HOOK_DEFINE (doubler, DoubleHook, .name = "DoubleHook", .summary = "for tests",
                .needs = RN_NEEDS_GRADIENTS, .before_step = double_gradient);

/* A hook sees the mean gradient, without loss scale, once a step; clipping and step see what it wrote. */
static void
test_before_step (void)
{
  static const char *const configs[] = {
    "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: 512, grad_clip: {max_norm: "
    "0.5}}",
    "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: 512, normalize: positives, "
    "grad_clip: {max_norm: 0.5}}",
  };
  static const float zero[FAKE_N];

  for (gsize c = 0; c < G_N_ELEMENTS (configs); c++)
    {
      FakeRun run;
      double mean[FAKE_N] = { 0 }, norm = 0, total = 0;
      g_autofree char *yaml =
          g_strdup_printf (ITERS (4, "%s") "custom_hooks: [{type: DoubleHook}]\n", configs[c]);
      for (gint64 k = 0; k < 4; k++)
        total += c == 0 ? 1 : (double) step_run_positives (k);
      for (gint64 k = 0; k < 4; k++)
        {
          double gradient[FAKE_N];
          step_run_gradient (k, zero, gradient);
          for (int i = 0; i < FAKE_N; i++)
            mean[i] += gradient[i] * (c == 0 ? 1 : (double) step_run_positives (k)) / total;
        }
      for (int i = 0; i < FAKE_N; i++)
        norm += 4 * mean[i] * mean[i];
      norm = sqrt (norm);

      n_seen = 0;
      step_run_open (&run, yaml, NULL);
      fake_run_go (&run);
      g_assert_cmpuint (n_seen, ==, 1);
      g_autoptr (GPtrArray) lines = step_run_lines (run.dir);
      g_assert_cmpfloat_with_epsilon (step_run_value (g_ptr_array_index (lines, 3), "grad_norm"), norm,
                                      16 * 0x1p-24 * norm);
      for (int i = 0; i < FAKE_N; i++)
        {
          g_assert_cmpfloat_with_epsilon (seen[i], mean[i], NEAR);
          g_assert_cmpfloat_with_epsilon ((double) run.fake.w[i], -0.05 * 2 * mean[i] * 0.5 / norm, NEAR);
        }
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* ---- What is said at the start ---- */

static char **
some_unreached (RnTask *task)
{
  static const char *const names[] = { "neck.a", "neck.b", NULL };
  return g_strdupv ((char **) names);
}

static guint
count_at_start (const char *yaml, gboolean is_unreached, gboolean has_norm, const char *pattern)
{
  FakeRun run;

  step_run_open (&run, yaml, NULL);
  if (is_unreached)
    run.fake.vtbl.unreached_params = some_unreached;
  run.fake.task.has_live_batch_norm = has_norm;
  step_run_count ("*");
  fake_run_go (&run);
  fake_run_remove (run.dir);
  fake_run_close (&run);
  return step_run_count (pattern);
}

static void
test_notices (void)
{
  static const char *const types[] = { "OptimizerHook", "GradientCumulativeOptimizerHook",
                                       "Fp16OptimizerHook", "GradientCumulativeFp16OptimizerHook" };

  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autofree char *yaml =
          g_strdup_printf (ITERS (3, "{type: %s, detect_anomalous_params: true}"), types[i]);
      g_assert_cmpuint (count_at_start (yaml, TRUE, FALSE, "detect_anomalous_params*neck.?*"), ==, 2);
      g_assert_cmpuint (count_at_start (yaml, FALSE, FALSE, "detect_anomalous_params*all*"), ==, 1);
    }
  g_assert_cmpuint (count_at_start (ITERS (3, "{}"), TRUE, FALSE, "detect*"), ==, 0);

  const char *four = ITERS (11, CUMULATIVE (4, ""));
  g_assert_cmpuint (count_at_start (four, FALSE, TRUE, "*batch norms in training mode*"), ==, 1);
  g_assert_cmpuint (count_at_start (four, FALSE, FALSE, "*batch norms*"), ==, 0);
  g_assert_cmpuint (count_at_start (ITERS (3, CUMULATIVE (1, "")), FALSE, TRUE, "*batch norms*"), ==, 0);
  g_assert_cmpuint (
      count_at_start (four, FALSE, FALSE, "*last window of the run has 3 iterations, not 4*mean*"), ==, 1);
  g_assert_cmpuint (count_at_start (ITERS (12, CUMULATIVE (4, "")), FALSE, FALSE, "*last window*"), ==, 0);
  g_assert_cmpuint (count_at_start (ITERS (11, CUMULATIVE (4, ", flush_at_epoch_end: true, tail: drop")),
                                    FALSE, FALSE, "*last window of each epoch has 1 iterations*no step*"),
                    ==, 1);
}

/* ---- Keys ---- */

/* schedule_by: step counts the steps that there will be. */
static void
test_schedule (void)
{
  static const struct
  {
    const char *yaml;
    gint64 total, now;
  } cases[] = {
    { ITERS (11, CUMULATIVE (4, "")), 11, 11 },
    { ITERS (11, CUMULATIVE (4, ", schedule_by: step")), 3, 3 },
    { ITERS (11, CUMULATIVE (4, ", schedule_by: step, tail: drop")), 2, 2 },
    { ITERS (11, CUMULATIVE (4, ", schedule_by: step, flush_at_epoch_end: true")), 5, 5 },
    { ITERS (11, "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, schedule_by: step}"), 3,
      2 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      FakeRun run;
      step_run_overflows = strstr (cases[i].yaml, "Fp16") != NULL ? 1 << 5 : 0;
      step_run_open (&run, cases[i].yaml, NULL);
      fake_run_go (&run);
      g_assert_cmpint (rn_runner_schedule_total (run.runner), ==, cases[i].total);
      g_assert_cmpint (rn_runner_schedule_now (run.runner), ==, cases[i].now);
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
  step_run_overflows = 0;
}

/* A learning rate that halves every second step, in windows of four iterations. */
static void
test_schedule_lr (void)
{
  FakeRun run;

  step_run_open (
      &run,
      ITERS (20, CUMULATIVE (4, ", schedule_by: step")) "lr_config: {policy: step, step: 2, gamma: "
                                                        "0.5, by_epoch: false}\n",
      NULL);
  fake_run_go (&run);
  g_autoptr (GPtrArray) lines = step_run_lines (run.dir);
  for (guint i = 0; i < 20; i++)
    g_assert_cmpfloat_with_epsilon (step_run_value (g_ptr_array_index (lines, i), "lr"),
                                    i < 8    ? 0.05
                                    : i < 16 ? 0.025
                                             : 0.0125,
                                    1e-10);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_refused (void)
{
  static const struct
  {
    const char *config, *pattern;
  } cases[] = {
    { "{grad_clip: {}}", "*grad_clip*type: norm needs max_norm" },
    { "{grad_clip: {max_norm: 0}}", "*max_norm*between*" },
    { "{grad_clip: {max_norm: 3, norm_type: 0.5}}", "*norm_type*from 1*" },
    { "{grad_clip: {max_norm: 3, norm_type: -.inf}}", "*norm_type*from 1*" },
    { "{grad_clip: {max_norm: 3, norm_type: two}}", "*norm_type*from 1*" },
    { "{grad_clip: {max_norm: 3, clip_value: 3}}", "*clip_value*type: norm takes max_norm*" },
    { "{grad_clip: {type: value}}", "*type: value needs clip_value" },
    { "{grad_clip: {type: value, max_norm: 3}}", "*max_norm*type: value takes clip_value*" },
    { "{grad_clip: {type: values, clip_value: 3}}", "*type*norm*value*" },
    { "{loss_scale: 512}", "*loss_scale*" },
    { CUMULATIVE (0, ""), "*cumulative_iters*between 1*" },
    { CUMULATIVE (4, ", tail: keep"), "*tail*average*scale*drop*" },
    { CUMULATIVE (16, ", tail: drop"), "*tail*no step*tail: average" },
    { CUMULATIVE (4, ", normalise: positives"), "*normalise*normalize*" },
    { CUMULATIVE (4, ", compat: mmcv-1.7, tail: scale"), "*tail: *MMCV 1.7*" },
    { CUMULATIVE (4, ", compat: mmcv-1.7, normalize: samples"), "*normalize: *MMCV 1.7*" },
    { CUMULATIVE (4, ", compat: mmcv-1.7, flush_at_epoch_end: true"), "*flush_at_epoch_end: *MMCV 1.7*" },
    { CUMULATIVE (4, ", compat: mmcv-1.7, save_pending: true"), "*save_pending: *MMCV 1.7*" },
    { "{type: Fp16OptimizerHook, cumulative_iters: 4}", "*cumulative_iters*" },
    { "{type: Fp16OptimizerHook, loss_scale: dynamik}", "*loss_scale*dynamic*" },
    { "{type: Fp16OptimizerHook, loss_scale: 512, max_scale: 1024}", "*max_scale*dynamic*" },
    { "{type: Fp16OptimizerHook, max_skips: 0}", "*max_skips*" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      FakeRun run;
      g_autoptr (GError) error = NULL;
      g_autofree char *yaml = g_strdup_printf (ITERS (11, "%s"), cases[i].config);
      g_assert_false (fake_run_try (&run, yaml, STEP_EPOCH, &error));
      if (!g_pattern_match_simple (cases[i].pattern, error->message)
          || !g_str_has_prefix (error->message, "test.yaml:4:"))
        g_error ("\"%s\" does not match \"%s\"", error->message, cases[i].pattern);
      g_assert_cmpint (rn_error_exit_code (error), ==, 2);
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* Keys that MMCV's files have. */
static void
test_accepted (void)
{
  static const char *const configs[] = {
    "{type: Fp16OptimizerHook, loss_scale: 512., coalesce: true, bucket_size_mb: -1, distributed: false}",
    "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: {init_scale: 512., mode: "
    "dynamic}, grad_clip: null}",
    CUMULATIVE (4, ", grad_clip: {max_norm: 35, norm_type: 2}, compat: null"),
    CUMULATIVE (4, ", compat: mmcv-1.7, save_pending: false"),
  };

  for (gsize i = 0; i < G_N_ELEMENTS (configs); i++)
    {
      FakeRun run;
      g_autoptr (GError) error = NULL;
      g_autofree char *yaml = g_strdup_printf (ITERS (11, "%s"), configs[i]);
      fake_run_try (&run, yaml, STEP_EPOCH, &error);
      g_assert_no_error (error);
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  step_run_collect ();
  rn_hooks_register ();
  rn_hook_register (&rn_hook_desc_doubler, NULL);
  g_test_add_func ("/hooks/optimizer/order", test_order);
  g_test_add_func ("/hooks/optimizer/clip-norm", test_clip_norm);
  g_test_add_func ("/hooks/optimizer/clip-value", test_clip_value);
  g_test_add_func ("/hooks/optimizer/normalize", test_normalize);
  g_test_add_func ("/hooks/optimizer/scale-cancels", test_scale_cancels);
  g_test_add_func ("/hooks/optimizer/overflow", test_overflow);
  g_test_add_func ("/hooks/optimizer/static-overflow", test_static_overflow);
  g_test_add_func ("/hooks/optimizer/before-step", test_before_step);
  g_test_add_func ("/hooks/optimizer/notices", test_notices);
  g_test_add_func ("/hooks/optimizer/schedule", test_schedule);
  g_test_add_func ("/hooks/optimizer/schedule-lr", test_schedule_lr);
  g_test_add_func ("/hooks/optimizer/refused", test_refused);
  g_test_add_func ("/hooks/optimizer/accepted", test_accepted);
  return g_test_run ();
}
