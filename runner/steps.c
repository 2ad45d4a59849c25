/*
 * steps.c: engine.h: backward passes and steps of the optimizer.
 *
 * Of a guarded step the host does not know at once whether it was done. On a device with queues
 * (RnTask.has_late_results) it goes on, and waits when something asks for what depends on it, at the latest
 * when the next iteration begins; see losses.c, which does the same with the losses.
 */
#include "config.h"

#include "runner/loop-private.h"

#include "runner/base/trace.h"

/* For what only an update behind the backward pass leaves time for. */
static gboolean
check_gradients_kept (const RnRunner *runner, GError **error)
{
  return !runner->task->updates_in_backward
         || rn_hook_error (error, "memory.update: in_backward keeps no gradients and steps in the backward "
                                  "pass; what works: memory.update: after_backward");
}

gboolean
rn_runner_backward (RnRunner *runner, GError **error)
{
  gint64 start = g_get_monotonic_time ();

  if (!check_gradients_kept (runner, error))
    return FALSE;

  runner->is_backward_done = TRUE;
  if (!runner->task->vtbl->backward (runner->task, error))
    return FALSE;
  runner->times.backward += g_get_monotonic_time () - start;
  return TRUE;
}

void
rn_runner_skip_backward (RnRunner *runner)
{
  runner->is_backward_done = TRUE;
}

void
rn_runner_set_window_open (RnRunner *runner, gboolean is_open)
{
  runner->is_window_open = is_open;
}

gboolean
rn_runner_is_window_open (const RnRunner *runner)
{
  return runner->is_window_open;
}

gboolean
rn_runner_call_before_step (RnRunner *runner, double multiplier, GError **error)
{
  RnStage stage = runner->stage;

  if (!check_gradients_kept (runner, error))
    return FALSE;
  runner->stage = RN_STAGE_BEFORE_STEP;
  runner->has_step_grads = TRUE;
  runner->grad_multiplier = multiplier;
  gboolean is_ok = rn_hook_list_call (runner->hooks, RN_STAGE_BEFORE_STEP, runner, error);
  runner->stage = stage;
  return is_ok;
}

gboolean
rn_runner_grad_stats (RnRunner *runner, double norm_type, RnGradStats *stats, GError **error)
{
  if (!check_gradients_kept (runner, error)
      || !runner->task->vtbl->grad_stats (runner->task, norm_type, stats, error))
    return FALSE;
  rn_runner_settle (runner); /* they have come by now, and what is to be said of them comes first */
  return TRUE;
}

/* ---- A step ---- */

static void
note_step (RnRunner *runner)
{
  runner->has_optimizer_state = TRUE;
  runner->now.opt_step++;
}

/* @guarded: with what a step of rn_runner_step leaves out. */
static gboolean
update (RnRunner *runner, const RnGuardedStep *guarded, GError **error)
{
  gint64 start = g_get_monotonic_time (), trace_start = rn_trace_begin ();
  RnTaskUpdate update = {
    .lrs = runner->lrs,
    .momentum = runner->momentum,
    .grad_multiplier = guarded->grad_multiplier,
    .clip_value = guarded->clip_value,
    .is_first = !runner->has_optimizer_state,
    .max_norm = guarded->max_norm,
    .norm_type = guarded->norm_type,
    .checks_finite = guarded->checks_finite,
  };

  if (!check_gradients_kept (runner, error) || !runner->task->vtbl->update (runner->task, &update, error))
    return FALSE;
  rn_trace_end (trace_start, RN_TRACE_PHASE, "step", NULL);
  runner->times.step += g_get_monotonic_time () - start;
  return TRUE;
}

gboolean
rn_runner_step (RnRunner *runner, double grad_multiplier, double clip_value, GError **error)
{
  const RnGuardedStep step = { .grad_multiplier = grad_multiplier, .clip_value = clip_value };

  if (!update (runner, &step, error))
    return FALSE;
  note_step (runner);
  return TRUE;
}

/* ---- A step that the device decides on ---- */

gboolean
rn_runner_has_before_step (const RnRunner *runner)
{
  return rn_hook_list_has_stage (runner->hooks, RN_STAGE_BEFORE_STEP);
}

