/* The loop: who is called when, in which order, and what a failure or a signal does. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/base/signals.h"
#include "runner/config/config.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define EPOCH_RUN "runner: {type: EpochBasedRunner, max_epochs: 2}\n"
#define ITER_RUN "runner: {type: IterBasedRunner, max_iters: 4}\n"

/* ---- A hook that writes down what it sees ---- */

typedef struct
{
  RnHook hook;
  char *fail_in; /* name of a stage */
  gboolean stop;
} Recorder;

static GString *record;

static gboolean
note (RnHook *hook, RnRunner *runner, RnStage stage, GError **error)
{
  const Recorder *self = (const Recorder *) hook;

  g_string_append_printf (record, "%s%s@%d.%d.%d", record->len > 0 ? " " : "", rn_stage_name (stage),
                          (int) rn_runner_epoch (runner), (int) rn_runner_inner_iter (runner),
                          (int) rn_runner_iter (runner));
  if (self->stop && stage == RN_STAGE_AFTER_TRAIN_ITER)
    rn_runner_stop (runner);
  if (g_strcmp0 (self->fail_in, rn_stage_name (stage)) == 0)
    return rn_hook_error (error, "as asked");
  return TRUE;
}

#define NOTE(name, stage)                                                      \
  static gboolean note_##name (RnHook *hook, RnRunner *runner, GError **error) \
  {                                                                            \
    return note (hook, runner, stage, error);                                  \
  }
NOTE (before_run, RN_STAGE_BEFORE_RUN)
NOTE (before_train_epoch, RN_STAGE_BEFORE_TRAIN_EPOCH)
NOTE (before_train_iter, RN_STAGE_BEFORE_TRAIN_ITER)
NOTE (after_train_iter, RN_STAGE_AFTER_TRAIN_ITER)
NOTE (after_train_epoch, RN_STAGE_AFTER_TRAIN_EPOCH)
NOTE (after_run, RN_STAGE_AFTER_RUN)

static const RnKeySpec recorder_keys[] = {
  RN_KEY (Recorder, fail_in, RN_KEY_STRING, "null", "stage", .flags = RN_KEY_NULLABLE),
  RN_KEY (Recorder, stop, RN_KEY_BOOL, "false", "stop"),
  RN_KEY_END,
};

RN_HOOK_DEFINE (recorder, Recorder, .name = "RecorderHook", .summary = "for tests", .keys = recorder_keys,
                .before_run = note_before_run, .before_train_epoch = note_before_train_epoch,
                .before_train_iter = note_before_train_iter, .after_train_iter = note_after_train_iter,
                .after_train_epoch = note_after_train_epoch, .after_run = note_after_run);

/* One generic function stands for train and val. */
RN_HOOK_DEFINE (generic, Recorder, .name = "GenericHook", .summary = "for tests", .keys = recorder_keys,
                .after_iter = note_after_train_iter);

static gboolean
fail_silently (RnHook *hook, RnRunner *runner, GError **error)
{
  return FALSE;
}

RN_HOOK_DEFINE (silent, Recorder, .name = "SilentHook", .summary = "for tests", .keys = recorder_keys,
                .init = fail_silently);

/* ---- Order ---- */

static const char all_hooks[] = "lr_config: {policy: step, step: [1]}\n"
                                "momentum_config: {policy: step, step: [1]}\n"
                                "optimizer_config: {grad_clip: null}\n"
                                "checkpoint_config: {interval: 1}\n"
                                "log_config: {interval: 50, hooks: [{type: TextLoggerHook}, "
                                "{type: TensorboardLoggerHook}]}\n"
                                "evaluation: {interval: 1, metric: mAP}\n"
                                "custom_hooks: [{type: RecorderHook}, {type: NumClassCheckHook}, "
                                "{type: DistSamplerSeedHook}, {type: SyncBuffersHook}]\n";

/* The table is that of a run which is ready to start. */
static void
open_ready (FakeRun *run, const char *yaml)
{
  g_autoptr (GError) error = NULL;
  fake_run_open (run, yaml, 3, NULL);
  rn_runner_init (run->runner, &error);
  g_assert_no_error (error);
}

