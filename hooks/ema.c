/*
 * ema.c: a running mean of the weights, updated after optimizer steps and used in evaluations: MMCV's
 * EMAHook, with the kinds of mean that MMEngine has.
 *
 * The mean lives beside the weights, in checkpoints as "ema/NAME". The weights that are trained are never
 * touched by it. It follows steps that were performed: micro-iterations of an accumulation and steps that a
 * loss scaler skipped leave it as it is.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/unused-key.h"

#include <runner/engine.h>

#include <math.h>

typedef enum
{
  MEAN_EXPONENTIAL,
  MEAN_STOCHASTIC_WEIGHT,
  MEAN_ANNEALING,
  MEAN_EXP_MOMENTUM,
} MeanType;

static const char *const type_names[] = { "ExponentialMovingAverage", "StochasticWeightAverage",
                                          "MomentumAnnealingEMA", "ExpMomentumEMA", NULL };

typedef struct
{
  RnHook hook;
  int ema_type; /* MeanType */
  double momentum, gamma;
  gint64 interval, warm_up, begin_iter, begin_epoch;
  gboolean update_buffers;

  RnRunner *runner; /* from before_run on */
  gboolean is_started;
  gint64 n_updates;
  gint64 n_waiting; /* performed steps since the last update, as they were counted last */
  gint64 last_step; /* opt_step there */
} EmaHook;

static const RnKeySpec keys[] = {
  RN_KEY (EmaHook, ema_type, RN_KEY_ENUM, "ExponentialMovingAverage",
          "how the mean is taken; StochasticWeightAverage: the plain mean over all updates",
          .names = type_names),
  RN_KEY (EmaHook, momentum, RN_KEY_FLOAT, "0.0002",
          "weight of the new weights in the mean, for each step; the mean spans about 1 / momentum steps",
          .min = 1e-9, .max = 1),
  RN_KEY (EmaHook, interval, RN_KEY_INT, "1",
          "performed optimizer steps between two updates; each then counts 1 - (1 - momentum)^interval",
          .min = 1, .max = 1e9),
  RN_KEY (EmaHook, warm_up, RN_KEY_INT, "10",
          "the old mean counts at most (1 + t) / (warm_up + t) after t updates, so that it leaves the start "
          "soon; 0: no such bound; ExponentialMovingAverage only",
          .max = 1e9),
  RN_KEY (EmaHook, gamma, RN_KEY_FLOAT, "null",
          "steps over which the momentum falls: MomentumAnnealingEMA (100 unless given), ExpMomentumEMA "
          "(2000)",
          .min = 1, .max = 1e12, .flags = RN_KEY_NULLABLE),
  RN_KEY (EmaHook, begin_iter, RN_KEY_INT, "0", "the mean starts with the weights of this iteration",
          .max = 1e12),
  RN_KEY (EmaHook, begin_epoch, RN_KEY_INT, "0", "the same for an epoch; give one of the two", .max = 1e9),
  RN_KEY (EmaHook, update_buffers, RN_KEY_BOOL, "false",
          "take the mean of batch norm statistics too; false: they are those of the newest weights"),
  RN_UNUSED_KEY ("resume_from", "a resumed run takes its mean from the checkpoint of the run"),
  RN_UNUSED_KEY ("strict_load", "a mean that does not fit is refused in any case"),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  EmaHook *self = (EmaHook *) hook;

  if (self->begin_iter > 0 && self->begin_epoch > 0)
    return rn_node_error (rn_node_get (hook->config, "begin_epoch"), error,
                          "begin_iter is given too; the mean starts once: give one of the two");
  if (hook->priority < RN_PRIORITY_ABOVE_NORMAL || hook->priority >= RN_PRIORITY_LOW)
    return rn_node_error (rn_node_get (hook->config, "priority"), error,
                          "the mean is updated behind the optimizer step (%d) and ahead of the evaluation "
                          "(%d); what works: %d (the default), or another number from %d to %d",
                          RN_PRIORITY_ABOVE_NORMAL, RN_PRIORITY_LOW, hook->desc->priority,
                          RN_PRIORITY_ABOVE_NORMAL, RN_PRIORITY_LOW - 1);
  if (isnan (self->gamma))
    self->gamma = self->ema_type == MEAN_EXP_MOMENTUM ? 2000 : 100;
  return TRUE;
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  EmaHook *self = (EmaHook *) hook;

  self->runner = runner;
  self->last_step = rn_runner_opt_step (runner);
  if (self->is_started && !rn_runner_has_loaded_ema (runner))
    {
      g_warning ("the checkpoint has no running mean of the weights (ema/): it starts anew");
      self->is_started = FALSE;
    }
  rn_runner_use_ema (runner, self->is_started);
  return TRUE;
}

