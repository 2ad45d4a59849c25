/* What the hooks of learning rate and momentum set in each iteration of a run. */
#include "config.h"

#include "tests/hooks/golden-schedules.h"
#include "tests/runner/fake-task.h"

#include "runner/base/error.h"
#include "runner/config/config.h"

#include <math.h>
#include <string.h>

/* The values are written with 10 digits, and computed by other orders of operations. */
#define TOLERANCE 1e-9

/* ---- A hook that looks at the result, behind those that set it ---- */

typedef struct
{
  RnHook hook;
  double lr;       /* set in iteration lr_at; NAN: not */
  gint64 lr_at;    /* -1: always */
  gint64 stop_at;  /* ends the run after this iteration; -1: never */
  gint64 steps_of; /* as schedule_by: step of an optimizer hook with windows of so many would; 0: not */
} Probe;

typedef struct
{
  double lrs[2], momentum;
} Seen;

static GArray *seen; /* of Seen, an item an iteration */

static gboolean
probe_init (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 n = ((const Probe *) hook)->steps_of;
  if (n > 0)
    rn_runner_set_schedule (runner, (rn_runner_max_iters (runner) + n - 1) / n);
  return TRUE;
}

static gboolean
probe (RnHook *hook, RnRunner *runner, GError **error)
{
  const Probe *self = (const Probe *) hook;
  Seen now = { .momentum = rn_runner_momentum (runner) };

  if (!isnan (self->lr) && (self->lr_at < 0 || self->lr_at == rn_runner_iter (runner)))
    rn_runner_set_lr (runner, self->lr);
  for (guint i = 0; i < rn_runner_n_groups (runner); i++)
    now.lrs[i] = rn_runner_group_lr (runner, i);
  g_array_append_val (seen, now);
  if (self->stop_at == rn_runner_iter (runner))
    rn_runner_stop (runner);
  return TRUE;
}

static const RnKeySpec probe_keys[] = {
  RN_KEY (Probe, lr, RN_KEY_FLOAT, "null", "set it", .flags = RN_KEY_NULLABLE),
  RN_KEY (Probe, lr_at, RN_KEY_INT, "-1", "when"),
  RN_KEY (Probe, stop_at, RN_KEY_INT, "-1", "last iteration"),
  RN_KEY (Probe, steps_of, RN_KEY_INT, "0", "iterations"),
  RN_KEY_END,
};

RN_HOOK_DEFINE (probe, Probe, .name = "ProbeHook", .summary = "for tests", .keys = probe_keys,
                .init = probe_init, .before_train_iter = probe);

/* ---- Runs ---- */

/* A run of two parameter groups. fake_run_open makes the runner for one of them, so this makes another. */
static void
open_run (FakeRun *run, const char *yaml, const char *dir)
{
  static const double mults[] = GOLDEN_MULTS;
  g_autoptr (GError) error = NULL;

  fake_run_open (run, yaml, GOLDEN_EPOCH_LENGTH, dir);
  rn_runner_free (run->runner);
  run->fake.task.lr_mults = mults;
  run->fake.task.n_groups = G_N_ELEMENTS (mults);
  RnRunnerOptions options = { .work_dir = run->dir, .config_text = yaml, .optimizer = run->optimizer };
  rn_runner_options_parse (run->config.runner, &options, &error);
  g_assert_no_error (error);
  options.hooks = rn_training_hooks_new (&run->config, &options.log_interval, &error);
  g_assert_no_error (error);
  g_autoptr (RnWants) wants = rn_wants_new ();
  rn_hook_list_prepare (options.hooks, wants, &error);
  g_assert_no_error (error);
  run->runner = rn_runner_new (&run->fake.task, &options);
}

#define STRING(x) STRING_ (x)
#define STRING_(x) #x
#define OPTIMIZER                                                               \
  "optimizer: {type: SGD, lr: " STRING (GOLDEN_BASE_LR) ", momentum: " STRING ( \
      GOLDEN_MOMENTUM) "}\n"                                                    \
                       "log_config: {hooks: []}\n"
