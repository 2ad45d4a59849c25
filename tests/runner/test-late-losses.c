/*
 * test-late-losses.c: losses that a device with queues has not yet got when the forward pass ends: when they
 * are waited for, and that nothing but this differs from losses that are there at once.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/hook-class.h"
#include "tests/runner/fake-task.h"

#include <math.h>
#include <string.h>

/* ---- a task whose losses come late ---- */

static gboolean is_lost;       /* from now on the wait fails */
static const gint64 *poisoned; /* iterations, -1 at the end, whose loss is NaN; NULL: none */
static RnRunner *poisoned_runner;
static RnTaskVtbl true_vtbl; /* of the task that loses and poisons nothing */

static gboolean
settle (RnTask *task, GError **error)
{
  if (!is_lost)
    return true_vtbl.settle (task, error);
  g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "the device is gone");
  return FALSE;
}

static double
loss (RnTask *task, const char *name)
{
  for (const gint64 *iter = poisoned; iter != NULL && *iter >= 0; iter++)
    if (*iter == rn_runner_iter (poisoned_runner) && strcmp (name, "loss") == 0)
      return NAN;
  return true_vtbl.loss (task, name);
}

static void
open_late (FakeRun *run, const char *yaml, gboolean is_late)
{
  fake_run_open (run, yaml, 8, NULL);
  if (is_late)
    fake_task_be_late (&run->fake);
  true_vtbl = run->fake.vtbl;
  run->fake.vtbl.settle = settle;
  run->fake.vtbl.loss = loss;
  poisoned_runner = run->runner;
}

static void
close_late (FakeRun *run)
{
  fake_run_remove (run->dir);
  fake_run_close (run);
}

/* ---- a hook that asks ---- */

typedef struct
{
  RnHook hook;
  gboolean asks, fails;
} Asker;

static const RnKeySpec asker_keys[] = {
  RN_KEY (Asker, asks, RN_KEY_BOOL, "true", "reads the loss"),
  RN_KEY (Asker, fails, RN_KEY_BOOL, "false", "fails"),
  RN_KEY_END,
};

static double asked; /* sum of what it was told */

static gboolean
ask (RnHook *hook, RnRunner *runner, GError **error)
{
  if (((Asker *) hook)->asks)
    asked += rn_runner_loss (runner, "loss");
  return !((Asker *) hook)->fails || rn_hook_error (error, "as asked");
}

RN_HOOK_DEFINE (asker, Asker, .name = "AskerHook", .summary = "for tests", .needs = RN_NEEDS_LOSS,
                .keys = asker_keys, .after_train_iter = ask);

/* ---- tests ---- */

/* Where the wait is. "%s": custom hooks. */
static void
check_trace (const char *hooks, const char *expected)
{
  g_autofree char *yaml = g_strdup_printf ("runner: {type: IterBasedRunner, max_iters: 1}\n"
                                           "log_config: {interval: 4, hooks: []}\n"
                                           "optimizer_config: {grad_clip: null}\n"
                                           "custom_hooks: [%s]\n",
                                           hooks);
  g_autoptr (GString) trace = g_string_new (NULL);
  FakeRun run;

  open_late (&run, yaml, TRUE);
  run.fake.trace = trace;
  fake_run_go (&run);
  g_assert_cmpstr (trace->str, ==, expected);
  close_late (&run);
}

static void
test_place (void)
{
  check_trace ("", "zero forward backward update(1,first) settle");
  check_trace ("{type: AskerHook, priority: HIGH}", "zero forward settle backward update(1,first)");
  check_trace ("{type: AskerHook, priority: HIGH}, {type: AskerHook, priority: LOW}",
               "zero forward settle backward update(1,first)");
}

