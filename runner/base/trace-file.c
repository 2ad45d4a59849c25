/*
 * trace-file.c: a trace as JSON in the form of Chrome's trace viewer, which Perfetto opens, and as a table of
 * the slowest ops.
 */
#include "config.h"

#include "runner/base/atomic-file.h"
#include "runner/base/json.h"
#include "runner/base/trace-private.h"

#include <runner/engine.h>

#include <math.h>
#include <string.h>

#define FLUSH_BYTES 65536

/* ---- JSON ---- */

/* Nanoseconds as microseconds, with all digits: spans that touch must not overlap. */
static void
append_us (GString *json, const char *key, gint64 ns)
{
  g_string_append_printf (json, ", \"%s\": %" G_GINT64_FORMAT ".%03d", key, ns / 1000, (int) (ns % 1000));
}

static void
append_args (GString *json, const RnTraceEvent *event)
{
  gboolean is_first = TRUE;

  g_string_append (json, ", \"args\": {");
  for (int i = 0; i < RN_TRACE_MAX_ARGS; i++)
    {
      const char *key = rn_trace_arg_names[event->kind][i];
      if (key == NULL || event->args[i] == NULL)
        continue;
      g_string_append_printf (json, "%s\"%s\": ", is_first ? "" : ", ", key);
      rn_json_append_string (json, event->args[i]);
      is_first = FALSE;
    }
  g_string_append_c (json, '}');
}

static void
append_event (GString *json, const RnTraceEvent *event)
{
  static const char phases[] = { [RN_EVENT_SPAN] = 'X', [RN_EVENT_MARK] = 'i', [RN_EVENT_COUNTER] = 'C' };
  char number[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (json, ",\n{\"name\": ");
  rn_json_append_string (json, event->name);
  g_string_append_printf (json, ", \"ph\": \"%c\", \"pid\": 1, \"tid\": %d", phases[event->form],
                          event->thread);
  append_us (json, "ts", event->start - rn_trace.start);
  switch (event->form)
    {
    case RN_EVENT_SPAN:
      append_us (json, "dur", event->duration);
      g_string_append_printf (json, ", \"cat\": \"%s\"", rn_trace_kind_names[event->kind]);
      append_args (json, event);
      break;
    case RN_EVENT_MARK:
      g_string_append (json, ", \"s\": \"t\"");
      break;
    case RN_EVENT_COUNTER:
      g_ascii_dtostr (number, sizeof number, isfinite (event->value) ? event->value : 0);
      g_string_append_printf (json, ", \"args\": {\"value\": %s}", number);
      break;
    }
  g_string_append_c (json, '}');
}

static void
append_head (GString *json)
{
  g_string_append_printf (json,
                          "{\"displayTimeUnit\": \"ms\", \"otherData\": {\"version\": \"" PACKAGE_VERSION
                          "\", \"dropped_events\": %" G_GINT64_FORMAT "},\n\"traceEvents\": [\n",
                          rn_trace.n_dropped);
  g_string_append (json, "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 0, "
                         "\"args\": {\"name\": \"runner\"}}");
  for (guint i = 0; i < rn_trace.thread_names->len; i++)
    {
      g_string_append_printf (
          json,
          ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": %u, \"args\": {\"name\": ", i);
      rn_json_append_string (json, g_array_index (rn_trace.thread_names, const char *, i));
      g_string_append (json, "}}");
    }
}

static gboolean
flush (GString *json, RnAtomicFile *file, GError **error)
{
  gboolean is_ok = rn_atomic_file_write (file, json->str, json->len, error);
  g_string_truncate (json, 0);
  return is_ok;
}

/* By start; what encloses comes first. */
static int
compare_events (gconstpointer pa, gconstpointer pb)
{
  const RnTraceEvent *a = pa, *b = pb;
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return (a->duration < b->duration) - (a->duration > b->duration);
}

gboolean
rn_trace_write (const char *path, GError **error)
{
  g_return_val_if_fail (rn_trace.events != NULL && !g_atomic_int_get (&rn_trace_is_on), FALSE);

  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);
  if (file == NULL)
    return FALSE;
  g_autoptr (GString) json = g_string_new (NULL);
  g_array_sort (rn_trace.events, compare_events);
  append_head (json);
  for (guint i = 0; i < rn_trace.events->len; i++)
    {
      append_event (json, &g_array_index (rn_trace.events, RnTraceEvent, i));
      if (json->len >= FLUSH_BYTES && !flush (json, file, error))
        return FALSE;
    }
  g_string_append (json, "\n]}\n");
  return flush (json, file, error) && rn_atomic_file_commit (file, error);
}

