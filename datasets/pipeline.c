#include "config.h"

#include "datasets/pipeline.h"

#include "runner/base/trace.h"
#include "runner/config/schema.h"

#define MAX_RANGES 256 /* of sizes between two steps; more are taken together */

const RnTransformDesc *const rn_transforms[] = {
  &rn_transform_load_image,
  &rn_transform_load_annotations,
  &rn_transform_resize,
  &rn_transform_random_flip,
  &rn_transform_random_crop,
  &rn_transform_min_iou_crop,
  &rn_transform_expand,
  &rn_transform_random_shift,
  &rn_transform_photometric,
  &rn_transform_normalize,
  &rn_transform_pad,
  &rn_transform_format_bundle,
  &rn_transform_image_to_tensor,
  &rn_transform_collect,
  &rn_transform_multi_scale_flip_aug,
  NULL,
};

typedef struct
{
  const RnTransformDesc *desc;
  gpointer self;
  guint part; /* of the sample's random numbers */
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

/* ---- Making one ---- */

gboolean
rn_transform_refuse_random (const RnNode *node, const char *name, GError **error)
{
  return rn_node_error (node, error, "%s makes random choices; leave it out of a test pipeline", name);
}

static const Step *
last_step (const RnPipeline *pipeline)
{
  return &g_array_index (pipeline->steps, Step, pipeline->steps->len - 1);
}

/* Ranks go up; steps on pixels stand in any order, and those that only move them after Normalize too. */
static gboolean
may_follow (const RnPipeline *pipeline, const RnTransformDesc *desc)
{
  guint reached = pipeline->ranks >> desc->rank;

  if (desc->rank != RN_TRANSFORM_PIXELS)
    return reached == 0;
  return reached >> 1 == 0 || (desc->moves_only && pipeline->ranks >> RN_TRANSFORM_NORMALIZE == 1);
}

static gboolean
check_place (const RnPipeline *pipeline, Step *step, const RnNode *node, GError **error)
{
  const char *name = step->desc->component.name;

  for (guint i = 0; i < pipeline->steps->len; i++)
    if (g_array_index (pipeline->steps, Step, i).desc == step->desc)
      {
        const RnResize *resize = step->desc == &rn_transform_resize ? step->self : NULL;

        if (resize != NULL && resize->override)
          step->part += RN_DRAWS_COUNT;
        else
          return rn_node_error (node, error, "%s cannot come after %s: it is there already%s", name,
                                last_step (pipeline)->desc->component.name,
                                resize != NULL ? "; override: true allows a second one" : "");
      }
  if (!may_follow (pipeline, step->desc))
    return rn_node_error (node, error, "%s cannot come after %s", name,
                          last_step (pipeline)->desc->component.name);
  return pipeline->steps->len < RN_PIPELINE_MAX_STEPS
         || rn_node_error (node, error, "more than %d transforms", RN_PIPELINE_MAX_STEPS);
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
  if (step->desc == &rn_transform_resize && outer != NULL)
    ((RnResize *) step->self)->scales = outer->scales;
  step->part = step->desc->draws;
  if (!check_place (pipeline, step, node, error) || !set_up (step, node, test_mode, error))
    return FALSE;
  pipeline->ranks |= 1u << step->desc->rank;
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
      Step step = { NULL };
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

/* ---- Samples ---- */

static void
init_rng (const RnSample *sample, const Step *step, RnRng *rng)
{
  rn_rng_init (rng, sample->seed, RN_STREAM_AUGMENT, (guint32) sample->epoch, (guint32) sample->meta->index);
  rn_rng_skip_to (rng, step->part);
}

static void
begin (RnSample *sample)
{
  RnSampleMeta *meta = sample->meta;

  sample->width = meta->ori_width;
  sample->height = meta->ori_height;
  sample->gt = (RnBoxList){ 0, meta->gt_boxes, meta->gt_labels };
  sample->difficult.n = 0;
  meta->scale_w = meta->scale_h = 1;
  meta->pad_width = meta->pad_height = 0;
  meta->flip = 0;
}

void
rn_pipeline_plan (const RnPipeline *pipeline, RnSample *sample)
{
  RnSampleMeta *meta = sample->meta;

  begin (sample);
  for (guint i = 0; i < pipeline->steps->len; i++)
    {
      const Step *step = &g_array_index (pipeline->steps, Step, i);
      RnDecision *decision = &sample->decisions[i];
      RnRng rng;

      *decision = (RnDecision){ .active = TRUE };
      if (step->desc->plan != NULL)
        {
          init_rng (sample, step, &rng);
          step->desc->plan (step->self, sample, &rng, decision);
        }
      decision->width = sample->width;
      decision->height = sample->height;
    }
  meta->img_width = sample->width;
  meta->img_height = sample->height;
  if (meta->pad_width == 0)
    {
      meta->pad_width = meta->img_width;
      meta->pad_height = meta->img_height;
    }
  meta->n_gt = sample->gt.n;
}

gboolean
rn_pipeline_run (const RnPipeline *pipeline, RnSample *sample, GError **error)
{
  rn_pipeline_plan (pipeline, sample);
  sample->width = sample->meta->ori_width;
  sample->height = sample->meta->ori_height;
  sample->table = NULL;
  sample->rgb = FALSE;
  for (guint i = 0; i < pipeline->steps->len; i++)
    {
      const Step *step = &g_array_index (pipeline->steps, Step, i);
      const RnDecision *decision = &sample->decisions[i];
      RnRng rng;

      if (step->desc->run != NULL && decision->active)
        {
          init_rng (sample, step, &rng);
          gint64 start = rn_trace_begin ();
          gboolean is_ok = step->desc->run (step->self, sample, decision, &rng, error);
          rn_trace_end (start, RN_TRACE_LOADER, step->desc->component.name, NULL);
          if (!is_ok)
            return FALSE;
        }
      sample->width = decision->width;
      sample->height = decision->height;
    }
  return TRUE;
}

/* ---- Bounds ---- */

static RnSizeRange
join (RnSizeRange a, RnSizeRange b)
{
  return (RnSizeRange){ MIN (a.min_width, b.min_width), MAX (a.max_width, b.max_width),
                        MIN (a.min_height, b.min_height), MAX (a.max_height, b.max_height) };
}

static gboolean
contains (RnSizeRange outer, RnSizeRange inner)
{
  return outer.min_width <= inner.min_width && outer.max_width >= inner.max_width
         && outer.min_height <= inner.min_height && outer.max_height >= inner.max_height;
}

/* Leaves out ranges that lie in another one; makes one of all if they are too many. */
static void
simplify (GArray *ranges)
{
  RnSizeRange *items = (RnSizeRange *) (gpointer) ranges->data;
  guint kept = 0;

  if (ranges->len > MAX_RANGES)
    {
      for (guint i = 1; i < ranges->len; i++)
        items[0] = join (items[0], items[i]);
      g_array_set_size (ranges, 1);
    }
  for (guint i = 0; i < ranges->len; i++)
    {
      RnSizeRange range = items[i];
      guint kept_before = kept;
      gboolean held = FALSE;

      kept = 0;
      for (guint k = 0; k < kept_before; k++)
        {
          held |= contains (items[k], range);
          if (held || !contains (range, items[k]))
            items[kept++] = items[k];
        }
      if (!held)
        items[kept++] = range;
    }
  g_array_set_size (ranges, kept);
}

static gsize
largest_area (const GArray *ranges)
{
  gsize largest = 0;

  for (guint i = 0; i < ranges->len; i++)
    {
      const RnSizeRange *range = &g_array_index (ranges, RnSizeRange, i);

      largest = MAX (largest, (gsize) range->max_width * range->max_height);
    }
  return largest;
}

gsize
rn_pipeline_bound (const RnPipeline *pipeline, int width, int height, GArray *ranges)
{
  RnSizeRange whole = { width, width, height, height };
  gsize largest = (gsize) width * height;
  g_autoptr (GArray) in = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));
  g_autoptr (GArray) out = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));

  g_array_append_val (out, whole);
  for (guint i = 0; i < pipeline->steps->len; i++)
    {
      const Step *step = &g_array_index (pipeline->steps, Step, i);
      GArray *other = in;

      if (step->desc->bound == NULL)
        continue;
      in = out;
      out = other;
      g_array_set_size (out, 0);
      for (guint k = 0; k < in->len; k++)
        step->desc->bound (step->self, g_array_index (in, RnSizeRange, k), out);
      simplify (out);
      if (step->desc->rank == RN_TRANSFORM_PIXELS)
        largest = MAX (largest, largest_area (out));
    }
  g_array_append_vals (ranges, out->data, out->len);
  return largest;
}
