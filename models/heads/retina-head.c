/* retina-head.c: RetinaNet's head (Lin et al. 2017, arXiv 1708.02002): a class tower and a box tower, both
 * shared by all levels. */
#include "config.h"

#include "models/builtin.h"
#include "models/init.h"

#include <math.h>

/* Every anchor starts as an object with this probability, or the many negatives would swamp the first steps
 * (section 4.1 of the paper). */
#define PRIOR_PROBABILITY 0.01

typedef struct
{
  gint64 num_classes, in_channels, stacked_convs, feat_channels;
  const RnNode *anchor_generator, *bbox_coder, *loss_cls, *loss_bbox; /* not used after setup */
  RnPartMemory memory;

  /* from the keys */
  int n_levels, level_channels, anchors_per_cell;
  RnPart class_loss, box_loss; /* RnLossDesc */
} RnRetinaHead;

static const RnKeySpec keys[] = {
  RN_KEY (RnRetinaHead, num_classes, RN_KEY_INT, "null",
          "classes without background; null: those of the data set", .min = 1, .max = G_MAXINT16 - 1,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnRetinaHead, in_channels, RN_KEY_INT, "null", "channels of the neck's outputs; null: as they are",
          .min = 1, .max = 65536, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnRetinaHead, stacked_convs, RN_KEY_INT, "4", "convolutions in each tower", .min = 0, .max = 64),
  RN_KEY (RnRetinaHead, feat_channels, RN_KEY_INT, "256", "channels of the towers", .min = 1, .max = 65536),
  RN_KEY (RnRetinaHead, anchor_generator, RN_KEY_NODE, NULL, "{type: AnchorGenerator, strides, ratios, ...}"),
  RN_KEY (RnRetinaHead, bbox_coder, RN_KEY_NODE, NULL,
          "{type: DeltaXYWHBBoxCoder, target_means, target_stds}"),
  RN_KEY (RnRetinaHead, loss_cls, RN_KEY_NODE, NULL, "{type: FocalLoss, gamma, alpha, loss_weight}"),
  RN_KEY (RnRetinaHead, loss_bbox, RN_KEY_NODE, NULL, "{type: L1Loss, loss_weight}"),
  RN_WITH_CP_KEY (RnRetinaHead, "compute the towers again in backward, branch by branch and level by level: "
                                "true, sqrt, {segments: N}, {larger_than: SIZE}"),
  RN_FP16_ENABLED_KEY (RnRetinaHead),
  RN_KEY_END,
};

static gboolean
choose_num_classes (const RnRetinaHead *head, const RnNode *config, int of_data_set, int *num_classes,
                    GError **error)
{
  const RnNode *node = rn_node_blame (config, "num_classes");
  if (head->num_classes == RN_NULL_INT)
    {
      *num_classes = of_data_set;
      return of_data_set > 0
             || rn_node_error (node, error,
                               "num_classes is left out, and there is no data set that it could follow");
    }
  *num_classes = (int) head->num_classes;
  return of_data_set == 0 || *num_classes == of_data_set
         || rn_node_error (node, error,
                           "num_classes is %d, but the data set has %d classes (`classes:`, VOC's 20 without "
                           "it); make them agree, or set num_classes to null, and it follows them",
                           *num_classes, of_data_set);
}

static gboolean
check_in_channels (const RnRetinaHead *head, const RnNode *config, const RnFeatures *in, GError **error)
{
  gint64 channels = head->in_channels == RN_NULL_INT ? in->level[0].channels : head->in_channels;
  for (int i = 0; i < in->n; i++)
    if (channels != in->level[i].channels)
      return rn_node_error (rn_node_blame (config, "in_channels"), error,
                            "the head needs %" G_GINT64_FORMAT " channels, but level %d of the neck has %d",
                            channels, i, in->level[i].channels);
  return TRUE;
}

/* The position of an anchor is its cell times the stride, so strides must be what the levels really have. */
static gboolean
check_strides (const RnAnchorGenerator *anchors, const RnNode *config, const RnFeatures *in, GError **error)
{
  const RnNode *node = rn_node_blame (rn_node_blame (config, "anchor_generator"), "strides");
  if (anchors->n_levels != in->n)
    return rn_node_error (node, error, "the anchor generator has %d strides for %d levels", anchors->n_levels,
                          in->n);
  for (int i = 0; i < in->n; i++)
    if (anchors->strides[i] != in->level[i].stride)
      return rn_node_error (
          node, error, "the anchor generator has stride %d for level %d, whose cells are %d pixels apart",
          anchors->strides[i], i, in->level[i].stride);
  return TRUE;
}

