/* What is recorded, from which threads, and what is not. */
#include "config.h"

#include "runner/base/trace.h"
#include "tests/runner/chrome-trace.h"

#include <runner/engine.h>

#include <glib/gstdio.h>
#include <string.h>

#define N_THREADS 4
#define N_SPANS 200

static char *
write_trace (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-trace-XXXXXX", &error);
  char *path = g_build_filename (dir, "trace.json", NULL);

  rn_trace_write (path, &error);
  g_assert_no_error (error);
  return path;
}

/* Stops and reads the trace back. */
static ChromeTrace *
finish (void)
{
  rn_trace_stop ();
  g_autofree char *path = write_trace (), *dir = g_path_get_dirname (path);
  ChromeTrace *trace = chrome_trace_read (path);
  rn_trace_clear ();
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
  return trace;
}

static void
start (gint64 max_events)
{
  RnTraceOptions options = { max_events, FALSE, FALSE };
  g_assert_true (rn_trace_start (&options));
}

static void
test_off (void)
{
  g_assert_cmpint (rn_trace_begin (), ==, 0);
  rn_trace_mark ("before");
  rn_trace_add (1, 2, RN_TRACE_OP, "before", NULL, NULL, NULL);
  start (100);
  gint64 outer = rn_trace_begin (), inner = rn_trace_begin ();
  g_assert_cmpint (outer, >, 0);
  rn_trace_end (inner, RN_TRACE_HOOK, "in", "before_run");
  rn_trace_end (outer, RN_TRACE_PHASE, "out", NULL);
  rn_trace_end (0, RN_TRACE_PHASE, "begun while off", NULL);
  rn_trace_add (outer - 1000000000, rn_trace_clock (), RN_TRACE_PHASE, "begun before", NULL, NULL, NULL);
  g_assert_false (rn_trace_wants_shapes ());
  gint64 late = rn_trace_begin ();
  rn_trace_stop ();
  rn_trace_end (late, RN_TRACE_PHASE, "ended after", NULL);
  g_autoptr (ChromeTrace) trace = finish ();

  g_assert_cmpuint (trace->spans->len, ==, 2);
  g_assert_cmpuint (trace->marks->len, ==, 0);
  const ChromeSpan *first = g_ptr_array_index (trace->spans, 0),
                   *second = g_ptr_array_index (trace->spans, 1);
  g_assert_cmpstr (first->name, ==, "out");
  g_assert_cmpstr (second->name, ==, "in");
  g_assert_cmpstr (second->stage, ==, "before_run");
  g_assert_cmpstr (g_ptr_array_index (trace->thread_names, 0), ==, "main");
}

/* Names and paths come from files and may hold anything. */
static void
test_strings (void)
{
  start (100);
  gint64 begin = rn_trace_begin ();
  rn_trace_add (begin, rn_trace_clock (), RN_TRACE_OP, "a\"b\\c\n\x01", "\xff\xfe", "k\xc3\xa9", "1x2 -> 3");
  rn_trace_mark ("\t</script>");
  rn_trace_count ("bytes", 12345678901.0);
  rn_trace_count ("bytes", 1.0 / 0.0); /* is written as 0 */
  g_autoptr (ChromeTrace) trace = finish ();

  const ChromeSpan *span = g_ptr_array_index (trace->spans, 0);
  g_assert_cmpstr (span->name, ==, "a\"b\\c\n\x01");
  g_assert_cmpstr (span->scope, ==, "\xef\xbf\xbd\xef\xbf\xbd"); /* U+FFFD twice */
  g_assert_cmpstr (span->kernel, ==, "k\xc3\xa9");
  g_assert_cmpstr (span->shapes, ==, "1x2 -> 3");
  g_assert_cmpstr (g_ptr_array_index (trace->marks, 0), ==, "\t</script>");
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (trace->counters, "bytes")), ==, 2);
}

static void
test_full (void)
{
  start (3);
  for (int i = 0; i < 10; i++)
    rn_trace_mark ("m");
  g_assert_cmpint (rn_trace_stop (), ==, 7);
  g_autoptr (ChromeTrace) trace = finish ();
  g_assert_cmpuint (trace->marks->len, ==, 3);
  g_assert_cmpint (trace->n_dropped, ==, 7);

  start (3);
  RnTraceOptions options = { 3, FALSE, FALSE };
  g_assert_false (rn_trace_start (&options)); /* one at a time */
  rn_trace_mark ("m");
  g_autoptr (ChromeTrace) second = finish ();
  g_assert_cmpuint (second->marks->len, ==, 1);
  g_assert_cmpint (second->n_dropped, ==, 0);
}

static gpointer
record (gpointer data)
{
  rn_trace_set_thread_name ("worker");
  for (int i = 0; i < N_SPANS; i++)
    {
      gint64 outer = rn_trace_begin (), inner = rn_trace_begin ();
      rn_trace_end (inner, RN_TRACE_LOADER, "inner", "a.jpg");
      rn_trace_end (outer, RN_TRACE_LOADER, "outer", NULL);
    }
  return NULL;
}

