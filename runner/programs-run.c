/*
 * programs-run.c: one batch through the programs: inputs in, ops, results out.
 */
#include "config.h"

#include "runner/programs-private.h"

#include "runner/base/trace.h"

#include <math.h>

/* ---- host <-> device ---- */

static gboolean
copy_in (RnPrograms *p, const RnProgram *program, RnValueId value, const void *host, gsize bytes,
         GError **error)
{
  if (value == RN_NO_VALUE || bytes == 0)
    return TRUE;
  void *address = rn_executor_address (program->executor, value);
  RnStatus status = p->device->vtbl->copy_in (p->device, address, host, bytes);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying %s to the device failed: %s",
               rn_graph_value (program->plan->graph, value)->name, rn_device_fault (p->device, status));
  return FALSE;
}

static gboolean
copy_out (RnPrograms *p, const RnExecutor *executor, RnValueId value, void *host, gsize bytes, GError **error)
{
  RnStatus status = p->device->vtbl->copy_out (p->device, host, rn_executor_address (executor, value), bytes);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying a result from the device failed: %s",
               rn_device_fault (p->device, status));
  return FALSE;
}

gboolean
rn_programs_copy_batch (RnPrograms *p, const RnProgram *program, const RnBatch *batch, float grad_scale,
                        GError **error)
{
  const gsize n = (gsize) batch->n;
  gint64 n_positives = batch->n_positives;
  if (!copy_in (p, program, program->pixels, batch->pixels,
                n * 3 * (gsize) batch->height * (gsize) batch->width, error)
      || !copy_in (p, program, program->sizes, batch->sizes, n * sizeof *batch->sizes, error)
      || !copy_in (p, program, program->table, batch->table, n * sizeof *batch->table, error))
    return FALSE;
  if (program->shape.mode == RN_MODE_INFER)
    return TRUE;
  return copy_in (p, program, program->labels, batch->labels,
                  (gsize) (batch->n * batch->n_anchors) * sizeof *batch->labels, error)
         && copy_in (p, program, program->positives, batch->positives,
                     (gsize) n_positives * sizeof *batch->positives, error)
         && copy_in (p, program, program->n_positives, &n_positives, sizeof n_positives, error)
         && copy_in (p, program, program->avg_factor, &batch->avg_factor, sizeof batch->avg_factor, error)
         && copy_in (p, program, program->grad_scale, &grad_scale, sizeof grad_scale, error);
}

/* The loader and the model must mean the same anchors; a difference would read past the labels. */
static gboolean
check_targets (const RnProgram *program, const RnBatch *batch, GError **error)
{
  const RnTensorDesc *labels = &rn_graph_value (program->plan->graph, program->labels)->desc;
  if (batch->labels && labels->dims[1] == batch->n_anchors
      && batch->n_positives <= batch->n * batch->n_anchors)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL,
               "the batch has targets for %" G_GINT64_FORMAT " anchors, the model has %" G_GINT64_FORMAT,
               batch->labels ? batch->n_anchors : 0, labels->dims[1]);
  return FALSE;
}

static void
note_highest_byte (RnPrograms *p, const RnExecutor *executor)
{
  p->highest_byte = MAX (p->highest_byte, rn_executor_highest_byte (executor));
  p->highest_host_byte = MAX (p->highest_host_byte, rn_executor_highest_host_byte (executor));
}

gsize
rn_programs_highest_byte (RnPrograms *p)
{
  return p->highest_byte;
}

gsize
rn_programs_highest_host_byte (RnPrograms *p)
{
  return p->highest_host_byte;
}

/* ---- training ---- */

gboolean
rn_programs_forward (RnPrograms *p, const RnBatch *batch, RnMode mode, float grad_scale, GError **error)
{
  g_return_val_if_fail (p->reserved && mode != RN_MODE_INFER, FALSE);

  gint64 start = rn_trace_begin ();
  p->current = NULL;
  RnShape shape = { mode, batch->n, batch->height, batch->width };
  RnProgram *program = rn_programs_prepare (p, shape, error);
  if (!program || !check_targets (program, batch, error)
      || !rn_programs_copy_batch (p, program, batch, grad_scale, error)
      || !rn_executor_run (program->executor, 0, program->plan->graph->turn, error)
      || !rn_programs_queue_losses (p, program, error))
    return FALSE;
  rn_trace_end (start, RN_TRACE_PHASE, mode == RN_MODE_TRAIN ? "forward" : "forward (validation)", NULL);
  note_highest_byte (p, program->executor);
  p->current = program;
  return TRUE;
}

