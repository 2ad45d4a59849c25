/* auto_scale_lr: every factor counts, and the run starts from the scaled rate. */
#include "config.h"

#include "runner/auto-scale-lr.h"
#include "runner/base/error.h"
#include "runner/config/config.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

#define SGD "optimizer: {type: SGD, lr: 0.01, momentum: 0.9}\n"

typedef struct
{
  RnNode *root;
  RnRunConfig config;
  RnOptimizer *optimizer;
} Parts;

static void
open_parts (Parts *parts, const char *lines)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *yaml = g_strconcat (SGD, lines, NULL);

  parts->root = rn_config_load_text (yaml, "test.yaml", NULL, &error);
  g_assert_no_error (error);
  rn_run_config_parse (parts->root, &parts->config, &error);
  g_assert_no_error (error);
  parts->optimizer = rn_optimizer_new (parts->config.optimizer, &error);
  g_assert_no_error (error);
}

static void
close_parts (Parts *parts)
{
  rn_optimizer_free (parts->optimizer);
  rn_run_config_clear (&parts->config);
  rn_node_free (parts->root);
}

/* @message: a pattern of what is said; NULL: nothing */
static void
assert_scaled (const char *lines, gint64 batch_size, double lr, const char *message)
{
  Parts parts;
  g_autoptr (GError) error = NULL;

  open_parts (&parts, lines);
  if (message != NULL)
    g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, message);
  g_assert_true (rn_auto_scale_lr (&parts.config, batch_size, parts.optimizer, &error));
  g_test_assert_expected_messages ();
  /* A product and a quotient of doubles: each rounds by half a unit, 2^-53. */
  g_assert_cmpfloat (fabs (rn_optimizer_lr (parts.optimizer) - lr), <=, 3 * ldexp (lr, -53));
  close_parts (&parts);
}

static void
test_factors (void)
{
  assert_scaled ("auto_scale_lr: {enable: true, base_batch_size: 16}\n", 2, 0.00125,
                 "*0.00125 = 0.01 * (2 images * 1 process * 1 accumulated iterations) / 16*");
  assert_scaled ("auto_scale_lr: {enable: true}\n", 8, 0.005, "*0.005 = 0.01 * (8 images*/ 16*");
  assert_scaled ("auto_scale_lr: {enable: true, base_batch_size: 1}\n", 3, 0.03, "*0.03 = *");
  assert_scaled ("auto_scale_lr: {enable: true}\n"
                 "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 4}\n",
                 2, 0.005, "*0.005 = 0.01 * (2 images * 1 process * 4 accumulated iterations) / 16*");
  /* The hook may stand among the others. */
  assert_scaled ("auto_scale_lr: {enable: true}\n"
                 "custom_hooks: [{type: NumClassCheckHook}, {type: GradientCumulativeOptimizerHook, "
                 "cumulative_iters: 8}]\n",
                 2, 0.01, "* 8 accumulated iterations) / 16*");
  assert_scaled ("auto_scale_lr: {enable: true}\noptimizer_config: {grad_clip: {max_norm: 35}}\n", 16, 0.01,
                 "*0.01 = 0.01 * (16 images * 1 process * 1 accumulated*");
}

static void
test_off (void)
{
  assert_scaled ("", 2, 0.01, NULL);
  assert_scaled ("auto_scale_lr: null\n", 2, 0.01, NULL);
  assert_scaled ("auto_scale_lr: {enable: false, base_batch_size: 16}\n", 2, 0.01, NULL);
  assert_scaled ("auto_scale_lr: {base_batch_size: 16}\n", 2, 0.01, NULL);
}

static void
assert_refused (const char *lines, const char *pattern)
{
  Parts parts;
  g_autoptr (GError) error = NULL;

  open_parts (&parts, lines);
  g_assert_false (rn_auto_scale_lr (&parts.config, 2, parts.optimizer, &error));
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
  g_assert_true (g_str_has_prefix (error->message, "test.yaml:2:"));
  g_assert_cmpint (rn_error_exit_code (error), ==, 2);
  g_assert_cmpfloat (rn_optimizer_lr (parts.optimizer), ==, 0.01);
  close_parts (&parts);
}

