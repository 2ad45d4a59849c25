/* test-parts.c: what the keys of backbone, neck and head change, and the faults that they are refused for. */
#include "config.h"

#include <string.h>
#include "runner/base/error.h"
#include "runner/config/config.h"
#include "tests/models/fixture.h"

#define ANY_CHANNELS "model.neck.in_channels=null"

static gboolean
has_param (const Fixture *f, const char *name)
{
  return rn_param_set_find (f->params, name) >= 0;
}

static const RnTensorDesc *
desc_of (const RnGraph *graph, const char *name)
{
  RnValueId value = rn_graph_find_value (graph, name);
  g_assert_cmpint (value, !=, RN_NO_VALUE);
  return &rn_graph_value (graph, value)->desc;
}

static const RnGraphOp *
op_of (const RnGraph *graph, const char *scope)
{
  for (guint i = 0; i < graph->ops->len; i++)
    if (g_str_equal (rn_graph_op (graph, (int) i)->scope, scope))
      return rn_graph_op (graph, (int) i);
  g_error ("no op %s", scope);
}

/* ---- backbone ---- */

static void
test_style (void)
{
  const char *caffe[] = { "model.backbone.style=caffe", NULL };
  g_auto (Fixture) a = { 0 }, b = { 0 };
  fixture_init (&a, NULL);
  fixture_init (&b, caffe);
  g_autoptr (RnGraph) pytorch_graph = fixture_graph (&a, RN_MODE_INFER, 1, 64, 64);
  g_autoptr (RnGraph) caffe_graph = fixture_graph (&b, RN_MODE_INFER, 1, 64, 64);
  g_assert_cmpint (op_of (pytorch_graph, "backbone.layer2.0.conv1")->args.conv.stride[0], ==, 1);
  g_assert_cmpint (op_of (pytorch_graph, "backbone.layer2.0.conv2")->args.conv.stride[0], ==, 2);
  g_assert_cmpint (op_of (caffe_graph, "backbone.layer2.0.conv1")->args.conv.stride[0], ==, 2);
  g_assert_cmpint (op_of (caffe_graph, "backbone.layer2.0.conv2")->args.conv.stride[0], ==, 1);
}

static void
test_v1d (void)
{
  const char *changes[] = { "model.backbone.type=ResNetV1d", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 65, 97);

  g_assert_false (has_param (&f, "backbone.conv1.weight"));
  static const char *const names[] = { "backbone.stem.0.weight",
                                       "backbone.stem.1.running_var",
                                       "backbone.stem.3.weight",
                                       "backbone.stem.4.bias",
                                       "backbone.stem.6.weight",
                                       "backbone.stem.7.weight",
                                       "backbone.layer1.0.downsample.1.weight",
                                       "backbone.layer1.0.downsample.2.bias" };
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    g_assert_true (has_param (&f, names[i]));
  g_assert_cmpint (desc_of (graph, "backbone.stem.0")->dims[1], ==, 32);
  g_assert_cmpint (desc_of (graph, "backbone.stem.6")->dims[1], ==, 64);

  /* stages 2 to 4 halve the identity by averaging; the average of one pixel in layer1 is left out */
  g_assert_cmpint (fixture_count_ops (graph, RN_OP_AVG_POOL_FWD, "backbone."), ==, 3);
  const RnGraphOp *pool = op_of (graph, "backbone.layer2.0.avg_pool_fwd");
  g_assert_true (pool->args.pool.ceil_mode);
  g_assert_cmpint (op_of (graph, "backbone.layer2.0.downsample.1")->args.conv.stride[0], ==, 1);
  g_assert_cmpint (desc_of (graph, "backbone.layer2.0.downsample.1")->dims[2], ==,
                   9); /* 17 rows of layer1, rounded up */

  for (int i = 0; i < rn_param_set_size (f.params); i++) /* frozen_stages 1 */
    if (g_str_has_prefix (rn_param_set_get (f.params, i)->name, "backbone.stem."))
      g_assert_false (rn_param_set_get (f.params, i)->trainable);
}