#define ITER_RUN OPTIMIZER "runner: {type: IterBasedRunner, max_iters: 24}\n"
#define EPOCH_RUN OPTIMIZER "runner: {type: EpochBasedRunner, max_epochs: 8}\n"

/* Leaves what it saw in `seen`, for the caller to clear. */
static void
run_through (const char *yaml)
{
  FakeRun run;
  g_autofree char *all = g_strconcat (
      yaml, strstr (yaml, "ProbeHook") == NULL ? "custom_hooks: [{type: ProbeHook}]\n" : "", NULL);

  seen = g_array_new (FALSE, FALSE, sizeof (Seen));
  open_run (&run, all, NULL);
  fake_run_go (&run);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static const Seen *
get_seen (gint64 iter)
{
  g_assert_cmpint (iter, <, seen->len);
  return &g_array_index (seen, Seen, (guint) iter);
}

static void
assert_close (double value, double expected, const char *config, gint64 iter)
{
  if (!(fabs (value - expected) <= TOLERANCE * fabs (expected)))
    g_error ("%s: iteration %d: %.17g is not %.17g", config, (int) iter, value, expected);
}

static void
test_golden (void)
{
  G_STATIC_ASSERT (GOLDEN_TOTAL == 24 && GOLDEN_MAX_EPOCHS == 8); /* EPOCH_RUN, ITER_RUN */

  for (gsize i = 0; i < G_N_ELEMENTS (golden_schedules); i++)
    {
      const char *config = golden_schedules[i].config;
      gboolean is_momentum = golden_schedules[i].is_momentum;
      g_autofree char *yaml =
          g_strdup_printf ("%s%s: %s\n", golden_schedules[i].is_epoch_run ? EPOCH_RUN : ITER_RUN,
                           is_momentum ? "momentum_config" : "lr_config", config);
      run_through (yaml);
      g_assert_cmpuint (seen->len, ==, GOLDEN_TOTAL);
      for (gint64 iter = 0; iter < GOLDEN_TOTAL; iter++)
        {
          const Seen *now = get_seen (iter);
          double expected = golden_schedules[i].values[iter];
          assert_close (is_momentum ? now->momentum : now->lrs[golden_schedules[i].group], expected, config,
                        iter);
          /* The other of the two stays what the optimizer has. */
          if (is_momentum)
            g_assert_cmpfloat (now->lrs[0], ==, GOLDEN_BASE_LR);
          else
            g_assert_cmpfloat (now->momentum, ==, GOLDEN_MOMENTUM);
        }
      g_array_unref (seen);
    }
}

/* MMCV's default: momentum falls while the rate rises. */
static void
test_together (void)
{
  run_through (ITER_RUN "lr_config: {policy: OneCycle, max_lr: 0.1}\nmomentum_config: {policy: OneCycle}\n");
  gint64 peak = 0;
  for (gint64 i = 1; i < GOLDEN_TOTAL; i++)
    if (get_seen (i)->lrs[0] > get_seen (peak)->lrs[0])
      peak = i;
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    g_assert_cmpfloat (get_seen (i)->momentum, >=, get_seen (peak)->momentum);
  assert_close (get_seen (0)->momentum, 0.95, "OneCycle", 0);
  g_array_unref (seen);
}

/* As the runner does is no choice for a policy that counts iterations. */
static void
test_auto (void)
{
  run_through (EPOCH_RUN "lr_config: {policy: cyclic, by_epoch: false}\n");
  GArray *by_iter = seen;
  run_through (EPOCH_RUN "lr_config: {policy: cyclic, by_epoch: auto}\n");
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    g_assert_cmpfloat (get_seen (i)->lrs[0], ==, g_array_index (by_iter, Seen, (guint) i).lrs[0]);
  g_array_unref (by_iter);
  g_array_unref (seen);
}

/* The type stands for the policy. */
static void
test_type (void)
{
  run_through (ITER_RUN "lr_config: {type: StepLrUpdaterHook, step: [12]}\n"
                        "momentum_config: {type: StepMomentumUpdaterHook, step: [6]}\n");
  assert_close (get_seen (11)->lrs[0], GOLDEN_BASE_LR, "type", 11);
  assert_close (get_seen (12)->lrs[0], GOLDEN_BASE_LR / 10, "type", 12);
  assert_close (get_seen (5)->momentum, GOLDEN_MOMENTUM, "type", 5);
  assert_close (get_seen (6)->momentum, GOLDEN_MOMENTUM / 2, "type", 6);
  g_array_unref (seen);
}

/* A hook behind the lr hook has the last word, for the iteration. */
static void
test_override (void)
{
  run_through (ITER_RUN "lr_config: {policy: fixed}\n"
                        "custom_hooks: [{type: ProbeHook, lr: 0.5, lr_at: 3}]\n");
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    {
      g_assert_cmpfloat (get_seen (i)->lrs[0], ==, i == 3 ? 0.5 : GOLDEN_BASE_LR);
      assert_close (get_seen (i)->lrs[1], (i == 3 ? 0.5 : GOLDEN_BASE_LR) * 0.1, "override", i);
    }
  g_array_unref (seen);
}

/* Without a schedule nobody takes it back. */
static void
test_no_schedule (void)
{
  run_through (ITER_RUN "custom_hooks: [{type: ProbeHook, lr: 0.5, lr_at: 3}]\n");
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    g_assert_cmpfloat (get_seen (i)->lrs[0], ==, i < 3 ? GOLDEN_BASE_LR : 0.5);
  g_array_unref (seen);
}

/* Stopped at every iteration, and resumed with another schedule: it is that of the new file from there on. */
static void
test_resume (void)
{
  static const char new_lr[] =
      "lr_config: {policy: CosineAnnealing, min_lr: 0, warmup: linear, warmup_iters: 9}\n"
      "momentum_config: {policy: cyclic}\n";
  g_autofree char *new_yaml = g_strconcat (ITER_RUN, new_lr, NULL);
  g_autofree char *again = g_strconcat (new_yaml, "custom_hooks: [{type: ProbeHook}]\n", NULL);

  run_through (new_yaml);
  GArray *straight = seen;
  for (gint64 last = 0; last + 1 < GOLDEN_TOTAL; last++)
    {
      FakeRun run, second;
      g_autofree char *yaml = g_strdup_printf (ITER_RUN "lr_config: {policy: step, step: 2, gamma: 0.7}\n"
                                                        "custom_hooks: [{type: ProbeHook, stop_at: %d}]\n",
                                               (int) last);
      seen = g_array_new (FALSE, FALSE, sizeof (Seen));
      open_run (&run, yaml, NULL);
      fake_run_go (&run);
      g_assert_cmpuint (seen->len, ==, last + 1);
      open_run (&second, again, run.dir);
      fake_run_resume (&second, NULL);
      g_autoptr (GError) error = NULL;
      g_assert_true (rn_runner_run (second.runner, &error));
      g_assert_cmpuint (seen->len, ==, GOLDEN_TOTAL);
      for (gint64 i = last + 1; i < GOLDEN_TOTAL; i++)
        {
          const Seen *expected = &g_array_index (straight, Seen, (guint) i);
          g_assert_cmpfloat (get_seen (i)->lrs[0], ==, expected->lrs[0]);
          g_assert_cmpfloat (get_seen (i)->lrs[1], ==, expected->lrs[1]);
          g_assert_cmpfloat (get_seen (i)->momentum, ==, expected->momentum);
        }
      g_array_unref (seen);
      fake_run_remove (run.dir);
      fake_run_close (&run);
      fake_run_close (&second);
    }
  g_array_unref (straight);
}

/* The optimizer hook of the fake run steps in every iteration, so the step that a schedule counts is the
 * iteration; what changes is where it ends. */
static void
test_by_step (void)
{
  run_through (ITER_RUN "lr_config: {policy: LinearAnnealing, min_lr: 0}\n"
                        "custom_hooks: [{type: ProbeHook, steps_of: 3}]\n");
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    g_assert_cmpfloat_with_epsilon (get_seen (i)->lrs[0], GOLDEN_BASE_LR * fmax (1 - (double) i / 8, 0),
                                    1e-15);
  g_array_unref (seen);

  /* By epoch it stays by epoch, and with it the warm-up in epochs. */
  run_through (EPOCH_RUN "lr_config: {policy: LinearAnnealing, min_lr: 0, warmup: constant, warmup_iters: 2, "
                         "warmup_ratio: 0.5, warmup_by_epoch: true}\n"
                         "custom_hooks: [{type: ProbeHook, steps_of: 3}]\n");
  for (gint64 i = 0; i < GOLDEN_TOTAL; i++)
    g_assert_cmpfloat_with_epsilon (get_seen (i)->lrs[0],
                                    GOLDEN_BASE_LR * (1 - (double) (i / GOLDEN_EPOCH_LENGTH) / 8)
                                        * (i < 2 * GOLDEN_EPOCH_LENGTH ? 0.5 : 1),
                                    1e-15);
  g_array_unref (seen);
}

/* ---- Refused ---- */

/* @lines: of the configuration; their first is line 4. @early: before there is data and a runner */
static void
assert_refused_when (const char *lines, const char *pattern, gboolean early)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;
  g_autofree char *yaml = g_strconcat (ITER_RUN, lines, NULL);
  g_autoptr (RnNode) root = rn_config_load_text (yaml, "test.yaml", NULL, &error);
  g_auto (RnRunConfig) config = { 0 };
  gint64 log_interval;

  g_assert_no_error (error);
  g_assert_true (rn_run_config_parse (root, &config, &error));
  RnHookList *hooks = rn_training_hooks_new (&config, &log_interval, &error);
  g_autoptr (RnWants) wants = rn_wants_new ();
  gboolean is_late = hooks != NULL && rn_hook_list_prepare (hooks, wants, &error);
  g_assert_true (is_late != early);
  if (!is_late)
    g_clear_pointer (&hooks, rn_hook_list_free);
  else
    {
      fake_run_open (&run, ITER_RUN, GOLDEN_EPOCH_LENGTH, NULL);
      RnRunnerOptions options = { .max_epochs = G_MAXINT64,
                                  .max_iters = 24,
                                  .work_dir = run.dir,
                                  .optimizer = run.optimizer,
                                  .hooks = hooks };
      g_autoptr (RnRunner) runner = rn_runner_new (&run.fake.task, &options);
      g_assert_false (rn_runner_init (runner, &error));
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
  g_assert_true (g_str_has_prefix (error->message, "test.yaml:4:"));
  g_assert_cmpint (rn_error_exit_code (error), ==, 2);
}

static void
assert_refused (const char *lines, const char *pattern)
{
  assert_refused_when (lines, pattern, TRUE);
}

static void
test_refused (void)
{
  assert_refused ("lr_config: {policy: CosineAnealing, min_lr: 0}\n",
                  "*CosineAnealing*did you mean*CosineAnnealing*");
  assert_refused ("lr_config: {policy: plateau}\n", "*plateau*there are: fixed, step*OneCycle*");
  assert_refused ("momentum_config: {policy: fixed}\n", "*fixed*there are: step*OneCycle*");
  assert_refused ("lr_config: {step: 3}\n", "*needs a policy*fixed*");
  assert_refused ("lr_config: {policy: step, type: StepLrUpdaterHook, step: 3}\n", "*policy*type too*");
  assert_refused ("lr_config: {policy: CosineAnnealing}\n", "*min_lr or min_lr_ratio*");
  assert_refused ("lr_config: {policy: CosineAnnealing, min_lr: 0, min_lr_ratio: 0}\n",
                  "*min_lr or min_lr_ratio*");
  assert_refused ("momentum_config: {policy: LinearAnnealing}\n", "*min_momentum or min_momentum_ratio*");
  assert_refused ("lr_config: {policy: exp}\n", "*gamma*");
  assert_refused ("lr_config: {policy: OneCycle}\n", "*max_lr*");
  assert_refused ("lr_config: {policy: OneCycle, max_lr: 1, by_epoch: true}\n",
                  "*by_epoch*counts iterations*");
  assert_refused ("lr_config: {policy: cyclic, by_epoch: true}\n", "*by_epoch*counts iterations*");
  assert_refused ("momentum_config: {policy: cyclic, by_epoch: true}\n", "*by_epoch*counts iterations*");
  assert_refused ("lr_config: {policy: cyclic, step_ratio_up: 1}\n", "*step_ratio_up*below 1*");
  assert_refused ("lr_config: {policy: cyclic, gamma: 0}\n", "*gamma*above 0*");
  assert_refused ("lr_config: {policy: cyclic, target_ratio: [1, 2, 3]}\n", "*target_ratio*two numbers*");
  assert_refused ("lr_config: {policy: cyclic, target_ratio: []}\n", "*target_ratio*");
  assert_refused ("lr_config: {policy: CosineRestart, periods: [], min_lr: 0}\n", "*periods*at least one*");
  assert_refused ("lr_config: {policy: CosineRestart, periods: [3, 4], restart_weights: [1], min_lr: 0}\n",
                  "*restart_weights*1 weights for 2 periods*");
  assert_refused ("lr_config: {policy: CosineRestart, periods: [0], min_lr: 0}\n", "*periods*");
  assert_refused ("lr_config: {policy: poly, warmup: exp}\n", "*warmup_iters*");
  assert_refused ("momentum_config: {policy: step, step: 3, warmup: exp}\n", "*warmup_iters*");
}

/* What the optimizer's momentum has a part in. */
static void
test_momentum_refused (void)
{
  /* 0.9 / 0.9 = 1 */
  assert_refused_when ("momentum_config: {policy: step, step: 3, warmup: linear, warmup_iters: 3}\n",
                       "*start from a momentum of 1*warmup_ratio above 0.9*", FALSE);
  assert_refused_when ("momentum_config: {policy: cyclic, target_ratio: [1.2, 1]}\n",
                       "*rise to 1.08*below 1*", FALSE);
  assert_refused_when ("momentum_config: {policy: OneCycle, max_momentum: 1}\n", "*rise to 1*", FALSE);
  assert_refused_when ("momentum_config: {policy: CosineAnnealing, min_momentum: 1.5}\n", "*rise to 1.5*",
                       FALSE);
}

static void
test_no_momentum (void)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;

  fake_run_open (&run,
                 "optimizer: {type: SGD, lr: 0.1}\nrunner: {type: IterBasedRunner, max_iters: 3}\n"
                 "momentum_config: {policy: OneCycle}\n",
                 3, NULL);
  g_assert_false (rn_runner_init (run.runner, &error));
  g_assert_nonnull (strstr (error->message, "optimizer.momentum: 0.9"));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  rn_hook_register (&rn_hook_desc_probe, &error);
  g_assert_no_error (error);
  g_test_add_func ("/hooks/lr-updater/golden", test_golden);
  g_test_add_func ("/hooks/lr-updater/together", test_together);
  g_test_add_func ("/hooks/lr-updater/auto", test_auto);
  g_test_add_func ("/hooks/lr-updater/type", test_type);
  g_test_add_func ("/hooks/lr-updater/override", test_override);
  g_test_add_func ("/hooks/lr-updater/no-schedule", test_no_schedule);
  g_test_add_func ("/hooks/lr-updater/resume", test_resume);
  g_test_add_func ("/hooks/lr-updater/by-step", test_by_step);
  g_test_add_func ("/hooks/lr-updater/refused", test_refused);
  g_test_add_func ("/hooks/lr-updater/momentum-refused", test_momentum_refused);
  g_test_add_func ("/hooks/lr-updater/no-momentum", test_no_momentum);
  return g_test_run ();
}