static gboolean
run_backward (RnPrograms *p, const char *phase, GError **error)
{
  g_return_val_if_fail (p->current->shape.mode == RN_MODE_TRAIN, FALSE);

  const RnGraph *graph = p->current->plan->graph;
  gint64 start = rn_trace_begin ();
  gboolean ok = rn_executor_run (p->current->executor, graph->turn, (int) graph->ops->len, error);
  rn_trace_end (start, RN_TRACE_PHASE, phase, NULL);
  note_highest_byte (p, p->current->executor);
  p->current = NULL; /* what the forward kept is gone */
  return ok;
}

gboolean
rn_programs_backward (RnPrograms *p, GError **error)
{
  g_return_val_if_fail (p->current && !p->options.update_in_backward, FALSE);
  return run_backward (p, "backward", error);
}

gboolean
rn_programs_zero_grads (RnPrograms *p, GError **error)
{
  return rn_param_set_zero_grads (p->params, error);
}

static gboolean
copy_to_update (RnPrograms *p, const char *name, const void *host, gsize bytes, GError **error)
{
  void *address = rn_executor_address (p->update, rn_graph_find_value (p->update_plan->graph, name));

  RnStatus status = p->device->vtbl->copy_in (p->device, address, host, bytes);
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, "copying %s to the device failed: %s", name,
               rn_device_fault (p->device, status));
  return FALSE;
}

gboolean
rn_programs_grad_stats (RnPrograms *p, double norm_type, double *norm, double *max_abs, GError **error)
{
  RnValueId value = rn_graph_find_value (p->update_plan->graph, "grad_stats");
  float type = (float) norm_type, stats[RN_STATS_COUNT];

  g_return_val_if_fail (norm_type >= 1 && !p->options.update_in_backward, FALSE);
  p->current = NULL; /* the update program lives in the same arena */
  if (!copy_to_update (p, "norm_type", &type, sizeof type, error) || !rn_executor_run (p->update, 0, 1, error)
      || !copy_out (p, p->update, value, stats, sizeof stats, error))
    return FALSE;
  *norm = (double) stats[RN_STATS_NORM];
  *max_abs = (double) stats[RN_STATS_MAX_ABS];
  return TRUE;
}

/* The part of the arithmetic that depends on the step only is done in double, as torch.optim does it. */
static void
fill_hyper (const RnPrograms *p, const RnUpdate *update, float *hyper)
{
  const RnUpdateRule *rule = &p->options.rule;
  double t = (double) (update->n_steps + 1), bias1 = 1, bias2 = 1;

  if (rule->kind == RN_UPDATE_ADAM)
    {
      bias1 = 1 - pow (update->momentum, t);
      bias2 = 1 - pow (rule->beta2, t);
    }
  hyper[RN_HYPER_MOMENTUM] = (float) update->momentum;
  hyper[RN_HYPER_TAKE] = (float) (1 - update->momentum);
  hyper[RN_HYPER_BIAS2] = (float) sqrt (bias2);
  hyper[RN_HYPER_GRAD_MULTIPLIER] = (float) update->grad_multiplier;
  hyper[RN_HYPER_CLIP_VALUE] = (float) update->clip_value;
  hyper[RN_HYPER_FIRST] = update->n_steps == 0 ? 1.0f : 0.0f;
  hyper[RN_HYPER_CONTINUES] = update->continues ? 1.0f : 0.0f;
  hyper[RN_HYPER_WAITS] = update->waits ? 1.0f : 0.0f;
  hyper[RN_HYPER_MAX_NORM] = (float) update->max_norm;
  hyper[RN_HYPER_CHECKS_FINITE] = update->checks_finite ? 1.0f : 0.0f;
  hyper[RN_HYPER_SKIPS] = 0; /* a guarded step decides it */
  for (guint i = 0; i < p->lr_mults->len; i++)
    {
      float *group = hyper + RN_HYPER_COUNT + i * RN_GROUP_COUNT;
      group[RN_GROUP_LR] = (float) update->lrs[i];
      group[RN_GROUP_STEP_SIZE] = (float) (update->lrs[i] / bias1);
    }
}

