/* Which iterations ProfilerHook records, and what becomes of them. */
#include "config.h"

#include "tests/hooks/python.h"
#include "tests/runner/chrome-trace.h"
#include "tests/runner/fake-task.h"
#include "tests/tree.h"

#include <string.h>

static GString *messages; /* of the hooks */

static GLogWriterOutput
collect (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  const char *domain = "", *message = "";
  for (gsize i = 0; i < n_fields; i++)
    if (strcmp (fields[i].key, "MESSAGE") == 0)
      message = fields[i].value;
    else if (strcmp (fields[i].key, "GLIB_DOMAIN") == 0)
      domain = fields[i].value;
  if (strcmp (domain, "rn-hooks") == 0)
    g_string_append_printf (messages, "%s\n", message);
  return G_LOG_WRITER_HANDLED;
}

/* "it1,it2 it3": the iterations of each trace, in the order of the files; the traces are read strictly. */
static char *
list_iterations (const char *dir)
{
  g_autofree char *names = fake_run_files (dir, ".json");
  g_auto (GStrv) files = g_strsplit (names, " ", -1);
  GString *text = g_string_new (NULL);

  for (char **name = files; *name != NULL; name++)
    {
      if (strstr (*name, "trace") == NULL)
        continue;
      g_autofree char *path = g_build_filename (dir, *name, NULL);
      g_autoptr (ChromeTrace) trace = chrome_trace_read (path);
      if (text->len > 0)
        g_string_append_c (text, ' ');
      for (guint i = 0; i < trace->marks->len; i++)
        g_string_append_printf (text, "%s%s", i > 0 ? "," : "",
                                (const char *) g_ptr_array_index (trace->marks, i) + strlen ("iteration "));
    }
  return g_string_free (text, FALSE);
}

#define RUN(profiler)                                                              \
  "runner: {type: EpochBasedRunner, max_epochs: 3}\nlog_config: {interval: 100}\n" \
  "custom_hooks: [{type: ProfilerHook, json_trace_path: DIR/trace.json, " profiler "}]\n"

typedef struct
{
  const char *yaml, *iterations;
} Case;

/* Three epochs of four iterations. PyTorch's schedule: after skip_first steps, cycles of wait, warmup,
 * active. */
static const Case cases[] = {
  { RUN ("profile_iters: 1"), "1,2,3,4" },
  { RUN ("profile_iters: 2"), "1,2,3,4,5,6,7,8" },
  { RUN ("by_epoch: false, profile_iters: 3"), "1,2,3" },
  { RUN ("by_epoch: false, profile_iters: 100"), "1,2,3,4,5,6,7,8,9,10,11,12" }, /* ends with the run */
  { RUN ("by_epoch: false, profile_iters: 12, schedule: {wait: 1, warmup: 1, active: 2, repeat: 2, "
         "skip_first: 1}"),
    "8,9 4,5" }, /* trace.2.json comes first */
  { RUN ("by_epoch: false, profile_iters: 6, schedule: {wait: 1, warmup: 1, active: 2, skip_first: 1}"),
    "4,5" },
  { RUN ("by_epoch: false, profile_iters: 4, schedule: {wait: 1, warmup: 1, active: 2, skip_first: 1}"),
    "4" },
  { RUN ("by_epoch: false, profile_iters: 4, schedule: {active: 2}"), "3,4 1,2" },
  { RUN ("profile_iters: 3, schedule: {wait: 1, warmup: 1, active: 1}"), "9,10,11,12" },
  { RUN ("by_epoch: false, profile_iters: 3, schedule: {skip_first: 5}"), "" },
};

static void
open_run (FakeRun *run, const char *yaml, char **dir)
{
  *dir = g_dir_make_tmp ("rn-profiler-XXXXXX", NULL);
  g_auto (GStrv) parts = g_strsplit (yaml, "DIR", -1);
  g_autofree char *text = g_strjoinv (*dir, parts);
  fake_run_open (run, text, 4, *dir);
}