/* Names and their order, values, what a hook before the step is told. */
static void
check_same (const char *yaml)
{
  GPtrArray *lines[2];
  double told[2];

  for (int is_late = 0; is_late < 2; is_late++)
    {
      FakeRun run;
      asked = 0;
      open_late (&run, yaml, is_late);
      run.fake.task.val_length = 2;
      fake_run_go (&run);
      lines[is_late] = fake_run_timeless_lines (run.dir);
      told[is_late] = asked;
      close_late (&run);
    }
  g_assert_cmpuint (lines[0]->len, >, 2);
  g_assert_cmpuint (lines[1]->len, ==, lines[0]->len);
  for (guint i = 0; i < lines[0]->len; i++)
    g_assert_cmpstr (g_ptr_array_index (lines[1], i), ==, g_ptr_array_index (lines[0], i));
  g_assert_cmpfloat (told[1], ==, told[0]);
  for (int k = 0; k < 2; k++)
    g_ptr_array_unref (lines[k]);
}

#define COMMON                                                                          \
  "runner: {type: EpochBasedRunner, max_epochs: 2}\nworkflow: [[train, 1], [val, 1]]\n" \
  "log_config: {interval: 3, hooks: [{type: TextLoggerHook}]}\n"

static void
test_log (void)
{
  check_same (COMMON);
  check_same (COMMON "custom_hooks: [{type: AskerHook, priority: HIGH}]\n"
                     "optimizer_config: {grad_clip: {max_norm: 1}}\n");
  check_same (COMMON "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 3}\n");
}

/* An error of the wait is the one that is told, also where a hook had to fail for it. */
static void
check_lost (const char *hooks)
{
  g_autofree char *yaml = g_strdup_printf ("runner: {type: IterBasedRunner, max_iters: 4}\n"
                                           "log_config: {interval: 1, hooks: [{type: TextLoggerHook}]}\n"
                                           "custom_hooks: [%s]\n",
                                           hooks);
  g_autoptr (GError) error = NULL;
  FakeRun run;

  open_late (&run, yaml, TRUE);
  is_lost = TRUE;
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  is_lost = FALSE;
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL);
  g_assert_cmpstr (error->message, ==, "iteration 1: the device is gone");
  g_assert_cmpint ((int) rn_runner_iter (run.runner), ==, 0);
  close_late (&run);
}

static void
test_lost (void)
{
  check_lost ("");
  check_lost ("{type: AskerHook, fails: true, priority: HIGH}");
  check_lost ("{type: AskerHook, asks: false, fails: true, priority: VERY_LOW}");
}

/* Hooks of the last of ten bad iterations are not called; a checkpoint is refused in the first of them. */
static void
check_bad (gboolean is_late, GString *trace)
{
  static const gint64 bad[] = { 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -1 };
  g_autoptr (GError) error = NULL;
  FakeRun run;

  open_late (&run,
             "runner: {type: IterBasedRunner, max_iters: 50}\n"
             "log_config: {interval: 4, hooks: []}\n"
             "checkpoint_config: {interval: 2, by_epoch: false}\n"
             "optimizer_config: {grad_clip: null}\n",
             is_late);
  run.fake.trace = trace;
  poisoned = bad;
  g_assert_true (rn_runner_init (run.runner, &error));
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "the loss of iteration 2 is NaN;*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "no checkpoint of iteration 2:*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "saved *iter_4.safetensors");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "the loss of iteration 5 is NaN;*");
  for (int iter = 6; iter <= 12; iter += 2)
    g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "no checkpoint of iteration*");
  g_assert_false (rn_runner_run (run.runner, &error));
  g_test_assert_expected_messages ();
  poisoned = NULL;
  g_assert_nonnull (strstr (error->message, "for 10 iterations, to 14: "));
  g_assert_cmpint ((int) rn_runner_iter (run.runner), ==, 13);
  fake_run_assert_files (run.dir, "iter_4.safetensors latest.safetensors");
  close_late (&run);
}

static void
test_bad (void)
{
  g_autoptr (GString) late = g_string_new (NULL), at_once = g_string_new (NULL);

  check_bad (TRUE, late);
  check_bad (FALSE, at_once);
  g_assert_true (g_str_has_suffix (late->str, "update(1) zero forward settle"));
  g_string_replace (late, " settle", "", 0);
  g_assert_cmpstr (late->str, ==, at_once->str);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_asker, NULL));
  g_test_add_func ("/late-losses/place", test_place);
  g_test_add_func ("/late-losses/log", test_log);
  g_test_add_func ("/late-losses/lost", test_lost);
  g_test_add_func ("/late-losses/bad", test_bad);
  return g_test_run ();
}
