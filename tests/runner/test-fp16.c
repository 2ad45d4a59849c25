/*
 * Training in half precision, from the lines of the configuration to the checkpoint: losses, overflows,
 * accumulation, parts in single precision.
 */
#include "config.h"

#include "kernels/half.h"
#include "runner/checkpoint.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

#define N_EPOCHS 6
#define N_ITERS (N_EPOCHS * SMALL_EPOCH)

static char *data;

/* ---- A hook that writes down ---- */

typedef struct
{
  RnHook hook;
} NotesHook;

static const RnKeySpec no_keys[] = { RN_KEY_END };
static double losses[N_ITERS], scales[N_ITERS], skipped[N_ITERS];

static gboolean
note (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 i = rn_runner_iter (runner);

  losses[i] = rn_runner_loss (runner, "loss");
  scales[i] = rn_runner_log_mean (runner, "loss_scale", 1);
  skipped[i] = rn_runner_log_mean (runner, "skipped", 1);
  return TRUE;
}

RN_HOOK_DEFINE (notes, NotesHook, .name = "NotesHook", .summary = "for tests", .keys = no_keys,
                .priority = RN_PRIORITY_LOWEST, .after_train_iter = note);

/* ---- One run ---- */

typedef struct
{
  char *dir;
  RnTraining *training;
} Run;

static void
run_clear (Run *run)
{
  rn_training_free (run->training);
  remove_tree (run->dir);
  g_free (run->dir);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

/* @fp16, @optimizer_config: values of these keys. @more: (nullable): one more change. */
static gboolean
run_init (Run *run, const char *fp16, const char *optimizer_config, const char *more, GError **error)
{
  g_autofree char *fp16_line = g_strconcat ("fp16=", fp16, NULL),
                  *hook_line = g_strconcat ("optimizer_config=", optimizer_config, NULL);
  const char *const changes[] = { fp16_line,
                                  hook_line,
                                  "custom_hooks=[{type: NotesHook}]",
                                  "runner={type: EpochBasedRunner, max_epochs: " G_STRINGIFY (N_EPOCHS) "}",
                                  "lr_config=null",
                                  "optimizer.lr=0.05",
                                  more,
                                  NULL };
  g_autoptr (GError) cause = NULL;

  run->dir = g_dir_make_tmp ("rn-fp16-XXXXXX", &cause);
  g_assert_no_error (cause);
  run->training = small_detector_training (data, run->dir, changes, FALSE, error);
  return run->training != NULL;
}

static Run
train (const char *fp16, const char *optimizer_config, const char *more)
{
  g_autoptr (GError) error = NULL;
  Run run = { 0 };

  run_init (&run, fp16, optimizer_config, more, NULL);
  rn_runner_run (run.training->runner, &error);
  g_assert_no_error (error);
  return run;
}

static RnDType
type_of (const Run *run, const char *module)
{
  g_autoptr (GError) error = NULL;
  const RnPlan *plan =
      rn_programs_get_plan (run->training->job->programs, (RnShape){ RN_MODE_TRAIN, 2, 64, 64 }, &error);
  g_assert_no_error (error);
  RnValueId v = rn_graph_module_output (plan->graph, module);
  g_assert_cmpint (v, !=, RN_NO_VALUE);
  return rn_graph_value (plan->graph, v)->desc.dtype;
}

static double
mean (const double *values, int n)
{
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += values[i];
  return sum / n;
}

/* ---- Losses ---- */

static const struct
{
  const char *name, *fp16, *hook;
  RnDType map, prediction;
  double scale; /* of the last iteration; NAN: the hook has none */
} forms[] = {
  { "mmdetection", "{loss_scale: 512.}", "{grad_clip: {max_norm: 5}}", RN_F16, RN_F32, 512 },
  { "default-scale", "{opt_level: O2}", "{type: OptimizerHook}", RN_F16, RN_F16, 512 },
  { "bf16", "{dtype: bf16}", "{}", RN_BF16, RN_F32, NAN },
  { "bf16-o2", "{dtype: bfloat16, opt_level: O2, loss_scale: 8}", "{}", RN_BF16, RN_BF16, 8 },
  { "hook-alone", "null", "{type: Fp16OptimizerHook, loss_scale: dynamic}", RN_F16, RN_F32, 65536 },
  { "scale-alone", "{opt_level: O0}", "{}", RN_F32, RN_F32, 512 },
  { "both", "{loss_scale: 64}", "{type: Fp16OptimizerHook, loss_scale: 64.0}", RN_F16, RN_F32, 64 },
  { "part", "{loss_scale: 64, force_fp32: [bbox_head]}", "{}", RN_F16, RN_F32, 64 },
  { "forced-half", "{loss_scale: 64, force_half: bbox_head.retina_cls}", "{}", RN_F16, RN_F16, 64 },
};

/* Training goes down as far as without half precision: half of its way at least. */
static void
test_losses (void)
{
  g_auto (Run) single = train ("null", "{}", NULL);
  double first = mean (losses, 5), way = first - mean (losses + N_ITERS - 5, 5);

  g_test_message ("single: %g to %g", first, first - way);
  g_assert_cmpfloat (way, >, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (forms); i++)
    {
      g_auto (Run) run = train (forms[i].fp16, forms[i].hook, NULL);
      g_test_message ("%s: %g to %g", forms[i].name, mean (losses, 5), mean (losses + N_ITERS - 5, 5));
      g_assert_cmpint (type_of (&run, "backbone.conv"), ==, forms[i].map);
      g_assert_cmpint (type_of (&run, "bbox_head.retina_cls"), ==, forms[i].prediction);
      g_assert_cmpfloat (mean (losses, 5) - mean (losses + N_ITERS - 5, 5), >, way / 2);
      if (isnan (forms[i].scale))
        g_assert_true (isnan (scales[N_ITERS - 1]));
      else
        g_assert_cmpfloat (scales[N_ITERS - 1], ==, forms[i].scale);
      for (int k = 0; k < N_ITERS; k++)
        g_assert_true (isfinite (losses[k]) && !(skipped[k] > 0));
      g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, N_ITERS);
    }
}