/* A schedule may set anything; at 1 the mean of the gradients would never begin. */
static gboolean
check_momentum (const RnPrograms *p, double momentum, GError **error)
{
  if (p->options.rule.kind != RN_UPDATE_ADAM || (momentum >= 0 && momentum < 1))
    return TRUE;
  g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
               "momentum_config gives Adam a beta1 of %g; what works: 0 and more, below 1", momentum);
  return FALSE;
}

static gsize
hyper_bytes (const RnPrograms *p)
{
  return (RN_HYPER_COUNT + (gsize) p->lr_mults->len * RN_GROUP_COUNT) * sizeof (float);
}

/* The statistics go to the host ahead of the steps: while the device does those, the host can go on. */
static gboolean
run_guarded (RnPrograms *p, double norm_type, GError **error)
{
  float type = (float) norm_type;

  g_return_val_if_fail (norm_type >= 1, FALSE);
  return copy_to_update (p, "norm_type", &type, sizeof type, error)
         && rn_executor_run (p->update, 0, p->update_parts.step, error) && rn_programs_queue_stats (p, error)
         && rn_executor_run (p->update, p->update_parts.step, p->update_parts.ema, error);
}

gboolean
rn_programs_update (RnPrograms *p, const RnUpdate *update, GError **error)
{
  g_return_val_if_fail (!p->options.update_in_backward, FALSE);
  if (!check_momentum (p, update->momentum, error))
    return FALSE;
  g_autofree float *hyper = g_malloc (hyper_bytes (p));

  fill_hyper (p, update, hyper);
  p->current = NULL; /* the update program lives in the same arena */
  if (!copy_to_update (p, "hyper", hyper, hyper_bytes (p), error))
    return FALSE;
  return rn_update_is_guarded (update)
             ? run_guarded (p, update->norm_type, error)
             : rn_executor_run (p->update, p->update_parts.step, p->update_parts.ema, error);
}

gboolean
rn_programs_backward_update (RnPrograms *p, const RnUpdate *update, GError **error)
{
  g_return_val_if_fail (p->current && p->options.update_in_backward && !rn_update_is_guarded (update), FALSE);
  if (!check_momentum (p, update->momentum, error))
    return FALSE;
  g_autofree float *hyper = g_malloc (hyper_bytes (p));

  fill_hyper (p, update, hyper);
  if (!copy_in (p, p->current, p->current->hyper, hyper, hyper_bytes (p), error))
    return FALSE;
  return rn_executor_host_wrote (p->current->executor, p->current->hyper, error)
         && run_backward (p, "backward and step", error);
}

gboolean
rn_programs_update_ema (RnPrograms *p, double momentum, gboolean with_buffers, GError **error)
{
  float weights = (float) momentum, buffers = with_buffers ? weights : 1;

  g_return_val_if_fail (p->options.ema, FALSE);
  p->current = NULL;
  return copy_to_update (p, "ema_momentum", &weights, sizeof weights, error)
         && copy_to_update (p, "ema_momentum_buffers", &buffers, sizeof buffers, error)
         && rn_executor_run (p->update, p->update_parts.ema, p->update_parts.swap, error);
}

gboolean
rn_programs_swap_ema (RnPrograms *p, GError **error)
{
  g_return_val_if_fail (p->options.ema, FALSE);
  return rn_executor_run (p->update, p->update_parts.swap, p->update_parts.end, error);
}

/* ---- inference ---- */

/* The rows that the device selected, on the host: one block per level and output. */
typedef struct
{
  int k[RN_MAX_LEVELS];
  void *data[RN_MAX_LEVELS][RN_TOPK_OUT_COUNT];
} SelectedRows;

