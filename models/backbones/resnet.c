/* resnet.c: ResNet and ResNetV1d: keys, stages, outputs. Names, order and initialisation of the parameters
 * are MMDetection 2.17's. */
#include "config.h"

#include "models/backbones/resnet.h"

#include "models/builtin.h"

static const RnResNetShape shapes[] = {
  { 18, FALSE, { 2, 2, 2, 2 } },  { 34, FALSE, { 3, 4, 6, 3 } },  { 50, TRUE, { 3, 4, 6, 3 } },
  { 101, TRUE, { 3, 4, 23, 3 } }, { 152, TRUE, { 3, 8, 36, 3 } },
};

static const char *const styles[] = { [RN_RESNET_PYTORCH] = "pytorch", [RN_RESNET_CAFFE] = "caffe", NULL };

#define COMMON_KEYS                                                                                          \
  RN_KEY (RnResNet, depth, RN_KEY_INT, NULL, "18, 34, 50, 101 or 152 layers", .flags = RN_KEY_REQUIRED),     \
      RN_KEY (RnResNet, num_stages, RN_KEY_INT, "4", "stages; each doubles the channels", .min = 1,          \
              .max = RN_RESNET_MAX_STAGES),                                                                  \
      RN_KEY (RnResNet, strides, RN_KEY_INT_LIST, "[1, 2, 2, 2]", "stride of each stage's first block",      \
              .min = 1, .max = 16),                                                                          \
      RN_KEY (RnResNet, dilations, RN_KEY_INT_LIST, "[1, 1, 1, 1]",                                          \
              "dilation of each stage's 3x3 convolutions", .min = 1, .max = 64),                             \
      RN_KEY (RnResNet, out_indices, RN_KEY_INT_LIST, "[0, 1, 2, 3]", "stages that are outputs, ascending",  \
              .min = 0, .max = RN_RESNET_MAX_STAGES - 1),                                                    \
      RN_KEY (RnResNet, stem_channels, RN_KEY_INT, "null", "channels of the stem; null: base_channels",      \
              .min = 2, .max = 1024, .flags = RN_KEY_NULLABLE),                                              \
      RN_KEY (RnResNet, base_channels, RN_KEY_INT, "64", "channels of the first stage's 3x3 convolutions",   \
              .min = 1, .max = 1024),                                                                        \
      RN_KEY (RnResNet, style, RN_KEY_ENUM, "pytorch",                                                       \
              "where a bottleneck's stride is: in its 3x3 (pytorch) or first 1x1 (caffe)", .names = styles), \
      RN_KEY (RnResNet, frozen_stages, RN_KEY_INT, "-1",                                                     \
              "-1: nothing is frozen; 0: the stem; n: the stem and stages 1 to n", .min = -1,                \
              .max = RN_RESNET_MAX_STAGES),                                                                  \
      RN_KEY (RnResNet, norm_cfg, RN_KEY_NODE, NULL, "{type: BN, requires_grad, eps, momentum}"),            \
      RN_KEY (RnResNet, norm_eval, RN_KEY_BOOL, "true",                                                      \
              "train on running statistics, which then never change"),                                       \
      RN_WITH_CP_KEY (RnResNet, "compute blocks again in backward instead of keeping what is inside them: "  \
                                "true, sqrt, {segments: N}, {stages: [N, ...]}, {larger_than: SIZE}"),       \
      RN_FP16_ENABLED_KEY (RnResNet),                                                                        \
      RN_KEY (RnResNet, zero_init_residual, RN_KEY_BOOL, "true",                                             \
              "the last batch norm of each block starts at 0"),                                              \
      RN_KEY (RnResNet, init_cfg, RN_KEY_NODE, "null",                                                       \
              "{type: Pretrained, checkpoint}; null: random weights", .flags = RN_KEY_NULLABLE)

static const RnKeySpec resnet_keys[] = {
  COMMON_KEYS,
  RN_KEY (RnResNet, deep_stem, RN_KEY_BOOL, "false", "three 3x3 convolutions instead of the 7x7"),
  RN_KEY (RnResNet, avg_down, RN_KEY_BOOL, "false",
          "average pooling instead of strided convolutions in the identity paths"),
  RN_KEY_END,
};

static const RnKeySpec resnet_v1d_keys[] = { COMMON_KEYS, RN_KEY_END };

static int
item (const GArray *list, int i)
{
  return (int) g_array_index (list, gint64, i);
}

/* A list that is left out is cut to the stages that there are. */
static gboolean
check_stage_list (const RnResNet *net, const RnNode *config, const char *key, const GArray *list,
                  GError **error)
{
  const RnNode *node = rn_node_get (config, key);
  if (!node || list->len == net->num_stages)
    return TRUE;
  return rn_node_error (node, error, "%s has %u items for %" G_GINT64_FORMAT " stages", key, list->len,
                        net->num_stages);
}

static gboolean
check_out_indices (const RnResNet *net, const RnNode *config, GError **error)
{
  const RnNode *node = rn_node_blame (config, "out_indices");
  if (net->out_indices->len == 0)
    return rn_node_error (node, error, "out_indices is empty");
  for (guint i = 0; i < net->out_indices->len; i++)
    {
      int stage = item (net->out_indices, (int) i);
      if (stage >= net->num_stages)
        return rn_node_error (node, error, "out_indices names stage %d, but num_stages is %" G_GINT64_FORMAT,
                              stage, net->num_stages);
      if (i > 0 && stage <= item (net->out_indices, (int) i - 1))
        return rn_node_error (node, error, "out_indices must be ascending");
    }
  return TRUE;
}

