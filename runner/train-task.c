#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/train-task.h"

#include "runner/base/error.h"
#include "runner/draw/show.h"
#include "runner/evaluate.h"
#include "runner/process-memory.h"
#include "runner/task-tensors.h"

#include <math.h>

#ifdef __GLIBC__
  #include <malloc.h>
#endif

typedef struct
{
  RnTask task; /* first */
  RnJob *job;
  RnLoader *data[RN_TASK_N_DATA]; /* RN_TASK_VAL: NULL without validation losses */
  RnLoader *val;                  /* of evaluations; or NULL */
  GArray *params;                 /* of RnTaskParam */
  gint64 n_steps;                 /* that made the optimizer's state; of a guarded one when it is settled */
  gint64 next_n_steps;            /* if that one was done */
  gboolean checks_finite;         /* it may be skipped */
  RnStepFacts facts;
} TrainTask;

static void
seek (RnTask *task, RnTaskData data, guint64 epoch, gint64 first_batch)
{
  rn_loader_start (((TrainTask *) task)->data[data], epoch, first_batch);
}

static const RnBatch *
next (RnTask *task, RnTaskData data, GError **error)
{
  return rn_loader_next (((TrainTask *) task)->data[data], error);
}

static void
release (RnTask *task, RnTaskData data, const RnBatch *batch)
{
  rn_loader_release (((TrainTask *) task)->data[data], batch);
}

static RnPrograms *
programs (RnTask *task)
{
  return ((TrainTask *) task)->job->programs;
}

static gboolean
forward (RnTask *task, const RnBatch *batch, RnMode mode, float grad_scale, GError **error)
{
  return rn_programs_forward (programs (task), batch, mode, grad_scale, error);
}

static gboolean
settle (RnTask *task, GError **error)
{
  return rn_programs_settle (programs (task), error);
}

static double
loss (RnTask *task, const char *name)
{
  return (double) rn_programs_loss (programs (task), name);
}

static gboolean
backward (RnTask *task, GError **error)
{
  return rn_programs_backward (programs (task), error);
}

static gboolean
zero_grads (RnTask *task, GError **error)
{
  return rn_programs_zero_grads (programs (task), error);
}

static gboolean
grad_stats (RnTask *task, double norm_type, RnGradStats *stats, GError **error)
{
  return rn_programs_grad_stats (programs (task), norm_type, &stats->norm, &stats->max_abs, error);
}

static gboolean
update_by (RnTask *task, const RnTaskUpdate *step,
           gboolean (*run) (RnPrograms *programs, const RnUpdate *update, GError **error), GError **error)
{
  TrainTask *self = (TrainTask *) task;
  gint64 n_steps = step->is_first ? 0 : self->n_steps;
  RnUpdate update = {
    .lrs = step->lrs,
    .momentum = step->momentum,
    .grad_multiplier = step->grad_multiplier,
    .clip_value = step->clip_value,
    .n_steps = n_steps,
    .continues = step->continues,
    .waits = step->waits,
    .max_norm = step->max_norm,
    .norm_type = step->norm_type,
    .checks_finite = step->checks_finite,
  };
  if (!run (programs (task), &update, error))
    return FALSE;
  self->next_n_steps = n_steps + !step->waits;
  self->checks_finite = step->checks_finite;
  if (!rn_update_is_guarded (&update))
    self->n_steps = self->next_n_steps;
  return TRUE;
}

static gboolean
update (RnTask *task, const RnTaskUpdate *step, GError **error)
{
  return update_by (task, step, rn_programs_update, error);
}

static gboolean
settle_update (RnTask *task, RnGradStats *stats, gboolean *is_done, GError **error)
{
  TrainTask *self = (TrainTask *) task;

  if (!rn_programs_settle_update (programs (task), &stats->norm, &stats->max_abs, error))
    return FALSE;
  *is_done = !self->checks_finite || isfinite (stats->max_abs); /* as the op STEP_GUARD */
  if (*is_done)
    self->n_steps = self->next_n_steps;
  return TRUE;
}

static gboolean
backward_update (RnTask *task, const RnTaskUpdate *step, GError **error)
{
  return update_by (task, step, rn_programs_backward_update, error);
}

static gboolean
update_ema (RnTask *task, double momentum, gboolean with_buffers, GError **error)
{
  return rn_programs_update_ema (programs (task), momentum, with_buffers, error);
}

static gboolean
swap_ema (RnTask *task, GError **error)
{
  return rn_programs_swap_ema (programs (task), error);
}

/* ---- Looking inside ---- */

static gboolean
find_non_finite (RnTask *task, const RnBatch *batch, char **where, GError **error)
{
  return rn_programs_find_non_finite (programs (task), batch, where, error);
}

/* What the plan of the shape leaves of the arenas, and what is free between blocks of the C library, which
 * does not say how much that is. */
static guint64
empty_cache (RnTask *task)
{
  guint64 bytes = rn_programs_trim (programs (task));
#ifdef __GLIBC__
  guint64 before, after, peak;

  rn_process_memory (&before, &peak);
  malloc_trim (0);
  rn_process_memory (&after, &peak);
  bytes += before > after ? before - after : 0;
#endif
  return bytes;
}

