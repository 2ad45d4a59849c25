/* Optimizer hooks in runs that are stopped and taken up. */
#include "config.h"

#include "tests/hooks/step-run.h"

#include "hooks/optimizer-hook.h"
#include "runner/record.h"
#include "runner/safetensors.h"

#include <string.h>

#define SAVE_ALL "checkpoint_config: {interval: 1, by_epoch: false}\n"
#define LR "lr_config: {policy: step, step: 2, gamma: 0.5, by_epoch: false}\n"

typedef struct
{
  const char *config;   /* optimizer_config */
  guint64 overflows;    /* of step_run_overflows */
  const char *n_micros; /* micro-gradients in the checkpoint of iteration 0, 1, ... 10 */
} Course;

static const Course courses[] = {
  { "{grad_clip: {max_norm: 3}}", 0, "00000000000" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4}", 0, "01230123012" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4, tail: scale, grad_clip: {max_norm: 1, "
    "norm_type: inf}}",
    0, "01230123012" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4, tail: drop, grad_clip: {type: value, "
    "clip_value: 1}}",
    0, "01230123000" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 3, flush_at_epoch_end: true}", 0,
    "01201012010" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 3, flush_at_epoch_end: true, tail: drop}", 0,
    "01200012000" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4, normalize: positives}", 0, "01230123012" },
  { "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4, normalize: samples, tail: scale, "
    "schedule_by: step}",
    0, "01230123012" },
  { "{type: Fp16OptimizerHook, loss_scale: 512}", 1 << 4, "00000000000" },
  { "{type: Fp16OptimizerHook, loss_scale: {init_scale: 64, growth_interval: 2}, grad_clip: {max_norm: 3}}",
    1 << 4 | 1 << 5, "00000000000" },
  { "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 3, loss_scale: {init_scale: 64, "
    "growth_interval: 2}, grad_clip: {max_norm: 3, norm_type: 1}}",
    1 << 4, "01201201201" },
  { "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 2, loss_scale: {init_scale: 64, "
    "scale_window: 3, scale_factor: 4}, normalize: positives, schedule_by: step}",
    1 << 5 | 1 << 6, "01010101010" },
};

static gint64
count_pending (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  gint64 n_micro = 0;

  g_assert_no_error (error);
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, "hook/");
  for (guint i = 0; i < keys->len; i++)
    {
      g_autoptr (RnRecord) state =
          rn_record_parse (rn_safetensors_metadata (file, g_ptr_array_index (keys, i)), &error);
      g_assert_no_error (error);
      n_micro += rn_record_int (state, "micro_batches", 0);
    }
  g_assert_true ((rn_safetensors_find (file, "pending/w") != NULL) == (n_micro > 0));
  return n_micro;
}

/* From the checkpoint of every iteration to the end: the same bits, the same lines, and nothing to say.
 * Whether results of the one or the other run come late makes no difference. */
