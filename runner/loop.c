/*
 * loop.c: the loop of a run.
 *
 * Where a run stands is (epoch, inner_iter): so many passes done, and so many iterations of the next one; and
 * its place in the workflow (place.h). A run that is taken up in the middle of a pass enters it with
 * before_train_epoch, as the run did that began it. after_train_epoch comes after a whole pass only; a run
 * that ends in the middle of one goes straight to after_run.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/loop-private.h"
#include "runner/place.h"
#include "runner/run-history.h"

#include "runner/base/error.h"
#include "runner/base/signals.h"

gboolean
rn_runner_call_stage (RnRunner *runner, RnStage stage, GError **error)
{
  rn_times_begin_hooks (&runner->times);
  runner->stage = stage;
  g_clear_pointer (&runner->scores, rn_record_free);
  gboolean is_ok = rn_hook_list_call (runner->hooks, stage, runner, error);
  rn_times_end_hooks (&runner->times);
  return is_ok;
}

gboolean
rn_runner_flush (RnRunner *runner, GError **error)
{
  if (runner->pending->len == 0)
    return TRUE;
  rn_times_begin_hooks (&runner->times);
  gboolean is_ok = rn_runner_flush_checkpoints (runner, error);
  rn_times_end_hooks (&runner->times);
  return is_ok;
}

gboolean
rn_runner_must_leave (RnRunner *runner)
{
  if (runner->signal == 0)
    runner->signal = rn_signals_pending ();
  return runner->signal != 0 || runner->is_stopped;
}

const RnBatch *
rn_runner_next_batch (RnRunner *runner, RnTaskData data, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  const RnBatch *batch = runner->task->vtbl->next (runner->task, data, error);

  runner->times.data += g_get_monotonic_time () - start;
  return batch;
}

void
rn_runner_name_iter (const RnRunner *runner, GError **error)
{
  g_prefix_error (error, "%siteration %" G_GINT64_FORMAT ": ", runner->is_validating ? "validation, " : "",
                  (runner->is_validating ? runner->val_inner_iter : runner->now.iter) + 1);
}

gboolean
rn_runner_forward (RnRunner *runner, RnMode mode, float grad_scale, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  gboolean is_ok = runner->task->vtbl->forward (runner->task, runner->batch, mode, grad_scale, error);

  runner->times.forward += g_get_monotonic_time () - start;
  if (!is_ok)
    rn_runner_name_iter (runner, error);
  return is_ok && rn_runner_expect_losses (runner, error);
}

static gboolean
forward_train (RnRunner *runner, GError **error)
{
  float scale = (float) ((double) runner->grad_scale * runner->loss_weight);

  return rn_runner_forward (runner, RN_MODE_TRAIN, scale, error);
}

/* A signal ahead of the very first step, perhaps in an evaluation of the weights as they begin: the run has
 * nothing to save, and one that begins anew is the same. */
static gboolean
leaves_untouched (RnRunner *runner)
{
  if (runner->now.iter > 0 || !rn_runner_must_leave (runner) || runner->signal == 0)
    return FALSE;
  runner->saved_at = runner->now;
  return TRUE;
}

/* *@is_left: the iteration was not begun. */
static gboolean
train_batch (RnRunner *runner, gboolean *is_left, GError **error)
{
  runner->grad_scale = 1;
  runner->loss_weight = 1;
  runner->is_backward_done = runner->has_step_grads = FALSE;
  if (!rn_runner_call_stage (runner, RN_STAGE_BEFORE_TRAIN_ITER, error) || !rn_runner_flush (runner, error))
    return FALSE;
  *is_left = leaves_untouched (runner);
  if (*is_left)
    return TRUE;
  if (!forward_train (runner, error))
    return FALSE;
  gboolean is_ok = rn_runner_call_stage (runner, RN_STAGE_AFTER_TRAIN_ITER, error);
  return rn_runner_check_losses (runner, error) && is_ok; /* where they failed, hooks may have, for it */
}

/* Of a failed iteration with checkpoints to write: is its step done, and did a hook fail that comes behind?
 */
static gboolean
is_iter_whole (const RnRunner *runner)
{
  const RnHook *failed = rn_hook_list_failed (runner->hooks);

  return runner->pending->len > 0 && failed != NULL && runner->stage == RN_STAGE_AFTER_TRAIN_ITER
         && runner->is_backward_done && !g_str_has_suffix (failed->desc->name, "OptimizerHook");
}

/* Writes the checkpoints that a stage asked for, also those that were asked for before one of its hooks
 * failed: an evaluation that fails must not cost the epoch. */
static gboolean
flush_after (RnRunner *runner, gboolean is_ok, GError **error)
{
  return rn_runner_flush (runner, is_ok ? error : NULL) && is_ok;
}

