/* predict.c: plans of a run with other lines. */
#include "config.h"

#include "runner/predict.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/open-device.h"
#include "runner/process-memory.h"
#include "runner/strategies.h"

/* Free memory is not all ours: other programs want some meanwhile. */
#define FREE_SHARE 0.9

RnRoom
rn_room_free (const RnJob *job)
{
  const RnDeviceVtbl *vtbl = job->device->vtbl;
  guint64 bytes = 0, total = 0;

  if (job->is_for_plan)
    return (RnRoom){ .bytes = job->plan_memory };
  if (vtbl->memory_info == NULL)
    return (RnRoom){ .bytes = rn_available_memory (), .counts_host = TRUE };
  vtbl->memory_info (job->device, &bytes, &total);
  return (RnRoom){ .bytes = bytes };
}

gboolean
rn_room_of (const RnJob *job, const char *what, RnRoom *room, GError **error)
{
  const RnMemoryConfig *memory = &job->config.memory;

  if (memory->budget == RN_BUDGET_SIZE)
    {
      *room = (RnRoom){ .bytes = memory->budget_bytes, .is_budget = TRUE };
      return TRUE;
    }
  *room = rn_room_free (job);
  if (job->is_for_plan && room->bytes == 0)
    {
      g_autoptr (GError) reason = NULL;
      if (job->profile == NULL)
        rn_device_free_memory (&job->config, &reason);
      g_set_error (
          error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING,
          "%s asks what the device has free, which nobody says (%s); what works: --budget with a size, "
          "or --device-profile with a card",
          what, reason != NULL ? reason->message : "its profile has no totalGlobalMem above 0");
      return FALSE;
    }
  room->bytes = (guint64) ((double) room->bytes * FREE_SHARE);
  return TRUE;
}

guint64
rn_room_needed (const RnRoom *room, const RnMemory *memory)
{
  return memory->total_bytes + (room->counts_host ? memory->host_bytes : 0);
}

struct _RnPredictor
{
  const RnJob *job;
  RnNode *root;
  GArray *shapes;     /* of RnShape */
  int batch;          /* images of a training batch in them */
  RnShape largest;    /* of those that train */
  RnCallCache *calls; /* of all variants */
};

static gint64
count_pixels (RnShape shape)
{
  return (gint64) shape.n * shape.height * shape.width;
}

/* The first of those with the most pixels; n 0: the run has no shape of that mode. */
static RnShape
find_largest (const GArray *shapes, RnMode mode)
{
  RnShape largest = { .mode = mode };

  for (guint i = 0; i < shapes->len; i++)
    {
      RnShape shape = g_array_index (shapes, RnShape, i);
      if (shape.mode == mode && count_pixels (shape) > count_pixels (largest))
        largest = shape;
    }
  return largest;
}

RnPredictor *
rn_predictor_new (const RnJob *job, const GArray *shapes)
{
  RnPredictor *predictor = g_new0 (RnPredictor, 1);

  predictor->job = job;
  predictor->root = rn_node_copy (job->root);
  predictor->shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  g_array_append_vals (predictor->shapes, shapes->data, shapes->len);
  predictor->largest = find_largest (shapes, RN_MODE_TRAIN);
  g_assert (predictor->largest.n > 0);
  predictor->batch = predictor->largest.n;
  predictor->calls = rn_call_cache_new ();
  return predictor;
}

void
rn_predictor_free (RnPredictor *predictor)
{
  if (predictor == NULL)
    return;
  rn_node_free (predictor->root);
  g_array_unref (predictor->shapes);
  rn_call_cache_free (predictor->calls);
  g_free (predictor);
}

RnShape
rn_predictor_largest (const RnPredictor *predictor)
{
  return predictor->largest;
}

/* Batches of as many images as a training batch has follow it. */
static RnShape
resize (const RnPredictor *predictor, RnShape shape, int batch)
{
  if (batch > 0 && shape.mode != RN_MODE_INFER && shape.n == predictor->batch)
    shape.n = batch;
  return shape;
}