static void
check_same_bits (const Course *course, gboolean is_late, gboolean is_resumed_late)
{
  g_autofree char *yaml = g_strconcat (STEP_RUN LR "optimizer_config: ", course->config, "\n", NULL);
  g_autofree char *saving = g_strconcat (yaml, SAVE_ALL, NULL);
  FakeRun straight;

  step_run_overflows = course->overflows;
  step_run_is_late = is_late;
  step_run_open (&straight, saving, NULL);
  fake_run_go (&straight);
  gint64 n = rn_runner_iter (straight.runner);
  g_assert_cmpint (n, ==, 11);
  g_autoptr (GPtrArray) expected = step_run_lines (straight.dir);
  g_assert_cmpuint (expected->len, ==, n);

  step_run_is_late = is_resumed_late;
  for (gint64 s = 1; s <= n; s++)
    {
      FakeRun resumed;
      g_autofree char *name = g_strdup_printf ("iter_%d.safetensors", (int) s);
      g_autofree char *path = g_build_filename (straight.dir, name, NULL);
      if (s < n)
        g_assert_cmpint (count_pending (path), ==, course->n_micros[s] - '0');
      step_run_open (&resumed, yaml, NULL);
      fake_run_resume (&resumed, path);
      fake_run_go (&resumed);
      g_assert_cmpmem (resumed.fake.w, sizeof resumed.fake.w, straight.fake.w, sizeof straight.fake.w);
      g_assert_cmpmem (resumed.fake.momentum, sizeof resumed.fake.momentum, straight.fake.momentum,
                       sizeof straight.fake.momentum);
      g_assert_cmpint (rn_runner_opt_step (resumed.runner), ==, rn_runner_opt_step (straight.runner));
      if (s < n)
        {
          g_autoptr (GPtrArray) lines = step_run_lines (resumed.dir);
          g_assert_cmpuint (lines->len, ==, n - s);
          for (guint i = 0; i < lines->len; i++)
            g_assert_cmpstr (g_ptr_array_index (lines, i), ==, g_ptr_array_index (expected, (guint) s + i));
        }
      g_assert_cmpuint (step_run_count ("resume*"), ==, 0);
      fake_run_remove (resumed.dir);
      fake_run_close (&resumed);
    }
  fake_run_remove (straight.dir);
  fake_run_close (&straight);
  step_run_overflows = 0;
  step_run_is_late = FALSE;
}

static void
test_same_bits (gconstpointer course)
{
  check_same_bits (course, FALSE, FALSE);
  check_same_bits (course, FALSE, TRUE);
  check_same_bits (course, TRUE, FALSE);
}

/* ---- Gradients that are lost ---- */

#define CUMULATIVE(rest) "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4" rest "}"
#define SCALED(scale, rest) \
  "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: " scale rest "}"

/* Runs @was with a checkpoint after @s iterations and @now from there. The weights of that checkpoint go to
 * @saved, those of the end to @w. */
static void
switch_config (const char *was, const char *now, gint64 s, float *saved, FakeRun *resumed)
{
  FakeRun first;
  g_autofree char *name = g_strdup_printf ("iter_%d.safetensors", (int) s);

  step_run_open (&first, was, NULL);
  fake_run_go (&first);
  g_autofree char *path = g_build_filename (first.dir, name, NULL);
  step_run_open (resumed, now, NULL);
  step_run_count ("*");
  fake_run_resume (resumed, path);
  memcpy (saved, resumed->fake.w, sizeof resumed->fake.w);
  fake_run_go (resumed);
  fake_run_remove (first.dir);
  fake_run_close (&first);
}

/* The step of iterations [@begin, @end) from the weights @w without momentum: their mean. */
static void
step_by_mean (const float *w, gint64 begin, gint64 end, double *expected)
{
  for (int i = 0; i < FAKE_N; i++)
    expected[i] = 0;
  for (gint64 k = begin; k < end; k++)
    {
      double gradient[FAKE_N];
      step_run_gradient (k, w, gradient);
      for (int i = 0; i < FAKE_N; i++)
        expected[i] += gradient[i] / (double) (end - begin);
    }
}

typedef struct
{
  const char *was, *now; /* optimizer_config */
  const char *message;
} Loss;

#define ONCE "runner: {type: IterBasedRunner, max_iters: 8}\noptimizer: {type: SGD, lr: 0.05}\n" SAVE_ALL

static const Loss losses[] = {
  { CUMULATIVE (", save_pending: false"), CUMULATIVE (""), "resume: 2 micro-gradients*does not have them" },
  { CUMULATIVE (""), "{type: GradientCumulativeOptimizerHook, cumulative_iters: 8}",
    "resume: 2 micro-gradients*cumulative_iters is 8 and was 4" },
  { CUMULATIVE (""), CUMULATIVE (", normalize: positives"), "resume: 2 micro-gradients*normalize*" },
  { SCALED ("512", ""), SCALED ("256", ""), "resume: 2 micro-gradients*loss scale is 256 and was 512" },
  { SCALED ("{init_scale: 64}", ""), SCALED ("{init_scale: 8}", ", reset_scale: true"),
    "resume: 2 micro-gradients*loss scale is 8 and was 64" },
  { CUMULATIVE (""), SCALED ("512", ""), "resume: 2 micro-gradients*does not have them" },
  { CUMULATIVE (""), "{type: OptimizerHook}", "resume: *another optimizer hook*" },
};