static gboolean
setup_losses (RnRetinaHead *head, const RnNode *config, GError **error)
{
  if (!rn_part_new (&head->class_loss, "loss", head->loss_cls, "FocalLoss", error)
      || !rn_part_new (&head->box_loss, "loss", head->loss_bbox, "L1Loss", error))
    return FALSE;
  if (!((const RnLossDesc *) head->class_loss.desc)->write_class)
    return rn_node_error (head->loss_cls, error, "%s is no loss for classes",
                          head->class_loss.desc->component.name);
  if (!((const RnLossDesc *) head->box_loss.desc)->write_box)
    return rn_node_error (head->loss_bbox, error, "%s is no loss for boxes",
                          head->box_loss.desc->component.name);
  return TRUE;
}

static gboolean
setup (gpointer self, const RnNode *config, const RnFeatures *in, int num_classes, RnHeadOutputs *out,
       RnCpOptions *cp, GError **error)
{
  RnRetinaHead *head = self;
  if (!choose_num_classes (head, config, num_classes, &out->num_classes, error)
      || !check_in_channels (head, config, in, error)
      || !rn_make ("anchor_generator", head->anchor_generator, "AnchorGenerator", &out->anchors, error)
      || !check_strides (&out->anchors, config, in, error)
      || !rn_make ("bbox_coder", head->bbox_coder, "DeltaXYWHBBoxCoder", &out->coder, error)
      || !setup_losses (head, config, error))
    return FALSE;
  head->num_classes = out->num_classes;
  head->n_levels = in->n;
  head->level_channels = in->level[0].channels;
  head->anchors_per_cell = out->anchors.n_per_cell;
  return rn_with_cp_read (head->memory.with_cp, 0, cp, error);
}

static void
clear (gpointer self)
{
  RnRetinaHead *head = self;
  rn_part_clear (&head->class_loss);
  rn_part_clear (&head->box_loss);
}

/* A tower and the predictor on top of it. */
typedef struct
{
  const char *convs, *predictor;
  int64_t channels; /* of the predictor, numbered by anchor, then class or coordinate */
  double bias;      /* that the predictor starts with */
} Branch;

static Branch
class_branch (const RnRetinaHead *head)
{
  return (Branch){ "cls_convs", "retina_cls", head->anchors_per_cell * head->num_classes,
                   -log ((1 - PRIOR_PROBABILITY) / PRIOR_PROBABILITY) };
}

static Branch
box_branch (const RnRetinaHead *head)
{
  return (Branch){ "reg_convs", "retina_reg", head->anchors_per_cell * 4, 0 };
}

static RnConv2d
conv_spec (const char *name, int64_t channels, double bias)
{
  return (RnConv2d){
    .name = name,
    .out_channels = channels,
    .kernel = 3,
    .pad = 1,
    .bias = TRUE,
    .weight_init = rn_init_normal (0.01),
    .bias_init = rn_init_constant (bias),
  };
}

static RnValueId
write_branch (const RnRetinaHead *head, RnGraph *graph, RnValueId x, Branch branch)
{
  RnConv2d tower = conv_spec ("conv", head->feat_channels, 0);
  RnConv2d predictor = conv_spec (branch.predictor, branch.channels, branch.bias);

  rn_graph_push_scope (graph, "bbox_head");
  for (int i = 0; i < head->stacked_convs; i++)
    {
      rn_graph_push_scope (graph, "%s.%d", branch.convs, i);
      x = rn_relu (graph, rn_conv2d (graph, x, &tower));
      rn_graph_pop_scope (graph);
    }
  x = rn_conv2d (graph, x, &predictor);
  rn_graph_pop_scope (graph);
  return x;
}

/* One branch runs after the other, but MMDetection's parameters are both towers first, then both predictors.
 */
