/* MemoryProfilerHook and EmptyCacheHook. */
#include "config.h"

#include "tests/runner/fake-task.h"

#include <string.h>

static GPtrArray *lines;   /* of char *: on memory */
static guint n_given_back; /* lines of EmptyCacheHook */

static GLogWriterOutput
collect (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  for (gsize i = 0; i < n_fields; i++)
    if (strcmp (fields[i].key, "MESSAGE") == 0 && g_str_has_prefix (fields[i].value, "Memory information"))
      g_ptr_array_add (lines, g_strdup (fields[i].value));
    else if (strcmp (fields[i].key, "MESSAGE") == 0)
      n_given_back += g_str_equal (fields[i].value, "EmptyCacheHook: 3.0 MiB given back");
  return G_LOG_WRITER_HANDLED;
}

/* MMDetection's line, and the peak; of an iteration run of 7. */
static void
test_memory (void)
{
  const char *form = "^Memory information available_memory: ([0-9]+) MB, used_memory: ([0-9]+) MB, "
                     "memory_utilization: ([0-9]+\\.[0-9]) %, available_swap_memory: [0-9]+ MB, "
                     "used_swap_memory: [0-9]+ MB, swap_memory_utilization: [0-9]+\\.[0-9] %, "
                     "current_process_memory: ([0-9]+) MB, peak_process_memory: ([0-9]+) MB$";
  g_autoptr (GRegex) regex = g_regex_new (form, 0, 0, NULL);
  g_autoptr (GMatchInfo) match = NULL;
  FakeRun run;

  fake_run_open (&run,
                 "runner: {type: IterBasedRunner, max_iters: 7}\n"
                 "custom_hooks: [{type: MemoryProfilerHook, interval: 3}]\n",
                 5, NULL);
  fake_run_go (&run);
  fake_run_remove (run.dir);
  fake_run_close (&run);
  g_assert_cmpuint (lines->len, ==, 2);
  g_assert_true (g_regex_match (regex, g_ptr_array_index (lines, 0), 0, &match));
  g_autofree char *available = g_match_info_fetch (match, 1), *used = g_match_info_fetch (match, 2),
                  *percent = g_match_info_fetch (match, 3), *current = g_match_info_fetch (match, 4),
                  *peak = g_match_info_fetch (match, 5);
  double a = g_ascii_strtod (available, NULL), u = g_ascii_strtod (used, NULL);
  /* Both are cut to whole MiB, the part is printed with one digit. */
  g_assert_cmpfloat (g_ascii_strtod (percent, NULL), <=, 100 * (u + 1) / (a + u) + 0.05);
  g_assert_cmpfloat (g_ascii_strtod (percent, NULL), >=, 100 * u / (a + u + 2) - 0.05);
  g_assert_cmpfloat (g_ascii_strtod (current, NULL), >, 0);
  g_assert_cmpfloat (g_ascii_strtod (peak, NULL), >=, g_ascii_strtod (current, NULL));
}

static void
assert_calls (const char *keys, guint expected)
{
  g_autofree char *yaml = g_strdup_printf (
      "runner: {type: EpochBasedRunner, max_epochs: 2}\ncustom_hooks: [{type: EmptyCacheHook%s}]\n", keys);
  g_autoptr (GString) trace = g_string_new (NULL);
  guint n = 0;
  FakeRun run;

  n_given_back = 0;
  fake_run_open (&run, yaml, 3, NULL);
  run.fake.trace = trace;
  fake_run_go (&run);
  fake_run_remove (run.dir);
  fake_run_close (&run);
  for (const char *p = trace->str; (p = strstr (p, "empty_cache")) != NULL; p++)
    n++;
  g_assert_cmpuint (n, ==, expected);
  g_assert_cmpuint (n_given_back, ==, expected);
}

/* Two epochs of three iterations. */
static void
test_empty_cache (void)
{
  assert_calls ("", 2);
  assert_calls (", before_epoch: true", 4);
  assert_calls (", after_epoch: false, after_iter: true", 6);
  assert_calls (", after_epoch: false", 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  lines = g_ptr_array_new_with_free_func (g_free);
  g_log_set_writer_func (collect, NULL, NULL);
  g_log_set_default_handler (g_log_default_handler, NULL); /* g_test's would print each message as TAP */
  g_test_add_func ("/hooks/memory/profiler", test_memory);
  g_test_add_func ("/hooks/memory/empty-cache", test_empty_cache);
  int status = g_test_run ();
  g_ptr_array_unref (lines);
  return status;
}