/* The window of iterations 5 to 8 is cut to 7 to 8, or to what the new one has, and says so. */
static void
test_lost (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (losses); i++)
    {
      FakeRun resumed;
      float saved[FAKE_N];
      double mean[FAKE_N];
      g_autofree char *was = g_strconcat (ONCE "optimizer_config: ", losses[i].was, "\n", NULL);
      g_autofree char *now = g_strconcat (ONCE "optimizer_config: ", losses[i].now, "\n", NULL);
      switch_config (was, now, 6, saved, &resumed);
      g_assert_cmpuint (step_run_count (losses[i].message), ==, 1);
      if (strstr (losses[i].now, "normalize") == NULL && strstr (losses[i].now, "type: Opt") == NULL)
        {
          step_by_mean (saved, 6, 8, mean);
          /* floats: the sum of two and a step, each rounded once: 4 roundings of numbers below 8 */
          for (int k = 0; k < FAKE_N; k++)
            g_assert_cmpfloat_with_epsilon ((double) resumed.fake.w[k], (double) saved[k] - 0.05 * mean[k],
                                            4 * 8 * 0x1p-24);
        }
      fake_run_remove (resumed.dir);
      fake_run_close (&resumed);
    }
}

/* From a hook that did a step in each iteration nothing is lost, but the window has fewer iterations. */
static void
test_from_plain (void)
{
  FakeRun resumed;
  float saved[FAKE_N];
  double mean[FAKE_N];

  switch_config (ONCE "optimizer_config: {}\n", ONCE "optimizer_config: " CUMULATIVE ("") "\n", 6, saved,
                 &resumed);
  g_assert_cmpuint (step_run_count ("resume: *micro-gradients*"), ==, 0);
  step_by_mean (saved, 6, 8, mean);
  for (int k = 0; k < FAKE_N; k++)
    g_assert_cmpfloat_with_epsilon ((double) resumed.fake.w[k], (double) saved[k] - 0.05 * mean[k],
                                    4 * 8 * 0x1p-24);
  fake_run_remove (resumed.dir);
  fake_run_close (&resumed);
}

/* A window that was cut once and saved again has its own factor, and is not cut twice. */
static void
test_cut_and_saved (void)
{
  FakeRun first, second, third;
  float saved[FAKE_N];

  const char *yaml = ONCE "optimizer_config: " CUMULATIVE ("") "\n";
  switch_config (ONCE "optimizer_config: " CUMULATIVE (", save_pending: false") "\n", yaml, 5, saved, &first);
  g_assert_cmpuint (step_run_count ("resume: 1 micro-gradients*"), ==, 1);
  g_autofree char *path = g_build_filename (first.dir, "iter_6.safetensors", NULL);
  g_assert_cmpint (count_pending (path), ==, 1);
  step_run_open (&second, yaml, NULL);
  fake_run_resume (&second, path);
  fake_run_go (&second);
  g_assert_cmpuint (step_run_count ("resume*"), ==, 0);
  g_assert_cmpmem (second.fake.w, sizeof second.fake.w, first.fake.w, sizeof first.fake.w);

  /* A window that ends elsewhere now. */
  g_autofree char *longer = g_strconcat (
      "runner: {type: IterBasedRunner, max_iters: 7}\noptimizer: {type: SGD, lr: 0.05}\noptimizer_config: ",
      CUMULATIVE (""), "\n", NULL);
  step_run_open (&third, longer, NULL);
  fake_run_resume (&third, path);
  fake_run_go (&third);
  g_assert_cmpuint (step_run_count ("resume: 1 micro-gradients*window has changed*"), ==, 1);
  fake_run_remove (first.dir);
  fake_run_remove (second.dir);
  fake_run_remove (third.dir);
  fake_run_close (&first);
  fake_run_close (&second);
  fake_run_close (&third);
}

