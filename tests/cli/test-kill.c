/*
 * The program against kill -9 at random moments and against folders that take no file: whatever happens, the
 * newest checkpoint is whole, and the run that goes on from it ends in the same bits as one that was left
 * alone. The run is in half precision with memory strategies, and two of three checkpoints are inside a
 * window.
 *
 * The seed of the moments is that of the test (--seed). RN_TEST_LONG=1: 200 kills instead of 15.
 */
#include "config.h"

#include "runner/checkpoint-list.h"
#include "runner/safetensors.h"
#include "tests/cli/program.h"
#include "tests/small-model.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST "iter_12.safetensors" /* two epochs of 12 images, two in a batch */

static char *data_dir, *straight_dir, *data_root;
static double straight_s; /* time that the straight run took */

/* ---- Running it ---- */

/* `runner train` in @dir with @more at the end, NULL-ended. (transfer full) */
static GStrv
train_args (const char *dir, const char *const *more)
{
  g_autoptr (GStrvBuilder) args = g_strv_builder_new ();
  g_autofree char *program = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  g_autofree char *config = config_file ("retinanet_shapes.yaml");

  g_strv_builder_add_many (args, program, "train", config, "--work-dir", dir, "--threads", "1", "--set",
                           data_root, "x_size=[96, 64]", SMALL_MODEL, "optimizer.lr=0.001",
                           "data.samples_per_gpu=2", "data.workers_per_gpu=1", "log_config.interval=2",
                           "checkpoint_config={interval: 1, by_epoch: false, max_keep_ckpts: 2}",
                           "evaluation={interval: 1, save_best: auto, keep_best_k: 2}",
                           "fp16={loss_scale: {init_scale: 1024, growth_interval: 2}}",
                           "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 3}",
                           "memory={head: depth_first, momentum: bf16}", "model.backbone.with_cp=true",
                           "runner={type: EpochBasedRunner, max_epochs: 2}", NULL);
  g_strv_builder_addv (args, (const char **) more);
  return g_strv_builder_end (args);
}

static const char *const resume[] = { "--resume", NULL }, *const start[] = { NULL };

/* @setup runs in the child before the program. */
static Result
train (const char *dir, const char *const *more, GSpawnChildSetupFunc setup)
{
  g_auto (GStrv) args = train_args (dir, more);
  Result result = { 0 };
  g_autoptr (GError) error = NULL;
  int status = 0;

  g_spawn_sync (NULL, args, NULL, G_SPAWN_DEFAULT, setup, NULL, &result.out, &result.err, &status, &error);
  g_assert_no_error (error);
  if (!g_spawn_check_wait_status (status, &error))
    {
      g_assert_true (error->domain == G_SPAWN_EXIT_ERROR); /* not by a signal */
      result.code = error->code;
    }
  return result;
}

static void
train_to_end (const char *dir, const char *const *more)
{
  g_auto (Result) result = train (dir, more, NULL);
  if (result.code != 0)
    g_error ("%s", result.err);
}

/* Starts it and kills it after @seconds. FALSE: it had reached its end by then. */
static gboolean
train_and_kill (const char *dir, double seconds)
{
  g_auto (GStrv) args = train_args (dir, resume);
  g_autoptr (GError) error = NULL;
  GPid child;
  int status;

  g_spawn_async (NULL, args, NULL,
                 G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                 NULL, &child, &error);
  g_assert_no_error (error);
  g_usleep ((gulong) (seconds * 1e6));
  kill (child, SIGKILL);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFSIGNALED (status) || WEXITSTATUS (status) == 0);
  return WIFSIGNALED (status);
}

/* ---- Looking at what it left ---- */

static RnSafetensors *
open_whole (const char *dir, const char *name)
{
  g_autofree char *path = rn_checkpoint_list_path (dir, name);
  g_autoptr (GError) error = NULL;
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  rn_safetensors_verify (file, &error);
  g_assert_no_error (error);
  return file;
}

