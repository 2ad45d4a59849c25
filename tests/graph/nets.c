#include "config.h"

#include "tests/graph/nets.h"

#include <runner/batch.h>

#define LEVELS 4
#define WIDTH 3 /* channels of neck and head */

static const RnInit normal = { .kind = RN_INIT_NORMAL, .a = 0, .b = 0.15 };
/* Wider than what convolutions give, so that few ReLUs are near the place where they change sides. */
static const RnInit wide = { .kind = RN_INIT_NORMAL, .a = 0.3, .b = 0.7 };

static RnValueId
conv (RnGraph *graph, RnValueId x, const char *name, int out, int kernel, int stride, gboolean bias,
      gboolean frozen)
{
  return rn_conv2d (graph, x,
                    &(RnConv2d){ .name = name,
                                 .out_channels = out,
                                 .kernel = kernel,
                                 .stride = stride,
                                 .pad = kernel / 2,
                                 .bias = bias,
                                 .frozen = frozen,
                                 .weight_init = normal,
                                 .bias_init = wide });
}

static RnValueId
conv_bn (RnGraph *graph, RnValueId x, const char *digit, int out, int kernel, int stride,
         const NetOptions *options, gboolean frozen)
{
  g_autofree char *conv_name = g_strconcat ("conv", digit, NULL), *bn_name = g_strconcat ("bn", digit, NULL);
  x = conv (graph, x, conv_name, out, kernel, stride, FALSE, frozen);
  return rn_batch_norm (graph, x,
                        &(RnBatchNorm){ .name = bn_name,
                                        .eps = 1e-5,
                                        .momentum = 0.1,
                                        .training = options->bn_training && !frozen,
                                        .frozen = frozen,
                                        .weight_init = 1 });
}

static RnValueId
residual_block (RnGraph *graph, RnValueId x, int out, int stride, const NetOptions *options, gboolean frozen)
{
  RnValueId y = rn_relu (graph, conv_bn (graph, x, "1", out, 3, stride, options, frozen));
  y = conv_bn (graph, y, "2", out, 3, 1, options, frozen);
  if (stride > 1)
    x = conv_bn (graph, x, "_down", out, 1, stride, options, frozen);
  return rn_relu (graph, rn_add (graph, y, x));
}

typedef struct
{
  RnValueId labels, positives, count, avg, scale;
} Targets;

static Targets
add_targets (RnGraph *graph, int64_t n_anchors)
{
  int64_t capacity = NET_BATCH * n_anchors * (int64_t) sizeof (RnPositive);
  Targets t = {
    .labels =
        rn_graph_input (graph, "labels", (RnTensorDesc){ RN_I16, 2, { NET_BATCH, n_anchors, 1, 1 }, 1 }),
    .positives = rn_graph_input (graph, "positives", rn_desc_vector (RN_U8, capacity)),
    .count = rn_graph_input (graph, "n_positives", rn_desc_vector (RN_I64, 1)),
    .avg = rn_graph_input (graph, "avg_factor", rn_desc_vector (RN_F32, 1)),
    .scale = rn_graph_input (graph, "grad_scale", rn_desc_vector (RN_F32, 1)),
  };
  return t;
}

static int64_t
n_cells (const RnGraph *graph, RnValueId map)
{
  const RnTensorDesc *desc = &rn_graph_value (graph, map)->desc;
  return desc->dims[2] * desc->dims[3];
}

static void
focal (RnGraph *graph, RnValueId logits, const Targets *t, int64_t offset, int level)
{
  rn_graph_push_scope (graph, "loss_cls.%d", level);
  const RnFocalArgs args = { .alpha = 0.25f,
                             .gamma = 2,
                             .weight = 1,
                             .num_classes = NET_CLASSES,
                             .anchors_per_cell = NET_ANCHORS,
                             .anchor_offset = offset };
  rn_graph_mark_output (graph, rn_focal_loss (graph, logits, t->labels, t->avg, t->scale, &args));
  rn_graph_pop_scope (graph);
}