static char **
unreached_params (RnTask *task)
{
  return g_strdupv (((TrainTask *) task)->facts.unreached_params);
}

static gboolean
read_activation (RnTask *task, const char *name, RnTensorDesc *desc, float **values, GError **error)
{
  return rn_programs_read_activation (programs (task), name, desc, values, error);
}

/* ---- Parameters ---- */

static gboolean
check_copy (RnDevice *device, RnStatus status, const RnParam *param, GError **error)
{
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying %s: %s", param->name,
               rn_device_fault (device, status));
  return FALSE;
}

static gboolean
read_param (RnTask *task, guint i, float *values, GError **error)
{
  RnParamSet *params = rn_programs_params (programs (task));
  const RnParam *param = rn_param_set_get (params, (int) i);
  RnDevice *device = rn_programs_device (programs (task));
  return check_copy (device,
                     device->vtbl->copy_out (device, values, rn_param_set_value (params, (int) i),
                                             rn_desc_bytes (&param->desc)),
                     param, error);
}

static gboolean
read_grad (RnTask *task, guint i, float *values, GError **error)
{
  RnParamSet *params = rn_programs_params (programs (task));
  const RnParam *param = rn_param_set_get (params, (int) i);
  RnDevice *device = rn_programs_device (programs (task));
  return check_copy (device,
                     device->vtbl->copy_out (device, values, rn_param_set_grad (params, (int) i),
                                             rn_desc_bytes (&param->desc)),
                     param, error);
}

static gboolean
write_grad (RnTask *task, guint i, const float *values, GError **error)
{
  RnParamSet *params = rn_programs_params (programs (task));
  const RnParam *param = rn_param_set_get (params, (int) i);
  RnDevice *device = rn_programs_device (programs (task));
  return check_copy (device,
                     device->vtbl->copy_in (device, rn_param_set_grad (params, (int) i), values,
                                            rn_desc_bytes (&param->desc)),
                     param, error);
}

/* No picture is worth the end of a training. */
static void
stop_drawing (RnShow **show, const GError *error)
{
  g_warning ("no more pictures of this evaluation: %s", error->message);
  g_clear_pointer (show, rn_show_free);
}

static gboolean
draw (const RnSampleMeta *meta, const GArray *detections, gpointer user_data, GError **error)
{
  RnShow **show = user_data;
  g_autoptr (GError) cause = NULL;

  if (*show != NULL && !rn_show_add (*show, meta, detections, &cause))
    stop_drawing (show, cause);
  return TRUE;
}

static gboolean
evaluate (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  const TrainTask *self = (const TrainTask *) task;
  const RnDataset *dataset = self->job->datasets[RN_SPLIT_VAL];
  g_autoptr (RnShow) show = NULL;
  g_autoptr (GError) cause = NULL;

  if (options->n_draw > 0)
    show = rn_show_new (options->draw_dir, dataset, options->n_draw, RN_SHOW_SCORE_THR, &cause);
  if (cause != NULL)
    stop_drawing (&show, cause);
  return rn_evaluate (self->job->programs, dataset, self->val, options, draw, &show, result, error);
}

/* The validation image @index as the loader of the evaluations prepares it. */
static const RnBatch *
load_image (RnLoader *loader, gint64 index, GError **error)
{
  rn_loader_start (loader, 0, index); /* its batches are of one image, in order */
  const RnBatch *batch = rn_loader_next (loader, error);
  if (batch != NULL && batch->metas[0].index == index)
    return batch;
  if (batch != NULL) /* data.on_error: skip */
    rn_loader_release (loader, batch);
  if (batch != NULL || (error != NULL && *error == NULL))
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                 "image %" G_GINT64_FORMAT " of the validation set cannot be read", index);
  return NULL;
}

static gboolean
draw_batch (const TrainTask *self, const RnBatch *batch, double min_score, const char *path, GError **error)
{
  const RnDataset *dataset = self->job->datasets[RN_SPLIT_VAL];
  const RnSampleMeta *meta = &batch->metas[0];
  GArray *detections = NULL;
  RnGroundTruth truth;

  if (!rn_programs_infer (self->job->programs, batch, &detections, error))
    return FALSE;
  rn_dataset_ground_truth (dataset, meta->index, &truth);
  const RnShowImage image = {
    .path = meta->path,
    .width = meta->ori_width,
    .height = meta->ori_height,
    .detections = detections,
    .score_thr = min_score,
    .truth = &truth,
    .names = rn_dataset_class_names (dataset),
  };
  gboolean is_ok = rn_show_write (&image, path, error);
  g_array_unref (detections);
  return is_ok;
}

static gboolean
draw_image (RnTask *task, gint64 index, double min_score, const char *path, GError **error)
{
  TrainTask *self = (TrainTask *) task;
  gint64 n = rn_dataset_size (self->job->datasets[RN_SPLIT_VAL]);

  if (index < 0 || index >= n)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING,
                   "there is no image %" G_GINT64_FORMAT "; the validation set has %" G_GINT64_FORMAT
                   ", counted from 0",
                   index, n);
      return FALSE;
    }
  const RnBatch *batch = load_image (self->val, index, error);
  if (batch == NULL)
    return FALSE;
  gboolean is_ok = draw_batch (self, batch, min_score, path, error);
  rn_loader_release (self->val, batch);
  rn_loader_start (self->val, 0, rn_loader_n_batches (self->val)); /* nothing more is wanted of it */
  return is_ok;
}

