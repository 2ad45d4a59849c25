/*
 * A small RetinaNet on drawn shapes, through the whole program: a run that is killed and taken up ends in the
 * same bits and the same log as one that was left alone.
 *
 * Each run is a process of its own, because a process that has used OpenMP cannot fork.
 */
#include "config.h"

#include "datasets/synth.h"
#include "runner/base/signals.h"
#include "runner/config/config.h"
#include "runner/hook-list.h"
#include "runner/train.h"
#include "tests/runner/fake-task.h"
#include "tests/small-model.h"
#include "tests/tree.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AT "7"

typedef struct
{
  RnHook hook;
  gint64 at;
  int with;
} SignalHook;

static const char *const signal_names[] = { "kill", "term", NULL };

static const RnKeySpec signal_keys[] = {
  RN_KEY (SignalHook, at, RN_KEY_INT, NULL, "iteration", .flags = RN_KEY_REQUIRED),
  RN_KEY (SignalHook, with, RN_KEY_ENUM, "kill", "signal", .names = signal_names),
  RN_KEY_END,
};

static gboolean
send_signal (RnHook *hook, RnRunner *runner, GError **error)
{
  const SignalHook *self = (const SignalHook *) hook;
  if (rn_runner_iter (runner) + 1 == self->at)
    kill (getpid (), self->with == 0 ? SIGKILL : SIGTERM);
  return TRUE;
}

RN_HOOK_DEFINE (signal, SignalHook, .name = "SignalHook", .summary = "for tests", .keys = signal_keys,
                .after_train_iter = send_signal);

/* ---- One run, in a child ---- */

static RnNode *
load_config (const char *data, const char *work_dir, const char *const *more)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_shapes.yaml", NULL);
  g_autofree char *data_root = g_strdup_printf ("data_root=%s/", data),
                  *dir = g_strdup_printf ("work_dir=%s", work_dir);
  g_autoptr (GPtrArray) overrides = g_ptr_array_new ();
  const char *const fixed[] = { data_root,
                                dir,
                                "x_size=[96, 64]",
                                "threads=1",
                                SMALL_MODEL,
                                "optimizer.lr=0.001",
                                "data.samples_per_gpu=2",
                                "data.workers_per_gpu=2",
                                "log_config.interval=2",
                                "checkpoint_config={interval: 3, by_epoch: false, max_keep_ckpts: 2}",
                                "evaluation={interval: 1, save_best: auto}",
                                "runner={type: EpochBasedRunner, max_epochs: 2}" };

  for (gsize i = 0; i < G_N_ELEMENTS (fixed); i++)
    g_ptr_array_add (overrides, (gpointer) fixed[i]);
  for (; *more != NULL; more++)
    g_ptr_array_add (overrides, (gpointer) *more);
  g_ptr_array_add (overrides, NULL);
  RnNode *root = rn_config_load (path, (const char *const *) overrides->pdata, &error);
  if (root == NULL)
    g_error ("%s", error->message);
  return root;
}

static void
train (const char *data, const char *work_dir, const char *const *more, gboolean is_resume)
{
  g_autoptr (GError) error = NULL;
  RnJob *job = rn_job_new (load_config (data, work_dir, more), &error);
  g_autoptr (RnTraining) training = job != NULL ? rn_training_new (job, NULL, FALSE, &error) : NULL;

  if (training == NULL || (is_resume && !rn_runner_resume (training->runner, NULL, &error)))
    g_error ("%s", error->message);
  rn_signals_install ();
  if (!rn_runner_run (training->runner, &error))
    g_error ("%s", error->message);
}

/* Gives the signal that ended the run, by itself or as the loop saw it; 0 for a run that reached its end. */
static int
run_child (const char *data, const char *work_dir, const char *const *more, gboolean is_resume)
{
  int status;
  pid_t child = fork ();

  if (child == 0)
    {
      train (data, work_dir, more, is_resume);
      _exit (0);
    }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  if (WIFSIGNALED (status))
    return WTERMSIG (status);
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  return 0;
}

/* ---- Comparisons ---- */

static void
assert_same_tensors (const char *dir_a, const char *dir_b, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path_a = g_build_filename (dir_a, name, NULL),
                  *path_b = g_build_filename (dir_b, name, NULL);
  g_autoptr (RnSafetensors) a = rn_safetensors_open (path_a, &error);
  g_assert_no_error (error);
  g_autoptr (RnSafetensors) b = rn_safetensors_open (path_b, &error);
  g_assert_no_error (error);

  g_assert_true (rn_safetensors_verify (a, NULL) && rn_safetensors_verify (b, NULL));
  g_assert_cmpuint (rn_safetensors_size (a), ==, rn_safetensors_size (b));
  for (guint i = 0; i < rn_safetensors_size (a); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (a, i), *y = rn_safetensors_find (b, x->name);
      g_assert_nonnull (y);
      if (x->bytes != y->bytes || memcmp (x->data, y->data, x->bytes) != 0)
        g_error ("%s differs", x->name);
    }
}