static void
assert_order (FakeRun *run, RnStage stage, const char *expected)
{
  g_autofree char *table = rn_runner_describe_hooks (run->runner);
  g_autofree char *start = g_strdup_printf ("  %-18s ", rn_stage_name (stage));
  const char *line = strstr (table, start);
  if (expected == NULL)
    {
      g_assert_null (line);
      return;
    }
  g_assert_nonnull (line);
  g_autofree char *hooks = g_strndup (line + strlen (start), strcspn (line, "\n") - strlen (start));
  g_assert_cmpstr (hooks, ==, expected);
}

/* MMCV's and MMDetection's order of one training iteration and one epoch; the optimizer hook also acts before
 * the iteration. */
static void
test_order (gconstpointer data)
{
  FakeRun run;
  g_autofree char *yaml = g_strconcat (all_hooks, data, NULL);

  open_ready (&run, yaml);
  assert_order (&run, RN_STAGE_BEFORE_TRAIN_EPOCH,
                "RecorderHook (50), DistSamplerSeedHook (50), IterTimerHook (70)");
  assert_order (
      &run, RN_STAGE_BEFORE_TRAIN_ITER,
      "StepLrUpdaterHook (10), StepMomentumUpdaterHook (30), OptimizerHook (40), RecorderHook (50), "
      "IterTimerHook (70), EvalHook (70)");
  assert_order (&run, RN_STAGE_AFTER_TRAIN_ITER,
                "OptimizerHook (40), CheckpointHook (50), RecorderHook (50), IterTimerHook (70), EvalHook "
                "(70), TextLoggerHook (90), TensorboardLoggerHook (90)");
  assert_order (&run, RN_STAGE_AFTER_TRAIN_EPOCH,
                "CheckpointHook (50), RecorderHook (50), SyncBuffersHook (50), IterTimerHook (70), EvalHook "
                "(70), TextLoggerHook (90), TensorboardLoggerHook (90)");
  assert_order (&run, RN_STAGE_BEFORE_VAL_EPOCH, "DistSamplerSeedHook (50), IterTimerHook (70)");
  assert_order (&run, RN_STAGE_BEFORE_VAL_ITER, "IterTimerHook (70)");
  assert_order (&run, RN_STAGE_AFTER_VAL_ITER, "IterTimerHook (70)");
  assert_order (&run, RN_STAGE_AFTER_VAL_EPOCH,
                "SyncBuffersHook (50), IterTimerHook (70), TextLoggerHook (90), TensorboardLoggerHook (90)");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* Somebody must log what is known before the first iteration. */
static void
test_order_start (void)
{
  FakeRun run;

  open_ready (&run, EPOCH_RUN "evaluation: {start: 0}\n");
  assert_order (&run, RN_STAGE_BEFORE_TRAIN_ITER,
                "OptimizerHook (40), IterTimerHook (70), EvalHook (70), TextLoggerHook (90)");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_order_equal (void)
{
  FakeRun by_epoch, by_iter;
  g_autofree char *epochs = g_strconcat (all_hooks, EPOCH_RUN, NULL),
                  *iters = g_strconcat (all_hooks, ITER_RUN, NULL);

  open_ready (&by_epoch, epochs);
  open_ready (&by_iter, iters);
  g_autofree char *a = rn_runner_describe_hooks (by_epoch.runner),
                  *b = rn_runner_describe_hooks (by_iter.runner);
  g_assert_cmpstr (a, ==, b);
  fake_run_remove (by_epoch.dir);
  fake_run_remove (by_iter.dir);
  fake_run_close (&by_epoch);
  fake_run_close (&by_iter);
}

/* The optimizer hook may stand among the custom hooks; then there is no other. */
static void
test_one_optimizer_hook (void)
{
  FakeRun run;

  fake_run_open (&run, EPOCH_RUN "custom_hooks: [{type: OptimizerHook, priority: 45}]\n", 3, NULL);
  assert_order (&run, RN_STAGE_AFTER_TRAIN_ITER,
                "OptimizerHook (45), IterTimerHook (70), TextLoggerHook (90)");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_priorities (void)
{
  FakeRun run;

  fake_run_open (&run,
                 EPOCH_RUN "custom_hooks:\n"
                           "  - {type: RecorderHook, priority: very_low}\n"
                           "  - {type: GenericHook, priority: 39}\n"
                           "  - {type: RecorderHook, priority: HIGHEST}\n",
                 3, NULL);
  /* Equal priorities keep the order of registration: the logger comes first. */
  assert_order (&run, RN_STAGE_AFTER_TRAIN_ITER,
                "RecorderHook (0), GenericHook (39), OptimizerHook (40), IterTimerHook (70), TextLoggerHook "
                "(90), RecorderHook (90)");
  assert_order (&run, RN_STAGE_AFTER_VAL_ITER, "GenericHook (39), IterTimerHook (70)");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
assert_refused (const char *yaml, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) node = rn_config_load_text (yaml, "test.yaml", NULL, &error);
  g_assert_no_error (error);
  g_autoptr (RnHookList) list = rn_hook_list_new ();
  g_assert_false (rn_hook_list_add (list, node, NULL, NULL, &error));
  g_assert_error (error, RN_CONFIG_ERROR, (int) error->code);
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
}

static void
test_refused (void)
{
  assert_refused ("{type: RecorderHook, priority: 101}", "test.yaml:1:*priority*0 to 100*");
  assert_refused ("{type: RecorderHook, priority: soon}", "test.yaml:1:*priority*VERY_HIGH*");
  assert_refused ("{type: RecorderHok}", "test.yaml:1:*RecorderHok*RecorderHook*");
  assert_refused ("{type: CheckpointHook, intervall: 3}", "test.yaml:1:*intervall*interval*");
  /* Hooks that other programs have. */
  assert_refused ("{type: WandbLoggerHook, init_kwargs: {project: a}}",
                  "test.yaml:1:*no hook*Wandb*TensorboardLoggerHook*");
  assert_refused ("{type: ExpMomentumEMAHook, total_iter: 2000}",
                  "test.yaml:1:*{type: EMAHook, ema_type: ExpMomentumEMA}*");

  g_autoptr (GError) error = NULL;
  RnHookDesc foreign = rn_hook_desc_recorder;
  foreign.name = "ForeignHook";
  foreign.abi = (RN_HOOK_ABI_MAJOR + 1) << 16;
  g_assert_false (rn_hook_register (&foreign, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
}

/* ---- Stages ---- */

static gboolean
run_recorded (FakeRun *run, GError **error)
{
  g_string_truncate (record, 0);
  return rn_runner_init (run->runner, error) && rn_runner_run (run->runner, error);
}

static void
test_epoch_stages (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, EPOCH_RUN "custom_hooks: [{type: RecorderHook}]\n", 2, NULL);
  g_assert_true (run_recorded (&run, &error));
  g_assert_cmpstr (record->str, ==,
                   "before_run@0.0.0"
                   " before_train_epoch@0.0.0 before_train_iter@0.0.0 after_train_iter@0.0.0 "
                   "before_train_iter@0.1.1 after_train_iter@0.1.1"
                   " after_train_epoch@0.2.2"
                   " before_train_epoch@1.0.2 before_train_iter@1.0.2 after_train_iter@1.0.2 "
                   "before_train_iter@1.1.3 after_train_iter@1.1.3"
                   " after_train_epoch@1.2.4"
                   " after_run@2.0.4");
  g_assert_cmpint (rn_runner_opt_step (run.runner), ==, 4);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* The same stages; the run ends in the middle of the second pass. @runner is a YAML map. */
static void
test_iter_stages (gconstpointer runner)
{
  g_autofree char *text =
      g_strdup_printf ("runner: %s\ncustom_hooks: [{type: RecorderHook}]\n", (const char *) runner);
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, text, 2, NULL);
  g_assert_true (run_recorded (&run, &error));
  g_assert_cmpstr (record->str, ==,
                   "before_run@0.0.0"
                   " before_train_epoch@0.0.0 before_train_iter@0.0.0 after_train_iter@0.0.0 "
                   "before_train_iter@0.1.1 after_train_iter@0.1.1"
                   " after_train_epoch@0.2.2"
                   " before_train_epoch@1.0.2 before_train_iter@1.0.2 after_train_iter@1.0.2"
                   " after_run@1.1.3");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_failure (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (
      &run,
      EPOCH_RUN
      "custom_hooks: [{type: RecorderHook, fail_in: after_train_iter}, {type: RecorderHook, priority: 0}]\n",
      2, NULL);
  g_assert_false (run_recorded (&run, &error));
  g_assert_cmpstr (error->message, ==, "RecorderHook: after_train_iter: as asked");
  g_assert_true (g_str_has_suffix (
      record->str, "after_train_iter@0.0.0 after_train_iter@0.0.0 after_run@0.0.0 after_run@0.0.0"));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* A hook of other people may forget to say what is wrong. */
static void
test_silent_failure (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, EPOCH_RUN "custom_hooks: [{type: SilentHook}]\n", 2, NULL);
  g_assert_false (rn_runner_init (run.runner, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  g_assert_true (g_str_has_prefix (error->message, "SilentHook: "));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_stop (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, EPOCH_RUN "custom_hooks: [{type: RecorderHook, stop: true}]\n", 5, NULL);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "a hook ended the run: 1 of 10 iterations*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "saved*");
  g_assert_true (run_recorded (&run, &error));
  g_test_assert_expected_messages ();
  g_assert_true (g_str_has_suffix (record->str, "after_train_iter@0.0.0 after_run@0.1.1"));
  g_autofree char *files = fake_run_files (run.dir, ".safetensors");
  g_assert_cmpstr (files, ==, "iter_1.safetensors latest.safetensors");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Optimizer hook ---- */

static void
test_optimizer_hook (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) trace = g_string_new (NULL);
  FakeRun run;

  fake_run_open (&run,
                 "runner: {type: IterBasedRunner, max_iters: 2}\noptimizer_config: {grad_clip: {max_norm: 3, "
                 "norm_type: 2}}\n",
                 2, NULL);
  run.fake.trace = trace;
  run.fake.grad_norm = 6 - 1e-6; /* 3 / (norm + 1e-6) = 0.5 */
  g_assert_true (run_recorded (&run, &error));
  g_assert_cmpstr (trace->str, ==,
                   "zero forward backward norm update(0.5,first) zero forward backward norm update(0.5)");
  fake_run_remove (run.dir);
  fake_run_close (&run);

  g_string_truncate (trace, 0);
  fake_run_open (
      &run, "runner: {type: IterBasedRunner, max_iters: 1}\noptimizer_config: {grad_clip: {max_norm: 3}}\n",
      2, NULL);
  run.fake.trace = trace;
  run.fake.grad_norm = 2; /* never scaled up */
  g_assert_true (run_recorded (&run, &error));
  g_assert_cmpstr (trace->str, ==, "zero forward backward norm update(1,first)");
  fake_run_remove (run.dir);
  fake_run_close (&run);

  g_string_truncate (trace, 0);
  fake_run_open (&run, "runner: {type: IterBasedRunner, max_iters: 1}\noptimizer_config: {grad_clip: null}\n",
                 2, NULL);
  run.fake.trace = trace;
  g_assert_true (run_recorded (&run, &error));
  g_assert_cmpstr (trace->str, ==, "zero forward backward update(1,first)");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Time ---- */

static double times[5]; /* time, data, forward + backward + step, hooks, sum of the parts */

static gboolean
sleep_in_hook (RnHook *hook, RnRunner *runner, GError **error)
{
  g_usleep (2000);
  return TRUE;
}

static gboolean
read_times (RnHook *hook, RnRunner *runner, GError **error)
{
  times[0] = rn_runner_log_mean (runner, "time", 1);
  times[1] = rn_runner_log_mean (runner, "data_time", 1);
  times[2] = rn_runner_log_mean (runner, "forward_time", 1) + rn_runner_log_mean (runner, "backward_time", 1)
             + rn_runner_log_mean (runner, "step_time", 1);
  times[3] = rn_runner_log_mean (runner, "hooks_time", 1);
  times[4] = times[1] + times[2] + times[3];
  return TRUE;
}

RN_HOOK_DEFINE (sleeper, Recorder, .name = "SleepHook", .summary = "for tests", .keys = recorder_keys,
                .before_train_iter = sleep_in_hook, .after_train_iter = read_times);

static gboolean (*fast_backward) (RnTask *task, GError **error);

static gboolean
slow_backward (RnTask *task, GError **error)
{
  g_usleep (3000);
  return fast_backward (task, error);
}

/* The parts are disjoint, so that their sum is below the whole; a hook's time is a hook's, but for the
 * backward pass within. A microsecond each for the clock. */
static void
test_times (void)
{
  FakeRun run;

  fake_run_open (&run,
                 "runner: {type: IterBasedRunner, max_iters: 3}\n"
                 "custom_hooks: [{type: SleepHook, priority: 95}]\n",
                 9, NULL);
  fast_backward = run.fake.vtbl.backward;
  run.fake.vtbl.backward = slow_backward;
  fake_run_go (&run);
  for (int i = 0; i < 4; i++)
    g_assert_cmpfloat (times[i], >=, 0);
  g_assert_cmpfloat (times[2], >=, 0.003);
  g_assert_cmpfloat (times[3], >=, 0.002);
  g_assert_cmpfloat (times[4], <=, times[0] + 5e-6);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Configuration of the parts ---- */

static void
assert_hooks_refused (const char *yaml, const char *pattern)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (EPOCH_RUN, yaml, "optimizer: {type: SGD, lr: 0.001}\n", NULL);

  g_assert_false (fake_run_try (&run, text, 2, &error));
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
  g_assert_true (g_str_has_prefix (error->message, "test.yaml:2:"));
  g_assert_cmpint (rn_error_exit_code (error), ==, 2);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_parts_refused (void)
{
  assert_hooks_refused ("custom_hooks: [{type: OptimizerHook}, {type: OptimizerHook}]\n",
                        "test.yaml:2:*custom_hooks.1*second optimizer hook*custom_hooks.0*test.yaml:2:16*");
  assert_hooks_refused (
      "custom_hooks: [{type: GradientCumulativeOptimizerHook}]\noptimizer_config: {grad_clip: null}\n",
      "test.yaml:2:*custom_hooks.0*optimizer_config*test.yaml:3:*");
  assert_hooks_refused ("custom_hooks: [{type: TextLoggerHook}]\n", "*test.yaml:2:*second TextLoggerHook*");
  assert_hooks_refused ("log_config: {hooks: [{type: TextLoggerHook}, {type: TextLoggerHook}]}\n",
                        "*test.yaml:2:*hooks.1*second TextLoggerHook*");
  assert_hooks_refused ("custom_hooks: [{type: CheckpointHook}, {type: CheckpointHook, max_keep_ckpts: 1}]\n",
                        "*test.yaml:2:*max_keep_ckpts*two CheckpointHooks*");
  assert_hooks_refused ("optimizer_config: {type: EMAHook}\n",
                        "*test.yaml:2:*type*there are: OptimizerHook*");
  assert_hooks_refused ("lr_config: {type: EMAHook}\n", "*test.yaml:2:*type*LrUpdaterHook*");
  assert_hooks_refused ("lr_config: {policy: stepp, step: [1]}\n", "*test.yaml:2:*stepp*step*");
  assert_hooks_refused ("lr_config: {policy: step, step: 0}\n", "*test.yaml:2:*step*above 0*");
  assert_hooks_refused ("checkpoint_config: {out_dir: /dev/null/x}\n", "*test.yaml:2:*/dev/null/x*");
  assert_hooks_refused ("lr_config: {policy: fixed, warmup: linear}\n", "*test.yaml:2:*warmup_iters*");
  assert_hooks_refused ("momentum_config: {policy: step}\n", "*test.yaml:2:*momentum_config*step*");
  assert_hooks_refused ("evaluation: {save_best: mAp}\n", "*test.yaml:2:*mAp*");
  assert_hooks_refused ("evaluation: {metric: recall}\n", "*test.yaml:2:*recall*");
  assert_hooks_refused ("checkpoint_config: {max_keep_ckpts: 0}\n", "*test.yaml:2:*max_keep_ckpts*");
}

static void
test_runner_options (void)
{
  static const char *const bad[] = {
    "{type: EpochRunner, max_epochs: 2}",      "{type: EpochBasedRunner, max_iters: 2}",
    "{type: IterBasedRunner, max_epochs: 2}",  "{type: IterBasedRunner, max_epochs: 2, max_iters: 4}",
    "{type: EpochBasedRunner, max_epochs: 0}", "{type: EpochBasedRunner}"
  };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) node = rn_config_load_text (bad[i], "test.yaml", NULL, &error);
      RnRunnerOptions options = { 0 };
      g_assert_no_error (error);
      g_assert_false (rn_runner_options_parse (node, &options, &error));
      g_assert_cmpint (error->domain, ==, RN_CONFIG_ERROR);
    }
}

/* A run whose weights are NaN from the start fails with all of @words, after these two warnings. */
static void
assert_lost (FakeRun *run, const char *yaml, const char *first, const char *no_checkpoint,
             const char *const *words)
{
  g_autoptr (GError) error = NULL;

  fake_run_open (run, yaml, 50, NULL);
  g_assert_true (rn_runner_init (run->runner, &error));
  run->fake.w[0] = (float) NAN;
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, first);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, no_checkpoint);
  g_assert_false (rn_runner_run (run->runner, &error));
  g_test_assert_expected_messages ();
  fake_run_assert_files (run->dir, "");
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  for (; *words != NULL; words++)
    g_assert_nonnull (strstr (error->message, *words));
}

/* Ten iterations of that end the run, and it saves nothing more. */
static void
test_lost_loss (void)
{
  static const char *const words[] = { "for 10 iterations, to 10", "grad_clip", NULL };
  FakeRun run;

  assert_lost (&run,
               "runner: {type: IterBasedRunner, max_iters: 50}\n"
               "checkpoint_config: {interval: 5, by_epoch: false}\n"
               "optimizer_config: {grad_clip: null}\n",
               "the loss of iteration 1 is *optimizer.lr*", "no checkpoint of iteration 5:*", words);
  g_assert_cmpint ((int) rn_runner_iter (run.runner), ==, 9);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* So few of them that the run is over first. */
static void
test_lost_end (void)
{
  static const char *const words[] = { "ends with a loss that is not finite", "grad_clip", NULL };
  FakeRun run;

  assert_lost (&run,
               "runner: {type: IterBasedRunner, max_iters: 3}\n"
               "checkpoint_config: {interval: 5, by_epoch: false}\n"
               "log_config: {hooks: []}\n"
               "optimizer_config: {grad_clip: null}\n",
               "the loss of iteration 1 is NaN;*", "no checkpoint of iteration 3:*", words);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  record = g_string_new (NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_recorder, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_generic, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_silent, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_sleeper, NULL));

  g_test_add_data_func ("/runner/order/epoch", EPOCH_RUN, test_order);
  g_test_add_data_func ("/runner/order/iter", ITER_RUN, test_order);
  g_test_add_func ("/runner/order/start", test_order_start);
  g_test_add_func ("/runner/order/equal", test_order_equal);
  g_test_add_func ("/runner/order/one-optimizer-hook", test_one_optimizer_hook);
  g_test_add_func ("/runner/order/priorities", test_priorities);
  g_test_add_func ("/runner/order/refused", test_refused);
  g_test_add_func ("/runner/stages/epoch", test_epoch_stages);
  g_test_add_data_func ("/runner/stages/iter", "{type: IterBasedRunner, max_iters: 3}", test_iter_stages);
  g_test_add_data_func ("/runner/stages/cut-short", "{type: EpochBasedRunner, max_epochs: 5, max_iters: 3}",
                        test_iter_stages);
  g_test_add_func ("/runner/failure", test_failure);
  g_test_add_func ("/runner/silent-failure", test_silent_failure);
  g_test_add_func ("/runner/stop", test_stop);
  g_test_add_func ("/runner/lost-loss", test_lost_loss);
  g_test_add_func ("/runner/lost-end", test_lost_end);
  g_test_add_func ("/runner/times", test_times);
  g_test_add_func ("/runner/optimizer-hook", test_optimizer_hook);
  g_test_add_func ("/runner/parts-refused", test_parts_refused);
  g_test_add_func ("/runner/options", test_runner_options);
  int status = g_test_run ();
  g_string_free (record, TRUE);
  return status;
}
