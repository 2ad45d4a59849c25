/* test-task-tensors.c: the tensors of a training in a checkpoint, and what is made of files that have more,
 * less or nonsense. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/param-io.h"
#include "tests/runner/stepper.h"
#include "tests/tree.h"

#include <string.h>

#define ALL_TENSORS (RN_TENSORS_OPTIMIZER | RN_TENSORS_PENDING | RN_TENSORS_EMA)
#define EMA_HOOK "custom_hooks=[{type: EMAHook}]"
#define ADAM "optimizer={type: Adam, lr: 0.01}"

static char *data;

static RnSafetensorsWriter *
writer_new (void)
{
  RnSafetensorsWriter *writer = rn_safetensors_writer_new ();
  rn_safetensors_writer_set_metadata (writer, "format", "runner-checkpoint-1");
  return writer;
}

/* (transfer full) */
static RnSafetensors *
save_and_open (const Stepper *f, RnSafetensorsWriter *writer)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (f->dir, "test.safetensors", NULL);

  rn_safetensors_writer_save (writer, path, &error);
  g_assert_no_error (error);
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

/* (transfer full) */
static RnSafetensors *
save_task (const Stepper *f, guint what)
{
  g_autoptr (RnSafetensorsWriter) writer = writer_new ();

  f->task->vtbl->add_tensors (f->task, writer, what);
  return save_and_open (f, writer);
}

static guint
load (const Stepper *f, const RnSafetensors *file)
{
  g_autoptr (GError) error = NULL;
  guint found = 0;

  f->task->vtbl->load_tensors (f->task, file, &found, &error);
  g_assert_no_error (error);
  return found;
}

static void
assert_refused (const Stepper *f, const RnSafetensors *file, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  guint found = 0;

  g_assert_false (f->task->vtbl->load_tensors (f->task, file, &found, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not look like \"%s\"", error->message, pattern);
}

/* What is loaded goes on as what was saved: same gradients and mean, same bits after more steps. */
static void
test_round_trip (gconstpointer optimizer)
{
  const char *const changes[] = { optimizer, EMA_HOOK, NULL };
  g_autoptr (GError) error = NULL;
  Stepper a, b;
  stepper_open (&a, data, changes);
  stepper_open (&b, data, changes);

  for (int i = 0; i < 3; i++)
    stepper_train (&a, i == 0);
  a.task->vtbl->update_ema (a.task, 1, TRUE, &error);
  g_assert_no_error (error);
  stepper_train (&a, FALSE);
  g_autoptr (RnSafetensors) file = save_task (&a, ALL_TENSORS);
  g_assert_cmpuint (load (&b, file), ==, ALL_TENSORS);
  g_autoptr (GArray) grads_a = stepper_read_all (&a, a.task->vtbl->read_grad, TRUE),
                     grads_b = stepper_read_all (&b, b.task->vtbl->read_grad, TRUE);
  stepper_assert_same (grads_a, grads_b);
  for (int i = 0; i < 2; i++)
    {
      stepper_train (&a, FALSE);
      stepper_train (&b, FALSE);
    }
  for (int swapped = 0; swapped < 2; swapped++)
    {
      g_autoptr (GArray) params_a = stepper_read_all (&a, a.task->vtbl->read_param, FALSE),
                         params_b = stepper_read_all (&b, b.task->vtbl->read_param, FALSE);
      stepper_assert_same (params_a, params_b);
      gboolean is_ok = a.task->vtbl->swap_ema (a.task, &error) && b.task->vtbl->swap_ema (b.task, &error);
      g_assert_no_error (error);
      g_assert_true (is_ok);
    }
  stepper_close (&a);
  stepper_close (&b);
}

static void
test_less_in_the_file (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  Stepper f;

  stepper_open (&f, data, changes);
  g_autoptr (RnSafetensors) weights = save_task (&f, 0);
  g_assert_cmpuint (load (&f, weights), ==, 0);
  g_autoptr (RnSafetensors) before = save_task (&f, ALL_TENSORS); /* the first step, which makes the state */
  g_assert_cmpuint (load (&f, before), ==, RN_TENSORS_PENDING | RN_TENSORS_EMA);
  stepper_train (&f, TRUE);
  g_autoptr (RnSafetensors) some = save_task (&f, RN_TENSORS_OPTIMIZER | RN_TENSORS_EMA);
  g_assert_cmpuint (load (&f, some), ==, RN_TENSORS_OPTIMIZER | RN_TENSORS_EMA);
  stepper_close (&f);
}

/* A run without running mean leaves that of the file out. */
static void
test_more_in_the_file (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  Stepper with, without;

  stepper_open (&with, data, changes);
  stepper_open (&without, data, NULL);
  stepper_train (&with, TRUE);
  g_autoptr (RnSafetensors) file = save_task (&with, ALL_TENSORS);
  g_assert_cmpuint (load (&without, file), ==, RN_TENSORS_OPTIMIZER | RN_TENSORS_PENDING);
  stepper_close (&with);
  stepper_close (&without);
}

static void
test_other_optimizer (void)
{
  static const char *const adam[] = { ADAM, NULL };
  Stepper a, b;

  stepper_open (&a, data, NULL);
  stepper_open (&b, data, adam);
  stepper_train (&a, TRUE);
  g_autoptr (RnSafetensors) of_sgd = save_task (&a, RN_TENSORS_OPTIMIZER);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "*tensors of this model loaded*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*state of another optimizer (momentum)*");
  g_assert_cmpuint (load (&b, of_sgd), ==, 0);
  g_test_assert_expected_messages ();
  stepper_close (&a);
  stepper_close (&b);
}

