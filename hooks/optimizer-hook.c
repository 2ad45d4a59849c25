/* optimizer-hook.c: what an iteration does to gradients and weights. */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/optimizer-hook.h"

/* ---- Configuration ---- */

/* The node of a key that was given in the file. */
static const RnNode *
key_node (const RnOptimizerHook *self, const char *key)
{
  return self->hook.config != NULL ? rn_node_get (self->hook.config, key) : NULL;
}

/* MMCV 1.7 has none of what makes windows better here. */
static gboolean
check_compat (const RnOptimizerHook *self, GError **error)
{
  const RnAccumulationConfig *keys = &self->accumulation;
  const RnNode *pending = key_node (self, "save_pending");
  const char *key = keys->tail != RN_TAIL_AVERAGE           ? "tail"
                    : keys->flush_at_epoch_end              ? "flush_at_epoch_end"
                    : keys->normalize != RN_NORMALIZE_MICRO ? "normalize"
                    : pending != NULL && keys->save_pending ? "save_pending"
                                                            : NULL;

  if (keys->compat == 0 || key == NULL)
    return TRUE;
  return rn_node_error (key_node (self, key), error,
                        "MMCV 1.7 does not have it; leave out this key, or `compat: mmcv-1.7`");
}

gboolean
rn_optimizer_hook_prepare (RnHook *hook, RnWants *wants, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;

  if (self->has_clip && !rn_grad_clip_check (&self->clip, key_node (self, "grad_clip"), error))
    return FALSE;
  return check_compat (self, error)
         && (!rn_optimizer_hook_is_scaled (self)
             || rn_loss_scale_read (&self->scaling, hook->config, &self->scaler, error));
}

gboolean
rn_optimizer_hook_init (RnHook *hook, RnRunner *runner, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;
  const RnAccumulationConfig *keys = &self->accumulation;

  self->windows = (RnAccumulation){
    .n_iters = MAX (keys->cumulative_iters, 1),
    .max_iters = rn_runner_max_iters (runner),
    .epoch_length = rn_runner_epoch_length (runner),
    .tail = (RnTail) keys->tail,
    .flush_at_epoch_end = keys->flush_at_epoch_end,
    .is_mmcv = keys->compat != 0,
  };
  gint64 n_steps = rn_accumulation_n_steps (&self->windows);
  if (n_steps == 0)
    return rn_node_error (key_node (self, "tail"), error,
                          "no window of this run has its %" G_GINT64_FORMAT
                          " iterations, so no step would be done; what works: tail: average",
                          self->windows.n_iters);
  if (keys->schedule_by != 0)
    rn_runner_set_schedule (runner, n_steps);
  return TRUE;
}

/* ---- An iteration ---- */

/* What the mean of the running batch is multiplied by to become its part of the window's sum. */
static double
batch_weight (const RnOptimizerHook *self, const RnRunner *runner)
{
  const RnBatch *batch = rn_runner_batch (runner);

  switch ((RnNormalize) self->accumulation.normalize)
    {
    case RN_NORMALIZE_SAMPLES:
      return MAX (batch->n, 1);
    case RN_NORMALIZE_POSITIVES:
      return MAX ((double) batch->avg_factor, 1);
    case RN_NORMALIZE_MICRO:
      break;
    }
  return 1;
}

static gboolean
begin_window (RnOptimizerHook *self, RnRunner *runner, const RnWindow *window, GError **error)
{
  self->pending = (RnPending){
    .begin = window->begin,
    .factor = self->accumulation.normalize == RN_NORMALIZE_MICRO ? window->factor : 1,
    .scale = rn_optimizer_hook_scale (self),
    .n_iters = self->windows.n_iters,
    .normalize = self->accumulation.normalize,
  };
  return rn_runner_zero_grads (runner, error);
}

gboolean
rn_optimizer_hook_before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;
  gint64 iter = rn_runner_iter (runner);
  RnWindow window = rn_accumulation_window (&self->windows, iter);

  if (window.is_dropped)
    return TRUE;
  if (iter == window.begin && !begin_window (self, runner, &window, error))
    return FALSE;
  double scale = self->pending.scale * batch_weight (self, runner) / (double) self->pending.factor;
  rn_runner_set_grad_scale (runner, (float) scale);
  return TRUE;
}

/* What makes the sum of a window the gradient of its step. */
static double
window_multiplier (const RnOptimizerHook *self, const RnWindow *window)
{
  double multiplier = 1 / self->pending.scale;

  if (self->accumulation.normalize == RN_NORMALIZE_MICRO)
    return multiplier;
  if (window->is_tail && self->windows.tail == RN_TAIL_SCALE)
    multiplier *= (double) self->pending.n_micro / (double) self->windows.n_iters;
  return multiplier / self->pending.total;
}

/* The gradients of the window that ended in iteration @iter are not finite: there was no step. */
static gboolean
note_skip (RnOptimizerHook *self, gint64 iter, GError **error)
{
  double scale = self->scaler.scale;

  rn_loss_scaler_update (&self->scaler, TRUE);
  if (self->scaler.n_stuck == 0)
    g_message ("iteration %" G_GINT64_FORMAT
               ": gradients overflow, this step is skipped; the loss scale goes from %g to %g",
               iter + 1, scale, self->scaler.scale);
  if (self->scaler.n_stuck == 1)
    g_warning ("iteration %" G_GINT64_FORMAT
               ": gradients overflow, this step is skipped; the loss scale stays %g; what usually helps: %s",
               iter + 1, scale,
               self->scaler.form == RN_SCALER_STATIC ? "loss_scale: dynamic, or a smaller number"
                                                     : "a smaller min_scale, a smaller learning rate");
  if (self->scaler.n_stuck < self->scaling.max_skips)
    return TRUE;
  return rn_hook_error (
      error,
      "gradients have overflowed in %" G_GINT64_FORMAT " steps in a row, to iteration %" G_GINT64_FORMAT
      ", with the loss scale %g (max_skips); what usually helps: %s, or a smaller "
      "learning rate",
      self->scaler.n_stuck, iter + 1, scale,
      self->scaler.form == RN_SCALER_STATIC ? "loss_scale: dynamic" : "a smaller min_scale");
}

