/*
 * Death and failure at every single step in which a file is written: opening, writing, syncing, renaming,
 * syncing the folder. The run that goes on ends in the same bits, with the same files, as one that was left
 * alone.
 */
#include "config.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/checkpoint-list.h"
#include "tests/runner/fake-task.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Regular files of three iterations, the best one of two epochs, and one of each that is deleted. */
#define CONFIG                                                                          \
  BY_EPOCH (2, "checkpoint_config: {interval: 2, by_epoch: false, max_keep_ckpts: 2}\n" \
               "evaluation: {interval: 1, save_best: mAP}\n")
#define EPOCH_LENGTH 3

static const double scores[] = { 0.1, 0.3 };

static void
open_run (FakeRun *run, const char *dir)
{
  fake_run_open (run, CONFIG, EPOCH_LENGTH, dir);
  run->fake.scores = scores;
  run->fake.n_scores = G_N_ELEMENTS (scores);
}

/* ---- The steps ---- */

typedef struct
{
  int n;               /* steps so far */
  int at;              /* the one that fails, from 0; -1: none */
  int code;            /* errno, or 0: the process dies */
  gboolean is_forever; /* all later ones fail too */
  RnAtomicFileStep failed;
} Plan;

static int
fail_step (RnAtomicFileStep step, gpointer data)
{
  Plan *plan = data;
  int n = plan->n++;

  if (plan->at < 0 || (plan->is_forever ? n < plan->at : n != plan->at))
    return 0;
  if (plan->code == 0)
    kill (getpid (), SIGKILL);
  if (n == plan->at)
    plan->failed = step;
  return plan->code;
}

static FakeRun straight;
static int n_steps;

static void
make_straight_run (void)
{
  Plan plan = { .at = -1 };
  open_run (&straight, NULL);
  rn_atomic_file_set_fault (fail_step, &plan);
  fake_run_go (&straight);
  rn_atomic_file_set_fault (NULL, NULL);
  n_steps = plan.n;
  /* Five steps for each of: three regular files with their lists, the list again after a deletion, two of the
   * best. */
  g_assert_cmpint (n_steps, ==, 5 * (3 * 2 + 1 + 2));
}

/* ---- What is left ---- */

/* All checkpoints that are there, and what the list and the link lead to. */
static void
assert_whole (const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *files = fake_run_files (dir, ".safetensors");
  g_auto (GStrv) names = g_strsplit (files, " ", -1);
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (dir, &error);

  g_assert_no_error (error);
  for (char **name = names; *name != NULL && **name != '\0'; name++)
    {
      g_autofree char *path = g_build_filename (dir, *name, NULL);
      g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
      g_assert_no_error (error);
      g_assert_true (rn_safetensors_verify (file, &error));
    }
  if (list->len > 0)
    g_assert_true (g_strv_contains ((const char *const *) names, g_ptr_array_index (list, 0)));
}

/* The files of the straight run, and none but these; or one that is still listed, if the last save of all was
 * cut short before it came to delete that. */
static void
assert_same_files (const char *dir)
{
  g_autofree char *files = fake_run_files (dir, ".safetensors");
  g_autofree char *expected_files = fake_run_files (straight.dir, ".safetensors");
  g_autofree char *list = fake_run_read_list (dir), *expected_list = fake_run_read_list (straight.dir);
  g_auto (GStrv) names = g_strsplit (files, " ", -1), expected = g_strsplit (expected_files, " ", -1);

  g_assert_true (g_str_has_prefix (list, expected_list));
  for (char **name = expected; *name != NULL; name++)
    g_assert_true (g_strv_contains ((const char *const *) names, *name));
  for (char **name = names; *name != NULL; name++)
    g_assert_true (g_strv_contains ((const char *const *) expected, *name) || strstr (list, *name) != NULL);
  g_assert_cmpuint (g_strv_length (names), <=, g_strv_length (expected) + 1);
}

/* Goes on in @dir to the end. */
static void
assert_goes_on (const char *dir)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;

  open_run (&run, dir);
  fake_run_resume (&run, NULL);
  run.fake.n_evaluations = (guint) rn_runner_epoch (run.runner);
  rn_runner_run (run.runner, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (run.fake.w, sizeof run.fake.w, straight.fake.w, sizeof straight.fake.w);
  g_assert_cmpmem (run.fake.momentum, sizeof run.fake.momentum, straight.fake.momentum,
                   sizeof straight.fake.momentum);
  assert_same_files (dir);
  g_autofree char *left = fake_run_files (dir, ".safetensors.tmp");
  g_assert_cmpstr (left, ==, "");
  assert_whole (dir);
  fake_run_close (&run);
}

