/* hook-api.c: hook.h: what every hook may ask the runner, and tell it. */
#include "config.h"

#include "runner/runner-private.h"

#include <math.h>
#include <string.h>

gint64
rn_runner_iter (const RnRunner *runner)
{
  return runner->now.iter;
}

gint64
rn_runner_epoch (const RnRunner *runner)
{
  return runner->now.epoch;
}

gint64
rn_runner_inner_iter (const RnRunner *runner)
{
  return runner->is_validating ? runner->val_inner_iter : runner->now.inner_iter;
}

gint64
rn_runner_opt_step (const RnRunner *runner)
{
  if (runner->due_step.is_due && runner->due_step.step.checks_finite) /* any other one is counted */
    rn_runner_settle_step (runner);
  return runner->now.opt_step;
}

gint64
rn_runner_max_iters (const RnRunner *runner)
{
  return runner->max_iters;
}

gint64
rn_runner_max_epochs (const RnRunner *runner)
{
  return runner->max_epochs;
}

gint64
rn_runner_epoch_length (const RnRunner *runner)
{
  return runner->is_validating ? runner->val_item_length : runner->task->epoch_length;
}

gboolean
rn_runner_is_by_epoch (const RnRunner *runner)
{
  return runner->is_by_epoch;
}

gboolean
rn_runner_is_validating (const RnRunner *runner)
{
  return runner->is_validating;
}

gboolean
rn_runner_every_n_epochs (const RnRunner *runner, gint64 n)
{
  return n > 0 && (runner->now.epoch + 1) % n == 0;
}

gboolean
rn_runner_every_n_iters (const RnRunner *runner, gint64 n)
{
  return n > 0 && (runner->now.iter + 1) % n == 0;
}

gboolean
rn_runner_every_n_inner_iters (const RnRunner *runner, gint64 n)
{
  return n > 0 && (rn_runner_inner_iter (runner) + 1) % n == 0;
}

gboolean
rn_runner_is_end_of_epoch (const RnRunner *runner)
{
  return rn_runner_inner_iter (runner) + 1 == rn_runner_epoch_length (runner);
}

gboolean
rn_runner_is_last_iter (const RnRunner *runner)
{
  return runner->now.iter + 1 == runner->max_iters;
}

gboolean
rn_runner_is_last_epoch (const RnRunner *runner)
{
  return runner->now.epoch + 1 == runner->max_epochs;
}

const char *
rn_runner_work_dir (const RnRunner *runner)
{
  return runner->work_dir;
}

const char *const *
rn_runner_class_names (const RnRunner *runner)
{
  return runner->task->class_names;
}

const RnBatch *
rn_runner_batch (const RnRunner *runner)
{
  return runner->batch;
}

double
rn_runner_loss (const RnRunner *runner, const char *name)
{
  rn_runner_settle (runner);
  return runner->task->vtbl->loss (runner->task, name);
}

double
rn_runner_log_mean (const RnRunner *runner, const char *name, gint64 n_iters)
{
  if (runner->is_validating)
    return rn_log_means_get (runner->val_log, name);
  return rn_log_buffer_mean (rn_runner_log_to_read (runner), name, runner->now.iter + 1,
                             rn_runner_log_span (runner, n_iters));
}

double
rn_runner_score (const RnRunner *runner, const char *name)
{
  return runner->scores != NULL ? rn_record_float (runner->scores, name, NAN) : NAN;
}

double
rn_runner_lr (const RnRunner *runner)
{
  return runner->lrs[0];
}

double
rn_runner_momentum (const RnRunner *runner)
{
  return runner->momentum;
}

/* ---- Parameters ---- */

guint
rn_runner_n_params (const RnRunner *runner)
{
  return runner->task->n_params;
}

int
rn_runner_find_param (const RnRunner *runner, const char *name)
{
  for (guint i = 0; i < runner->task->n_params; i++)
    if (strcmp (runner->task->params[i].name, name) == 0)
      return (int) i;
  return -1;
}

const char *
rn_runner_param_name (const RnRunner *runner, guint param)
{
  g_return_val_if_fail (param < runner->task->n_params, NULL);
  return runner->task->params[param].name;
}

const RnTensorDesc *
rn_runner_param_desc (const RnRunner *runner, guint param)
{
  g_return_val_if_fail (param < runner->task->n_params, NULL);
  return runner->task->params[param].desc;
}

gboolean
rn_runner_param_is_trained (const RnRunner *runner, guint param)
{
  g_return_val_if_fail (param < runner->task->n_params, FALSE);
  return runner->task->params[param].is_trained;
}

gboolean
rn_runner_read_param (RnRunner *runner, guint param, float *values, GError **error)
{
  g_return_val_if_fail (param < runner->task->n_params, FALSE);
  return runner->task->vtbl->read_param (runner->task, param, values, error);
}