static void
test_parts (void)
{
  g_auto (Run) head = { 0 }, both = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_true (
      run_init (&head, "{loss_scale: 64, opt_level: O2}", "{}", "model.bbox_head.fp16_enabled=false", NULL));
  g_assert_cmpint (type_of (&head, "backbone.conv"), ==, RN_F16);
  g_assert_cmpint (type_of (&head, "bbox_head.retina_cls"), ==, RN_F32);

  g_assert_false (run_init (&both, "{loss_scale: 64, force_fp32: backbone}", "{}",
                            "model.bbox_head.fp16_enabled=false", &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  g_assert_nonnull (strstr (error->message, "no module is left in half precision"));
}

/* ---- Overflows ---- */

/*
 * Gradients of the losses at the first scale are far beyond 65504, so steps are left out, and each halves the
 * scale, until they fit.
 */
static void
test_overflow (void)
{
  g_auto (Run) run = train ("{opt_level: O2, loss_scale: {init_scale: 1.0e+9}}", "{}", NULL);
  int n = (int) skipped[N_ITERS - 1];

  g_assert_cmpint (n, >, 0);
  g_assert_cmpint (n, <, N_ITERS);
  g_assert_cmpfloat (skipped[0], ==, 1);
  g_assert_cmpfloat (scales[1], ==, scales[0] / 2);
  g_assert_cmpfloat (scales[N_ITERS - 1], ==, scales[0] / pow (2, n));
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, N_ITERS - n);
  for (int k = 0; k < N_ITERS; k++)
    g_assert_true (isfinite (losses[k]));
}

/* bf16 has the range of floats, where the same scale does no harm. */
static void
test_range (void)
{
  g_auto (Run) run = train ("{opt_level: O2, dtype: bf16, loss_scale: {init_scale: 1.0e+9}}", "{}", NULL);

  g_assert_cmpfloat (skipped[N_ITERS - 1], ==, 0);
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, N_ITERS);
}

/* ---- Accumulation ---- */

