/* retinanet.c: a single-stage detector: backbone, neck and a dense head. What makes it RetinaNet is in the
 * parts. */
#include "config.h"

#include "models/builtin.h"
#include "runner/config/schema.h"

typedef struct
{
  const RnNode *assigner; /* not used after setup */
  gint64 allowed_border, pos_weight;
} TrainConfig;

typedef struct
{
  gint64 nms_pre, max_per_img;
  double score_thr;
  const RnNode *nms; /* not used after setup */
} TestConfig;

typedef struct
{
  const RnNode *backbone, *neck, *bbox_head, *init_cfg; /* not used after setup */
  TrainConfig train_cfg;
  TestConfig test_cfg;
  gboolean has_train_cfg, has_test_cfg;

  /* from the keys */
  RnPart backbone_part, neck_part, head_part; /* RnBackboneDesc, RnNeckDesc, RnHeadDesc */
  char *pretrained;
} RnRetinaNet;

static const RnKeySpec train_keys[] = {
  RN_KEY (TrainConfig, assigner, RN_KEY_NODE, NULL, "{type: MaxIoUAssigner, pos_iou_thr, neg_iou_thr, ...}"),
  RN_KEY (TrainConfig, allowed_border, RN_KEY_INT, "-1", "-1: anchors may reach over the image's border"),
  RN_KEY (TrainConfig, pos_weight, RN_KEY_INT, "-1", "-1: positives weigh 1"),
  { .name = "debug", .type = RN_KEY_UNUSED, .help = "MMDetection does not use it either" },
  RN_KEY_END,
};

static const RnKeySpec test_keys[] = {
  RN_KEY (TestConfig, nms_pre, RN_KEY_INT, "1000", "anchors kept per level, by their best class; -1: all",
          .min = -1, .max = G_MAXINT),
  RN_KEY (TestConfig, score_thr, RN_KEY_FLOAT, "0.05", "a (box, class) is a candidate if its score is above",
          .min = 0, .max = 1),
  RN_KEY (TestConfig, nms, RN_KEY_NODE, NULL, "{type: nms, iou_threshold}"),
  RN_KEY (TestConfig, max_per_img, RN_KEY_INT, "100", "detections of one image", .min = 1, .max = 1000000),
  { .name = "min_bbox_size",
    .type = RN_KEY_UNUSED,
    .help = "MMDetection 2.17 does not use it for this head" },
  RN_KEY_END,
};

static const RnKeySpec keys[] = {
  RN_KEY (RnRetinaNet, backbone, RN_KEY_NODE, NULL, "family \"backbone\": from pixels to feature maps",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnRetinaNet, neck, RN_KEY_NODE, NULL, "family \"neck\": from feature maps to the head's levels",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnRetinaNet, bbox_head, RN_KEY_NODE, NULL, "family \"head\": from levels to classes and boxes",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnRetinaNet, init_cfg, RN_KEY_NODE, "null",
          "{type: Pretrained, checkpoint}: weights of the whole model; null: see the backbone's",
          .flags = RN_KEY_NULLABLE),
  { .name = "train_cfg",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRetinaNet, train_cfg),
    .keys = train_keys,
    .present = G_STRUCT_OFFSET (RnRetinaNet, has_train_cfg),
    .help = "how targets are made" },
  { .name = "test_cfg",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (RnRetinaNet, test_cfg),
    .keys = test_keys,
    .present = G_STRUCT_OFFSET (RnRetinaNet, has_test_cfg),
    .help = "how detections are made" },
  RN_KEY_END,
};

/* The parts with fp16_enabled: false, by the scopes that write_ops gives them. */
static void
list_single_modules (const RnRetinaNet *net, RnModelMemory *memory)
{
  const struct
  {
    const RnPart *part;
    const char *scope;
  } parts[] = { { &net->backbone_part, "backbone" },
                { &net->neck_part, "neck" },
                { &net->head_part, "bbox_head" } };
  int n = 0;

  G_STATIC_ASSERT (G_N_ELEMENTS (parts) == RN_MODEL_MAX_PARTS);
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      const RnPart *part = parts[i].part;
      if (part->desc->memory_offset != 0
          && !G_STRUCT_MEMBER (RnPartMemory, part->self, part->desc->memory_offset).fp16_enabled)
        memory->single_modules[n++] = parts[i].scope;
    }
}

