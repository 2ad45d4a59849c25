/*
 * Accumulation on a real model: with normalize: positives, and batch norms on frozen statistics, a step of
 * two batches of two images is the step of one batch of four.
 */
#include "config.h"

#include "datasets/synth.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

static char *data;

/* A data set of four images: one pass is one step, whatever the order. */
static char *
draw_four_images (void)
{
  g_autoptr (GError) error = NULL;
  char *dir = g_dir_make_tmp ("rn-four-XXXXXX", &error);

  rn_synth_write (
      dir,
      &(RnSynthOptions){
          .n_train = 4, .n_val = 1, .n_test = 1, .width = 64, .height = 64, .seed = 3, .force = TRUE },
      &error);
  g_assert_no_error (error);
  return dir;
}

/* The changes of all trained parameters by @n_iters iterations, one after the other, and where each begins.
 */
static GArray *
train (const char *images, int n_iters, const char *optimizer_config, GArray *begins)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-large-XXXXXX", &error);
  g_autofree char *per_batch = g_strconcat ("data.samples_per_gpu=", images, NULL),
                  *hook = g_strconcat ("optimizer_config=", optimizer_config, NULL),
                  *length = g_strdup_printf ("runner={type: IterBasedRunner, max_iters: %d}", n_iters);
  /* Orders of sums can be told apart in F32 only. */
  const char *precision = strstr (optimizer_config, "Fp16") != NULL ? "fp16={opt_level: O0}" : "fp16=null";
  const char *const changes[] = { "model.backbone={type: ResNet, depth: 18, base_channels: 8, num_stages: 4, "
                                  "out_indices: [2], frozen_stages: -1, norm_eval: true}",
                                  "model.bbox_head.in_channels=32",
                                  "optimizer={type: SGD, lr: 0.5}",
                                  "lr_config=null",
                                  "checkpoint_config=null",
                                  precision,
                                  per_batch,
                                  hook,
                                  length,
                                  NULL };
  g_autoptr (RnTraining) training = small_detector_training (data, dir, changes, FALSE, NULL);
  RnRunner *runner = training->runner;
  g_assert_cmpint (rn_runner_epoch_length (runner), ==, n_iters);
  GArray *values = g_array_new (FALSE, FALSE, sizeof (float));

  g_array_set_size (begins, 0);
  for (int pass = 0; pass < 2; pass++)
    {
      guint at = 0;
      for (guint i = 0; i < rn_runner_n_params (runner); i++)
        {
          if (!rn_runner_param_is_trained (runner, i))
            continue;
          guint n = (guint) rn_desc_elements (rn_runner_param_desc (runner, i));
          g_autofree float *w = g_new (float, n);
          g_assert_true (rn_runner_read_param (runner, i, w, &error));
          if (pass == 0)
            {
              g_array_append_val (begins, at);
              g_array_append_vals (values, w, n);
            }
          else
            for (guint k = 0; k < n; k++)
              g_array_index (values, float, at + k) = w[k] - g_array_index (values, float, at + k);
          at += n;
        }
      if (pass == 0)
        g_assert_true (rn_runner_run (runner, &error));
      g_assert_no_error (error);
    }
  g_array_append_val (begins, values->len);
  g_assert_cmpint (rn_runner_opt_step (runner), ==, 1);
  remove_tree (dir);
  return values;
}

/* The largest difference in a tensor over the largest entry of that tensor; of all tensors the largest. */
static double
largest_difference (const GArray *a, const GArray *b, const GArray *begins)
{
  double largest = 0;

  g_assert_cmpuint (a->len, ==, b->len);
  for (guint t = 0; t + 1 < begins->len; t++)
    {
      double entry = 0, difference = 0;
      for (guint k = g_array_index (begins, guint, t); k < g_array_index (begins, guint, t + 1); k++)
        {
          double x = (double) g_array_index (a, float, k), y = (double) g_array_index (b, float, k);
          entry = MAX (entry, fabs (x));
          difference = MAX (difference, fabs (x - y));
        }
      if (entry > 0)
        largest = MAX (largest, difference / entry);
    }
  return largest;
}

static void
test_large_batch (void)
{
  g_autoptr (GArray) begins = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) whole = train ("4", 1, "{}", begins);
  g_autoptr (GArray) positives = train (
      "2", 2, "{type: GradientCumulativeOptimizerHook, cumulative_iters: 2, normalize: positives}", begins);
  g_autoptr (GArray) scaled = train ("2", 2,
                                     "{type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 2, "
                                     "normalize: positives, loss_scale: 4096}",
                                     begins);
  g_autoptr (GArray) micro =
      train ("2", 2, "{type: GradientCumulativeOptimizerHook, cumulative_iters: 2}", begins);

  g_assert_cmpuint (begins->len, >, 40);
  /* Another order of sums: a gradient here has up to 4 * 32 * 32 terms of both signs, each rounded by 2^-24
   * of a partial sum, which makes 4096 * 2^-24 of it at most; the change of a weight is rounded as the weight
   * is. */
  const double order = 4096 * 0x1p-24;
  g_assert_cmpfloat (largest_difference (whole, positives, begins), <, order);
  g_assert_cmpfloat (largest_difference (whole, scaled, begins), <, order);
  /* The mean of means is another step altogether: the batches differ in their objects. */
  g_assert_cmpfloat (largest_difference (whole, micro, begins), >, 100 * order);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR
                          | G_LOG_LEVEL_CRITICAL); /* the large learning rate is warned of */
  small_detector_register ();
  data = draw_four_images ();
  g_test_add_func ("/hooks/large-batch", test_large_batch);
  int status = g_test_run ();
  remove_tree (data);
  g_free (data);
  return status;
}