static void
add_tensors (RnTask *task, RnSafetensorsWriter *writer, guint what)
{
  rn_task_tensors_add (programs (task), ((TrainTask *) task)->n_steps, what, writer);
}

static gboolean
load_tensors (RnTask *task, const RnSafetensors *file, guint *found, GError **error)
{
  TrainTask *self = (TrainTask *) task;
  return rn_task_tensors_load (self->job, file, &self->n_steps, found, error);
}

#define COMMON_VTBL                                                                                         \
  .seek = seek, .next = next, .release = release, .forward = forward, .loss = loss, .backward = backward,   \
  .zero_grads = zero_grads, .grad_stats = grad_stats, .update = update, .backward_update = backward_update, \
  .read_activation = read_activation, .read_param = read_param, .read_grad = read_grad,                     \
  .write_grad = write_grad, .add_tensors = add_tensors, .load_tensors = load_tensors,                       \
  .find_non_finite = find_non_finite, .empty_cache = empty_cache, .update_ema = update_ema,                 \
  .swap_ema = swap_ema, .unreached_params = unreached_params, .settle = settle,                             \
  .settle_update = settle_update

static const RnTaskVtbl vtbl = { COMMON_VTBL };
static const RnTaskVtbl vtbl_with_evaluation = { COMMON_VTBL, .evaluate = evaluate, .draw = draw_image };

static GArray *
describe_params (const RnParamSet *params)
{
  GArray *described = g_array_new (FALSE, FALSE, sizeof (RnTaskParam));

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      RnTaskParam entry = { param->name, &param->desc, param->trainable };
      g_array_append_val (described, entry);
    }
  return described;
}

/* *@loader stays NULL where the job has not opened the split. */
static gboolean
open_loader (RnJob *job, RnSplit split, RnLoader **loader, GError **error)
{
  if (job->datasets[split] == NULL)
    return TRUE;
  *loader = rn_job_loader (job, split, error);
  return *loader != NULL;
}

RnTask *
rn_train_task_new (RnJob *job, GError **error)
{
  TrainTask *self = g_new0 (TrainTask, 1);
  RnTask *task = &self->task;

  self->job = job;
  self->params = describe_params (rn_programs_params (job->programs));
  if (!rn_programs_describe_step (job->programs, &self->facts, error)
      || !open_loader (job, RN_SPLIT_TRAIN, &self->data[RN_TASK_TRAIN], error)
      || !open_loader (job, RN_SPLIT_VAL_LOSS, &self->data[RN_TASK_VAL], error)
      || !open_loader (job, RN_SPLIT_VAL, &self->val, error))
    {
      rn_train_task_free (task);
      return NULL;
    }

  task->vtbl = self->val != NULL ? &vtbl_with_evaluation : &vtbl;
  task->epoch_length = rn_loader_n_batches (self->data[RN_TASK_TRAIN]);
  if (self->data[RN_TASK_VAL] != NULL)
    task->val_length = rn_loader_n_batches (self->data[RN_TASK_VAL]);
  task->batch_size = (int) job->data.samples_per_gpu;
  task->seed = (guint64) job->config.seed;
  task->num_classes = rn_model_num_classes (job->model);
  task->class_names = rn_dataset_class_names (job->datasets[RN_SPLIT_TRAIN]);
  task->loss_names = rn_model_loss_names (job->model);
  task->device = job->device->description;
  task->precision = rn_fp16_describe (&job->config.fp16);
  task->n_groups = rn_programs_groups (job->programs, &task->lr_mults);
  task->params = (const RnTaskParam *) (gconstpointer) self->params->data;
  task->n_params = self->params->len;
  task->has_live_batch_norm = self->facts.has_live_batch_norm;
  task->updates_in_backward = rn_programs_updates_in_backward (job->programs);
  task->has_late_results = job->device->vtbl->settle != NULL;
  return task;
}

void
rn_train_task_free (RnTask *task)
{
  TrainTask *self = (TrainTask *) task;

  if (self == NULL)
    return;
  for (int i = 0; i < RN_TASK_N_DATA; i++)
    g_clear_pointer (&self->data[i], rn_loader_free);
  g_clear_pointer (&self->val, rn_loader_free);
  g_array_unref (self->params);
  g_strfreev (self->facts.unreached_params);
  g_free (self);
}

gsize
rn_train_task_loader_bytes (const RnTask *task)
{
  const TrainTask *self = (const TrainTask *) task;
  gsize bytes = self->val != NULL ? rn_loader_bytes (self->val) : 0;

  for (int i = 0; i < RN_TASK_N_DATA; i++)
    if (self->data[i] != NULL)
      bytes += rn_loader_bytes (self->data[i]);
  return bytes;
}
