/* optimizer-resume.c: the state of the optimizer hooks in checkpoints, and what they say when a run begins.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/optimizer-hook.h"

/* ---- State ---- */

void
rn_optimizer_hook_save_state (RnHook *hook, RnRecord *state)
{
  const RnOptimizerHook *self = (const RnOptimizerHook *) hook;
  const RnPending *pending = &self->pending;

  if (rn_optimizer_hook_is_scaled (self))
    rn_loss_scale_save (&self->scaler, state);
  if (self->accumulation.cumulative_iters == 0)
    return;
  /* The tensors "pending/NAME" are sums of gradients that were multiplied by loss_scale and divided by
   * factor.
   */
  rn_record_set_int (state, "micro_batches", pending->n_micro);
  if (pending->n_micro == 0)
    return;
  rn_record_set_int (state, "window_begin", pending->begin);
  rn_record_set_int (state, "cumulative_iters", pending->n_iters);
  rn_record_set_int (state, "normalize", pending->normalize);
  rn_record_set_int (state, "factor", pending->factor);
  rn_record_set_float (state, "total", pending->total);
  rn_record_set_float (state, "loss_scale", pending->scale);
}

static gboolean
load_pending (RnPending *pending, const RnRecord *state, GError **error)
{
  *pending = (RnPending){ .n_micro = rn_record_int (state, "micro_batches", 0) };
  if (pending->n_micro == 0)
    return TRUE;
  pending->begin = rn_record_int (state, "window_begin", -1);
  pending->n_iters = rn_record_int (state, "cumulative_iters", -1);
  pending->normalize = (int) CLAMP (rn_record_int (state, "normalize", -1), -1, G_MAXINT);
  pending->factor = rn_record_int (state, "factor", -1);
  pending->total = rn_record_float (state, "total", NAN);
  pending->scale = rn_record_float (state, "loss_scale", NAN);
  gboolean is_counted = pending->normalize != RN_NORMALIZE_MICRO;
  if (pending->begin < 0 || pending->n_micro < 0 || pending->n_iters <= pending->n_micro
      || pending->begin > G_MAXINT64 - pending->n_iters || pending->factor < 1
      || !(pending->total >= (is_counted ? (double) pending->n_micro : 0) && isfinite (pending->total))
      || !(pending->scale > 0 && isfinite (pending->scale)))
    return rn_hook_error (error, "the state of the accumulation is damaged");
  return TRUE;
}

gboolean
rn_optimizer_hook_load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;

  if (!load_pending (&self->loaded, state, error)
      || (rn_optimizer_hook_is_scaled (self)
          && !rn_loss_scale_load (&self->scaler, self->scaling.reset_scale, state, error)))
    return FALSE;
  self->has_loaded = TRUE;
  return TRUE;
}

/* ---- Resume ---- */

/* Why the gradients that a window began with cannot be used, or NULL if they can. @window: the one of the
 * next iteration, as it is if they can. (transfer full) */
static char *
find_obstacle (const RnOptimizerHook *self, const RnRunner *runner, const RnWindow *window)
{
  const RnPending *loaded = &self->loaded;
  double scale = rn_optimizer_hook_scale (self);

  if (self->has_loaded && loaded->n_micro > 0 && rn_runner_updates_in_backward (runner)
      && !rn_runner_has_part_of_step (runner))
    return g_strdup ("memory.update: in_backward has no place for them");
  if (!self->has_loaded || loaded->n_micro == 0 || !rn_runner_is_window_open (runner))
    return g_strdup (rn_runner_has_part_of_step (runner) ? "another optimizer hook began it"
                                                         : "the checkpoint does not have them");
  if (self->windows.is_mmcv)
    return g_strdup ("compat: mmcv-1.7 does not take them up");
  if (loaded->n_iters != self->windows.n_iters)
    return g_strdup_printf ("cumulative_iters is %" G_GINT64_FORMAT " and was %" G_GINT64_FORMAT,
                            self->windows.n_iters, loaded->n_iters);
  if (loaded->normalize != self->accumulation.normalize)
    return g_strdup ("normalize has changed");
  if (loaded->scale != scale)
    return g_strdup_printf ("the loss scale is %g and was %g", scale, loaded->scale);
  gint64 factor = loaded->normalize == RN_NORMALIZE_MICRO ? window->factor : 1;
  if (rn_runner_has_part_of_step (runner) && window->is_dropped)
    return g_strdup ("tail: drop would leave it unfinished");
  if (loaded->begin != window->begin || loaded->begin + loaded->n_micro != rn_runner_iter (runner)
      || loaded->factor != factor)
    return g_strdup ("the window has changed with tail, flush_at_epoch_end or the length of the run");
  return NULL;
}

