/* The runs that a checkpoint names: what each line says, and what becomes of lines that say nothing. */
#include "config.h"

#include "runner/checkpoint.h"
#include "runner/record.h"
#include "runner/run-history.h"
#include "runner/safetensors.h"
#include "tests/runner/fake-task.h"

#include <string.h>

/* The lines in the checkpoint @name of @dir. */
static char **
read_lines (const char *dir, const char *name)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);

  g_assert_no_error (error);
  return g_strsplit (rn_safetensors_metadata (file, RN_CHECKPOINT_HISTORY), "\n", -1);
}

static RnRecord *
parse (const char *line)
{
  g_autoptr (GError) error = NULL;
  RnRecord *record = rn_record_parse (line, &error);

  g_assert_no_error (error);
  return record;
}

static void
test_lines (void)
{
  FakeRun first, second;

  fake_run_open (&first, BY_ITER (4, "optimizer: {type: SGD, lr: 0.001}\ncheckpoint_config: {interval: 3}\n"),
                 10, NULL);
  fake_run_go (&first);
  g_auto (GStrv) alone = read_lines (first.dir, "iter_3.safetensors");
  g_assert_cmpuint (g_strv_length (alone), ==, 1);

  fake_run_open (
      &second, BY_ITER (6, "optimizer: {type: SGD, lr: 0.002}\ncheckpoint_config: {interval: 3}\nseed: 3\n"),
      10, first.dir);
  fake_run_resume (&second, NULL);
  fake_run_go (&second);
  g_auto (GStrv) both = read_lines (first.dir, "iter_6.safetensors");
  g_assert_cmpuint (g_strv_length (both), ==, 2);
  g_assert_cmpstr (both[0], ==, alone[0]);

  g_autoptr (RnRecord) was = parse (both[0]), is = parse (both[1]);
  g_assert_cmpint (rn_record_int (was, "iter", -1), ==, 0);
  g_assert_cmpfloat (rn_record_float (was, "lr", 0), ==, 0.001);
  g_assert_cmpint (rn_record_int (was, "max_iters", -1), ==, 4);
  g_assert_null (rn_record_string (was, "checkpoint"));
  g_assert_null (rn_record_string (was, "changed"));
  g_assert_cmpint (rn_record_int (is, "iter", -1), ==, 4);
  g_assert_cmpint (rn_record_int (is, "opt_step", -1), ==, 4);
  g_assert_cmpfloat (rn_record_float (is, "lr", 0), ==, 0.002);
  g_assert_cmpint (rn_record_int (is, "max_iters", -1), ==, 6);
  g_assert_cmpint (rn_record_int (is, "world_size", -1), ==, 1);
  g_assert_cmpint (rn_record_int (is, "batch_size", -1), ==, second.fake.task.batch_size);
  g_assert_cmpstr (rn_record_string (is, "started"), ==, rn_runner_timestamp (second.runner));
  g_assert_cmpstr (rn_record_string (is, "version"), ==, PACKAGE_VERSION);
  g_assert_true (g_str_has_suffix (rn_record_string (is, "checkpoint"), "/iter_4.safetensors"));
  g_auto (GStrv) changed = g_strsplit (rn_record_string (is, "changed"), "\n", -1);
  g_assert_true (
      g_strv_contains ((const char *const *) changed, "optimizer.lr: 0.001 in the checkpoint, 0.002 now"));
  g_assert_true (
      g_strv_contains ((const char *const *) changed, "runner.max_iters: 4 in the checkpoint, 6 now"));
  g_assert_true (g_strv_contains ((const char *const *) changed, "seed: not set in the checkpoint, 3 now"));
  g_assert_cmpuint (g_strv_length (changed), ==, 3);

  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

static char *
many_lines (int n)
{
  GString *text = g_string_new (NULL);

  for (int i = 0; i < n; i++)
    g_string_append_printf (text, "%s{\"iter\": %d}", i > 0 ? "\n" : "", i);
  return g_string_free (text, FALSE);
}

/* The newest hundred stay, this run among them. */
static void
test_many (void)
{
  FakeRun run;
  g_autofree char *text = many_lines (300);

  fake_run_open (&run, BY_ITER (1, ""), 10, NULL);
  rn_run_history_load (run.runner, text);
  for (int i = 0; i < 300; i++)
    rn_run_history_add_change (run.runner, "a: 1 in the checkpoint, 2 now");
  rn_run_history_begin (run.runner);
  g_autofree char *result = rn_run_history_text (run.runner);
  g_auto (GStrv) lines = g_strsplit (result, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), ==, 100);
  g_assert_cmpstr (lines[0], ==, "{\"iter\": 201}");
  g_assert_cmpstr (lines[98], ==, "{\"iter\": 299}");
  g_autoptr (RnRecord) last = parse (lines[99]);
  g_auto (GStrv) changed = g_strsplit (rn_record_string (last, "changed"), "\n", -1);
  g_assert_cmpuint (g_strv_length (changed), ==, 101);
  g_assert_cmpstr (changed[100], ==, "and more");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_damaged (void)
{
  FakeRun run;

  fake_run_open (&run, BY_ITER (1, ""), 10, NULL);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "resume: run 2 in the history*left out*");
  rn_run_history_load (run.runner, "{\"iter\": 1}\n{\"iter\": \n{\"iter\": 3}");
  g_test_assert_expected_messages ();
  g_autofree char *result = rn_run_history_text (run.runner);
  g_assert_cmpstr (result, ==, "{\"iter\": 1}\n{\"iter\": 3}");

  /* A checkpoint of a release that wrote none. */
  rn_run_history_load (run.runner, NULL);
  g_assert_null (rn_run_history_text (run.runner));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/run-history/lines", test_lines);
  g_test_add_func ("/run-history/many", test_many);
  g_test_add_func ("/run-history/damaged", test_damaged);
  return g_test_run ();
}
