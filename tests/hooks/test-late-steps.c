/*
 * test-late-steps.c: steps of which a device with queues has not yet said what became of them: when that is
 * waited for, and that nothing but this differs from steps whose outcome is known at once.
 */
#include "config.h"

#include "tests/hooks/step-run.h"

#include "runner/base/error.h"
#include "runner/hook-class.h"

#include <math.h>
#include <string.h>

#define SCALED \
  "{type: Fp16OptimizerHook, loss_scale: {init_scale: 64, growth_interval: 3}, grad_clip: {max_norm: 3}}"
#define SCALED_BY_4 "{type: Fp16OptimizerHook, loss_scale: 4}"
#define CLIPPED "{grad_clip: {max_norm: 3}}"

/* ---- a hook that asks ---- */

typedef struct
{
  RnHook hook;
  char *asks;
} Asker;

static const RnKeySpec asker_keys[] = {
  RN_KEY (Asker, asks, RN_KEY_STRING, "opt_step", "for what"),
  RN_KEY_END,
};

static void
ignore (const char *name, double mean, gpointer user_data)
{
}

static double answer; /* the last one */

static gboolean
ask (RnHook *hook, RnRunner *runner, GError **error)
{
  const char *what = ((const Asker *) hook)->asks;
  float values[FAKE_N];

  if (strcmp (what, "opt_step") == 0)
    answer = (double) rn_runner_opt_step (runner);
  else if (strcmp (what, "mean") == 0)
    answer = rn_runner_log_mean (runner, "grad_norm", 1);
  else if (strcmp (what, "log") == 0)
    rn_runner_foreach_log (runner, 1, ignore, NULL);
  else if (strcmp (what, "can_save") == 0)
    answer = rn_runner_can_save (runner);
  else if (strcmp (what, "stop") == 0)
    rn_runner_stop (runner);
  else if (strcmp (what, "write") == 0)
    rn_runner_log (runner, "mine", 1);
  else if (strcmp (what, "times") == 0)
    rn_runner_times (runner, &(RnRunTimes){ 0 });
  else if (strcmp (what, "loss") == 0)
    answer = rn_runner_loss (runner, "loss");
  else if (strcmp (what, "param") == 0)
    return rn_runner_read_param (runner, 0, values, error);
  else if (strcmp (what, "grad") == 0 && rn_runner_read_grad (runner, 0, values, error))
    answer = (double) values[1];
  else
    return strcmp (what, "grad") != 0;
  return TRUE;
}

RN_HOOK_DEFINE (asker, Asker, .name = "AskerHook", .summary = "for tests", .needs = RN_NEEDS_LOSS,
                .keys = asker_keys, .after_train_iter = ask);

static gboolean
see_step (RnHook *hook, RnRunner *runner, GError **error)
{
  return TRUE;
}

typedef struct
{
  RnHook hook;
} StepHook;

RN_HOOK_DEFINE (step, StepHook, .name = "StepHook", .summary = "for tests", .before_step = see_step);

/* ---- configurations ---- */

/* A run of 11 iterations, all of them logged, if @lines does not say another one. (transfer full) */
static char *
make_yaml (const char *config, const char *lines)
{
  return g_strconcat (
      strstr (lines, "runner:") == NULL ? "runner: {type: IterBasedRunner, max_iters: 11}\n" : "",
      strstr (lines, "log_config:") == NULL ? "log_config: {interval: 1, hooks: [{type: TextLoggerHook}]}\n"
                                            : "",
      "optimizer: {type: SGD, lr: 0.05, momentum: 0.9}\noptimizer_config: ", config, "\n", lines, NULL);
}

#define NO_LOG "log_config: {interval: 100, hooks: []}\n"
#define ASKS(what) "custom_hooks: [{type: AskerHook, priority: LOW, asks: " what "}]\n"
#define SAVE(n) "checkpoint_config: {interval: " #n ", by_epoch: false}\n"

static void
open_run (FakeRun *run, const char *yaml, gboolean is_late)
{
  step_run_is_late = is_late;
  step_run_open (run, yaml, NULL);
  step_run_is_late = FALSE;
}

/* ---- where the wait is ---- */

static const RnBatch *(*true_next) (RnTask *task, RnTaskData data, GError **error);
static gboolean (*true_evaluate) (RnTask *task, const RnEvalOptions *options, RnEvaluation *result,
                                  GError **error);

static const RnBatch *
next (RnTask *task, RnTaskData data, GError **error)
{
  g_string_append (((FakeTask *) task)->trace, " next");
  return true_next (task, data, error);
}