static void
test_refused (void)
{
  assert_refused ("auto_scale_lr: {enable: true, base_batch_size: 0}\n", "*base_batch_size*");
  assert_refused ("auto_scale_lr: {enable: false, base_batch_size: -16}\n", "*base_batch_size*");
  assert_refused ("auto_scale_lr: {enable: true, base_batch: 16}\n", "*base_batch*base_batch_size*");
  assert_refused ("auto_scale_lr: true\n", "*auto_scale_lr*");
}

/* OneCycle does not start from the optimizer's rate. */
static void
test_one_cycle (void)
{
  Parts parts;
  g_autoptr (GError) error = NULL;

  open_parts (&parts, "auto_scale_lr: {enable: true}\nlr_config: {policy: OneCycle, max_lr: 0.1}\n");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "*auto_scale_lr*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*test.yaml:3:*max_lr*not scaled*");
  g_assert_true (rn_auto_scale_lr (&parts.config, 2, parts.optimizer, &error));
  g_test_assert_expected_messages ();
  close_parts (&parts);
}

/* ---- In a training ---- */

static GString *warnings;

static void
take_warning (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & G_LOG_LEVEL_WARNING)
    g_string_append_printf (warnings, "%s\n", message);
}

/* @lr: that schedules start from. @warning: a part of the one that is given; NULL: there is none */
static void
assert_training (const char *data, const char *const *changes, double lr, const char *warning)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-scale-XXXXXX", NULL);
  GLogFunc before = g_log_set_default_handler (take_warning, NULL);
  GLogLevelFlags fatal = g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);

  warnings = g_string_new (NULL);
  RnTraining *training = small_detector_training (data, dir, changes, FALSE, NULL);
  g_log_set_default_handler (before, NULL);
  g_log_set_always_fatal (fatal);
  g_assert_cmpfloat_with_epsilon (rn_runner_base_lr (training->runner), lr, 1e-15);
  if (warning == NULL)
    g_assert_cmpstr (warnings->str, ==, "");
  else if (strstr (warnings->str, warning) == NULL)
    g_error ("\"%s\" is not in \"%s\"", warning, warnings->str);
  g_string_free (warnings, TRUE);
  rn_training_free (training);
  remove_tree (dir);
}

#define NO_CLIP "optimizer_config.grad_clip=null"
#define WINDOW(n) \
  "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: " #n ", _delete_: true}"

/* The usual recipe is 0.01 for 16 images; more than twice that is warned of. */
static void
test_training (void)
{
  g_autofree char *data = small_detector_data ();
  const char *const alone[] = { NO_CLIP, NULL };
  const char *const scaled[] = { NO_CLIP, "auto_scale_lr={enable: true}", NULL };
  const char *const window[] = { WINDOW (16), "auto_scale_lr={enable: true}", NULL };
  const char *const too_much[] = { WINDOW (2), "auto_scale_lr={enable: true, base_batch_size: 1}", NULL };
  const char *const one_cycle[] = { NO_CLIP, "auto_scale_lr={enable: false}",
                                    "lr_config={policy: OneCycle, max_lr: 0.5, _delete_: true}", NULL };

  assert_training (data, alone, 0.01, "is 0.01 for the 2 images of a step");
  assert_training (data, scaled, 0.00125, NULL);
  assert_training (data, window, 0.02, NULL);
  assert_training (data, too_much, 0.04, "is 0.04 for the 4 images of a step");
  assert_training (data, one_cycle, 0.01, "is 0.5 for the 2 images of a step");
  remove_tree (data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  small_detector_register ();
  g_test_add_func ("/runner/auto-scale-lr/factors", test_factors);
  g_test_add_func ("/runner/auto-scale-lr/off", test_off);
  g_test_add_func ("/runner/auto-scale-lr/refused", test_refused);
  g_test_add_func ("/runner/auto-scale-lr/one-cycle", test_one_cycle);
  g_test_add_func ("/runner/auto-scale-lr/training", test_training);
  return g_test_run ();
}