/* The device may have to be waited for, to know whether the last step was performed. */
static void
count_steps (EmaHook *self)
{
  gint64 step = rn_runner_opt_step (self->runner);

  if (self->is_started)
    self->n_waiting += step - self->last_step;
  self->last_step = step;
}

/* Until the mean starts an evaluation has nothing but the weights. */
static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  EmaHook *self = (EmaHook *) hook;

  count_steps (self); /* all steps so far are known here */
  if (self->is_started || rn_runner_iter (runner) < self->begin_iter
      || rn_runner_epoch (runner) < self->begin_epoch)
    return TRUE;
  self->is_started = TRUE;
  self->n_updates = self->n_waiting = 0;
  rn_runner_use_ema (runner, TRUE);
  if (rn_runner_iter (runner) > 0)
    g_message ("the running mean of the weights starts with those of iteration %" G_GINT64_FORMAT,
               rn_runner_iter (runner));
  return rn_runner_update_ema (runner, 1, FALSE, error);
}

/* Weight of the new weights in update number n_updates, from 0. */
static double
next_momentum (const EmaHook *self)
{
  double t = (double) self->n_updates, steps = t * (double) self->interval;
  double decay = pow (1 - self->momentum, (double) self->interval), momentum = 1 - decay;

  switch ((MeanType) self->ema_type)
    {
    case MEAN_EXPONENTIAL:
      return self->warm_up == 0 ? momentum : 1 - MIN (decay, (1 + t) / ((double) self->warm_up + t));
    case MEAN_STOCHASTIC_WEIGHT:
      return 1 / (1 + t);
    case MEAN_ANNEALING:
      return MAX (momentum, self->gamma / (self->gamma + steps));
    case MEAN_EXP_MOMENTUM:
      return (1 - momentum) * exp (-(1 + steps) / self->gamma) + momentum;
    }
  g_return_val_if_reached (1);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  EmaHook *self = (EmaHook *) hook;

  if (!self->is_started || self->n_waiting + 1 < self->interval) /* an iteration has one step at most */
    return TRUE;
  count_steps (self);
  if (self->n_waiting < self->interval)
    return TRUE;
  double momentum = next_momentum (self);
  self->n_waiting = 0;
  self->n_updates++;
  return rn_runner_update_ema (runner, momentum, self->update_buffers, error);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  EmaHook *self = (EmaHook *) hook;

  count_steps (self);
  rn_record_set_int (state, "started", self->is_started);
  rn_record_set_int (state, "updates", self->n_updates);
  rn_record_set_int (state, "waiting", self->n_waiting);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  EmaHook *self = (EmaHook *) hook;
  gint64 updates = rn_record_int (state, "updates", -1), waiting = rn_record_int (state, "waiting", -1);

  if (updates < 0 || updates > (gint64) 1 << 53 || waiting < 0 || waiting > (gint64) 1 << 53)
    return rn_hook_error (error, "updates %" G_GINT64_FORMAT ", waiting %" G_GINT64_FORMAT ": no such counts",
                          updates, waiting);
  self->is_started = rn_record_int (state, "started", 0) != 0;
  self->n_updates = updates;
  self->n_waiting = waiting;
  return TRUE;
}

/* Behind the optimizer hook, before the checkpoints. */
RN_HOOK_DEFINE (ema, EmaHook, .name = "EMAHook",
                .summary = "running mean of the weights, used in evaluations and kept in checkpoints",
                .priority = 49, .needs = RN_NEEDS_EMA, .keys = keys, .init = init, .save_state = save_state,
                .load_state = load_state, .before_run = before_run, .before_train_iter = before_train_iter,
                .after_train_iter = after_train_iter);