static gboolean
evaluate (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  g_string_append (((FakeTask *) task)->trace, " evaluate");
  return true_evaluate (task, options, result, error);
}

/* What the task does in a run of @n iterations by @config and @lines, from the forward pass of the first on.
 */
static void
check_trace (int n, const char *config, const char *lines, const char *expected)
{
  static const double scores[] = { 0.5, 0.5, 0.5 };
  g_autofree char *rest =
      g_strdup_printf ("runner: {type: IterBasedRunner, max_iters: %d}\n" NO_LOG "%s", n, lines);
  g_autofree char *yaml = make_yaml (config, rest);
  g_autoptr (GString) trace = g_string_new (NULL);
  FakeRun run;

  open_run (&run, yaml, TRUE);
  true_next = run.fake.vtbl.next;
  true_evaluate = run.fake.vtbl.evaluate;
  run.fake.vtbl.next = next;
  run.fake.vtbl.evaluate = evaluate;
  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  run.fake.task.val_length = 1;
  run.fake.trace = trace;
  fake_run_go (&run);
  g_assert_true (g_str_has_prefix (trace->str, " next zero forward backward"));
  g_assert_cmpstr (trace->str + strlen (" next zero forward backward"), ==, expected);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

#define UPDATE_1 " norm update(1,first)"

/* Behind the next batch, and ahead of all that its iteration does. */
static void
test_place (void)
{
  check_trace (2, "{grad_clip: {max_norm: 1e9}}", "",
               UPDATE_1 " settle next outcome zero forward backward norm update(1) settle outcome");
  check_trace (2, SCALED_BY_4, "",
               " norm update(0.25,first) settle next outcome zero forward backward norm update(0.25) settle "
               "outcome");
  check_trace (3, "{type: GradientCumulativeOptimizerHook, cumulative_iters: 2, grad_clip: {max_norm: 1e9}}",
               "",
               " settle next forward backward" UPDATE_1
               " settle next outcome zero forward backward norm update(1) settle outcome");
  check_trace (2, "{grad_clip: null}", "",
               " update(1,first) settle next zero forward backward update(1) settle");
}

/* A pass ends ahead of the next batch, and its hooks may ask for anything. */
static void
test_end_of_pass (void)
{
  g_autoptr (GString) expected = g_string_new (UPDATE_1 " settle");

  for (int i = 1; i < STEP_EPOCH; i++)
    g_string_append (expected, " next outcome zero forward backward norm update(1) settle");
  g_string_append (expected, " outcome next zero forward backward norm update(1) settle outcome");
  check_trace (STEP_EPOCH + 1, "{grad_clip: {max_norm: 1e9}}", "", expected->str);
}

static void
test_asking (void)
{
  static const char *const knowing[] = { "mean", "log", "can_save", "grad" }, *const others[] = {
    "loss", "write", "times", "opt_step"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (knowing); i++)
    {
      g_autofree char *lines = g_strdup_printf (ASKS ("%s"), knowing[i]);
      check_trace (1, "{grad_clip: {max_norm: 1e9}}", lines, UPDATE_1 " settle outcome");
      check_trace (2, "{grad_clip: {max_norm: 1e9}}", lines,
                   UPDATE_1 " settle outcome next zero forward backward norm update(1) settle outcome");
      check_trace (2, "{grad_clip: null}", lines,
                   " update(1,first) settle next zero forward backward update(1) settle");
    }
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    {
      g_autofree char *lines = g_strdup_printf (ASKS ("%s"), others[i]);
      check_trace (2, "{grad_clip: {max_norm: 1e9}}", lines,
                   UPDATE_1 " settle next outcome zero forward backward norm update(1) settle outcome");
    }
  check_trace (2, "{grad_clip: {max_norm: 1e9}}", ASKS ("stop"), UPDATE_1 " settle outcome");
  /* It depends on the outcome where the step may be skipped, and was done in any case where it is clipped. */
  check_trace (2, SCALED_BY_4, ASKS ("opt_step"),
               " norm update(0.25,first) settle outcome next zero forward backward norm update(0.25) settle "
               "outcome");
}

/* A running mean of the weights has to know whether there was a step: when it is its turn, if that can be. */
static void
test_mean (void)
{
  static const struct
  {
    const char *config, *keys;
    gboolean waits[2]; /* in iterations 1 and 2 of three */
  } rows[] = { { SCALED_BY_4, "", { TRUE, TRUE } },
               { SCALED_BY_4, ", interval: 2", { FALSE, TRUE } },
               { SCALED_BY_4, ", begin_iter: 1", { FALSE, TRUE } },
               { "{grad_clip: {max_norm: 1e9}}", "", { FALSE, FALSE } } };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      g_autofree char *lines = g_strdup_printf ("custom_hooks: [{type: EMAHook%s}]\n", rows[i].keys);
      const char *multiplier = i < 3 ? "0.25" : "1";
      g_autoptr (GString) expected = g_string_new (NULL);

      g_string_printf (expected, " norm update(%s,first)", multiplier);
      for (int k = 0; k < 2; k++)
        g_string_append_printf (expected, " settle %s zero forward backward norm update(%s)",
                                rows[i].waits[k] ? "outcome next" : "next outcome", multiplier);
      g_string_append (expected, " settle outcome");
      check_trace (3, rows[i].config, lines, expected->str);
    }
}