static gboolean
run_iter (RnRunner *runner, GError **error)
{
  RnTask *task = runner->task;
  GError *cause = NULL;

  runner->batch = rn_runner_next_batch (runner, RN_TASK_TRAIN, &cause);
  if (runner->batch == NULL)
    {
      if (cause == NULL)
        cause = g_error_new (RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
                             "the data ended in iteration %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT,
                             runner->now.inner_iter + 1, task->epoch_length);
      g_propagate_error (error, cause);
      return FALSE;
    }
  gboolean is_left = FALSE;
  gboolean is_ok = rn_runner_check_step (runner, error) && train_batch (runner, &is_left, error);
  task->vtbl->release (task, RN_TASK_TRAIN, runner->batch);
  runner->batch = NULL;
  if (is_left || (!is_ok && !is_iter_whole (runner)))
    return is_ok;

  runner->now.iter++;
  runner->now.inner_iter++;
  if (!runner->is_by_epoch)
    rn_place_advance (runner, 1);
  return flush_after (runner, is_ok, error);
}

/* A pass stays open while a run counted in iterations validates in the middle of it. */
static gboolean
open_pass (RnRunner *runner, GError **error)
{
  RnTask *task = runner->task;

  if (runner->is_pass_open)
    return TRUE;
  runner->is_pass_open = TRUE;
  task->vtbl->seek (task, RN_TASK_TRAIN, (guint64) runner->now.epoch, runner->now.inner_iter);
  return rn_runner_call_stage (runner, RN_STAGE_BEFORE_TRAIN_EPOCH, error) && rn_runner_flush (runner, error);
}

static gboolean
close_pass (RnRunner *runner, GError **error)
{
  if (!rn_runner_check_step (runner, error))
    return FALSE;
  gboolean is_ok = rn_runner_call_stage (runner, RN_STAGE_AFTER_TRAIN_EPOCH, error);
  if (!is_ok && runner->pending->len == 0)
    return FALSE;
  runner->is_pass_open = FALSE;
  runner->now.epoch++;
  runner->now.inner_iter = 0;
  if (runner->is_by_epoch)
    rn_place_advance (runner, 1);
  return flush_after (runner, is_ok, error);
}

static gboolean
is_pass_done (const RnRunner *runner)
{
  return runner->now.inner_iter == runner->task->epoch_length;
}

static gboolean
train (RnRunner *runner, GError **error)
{
  if (!open_pass (runner, error))
    return FALSE;
  if (rn_runner_must_leave (runner))
    return TRUE;
  return is_pass_done (runner) ? close_pass (runner, error) : run_iter (runner, error);
}

/* The next thing to do. A signal may have come between the last iteration of a pass and its
 * after_train_epoch: that comes first, whatever the workflow has next. */
static gboolean
go_on (RnRunner *runner, GError **error)
{
  if (is_pass_done (runner))
    return train (runner, error);
  if (rn_place_item (runner)->is_val)
    return rn_runner_check_step (runner, error) && rn_runner_validate (runner, error);
  if (runner->now.iter < runner->max_iters)
    return train (runner, error);
  rn_place_leave (runner);
  return TRUE;
}

/* A train item ends early when the run has all its iterations; the val items behind it are still done. But an
 * epoch that max_iters cuts short has no validation. */
static gboolean
is_finished (const RnRunner *runner)
{
  if (runner->now.iter < runner->max_iters || is_pass_done (runner))
    return FALSE;
  return rn_place_is_start (runner) || (runner->is_by_epoch && runner->now.inner_iter > 0);
}

static gboolean
run_all (RnRunner *runner, GError **error)
{
  if (!rn_runner_call_stage (runner, RN_STAGE_BEFORE_RUN, error) || !rn_runner_flush (runner, error))
    return FALSE;
  while (!rn_runner_must_leave (runner) && !is_finished (runner))
    if (!go_on (runner, error))
      return FALSE;
  if (!rn_runner_check_step (runner, error))
    return FALSE;
  if (runner->is_stopped && runner->signal == 0 && runner->now.iter < runner->max_iters)
    g_message ("a hook ended the run: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " iterations are done",
               runner->now.iter, runner->max_iters);
  if (rn_runner_must_leave (runner))
    return rn_runner_save_interrupted (runner, error);
  if (runner->n_bad_losses == 0)
    return TRUE;
  g_set_error_literal (
      error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
      "the run ends with a loss that is not finite, and without a checkpoint of its end; " RN_LOSS_HELP);
  return FALSE;
}

gboolean
rn_runner_run (RnRunner *runner, GError **error)
{
  rn_run_history_begin (runner);
  gboolean is_ok = run_all (runner, error);

  runner->stage = RN_STAGE_AFTER_RUN;
  if (!rn_hook_list_finish (runner->hooks, runner, is_ok ? error : NULL))
    is_ok = FALSE;
  return is_ok && rn_runner_flush (runner, error);
}
