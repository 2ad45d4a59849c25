/*
 * validation.c: a val item of the workflow: the loss on the validation data, with no gradient, no step and no
 * change of a statistic.
 *
 * In a run counted in epochs it takes whole passes of the data, in one counted in iterations so many batches
 * of a stream that begins again at its end and goes on in the next val item. Every pass has the same order
 * and the same random choices, so that its losses can be compared. A pass that was broken off is done again
 * when the run is taken up.
 */
#include "config.h"

#include "runner/loop-private.h"
#include "runner/place.h"

#include "runner/base/error.h"

/* NULL without error at the end of the data. */
static const RnBatch *
next_batch (RnRunner *runner, gint64 position, GError **error)
{
  RnTask *task = runner->task;

  if (!runner->is_val_open)
    task->vtbl->seek (task, RN_TASK_VAL, 0, position);
  runner->is_val_open = TRUE;
  return rn_runner_next_batch (runner, RN_TASK_VAL, error);
}

/* The next one of the stream. Unreadable images may have ended the data before their time. */
static const RnBatch *
next_of_stream (RnRunner *runner, gint64 *position, GError **error)
{
  GError *cause = NULL;
  const RnBatch *batch = next_batch (runner, *position, &cause);

  if (batch == NULL && cause == NULL && *position > 0)
    {
      *position = 0;
      runner->is_val_open = FALSE;
      batch = next_batch (runner, 0, &cause);
    }
  if (cause != NULL)
    g_propagate_error (error, cause);
  return batch;
}

static gboolean
run_batch (RnRunner *runner, GError **error)
{
  if (!rn_runner_call_stage (runner, RN_STAGE_BEFORE_VAL_ITER, error)
      || !rn_runner_forward (runner, RN_MODE_LOSS, 1, error))
    return FALSE;
  return rn_runner_call_stage (runner, RN_STAGE_AFTER_VAL_ITER, error);
}

/* *@position moves with the stream. *@is_whole: all of it was done. */
static gboolean
run_batches (RnRunner *runner, gint64 *position, gboolean *is_whole, GError **error)
{
  RnTask *task = runner->task;

  *is_whole = FALSE;
  while (runner->val_inner_iter < runner->val_item_length)
    {
      GError *cause = NULL;
      if (rn_runner_must_leave (runner))
        return TRUE;
      runner->batch = runner->is_by_epoch ? next_batch (runner, *position, &cause)
                                          : next_of_stream (runner, position, &cause);
      if (runner->batch == NULL && cause == NULL && runner->val_inner_iter > 0)
        break;
      if (runner->batch == NULL)
        {
          if (cause == NULL)
            cause = g_error_new (RN_RUN_ERROR, RN_RUN_ERROR_FAILED, "there is no batch of validation data");
          g_propagate_error (error, cause);
          return FALSE;
        }
      gboolean is_ok = run_batch (runner, error);
      task->vtbl->release (task, RN_TASK_VAL, runner->batch);
      runner->batch = NULL;
      if (!is_ok)
        return FALSE;
      runner->val_inner_iter++;
      if (++*position == task->val_length)
        {
          *position = 0;
          runner->is_val_open = FALSE;
        }
    }
  *is_whole = TRUE;
  return TRUE;
}

/* One pass, or one item of a run counted in iterations. */
static gboolean
run_pass (RnRunner *runner, GError **error)
{
  const RnWorkflowItem *item = rn_place_item (runner);
  gint64 position = runner->now.val_batch;
  gboolean is_whole;

  runner->val_item_length = runner->is_by_epoch ? runner->task->val_length : item->n;
  runner->val_inner_iter = 0;
  rn_log_means_reset (runner->val_log);
  if (runner->is_by_epoch)
    runner->is_val_open = FALSE;
  if (!rn_runner_call_stage (runner, RN_STAGE_BEFORE_VAL_EPOCH, error)
      || !run_batches (runner, &position, &is_whole, error))
    return FALSE;
  if (!is_whole)
    return TRUE;
  if (!rn_runner_call_stage (runner, RN_STAGE_AFTER_VAL_EPOCH, error))
    return FALSE;
  if (!runner->is_by_epoch)
    runner->now.val_batch = position;
  rn_place_advance (runner, runner->is_by_epoch ? 1 : item->n);
  return TRUE;
}

gboolean
rn_runner_validate (RnRunner *runner, GError **error)
{
  const RnTaskVtbl *task = runner->task->vtbl;

  /* The mean of the weights is what evaluations look at too. */
  if (runner->uses_ema && !task->swap_ema (runner->task, error))
    return FALSE;
  runner->is_ema_in_place = runner->uses_ema;
  runner->is_validating = TRUE;
  gboolean is_ok = run_pass (runner, error);
  runner->is_validating = FALSE;
  if (runner->is_ema_in_place && !task->swap_ema (runner->task, is_ok ? error : NULL))
    is_ok = FALSE;
  runner->is_ema_in_place = FALSE;
  /* Only now do the weights lie where a checkpoint looks for them. */
  return is_ok && rn_runner_flush (runner, error);
}