static void
test_dilation (void)
{
  /* the strides of the levels double all the same, so the last two are one stride lower */
  const char *changes[] = { "model.backbone.strides=[1, 2, 2, 1]", "model.backbone.dilations=[1, 1, 1, 2]",
                            "model.bbox_head.anchor_generator.strides=[8, 16, 16, 32, 64]", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 96);

  for (int b = 0; b < 3; b++)
    {
      g_autofree char *scope = g_strdup_printf ("backbone.layer4.%d.conv2", b);
      const RnConvArgs *args = &op_of (graph, scope)->args.conv;
      g_assert_cmpint (args->dilation[0], ==, 2);
      g_assert_cmpint (args->pad[0], ==, 2);
      g_assert_cmpint (args->stride[0], ==, 1);
    }
  g_assert_cmpint (desc_of (graph, "backbone.layer4.2.bn3")->dims[2], ==, 4);
  g_assert_cmpint (desc_of (graph, "backbone.layer4.2.bn3")->dims[3], ==, 6);
}

static void
test_basic_block (void)
{
  const char *changes[] = { "model.backbone.depth=18", ANY_CHANNELS, "model.backbone.dilations=[1, 1, 1, 3]",
                            "model.backbone.init_cfg=null", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);

  g_assert_false (has_param (&f, "backbone.layer1.0.downsample.0.weight"));
  g_assert_false (has_param (&f, "backbone.layer1.0.conv3.weight"));
  g_assert_cmpint (op_of (graph, "backbone.layer4.0.conv1")->args.conv.stride[0], ==, 2);
  g_assert_cmpint (op_of (graph, "backbone.layer4.0.conv1")->args.conv.dilation[0], ==, 3);
  g_assert_cmpint (op_of (graph, "backbone.layer4.0.conv2")->args.conv.dilation[0], ==, 1);
  int gamma = rn_param_set_find (f.params, "backbone.layer4.1.bn2.weight");
  g_assert_cmpfloat (rn_param_set_get (f.params, gamma)->init.a, ==, 0);
}

static void
test_widths (void)
{
  const char *changes[] = { "model.backbone.base_channels=16",
                            "model.backbone.stem_channels=24",
                            "model.backbone.num_stages=3",
                            "model.backbone.out_indices=[1, 2]",
                            "model.neck.start_level=0",
                            "model.neck.num_outs=3",
                            ANY_CHANNELS,
                            "model.bbox_head.anchor_generator.strides=[8, 16, 32]",
                            NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (desc_of (graph, "backbone.conv1")->dims[1], ==, 24);
  g_assert_cmpint (desc_of (graph, "backbone.layer3.0.bn3")->dims[1], ==, 256);
  g_assert_false (has_param (&f, "backbone.layer4.0.conv1.weight"));
  g_assert_cmpint (fixture_count (&f, "neck.lateral_convs", ALL_WEIGHTS, TRUE), ==, 4);
}

/* Number of batch norms on statistics of the batch. */
static int
count_training_norms (const RnGraph *graph)
{
  int count = 0;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, (int) i);
      count += op->op == RN_OP_BATCH_NORM_FWD && op->args.norm.training;
    }
  return count;
}

static void
test_norm_eval (void)
{
  static const struct
  {
    const char *changes[4];
    int training;
  } cases[] = {
    { { NULL }, 0 },                                         /* norm_eval */
    { { "model.backbone.norm_eval=false", NULL }, 53 - 11 }, /* but not in the stem and layer1 */
    { { "model.backbone.norm_eval=false", "model.backbone.frozen_stages=0", NULL }, 53 - 1 },
    { { "model.backbone.norm_eval=false", "model.backbone.frozen_stages=-1", NULL }, 53 },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (Fixture) f = { 0 };
      fixture_init (&f, cases[i].changes);
      g_autoptr (RnGraph) train = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
      g_autoptr (RnGraph) loss = fixture_graph (&f, RN_MODE_LOSS, 1, 64, 64);
      g_autoptr (RnGraph) infer = fixture_graph (&f, RN_MODE_INFER, 1, 64, 64);
      g_assert_cmpint (count_training_norms (train), ==, cases[i].training);
      g_assert_cmpint (count_training_norms (loss), ==, 0);
      g_assert_cmpint (count_training_norms (infer), ==, 0);
      g_assert_cmpint (rn_model_has_frozen_stages (f.model), ==, i != 3);
    }
}