static gboolean
read_zeros (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memset (dst, 0, size);
  return TRUE;
}

/* More than can be counted on from. */
static gboolean
read_ones (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memset (dst, 0xff, size);
  ((guint8 *) dst)[size - 1] = 0x7f;
  return TRUE;
}

static void
test_bad_steps (void)
{
  static const char *const adam[] = { ADAM, NULL };
  const RnTensorDesc descs[] = { rn_desc_vector (RN_I64, 1), rn_desc_vector (RN_I64, 1),
                                 rn_desc_vector (RN_I32, 2), rn_desc_vector (RN_F32, 1) };
  Stepper f;

  stepper_open (&f, data, adam);
  for (guint i = 0; i <= G_N_ELEMENTS (descs); i++)
    {
      g_autoptr (RnSafetensorsWriter) writer = writer_new ();
      RnParamSet *params = rn_programs_params (stepper_programs (&f));
      RnDevice *device = rn_programs_device (stepper_programs (&f));
      rn_params_add_to (params, device, RN_ARRAY_VALUES, "", writer);
      rn_params_add_to (params, device, RN_ARRAY_STATE, "exp_avg/", writer);
      rn_params_add_to (params, device, RN_ARRAY_STATE + (RnParamArray) 1, "exp_avg_sq/", writer);
      if (i < G_N_ELEMENTS (descs)) /* the last file has none */
        rn_safetensors_writer_add (writer, "optimizer/steps", &descs[i], i == 0 ? read_ones : read_zeros,
                                   NULL, NULL);
      g_autoptr (RnSafetensors) file = save_and_open (&f, writer);
      assert_refused (&f, file, "*optimizer/steps is no number of steps*");
    }
  stepper_close (&f);
}

/* One tensor of an array, and all the others missing. */
static void
test_partial (void)
{
  static const char *const changes[] = { EMA_HOOK, NULL };
  static const char *const prefixes[] = { "pending/", "momentum/", "ema/" };
  Stepper f;

  stepper_open (&f, data, changes);
  for (guint k = 0; k < G_N_ELEMENTS (prefixes); k++)
    {
      g_autoptr (RnSafetensorsWriter) writer = writer_new ();
      g_autofree char *pattern = g_strdup_printf ("*%s has 1 of * tensors", prefixes[k]);
      g_autofree char *name = g_strconcat (prefixes[k], "backbone.bn.bias", NULL);
      const RnTensorDesc *desc = NULL;
      for (guint i = 0; i < f.task->n_params; i++)
        if (g_str_equal (f.task->params[i].name, "backbone.bn.bias"))
          desc = f.task->params[i].desc;
      g_assert_nonnull (desc);
      f.task->vtbl->add_tensors (f.task, writer, 0);
      rn_safetensors_writer_add (writer, name, desc, read_zeros, NULL, NULL);
      g_autoptr (RnSafetensors) file = save_and_open (&f, writer);
      assert_refused (&f, file, pattern);
    }
  stepper_close (&f);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  small_detector_register ();
  data = small_detector_data ();
  g_test_add_data_func ("/runner/task-tensors/round-trip/sgd",
                        "optimizer={type: SGD, lr: 0.01, momentum: 0.9}", test_round_trip);
  g_test_add_data_func ("/runner/task-tensors/round-trip/adam", ADAM, test_round_trip);
  g_test_add_data_func ("/runner/task-tensors/round-trip/amsgrad",
                        "optimizer={type: AdamW, lr: 0.01, amsgrad: true}", test_round_trip);
  g_test_add_func ("/runner/task-tensors/less-in-the-file", test_less_in_the_file);
  g_test_add_func ("/runner/task-tensors/more-in-the-file", test_more_in_the_file);
  g_test_add_func ("/runner/task-tensors/other-optimizer", test_other_optimizer);
  g_test_add_func ("/runner/task-tensors/bad-steps", test_bad_steps);
  g_test_add_func ("/runner/task-tensors/partial", test_partial);
  int result = g_test_run ();
  remove_tree (data);
  g_free (data);
  return result;
}