/* MMCV 1.7 after a resume inside a window: two of four micro-batches, divided by four. */
static void
test_compat (void)
{
  FakeRun resumed;
  float saved[FAKE_N];
  double mean[FAKE_N];
  const char *yaml = ONCE "optimizer_config: " CUMULATIVE (", compat: mmcv-1.7") "\n";

  switch_config (yaml, yaml, 6, saved, &resumed);
  g_assert_cmpuint (step_run_count ("resume: as MMCV 1.7*7 to 8*weight 0.5,*"), ==, 1);
  step_by_mean (saved, 6, 8, mean);
  for (int i = 0; i < FAKE_N; i++)
    g_assert_cmpfloat_with_epsilon ((double) resumed.fake.w[i], (double) saved[i] - 0.05 * mean[i] / 2,
                                    4 * 8 * 0x1p-24);
  fake_run_remove (resumed.dir);
  fake_run_close (&resumed);
}

/* ---- Damaged state ---- */

static void
test_damaged (void)
{
  static const char *const states[] = {
    "{\"micro_batches\": -1}",
    "{\"micro_batches\": 2}",
    "{\"micro_batches\": 2, \"window_begin\": 4, \"cumulative_iters\": 2, \"normalize\": 0, \"factor\": 4, "
    "\"total\": 0.0, \"loss_scale\": 1.0}",
    "{\"micro_batches\": 2, \"window_begin\": 9223372036854775807, \"cumulative_iters\": 4, \"normalize\": "
    "0, "
    "\"factor\": 4, \"total\": 0.0, \"loss_scale\": 1.0}",
    "{\"micro_batches\": 2, \"window_begin\": 4, \"cumulative_iters\": 4, \"normalize\": 0, \"factor\": 0, "
    "\"total\": 0.0, \"loss_scale\": 1.0}",
    "{\"micro_batches\": 2, \"window_begin\": 4, \"cumulative_iters\": 4, \"normalize\": 2, \"factor\": 1, "
    "\"total\": 0.0, \"loss_scale\": 1.0}",
    "{\"micro_batches\": 2, \"window_begin\": 4, \"cumulative_iters\": 4, \"normalize\": 0, \"factor\": 4, "
    "\"total\": 0.0, \"loss_scale\": -1.0}",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (states); i++)
    {
      g_autoptr (GError) error = NULL;
      RnOptimizerHook hook = { .accumulation.cumulative_iters = 4 };
      g_autoptr (RnRecord) state = rn_record_parse (states[i], &error);
      g_assert_no_error (error);
      g_assert_false (rn_optimizer_hook_load_state (&hook.hook, state, &error));
      g_assert_nonnull (strstr (error->message, "damaged"));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  step_run_collect ();
  for (gsize i = 0; i < G_N_ELEMENTS (courses); i++)
    {
      g_autofree char *name = g_strdup_printf ("/hooks/optimizer-resume/same-bits/%u", (guint) i);
      g_test_add_data_func (name, &courses[i], test_same_bits);
    }
  g_test_add_func ("/hooks/optimizer-resume/lost", test_lost);
  g_test_add_func ("/hooks/optimizer-resume/from-plain", test_from_plain);
  g_test_add_func ("/hooks/optimizer-resume/cut-and-saved", test_cut_and_saved);
  g_test_add_func ("/hooks/optimizer-resume/compat", test_compat);
  g_test_add_func ("/hooks/optimizer-resume/damaged", test_damaged);
  return g_test_run ();
}