/* What others make of the run in between. */
static void
test_stages (void)
{
  const char *const clipped = "{grad_clip: {max_norm: 1e9}}";

  check_trace (1, clipped, "checkpoint_config: {interval: 1, by_epoch: false}\n", UPDATE_1 " settle outcome");
  check_trace (2, clipped, "checkpoint_config: {interval: 1, by_epoch: false}\n",
               UPDATE_1 " settle outcome next zero forward backward norm update(1) settle outcome");
  check_trace (2, clipped, "evaluation: {interval: 1, by_epoch: false}\n",
               UPDATE_1 " settle outcome evaluate next zero forward backward norm update(1) settle outcome "
                        "evaluate");
  check_trace (1, clipped, "workflow: [[train, 1], [val, 1]]\n", UPDATE_1 " settle outcome next loss settle");
  /* before_step is not called for gradients that are not finite, so they are looked at first; the norm is not
   */
  check_trace (2, "{type: Fp16OptimizerHook, loss_scale: 64, grad_clip: {max_norm: 1e9}}",
               "custom_hooks: [{type: StepHook}]\n",
               " norm settle norm update(0.015625,first) next outcome zero forward backward norm settle norm "
               "update(0.015625) outcome");
  check_trace (1, SCALED_BY_4, "custom_hooks: [{type: StepHook}]\n", " norm settle update(0.25,first)");
}

/* ---- what comes of it ---- */

/* A run to its end or to its error. */
typedef struct
{
  GPtrArray *lines, *said; /* of char * */
  float w[FAKE_N], momentum[FAKE_N];
  gint64 opt_step;
  char *error, *files;
  GPtrArray *states; /* of char *: metadata of the checkpoints */
} Result;

static GPtrArray *said;

static void
collect (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  if (said != NULL && strstr (message, "\t") == NULL && strstr (message, "saved ") == NULL)
    g_ptr_array_add (said, g_strdup (message));
}

/* What a checkpoint says of the run, but for times and the folder. */
static void
read_states (const char *dir, const char *name, GPtrArray *states)
{
  static const char *const kinds[] = { "counters", "hook/", "log/", "rates" };
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);

  g_assert_no_error (error);
  for (gsize k = 0; k < G_N_ELEMENTS (kinds); k++)
    {
      g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, kinds[k]);
      for (guint i = 0; i < keys->len; i++)
        if (strstr (g_ptr_array_index (keys, i), "time") == NULL)
          g_ptr_array_add (states,
                           g_strdup_printf ("%s %s: %s", name, (const char *) g_ptr_array_index (keys, i),
                                            rn_safetensors_metadata (file, g_ptr_array_index (keys, i))));
    }
}

static void
run_once (const char *yaml, gboolean is_late, Result *result)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  said = g_ptr_array_new_with_free_func (g_free);
  open_run (&run, yaml, is_late);
  run.fake.task.val_length = 2;
  rn_runner_init (run.runner, &error);
  g_assert_no_error (error);
  if (!rn_runner_run (run.runner, &error))
    result->error = g_strdup (error->message);
  result->said = g_steal_pointer (&said);
  result->lines = fake_run_timeless_lines (run.dir);
  result->opt_step = rn_runner_opt_step (run.runner);
  memcpy (result->w, run.fake.w, sizeof result->w);
  memcpy (result->momentum, run.fake.momentum, sizeof result->momentum);
  result->files = fake_run_files (run.dir, ".safetensors");
  result->states = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) names = g_strsplit (result->files, " ", -1);
  for (char **name = names; *name != NULL; name++)
    read_states (run.dir, *name, result->states);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