/* ---- Table ---- */

/* All runs of one op at one place in the model. */
typedef struct
{
  const char *name, *scope, *kernel;
  gint64 n, total;
} OpSum;

static guint
hash_sum (gconstpointer data)
{
  const OpSum *sum = data;
  return g_direct_hash (sum->name) * 31 + g_direct_hash (sum->scope);
}

/* Equal strings are one pointer. */
static gboolean
equal_sums (gconstpointer pa, gconstpointer pb)
{
  const OpSum *a = pa, *b = pb;
  return a->name == b->name && a->scope == b->scope;
}

static int
compare_totals (gconstpointer pa, gconstpointer pb)
{
  const OpSum *a = *(const OpSum *const *) pa, *b = *(const OpSum *const *) pb;
  return a->total != b->total ? (a->total < b->total ? 1 : -1) : g_strcmp0 (a->scope, b->scope);
}

static int
compare_means (gconstpointer pa, gconstpointer pb)
{
  const OpSum *a = *(const OpSum *const *) pa, *b = *(const OpSum *const *) pb;
  double x = (double) a->total / (double) a->n, y = (double) b->total / (double) b->n;
  return x != y ? (x < y ? 1 : -1) : compare_totals (pa, pb);
}

static int
compare_counts (gconstpointer pa, gconstpointer pb)
{
  const OpSum *a = *(const OpSum *const *) pa, *b = *(const OpSum *const *) pb;
  return a->n != b->n ? (a->n < b->n ? 1 : -1) : compare_totals (pa, pb);
}

/* (transfer full) of OpSum */
static GPtrArray *
sum_ops (gint64 *total)
{
  g_autoptr (GHashTable) known = g_hash_table_new (hash_sum, equal_sums);
  GPtrArray *sums = g_ptr_array_new_with_free_func (g_free);

  *total = 0;
  for (guint i = 0; i < rn_trace.events->len; i++)
    {
      const RnTraceEvent *event = &g_array_index (rn_trace.events, RnTraceEvent, i);
      if (event->form != RN_EVENT_SPAN || event->kind != RN_TRACE_OP)
        continue;
      OpSum key = { event->name, event->args[0], event->args[1], 0, 0 };
      OpSum *sum = g_hash_table_lookup (known, &key);
      if (sum == NULL)
        {
          sum = g_memdup2 (&key, sizeof key);
          g_ptr_array_add (sums, sum);
          g_hash_table_add (known, sum);
        }
      sum->n++;
      sum->total += event->duration;
      *total += event->duration;
    }
  return sums;
}

char *
rn_trace_table (RnTraceOrder order, guint max_rows)
{
  static const GCompareFunc compare[] = { [RN_TRACE_BY_TOTAL] = compare_totals,
                                          [RN_TRACE_BY_MEAN] = compare_means,
                                          [RN_TRACE_BY_COUNT] = compare_counts };
  g_return_val_if_fail (rn_trace.events != NULL && !g_atomic_int_get (&rn_trace_is_on), NULL);

  gint64 total;
  g_autoptr (GPtrArray) sums = sum_ops (&total);
  GString *text = g_string_new (NULL);
  int width = (int) strlen ("op");

  g_ptr_array_sort (sums, compare[order]);
  guint n = MIN (sums->len, max_rows);
  for (guint i = 0; i < n; i++)
    width = MAX (width, (int) strlen (((const OpSum *) g_ptr_array_index (sums, i))->name));
  g_string_append_printf (text, "%-*s %8s %12s %12s %7s  %s", width, "op", "calls", "total ms", "mean ms",
                          "share", "module (kernel)");
  for (guint i = 0; i < n; i++)
    {
      const OpSum *sum = g_ptr_array_index (sums, i);
      double ms = (double) sum->total / 1e6;
      g_string_append_printf (text, "\n%-*s %8" G_GINT64_FORMAT " %12.3f %12.3f %6.1f%%  %s (%s)", width,
                              sum->name, sum->n, ms, ms / (double) sum->n,
                              total > 0 ? 100 * (double) sum->total / (double) total : 0,
                              sum->scope != NULL ? sum->scope : "", sum->kernel != NULL ? sum->kernel : "");
    }
  g_string_append_printf (text, "\n%u of %u; all ops together %.3f ms", n, sums->len, (double) total / 1e6);
  return g_string_free (text, FALSE);
}
