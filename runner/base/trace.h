/*
 * trace.h: where a run spends its time: the points that note it.
 *
 * A point is begun and ended in one function and one thread, so that events nest. While no trace is recorded,
 * a point costs one load and one branch. engine.h starts, stops and writes traces; there is one at a time.
 */
#ifndef RUNNER_BASE_TRACE_H
#define RUNNER_BASE_TRACE_H

#include <glib.h>

G_BEGIN_DECLS

/* The three arguments that an event of each kind may have (NULL: not given). */
typedef enum
{
  RN_TRACE_PHASE,  /* data, forward, backward, step */
  RN_TRACE_HOOK,   /* stage */
  RN_TRACE_OP,     /* scope, kernel, shapes */
  RN_TRACE_LOADER, /* file */
  RN_TRACE_N_KINDS
} RnTraceKind;

#define RN_TRACE_MAX_ARGS 3

extern int rn_trace_is_on; /* for rn_trace_begin */

/* Nanoseconds of a clock that does not go back; never 0. */
gint64 rn_trace_clock (void);

/* The start of an event; 0: no trace is recorded. */
static inline gint64
rn_trace_begin (void)
{
  return G_UNLIKELY (g_atomic_int_get (&rn_trace_is_on)) ? rn_trace_clock () : 0;
}

/* Notes what lies between @start and @end. Strings are copied. Any thread. */
void rn_trace_add (gint64 start, gint64 end, RnTraceKind kind, const char *name, const char *arg0,
                   const char *arg1, const char *arg2);

/* Ends what rn_trace_begin began. */
static inline void
rn_trace_end (gint64 start, RnTraceKind kind, const char *name, const char *arg0)
{
  if (G_UNLIKELY (start != 0))
    rn_trace_add (start, rn_trace_clock (), kind, name, arg0, NULL, NULL);
}

/* Does the trace want shapes of ops, and counters of memory? */
gboolean rn_trace_wants_shapes (void);
gboolean rn_trace_wants_memory (void);

/* Of the calling thread, in traces; a literal. Without it a thread is called "main". */
void rn_trace_set_thread_name (const char *name);

G_END_DECLS

#endif