static void
test_norm_cfg (void)
{
  const char *changes[] = {
    "model.backbone.norm_cfg={type: BN, requires_grad: false, eps: 1e-3, momentum: 0.01}", NULL
  };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  const RnNormArgs *args = &op_of (graph, "backbone.layer4.0.bn1")->args.norm;
  g_assert_cmpfloat (args->eps, ==, 1e-3f);
  g_assert_cmpfloat (args->momentum, ==, 0.01f);
  g_assert_false (
      rn_param_set_get (f.params, rn_param_set_find (f.params, "backbone.layer4.0.bn1.weight"))->trainable);
  g_assert_true (
      rn_param_set_get (f.params, rn_param_set_find (f.params, "backbone.layer4.0.conv1.weight"))->trainable);
}

/* ---- neck ---- */

static void
test_fpn_extra_levels (void)
{
  static const struct
  {
    const char *mode;
    int64_t in_channels; /* of the first extra convolution; 0: there is none */
    const char *source;  /* value that the first extra level reads */
  } cases[] = {
    { "model.neck.add_extra_convs=on_input", 2048, "backbone.layer4.2.relu_fwd" },
    { "model.neck.add_extra_convs=true", 2048, "backbone.layer4.2.relu_fwd" },
    { "model.neck.add_extra_convs=on_lateral", 256, "neck.lateral_convs.2.conv" },
    { "model.neck.add_extra_convs=on_output", 256, "neck.fpn_convs.2.conv" },
    { "model.neck.add_extra_convs=false", 0, "neck.fpn_convs.2.conv" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const char *changes[] = { cases[i].mode, NULL };
      g_auto (Fixture) f = { 0 };
      fixture_init (&f, changes);
      g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 97, 131);
      const RnGraphOp *extra =
          op_of (graph, cases[i].in_channels ? "neck.fpn_convs.3.conv" : "neck.max_pool_fwd");
      g_assert_cmpstr (rn_graph_value (graph, extra->in[0])->name, ==, cases[i].source);
      g_assert_cmpint (rn_graph_value (graph, extra->in[0])->desc.dims[2], ==, 4);
      g_assert_cmpint (rn_graph_value (graph, extra->out[0])->desc.dims[2], ==, 2);
      g_assert_cmpint (rn_graph_value (graph, extra->out[0])->desc.dims[3], ==, 3);
      if (cases[i].in_channels)
        g_assert_cmpint (rn_graph_value (graph, extra->in[RN_CONV_WEIGHTS])->desc.dims[1], ==,
                         cases[i].in_channels);
      g_assert_cmpint (fixture_count (&f, "neck.", ALL_WEIGHTS, TRUE), ==, cases[i].in_channels ? 16 : 12);
      g_assert_cmpint (fixture_count_ops (graph, RN_OP_MAX_POOL_FWD, "neck."), ==,
                       cases[i].in_channels ? 0 : 2);
      g_assert_cmpint (fixture_count_ops (graph, RN_OP_UPSAMPLE_FWD, "neck."), ==, 2);
      g_assert_cmpint (fixture_count_ops (graph, RN_OP_RELU_FWD, "neck."), ==, 0);
    }

  const char *changes[] = { "model.neck.relu_before_extra_convs=true", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (fixture_count_ops (graph, RN_OP_RELU_FWD, "neck."), ==, 1); /* before P7, not before P6 */
  g_assert_cmpstr (rn_graph_value (graph, op_of (graph, "neck.fpn_convs.4.conv")->in[0])->name, ==,
                   "neck.relu_fwd");
}

static void
test_fpn_end_level (void)
{
  const char *changes[] = { "model.neck.end_level=3", "model.neck.num_outs=2",
                            "model.bbox_head.anchor_generator.strides=[8, 16]", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (fixture_count (&f, "neck.", ALL_WEIGHTS, TRUE), ==, 8);
  g_assert_cmpint (rn_model_anchors (f.model)->n_levels, ==, 2);
}

/* ---- head ---- */

static void
test_head_keys (void)
{
  const char *changes[] = {
    "model.bbox_head.stacked_convs=0",
    "model.bbox_head.feat_channels=32",
    "model.neck.out_channels=48",
    "model.bbox_head.in_channels=null",
    "model.bbox_head.anchor_generator.ratios=[1.0]",
    "model.bbox_head.loss_bbox={type: SmoothL1Loss, beta: 0.11, loss_weight: 2}",
    "model.bbox_head.loss_cls={type: FocalLoss, gamma: 1.5, alpha: 0.5, loss_weight: 3}",
    NULL
  };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (fixture_count (&f, "bbox_head.", ALL_WEIGHTS, TRUE), ==, 4);
  const RnTensorDesc *weights =
      &rn_param_set_get (f.params, rn_param_set_find (f.params, "bbox_head.retina_cls.weight"))->desc;
  g_assert_cmpint (weights->dims[0], ==, 3 * 80);
  g_assert_cmpint (weights->dims[1], ==, 48);

  const RnBoxArgs *box = &op_of (graph, "loss_bbox.0")->args.box;
  g_assert_cmpfloat (box->beta, ==, 0.11f);
  g_assert_cmpfloat (box->weight, ==, 2);
  g_assert_cmpint (box->anchors_per_cell, ==, 3);
  const RnFocalArgs *focal = &op_of (graph, "loss_cls.0")->args.focal;
  g_assert_cmpfloat (focal->gamma, ==, 1.5f);
  g_assert_cmpfloat (focal->alpha, ==, 0.5f);
  g_assert_cmpfloat (focal->weight, ==, 3);
}

static void
test_target_keys (void)
{
  const char *changes[] = {
    "model.bbox_head.bbox_coder={type: DeltaXYWHBBoxCoder, target_means: [0, 0, 0.5, 0], target_stds: [0.1, "
    "0.1, 0.2, 0.2], "
    "clip_border: false}",
    "model.train_cfg.assigner={type: MaxIoUAssigner, pos_iou_thr: 0.6, neg_iou_thr: 0.3, match_low_quality: "
    "false}",
    "model.test_cfg={nms_pre: 7, score_thr: 0.1, nms: {type: nms, iou_threshold: 0.6}, max_per_img: 9}",
    "model.bbox_head.anchor_generator={type: AnchorGenerator, scales: [8], ratios: [0.5, 2], strides: [8, "
    "16, 32, 64, 128], "
    "base_sizes: [4, 8, 16, 32, 64], scale_major: false, center_offset: 0.5}",
    NULL
  };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);

  const RnBoxCoder *coder = rn_model_coder (f.model);
  g_assert_cmpfloat (coder->means[2], ==, 0.5f);
  g_assert_cmpfloat (coder->stds[3], ==, 0.2f);
  g_assert_false (coder->clip_border);
  const RnMaxIoUAssigner *assigner = rn_model_assigner (f.model);
  g_assert_cmpfloat (assigner->pos_iou_thr, ==, 0.6f);
  g_assert_cmpfloat (assigner->neg_iou_thr, ==, 0.3f);
  g_assert_false (assigner->match_low_quality);
  g_assert_true (assigner->gt_max_assign_all);
  const RnTestConfig *test = rn_model_test_config (f.model);
  g_assert_cmpint (test->nms_pre, ==, 7);
  g_assert_cmpint (test->max_per_img, ==, 9);
  g_assert_cmpfloat (test->score_thr, ==, 0.1f);
  g_assert_cmpfloat (test->iou_thr, ==, 0.6f);
  const RnAnchorGenerator *anchors = rn_model_anchors (f.model);
  g_assert_cmpint (anchors->n_per_cell, ==, 2);
  /* scale 8 of base size 64, ratio 2: 64 * 8 / sqrt 2 wide, its centre half a base size from the corner */
  g_assert_cmpfloat_with_epsilon (anchors->base[4][1].x2 - anchors->base[4][1].x1, 512 / sqrt (2), 1e-3);
  g_assert_cmpfloat_with_epsilon (anchors->base[4][1].x2 + anchors->base[4][1].x1, 64, 1e-3);
}

static void
test_num_classes (void)
{
  const char *left_out[] = { "~model.bbox_head.num_classes", NULL };
  g_autofree char *path =
      g_test_build_filename (G_TEST_DIST, "configs/_base_/models/retinanet_r50_fpn.yaml", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load (path, left_out, &error);
  g_assert_no_error (error);
  g_autoptr (RnModel) model = rn_model_new (rn_node_get (root, "model"), 3, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rn_model_num_classes (model), ==, 3);

  g_autoptr (RnModel) unknown = rn_model_new (rn_node_get (root, "model"), 0, &error);
  g_assert_null (unknown);
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
}

static void
test_impossible_batch (void)
{
  static const int batches[][3] = { { 0, 64, 64 },     { 1, 0, 64 },
                                    { 1, 64, -1 },     { 1, G_MAXINT, G_MAXINT },
                                    { 65537, 64, 64 }, { 65536, 65536, 65536 } };
  for (gsize i = 0; i < G_N_ELEMENTS (batches); i++)
    {
      g_auto (Fixture) f = { 0 };
      g_autoptr (GError) error = NULL;
      fixture_init (&f, NULL);
      g_autoptr (RnGraph) graph = rn_model_build (f.model, f.params, RN_MODE_TRAIN, batches[i][0],
                                                  batches[i][1], batches[i][2], &error);
      g_assert_null (graph);
      g_assert_nonnull (error);
    }
}

/* ---- faults ---- */

/* A whole model; %s are further keys of backbone, neck and head. */
static const char *const template = "model:\n"                                               /* 1 */
                                    "  type: RetinaNet\n"                                    /* 2 */
                                    "  backbone: {type: ResNet, depth: 18, %s}\n"            /* 3 */
                                    "  neck: {type: FPN, start_level: 1, num_outs: 5, %s}\n" /* 4 */
                                    "  bbox_head: {type: RetinaHead, num_classes: 20, %s}\n" /* 5 */
                                    "  train_cfg: {%s}\n";                                   /* 6 */

static void
test_faults (void)
{
  static const struct
  {
    const char *backbone, *neck, *head, *train;
    const char *origin, *text;
  } faults[] = {
    { "dept: 50", "", "", "", "x.yaml:3:", "depth" },
    { "dcn: {}", "", "", "", "x.yaml:3:", "unknown key" },
    { "plugins: []", "", "", "", "x.yaml:3:", "unknown key" },
    { "with_cp: some", "", "", "", "x.yaml:3:", "{segments: 2}" },
    { "with_cp: {larger_than: 0MiB}", "", "", "", "x.yaml:3:", "a size above 0" },
    { "style: tensorflow", "", "", "", "x.yaml:3:", "caffe" },
    { "norm_cfg: {type: GN}", "", "", "", "x.yaml:3:", "BN" },
    { "norm_cfg: {type: BN, epsilon: 1}", "", "", "", "x.yaml:3:", "epsilon" },
    { "init_cfg: {type: Kaiming}", "", "", "", "x.yaml:3:", "Pretrained" },
    { "init_cfg: {type: Pretrained}", "", "", "", "x.yaml:3:", "checkpoint" },
    { "frozen_stages: 5", "", "", "", "x.yaml:3:", "frozen_stages" },
    { "num_stages: 3", "", "", "", "x.yaml:3:", "num_stages is 3" },
    { "num_stages: 2, out_indices: [1], frozen_stages: 3", "", "", "", "x.yaml:3:", "num_stages is 2" },
    { "out_indices: []", "", "", "", "x.yaml:3:", "empty" },
    { "out_indices: [2, 1]", "", "", "", "x.yaml:3:", "ascending" },
    { "strides: [1, 2]", "", "", "", "x.yaml:3:", "strides has 2 items for 4 stages" },
    { "strides: [1, 2, 2, 4]", "", "", "", "x.yaml:5:", "stride 32 for level 2" },
    { "base_channels: 100000", "", "", "", "x.yaml:3:", "base_channels" },
    { "", "in_channels: [256, 512, 1024, 2048]", "", "",
      "x.yaml:4:", "says 256 for output 0 of the backbone, which has 64" },
    { "", "in_channels: [64]", "", "", "x.yaml:4:", "1 items, but the backbone has 4 outputs" },
    { "", "end_level: 5", "", "", "x.yaml:4:", "4 outputs" },
    { "", "end_level: 1", "", "", "x.yaml:4:", "no map of the backbone" },
    { "", "end_level: 3", "", "", "x.yaml:4:", "num_outs must be 2" },
    { "", "add_extra_convs: sometimes", "", "", "x.yaml:4:", "on_lateral" },
    { "", "conv_cfg: {}", "", "", "x.yaml:4:", "unknown key" },
    { "", "", "in_channels: 128", "", "x.yaml:5:", "128" },
    { "", "", "anchor_generator: {type: AnchorGenerator, strides: [8, 16]}", "",
      "x.yaml:5:", "2 strides for 5 levels" },
    { "", "", "anchor_generator: {type: YOLOAnchorGenerator}", "", "x.yaml:5:", "AnchorGenerator" },
    { "", "", "anchor_generator: {type: AnchorGenerator, base_sizes: [8]}", "",
      "x.yaml:5:", "1 items for 5 strides" },
    { "", "", "bbox_coder: {type: DeltaXYWHBBoxCoder, target_stds: [1, 1]}", "", "x.yaml:5:", "4 items" },
    { "", "", "loss_cls: {type: L1Loss}", "", "x.yaml:5:", "no loss for classes" },
    { "", "", "loss_bbox: {type: FocalLoss}", "", "x.yaml:5:", "no loss for boxes" },
    { "", "", "loss_cls: {type: FocalLoss, use_sigmoid: false}", "", "x.yaml:5:", "use_sigmoid" },
    { "", "", "loss_cls: {type: FocalLos}", "", "x.yaml:5:", "FocalLoss" },
    { "", "", "", "allowed_border: 0", "x.yaml:6:", "allowed_border: -1" },
    { "", "", "", "pos_weight: 2", "x.yaml:6:", "pos_weight: -1" },
    { "", "", "", "assigner: {type: MaxIoUAssigner, pos_iou_thr: 0.3}", "x.yaml:6:", "neg_iou_thr" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (faults); i++)
    {
      g_autofree char *text =
          g_strdup_printf (template, faults[i].backbone, faults[i].neck, faults[i].head, faults[i].train);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = rn_config_load_text (text, "x.yaml", NULL, &error);
      g_assert_no_error (error);
      g_autoptr (RnModel) model = rn_model_new (rn_node_get (root, "model"), 0, &error);
      g_assert_null (model);
      g_assert_nonnull (error);
      g_assert_cmpint (error->domain, ==, RN_CONFIG_ERROR);
      if (!g_str_has_prefix (error->message, faults[i].origin) || !strstr (error->message, faults[i].text))
        g_error ("fault %" G_GSIZE_FORMAT ": \"%s\" should start with %s and name \"%s\"", i, error->message,
                 faults[i].origin, faults[i].text);
    }
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  g_test_init (&argc, &argv, NULL);
  if (!rn_models_register (&error))
    g_error ("%s", error->message);
  g_test_add_func ("/models/resnet/style", test_style);
  g_test_add_func ("/models/resnet/v1d", test_v1d);
  g_test_add_func ("/models/resnet/dilation", test_dilation);
  g_test_add_func ("/models/resnet/basic-block", test_basic_block);
  g_test_add_func ("/models/resnet/widths", test_widths);
  g_test_add_func ("/models/resnet/norm-eval", test_norm_eval);
  g_test_add_func ("/models/resnet/norm-cfg", test_norm_cfg);
  g_test_add_func ("/models/fpn/extra-levels", test_fpn_extra_levels);
  g_test_add_func ("/models/fpn/end-level", test_fpn_end_level);
  g_test_add_func ("/models/head/keys", test_head_keys);
  g_test_add_func ("/models/head/target-keys", test_target_keys);
  g_test_add_func ("/models/num-classes", test_num_classes);
  g_test_add_func ("/models/impossible-batch", test_impossible_batch);
  g_test_add_func ("/models/faults", test_faults);
  return g_test_run ();
}