/* ---- Death ---- */

static void
run_and_die (const char *dir, int at)
{
  int status;
  pid_t child = fork ();

  if (child == 0)
    {
      FakeRun run;
      Plan plan = { .at = at };
      open_run (&run, dir);
      rn_atomic_file_set_fault (fail_step, &plan);
      fake_run_go (&run);
      _exit (0);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL);
}

static void
test_death (void)
{
  for (int at = 0; at < n_steps; at++)
    {
      g_autofree char *dir = g_dir_make_tmp ("rn-death-XXXXXX", NULL);
      run_and_die (dir, at);
      assert_whole (dir);
      assert_goes_on (dir);
      fake_run_remove (dir);
    }
}

/* Dies again and again, a step further each time: no state piles up that keeps a run from its end. */
static void
test_many_deaths (void)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-deaths-XXXXXX", NULL);
  int n_deaths = 0;

  for (int at = 3;; at++)
    {
      int status;
      pid_t child = fork ();
      if (child == 0)
        {
          FakeRun run;
          Plan plan = { .at = at };
          open_run (&run, dir);
          fake_run_resume (&run, NULL);
          run.fake.n_evaluations = (guint) rn_runner_epoch (run.runner);
          rn_atomic_file_set_fault (fail_step, &plan);
          _exit (rn_runner_run (run.runner, NULL) ? 0 : 1);
        }
      g_assert_cmpint (waitpid (child, &status, 0), ==, child);
      assert_whole (dir);
      if (!WIFSIGNALED (status))
        {
          g_assert_cmpint (WEXITSTATUS (status), ==, 0);
          break;
        }
      n_deaths++;
    }
  g_assert_cmpint (n_deaths, >, 3);
  assert_goes_on (dir);
  fake_run_remove (dir);
}

/* ---- Failure ---- */

static void
check_failure (int at, int code, gboolean is_forever)
{
  FakeRun run;
  Plan plan = { .at = at, .code = code, .is_forever = is_forever };
  g_autoptr (GError) error = NULL;

  open_run (&run, NULL);
  g_assert_true (rn_runner_init (run.runner, &error));
  rn_atomic_file_set_fault (fail_step, &plan);
  gboolean is_ok = rn_runner_run (run.runner, &error);
  rn_atomic_file_set_fault (NULL, NULL);

  g_assert_false (is_ok);
  g_assert_true (g_str_has_prefix (error->message, "CheckpointHook: after_train_iter: ")
                 || g_str_has_prefix (error->message, "EvalHook: after_train_epoch: "));
  g_assert_nonnull (strstr (error->message, run.dir));
  g_assert_nonnull (strstr (error->message, g_strerror (code)));
  g_assert_cmpint (rn_error_exit_code (error), !=, 0);
  assert_whole (run.dir);
  assert_goes_on (run.dir);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_failure (void)
{
  static const int codes[] = { ENOSPC, EROFS, EIO };

  for (int at = 0; at < n_steps; at++)
    {
      check_failure (at, codes[at % 3], FALSE);
      if (at % 4 == 0)
        check_failure (at, codes[at % 3], TRUE);
    }
}

/* The link is for people: where it cannot be, there is a warning, and the run goes on. */
static void
test_no_link (void)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-link-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "latest.safetensors", NULL);
  FakeRun run;

  g_assert_true (g_file_set_contents (path, "mine", -1, NULL));
  fake_run_open (&run, BY_ITER (2, "checkpoint_config: {interval: 2}\n"), 100, dir);
  g_assert_true (rn_runner_init (run.runner, NULL));
  g_test_expect_message ("rn-hooks", G_LOG_LEVEL_MESSAGE, "Iter*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*latest.safetensors is a file, not our link*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "saved*iter_2.safetensors");
  g_assert_true (rn_runner_run (run.runner, NULL));
  g_test_assert_expected_messages ();
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, "mine");
  fake_run_remove (dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  make_straight_run ();

  g_test_add_func ("/save-faults/death", test_death);
  g_test_add_func ("/save-faults/many-deaths", test_many_deaths);
  g_test_add_func ("/save-faults/failure", test_failure);
  g_test_add_func ("/save-faults/no-link", test_no_link);
  int code = g_test_run ();
  fake_run_remove (straight.dir);
  fake_run_close (&straight);
  return code;
}
