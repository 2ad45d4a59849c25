/* chrome-trace.h: a strict reader of traces in the form of Chrome's trace viewer. */
#ifndef TESTS_RUNNER_CHROME_TRACE_H
#define TESTS_RUNNER_CHROME_TRACE_H

#include <glib.h>

/* A span; times in nanoseconds. */
typedef struct
{
  char *name, *category;
  char *stage, *scope, *kernel, *shapes, *file; /* its arguments; NULL: not given */
  gint64 thread, start, end;
} ChromeSpan;

typedef struct
{
  GPtrArray *spans;        /* of ChromeSpan, in the order of the file */
  GHashTable *counters;    /* name to number of its values */
  GPtrArray *marks;        /* of char *, names */
  GPtrArray *thread_names; /* of char *, by thread */
  gint64 n_dropped;
} ChromeTrace;

/*
 * Reads @path and asserts its form: an object with a list of events of the phases X, i, C and M; each with
 * the members that its phase needs, of their types, and no other; spans that nest in their thread, in the
 * order of their starts.
 */
ChromeTrace *chrome_trace_read (const char *path);
void chrome_trace_free (ChromeTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ChromeTrace, chrome_trace_free)

/* Spans of @category (NULL: any) with @name (NULL: any). */
guint chrome_trace_count (const ChromeTrace *trace, const char *category, const char *name);
/* The first of them; there must be one. */
const ChromeSpan *chrome_trace_find (const ChromeTrace *trace, const char *category, const char *name);

#endif
