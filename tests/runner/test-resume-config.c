/* What a resume makes of another configuration. */
#include "config.h"

#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

/* The configuration wins, and every changed value is named. */
static void
test_changed_config (void)
{
  FakeRun first, second;

  fake_run_open (&first, BY_ITER (2, "optimizer: {type: SGD, lr: 0.001}\ncheckpoint_config: {interval: 2}\n"),
                 10, NULL);
  fake_run_go (&first);
  fake_run_open (
      &second, BY_ITER (4, "optimizer: {type: SGD, lr: 0.002}\ncheckpoint_config: {interval: 2}\nseed: 3\n"),
      10, first.dir);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "resume: runner.max_iters: 2 in the checkpoint, 4 now*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "resume: optimizer.lr: 0.001 in the checkpoint, 0.002 now*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "resume: seed: not set in the checkpoint, 3 now*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "resumed from*");
  fake_run_resume (&second, NULL);
  g_test_assert_expected_messages ();
  fake_run_go (&second);
  g_assert_cmpint (rn_runner_iter (second.runner), ==, 4);
  g_assert_cmpfloat (rn_runner_lr (second.runner), ==, 0.002);
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

/* Of lists of hooks and transforms it is the key that is named, or the whole item that came or went. */
static void
test_changed_lists (void)
{
  static const double scores[] = { 0.1 };
  FakeRun first, second;
  const char *messages[] = {
    "resume: custom_hooks.0.patience: 2 in the checkpoint, 3 now*",
    "resume: custom_hooks.1: not set in the checkpoint, {type: EmptyCacheHook} now*",
    "resume: evaluation.dynamic_intervals: [[3, 2]] in the checkpoint, [[3, 1]] now*", "resumed from*"
  };

  fake_run_open (&first,
                 BY_EPOCH (1, "checkpoint_config: {interval: 1}\n"
                              "evaluation: {interval: 1, dynamic_intervals: [[3, 2]]}\n"
                              "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 2}]\n"),
                 3, NULL);
  first.fake.scores = scores;
  first.fake.n_scores = 1;
  fake_run_go (&first);
  fake_run_open (&second,
                 BY_EPOCH (1, "checkpoint_config: {interval: 1}\n"
                              "evaluation: {interval: 1, dynamic_intervals: [[3, 1]]}\n"
                              "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 3}, "
                              "{type: EmptyCacheHook}]\n"),
                 3, first.dir);
  /* In the order of the file. */
  const int order[] = { 2, 0, 1, 3 };
  for (gsize i = 0; i < G_N_ELEMENTS (order); i++)
    g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, messages[order[i]]);
  fake_run_resume (&second, NULL);
  g_test_assert_expected_messages ();
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

/* ---- Rates that a hook sets once ---- */

typedef struct
{
  RnHook hook;
} OnceHook;

static gboolean
set_once (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) != 1)
    return TRUE;
  rn_runner_set_lr (runner, 0.25);
  rn_runner_set_momentum (runner, 0.5);
  return TRUE;
}

RN_HOOK_DEFINE (once, OnceHook, .name = "OnceHook", .summary = "for tests", .before_train_iter = set_once);

#define ONCE "custom_hooks: [{type: OnceHook}]\ncheckpoint_config: {interval: 3, by_epoch: false}\n"

static void
test_rates (void)
{
  FakeRun first, second, third;

  fake_run_open (&first, BY_ITER (3, ONCE), 4, NULL);
  fake_run_go (&first);

  /* No schedule sets them anew. */
  fake_run_open (&second, BY_ITER (6, ONCE), 4, first.dir);
  fake_run_resume (&second, NULL);
  g_assert_cmpfloat (rn_runner_lr (second.runner), ==, 0.25);
  g_assert_cmpfloat (rn_runner_momentum (second.runner), ==, 0.5);

  /* The configuration wins where it has others. */
  fake_run_open (&third, BY_ITER (6, "optimizer: {type: SGD, lr: 0.125, momentum: 0.75}\n" ONCE), 4,
                 first.dir);
  fake_run_resume (&third, NULL);
  g_assert_cmpfloat (rn_runner_lr (third.runner), ==, 0.125);
  g_assert_cmpfloat (rn_runner_momentum (third.runner), ==, 0.75);

  fake_run_close (&third);
  fake_run_close (&second);
  fake_run_remove (first.dir);
  fake_run_close (&first);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_once, NULL));

  g_test_add_func ("/runner/resume-config/changed", test_changed_config);
  g_test_add_func ("/runner/resume-config/changed-lists", test_changed_lists);
  g_test_add_func ("/runner/resume-config/rates", test_rates);
  return g_test_run ();
}
