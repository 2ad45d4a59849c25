/* The preview says what the run does: the same values that the hooks are held to, and one item a step. */
#include "config.h"

#include "tests/hooks/golden-schedules.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/schedule-preview.h"

#include <math.h>

#define TOLERANCE 1e-9 /* as in test-lr-updater.c */

#define STRING(x) STRING_ (x)
#define STRING_(x) #x
#define OPTIMIZER \
  "optimizer: {type: SGD, lr: " STRING (GOLDEN_BASE_LR) ", momentum: " STRING (GOLDEN_MOMENTUM) "}\n"
#define ITER_RUN OPTIMIZER "runner: {type: IterBasedRunner, max_iters: 24}\n"
#define EPOCH_RUN OPTIMIZER "runner: {type: EpochBasedRunner, max_epochs: 8}\n"

static RnSchedulePreview *
make_preview (const char *yaml, gint64 batch_size, gint64 epoch_length, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (yaml, "test.yaml", NULL, &local);
  g_auto (RnRunConfig) config = { 0 };

  g_assert_no_error (local);
  rn_run_config_parse (root, &config, &local);
  g_assert_no_error (local);
  return rn_schedule_preview_new (root, &config, batch_size, epoch_length, error);
}

static const RnPreviewStep *
get_step (const RnSchedulePreview *preview, guint i)
{
  g_assert_cmpuint (i, <, preview->steps->len);
  return &g_array_index (preview->steps, RnPreviewStep, i);
}

static void
assert_close (double value, double expected)
{
  if (!(fabs (value - expected) <= TOLERANCE * fabs (expected)))
    g_error ("%.17g is not %.17g", value, expected);
}

static void
test_golden (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (golden_schedules); i++)
    {
      gboolean is_momentum = golden_schedules[i].is_momentum;
      g_autoptr (GError) error = NULL;
      g_autofree char *yaml =
          g_strdup_printf ("%s%s: %s\n", golden_schedules[i].is_epoch_run ? EPOCH_RUN : ITER_RUN,
                           is_momentum ? "momentum_config" : "lr_config", golden_schedules[i].config);
      if (golden_schedules[i].group != 0)
        continue;
      g_autoptr (RnSchedulePreview) preview = make_preview (yaml, 2, GOLDEN_EPOCH_LENGTH, &error);
      g_assert_no_error (error);
      g_assert_cmpint (preview->max_iters, ==, GOLDEN_TOTAL);
      g_assert_true (preview->is_by_epoch == golden_schedules[i].is_epoch_run);
      g_assert_cmpuint (preview->steps->len, ==, GOLDEN_TOTAL);
      for (guint k = 0; k < GOLDEN_TOTAL; k++)
        {
          const RnPreviewStep *step = get_step (preview, k);
          g_assert_cmpint (step->iter, ==, k);
          assert_close (is_momentum ? step->momentum : step->lr, golden_schedules[i].values[k]);
        }
    }
}

/* Of windows of four iterations, the last one shorter, with a rate for the images of a step. */
static void
test_accumulation (void)
{
  static const gint64 iters[] = { 3, 7, 9 };
  g_autoptr (GError) error = NULL;

  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "auto_scale_lr:*0.01 = 0.02 * (2 images*4 acc*");
  g_autoptr (RnSchedulePreview) preview = make_preview (
      OPTIMIZER "runner: {type: IterBasedRunner, max_iters: 10}\n"
                "lr_config: {policy: LinearAnnealing, min_lr: 0}\n"
                "auto_scale_lr: {enable: true}\n"
                "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 4, "
                "schedule_by: step}\n",
      2, 5, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (preview->steps->len, ==, G_N_ELEMENTS (iters));
  for (guint i = 0; i < preview->steps->len; i++)
    {
      g_assert_cmpint (get_step (preview, i)->iter, ==, iters[i]);
      assert_close (get_step (preview, i)->lr, 0.01 * (3 - (double) i) / 3);
    }
}

/* A long run: some thousands of points, in order, with both ends. */
static void
test_long (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSchedulePreview) preview =
      make_preview (OPTIMIZER "runner: {type: IterBasedRunner, max_iters: 50001}\n"
                              "lr_config: {policy: poly}\n",
                    2, 1000, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (preview->steps->len, >, 2000);
  g_assert_cmpuint (preview->steps->len, <, 5000);
  g_assert_cmpint (get_step (preview, 0)->iter, ==, 0);
  g_assert_cmpint (get_step (preview, preview->steps->len - 1)->iter, ==, 50000);
  for (guint i = 1; i < preview->steps->len; i++)
    {
      const RnPreviewStep *step = get_step (preview, i);
      g_assert_cmpint (step->iter, >, get_step (preview, i - 1)->iter);
      assert_close (step->lr, GOLDEN_BASE_LR * (1 - (double) step->iter / 50001));
    }
}

static void
assert_refused (const char *yaml, const char *pattern)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (make_preview (yaml, 2, 3, &error));
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
  g_assert_cmpint (rn_error_exit_code (error), ==, 2);
}

static void
test_refused (void)
{
  assert_refused ("runner: {type: IterBasedRunner, max_iters: 9}\n", "*no `optimizer:`*");
  assert_refused (OPTIMIZER, "*no `runner:`*");
  assert_refused (ITER_RUN "lr_config: {policy: CosineAnnealing}\n", "test.yaml:3:*min_lr*");
  assert_refused (OPTIMIZER "runner: {type: IterBasedRunner, max_iters: 20000000}\n",
                  "*20000000 iterations is too long*");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runner/schedule-preview/golden", test_golden);
  g_test_add_func ("/runner/schedule-preview/accumulation", test_accumulation);
  g_test_add_func ("/runner/schedule-preview/long", test_long);
  g_test_add_func ("/runner/schedule-preview/refused", test_refused);
  return g_test_run ();
}
