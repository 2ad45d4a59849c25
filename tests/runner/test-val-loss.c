/* Validation losses of a small RetinaNet on drawn shapes: they are the losses of the model as it is, and
 * leave its training alone. */
#include "config.h"

#include "datasets/synth.h"
#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/hook-list.h"
#include "runner/train.h"
#include "tests/tree.h"
#include "tests/small-model.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static char *top, *data_root;

/* ---- A hook that keeps the mean losses of each epoch ---- */

static GArray *train_means, *val_means; /* of double */
static int n_val_images;

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  double mean = rn_runner_log_mean (runner, "loss", rn_runner_epoch_length (runner));
  g_array_append_val (train_means, mean);
  return TRUE;
}

static gboolean
after_val_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  n_val_images += rn_runner_batch (runner)->n;
  return TRUE;
}

static gboolean
after_val_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  double mean = rn_runner_log_mean (runner, "loss", 1);
  g_array_append_val (val_means, mean);
  return TRUE;
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_reserve_log (runner, rn_runner_epoch_length (runner));
  return TRUE;
}

RN_HOOK_DEFINE (means, RnHook, .name = "MeansHook", .summary = "for tests", .init = init,
                .after_train_epoch = after_train_epoch, .after_val_iter = after_val_iter,
                .after_val_epoch = after_val_epoch);

/* ---- Runs ---- */

/* Live batch norms: a validation that touched their statistics would show. */
static RnNode *
load_config (const char *work_dir, const char *const *more)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_shapes.yaml", NULL);
  g_autofree char *root = g_strdup_printf ("data_root=%s/", data_root),
                  *dir = g_strdup_printf ("work_dir=%s", work_dir);
  g_autoptr (GPtrArray) overrides = g_ptr_array_new ();
  const char *const fixed[] = { root,
                                dir,
                                "x_size=[96, 64]",
                                "threads=1",
                                SMALL_MODEL,
                                "model.backbone.norm_eval=false",
                                "model.backbone.frozen_stages=-1",
                                "optimizer.lr=0.001",
                                "data.samples_per_gpu=2",
                                "data.workers_per_gpu=1",
                                "evaluation=null",
                                "checkpoint_config={interval: 1}",
                                "custom_hooks=[{type: MeansHook}]",
                                "runner={type: EpochBasedRunner, max_epochs: 2}" };

  for (gsize i = 0; i < G_N_ELEMENTS (fixed); i++)
    g_ptr_array_add (overrides, (gpointer) fixed[i]);
  for (; *more != NULL; more++)
    g_ptr_array_add (overrides, (gpointer) *more);
  g_ptr_array_add (overrides, NULL);
  RnNode *node = rn_config_load (path, (const char *const *) overrides->pdata, &error);
  g_assert_no_error (error);
  return node;
}

static char *
train (const char *name, const char *const *more)
{
  g_autoptr (GError) error = NULL;
  char *work_dir = g_build_filename (top, name, NULL);

  g_assert_cmpint (g_mkdir (work_dir, 0777), ==, 0);
  g_array_set_size (train_means, 0);
  g_array_set_size (val_means, 0);
  n_val_images = 0;
  RnJob *job = rn_job_new (load_config (work_dir, more), &error);
  g_assert_no_error (error);
  g_autoptr (RnTraining) training = rn_training_new (job, NULL, FALSE, &error);
  g_assert_no_error (error);
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  return work_dir;
}

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
  int n_statistics = 0;

  g_assert_cmpuint (rn_safetensors_size (a), ==, rn_safetensors_size (b));
  for (guint i = 0; i < rn_safetensors_size (a); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (a, i), *y = rn_safetensors_find (b, x->name);
      g_assert_nonnull (y);
      n_statistics += g_str_has_suffix (x->name, "running_mean");
      if (x->bytes != y->bytes || memcmp (x->data, y->data, x->bytes) != 0)
        g_error ("%s differs", x->name);
    }
  g_assert_cmpint (n_statistics, >, 0);
}