static void
test_threads (void)
{
  GThread *threads[N_THREADS];

  start (100000);
  for (int i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new (NULL, record, NULL);
  for (int i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  g_autoptr (ChromeTrace) trace = finish ();

  g_assert_cmpuint (trace->thread_names->len, ==, N_THREADS);
  g_assert_cmpstr (g_ptr_array_index (trace->thread_names, N_THREADS - 1), ==, "worker");
  g_assert_cmpuint (chrome_trace_count (trace, "loader", "inner"), ==, N_THREADS * N_SPANS);
  g_assert_cmpuint (chrome_trace_count (trace, "loader", "outer"), ==, N_THREADS * N_SPANS);
  g_assert_cmpstr (chrome_trace_find (trace, "loader", "inner")->file, ==, "a.jpg");
}

/* Times come back to the nanosecond; of spans that begin together the longer one is the outer one. */
static void
test_times (void)
{
  start (100);
  gint64 at = rn_trace_clock ();
  rn_trace_add (at, at + 1234567, RN_TRACE_OP, "short", NULL, NULL, NULL);
  rn_trace_add (at, at + 98765432109, RN_TRACE_PHASE, "long", NULL, NULL, NULL);
  rn_trace_add (at + 1234567, at + 1234568, RN_TRACE_OP, "next", NULL, NULL, NULL);
  g_autoptr (ChromeTrace) trace = finish ();

  const ChromeSpan *first = g_ptr_array_index (trace->spans, 0),
                   *second = g_ptr_array_index (trace->spans, 1),
                   *third = g_ptr_array_index (trace->spans, 2);
  g_assert_cmpstr (first->name, ==, "long");
  g_assert_cmpstr (second->name, ==, "short");
  g_assert_cmpstr (third->name, ==, "next");
  g_assert_cmpint (first->end - first->start, ==, 98765432109);
  g_assert_cmpint (second->start, ==, first->start);
  g_assert_cmpint (second->end - second->start, ==, 1234567);
  g_assert_cmpint (third->start, ==, second->end);
  g_assert_cmpint (third->end - third->start, ==, 1);
}

/* Times that are given, so that the table is known: conv of layer1 takes 3 ms twice, of layer2 5 ms, add 1 ms
 * three times. */
static void
test_table (void)
{
  start (100);
  gint64 at = rn_trace_clock ();
  const gint64 ms = 1000000;
  for (int i = 0; i < 2; i++)
    rn_trace_add (at, at + 3 * ms, RN_TRACE_OP, "conv", "layer1", "direct", NULL);
  rn_trace_add (at, at + 5 * ms, RN_TRACE_OP, "conv", "layer2", "direct", NULL);
  for (int i = 0; i < 3; i++)
    rn_trace_add (at, at + ms, RN_TRACE_OP, "add", "layer1", "plain", NULL);
  rn_trace_add (at, at + 100 * ms, RN_TRACE_PHASE, "forward", NULL, NULL, NULL);
  rn_trace_stop ();
  g_autofree char *total = rn_trace_table (RN_TRACE_BY_TOTAL, 10);
  g_autofree char *mean = rn_trace_table (RN_TRACE_BY_MEAN, 1);
  g_autofree char *count = rn_trace_table (RN_TRACE_BY_COUNT, 2);
  rn_trace_clear ();

  g_assert_cmpstr (total, ==,
                   "op      calls     total ms      mean ms   share  module (kernel)\n"
                   "conv        2        6.000        3.000   42.9%  layer1 (direct)\n"
                   "conv        1        5.000        5.000   35.7%  layer2 (direct)\n"
                   "add         3        3.000        1.000   21.4%  layer1 (plain)\n"
                   "3 of 3; all ops together 14.000 ms");
  g_assert_nonnull (strstr (mean, "layer2 (direct)\n1 of 3; "));
  g_assert_null (strstr (mean, "layer1"));
  g_assert_nonnull (strstr (count, "layer1 (plain)\nconv        2"));
}

/* A file that cannot be written is an error, and the trace stays. */
static void
test_write_error (void)
{
  g_autoptr (GError) error = NULL;

  start (10);
  rn_trace_mark ("m");
  rn_trace_stop ();
  g_assert_false (rn_trace_write ("/nowhere/at/all.json", &error));
  g_assert_nonnull (error);
  g_autoptr (ChromeTrace) trace = finish ();
  g_assert_cmpuint (trace->marks->len, ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/trace/off", test_off);
  g_test_add_func ("/base/trace/strings", test_strings);
  g_test_add_func ("/base/trace/full", test_full);
  g_test_add_func ("/base/trace/threads", test_threads);
  g_test_add_func ("/base/trace/times", test_times);
  g_test_add_func ("/base/trace/table", test_table);
  g_test_add_func ("/base/trace/write-error", test_write_error);
  return g_test_run ();
}
