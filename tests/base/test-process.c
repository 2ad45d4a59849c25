/*
 * test-process.c: what concerns the whole process, each case in a process of its own: log output and signals.
 */
#include "config.h"
#include "runner/base/log.h"
#include "runner/base/signals.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

static void
log_some_lines (void)
{
  g_log_set_always_fatal (G_LOG_FATAL_MASK); /* the test framework makes warnings fatal */
  rn_log_init ();
  rn_log_init ();
  g_message ("hello %d", 1);
  g_warning ("careful");
  g_debug ("not seen");
  g_message ("bell \a here, \302\2331m \303\251"); /* U+009B begins a command, U+00E9 is a letter */
}

static void
test_stderr (void)
{
  if (g_test_subprocess ())
    {
      log_some_lines ();
      return;
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("hello 1\nwarning: careful\nbell ? here, ?1m \303\251\n");
  g_test_trap_assert_stdout_unmatched ("*hello*");
}

static void
test_file_in_process (void)
{
  g_autofree char *folder = g_dir_make_tmp ("rn-log-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "run.log", NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_log_set_file (path, &error));
  log_some_lines ();
  g_assert_false (rn_log_set_file ("/nonexistent/run.log", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_message ("still there");
  g_assert_true (rn_log_set_file (NULL, NULL));
  g_message ("no longer");
  g_assert_true (rn_log_set_file (path, NULL));
  g_message ("appended");
  g_assert_true (rn_log_set_file (NULL, NULL));

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_true (g_regex_match_simple (
      "^(\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d,\\d{3} - runner - (INFO|WARNING) - [^\\n]+\\n){5}\\z",
      text, G_REGEX_DEFAULT, G_REGEX_MATCH_DEFAULT));
  g_assert_nonnull (strstr (text, " - runner - INFO - hello 1\n"));
  g_assert_nonnull (strstr (text, " - runner - WARNING - careful\n"));
  g_assert_nonnull (strstr (text, " - runner - INFO - still there\n"));
  g_assert_nonnull (strstr (text, " - runner - INFO - appended\n"));
  g_unlink (path);
  g_rmdir (folder);
}

static void
test_file (void)
{
  if (g_test_subprocess ())
    {
      test_file_in_process ();
      return;
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
}

#define N_THREADS 4
#define N_LINES 200

static gpointer
log_many (gpointer data)
{
  for (int i = 0; i < N_LINES; i++)
    g_message ("a line of some length, whole");
  return NULL;
}

/* Lines of several threads do not mix. */
static void
test_threads (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, 0);
      g_test_trap_assert_passed ();
      return;
    }

  g_autofree char *folder = g_dir_make_tmp ("rn-log-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (folder, "run.log", NULL);
  g_autofree char *text = NULL;
  GThread *threads[N_THREADS];

  rn_log_init ();
  g_assert_true (rn_log_set_file (path, NULL));
  for (int i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("log", log_many, NULL);
  for (int i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  rn_log_set_file (NULL, NULL);

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), ==, N_THREADS * N_LINES + 1);
  for (int i = 0; i < N_THREADS * N_LINES; i++)
    g_assert_true (g_str_has_suffix (lines[i], " - runner - INFO - a line of some length, whole"));
  g_unlink (path);
  g_rmdir (folder);
}

static void
test_signal_flag (void)
{
  rn_signals_install ();
  g_assert_cmpint (rn_signals_pending (), ==, 0);
  raise (SIGTERM);
  g_assert_cmpint (rn_signals_pending (), ==, SIGTERM);
  raise (SIGINT);
  g_assert_cmpint (rn_signals_pending (), ==, SIGTERM); /* the first one stays */
  rn_signals_install ();
  g_assert_cmpint (rn_signals_pending (), ==, 0);
  raise (SIGINT);
  g_assert_cmpint (rn_signals_pending (), ==, SIGINT);
  rn_signals_remove ();
  g_assert_cmpint (rn_signals_pending (), ==, 0);
}

static void
test_signal_twice (void)
{
  if (g_test_subprocess ())
    {
      rn_signals_install ();
      raise (SIGTERM);
      g_printerr ("alive\n");
      raise (SIGTERM);
      g_printerr ("unreachable\n");
      return;
    }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("alive\n");
}

static void
test_signal_ignored (void)
{
  signal (SIGINT, SIG_IGN);
  rn_signals_install ();
  raise (SIGINT);
  g_assert_cmpint (rn_signals_pending (), ==, 0);
  rn_signals_remove ();
  raise (SIGINT); /* still ignored */
  signal (SIGINT, SIG_DFL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  /* A shell that starts the suite in the background lets it ignore SIGINT. */
  signal (SIGINT, SIG_DFL);
  signal (SIGTERM, SIG_DFL);
  g_test_add_func ("/log/stderr", test_stderr);
  g_test_add_func ("/log/file", test_file);
  g_test_add_func ("/log/threads", test_threads);
  g_test_add_func ("/signals/flag", test_signal_flag);
  g_test_add_func ("/signals/twice", test_signal_twice);
  g_test_add_func ("/signals/ignored", test_signal_ignored);
  return g_test_run ();
}
