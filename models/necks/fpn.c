/* fpn.c: feature pyramid network (Lin et al. 2017, arXiv 1612.03144) with RetinaNet's extra levels, as
 * MMDetection 2.17 builds it. */
#include "config.h"

#include "models/builtin.h"
#include "models/init.h"

/* Where the first extra convolution reads. */
typedef enum
{
  EXTRA_FALSE, /* no extra convolutions: the last output is subsampled */
  EXTRA_TRUE,  /* an older name of EXTRA_ON_INPUT */
  EXTRA_ON_INPUT,
  EXTRA_ON_LATERAL,
  EXTRA_ON_OUTPUT,
} ExtraConvs;

static const char *const extra_names[] = { "false", "true", "on_input", "on_lateral", "on_output", NULL };

typedef struct
{
  GArray *in_channels;
  gint64 out_channels, num_outs, start_level, end_level;
  int add_extra_convs; /* ExtraConvs */
  gboolean relu_before_extra_convs;
  RnPartMemory memory;

  /* from the keys and the backbone */
  int first, end; /* of the backbone's maps */
  int source_channels[RN_MAX_LEVELS];
} RnFpn;

static const RnKeySpec keys[] = {
  RN_KEY (RnFpn, in_channels, RN_KEY_INT_LIST, "null", "channels of the backbone's maps; null: as they are",
          .min = 1, .max = 1e6, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnFpn, out_channels, RN_KEY_INT, "256", "channels of every output", .min = 1, .max = 65536),
  RN_KEY (RnFpn, num_outs, RN_KEY_INT, NULL, "number of outputs", .min = 1, .max = RN_MAX_LEVELS,
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnFpn, start_level, RN_KEY_INT, "0", "first map of the backbone that is used", .min = 0,
          .max = RN_MAX_LEVELS - 1),
  RN_KEY (RnFpn, end_level, RN_KEY_INT, "-1",
          "map after the last one used; -1: all, and extra levels are possible", .min = -1,
          .max = RN_MAX_LEVELS),
  RN_KEY (RnFpn, add_extra_convs, RN_KEY_ENUM, "false",
          "levels above the backbone: convolutions from the backbone's last map (on_input, true), the last "
          "lateral or the last output; "
          "false: subsampling",
          .names = extra_names),
  RN_KEY (RnFpn, relu_before_extra_convs, RN_KEY_BOOL, "false",
          "ReLU before the second and later extra convolutions"),
  RN_FP16_ENABLED_KEY (RnFpn),
  RN_KEY_END,
};

static gboolean
check_in_channels (const RnFpn *fpn, const RnNode *config, const RnFeatures *in, GError **error)
{
  if (!fpn->in_channels)
    return TRUE;
  const RnNode *node = rn_node_blame (config, "in_channels");
  if ((int) fpn->in_channels->len != in->n)
    return rn_node_error (node, error, "in_channels has %u items, but the backbone has %d outputs",
                          fpn->in_channels->len, in->n);
  for (int i = 0; i < in->n; i++)
    {
      gint64 channels = g_array_index (fpn->in_channels, gint64, i);
      if (channels != in->level[i].channels)
        return rn_node_error (node, error,
                              "in_channels says %" G_GINT64_FORMAT
                              " for output %d of the backbone, which has %d channels",
                              channels, i, in->level[i].channels);
    }
  return TRUE;
}