/* Weights, momentum and the statistics of batch norms have the same bits as without validation. */
static void
test_untouched (void)
{
  static const char *const plain[] = { NULL }, *const with_val[] = { "workflow=[[train, 1], [val, 1]]",
                                                                     NULL };
  g_autofree char *a = train ("plain", plain);
  g_autoptr (GArray) expected = g_array_copy (train_means);
  g_autofree char *b = train ("with-val", with_val);

  g_assert_cmpuint (val_means->len, ==, 2);
  g_assert_cmpint (n_val_images, ==, 2 * 3); /* the last batch is short */
  for (guint i = 0; i < 2; i++)
    {
      g_assert_true (isfinite (g_array_index (val_means, double, i)));
      g_assert_cmpfloat (g_array_index (train_means, double, i), ==, g_array_index (expected, double, i));
    }
  assert_same_tensors (a, b, "epoch_1.safetensors");
  assert_same_tensors (a, b, "epoch_2.safetensors");
}

/*
 * The same images through the same augmentations, one in a batch, with weights that stay as they are and
 * frozen statistics: the mean validation loss is the mean training loss. The training order is another, so
 * the sums of doubles may differ in their last bits: 12 terms, each rounded once, are below 12 * 2^-53
 * = 1.4e-15.
 */
static void
test_equal_losses (void)
{
  static const char *const more[] = { "workflow=[[train, 1], [val, 1]]",
                                      "data.val.ann_file=ImageSets/Main/train.txt",
                                      "data.samples_per_gpu=1",
                                      "model.backbone.norm_eval=true",
                                      "optimizer.lr=1e-30", /* moves no weight by a bit that a loss shows */
                                      "lr_config=null",
                                      "runner.max_epochs=1",
                                      NULL };
  g_autofree char *dir = train ("equal", more);
  double train_mean = g_array_index (train_means, double, 0), val_mean = g_array_index (val_means, double, 0);

  g_assert_cmpint (n_val_images, ==, 12);
  g_assert_cmpfloat (fabs (val_mean - train_mean), <=, 1.4e-15 * train_mean);
}

/* In a run counted in iterations each val item takes as many batches as it says. */
static void
test_iterations (void)
{
  static const char *const more[] = { "runner={type: IterBasedRunner, max_iters: 4}",
                                      "workflow=[[train, 2], [val, 3]]", "checkpoint_config=null", NULL };
  g_autofree char *dir = train ("iterations", more);

  /* Passes of two images and one: 2 1 2 | 1 2 1. */
  g_assert_cmpuint (val_means->len, ==, 2);
  g_assert_cmpint (n_val_images, ==, 9);
}

static void
test_no_val_data (void)
{
  static const char *const more[] = { "workflow=[[train, 1], [val, 1]]", "data.val=null", NULL };
  g_autoptr (GError) error = NULL;
  RnJob *job = rn_job_new (load_config (top, more), &error);
  g_assert_no_error (error);
  g_autoptr (RnTraining) training = rn_training_new (job, NULL, FALSE, &error);

  g_assert_null (training);
  g_assert_cmpint (error->domain, ==, RN_CONFIG_ERROR);
  g_assert_true (g_str_has_prefix (error->message, "--set workflow"));
  g_assert_nonnull (strstr (error->message, "data.val"));
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_means, NULL));
  train_means = g_array_new (FALSE, FALSE, sizeof (double));
  val_means = g_array_new (FALSE, FALSE, sizeof (double));
  top = g_dir_make_tmp ("rn-val-loss-XXXXXX", &error);
  g_assert_no_error (error);
  data_root = g_build_filename (top, "data", NULL);
  g_assert_true (rn_synth_write (
      data_root,
      &(RnSynthOptions){ .n_train = 12, .n_val = 3, .n_test = 1, .width = 96, .height = 64, .seed = 1 },
      &error));

  g_test_add_func ("/runner/val-loss/untouched", test_untouched);
  g_test_add_func ("/runner/val-loss/equal-losses", test_equal_losses);
  g_test_add_func ("/runner/val-loss/iterations", test_iterations);
  g_test_add_func ("/runner/val-loss/no-val-data", test_no_val_data);
  int status = g_test_run ();
  remove_tree (top);
  g_free (top);
  g_free (data_root);
  g_array_unref (train_means);
  g_array_unref (val_means);
  return status;
}