/* What the wait takes is a part of the step. */
static gboolean
wait_for_outcome (RnRunner *runner, RnStepOutcome *outcome, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  gboolean is_ok =
      runner->task->vtbl->settle_update (runner->task, &outcome->stats, &outcome->is_done, error);

  runner->times.step += g_get_monotonic_time () - start;
  if (!is_ok)
    g_prefix_error (error, "iteration %" G_GINT64_FORMAT ": ", outcome->iter + 1);
  return is_ok;
}

/* As in the iteration of the step: its gradients can be seen, and what is logged stands behind the losses. */
static gboolean
tell_outcome (RnRunner *runner, const RnStepOutcome *outcome, GError **error)
{
  RnDueStep *due = &runner->due_step;

  if (outcome->is_done)
    {
      if (due->step.checks_finite)
        note_step (runner);
      runner->has_step_grads = TRUE;
      runner->grad_multiplier = due->step.grad_multiplier;
    }
  due->is_told = TRUE;
  rn_log_buffer_set_place (runner->log_buffer, due->log_place);
  gboolean is_ok = due->step.settled (due->step.hook, runner, outcome, error);
  rn_log_buffer_set_place (runner->log_buffer, G_MAXUINT);
  due->is_told = FALSE;
  return is_ok;
}

/* *@is_known: the outcome is, so an error is one of the hook. */
static gboolean
settle (RnRunner *runner, gboolean *is_known, GError **error)
{
  RnStepOutcome outcome = { .iter = runner->due_step.iter };

  runner->due_step.is_due = FALSE;
  *is_known = wait_for_outcome (runner, &outcome, error);
  return *is_known && tell_outcome (runner, &outcome, error);
}

/* @read_only: as that of rn_runner_settle. */
void
rn_runner_settle_step (const RnRunner *read_only)
{
  RnRunner *runner = (RnRunner *) read_only;
  GError *cause = NULL;
  gboolean is_known;

  rn_runner_settle (runner); /* what is to be said of the losses comes first */
  if (!runner->due_step.is_due || settle (runner, &is_known, &cause))
    return;
  if (is_known)
    g_prefix_error (&cause, "%s: %s: ", runner->due_step.step.hook->desc->name,
                    rn_stage_name (RN_STAGE_AFTER_TRAIN_ITER));
  if (runner->late_fault == NULL)
    runner->late_fault = cause;
  else
    g_error_free (cause);
}

gboolean
rn_runner_check_step (RnRunner *runner, GError **error)
{
  rn_runner_settle_step (runner);
  return rn_runner_check_losses (runner, error);
}

gboolean
rn_runner_guarded_step (RnRunner *runner, const RnGuardedStep *step, GError **error)
{
  g_return_val_if_fail (step->max_norm > 0 || step->checks_finite, FALSE);
  if (!update (runner, step, error))
    return FALSE;
  if (!step->checks_finite) /* it is done whatever the statistics are */
    note_step (runner);
  runner->due_step = (RnDueStep){ .is_due = TRUE,
                                  .step = *step,
                                  .iter = runner->now.iter,
                                  .log_place = rn_log_buffer_size (runner->log_buffer) };
  gboolean is_known;
  return runner->task->has_late_results || settle (runner, &is_known, error);
}

/* ---- Steps in the backward pass ---- */

gboolean
rn_runner_updates_in_backward (const RnRunner *runner)
{
  return runner->task->updates_in_backward;
}

gboolean
rn_runner_backward_and_step (RnRunner *runner, const RnBackwardStep *step, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  RnTaskUpdate update = {
    .lrs = runner->lrs,
    .momentum = runner->momentum,
    .grad_multiplier = step->grad_multiplier,
    .clip_value = step->clip_value,
    .is_first = !runner->has_optimizer_state,
    .continues = !step->begins,
    .waits = !step->ends,
  };

  g_return_val_if_fail (runner->task->updates_in_backward, FALSE);
  runner->is_backward_done = TRUE;
  if (!runner->task->vtbl->backward_update (runner->task, &update, error))
    return FALSE;
  if (step->ends)
    note_step (runner);
  runner->times.backward += g_get_monotonic_time () - start;
  return TRUE;
}