static gboolean
setup (gpointer self, const RnNode *config, const RnFeatures *in, RnFeatures *out, GError **error)
{
  RnFpn *fpn = self;
  if (!check_in_channels (fpn, config, in, error))
    return FALSE;

  fpn->first = (int) fpn->start_level;
  fpn->end = fpn->end_level < 0 ? in->n : (int) fpn->end_level;
  if (fpn->end > in->n)
    return rn_node_error (rn_node_blame (config, "end_level"), error, "the backbone has %d outputs", in->n);
  if (fpn->first >= fpn->end)
    return rn_node_error (rn_node_blame (config, "start_level"), error,
                          "no map of the backbone is used: its outputs 0 to %d could be", fpn->end - 1);
  int used = fpn->end - fpn->first;
  if (fpn->end_level < 0 ? fpn->num_outs < used : fpn->num_outs != used)
    return rn_node_error (rn_node_blame (config, "num_outs"), error,
                          "num_outs must be %s%d with these levels of the backbone",
                          fpn->end_level < 0 ? "at least " : "", used);

  for (int i = 0; i < in->n; i++)
    fpn->source_channels[i] = in->level[i].channels;
  out->n = (int) fpn->num_outs;
  for (int i = 0; i < out->n; i++)
    {
      int stride = i < used ? in->level[fpn->first + i].stride : 2 * out->level[i - 1].stride;
      out->level[i] = (RnFeature){ .channels = (int) fpn->out_channels, .stride = stride };
    }
  return TRUE;
}

/* @list: "lateral_convs" or "fpn_convs". */
static RnValueId
write_conv (const RnFpn *fpn, RnGraph *graph, RnValueId x, const char *list, int i, int in_channels,
            int kernel, int stride)
{
  rn_graph_push_scope (graph, "%s.%d", list, i);
  RnValueId y =
      rn_conv2d (graph, x,
                 &(RnConv2d){
                     .name = "conv",
                     .out_channels = fpn->out_channels,
                     .kernel = kernel,
                     .stride = stride,
                     .pad = kernel / 2,
                     .bias = TRUE,
                     .weight_init = rn_init_xavier_uniform (in_channels, (int) fpn->out_channels, kernel),
                     .bias_init = rn_init_constant (0),
                 });
  rn_graph_pop_scope (graph);
  return y;
}

static void
write_extra_levels (const RnFpn *fpn, RnGraph *graph, RnValueId input, RnValueId lateral, RnValueId *out,
                    int used)
{
  int channels = (int) fpn->out_channels;
  for (int i = used; i < fpn->num_outs; i++)
    {
      if (fpn->add_extra_convs == EXTRA_FALSE)
        {
          out[i] = rn_max_pool2d (graph, out[i - 1], 1, 2, 0);
          continue;
        }
      RnValueId x = out[i - 1];
      int in_channels = channels;
      if (i > used && fpn->relu_before_extra_convs)
        x = rn_relu (graph, x);
      if (i == used && fpn->add_extra_convs == EXTRA_ON_LATERAL)
        x = lateral;
      if (i == used && (fpn->add_extra_convs == EXTRA_TRUE || fpn->add_extra_convs == EXTRA_ON_INPUT))
        {
          x = input;
          in_channels = fpn->source_channels[fpn->end - 1];
        }
      out[i] = write_conv (fpn, graph, x, "fpn_convs", i, in_channels, 3, 2);
    }
}

static void
write_ops (gconstpointer self, RnGraph *graph, const RnValueId *in, RnValueId *out)
{
  const RnFpn *fpn = self;
  int used = fpn->end - fpn->first;
  RnValueId lateral[RN_MAX_LEVELS];

  for (int i = 0; i < used; i++)
    lateral[i] = write_conv (fpn, graph, in[fpn->first + i], "lateral_convs", i,
                             fpn->source_channels[fpn->first + i], 1, 1);
  for (int i = used - 1; i > 0; i--)
    lateral[i - 1] = rn_upsample_add (graph, lateral[i], lateral[i - 1]);
  for (int i = 0; i < used; i++)
    out[i] = write_conv (fpn, graph, lateral[i], "fpn_convs", i, (int) fpn->out_channels, 3, 1);
  write_extra_levels (fpn, graph, in[fpn->end - 1], lateral[used - 1], out, used);
}

const RnNeckDesc rn_fpn_desc = {
  .part.component = { "FPN", "feature pyramid network (Lin et al. 2017)", sizeof (RnFpn), keys },
  .part.memory_offset = G_STRUCT_OFFSET (RnFpn, memory),
  .setup = setup,
  .write = write_ops,
};