/* Every checkpoint in @dir is whole, and the list and the link lead to one. Gives their number. */
static guint
assert_whole (const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) folder = g_dir_open (dir, 0, NULL);
  const char *name;
  guint n = 0;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    if (g_str_has_suffix (name, ".safetensors")) /* the link too */
      {
        rn_safetensors_free (open_whole (dir, name));
        n++;
      }
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (dir, &error);
  g_assert_no_error (error);
  if (list->len > 0)
    rn_safetensors_free (open_whole (dir, g_ptr_array_index (list, 0)));
  return n;
}

static char *
read_list (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "last_checkpoint", NULL);
  char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return text;
}

/* Weights, momentum, counters and best scores are those of the straight run, to the bit. */
static void
assert_equals_straight (const char *dir)
{
  static const char *const records[] = { "counters", "sampler", "hook/EvalHook" };
  g_autoptr (RnSafetensors) a = open_whole (straight_dir, LAST), b = open_whole (dir, LAST);
  g_autofree char *list_a = read_list (straight_dir), *list_b = read_list (dir);

  g_assert_cmpuint (rn_safetensors_size (a), ==, rn_safetensors_size (b));
  for (guint i = 0; i < rn_safetensors_size (a); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (a, i), *y = rn_safetensors_find (b, x->name);
      g_assert_nonnull (y);
      g_assert_cmpuint (x->bytes, ==, y->bytes);
      g_assert_true (memcmp (x->data, y->data, x->bytes) == 0);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (records); i++)
    {
      g_assert_nonnull (rn_safetensors_metadata (a, records[i]));
      g_assert_cmpstr (rn_safetensors_metadata (a, records[i]), ==, rn_safetensors_metadata (b, records[i]));
    }
  g_assert_cmpstr (list_a, ==, list_b);
  g_assert_cmpuint (assert_whole (straight_dir), ==, assert_whole (dir));
}

static char *
new_dir (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = g_dir_make_tmp ("rn-kill-XXXXXX", &error);
  g_assert_no_error (error);
  return dir;
}

/* ---- kill -9 ---- */

static void
test_kill (void)
{
  const int n_wanted = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0 ? 200 : 15;
  int n_kills = 0, n_runs = 0, n_with_files = 0;
  g_autofree char *dir = new_dir ();

  while (n_kills < n_wanted)
    {
      /* From the first moment to some checkpoints later. What is left to do gets less each time. */
      if (train_and_kill (dir, g_test_rand_double_range (0, 0.75 * straight_s)))
        {
          n_kills++;
          n_with_files += assert_whole (dir) > 0;
          continue;
        }
      assert_equals_straight (dir);
      n_runs++;
      remove_tree (dir);
      g_assert_cmpint (g_mkdir (dir, 0700), ==, 0);
    }
  train_to_end (dir, resume);
  assert_equals_straight (dir);
  remove_tree (dir);
  g_test_message ("%d kills, %d of them when there were checkpoints; %d runs came to their end", n_kills,
                  n_with_files, n_runs + 1);
  g_assert_cmpint (n_with_files, >, 0);
}

/* ---- Folders that take no file ---- */

/* A limit of the size of files, as a full disk: the write fails in the middle of the file. */
static void
limit_file_size (gpointer data)
{
  struct rlimit limit = { 1 << 20, 1 << 20 };
  signal (SIGXFSZ, SIG_IGN);
  setrlimit (RLIMIT_FSIZE, &limit);
}

/* The run stops with an error that names the file, what was there stays, and it can go on later. */
static void
assert_stops (const char *dir, GSpawnChildSetupFunc setup, const char *const *words)
{
  g_autofree char *before = read_list (dir);
  guint n_before = assert_whole (dir);
  g_auto (Result) result = train (dir, resume, setup);

  g_assert_cmpint (result.code, !=, 0);
  for (; *words != NULL; words++)
    assert_contains (result.err, *words);
  g_autofree char *after = read_list (dir);
  g_assert_cmpstr (before, ==, after);
  g_assert_cmpuint (assert_whole (dir), ==, n_before);
}

