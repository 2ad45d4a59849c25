/*
 * losses.c: the losses of an iteration, from the task to the log.
 *
 * On a device with queues they may come late (RnTask.has_late_results): then the host goes on, and they are
 * waited for, looked at and logged when anything asks for them or for the log, at the latest behind the hooks
 * of the iteration. Nobody sees a difference, but in when the host waits.
 */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/loop-private.h"

#include "runner/base/error.h"

#include <math.h>

#define MAX_BAD_LOSSES 10 /* iterations in a row */

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
    g_warning ("the loss of iteration %" G_GINT64_FORMAT " is %s; " RN_LOSS_HELP, runner->now.iter + 1,
               isnan (loss) ? "NaN" : "infinite");
  if (runner->n_bad_losses < MAX_BAD_LOSSES)
    return TRUE;
  g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
               "the loss has been NaN or infinite for %d iterations, to %" G_GINT64_FORMAT
               ": it does not come back from there. optimizer.lr is %g; " RN_LOSS_HELP
               "; then start anew, or --resume=FILE from a checkpoint of before",
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
  return runner->is_validating || check_loss (runner, loss, error);
}

/* What the wait takes is a part of the forward pass. */
static gboolean
wait_for_losses (RnRunner *runner, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  gboolean is_ok = runner->task->vtbl->settle (runner->task, error);

  runner->times.forward += g_get_monotonic_time () - start;
  if (!is_ok)
    rn_runner_name_iter (runner, error);
  return is_ok;
}

/* @read_only: who reads the log of a run means the one that it has with its losses. */
void
rn_runner_settle (const RnRunner *read_only)
{
  RnRunner *runner = (RnRunner *) read_only;

  if (!runner->has_due_losses)
    return;
  runner->has_due_losses = FALSE;
  if (!runner->task->has_late_results || wait_for_losses (runner, &runner->late_fault))
    log_losses (runner, &runner->late_fault);
  if (runner->due_step.is_due)
    runner->due_step.log_place = rn_log_buffer_size (runner->log_buffer);
}

gboolean
rn_runner_check_losses (RnRunner *runner, GError **error)
{
  rn_runner_settle (runner);
  if (runner->late_fault == NULL)
    return TRUE;
  g_clear_error (error);
  g_propagate_error (error, g_steal_pointer (&runner->late_fault));
  return FALSE;
}

/* An error ends the run behind several bad losses only: behind one of them nothing may come late any more,
 * for the hooks of the last one are not called. */
gboolean
rn_runner_expect_losses (RnRunner *runner, GError **error)
{
  gboolean can_wait = runner->task->has_late_results && !runner->is_validating && runner->n_bad_losses == 0;

  G_STATIC_ASSERT (MAX_BAD_LOSSES > 1);
  runner->has_due_losses = TRUE;
  return can_wait || rn_runner_check_losses (runner, error);
}