/* The weight of the step that MMCV does after such a resume. */
static void
warn_of_mmcv (const RnWindow *window)
{
  g_warning ("resume: as MMCV 1.7, the step of iterations %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
             " has the weight %g, for want of the gradients before them",
             window->begin + 1, window->end,
             (double) (window->end - window->begin) / (double) window->factor);
}

/* Gradients that are gone. Without a state of this hook they are those of the window so far, unless the hook
 * of before did a step in each iteration. */
static gint64
count_lost (const RnOptimizerHook *self, const RnRunner *runner, const RnWindow *whole)
{
  gint64 iter = rn_runner_iter (runner);

  if (self->has_loaded)
    return self->loaded.n_micro;
  return whole->is_dropped || rn_runner_opt_step (runner) == iter ? 0 : iter - whole->begin;
}

/* Takes up the window that the checkpoint was made in, or what is left of it. */
static gboolean
take_up (RnOptimizerHook *self, RnRunner *runner, GError **error)
{
  gint64 iter = rn_runner_iter (runner);

  if (iter == 0 || iter >= self->windows.max_iters)
    return TRUE;
  RnWindow whole = rn_accumulation_window (&self->windows, iter);
  if (self->has_loaded && self->loaded.n_micro > 0 && self->loaded.begin > whole.begin
      && self->loaded.begin < iter)
    self->windows.cut_at = self->loaded.begin; /* an earlier resume had cut it */
  RnWindow window = rn_accumulation_window (&self->windows, iter);
  g_autofree char *obstacle = find_obstacle (self, runner, &window);
  if (obstacle == NULL)
    {
      self->pending = self->loaded;
      return TRUE;
    }
  if (rn_runner_has_part_of_step (runner))
    return rn_hook_error (error, "%s: cannot resume: " RN_PART_OF_STEP_TEXT, rn_runner_resumed_from (runner),
                          obstacle);

  gint64 n_lost = count_lost (self, runner, &whole);
  self->windows.cut_at = iter;
  window = rn_accumulation_window (&self->windows, iter);
  if (n_lost == 0 && rn_runner_is_window_open (runner))
    g_warning (
        "resume: the checkpoint has gradients of a window that another optimizer hook began: they are lost");
  if (n_lost > 0)
    g_warning ("resume: %" G_GINT64_FORMAT " micro-gradients of an unfinished window are lost: %s", n_lost,
               obstacle);
  if (whole.begin < iter && !whole.is_dropped && self->windows.is_mmcv)
    warn_of_mmcv (&window);
  else if (whole.begin < iter && !whole.is_dropped)
    g_message ("resume: the next step is the mean of iterations %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
               " only",
               iter + 1, window.end);
  rn_runner_set_window_open (runner, FALSE);
  return TRUE;
}

/* ---- Notices ---- */

static void
announce_tail (const RnOptimizerHook *self)
{
  static const char *const what[] = { "average: it makes a step with their mean",
                                      "scale: it makes a smaller step, divided as that of a whole window",
                                      "drop: it makes no step" };
  const RnAccumulation *windows = &self->windows;
  gboolean is_each = windows->flush_at_epoch_end && windows->epoch_length <= windows->max_iters;
  gint64 n = (is_each ? windows->epoch_length : windows->max_iters) % windows->n_iters;

  if (n > 0)
    g_message ("accumulation: the last window of %s has %" G_GINT64_FORMAT
               " iterations, not %" G_GINT64_FORMAT "; tail: %s",
               is_each ? "each epoch" : "the run", n, windows->n_iters, what[windows->tail]);
}

static void
warn_unreached (const RnRunner *runner)
{
  g_auto (GStrv) names = rn_runner_unreached_params (runner);

  for (char **name = names; *name != NULL; name++)
    g_warning ("detect_anomalous_params: no gradient reaches %s: training does not change it", *name);
  if (*names == NULL)
    g_message ("detect_anomalous_params: gradients reach all parameters that are trained");
}

/* What a run with these settings should know, once. */
static void
announce (const RnOptimizerHook *self, RnRunner *runner)
{
  if (self->detect_anomalous_params)
    warn_unreached (runner);
  if (self->windows.n_iters > 1 && rn_runner_has_live_batch_norm (runner))
    g_warning (
        "accumulation: batch norms in training mode see one batch of the %" G_GINT64_FORMAT
        " at a time, so the result is not that of a larger batch; model.backbone.norm_eval: true keeps "
        "them out of it",
        self->windows.n_iters);
  announce_tail (self);
}

gboolean
rn_optimizer_hook_before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  RnOptimizerHook *self = (RnOptimizerHook *) hook;

  if (!take_up (self, runner, error))
    return FALSE;
  announce (self, runner);
  return TRUE;
}