static void
remove_json (const char *dir)
{
  g_autofree char *name = fake_run_files (dir, ".log.json"), *path = g_build_filename (dir, name, NULL);
  g_assert_cmpint (g_unlink (path), ==, 0);
}

/* The lines of @dir are the last ones of @straight. */
static void
assert_same_end (const char *dir, const char *straight, guint n_min)
{
  g_autoptr (GPtrArray) lines = fake_run_timeless_lines (dir), expected = fake_run_timeless_lines (straight);
  g_assert_cmpuint (lines->len, >=, n_min);
  g_assert_cmpuint (lines->len, <=, expected->len);
  for (guint i = 0; i < lines->len; i++)
    g_assert_cmpstr (g_ptr_array_index (lines, lines->len - 1 - i), ==,
                     g_ptr_array_index (expected, expected->len - 1 - i));
}

/* One size for each image, as the file says; and every choice of sizes and colours that can be drawn. */
static const char one_size[] = "x_size=[96, 64]";
static const char random_sizes[] =
    "train_pipeline=[{type: LoadImageFromFile}, {type: LoadAnnotations}, {type: PhotoMetricDistortion}, "
    "{type: "
    "Expand, ratio_range: [1, 2]}, {type: MinIoURandomCrop}, {type: Resize, img_scale: [[96, 48], [128, "
    "80]]}, "
    "{type: RandomFlip, flip_ratio: 0.6, direction: [horizontal, vertical]}, {type: RandomCrop, crop_size: "
    "[80, "
    "96]}, {type: Normalize, mean: [120, 120, 120], std: [60, 60, 60]}, {type: Pad, size_divisor: 32}, "
    "{type: "
    "DefaultFormatBundle}, {type: Collect, keys: [img, gt_bboxes, gt_labels]}]";

/* @override: one more value of the configuration. */
static void
test_same_bits (gconstpointer override)
{
  const char *const plain[] = { "custom_hooks=[{type: SignalHook, at: 0}]", override, NULL };
  const char *const killed[] = { "custom_hooks=[{type: SignalHook, at: " KILL_AT "}]", override, NULL };
  const char *const stopped[] = { "custom_hooks=[{type: SignalHook, at: " KILL_AT ", with: term}]", override,
                                  NULL };
  const char *const no_workers[] = { "custom_hooks=[{type: SignalHook, at: 0}]", "data.workers_per_gpu=0",
                                     override, NULL };
  g_autoptr (GError) error = NULL;
  g_autofree char *top = g_dir_make_tmp ("rn-training-XXXXXX", &error);
  g_autofree char *data = g_build_filename (top, "data", NULL);
  g_autofree char *a = g_build_filename (top, "a", NULL), *b = g_build_filename (top, "b", NULL),
                  *c = g_build_filename (top, "c", NULL);

  g_assert_no_error (error);
  g_assert_true (rn_synth_write (
      data, &(RnSynthOptions){ .n_train = 12, .n_val = 3, .n_test = 1, .width = 96, .height = 64, .seed = 1 },
      &error));
  g_assert_cmpint (g_mkdir (a, 0777) | g_mkdir (b, 0777) | g_mkdir (c, 0777), ==, 0);

  g_assert_cmpint (run_child (data, a, plain, FALSE), ==, 0);
  g_autofree char *list_path = g_build_filename (a, "last_checkpoint", NULL), *list = NULL;
  g_assert_true (g_file_get_contents (list_path, &list, NULL, NULL));
  g_autofree char *last = g_strndup (list, strcspn (list, "\n"));

  /* Killed in iteration 7, between the checkpoints of 6 and 9. */
  g_assert_cmpint (run_child (data, b, killed, FALSE), ==, SIGKILL);
  remove_json (b);
  g_assert_cmpint (run_child (data, b, plain, TRUE), ==, 0);
  assert_same_tensors (a, b, last);
  assert_same_end (b, a, 3);

  /* Stopped politely, and taken up with another number of loader threads. */
  g_assert_cmpint (run_child (data, c, stopped, FALSE), ==, 0);
  g_autofree char *saved = g_build_filename (c, "iter_" KILL_AT ".safetensors", NULL);
  g_assert_true (g_file_test (saved, G_FILE_TEST_EXISTS));
  remove_json (c);
  g_assert_cmpint (run_child (data, c, no_workers, TRUE), ==, 0);
  assert_same_tensors (a, c, last);
  assert_same_end (c, a, 3);
  remove_tree (top);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_signal, NULL));
  g_test_add_data_func ("/runner/training/same-bits", one_size, test_same_bits);
  g_test_add_data_func ("/runner/training/same-bits/random-sizes", random_sizes, test_same_bits);
  return g_test_run ();
}