static void
test_schedule (gconstpointer data)
{
  const Case *c = data;
  g_autofree char *dir = NULL;
  FakeRun run;

  open_run (&run, c->yaml, &dir);
  fake_run_go (&run);
  g_autofree char *iterations = list_iterations (dir);
  g_assert_cmpstr (iterations, ==, c->iterations);
  fake_run_close (&run);
  remove_tree (dir);
}

/* All of a recorded iteration is there: the hooks in their order, and the memory. */
static void
test_contents (void)
{
  g_autofree char *dir = NULL;
  FakeRun run;

  open_run (&run, RUN ("by_epoch: false, profile_iters: 3"), &dir);
  fake_run_go (&run);
  fake_run_close (&run);
  g_autofree char *path = g_build_filename (dir, "trace.json", NULL);
  g_autoptr (ChromeTrace) trace = chrome_trace_read (path);

  const char *expected[] = { "OptimizerHook after_train_iter", "IterTimerHook after_train_iter",
                             "TextLoggerHook after_train_iter" };
  guint found = 0, n = 0;
  for (guint i = 0; i < trace->spans->len; i++)
    {
      const ChromeSpan *span = g_ptr_array_index (trace->spans, i);
      if (strcmp (span->category, "hook") != 0 || g_strcmp0 (span->stage, "after_train_iter") != 0)
        continue;
      g_autofree char *text = g_strdup_printf ("%s %s", span->name, span->stage);
      n++;
      if (found < G_N_ELEMENTS (expected) && strcmp (text, expected[found]) == 0)
        found++;
    }
  g_assert_cmpuint (found, ==, G_N_ELEMENTS (expected));
  g_assert_cmpuint (n, >=, 9);
  g_assert_cmpuint (chrome_trace_count (trace, "phase", "step"), ==, 3);
  g_assert_cmpuint (GPOINTER_TO_UINT (g_hash_table_lookup (trace->counters, "process bytes")), ==, 3);
  g_assert_cmpstr (g_ptr_array_index (trace->thread_names, 0), ==, "main");
  g_assert_cmpint (trace->n_dropped, ==, 0);

  const char *const args[] = { path, NULL };
  g_autofree char *counts = run_python ("check-trace.py", args);
  if (counts != NULL)
    {
      g_autofree char *wanted =
          g_strdup_printf ("hook:%u phase:%u\n", chrome_trace_count (trace, "hook", NULL),
                           chrome_trace_count (trace, "phase", NULL));
      g_assert_cmpstr (counts, ==, wanted);
    }
  remove_tree (dir);
}

static gboolean
fail (RnTask *task, GError **error)
{
  return ((FakeTask *) task)->next < 3 || rn_hook_error (error, "no more");
}

/* A run that fails leaves what was recorded; one that is full says so. */
static void
test_early_end (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = NULL;
  FakeRun run;

  open_run (&run, RUN ("max_events: 10"), &dir);
  run.fake.vtbl.backward = fail;
  g_string_truncate (messages, 0);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_nonnull (strstr (error->message, "no more"));
  fake_run_close (&run);
  g_autofree char *path = g_build_filename (dir, "trace.json", NULL);
  g_autoptr (ChromeTrace) trace = chrome_trace_read (path);
  g_assert_cmpint (trace->n_dropped, >, 0);
  g_assert_nonnull (strstr (messages->str, "events were dropped"));
  remove_tree (dir);
}