static void
selected_rows_clear (SelectedRows *rows)
{
  for (int level = 0; level < RN_MAX_LEVELS; level++)
    for (int i = 0; i < RN_TOPK_OUT_COUNT; i++)
      g_free (rows->data[level][i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (SelectedRows, selected_rows_clear)

static gboolean
read_rows (RnPrograms *p, const RnProgram *program, SelectedRows *rows, GError **error)
{
  for (int level = 0; level < program->n_levels; level++)
    {
      rows->k[level] =
          (int) rn_graph_value (program->plan->graph, program->topk[level][RN_TOPK_INDEX])->desc.dims[1];
      for (int i = 0; i < RN_TOPK_OUT_COUNT; i++)
        {
          RnValueId value = program->topk[level][i];
          gsize bytes = rn_desc_bytes (&rn_graph_value (program->plan->graph, value)->desc);
          rows->data[level][i] = g_malloc (bytes);
          if (!copy_out (p, program->executor, value, rows->data[level][i], bytes, error))
            return FALSE;
        }
    }
  return TRUE;
}

static GArray *
detect_image (RnPrograms *p, const RnProgram *program, const SelectedRows *rows, int i,
              const RnSampleMeta *meta, GError **error)
{
  const RnTestConfig *test = rn_model_test_config (p->model);
  int k = rn_model_num_classes (p->model);
  RnDetectRule rule = {
    .anchors = rn_model_anchors (p->model),
    .coder = rn_model_coder (p->model),
    .num_classes = k,
    .nms = { .score_thr = test->score_thr, .iou_thr = test->iou_thr, .max_per_img = test->max_per_img },
  };
  RnDetectImage image = { meta->img_height, meta->img_width, meta->scale_w, meta->scale_h };
  int sizes[RN_MAX_LEVELS][2];
  RnLevelRows levels[RN_MAX_LEVELS];
  rn_model_feature_sizes (p->model, program->shape.height, program->shape.width, sizes);
  for (int level = 0; level < program->n_levels; level++)
    {
      gsize first = (gsize) i * (gsize) rows->k[level];
      levels[level] = (RnLevelRows){
        .n = rows->k[level],
        .anchors = (const int32_t *) rows->data[level][RN_TOPK_INDEX] + first,
        .logits = (const float *) rows->data[level][RN_TOPK_ROW_LOGITS] + first * (gsize) k,
        .deltas = (const float *) rows->data[level][RN_TOPK_ROW_DELTAS] + first * 4,
      };
    }

  g_autoptr (GArray) detections =
      g_array_sized_new (FALSE, FALSE, sizeof (RnDetection), (guint) test->max_per_img);
  g_array_set_size (detections, (guint) test->max_per_img);
  int n = 0;
  RnStatus status = rn_detect (&rule, &image, sizes, levels, (RnDetection *) (void *) detections->data, &n);
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED, "%s: no detections could be made: %s",
                   meta->path, rn_status_name (status));
      return NULL;
    }
  g_array_set_size (detections, (guint) n);
  return g_steal_pointer (&detections);
}

gboolean
rn_programs_infer (RnPrograms *p, const RnBatch *batch, GArray **detections, GError **error)
{
  g_return_val_if_fail (p->reserved, FALSE);

  p->current = NULL;
  gint64 start = rn_trace_begin ();
  RnShape shape = { RN_MODE_INFER, batch->n, batch->height, batch->width };
  RnProgram *program = rn_programs_prepare (p, shape, error);
  if (!program || !rn_programs_copy_batch (p, program, batch, 1, error)
      || !rn_executor_run (program->executor, 0, (int) program->plan->graph->ops->len, error))
    return FALSE;
  note_highest_byte (p, program->executor);

  g_auto (SelectedRows) rows = { 0 };
  if (!read_rows (p, program, &rows, error))
    return FALSE;
  g_autoptr (GPtrArray) results = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (int i = 0; i < batch->n; i++)
    {
      GArray *found = detect_image (p, program, &rows, i, &batch->metas[i], error);
      if (!found)
        return FALSE;
      g_ptr_array_add (results, found);
    }
  rn_trace_end (start, RN_TRACE_PHASE, "inference", NULL);
  for (int i = 0; i < batch->n; i++)
    detections[i] = g_array_ref (results->pdata[i]);
  return TRUE;
}