result_clear (Result *result)
{
  g_ptr_array_unref (result->lines);
  g_ptr_array_unref (result->said);
  g_ptr_array_unref (result->states);
  g_free (result->error);
  g_free (result->files);
}

static void
assert_same_texts (const GPtrArray *a, const GPtrArray *b)
{
  for (guint i = 0; i < MIN (a->len, b->len); i++)
    g_assert_cmpstr (g_ptr_array_index (a, i), ==, g_ptr_array_index (b, i));
  g_assert_cmpuint (a->len, ==, b->len);
}

/* @n_states: at least so many values in checkpoints */
static void
check_same (const char *config, const char *lines, guint64 overflows, guint n_states)
{
  g_autofree char *yaml = make_yaml (config, lines);
  Result at_once = { 0 }, late = { 0 };

  step_run_overflows = overflows;
  run_once (yaml, FALSE, &at_once);
  run_once (yaml, TRUE, &late);
  step_run_overflows = 0;
  g_assert_cmpstr (late.error, ==, NULL);
  g_assert_cmpuint (at_once.lines->len, >=, 1);
  g_assert_cmpuint (at_once.states->len, >=, n_states);
  assert_same_texts (late.lines, at_once.lines);
  assert_same_texts (late.said, at_once.said);
  assert_same_texts (late.states, at_once.states);
  g_assert_cmpstr (late.files, ==, at_once.files);
  g_assert_cmpint (late.opt_step, ==, at_once.opt_step);
  g_assert_cmpmem (late.w, sizeof late.w, at_once.w, sizeof at_once.w);
  g_assert_cmpmem (late.momentum, sizeof late.momentum, at_once.momentum, sizeof at_once.momentum);
  result_clear (&at_once);
  result_clear (&late);
}

/* Log, messages, checkpoints; the first step or one of the others overflows, with a logger that looks at each
 * iteration, and with one that does not, so that an outcome is settled by the iteration behind it. */
static void
test_same (void)
{
  static const char *const configs[] = {
    CLIPPED,
    SCALED,
    "{type: Fp16OptimizerHook, loss_scale: dynamic}",
    "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 3, loss_scale: {init_scale: 64, "
    "growth_interval: 2}, grad_clip: {max_norm: 3, norm_type: 1}}",
    "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 2, loss_scale: {init_scale: 64, "
    "scale_window: 3, scale_factor: 4}, normalize: positives, schedule_by: step}",
  };
  static const guint64 overflows[] = { 0, 1, 1 << 4 | 1 << 5, 3 | 1 << 10 };
  static const char *const rates = "lr_config: {policy: step, step: 2, gamma: 0.5, by_epoch: false}\n";

  for (gsize c = 0; c < G_N_ELEMENTS (configs); c++)
    for (gsize o = 0; o < (c == 0 ? 1 : G_N_ELEMENTS (overflows)); o++)
      {
        g_autofree char *often = g_strconcat (rates, SAVE (1), NULL);
        g_autofree char *seldom =
            g_strconcat (rates, SAVE (5), "log_config: {interval: 4, hooks: [{type: TextLoggerHook}]}\n",
                         "workflow: [[train, 3], [val, 1]]\n", NULL);
        check_same (configs[c], often, overflows[o], 11 * 6);
        check_same (configs[c], rates, overflows[o], 0);
        check_same (configs[c], seldom, overflows[o], 2 * 6);
      }
}

/* A running mean of the weights takes the steps that were done, and a hook that ends the run has its
 * checkpoint. */
static void
test_others (void)
{
  check_same (SCALED, SAVE (4) "custom_hooks: [{type: EMAHook}]\n", 1 << 2, 12);
  check_same (SCALED, SAVE (1) "custom_hooks: [{type: EMAHook, interval: 3, begin_iter: 1}]\n", 1 << 2, 55);
  check_same (SCALED, "custom_hooks: [{type: AskerHook, asks: stop}]\n", 0, 5);
  check_same (SCALED, "custom_hooks: [{type: AskerHook, asks: stop}]\n", 1, 5);
  check_same (CLIPPED, "custom_hooks: [{type: StepHook}]\n" SAVE (5), 0, 10);
  check_same (SCALED, "custom_hooks: [{type: StepHook}]\n" SAVE (5), 1 << 2, 10);
}