/* Gradients are complete from before_step to the end of the iteration. */
static gboolean
can_see_grad (const RnRunner *runner, guint param, GError **error)
{
  g_return_val_if_fail (param < runner->task->n_params, FALSE);
  if (!runner->task->params[param].is_trained)
    return rn_hook_error (error, "%s is not trained and has no gradient", runner->task->params[param].name);
  if (runner->task->updates_in_backward)
    return rn_hook_error (error, "memory.update: in_backward keeps no gradients; what works: memory.update: "
                                 "after_backward, and RN_NEEDS_GRADIENTS in the hook's descriptor");
  rn_runner_settle_step (runner);
  if (!runner->has_step_grads)
    return rn_hook_error (error, "gradients are there in before_step, and after it in the same iteration");
  return TRUE;
}

static gint64
param_size (const RnRunner *runner, guint param)
{
  return rn_desc_elements (runner->task->params[param].desc);
}

gboolean
rn_runner_read_grad (RnRunner *runner, guint param, float *values, GError **error)
{
  if (!can_see_grad (runner, param, error)
      || !runner->task->vtbl->read_grad (runner->task, param, values, error))
    return FALSE;
  for (gint64 i = 0; i < param_size (runner, param); i++)
    values[i] = (float) ((double) values[i] * runner->grad_multiplier);
  return TRUE;
}

gboolean
rn_runner_write_grad (RnRunner *runner, guint param, const float *values, GError **error)
{
  if (!can_see_grad (runner, param, error))
    return FALSE;
  if (runner->stage != RN_STAGE_BEFORE_STEP)
    return rn_hook_error (error, "gradients can be written in before_step only");
  gint64 n = param_size (runner, param);
  g_autofree float *scaled = g_new (float, (gsize) n);
  for (gint64 i = 0; i < n; i++)
    scaled[i] = (float) ((double) values[i] / runner->grad_multiplier);
  return runner->task->vtbl->write_grad (runner->task, param, scaled, error);
}

gboolean
rn_runner_read_activation (RnRunner *runner, const char *name, RnTensorDesc *desc, float **values,
                           GError **error)
{
  if (runner->stage != RN_STAGE_AFTER_TRAIN_ITER || runner->is_backward_done)
    return rn_hook_error (error, "activations are there in after_train_iter, before the optimizer hook "
                                 "(priority below 40)");
  return runner->task->vtbl->read_activation (runner->task, name, desc, values, error);
}

/* ---- Changes ---- */

void
rn_runner_log (RnRunner *runner, const char *name, double value)
{
  if (runner->is_validating)
    rn_log_means_add (runner->val_log, name, value, runner->batch != NULL ? runner->batch->n : 1);
  else
    rn_log_buffer_push (rn_runner_log_to_write (runner), name, rn_runner_log_iter (runner), value);
}

gboolean
rn_runner_set_score (RnRunner *runner, const char *name, double value)
{
  if (runner->scores == NULL)
    return FALSE;
  rn_record_set_float (runner->scores, name, value);
  return TRUE;
}

void
rn_runner_declare_score (RnRunner *runner, const char *name)
{
  if (!g_strv_contains ((const char *const *) runner->score_names->pdata, name))
    g_ptr_array_insert (runner->score_names, (int) runner->score_names->len - 1, g_strdup (name));
}

void
rn_runner_set_lr (RnRunner *runner, double lr)
{
  for (guint i = 0; i < runner->task->n_groups; i++)
    runner->lrs[i] = lr * runner->task->lr_mults[i];
}

void
rn_runner_set_momentum (RnRunner *runner, double momentum)
{
  runner->momentum = momentum;
}

void
rn_runner_set_loss_weight (RnRunner *runner, double weight)
{
  g_return_if_fail (runner->stage == RN_STAGE_BEFORE_TRAIN_ITER);
  runner->loss_weight = weight;
}

void
rn_runner_stop (RnRunner *runner)
{
  runner->is_stopped = TRUE;
}

void
rn_runner_save (RnRunner *runner, RnHook *hook, const char *name)
{
  g_autofree char *file = g_strconcat (name, ".safetensors", NULL);
  RnCheckpointRequest request = { .name = file, .save_optimizer = TRUE, .is_best = TRUE };
  rn_runner_request_checkpoint (runner, hook, &request);
}

gboolean
rn_runner_draw_detections (RnRunner *runner, gint64 index, double min_score, const char *path, GError **error)
{
  if (runner->task->vtbl->draw == NULL)
    return rn_hook_error (error, "there is no validation set to draw an image of; it is read where the "
                                 "configuration has `evaluation:` and data.val");
  if (runner->batch != NULL && !runner->is_validating && !runner->is_backward_done)
    return rn_hook_error (error, "images are drawn between iterations, or behind the optimizer hook "
                                 "(priority above 40): the forward pass is still needed");
  return runner->task->vtbl->draw (runner->task, index, min_score, path, error);
}
