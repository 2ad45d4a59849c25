/*
 * What the runner and 12 hooks cost an iteration: a task of one tiny op, with every hook that an iteration
 * can have, against the same task in a bare loop. Run by `make bench`; the budget is 50 microseconds.
 */
#include "config.h"

#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"
#include "tests/tree.h"

#include <stdlib.h>
#include <string.h>

#define N_ITERS 20000
#define N_RUNS 5 /* the fastest one counts: the others were disturbed */
#define BUDGET_US 50
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF (n)

/* Each of these has a function in before_train_iter or after_train_iter, or both. */
static const char hooks[] = "runner: {type: IterBasedRunner, max_iters: " TEXT (
    N_ITERS) "}\n"
             "lr_config: {policy: CosineAnnealing, by_epoch: false, min_lr: 0, warmup: linear, warmup_iters: "
             "500}\n"
             "momentum_config: {policy: CosineAnnealing, by_epoch: false, min_momentum: 0.8}\n"
             "optimizer_config: {type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: "
             "dynamic, grad_clip: {max_norm: 35}}\n"
             "checkpoint_config: {by_epoch: false, interval: 1000000}\n"
             "evaluation: {by_epoch: false, interval: 1000000}\n"
             "log_config: {interval: 50, hooks: [{type: TextLoggerHook}, {type: TensorboardLoggerHook}]}\n"
             "custom_hooks: [{type: EMAHook}, {type: CheckInvalidLossHook}, {type: MemoryProfilerHook}, "
             "{type: ProfilerHook, by_epoch: false, schedule: {skip_first: "
             "1000000}}]\n";

static const double scores[] = { 0.5, 0.5 };

static double
microseconds_since (gint64 start)
{
  return (double) (g_get_monotonic_time () - start) / N_ITERS;
}

/* The task's part of an iteration. */
static double
time_bare (RnTask *task)
{
  const double lr = 0.001;
  const RnTaskVtbl *vtbl = task->vtbl;
  RnGradStats stats;
  gint64 start = g_get_monotonic_time ();

  for (gint64 i = 0; i < N_ITERS; i++)
    {
      if (i % task->epoch_length == 0)
        vtbl->seek (task, RN_TASK_TRAIN, (guint64) (i / task->epoch_length), 0);
      const RnBatch *batch = vtbl->next (task, RN_TASK_TRAIN, NULL);
      if (i % 4 == 0)
        vtbl->zero_grads (task, NULL);
      vtbl->forward (task, batch, RN_MODE_TRAIN, 0.25F, NULL);
      vtbl->backward (task, NULL);
      for (const char *const *name = task->loss_names; *name != NULL; name++)
        vtbl->loss (task, *name);
      if (i % 4 == 3)
        {
          RnTaskUpdate update = { .lrs = &lr, .momentum = 0.9, .grad_multiplier = 1, .is_first = i < 4 };
          vtbl->grad_stats (task, 2, &stats, NULL);
          vtbl->update (task, &update, NULL);
          vtbl->update_ema (task, 0.1, FALSE, NULL);
        }
      vtbl->release (task, RN_TASK_TRAIN, batch);
    }
  return microseconds_since (start);
}

static double
time_run (FakeRun *run)
{
  g_autoptr (GError) error = NULL;

  fake_run_open (run, hooks, 1000, NULL);
  run->fake.scores = scores;
  run->fake.n_scores = G_N_ELEMENTS (scores);
  if (!rn_runner_init (run->runner, &error))
    g_error ("%s", error->message);
  gint64 start = g_get_monotonic_time ();
  if (!rn_runner_run (run->runner, &error))
    g_error ("%s", error->message);
  return microseconds_since (start);
}

static void
drop_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
}

int
main (int argc, char **argv)
{
  double bare = G_MAXDOUBLE, with_hooks = G_MAXDOUBLE;

  g_log_set_handler (NULL, G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO, drop_message, NULL);
  g_log_set_default_handler (drop_message, NULL); /* the lines are made all the same */
  for (int i = 0; i < N_RUNS; i++)
    {
      FakeRun run;
      double now = time_run (&run);
      with_hooks = MIN (with_hooks, now);
      now = time_bare (&run.fake.task);
      bare = MIN (bare, now);
      if (i == 0)
        {
          g_autofree char *table = rn_runner_describe_hooks (run.runner);
          g_print ("%s\n", table);
        }
      remove_tree (run.dir);
      fake_run_close (&run);
    }
  g_print ("runner and 12 hooks: %.1f us an iteration, the task alone %.2f us (%.0f times as much); budget: "
           "%d us: %s\n",
           with_hooks, bare, with_hooks / bare, BUDGET_US, with_hooks <= BUDGET_US ? "kept" : "BROKEN");
  return with_hooks <= BUDGET_US ? EXIT_SUCCESS : EXIT_FAILURE;
}