/* Gradients of a step that was skipped are not shown, in the iteration of the step or ever. */
static void
test_gradients (void)
{
  for (int is_late = 0; is_late < 2; is_late++)
    {
      FakeRun run;
      g_autoptr (GError) error = NULL;

      g_autofree char *yaml = make_yaml (SCALED, ASKS ("grad"));
      open_run (&run, yaml, is_late);
      step_run_overflows = 1 << 1;
      g_assert_true (rn_runner_init (run.runner, &error));
      g_assert_false (rn_runner_run (run.runner, &error));
      g_assert_nonnull (
          strstr (error->message, "AskerHook: after_train_iter: gradients are there in before_step"));
      g_assert_cmpint (rn_runner_iter (run.runner), ==, 1);
      g_assert_true (isfinite (answer)); /* in the first one */
      step_run_overflows = 0;
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* ---- the end of it ---- */

/* The error is that of the iteration of the step, wherever it is noticed, and no checkpoint has come since.
 */
static void
check_max_skips (const char *lines, const char *files)
{
  g_autofree char *yaml = make_yaml ("{type: Fp16OptimizerHook, loss_scale: 512, max_skips: 3}", lines);
  Result at_once = { 0 }, late = { 0 };

  step_run_overflows = 7 << 2;
  run_once (yaml, FALSE, &at_once);
  run_once (yaml, TRUE, &late);
  step_run_overflows = 0;
  g_assert_nonnull (strstr (at_once.error,
                            "Fp16OptimizerHook: after_train_iter: gradients have overflowed in 3 "
                            "steps in a row, to iteration 5, with the loss scale 512"));
  g_assert_cmpstr (late.error, ==, at_once.error);
  assert_same_texts (late.said, at_once.said);
  g_assert_cmpstr (late.files, ==, files);
  g_assert_cmpstr (at_once.files, ==, files);
  g_assert_cmpint (late.opt_step, ==, at_once.opt_step);
  result_clear (&at_once);
  result_clear (&late);
}

static void
test_max_skips (void)
{
  check_max_skips ("", "");
  check_max_skips ("log_config: {interval: 100, hooks: [{type: TextLoggerHook}]}\n", "");
  check_max_skips (SAVE (1), "iter_1.safetensors iter_2.safetensors iter_3.safetensors iter_4.safetensors "
                             "latest.safetensors");
  check_max_skips (SAVE (1) "log_config: {interval: 100, hooks: [{type: TextLoggerHook}]}\n",
                   "iter_1.safetensors iter_2.safetensors iter_3.safetensors iter_4.safetensors "
                   "latest.safetensors");
  check_max_skips ("runner: {type: EpochBasedRunner, max_epochs: 2}\n", "");
  check_max_skips ("runner: {type: IterBasedRunner, max_iters: 5}\n", "");
}

static gboolean
lose (RnTask *task, RnGradStats *stats, gboolean *is_done, GError **error)
{
  g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "the device is gone");
  return FALSE;
}

static void
test_lost (void)
{
  static const char *const lines[] = { "", ASKS ("opt_step"), SAVE (1), "runner: {max_epochs: 2}\n",
                                       "runner: {type: IterBasedRunner, max_iters: 1}\n" };

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++)
    {
      g_autofree char *rest = g_strconcat (NO_LOG, lines[i], NULL);
      g_autofree char *yaml = make_yaml (CLIPPED, rest);
      g_autoptr (GError) error = NULL;
      FakeRun run;

      open_run (&run, yaml, TRUE);
      run.fake.vtbl.settle_update = lose;
      g_assert_true (rn_runner_init (run.runner, &error));
      g_assert_false (rn_runner_run (run.runner, &error));
      g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
      g_assert_cmpstr (error->message, ==, "iteration 1: the device is gone");
      fake_run_assert_files (run.dir, "");
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("rn-hooks", (GLogLevelFlags) (G_LOG_LEVEL_MASK | G_LOG_FLAG_FATAL), collect, NULL);
  g_log_set_handler ("rn-runner", (GLogLevelFlags) (G_LOG_LEVEL_MASK | G_LOG_FLAG_FATAL), collect, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_asker, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_step, NULL));
  g_test_add_func ("/late-steps/place", test_place);
  g_test_add_func ("/late-steps/end-of-pass", test_end_of_pass);
  g_test_add_func ("/late-steps/asking", test_asking);
  g_test_add_func ("/late-steps/mean", test_mean);
  g_test_add_func ("/late-steps/stages", test_stages);
  g_test_add_func ("/late-steps/same", test_same);
  g_test_add_func ("/late-steps/others", test_others);
  g_test_add_func ("/late-steps/gradients", test_gradients);
  g_test_add_func ("/late-steps/max-skips", test_max_skips);
  g_test_add_func ("/late-steps/lost", test_lost);
  return g_test_run ();
}