/* What an iteration logs: of the window of @pending. */
static void
log_window (const RnOptimizerHook *self, RnRunner *runner, const RnPending *pending)
{
  if (self->accumulation.cumulative_iters > 1)
    rn_runner_log_latest (runner, "micro_batches", (double) pending->n_micro);
  if (!rn_optimizer_hook_is_scaled (self))
    return;
  rn_runner_log_latest (runner, "loss_scale", pending->scale);
  rn_runner_log_latest (runner, "skipped", (double) self->scaler.n_skipped);
}

/* What follows from the outcome of a step, when it is known. */
static gboolean
step_settled (RnHook *hook, RnRunner *runner, const RnStepOutcome *outcome, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;
  const RnGuardedStep *step = &self->step;

  if (!outcome->is_done && !note_skip (self, outcome->iter, error))
    return FALSE;
  if (outcome->is_done && step->checks_finite)
    rn_loss_scaler_update (&self->scaler, FALSE);
  if (outcome->is_done && step->max_norm > 0)
    rn_runner_log (runner, "grad_norm", outcome->stats.norm * step->grad_multiplier);
  log_window (self, runner, &self->stepped);
  return TRUE;
}

/* The check of a step that hooks have to see the gradients of, ahead of them. */
static gboolean
check_finite (RnOptimizerHook *self, RnRunner *runner, gboolean *is_finite, GError **error)
{
  RnGradStats stats;

  if (!rn_runner_grad_stats (runner, INFINITY, &stats, error))
    return FALSE;
  *is_finite = isfinite (stats.max_abs);
  if (!*is_finite)
    return note_skip (self, rn_runner_iter (runner), error);
  rn_loss_scaler_update (&self->scaler, FALSE);
  return TRUE;
}

/* Unscale, finite check, clip, step; what the iteration logs. */
static gboolean
finish_window (RnOptimizerHook *self, RnRunner *runner, const RnWindow *window, GError **error)
{
  gboolean is_finite = TRUE;
  RnGuardedStep step = { .grad_multiplier = window_multiplier (self, window),
                         .norm_type = INFINITY,
                         .checks_finite = rn_optimizer_hook_is_scaled (self),
                         .settled = step_settled,
                         .hook = &self->hook };

  if (self->has_clip)
    rn_grad_clip_set (&self->clip, &step);
  if (step.checks_finite && rn_runner_has_before_step (runner))
    {
      step.checks_finite = FALSE;
      if (!check_finite (self, runner, &is_finite, error))
        return FALSE;
    }
  if (is_finite && !step.checks_finite && !rn_runner_call_before_step (runner, step.grad_multiplier, error))
    return FALSE;
  if (is_finite && (step.checks_finite || step.max_norm > 0))
    {
      self->step = step;
      self->stepped = self->pending;
      return rn_runner_guarded_step (runner, &step, error);
    }
  if (is_finite && !rn_runner_step (runner, step.grad_multiplier, step.clip_value, error))
    return FALSE;
  log_window (self, runner, &self->pending);
  return TRUE;
}

/* Backward pass and step in one, for this batch of the window. @is_last: there are no more. */
static gboolean
step_in_backward (RnOptimizerHook *self, RnRunner *runner, const RnWindow *window, gboolean is_last,
                  GError **error)
{
  RnGuardedStep step = { .grad_multiplier = window_multiplier (self, window) };

  if (self->has_clip)
    rn_grad_clip_set (&self->clip, &step);
  return rn_runner_backward_and_step (runner,
                                      &(RnBackwardStep){ .grad_multiplier = step.grad_multiplier,
                                                         .clip_value = step.clip_value,
                                                         .begins = self->pending.n_micro == 0,
                                                         .ends = is_last },
                                      error);
}

/* Backward pass of this batch of the window, and the step behind the last one; what they log. */
static gboolean
backward (RnOptimizerHook *self, RnRunner *runner, const RnWindow *window, gboolean is_last, GError **error)
{
  gboolean in_backward = rn_runner_updates_in_backward (runner);

  if (!(in_backward ? step_in_backward (self, runner, window, is_last, error)
                    : rn_runner_backward (runner, error)))
    return FALSE;
  self->pending.n_micro++;
  if (self->accumulation.normalize != RN_NORMALIZE_MICRO)
    self->pending.total += batch_weight (self, runner);
  if (!in_backward && is_last)
    return finish_window (self, runner, window, error);
  log_window (self, runner, &self->pending);
  return TRUE;
}

/* Whether checkpoints have what an open window has collected. In the momentum it is there in any case. */
static gboolean
saves_pending (const RnOptimizerHook *self, const RnRunner *runner)
{
  return rn_runner_updates_in_backward (runner)
         || (self->accumulation.save_pending && self->accumulation.compat == 0);
}

gboolean
rn_optimizer_hook_after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;
  gint64 iter = rn_runner_iter (runner);
  RnWindow window = rn_accumulation_window (&self->windows, iter);

  if (window.is_dropped)
    {
      rn_runner_skip_backward (runner);
      return TRUE;
    }
  if (!backward (self, runner, &window, iter + 1 == window.end, error))
    return FALSE;
  if (iter + 1 == window.end)
    self->pending.n_micro = 0;
  rn_runner_set_window_open (runner, self->pending.n_micro > 0 && saves_pending (self, runner));
  return TRUE;
}