static void
box (RnGraph *graph, RnValueId pred, const Targets *t, int64_t offset, int level)
{
  rn_graph_push_scope (graph, "loss_bbox.%d", level);
  const RnBoxArgs args = {
    .beta = 0.5f, .weight = 1, .anchors_per_cell = NET_ANCHORS, .anchor_offset = offset
  };
  rn_graph_mark_output (graph, rn_box_loss (graph, pred, t->positives, t->count, t->avg, t->scale, &args));
  rn_graph_pop_scope (graph);
}

void
net_residual (RnGraph *graph, const NetOptions *options)
{
  gboolean frozen = options->frozen_stem;
  RnValueId x = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, NET_BATCH, 3, 13, 11, 1));
  rn_graph_push_scope (graph, "stem");
  x = rn_relu (graph, conv_bn (graph, x, "1", 6, 3, 1, options, frozen));
  x = rn_max_pool2d (graph, x, 3, 2, 1);
  rn_graph_pop_scope (graph);

  for (int i = 0; i < 2; i++)
    {
      graph->stage = graph->block = i;
      rn_graph_push_scope (graph, "layer1.%d", i);
      x = residual_block (graph, x, i == 0 ? 6 : 8, i == 0 ? 1 : 2, options, frozen && i == 0);
      rn_graph_pop_scope (graph);
    }
  graph->stage = graph->block = -1;
  x = conv (graph, x, "head", NET_ANCHORS * NET_CLASSES, 1, 1, TRUE, FALSE);
  Targets t = add_targets (graph, x == RN_NO_VALUE ? 1 : n_cells (graph, x) * NET_ANCHORS);
  focal (graph, x, &t, 0, 0);
}

static void
pyramid (RnGraph *graph, const RnValueId *maps, RnValueId *levels)
{
  static const char *const laterals[] = { "lateral0", "lateral1", "lateral2" };
  static const char *const outs[] = { "out0", "out1", "out2", "extra" };
  RnValueId top_down[3];
  rn_graph_push_scope (graph, "neck");
  for (int i = 0; i < 3; i++)
    top_down[i] = conv (graph, maps[i], laterals[i], WIDTH, 1, 1, TRUE, FALSE);
  for (int i = 1; i >= 0; i--)
    top_down[i] = rn_upsample_add (graph, top_down[i + 1], top_down[i]);
  for (int i = 0; i < 3; i++)
    levels[i] = conv (graph, top_down[i], outs[i], WIDTH, 3, 1, TRUE, FALSE);
  levels[3] = conv (graph, rn_relu (graph, levels[2]), outs[3], WIDTH, 3, 2, TRUE, FALSE);
  rn_graph_pop_scope (graph);
}

void
net_pyramid (RnGraph *graph, const NetOptions *options)
{
  RnValueId maps[3], levels[LEVELS];
  RnValueId image = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, NET_BATCH, 3, 7, 6, 1));
  rn_graph_push_scope (graph, "backbone");
  maps[0] = rn_relu (graph, conv (graph, image, "conv0", 4, 3, 1, TRUE, options->frozen_stem));
  maps[1] = rn_relu (graph, conv_bn (graph, maps[0], "1", 5, 3, 2, options, FALSE));
  maps[2] = rn_avg_pool2d (graph, maps[1], 2, 2, TRUE);
  rn_graph_pop_scope (graph);
  pyramid (graph, maps, levels);

  int64_t n_anchors = 0, offset = 0;
  for (int i = 0; i < LEVELS; i++)
    n_anchors += n_cells (graph, levels[i]) * NET_ANCHORS;
  Targets t = add_targets (graph, n_anchors);
  for (int i = 0; i < LEVELS; i++)
    {
      graph->group = 2 * i;
      RnValueId x = rn_relu (graph, conv (graph, levels[i], "cls_tower", WIDTH, 3, 1, TRUE, FALSE));
      focal (graph, conv (graph, x, "cls", NET_ANCHORS * NET_CLASSES, 3, 1, TRUE, FALSE), &t, offset, i);
      graph->group = 2 * i + 1;
      x = rn_relu (graph, conv (graph, levels[i], "reg_tower", WIDTH, 3, 1, TRUE, FALSE));
      box (graph, conv (graph, x, "reg", NET_ANCHORS * 4, 3, 1, TRUE, FALSE), &t, offset, i);
      offset += n_cells (graph, levels[i]) * NET_ANCHORS;
    }
  graph->group = -1;
}
