#include "config.h"

#include "tests/runner/stepper.h"

#include "tests/tree.h"

#include <string.h>

void
stepper_open (Stepper *f, const char *data, const char *const *changes)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("rn-update-XXXXXX", &error);
  g_assert_no_error (error);
  f->training = small_detector_training (data, f->dir, changes, FALSE, NULL);
  f->task = f->training->task;
  f->task->vtbl->seek (f->task, RN_TASK_TRAIN, 0, 0);
  f->batch = f->task->vtbl->next (f->task, RN_TASK_TRAIN, &error);
  g_assert_no_error (error);
}

void
stepper_close (Stepper *f)
{
  f->task->vtbl->release (f->task, RN_TASK_TRAIN, f->batch);
  rn_training_free (f->training);
  remove_tree (f->dir);
  g_free (f->dir);
}

RnPrograms *
stepper_programs (const Stepper *f)
{
  return f->training->job->programs;
}

gint64
stepper_n_elements (const Stepper *f, guint i)
{
  return rn_desc_elements (f->task->params[i].desc);
}

/* (transfer full) */
float *
stepper_read (const Stepper *f, StepperRead read, guint i)
{
  g_autoptr (GError) error = NULL;
  float *values = g_new (float, (gsize) stepper_n_elements (f, i));

  read (f->task, i, values, &error);
  g_assert_no_error (error);
  return values;
}

/* All parameters and buffers, one after the other. (transfer full) of float */
GArray *
stepper_read_all (const Stepper *f, StepperRead read, gboolean trained_only)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (float));

  for (guint i = 0; i < f->task->n_params; i++)
    if (f->task->params[i].is_trained || !trained_only)
      {
        g_autofree float *values = stepper_read (f, read, i);
        g_array_append_vals (all, values, (guint) stepper_n_elements (f, i));
      }
  return all;
}

void
stepper_assert_same (const GArray *a, const GArray *b)
{
  g_assert_cmpuint (a->len, ==, b->len);
  g_assert_true (memcmp (a->data, b->data, a->len * sizeof (float)) == 0);
}

void
stepper_add_gradients (const Stepper *f)
{
  g_autoptr (GError) error = NULL;
  gboolean is_ok = f->task->vtbl->forward (f->task, f->batch, RN_MODE_TRAIN, 1, &error)
                   && f->task->vtbl->backward (f->task, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

void
stepper_update (const Stepper *f, const RnTaskUpdate *step)
{
  g_autoptr (GError) error = NULL;

  f->task->vtbl->update (f->task, step, &error);
  g_assert_no_error (error);
}

/* With fixed settings. */
void
stepper_train (const Stepper *f, gboolean is_first)
{
  g_autoptr (GError) error = NULL;
  double lrs[] = { 0.01, 0.01 };

  f->task->vtbl->zero_grads (f->task, &error);
  g_assert_no_error (error);
  stepper_add_gradients (f);
  stepper_update (f,
                  &(RnTaskUpdate){ .lrs = lrs, .momentum = 0.9, .grad_multiplier = 1, .is_first = is_first });
}