static void
add_shape (const RnPredictor *predictor, GArray *shapes, RnShape shape, int batch)
{
  RnShape resized = resize (predictor, shape, batch);

  if (shape.n > 0)
    g_array_append_val (shapes, resized);
}

static GArray *
choose_shapes (const RnPredictor *predictor, int batch, RnPredictScope scope)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));

  /* The programs take the largest training shape first. */
  add_shape (predictor, shapes, predictor->largest, batch);
  if (scope == RN_PREDICT_ALL)
    for (guint i = 0; i < predictor->shapes->len; i++)
      add_shape (predictor, shapes, g_array_index (predictor->shapes, RnShape, i), batch);
  else
    {
      add_shape (predictor, shapes, find_largest (predictor->shapes, RN_MODE_LOSS), batch);
      add_shape (predictor, shapes, find_largest (predictor->shapes, RN_MODE_INFER), batch);
    }
  return shapes;
}

static RnNode *
change_root (const RnNode *root, const char *const *lines, GError **error)
{
  g_autoptr (RnNode) copy = rn_node_copy (root);

  for (int i = 0; lines != NULL && lines[i] != NULL; i++)
    if (!rn_config_override (copy, lines[i], error))
      return NULL;
  return g_steal_pointer (&copy);
}

/* Blocks are numbered through all stages, so a number that was not there before is one more. */
static RnTrainedStages
find_stages (const RnGraph *graph)
{
  RnTrainedStages stages = { 0 };
  int stage = -1, last_block = -1;

  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, (int) i);
      if (op->phase != RN_PHASE_FORWARD || op->stage < 0 || op->out[0] == RN_NO_VALUE
          || !rn_graph_value (graph, op->out[0])->requires_grad)
        continue;
      if (op->stage > stage && stages.n < RN_CP_MAX_STAGES)
        stages.n++;
      if (op->stage > stage || op->block > last_block)
        stages.blocks[stages.n - 1]++;
      stage = MAX (stage, op->stage);
      last_block = MAX (last_block, op->block);
    }
  return stages;
}

gboolean
rn_predict (RnPredictor *predictor, const char *const *lines, int batch, RnPredictScope scope,
            RnPrediction *prediction, GError **error)
{
  RnNode *root = change_root (predictor->root, lines, error);

  return root != NULL && rn_predict_root (predictor, root, batch, scope, prediction, error);
}

double
rn_predict_step (RnPrograms *programs, const RnPlan *plan)
{
  const RnPlan *update = rn_programs_update_plan (programs);

  return rn_cost_plan (plan) + (update != NULL ? rn_cost_plan (update) : 0);
}

gboolean
rn_predict_root (RnPredictor *predictor, RnNode *root, int batch, RnPredictScope scope,
                 RnPrediction *prediction, GError **error)
{
  g_autoptr (GArray) shapes = choose_shapes (predictor, batch, scope);
  g_autoptr (RnJob) variant = rn_job_new_variant (predictor->job, root, predictor->calls, error);

  if (variant != NULL)
    variant->bounds_only = scope == RN_PREDICT_BOUND;
  if (variant == NULL || !rn_strategies_check (root, &variant->config, variant->wants, error)
      || !rn_job_open_model (variant, error) || !rn_job_open_programs (variant, shapes, TRUE, FALSE, error)
      || !rn_programs_plan (variant->programs, NULL, NULL, error))
    return FALSE;
  const RnPlan *plan =
      rn_programs_get_plan (variant->programs, resize (predictor, predictor->largest, batch), error);
  if (plan == NULL)
    return FALSE;
  prediction->memory = rn_programs_memory (variant->programs);
  prediction->seconds = rn_predict_step (variant->programs, plan);
  prediction->work = rn_cost_work (plan);
  prediction->stages = find_stages (plan->graph);
  return TRUE;
}
