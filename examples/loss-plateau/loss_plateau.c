/*
 * loss_plateau.c: ends a run whose training loss no longer falls.
 *
 * The loss of one batch jumps about, so windows of iterations are compared by their mean. What is remembered
 * between them goes into the checkpoints: a resumed run stops at the same iteration as one that was left
 * alone.
 */
#include <math.h>
#include <runner/hook.h>

typedef struct
{
  RnHook hook;
  gint64 window, patience; /* keys */
  double min_delta;
  double sum, best; /* state: of the running window, and the least mean so far, or infinite */
  gint64 n, n_bad;  /* iterations in the window; windows since the best */
} LossPlateau;

static const RnKeySpec keys[] = {
  RN_KEY (LossPlateau, window, RN_KEY_INT, "100", "iterations whose mean loss is compared", .min = 1,
          .max = 1e9),
  RN_KEY (LossPlateau, patience, RN_KEY_INT, "3", "windows without progress that end the run", .min = 1,
          .max = 1e6),
  RN_KEY (LossPlateau, min_delta, RN_KEY_FLOAT, "0.001", "progress: the mean falls by more than this",
          .min = 0, .max = INFINITY),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  ((LossPlateau *) hook)->best = INFINITY;
  return TRUE;
}

static void
end_window (LossPlateau *self, RnRunner *runner)
{
  double mean = self->sum / (double) self->n;

  self->sum = 0;
  self->n = 0;
  self->n_bad = mean < self->best - self->min_delta ? 0 : self->n_bad + 1;
  self->best = fmin (self->best, mean);
  rn_runner_log (runner, "plateau", (double) self->n_bad);
  if (self->n_bad < self->patience)
    return;
  g_message ("LossPlateauHook: the loss is %.4f and was %.4f at best, %d windows ago: the run ends", mean,
             self->best, (int) self->n_bad);
  rn_runner_stop (runner);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  LossPlateau *self = (LossPlateau *) hook;

  self->sum += rn_runner_loss (runner, "loss");
  self->n++;
  if (self->n == self->window)
    end_window (self, runner);
  return TRUE;
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  const LossPlateau *self = (const LossPlateau *) hook;

  rn_record_set_float (state, "sum", self->sum);
  rn_record_set_int (state, "n", self->n);
  rn_record_set_int (state, "n_bad", self->n_bad);
  if (isfinite (self->best)) /* there was a whole window */
    rn_record_set_float (state, "best", self->best);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  LossPlateau *self = (LossPlateau *) hook;

  self->sum = rn_record_float (state, "sum", 0);
  self->n = rn_record_int (state, "n", 0);
  self->n_bad = rn_record_int (state, "n_bad", 0);
  self->best = rn_record_float (state, "best", INFINITY);
  if (self->n < 0 || self->n >= self->window) /* the configuration may have another window now */
    self->sum = (double) (self->n = 0);
  if (self->n_bad < 0)
    return rn_hook_error (error, "n_bad is below 0");
  return TRUE;
}

RN_HOOK_DEFINE (loss_plateau, LossPlateau, .name = "LossPlateauHook", .version = "1.0", .license = "MIT",
                .summary = "ends a run whose training loss no longer falls", .keys = keys, .init = init,
                .save_state = save_state, .load_state = load_state, .after_train_iter = after_train_iter);