static void
declare_parameters (const RnRetinaHead *head, RnGraph *graph)
{
  const Branch branches[] = { class_branch (head), box_branch (head) };
  RnConv2d tower = conv_spec ("conv", head->feat_channels, 0);
  int64_t top = head->stacked_convs > 0 ? head->feat_channels : head->level_channels;

  rn_graph_push_scope (graph, "bbox_head");
  for (gsize b = 0; b < G_N_ELEMENTS (branches); b++)
    for (int i = 0; i < head->stacked_convs; i++)
      {
        rn_graph_push_scope (graph, "%s.%d", branches[b].convs, i);
        rn_conv2d_declare (graph, i == 0 ? head->level_channels : head->feat_channels, &tower);
        rn_graph_pop_scope (graph);
      }
  for (gsize b = 0; b < G_N_ELEMENTS (branches); b++)
    {
      RnConv2d predictor = conv_spec (branches[b].predictor, branches[b].channels, branches[b].bias);
      rn_conv2d_declare (graph, top, &predictor);
    }
  rn_graph_pop_scope (graph);
}

static RnValueId
write_logits (const RnRetinaHead *head, RnGraph *graph, RnValueId x, int level)
{
  graph->group = 2 * level;
  return write_branch (head, graph, x, class_branch (head));
}

static RnValueId
write_deltas (const RnRetinaHead *head, RnGraph *graph, RnValueId x, int level)
{
  graph->group = 2 * level + 1;
  return write_branch (head, graph, x, box_branch (head));
}

/* The scope alone names a loss, and losses are named without the head's. */
static void
mark_loss (RnGraph *graph, RnValueId loss)
{
  rn_graph_mark_output (graph, loss);
  rn_graph_pop_scope (graph);
}

static void
write_losses (gconstpointer self, RnGraph *graph, const RnValueId *in, const int (*sizes)[2],
              const RnLossInputs *inputs)
{
  const RnRetinaHead *head = self;
  const RnLossDesc *class_loss = (const RnLossDesc *) head->class_loss.desc,
                   *box_loss = (const RnLossDesc *) head->box_loss.desc;
  RnLossLevel level = { .num_classes = (int) head->num_classes, .anchors_per_cell = head->anchors_per_cell };

  declare_parameters (head, graph);
  for (int i = 0; i < head->n_levels; i++)
    {
      RnValueId logits = write_logits (head, graph, in[i], i);
      rn_graph_push_scope (graph, "loss_cls.%d", i);
      mark_loss (graph, class_loss->write_class (head->class_loss.self, graph, logits, inputs, &level));

      RnValueId deltas = write_deltas (head, graph, in[i], i);
      rn_graph_push_scope (graph, "loss_bbox.%d", i);
      mark_loss (graph, box_loss->write_box (head->box_loss.self, graph, deltas, inputs, &level));

      level.anchor_offset += (int64_t) sizes[i][0] * sizes[i][1] * head->anchors_per_cell;
    }
  graph->group = -1;
}

static void
write_selection (gconstpointer self, RnGraph *graph, const RnValueId *in, const int (*sizes)[2], int nms_pre)
{
  const RnRetinaHead *head = self;
  declare_parameters (head, graph);
  for (int i = 0; i < head->n_levels; i++)
    {
      RnValueId logits = write_logits (head, graph, in[i], i);
      RnValueId deltas = write_deltas (head, graph, in[i], i);
      int64_t n_anchors = (int64_t) sizes[i][0] * sizes[i][1] * head->anchors_per_cell;
      char name[16];
      g_snprintf (name, sizeof name, "level%d", i);
      graph->group = -1;
      rn_topk (graph, name, logits, deltas,
               &(RnTopkArgs){
                   .k = nms_pre > 0 ? MIN (nms_pre, n_anchors) : n_anchors,
                   .num_classes = (int) head->num_classes,
                   .anchors_per_cell = head->anchors_per_cell,
               });
    }
}

const RnHeadDesc rn_retina_head_desc = {
  .part = { { "RetinaHead", "two towers shared by all levels (Lin et al. 2017)", sizeof (RnRetinaHead),
              keys },
            clear,
            G_STRUCT_OFFSET (RnRetinaHead, memory) },
  .setup = setup,
  .write_losses = write_losses,
  .write_selection = write_selection,
};
