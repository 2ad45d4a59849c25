/*
 * loop.c: the loop of a run.
 *
 * Where a run stands is (epoch, inner_iter): so many passes done, and so many iterations of the next one. A
 * run that is taken up in the middle of a pass enters it with before_train_epoch, as the run did that began
 * it. after_train_epoch comes after a whole pass only; a run that ends in the middle of one goes straight to
 * after_run.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/runner-private.h"

#include "runner/base/error.h"
#include "runner/base/signals.h"

#include <math.h>

#define MAX_BAD_LOSSES 10 /* iterations in a row */

static gboolean
call_stage (RnRunner *runner, RnStage stage, GError **error)
{
  runner->stage = stage;
  g_clear_pointer (&runner->scores, rn_record_free);
  return rn_hook_list_call (runner->hooks, stage, runner, error);
}

/* Hooks may ask for the end at any time, the system too. */
static gboolean
must_leave (RnRunner *runner)
{
  if (runner->signal == 0)
    runner->signal = rn_signals_pending ();
  return runner->signal != 0 || runner->is_stopped;
}

static gboolean
is_finished (const RnRunner *runner)
{
  /* A signal may have come between the last iteration of a pass and its after_train_epoch. */
  return runner->now.iter >= runner->max_iters && runner->now.inner_iter < runner->task->epoch_length;
}

/* Once the weights are NaN no iteration brings them back, and checkpoints of them are worth nothing. */
static gboolean
check_loss (RnRunner *runner, double loss, GError **error)
{
  if (isfinite (loss))
    {
      runner->n_bad_losses = 0;
      return TRUE;
    }
  runner->n_bad_losses++;
  if (runner->n_bad_losses == 1)
    g_warning ("the loss of iteration %" G_GINT64_FORMAT
               " is %g; what usually helps: a smaller optimizer.lr, lr_config.warmup: linear, "
               "optimizer_config.grad_clip: {max_norm: 35}",
               runner->now.iter + 1, loss);
  if (runner->n_bad_losses < MAX_BAD_LOSSES)
    return TRUE;
  g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
               "the loss has been NaN or infinite for %d iterations, to %" G_GINT64_FORMAT
               ": it does not come back from there. What usually helps: a smaller optimizer.lr (it is %g), "
               "lr_config.warmup: linear, optimizer_config.grad_clip: {max_norm: 35}; then start anew, or "
               "--resume=FILE from a checkpoint of before",
               MAX_BAD_LOSSES, runner->now.iter + 1, rn_optimizer_lr (runner->optimizer));
  return FALSE;
}

static gboolean
log_losses (RnRunner *runner, GError **error)
{
  for (const char *const *name = runner->task->loss_names; *name != NULL; name++)
    rn_runner_log (runner, *name, rn_runner_loss (runner, *name));
  double loss = rn_runner_loss (runner, "loss");
  rn_runner_log (runner, "loss", loss);
  return check_loss (runner, loss, error);
}

static gboolean
forward (RnRunner *runner, GError **error)
{
  gint64 start = g_get_monotonic_time ();

  float scale = (float) ((double) runner->grad_scale * runner->loss_weight);
  if (!runner->task->vtbl->forward (runner->task, runner->batch, RN_MODE_TRAIN, scale, error))
    {
      g_prefix_error (error, "iteration %" G_GINT64_FORMAT ": ", runner->now.iter + 1);
      return FALSE;
    }
  rn_runner_log (runner, "forward_time", (double) (g_get_monotonic_time () - start) / 1e6);
  return log_losses (runner, error);
}

static gboolean
run_iter (RnRunner *runner, GError **error)
{
  const RnTaskVtbl *task = runner->task->vtbl;
  GError *cause = NULL;

  runner->batch = task->next (runner->task, RN_TASK_TRAIN, &cause);
  if (runner->batch == NULL)
    {
      if (cause == NULL)
        cause = g_error_new (RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
                             "the data ended in iteration %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT,
                             runner->now.inner_iter + 1, runner->task->epoch_length);
      g_propagate_error (error, cause);
      return FALSE;
    }
  runner->grad_scale = 1;
  runner->loss_weight = 1;
  runner->is_backward_done = runner->has_step_grads = FALSE;
  gboolean is_ok = call_stage (runner, RN_STAGE_BEFORE_TRAIN_ITER, error) && forward (runner, error)
                   && call_stage (runner, RN_STAGE_AFTER_TRAIN_ITER, error);
  task->release (runner->task, RN_TASK_TRAIN, runner->batch);
  runner->batch = NULL;
  if (!is_ok)
    return FALSE;

  runner->now.iter++;
  runner->now.inner_iter++;
  return rn_runner_flush_checkpoints (runner, error);
}

/* One pass of the data, or what is left of it. */
static gboolean
run_epoch (RnRunner *runner, GError **error)
{
  RnTask *task = runner->task;

  task->vtbl->seek (task, RN_TASK_TRAIN, (guint64) runner->now.epoch, runner->now.inner_iter);
  if (!call_stage (runner, RN_STAGE_BEFORE_TRAIN_EPOCH, error))
    return FALSE;
  while (runner->now.inner_iter < task->epoch_length && runner->now.iter < runner->max_iters
         && !must_leave (runner))
    if (!run_iter (runner, error))
      return FALSE;
  if (runner->now.inner_iter < task->epoch_length || must_leave (runner))
    return TRUE;

  if (!call_stage (runner, RN_STAGE_AFTER_TRAIN_EPOCH, error))
    return FALSE;
  runner->now.epoch++;
  runner->now.inner_iter = 0;
  return rn_runner_flush_checkpoints (runner, error);
}

static gboolean
run_all (RnRunner *runner, GError **error)
{
  if (!call_stage (runner, RN_STAGE_BEFORE_RUN, error) || !rn_runner_flush_checkpoints (runner, error))
    return FALSE;
  while (!is_finished (runner) && !must_leave (runner))
    if (!run_epoch (runner, error))
      return FALSE;
  return !must_leave (runner) || rn_runner_save_interrupted (runner, error);
}

gboolean
rn_runner_run (RnRunner *runner, GError **error)
{
  gboolean is_ok = run_all (runner, error);

  runner->stage = RN_STAGE_AFTER_RUN;
  if (!rn_hook_list_finish (runner->hooks, runner, is_ok ? error : NULL))
    is_ok = FALSE;
  return is_ok;
}
