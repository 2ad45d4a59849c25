/* iter-timer.c: how long an iteration took ("time"), and how long it waited for its data ("data_time"), in
 * seconds. */
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  RnHook hook;
  gint64 last_us; /* end of the iteration before, or start of the epoch */
} IterTimer;

static double
seconds_since (gint64 start_us)
{
  return (double) (g_get_monotonic_time () - start_us) / 1e6;
}

static gboolean
before_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  ((IterTimer *) hook)->last_us = g_get_monotonic_time ();
  return TRUE;
}

static gboolean
before_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_log (runner, "data_time", seconds_since (((IterTimer *) hook)->last_us));
  return TRUE;
}

static gboolean
after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  IterTimer *timer = (IterTimer *) hook;
  rn_runner_log (runner, "time", seconds_since (timer->last_us));
  timer->last_us = g_get_monotonic_time ();
  return TRUE;
}

RN_HOOK_DEFINE (iter_timer, IterTimer, .name = "IterTimerHook",
                .summary = "logs time and data_time of each iteration", .priority = RN_PRIORITY_LOW,
                .before_epoch = before_epoch, .before_iter = before_iter, .after_iter = after_iter);