static void
test_ready (void)
{
  g_autofree char *dir = NULL;
  FakeRun run;

  g_string_truncate (messages, 0);
  open_run (
      &run,
      "runner: {type: EpochBasedRunner, max_epochs: 1}\ncustom_hooks: [{type: ProfilerHook, on_trace_ready: "
      "{type: log_trace, sort_by: cpu_time, row_limit: 5}}]\n",
      &dir);
  fake_run_go (&run);
  fake_run_close (&run);
  g_assert_nonnull (strstr (messages->str, "module (kernel)"));
  g_autofree char *none = list_iterations (dir);
  g_assert_cmpstr (none, ==, ""); /* a table and no file */
  remove_tree (dir);
  g_clear_pointer (&dir, g_free);

  open_run (
      &run,
      "runner: {type: EpochBasedRunner, max_epochs: 1}\ncustom_hooks: [{type: ProfilerHook, on_trace_ready: "
      "{type: tb_trace, dir_name: DIR/tb, worker_name: w}}]\n",
      &dir);
  fake_run_go (&run);
  fake_run_close (&run);
  g_autofree char *tb = g_build_filename (dir, "tb", NULL);
  g_autofree char *names = fake_run_files (tb, ".pt.trace.json");
  g_assert_true (g_str_has_prefix (names, "w."));
  g_autofree char *iterations = list_iterations (tb);
  g_assert_cmpstr (iterations, ==, "1,2,3,4");
  remove_tree (dir);
}

/* Without anything that says where it goes: TIME.trace.json in the work dir. */
static void
test_default_path (void)
{
  g_autofree char *dir = NULL;
  FakeRun run;

  open_run (&run, "runner: {type: EpochBasedRunner, max_epochs: 1}\ncustom_hooks: [{type: ProfilerHook}]\n",
            &dir);
  fake_run_go (&run);
  g_autofree char *expected = g_strconcat (rn_runner_timestamp (run.runner), ".trace.json", NULL);
  g_autofree char *names = fake_run_files (dir, ".trace.json");
  g_assert_cmpstr (names, ==, expected);
  fake_run_close (&run);
  remove_tree (dir);
}

/* The training goes on without it. */
static void
test_no_room (void)
{
  g_autofree char *dir = NULL;
  FakeRun run;

  g_string_truncate (messages, 0);
  open_run (&run,
            "runner: {type: EpochBasedRunner, max_epochs: 1}\ncustom_hooks: [{type: ProfilerHook, "
            "json_trace_path: /proc/no/such/trace.json}]\n",
            &dir);
  fake_run_go (&run);
  g_assert_cmpint (rn_runner_iter (run.runner), ==, 4);
  g_assert_nonnull (strstr (messages->str, "no trace: /proc/no/such: "));
  fake_run_close (&run);
  remove_tree (dir);
}

static void
test_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = NULL;
  FakeRun run;

  open_run (&run,
            "runner: {type: EpochBasedRunner, max_epochs: 1}\ncustom_hooks: [{type: ProfilerHook, "
            "activities: [gpu]}]\n",
            &dir);
  g_assert_false (rn_runner_init (run.runner, &error));
  g_assert_nonnull (strstr (error->message, "test.yaml:"));
  g_assert_nonnull (strstr (error->message, "no activity \"gpu\""));
  fake_run_close (&run);
  remove_tree (dir);
  g_clear_error (&error);
  g_clear_pointer (&dir, g_free);

  open_run (&run,
            "runner: {type: EpochBasedRunner, max_epochs: 1}\n"
            "custom_hooks: [{type: ProfilerHook}, {type: ProfilerHook}]\n",
            &dir);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_nonnull (strstr (error->message, "another ProfilerHook is recording"));
  fake_run_close (&run);
  remove_tree (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  messages = g_string_new (NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* a full trace is warned of */
  g_log_set_writer_func (collect, NULL, NULL);
  g_log_set_default_handler (g_log_default_handler, NULL); /* g_test's would print each message as TAP */

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *name = g_strdup_printf ("/hooks/profiler/schedule/%u", (guint) i);
      g_test_add_data_func (name, &cases[i], test_schedule);
    }
  g_test_add_func ("/hooks/profiler/contents", test_contents);
  g_test_add_func ("/hooks/profiler/early-end", test_early_end);
  g_test_add_func ("/hooks/profiler/ready", test_ready);
  g_test_add_func ("/hooks/profiler/default-path", test_default_path);
  g_test_add_func ("/hooks/profiler/no-room", test_no_room);
  g_test_add_func ("/hooks/profiler/refused", test_refused);
  int status = g_test_run ();
  g_string_free (messages, TRUE);
  return status;
}
