/* times.h: where the time of a run goes. */
#ifndef RUNNER_TIMES_H
#define RUNNER_TIMES_H

#include <glib.h>

G_BEGIN_DECLS

/* Microseconds since the run began. */
typedef struct
{
  gint64 data, forward, backward, step;
  gint64 hooks; /* those that have ended, without what is counted above in them */
  gboolean is_in_hooks;
  gint64 hooks_start, inner_start; /* clock, and rn_times_inner, when they began */
} RnTimes;

/* What runs within hooks, and is none of their own: a forward pass may end there, when it is waited for. */
static inline gint64
rn_times_inner (const RnTimes *times)
{
  return times->forward + times->backward + times->step;
}

static inline gint64
rn_times_running_hooks (const RnTimes *times)
{
  gint64 inner = rn_times_inner (times) - times->inner_start;
  return times->is_in_hooks ? g_get_monotonic_time () - times->hooks_start - inner : 0;
}

static inline void
rn_times_begin_hooks (RnTimes *times)
{
  times->is_in_hooks = TRUE;
  times->hooks_start = g_get_monotonic_time ();
  times->inner_start = rn_times_inner (times);
}

static inline void
rn_times_end_hooks (RnTimes *times)
{
  times->hooks += rn_times_running_hooks (times);
  times->is_in_hooks = FALSE;
}

G_END_DECLS

#endif