/* How far the weights of @a and @b are apart, as a share of how far @b is from the weights of @start. */
static double
compare_weights (const Run *a, const Run *b, const Run *start)
{
  RnParamSet *sets[] = { rn_programs_params (a->training->job->programs),
                         rn_programs_params (b->training->job->programs),
                         rn_programs_params (start->training->job->programs) };
  double difference = 0, way = 0;

  for (int i = 0; i < rn_param_set_size (sets[0]); i++)
    {
      const RnParam *param = rn_param_set_get (sets[0], i);
      const float *x = rn_param_set_value (sets[0], i), *y = rn_param_set_value (sets[1], i),
                  *z = rn_param_set_value (sets[2], i);
      for (int64_t k = 0; param->trainable && k < rn_desc_elements (&param->desc); k++)
        {
          difference += pow ((double) x[k] - (double) y[k], 2);
          way += pow ((double) y[k] - (double) z[k], 2);
        }
    }
  g_assert_cmpfloat (way, >, 0);
  return sqrt (difference / way);
}

/*
 * Windows of 4 in half against single precision, after the 15 steps of the run. A gradient in half
 * is off by sqrt (n u) at most, for n ops one after the other and rounding errors of u = 2^-11, where ReLUs
 * change sides (see tests/graph/test-amp.c); here n is about 20 for a step.
 */
static void
test_accumulation (void)
{
  static const char *const modes[] = { "micro", "samples", "positives" };
  const double tolerance = sqrt (20 * 0x1p-11);
  g_auto (Run) start = { 0 };

  g_assert_true (run_init (&start, "null", "{}", NULL, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_autofree char *hook = g_strdup_printf (
          "{type: GradientCumulativeOptimizerHook, cumulative_iters: 4, normalize: %s}", modes[i]);
      g_auto (Run) single = train ("null", hook, "optimizer.lr=0.01");
      g_auto (Run) half = train ("{loss_scale: 512}", hook, "optimizer.lr=0.01");
      double error = compare_weights (&half, &single, &start);

      g_test_message ("%s: %g", modes[i], error);
      g_assert_cmpint (rn_runner_opt_step (half.training->runner), ==, N_ITERS / 4);
      g_assert_cmpfloat (scales[N_ITERS - 1], ==, 512);
      g_assert_cmpfloat (error, >, 0);
      g_assert_cmpfloat (error, <, tolerance);
    }
}

/* ---- Checkpoints ---- */

static guint n_warnings;

static void
count_warning (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if ((level & G_LOG_LEVEL_WARNING) != 0
      && strstr (message, "trained in fp16 O1, this run computes in bf16 O2") != NULL)
    n_warnings++;
  else if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
}

/* Parameters and states are single precision; another precision goes on from it, and says so. */
static void
test_checkpoint (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = train ("{loss_scale: 64}", "{}", NULL);
  g_autofree char *list = fake_run_read_list (run.dir), *name = g_strndup (list, strcspn (list, "\n")),
                  *path = g_build_filename (run.dir, name, NULL);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);

  g_assert_cmpstr (rn_safetensors_metadata (file, RN_CHECKPOINT_PRECISION), ==, "fp16 O1");
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    g_assert_cmpstr (rn_safetensors_get (file, i)->type, ==, "F32");

  g_auto (Run) other = { 0 };
  g_assert_true (run_init (&other, "{dtype: bf16, opt_level: O2}", "{}", NULL, NULL));
  n_warnings = 0;
  g_log_set_default_handler (count_warning, NULL);
  g_assert_true (rn_runner_resume (other.training->runner, path, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (n_warnings, ==, 1);
}

static void
drop_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* overflows are warned of */
  g_log_set_default_handler (drop_message, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_notes, NULL));
  small_detector_register ();
  data = small_detector_data ();
  g_test_add_func ("/fp16/losses", test_losses);
  g_test_add_func ("/fp16/parts", test_parts);
  g_test_add_func ("/fp16/overflow", test_overflow);
  g_test_add_func ("/fp16/range", test_range);
  g_test_add_func ("/fp16/accumulation", test_accumulation);
  g_test_add_func ("/fp16/checkpoint", test_checkpoint);
  int result = g_test_run ();
  remove_tree (data);
  g_free (data);
  return result;
}
