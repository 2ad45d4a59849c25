#include "config.h"

#include "tests/models/parity/scene.h"

#include <math.h>
#include <string.h>
#include "boxes/targets.h"
#include "tests/models/parity/hash.h"

#define MAX_GTS 3

static const int pad_sizes[SCENE_IMAGES][2] = { { SCENE_HEIGHT, SCENE_WIDTH }, { 64, 96 } };
static const int n_gts[SCENE_IMAGES] = { 3, 2 };

static void
draw (guint64 seed, const char *name, float offset, float scale, float *x, gint64 n)
{
  guint64 state = hash_stream (seed, name);
  for (gint64 i = 0; i < n; i++)
    x[i] = offset + scale * hash_uniform (&state);
}

static void
draw_param (guint64 seed, const RnParam *p, float *x)
{
  gint64 n = rn_desc_elements (&p->desc);
  if (p->desc.rank == 4)
    {
      double gain = strstr (p->name, "retina_") ? 0.05 : 1.0;
      double fan_in = (double) (p->desc.dims[1] * p->desc.dims[2] * p->desc.dims[3]);
      draw (seed, p->name, 0, (float) (gain * sqrt (6 / fan_in)), x, n);
    }
  else if (g_str_has_suffix (p->name, ".running_var"))
    draw (seed, p->name, 1, 0.5f, x, n);
  else if (g_str_has_suffix (p->name, ".weight"))
    draw (seed, p->name, 0.5f, 0.25f, x, n);
  else
    draw (seed, p->name, g_str_equal (p->name, "bbox_head.retina_cls.bias") ? -2 : 0, 0.1f, x, n);
}

void
scene_draw_params (guint64 seed, RnParamSet *params, RnDevice *device)
{
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *p = rn_param_set_get (params, i);
      gsize bytes = rn_desc_bytes (&p->desc);
      g_autofree float *x = g_malloc (bytes);
      draw_param (seed, p, x);
      g_assert_cmpint (device->vtbl->copy_in (device, rn_param_set_value (params, i), x, bytes), ==,
                       RN_STATUS_OK);
    }
}

/* Corners are whole pixels; sides are 12 pixels up to the whole image. */
static void
draw_boxes (guint64 seed, int image, RnBox *boxes, int32_t *labels)
{
  guint64 height = (guint64) pad_sizes[image][0], width = (guint64) pad_sizes[image][1];
  for (int g = 0; g < n_gts[image]; g++)
    {
      g_autofree char *name = g_strdup_printf ("gt%d.%d", image, g);
      guint64 state = hash_stream (seed, name);
      guint64 w = 12 + hash_next (&state) % (width - 11), h = 12 + hash_next (&state) % (height - 11);
      guint64 x = hash_next (&state) % (width - w + 1), y = hash_next (&state) % (height - h + 1);
      boxes[g] = (RnBox){ (float) x, (float) y, (float) (x + w), (float) (y + h) };
      labels[g] = (int32_t) (hash_next (&state) % SCENE_CLASSES);
    }
}

static void
make_targets (Scene *scene, guint64 seed, const RnModel *model)
{
  const RnTargetRule rule = { rn_model_anchors (model), rn_model_assigner (model), rn_model_coder (model),
                              SCENE_CLASSES };
  g_auto (RnTargetScratch) scratch = { 0 };
  int sizes[RN_MAX_LEVELS][2];
  rn_model_feature_sizes (model, SCENE_HEIGHT, SCENE_WIDTH, sizes);
  scene->n_anchors = rn_anchors_count (rule.anchors, (const int (*)[2]) sizes);
  scene->labels = g_new (gint16, SCENE_IMAGES * scene->n_anchors);
  scene->positives = g_new (RnPositive, SCENE_IMAGES * scene->n_anchors);

  for (int i = 0; i < SCENE_IMAGES; i++)
    {
      RnBox boxes[MAX_GTS];
      int32_t labels[MAX_GTS];
      draw_boxes (seed, i, boxes, labels);
      RnTargetImage image = { .index = i,
                              .pad_height = pad_sizes[i][0],
                              .pad_width = pad_sizes[i][1],
                              .gts = boxes,
                              .labels = labels,
                              .n_gt = n_gts[i] };
      gint64 n_positives = 0;
      g_assert_cmpint (rn_targets_build (&rule, &image, (const int (*)[2]) sizes, &scratch,
                                         scene->labels + i * scene->n_anchors,
                                         scene->positives + scene->n_positives, scene->n_anchors,
                                         &n_positives),
                       ==, RN_STATUS_OK);
      scene->n_positives += n_positives;
      scene->avg_factor += (float) MAX (n_positives, 1);
    }
}

Scene *
scene_new (guint64 seed, const RnModel *model)
{
  Scene *scene = g_new0 (Scene, 1);
  scene->image = g_new (float, SCENE_PIXELS);
  draw (seed, "image", 0, 2, scene->image, SCENE_PIXELS);
  make_targets (scene, seed, model);
  return scene;
}

void
scene_free (Scene *scene)
{
  g_free (scene->image);
  g_free (scene->labels);
  g_free (scene->positives);
  g_free (scene);
}
