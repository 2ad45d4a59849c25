#include "config.h"

#include "runner/base/trace-private.h"

#include <runner/engine.h>

#include <time.h>

int rn_trace_is_on = 0;
RnTrace rn_trace = { 0 };

const char *const rn_trace_kind_names[RN_TRACE_N_KINDS] = { "phase", "hook", "op", "loader" };
const char *const rn_trace_arg_names[RN_TRACE_N_KINDS][RN_TRACE_MAX_ARGS] = {
  [RN_TRACE_PHASE] = { NULL },
  [RN_TRACE_HOOK] = { "stage" },
  [RN_TRACE_OP] = { "scope", "kernel", "shapes" },
  [RN_TRACE_LOADER] = { "file" },
};

/* Of a thread: its name, and its number in the trace of this generation. */
static _Thread_local const char *thread_name = NULL;
static _Thread_local int thread_number = 0;
static _Thread_local guint thread_generation = 0;
static guint generation = 0; /* of the trace; guarded by its lock */

gint64
rn_trace_clock (void)
{
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return MAX ((gint64) now.tv_sec * 1000000000 + now.tv_nsec, 1);
}

void
rn_trace_set_thread_name (const char *name)
{
  thread_name = name;
}

gboolean
rn_trace_wants_shapes (void)
{
  return g_atomic_int_get (&rn_trace_is_on) && rn_trace.wants_shapes;
}

gboolean
rn_trace_wants_memory (void)
{
  return g_atomic_int_get (&rn_trace_is_on) && rn_trace.wants_memory;
}

/* ---- Recording; all with the lock held ---- */

static int
current_thread (void)
{
  if (thread_generation != generation)
    {
      const char *name = thread_name != NULL ? thread_name : "main";
      thread_generation = generation;
      thread_number = (int) rn_trace.thread_names->len;
      g_array_append_val (rn_trace.thread_names, name);
    }
  return thread_number;
}

static const char *
keep (const char *text)
{
  return text != NULL ? g_string_chunk_insert_const (rn_trace.strings, text) : NULL;
}

/* Does the trace take another event, of time @start? */
static gboolean
has_room (gint64 start)
{
  /* It may have been begun in the trace before. */
  if (!g_atomic_int_get (&rn_trace_is_on) || start < rn_trace.start)
    return FALSE;
  if (rn_trace.events->len < rn_trace.max_events)
    return TRUE;
  rn_trace.n_dropped++;
  return FALSE;
}

void
rn_trace_add (gint64 start, gint64 end, RnTraceKind kind, const char *name, const char *arg0,
              const char *arg1, const char *arg2)
{
  g_mutex_lock (&rn_trace.lock);
  if (has_room (start))
    {
      RnTraceEvent event = { .form = RN_EVENT_SPAN,
                             .kind = kind,
                             .thread = current_thread (),
                             .start = start,
                             .duration = MAX (end - start, 0),
                             .name = keep (name),
                             .args = { keep (arg0), keep (arg1), keep (arg2) } };
      g_array_append_val (rn_trace.events, event);
    }
  g_mutex_unlock (&rn_trace.lock);
}

static void
add_point (RnEventForm form, const char *name, double value)
{
  gint64 now = rn_trace_begin ();

  if (now == 0)
    return;
  g_mutex_lock (&rn_trace.lock);
  if (has_room (now))
    {
      RnTraceEvent event = {
        .form = form, .thread = current_thread (), .start = now, .value = value, .name = keep (name)
      };
      g_array_append_val (rn_trace.events, event);
    }
  g_mutex_unlock (&rn_trace.lock);
}

void
rn_trace_mark (const char *name)
{
  add_point (RN_EVENT_MARK, name, 0);
}

void
rn_trace_count (const char *name, double value)
{
  add_point (RN_EVENT_COUNTER, name, value);
}

/* ---- A trace ---- */

gboolean
rn_trace_start (const RnTraceOptions *options)
{
  g_return_val_if_fail (options->max_events > 0 && options->max_events <= RN_TRACE_MAX_EVENTS, FALSE);

  g_mutex_lock (&rn_trace.lock);
  gboolean is_free = rn_trace.events == NULL;
  if (is_free)
    {
      rn_trace.max_events = (guint) options->max_events;
      rn_trace.wants_shapes = options->shapes;
      rn_trace.wants_memory = options->memory;
      rn_trace.n_dropped = 0;
      rn_trace.events = g_array_new (FALSE, FALSE, sizeof (RnTraceEvent));
      rn_trace.thread_names = g_array_new (FALSE, FALSE, sizeof (const char *));
      rn_trace.strings = g_string_chunk_new (4096);
      rn_trace.start = rn_trace_clock ();
      generation++;
      g_atomic_int_set (&rn_trace_is_on, 1);
    }
  g_mutex_unlock (&rn_trace.lock);
  return is_free;
}

gint64
rn_trace_stop (void)
{
  g_mutex_lock (&rn_trace.lock);
  g_atomic_int_set (&rn_trace_is_on, 0);
  gint64 n_dropped = rn_trace.n_dropped;
  g_mutex_unlock (&rn_trace.lock);
  return n_dropped;
}

void
rn_trace_clear (void)
{
  rn_trace_stop ();
  g_mutex_lock (&rn_trace.lock);
  g_clear_pointer (&rn_trace.events, g_array_unref);
  g_clear_pointer (&rn_trace.thread_names, g_array_unref);
  g_clear_pointer (&rn_trace.strings, g_string_chunk_free);
  g_mutex_unlock (&rn_trace.lock);
}
