/*
 * iter-timer.c: how long an iteration took, and with what, in seconds: MMCV's IterTimerHook.
 *
 * "time" goes from the end of an iteration, which is here, to the end of the next. Its parts are data_time,
 * the waiting for data, forward_time, backward_time, step_time and hooks_time, the rest of the hooks; they
 * add up to it. "time" and "data_time" are logged in validation too.
 */
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  RnHook hook;
  gint64 last_us;  /* end of the iteration before, or start of the epoch */
  RnRunTimes last; /* what was spent by then */
} IterTimer;

static void
restart (IterTimer *self, const RnRunner *runner)
{
  self->last_us = g_get_monotonic_time ();
  rn_runner_times (runner, &self->last);
}

/* What runs between two epochs belongs to no iteration. */
static gboolean
around_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  restart ((IterTimer *) hook, runner);
  return TRUE;
}

static gboolean
before_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  RnRunTimes now;
  rn_runner_times (runner, &now);
  rn_runner_log (runner, "data_time", now.data - ((IterTimer *) hook)->last.data);
  return TRUE;
}

static gboolean
after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  IterTimer *self = (IterTimer *) hook;
  RnRunTimes now;

  rn_runner_times (runner, &now); /* of a whole iteration: the forward pass may have to be waited for */
  rn_runner_log (runner, "time", (double) (g_get_monotonic_time () - self->last_us) / 1e6);
  if (!rn_runner_is_validating (runner))
    {
      rn_runner_log (runner, "forward_time", now.forward - self->last.forward);
      rn_runner_log (runner, "backward_time", now.backward - self->last.backward);
      rn_runner_log (runner, "step_time", now.step - self->last.step);
      rn_runner_log (runner, "hooks_time", now.hooks - self->last.hooks);
    }
  restart (self, runner);
  return TRUE;
}

RN_HOOK_DEFINE (iter_timer, IterTimer, .name = "IterTimerHook",
                .summary = "logs time and data_time of each iteration, and what else it was spent with",
                .priority = RN_PRIORITY_LOW, .before_epoch = around_epoch, .before_iter = before_iter,
                .after_iter = after_iter, .after_epoch = around_epoch);