/* A run of three iterations, with checkpoints of the second and the third. */
static char *
begin_run (void)
{
  static const char *const three[] = { "runner={type: EpochBasedRunner, max_epochs: 2, max_iters: 3}",
                                       "evaluation=null", NULL };
  char *dir = new_dir ();
  train_to_end (dir, three);
  return dir;
}

static void
test_disk_full (void)
{
  static const char *const words[] = { "CheckpointHook", "iter_4.safetensors", "File too large", NULL };
  g_autofree char *dir = begin_run ();

  assert_stops (dir, limit_file_size, words);
  train_to_end (dir, resume);
  assert_equals_straight (dir);
  remove_tree (dir);
}

static void
test_name_taken (void)
{
  static const char *const words[] = { "CheckpointHook", "iter_4.safetensors", "Is a directory", NULL };
  g_autofree char *dir = begin_run (), *path = g_build_filename (dir, "iter_4.safetensors", NULL);
  g_autofree char *before = read_list (dir);

  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  g_auto (Result) result = train (dir, resume, NULL);
  g_assert_cmpint (result.code, !=, 0);
  for (const char *const *word = words; *word != NULL; word++)
    assert_contains (result.err, *word);
  g_autofree char *after = read_list (dir);
  g_assert_cmpstr (before, ==, after);
  g_assert_cmpint (g_rmdir (path), ==, 0);
  train_to_end (dir, resume);
  assert_equals_straight (dir);
  remove_tree (dir);
}

/* Root may write everywhere, so the program is not root here. */
static void
leave_root (gpointer data)
{
  if (geteuid () == 0 && (setgid (65534) != 0 || setuid (65534) != 0))
    _exit (99);
}

static gboolean
others_can_run_it (void)
{
  g_autofree char *program = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  char *argv[] = { program, (char *) "--help", NULL };
  g_autofree char *out = NULL, *err = NULL;
  int status;

  return g_spawn_sync (NULL, argv, NULL, G_SPAWN_DEFAULT, leave_root, NULL, &out, &err, &status, NULL)
         && g_spawn_check_wait_status (status, NULL);
}

static void
test_read_only (void)
{
  static const char *const words[] = { "the run cannot write there", "Permission denied", "--work-dir",
                                       NULL };

  if (!others_can_run_it ())
    {
      g_test_skip ("other users cannot run the program from here");
      return;
    }
  g_autofree char *dir = begin_run ();
  g_assert_cmpint (g_chmod (dir, 0555), ==, 0);
  assert_stops (dir, leave_root, words);
  g_assert_cmpint (g_chmod (dir, 0755), ==, 0);
  train_to_end (dir, resume);
  assert_equals_straight (dir);
  remove_tree (dir);
}

/* ---- */

static void
make_straight_run (void)
{
  data_dir = new_dir ();
  straight_dir = new_dir ();
  data_root = g_strdup_printf ("data_root=%s/", data_dir);
  g_assert_cmpint (g_chmod (data_dir, 0755), ==, 0);
  g_auto (Result) result = run_program ("synth", data_dir, "--train", "12", "--val", "4", "--width", "96",
                                        "--height", "64", "--force", NULL);
  g_assert_cmpint (result.code, ==, 0);
  gint64 begin = g_get_monotonic_time ();
  train_to_end (straight_dir, start);
  straight_s = (double) (g_get_monotonic_time () - begin) / 1e6;
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_setenv ("OMP_WAIT_POLICY", "passive", TRUE); /* other tests run at the same time */
  make_straight_run ();

  g_test_add_func ("/kill/any-moment", test_kill);
  g_test_add_func ("/kill/disk-full", test_disk_full);
  g_test_add_func ("/kill/name-taken", test_name_taken);
  g_test_add_func ("/kill/read-only", test_read_only);
  int code = g_test_run ();
  remove_tree (data_dir);
  remove_tree (straight_dir);
  return code;
}