static gboolean
setup_parts (RnRetinaNet *net, RnModel *model, int num_classes, GError **error)
{
  RnFeatures maps = { 0 };
  if (!rn_part_new (&net->backbone_part, "backbone", net->backbone, NULL, error)
      || !rn_part_new (&net->neck_part, "neck", net->neck, NULL, error)
      || !rn_part_new (&net->head_part, "head", net->bbox_head, NULL, error))
    return FALSE;

  const RnBackboneDesc *backbone = (const RnBackboneDesc *) net->backbone_part.desc;
  const RnNeckDesc *neck = (const RnNeckDesc *) net->neck_part.desc;
  const RnHeadDesc *head = (const RnHeadDesc *) net->head_part.desc;
  if (!backbone->setup (net->backbone_part.self, net->backbone, &maps, &model->memory.backbone, error)
      || !neck->setup (net->neck_part.self, net->neck, &maps, &model->features, error)
      || !head->setup (net->head_part.self, net->bbox_head, &model->features, num_classes, &model->head,
                       &model->memory.head, error))
    return FALSE;
  list_single_modules (net, &model->memory);
  model->has_frozen_stages = backbone->has_frozen_stages (net->backbone_part.self);
  if (net->init_cfg && !rn_make ("init", net->init_cfg, NULL, &net->pretrained, error))
    return FALSE;
  model->pretrained = net->pretrained ? net->pretrained : backbone->pretrained (net->backbone_part.self);
  return TRUE;
}

static gboolean
check_train_config (const TrainConfig *train, const RnNode *config, GError **error)
{
  const RnNode *node = rn_node_blame (config, "train_cfg");
  if (train->allowed_border != -1)
    return rn_node_error (rn_node_blame (node, "allowed_border"), error,
                          "anchors over the image's border cannot be left out; write allowed_border: -1");
  if (train->pos_weight != -1)
    return rn_node_error (rn_node_blame (node, "pos_weight"), error,
                          "positives cannot be given another weight; write pos_weight: -1");
  return TRUE;
}

static gboolean
setup (RnModel *model, const RnNode *config, int num_classes, GError **error)
{
  RnRetinaNet *net = model->detector.self;
  const TestConfig *test = &net->test_cfg;
  if (!setup_parts (net, model, num_classes, error) || !check_train_config (&net->train_cfg, config, error)
      || !rn_make ("assigner", net->train_cfg.assigner, "MaxIoUAssigner", &model->assigner, error)
      || !rn_make ("nms", test->nms, "nms", &model->test.iou_thr, error))
    return FALSE;
  model->test.nms_pre = (int) test->nms_pre;
  model->test.max_per_img = (int) test->max_per_img;
  model->test.score_thr = (float) test->score_thr;
  return TRUE;
}

static void
clear (gpointer self)
{
  RnRetinaNet *net = self;
  rn_part_clear (&net->backbone_part);
  rn_part_clear (&net->neck_part);
  rn_part_clear (&net->head_part);
  g_free (net->pretrained);
}

static void
write_ops (const RnModel *model, RnGraph *graph, RnValueId image, const int (*sizes)[2],
           const RnLossInputs *inputs)
{
  const RnRetinaNet *net = model->detector.self;
  const RnHeadDesc *head = (const RnHeadDesc *) net->head_part.desc;
  RnValueId maps[RN_MAX_LEVELS], levels[RN_MAX_LEVELS];

  rn_graph_push_scope (graph, "backbone");
  ((const RnBackboneDesc *) net->backbone_part.desc)->write (net->backbone_part.self, graph, image, maps);
  rn_graph_pop_scope (graph);

  rn_graph_push_scope (graph, "neck");
  ((const RnNeckDesc *) net->neck_part.desc)->write (net->neck_part.self, graph, maps, levels);
  rn_graph_pop_scope (graph);

  if (inputs)
    head->write_losses (net->head_part.self, graph, levels, sizes, inputs);
  else
    head->write_selection (net->head_part.self, graph, levels, sizes, model->test.nms_pre);
}

static const char *const loss_names[] = { "loss_cls", "loss_bbox", NULL };

const RnDetectorDesc rn_retinanet_desc = {
  .part = { { "RetinaNet", "single-stage detector with focal loss (Lin et al. 2017)", sizeof (RnRetinaNet),
              keys },
            clear },
  .loss_names = loss_names,
  .setup = setup,
  .write = write_ops,
};