static gboolean
find_shape (RnResNet *net, const RnNode *config, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (shapes); i++)
    if (shapes[i].depth == net->depth)
      {
        net->shape = &shapes[i];
        return TRUE;
      }
  return rn_node_error (rn_node_blame (config, "depth"), error,
                        "there is no ResNet of depth %" G_GINT64_FORMAT "; 18, 34, 50, 101 and 152 are",
                        net->depth);
}

static void
list_outputs (const RnResNet *net, RnFeatures *out)
{
  int stride = 4; /* of the stem */
  int stage = 0;
  out->n = 0;
  for (guint i = 0; i < net->out_indices->len; i++)
    {
      for (; stage <= item (net->out_indices, (int) i); stage++)
        stride *= item (net->strides, stage);
      out->level[out->n++] = (RnFeature){
        .channels = ((int) net->base_channels << (stage - 1)) * rn_resnet_expansion (net),
        .stride = stride,
      };
    }
}

static gboolean
setup (gpointer self, const RnNode *config, RnFeatures *out, RnCpOptions *cp, GError **error)
{
  RnResNet *net = self;

  if (net->frozen_stages > net->num_stages)
    return rn_node_error (rn_node_blame (config, "frozen_stages"), error,
                          "frozen_stages is %" G_GINT64_FORMAT ", but num_stages is %" G_GINT64_FORMAT,
                          net->frozen_stages, net->num_stages);
  if (!find_shape (net, config, error) || !check_stage_list (net, config, "strides", net->strides, error)
      || !check_stage_list (net, config, "dilations", net->dilations, error)
      || !check_out_indices (net, config, error))
    return FALSE;
  if (net->stem_channels == RN_NULL_INT)
    net->stem_channels = net->base_channels;
  if (net->deep_stem && net->stem_channels < 2)
    return rn_node_error (rn_node_blame (config, "stem_channels"), error,
                          "a deep stem needs at least 2 channels");

  if (!rn_make ("norm", net->norm_cfg, "BN", &net->norm, error)
      || (net->init_cfg && !rn_make ("init", net->init_cfg, NULL, &net->pretrained, error)))
    return FALSE;
  if (net->pretrained) /* as in MMDetection, where nothing else is drawn then */
    net->zero_init_residual = FALSE;
  list_outputs (net, out);
  return rn_with_cp_read (net->memory.with_cp, (int) (net->num_stages - MAX (net->frozen_stages, 0)), cp,
                          error);
}

static gboolean
setup_v1d (gpointer self, const RnNode *config, RnFeatures *out, RnCpOptions *cp, GError **error)
{
  RnResNet *net = self;
  net->deep_stem = net->avg_down = TRUE;
  return setup (self, config, out, cp, error);
}

static void
clear (gpointer self)
{
  RnResNet *net = self;
  g_free (net->pretrained);
}

static void
write_ops (gconstpointer self, RnGraph *graph, RnValueId image, RnValueId *out)
{
  const RnResNet *net = self;
  int in_channels = (int) net->stem_channels;
  int n_out = 0;

  RnValueId x = rn_resnet_write_stem (net, graph, image, net->frozen_stages >= 0);
  for (int stage = 0, number = 0; stage < net->num_stages; stage++)
    {
      int width = (int) net->base_channels << stage;
      int out_channels = width * rn_resnet_expansion (net);
      for (int i = 0; i < net->shape->n_blocks[stage]; i++)
        {
          RnResNetBlock block = {
            .width = width,
            .stride = i == 0 ? item (net->strides, stage) : 1,
            .dilation = item (net->dilations, stage),
            .frozen = stage < net->frozen_stages,
          };
          block.downsample = block.stride != 1 || in_channels != out_channels;
          graph->stage = stage;
          graph->block = number++;
          rn_graph_push_scope (graph, "layer%d.%d", stage + 1, i);
          x = rn_resnet_write_block (net, graph, x, &block);
          rn_graph_pop_scope (graph);
          in_channels = out_channels;
        }
      graph->stage = graph->block = -1;
      if (n_out < (int) net->out_indices->len && item (net->out_indices, n_out) == stage)
        out[n_out++] = x;
    }
}

static gboolean
has_frozen_stages (gconstpointer self)
{
  return ((const RnResNet *) self)->frozen_stages >= 0;
}

static const char *
pretrained (gconstpointer self)
{
  return ((const RnResNet *) self)->pretrained;
}

const RnBackboneDesc rn_resnet_desc = {
  .part = { { "ResNet", "deep residual network (He et al. 2016)", sizeof (RnResNet), resnet_keys },
            clear,
            G_STRUCT_OFFSET (RnResNet, memory) },
  .setup = setup,
  .write = write_ops,
  .has_frozen_stages = has_frozen_stages,
  .pretrained = pretrained,
};

const RnBackboneDesc rn_resnet_v1d_desc = {
  .part = { { "ResNetV1d", "ResNet with deep stem and average pooling in the identity paths (He et al. 2019)",
              sizeof (RnResNet), resnet_v1d_keys },
            clear,
            G_STRUCT_OFFSET (RnResNet, memory) },
  .setup = setup_v1d,
  .write = write_ops,
  .has_frozen_stages = has_frozen_stages,
  .pretrained = pretrained,
};
