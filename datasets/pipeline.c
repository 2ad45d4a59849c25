#include "config.h"

#include "datasets/pipeline.h"

#include "runner/config/schema.h"

typedef struct
{
  const RnTransformDesc *desc;
  gpointer self;
} Step;

struct _RnPipeline
{
  GArray *steps;
  guint ranks; /* bit per rank that is there */
};

static void
step_clear (gpointer data)
{
  Step *step = data;

  rn_component_free (&step->desc->component, step->self);
}

void
rn_pipeline_free (RnPipeline *pipeline)
{
  if (pipeline == NULL)
    return;
  g_array_unref (pipeline->steps);
  g_free (pipeline);
}

/* Inside MultiScaleFlipAug, Resize has no scale of its own. */
static gboolean
check_scale (Step *step, const RnMultiScaleFlipAug *outer, const RnNode *node, GError **error)
{
  RnResize *resize = step->self;

  if (step->desc != &rn_transform_resize)
    return TRUE;
  if (resize->img_scale == NULL && outer != NULL && outer->img_scale != NULL)
    resize->img_scale = g_array_ref (outer->img_scale);
  return resize->img_scale != NULL
             ? TRUE
             : rn_node_error (node, error, "Resize needs img_scale: [longer side, shorter side]");
}

static gboolean
set_up (Step *step, const RnNode *node, gboolean test_mode, GError **error)
{
  return step->desc->setup == NULL || step->desc->setup (step->self, node, test_mode, error);
}

static gboolean
append_step (RnPipeline *pipeline, Step *step, const RnMultiScaleFlipAug *outer, const RnNode *node,
             gboolean test_mode, GError **error)
{
  RnTransformRank rank = step->desc->rank;

  if (pipeline->ranks >> rank != 0)
    {
      const Step *last = &g_array_index (pipeline->steps, Step, pipeline->steps->len - 1);

      return rn_node_error (node, error, "%s cannot come after %s", step->desc->component.name,
                            last->desc->component.name);
    }
  if (!check_scale (step, outer, node, error) || !set_up (step, node, test_mode, error))
    return FALSE;
  pipeline->ranks |= 1u << rank;
  g_array_append_val (pipeline->steps, *step);
  return TRUE;
}

static gboolean
append_list (RnPipeline *pipeline, const RnNode *list, const RnMultiScaleFlipAug *outer, gboolean test_mode,
             GError **error)
{
  if (rn_node_kind (list) != RN_NODE_LIST)
    return rn_node_error (list, error, "expected a list of transforms");
  for (guint i = 0; i < rn_node_size (list); i++)
    {
      const RnNode *node = rn_node_item (list, i);
      const RnComponent *component;
      Step step;
      gboolean ok;

      step.self = rn_component_new (rn_registry_family ("transform"), node, NULL, NULL, &component, error);
      if (step.self == NULL)
        return FALSE;
      step.desc = (const RnTransformDesc *) component;
      if (step.desc->rank != RN_TRANSFORM_NEST)
        ok = append_step (pipeline, &step, outer, node, test_mode, error);
      else if (outer != NULL)
        ok = rn_node_error (node, error, "%s cannot stand inside itself", component->name);
      else
        ok = set_up (&step, node, test_mode, error)
             && append_list (pipeline, ((RnMultiScaleFlipAug *) step.self)->transforms, step.self, test_mode,
                             error);
      if (!ok || step.desc->rank == RN_TRANSFORM_NEST)
        step_clear (&step);
      if (!ok)
        return FALSE;
    }
  return TRUE;
}

RnPipeline *
rn_pipeline_new (const RnNode *list, gboolean test_mode, GError **error)
{
  g_autoptr (RnPipeline) pipeline = g_new0 (RnPipeline, 1);
  guint needed = 1u << RN_TRANSFORM_LOAD | 1u << RN_TRANSFORM_BUNDLE | 1u << RN_TRANSFORM_COLLECT;

  pipeline->steps = g_array_new (FALSE, FALSE, sizeof (Step));
  g_array_set_clear_func (pipeline->steps, step_clear);
  if (!append_list (pipeline, list, NULL, test_mode, error))
    return NULL;
  if ((pipeline->ranks & needed) != needed)
    {
      rn_node_error (list, error,
                     "a pipeline has LoadImageFromFile, DefaultFormatBundle or ImageToTensor, and Collect");
      return NULL;
    }
  if (!test_mode && (pipeline->ranks & 1u << RN_TRANSFORM_ANNOTATIONS) == 0)
    {
      rn_node_error (list, error, "a training pipeline needs LoadAnnotations");
      return NULL;
    }
  return g_steal_pointer (&pipeline);
}

void
rn_pipeline_plan (const RnPipeline *pipeline, RnSampleMeta *meta)
{
  meta->img_width = meta->pad_width = meta->ori_width;
  meta->img_height = meta->pad_height = meta->ori_height;
  meta->scale_w = meta->scale_h = 1;
  for (guint i = 0; i < pipeline->steps->len; i++)
    {
      const Step *step = &g_array_index (pipeline->steps, Step, i);

      if (step->desc->plan != NULL)
        step->desc->plan (step->self, meta);
    }
}

gboolean
rn_pipeline_run (const RnPipeline *pipeline, RnSample *sample, GError **error)
{
  rn_pipeline_plan (pipeline, sample->meta);
  sample->meta->flip = FALSE;
  sample->meta->n_gt = 0;
  sample->table = NULL;
  sample->rgb = FALSE;
  for (guint i = 0; i < pipeline->steps->len; i++)
    {
      const Step *step = &g_array_index (pipeline->steps, Step, i);

      if (step->desc->run != NULL && !step->desc->run (step->self, sample, error))
        return FALSE;
    }
  return TRUE;
}
