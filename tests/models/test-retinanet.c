/* test-retinanet.c: the shipped model against published and computed counts: parameters, names, sizes,
 * anchors, multiply-adds. */
#include "config.h"

#include <runner/batch.h>
#include "models/init.h"
#include "tests/models/fixture.h"

#define VOC_CLASSES "model.bbox_head.num_classes=20"
#define ANY_CHANNELS "model.neck.in_channels=null"

/* No fully connected layer. Sums of the layers' sizes; R50 and R101 are torchvision's counts less that layer.
 */
static const struct
{
  int depth;
  gint64 tensors, elements, norm, stage[5]; /* stem, layer1 to layer4 */
} backbones[] = {
  { 18, 60, 11176512, 9600, { 9536, 147968, 525568, 2099712, 8393728 } },
  { 34, 108, 21284672, 17024, { 9536, 221952, 1116416, 6822400, 13114368 } },
  { 50, 159, 23508032, 53120, { 9536, 215808, 1219584, 7098368, 14964736 } },
  { 101, 312, 42500160, 105344, { 9536, 215808, 1219584, 26090496, 14964736 } },
  { 152, 465, 58143808, 151424, { 9536, 215808, 2339840, 40613888, 14964736 } },
};

static void
test_backbone_counts (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (backbones); i++)
    {
      g_autofree char *depth = g_strdup_printf ("model.backbone.depth=%d", backbones[i].depth);
      const char *changes[] = { depth, ANY_CHANNELS, NULL };
      g_auto (Fixture) f = { 0 };
      fixture_init (&f, changes);
      g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);

      g_assert_cmpint (fixture_count (&f, "backbone.", ALL_WEIGHTS, TRUE), ==, backbones[i].tensors);
      g_assert_cmpint (fixture_count (&f, "backbone.", ALL_WEIGHTS, FALSE), ==, backbones[i].elements);
      g_assert_cmpint (fixture_count (&f, "backbone.", NORM_WEIGHTS, FALSE), ==, backbones[i].norm);
      g_assert_cmpint (fixture_count (&f, "backbone.conv1", ALL_WEIGHTS, FALSE)
                           + fixture_count (&f, "backbone.bn1", ALL_WEIGHTS, FALSE),
                       ==, backbones[i].stage[0]);
      for (int s = 1; s <= 4; s++)
        {
          g_autofree char *prefix = g_strdup_printf ("backbone.layer%d.", s);
          g_assert_cmpint (fixture_count (&f, prefix, ALL_WEIGHTS, FALSE), ==, backbones[i].stage[s]);
        }
    }
}

static void
test_counts (void)
{
  const char *voc[] = { VOC_CLASSES, NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, voc);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);

  g_assert_cmpint (fixture_count (&f, "neck.", ALL_WEIGHTS, FALSE), ==, 7997440);
  g_assert_cmpint (fixture_count (&f, "bbox_head.", ALL_WEIGHTS, FALSE), ==, 5218520);
  g_assert_cmpint (fixture_count (&f, "", ALL_WEIGHTS, FALSE), ==, 36723992);
  g_assert_cmpint (fixture_count (&f, "", TRAINABLE_WEIGHTS, FALSE), ==, 36498648);
  g_assert_cmpint (fixture_count (&f, "", ALL_WEIGHTS, TRUE), ==, 195);
  g_assert_cmpint (
      fixture_count (&f, "", ALL_WEIGHTS, TRUE) - fixture_count (&f, "", TRAINABLE_WEIGHTS, TRUE), ==, 33);
  /* a state_dict has 354 entries: one more per batch norm, the number of batches tracked, which is not kept
   * here */
  g_assert_cmpint (rn_param_set_size (f.params) + 53, ==, 354);

  /* 37.74 M is what MMDetection's own tool prints: it counts what trains */
  g_auto (Fixture) coco = { 0 };
  fixture_init (&coco, NULL);
  g_autoptr (RnGraph) coco_graph = fixture_graph (&coco, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (fixture_count (&coco, "", ALL_WEIGHTS, FALSE), ==, 37968692);
  g_assert_cmpint (fixture_count (&coco, "", TRAINABLE_WEIGHTS, FALSE), ==, 37743348);

  const char *small[] = { "model.backbone.depth=18", ANY_CHANNELS, VOC_CLASSES, NULL };
  g_auto (Fixture) r18 = { 0 };
  fixture_init (&r18, small);
  g_autoptr (RnGraph) r18_graph = fixture_graph (&r18, RN_MODE_TRAIN, 1, 64, 64);
  g_assert_cmpint (fixture_count (&r18, "neck.", ALL_WEIGHTS, FALSE), ==, 3770368);
  g_assert_cmpint (fixture_count (&r18, "", ALL_WEIGHTS, FALSE), ==, 20165400);
}

typedef struct
{
  const char *name;
  int64_t dims[4];
} NameAndShape;

/* Parameters and buffers from index @first on. */
static void
assert_names (const Fixture *f, int first, const NameAndShape *expected, gsize n)
{
  for (gsize i = 0; i < n; i++)
    {
      const RnParam *p = rn_param_set_get (f->params, first + (int) i);
      g_assert_cmpstr (p->name, ==, expected[i].name);
      for (int d = 0; d < p->desc.rank; d++)
        g_assert_cmpint (p->desc.dims[d], ==, expected[i].dims[d]);
      g_assert_cmpint (p->desc.rank, ==, expected[i].dims[1] ? 4 : 1);
    }
}

#define NORM(name, c)                                                                  \
  { name ".weight", { c } }, { name ".bias", { c } }, { name ".running_mean", { c } }, \
  {                                                                                    \
    name ".running_var",                                                               \
    {                                                                                  \
      c                                                                                \
    }                                                                                  \
  }

static void
test_names (void)
{
  static const NameAndShape start[] = {
    { "backbone.conv1.weight", { 64, 3, 7, 7 } },
    NORM ("backbone.bn1", 64),
    { "backbone.layer1.0.conv1.weight", { 64, 64, 1, 1 } },
    NORM ("backbone.layer1.0.bn1", 64),
    { "backbone.layer1.0.conv2.weight", { 64, 64, 3, 3 } },
    NORM ("backbone.layer1.0.bn2", 64),
    { "backbone.layer1.0.conv3.weight", { 256, 64, 1, 1 } },
    NORM ("backbone.layer1.0.bn3", 256),
    { "backbone.layer1.0.downsample.0.weight", { 256, 64, 1, 1 } },
    NORM ("backbone.layer1.0.downsample.1", 256),
    { "backbone.layer1.1.conv1.weight", { 64, 256, 1, 1 } },
  };
  static const NameAndShape end[] = {
    { "backbone.layer4.2.conv3.weight", { 2048, 512, 1, 1 } },
    NORM ("backbone.layer4.2.bn3", 2048),
    { "neck.lateral_convs.0.conv.weight", { 256, 512, 1, 1 } },
    { "neck.lateral_convs.0.conv.bias", { 256 } },
    { "neck.lateral_convs.1.conv.weight", { 256, 1024, 1, 1 } },
    { "neck.lateral_convs.1.conv.bias", { 256 } },
    { "neck.lateral_convs.2.conv.weight", { 256, 2048, 1, 1 } },
    { "neck.lateral_convs.2.conv.bias", { 256 } },
    { "neck.fpn_convs.0.conv.weight", { 256, 256, 3, 3 } },
    { "neck.fpn_convs.0.conv.bias", { 256 } },
    { "neck.fpn_convs.1.conv.weight", { 256, 256, 3, 3 } },
    { "neck.fpn_convs.1.conv.bias", { 256 } },
    { "neck.fpn_convs.2.conv.weight", { 256, 256, 3, 3 } },
    { "neck.fpn_convs.2.conv.bias", { 256 } },
    { "neck.fpn_convs.3.conv.weight", { 256, 2048, 3, 3 } },
    { "neck.fpn_convs.3.conv.bias", { 256 } },
    { "neck.fpn_convs.4.conv.weight", { 256, 256, 3, 3 } },
    { "neck.fpn_convs.4.conv.bias", { 256 } },
    { "bbox_head.cls_convs.0.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.cls_convs.0.conv.bias", { 256 } },
    { "bbox_head.cls_convs.1.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.cls_convs.1.conv.bias", { 256 } },
    { "bbox_head.cls_convs.2.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.cls_convs.2.conv.bias", { 256 } },
    { "bbox_head.cls_convs.3.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.cls_convs.3.conv.bias", { 256 } },
    { "bbox_head.reg_convs.0.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.reg_convs.0.conv.bias", { 256 } },
    { "bbox_head.reg_convs.1.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.reg_convs.1.conv.bias", { 256 } },
    { "bbox_head.reg_convs.2.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.reg_convs.2.conv.bias", { 256 } },
    { "bbox_head.reg_convs.3.conv.weight", { 256, 256, 3, 3 } },
    { "bbox_head.reg_convs.3.conv.bias", { 256 } },
    { "bbox_head.retina_cls.weight", { 180, 256, 3, 3 } },
    { "bbox_head.retina_cls.bias", { 180 } },
    { "bbox_head.retina_reg.weight", { 36, 256, 3, 3 } },
    { "bbox_head.retina_reg.bias", { 36 } },
  };
  const char *voc[] = { VOC_CLASSES, NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, voc);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_INFER, 1, 64, 64);
  assert_names (&f, 0, start, G_N_ELEMENTS (start));
  assert_names (&f, rn_param_set_size (f.params) - (int) G_N_ELEMENTS (end), end, G_N_ELEMENTS (end));
}

static void
test_frozen (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);

  g_assert_true (rn_model_has_frozen_stages (f.model));
  g_assert_cmpstr (rn_model_pretrained (f.model), ==, "torchvision://resnet50");
  for (int i = 0; i < rn_param_set_size (f.params); i++)
    {
      const RnParam *p = rn_param_set_get (f.params, i);
      gboolean frozen = g_str_has_prefix (p->name, "backbone.conv1")
                        || g_str_has_prefix (p->name, "backbone.bn1")
                        || g_str_has_prefix (p->name, "backbone.layer1.") || p->kind == RN_PARAM_BUFFER;
      g_assert_cmpint (p->trainable, ==, !frozen);
    }
}

static const struct
{
  int height, width, sizes[5][2];
  int64_t n_anchors;
} shapes[] = {
  { 608, 800, { { 76, 100 }, { 38, 50 }, { 19, 25 }, { 10, 13 }, { 5, 7 } }, 91260 },
  { 608, 928, { { 76, 116 }, { 38, 58 }, { 19, 29 }, { 10, 15 }, { 5, 8 } }, 105849 },
  { 608, 1024, { { 76, 128 }, { 38, 64 }, { 19, 32 }, { 10, 16 }, { 5, 8 } }, 116712 },
  { 800, 1344, { { 100, 168 }, { 50, 84 }, { 25, 42 }, { 13, 21 }, { 7, 11 } }, 201600 },
  { 320, 320, { { 40, 40 }, { 20, 20 }, { 10, 10 }, { 5, 5 }, { 3, 3 } }, 19206 },
  { 97, 131, { { 13, 17 }, { 7, 9 }, { 4, 5 }, { 2, 3 }, { 1, 2 } }, 2808 }, /* no multiple of 32 */
  { 1, 1, { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } }, 45 },
};

static void
test_sizes (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      int sizes[RN_MAX_LEVELS][2];
      g_assert_cmpint (rn_model_feature_sizes (f.model, shapes[i].height, shapes[i].width, sizes), ==, 5);
      g_assert_cmpmem (sizes, sizeof shapes[i].sizes, shapes[i].sizes, sizeof shapes[i].sizes);
      g_assert_cmpint (rn_anchors_count (rn_model_anchors (f.model), (const int (*)[2]) sizes), ==,
                       shapes[i].n_anchors);

      g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 2, shapes[i].height, shapes[i].width);
      const RnTensorDesc *labels = &rn_graph_value (graph, rn_graph_find_value (graph, "labels"))->desc;
      g_assert_cmpint (labels->dims[0], ==, 2);
      g_assert_cmpint (labels->dims[1], ==, shapes[i].n_anchors);
      const RnTensorDesc *positives = &rn_graph_value (graph, rn_graph_find_value (graph, "positives"))->desc;
      g_assert_cmpint (positives->dims[0], ==, 2 * shapes[i].n_anchors * (int64_t) sizeof (RnPositive));
    }
}

/* In 10^9; the published numbers have two decimals, some rounded and some cut off. */
static void
assert_giga (gint64 count, double expected)
{
  g_assert_cmpfloat_with_epsilon ((double) count / 1e9, expected, 0.01);
}

static void
test_operations (void)
{
  static const struct
  {
    const char *classes;
    int height, width;
    double backbone, neck, head; /* convolutions */
    double total;
  } published[] = {
    { "model.bbox_head.num_classes=80", 1280, 800, 83.41, 17.34, 137.86,
      239.32 }, /* the total is in MMDetection's documentation */
    { "model.bbox_head.num_classes=80", 800, 1344, 87.58, 18.20, 144.78, 251.31 },
    { "model.bbox_head.num_classes=20", 800, 1344, 87.58, 18.20, 116.90, 223.43 },
    { "model.bbox_head.num_classes=20", 608, 1024, 50.71, 10.55, 67.67, 129.37 },
    { "model.bbox_head.num_classes=20", 608, 800, 39.62, 8.27, 52.92, 101.14 },
    { "model.bbox_head.num_classes=20", 320, 320, 8.34, 1.73, 11.14, 21.28 },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (published); i++)
    {
      const char *changes[] = { published[i].classes, NULL };
      g_auto (Fixture) f = { 0 };
      fixture_init (&f, changes);
      g_autoptr (RnGraph) graph =
          fixture_graph (&f, RN_MODE_LOSS, 1, published[i].height, published[i].width);
      assert_giga (fixture_count_operations (graph, "backbone.", TRUE), published[i].backbone);
      assert_giga (fixture_count_operations (graph, "neck.", TRUE), published[i].neck);
      assert_giga (fixture_count_operations (graph, "bbox_head.", TRUE), published[i].head);
      assert_giga (fixture_count_operations (graph, "", FALSE), published[i].total);
    }
}

static void
test_marks (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);

  int last_block = -1, last_group = -1;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, (int) i);
      g_assert_cmpint (op->block >= 0, ==, g_str_has_prefix (op->scope, "backbone.layer"));
      g_assert_cmpint (op->group >= 0, ==,
                       g_str_has_prefix (op->scope, "bbox_head.") || g_str_has_prefix (op->scope, "loss_"));
      if (op->block >= 0)
        {
          g_assert_cmpint (op->block - last_block, >=, 0);
          g_assert_cmpint (op->block - last_block, <=, 1);
          last_block = op->block;
        }
      if (op->group >= 0)
        {
          g_assert_cmpint (op->group - last_group, >=, 0);
          g_assert_cmpint (op->group - last_group, <=, 1);
          last_group = op->group;
        }
      if (op->op == RN_OP_FOCAL_LOSS)
        g_assert_cmpint (op->group % 2, ==, 0);
      if (op->op == RN_OP_BOX_LOSS)
        g_assert_cmpint (op->group % 2, ==, 1);
    }
  g_assert_cmpint (last_block, ==, 15);
  g_assert_cmpint (last_group, ==, 9);
}

static void
test_losses (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_LOSS, 2, 608, 1024);

  const char *const *names = rn_model_loss_names (f.model);
  g_assert_cmpstr (names[0], ==, "loss_cls");
  g_assert_cmpstr (names[1], ==, "loss_bbox");
  g_assert_null (names[2]);

  static const int64_t offsets[5] = { 0, 87552, 109440, 114912, 116352 };
  for (int level = 0; level < 5; level++)
    for (int i = 0; i < 2; i++)
      {
        g_autofree char *name = g_strdup_printf ("%s.%d", names[i], level);
        RnValueId value = rn_graph_find_value (graph, name);
        g_assert_cmpint (value, !=, RN_NO_VALUE);
        g_assert_true (rn_graph_value (graph, value)->is_output);
      }
  int level_of_focal = 0, level_of_box = 0;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, (int) i);
      if (op->op == RN_OP_FOCAL_LOSS)
        {
          g_assert_cmpint (op->args.focal.anchor_offset, ==, offsets[level_of_focal++]);
          g_assert_cmpint (op->args.focal.num_classes, ==, 80);
          g_assert_cmpfloat (op->args.focal.alpha, ==, 0.25f);
          g_assert_cmpfloat (op->args.focal.gamma, ==, 2.0f);
        }
      if (op->op == RN_OP_BOX_LOSS)
        {
          g_assert_cmpint (op->args.box.anchor_offset, ==, offsets[level_of_box++]);
          g_assert_cmpfloat (op->args.box.beta, ==, 0);
        }
    }
  g_assert_cmpint (level_of_focal, ==, 5);
  g_assert_cmpint (level_of_box, ==, 5);
}

static void
test_selection (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_INFER, 1, 608, 1024);
  static const int64_t k[5] = { 1000, 1000, 1000, 1000, 360 }; /* the last level has 5x8 cells of 9 anchors */
  for (int level = 0; level < 5; level++)
    {
      g_autofree char *name = g_strdup_printf ("level%d.logits", level);
      RnValueId value = rn_graph_find_value (graph, name);
      g_assert_cmpint (value, !=, RN_NO_VALUE);
      g_assert_true (rn_graph_value (graph, value)->is_output);
      g_assert_cmpint (rn_graph_value (graph, value)->desc.dims[1], ==, k[level]);
      g_assert_cmpint (rn_graph_value (graph, value)->desc.dims[2], ==, 80);
    }
  g_assert_cmpint (rn_graph_find_value (graph, "labels"), ==, RN_NO_VALUE);

  const char *changes[] = { "model.test_cfg.nms_pre=-1", NULL };
  g_auto (Fixture) all = { 0 };
  fixture_init (&all, changes);
  g_autoptr (RnGraph) all_graph = fixture_graph (&all, RN_MODE_INFER, 1, 608, 1024);
  RnValueId value = rn_graph_find_value (all_graph, "level0.index");
  g_assert_cmpint (rn_graph_value (all_graph, value)->desc.dims[1], ==, 76 * 128 * 9);

  const RnTestConfig *test = rn_model_test_config (f.model);
  g_assert_cmpint (test->nms_pre, ==, 1000);
  g_assert_cmpint (test->max_per_img, ==, 100);
  g_assert_cmpfloat (test->score_thr, ==, 0.05f);
  g_assert_cmpfloat (test->iou_thr, ==, 0.5f);
}

/* @kind with @a, @b, where a standard deviation or bound is compared as computed: the formulas are the
 * papers'. */
static void
assert_init (const Fixture *f, const char *name, RnInitKind kind, double a, double b)
{
  int i = rn_param_set_find (f->params, name);
  g_assert_cmpint (i, >=, 0);
  const RnInit *init = &rn_param_set_get (f->params, i)->init;
  g_assert_cmpint (init->kind, ==, kind);
  g_assert_cmpfloat_with_epsilon (init->a, a, 1e-9);
  g_assert_cmpfloat_with_epsilon (init->b, b, 1e-9);
}

static void
test_init (void)
{
  const char *changes[] = { "model.backbone.init_cfg=null", NULL };
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, changes);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  assert_init (&f, "backbone.conv1.weight", RN_INIT_NORMAL, 0, sqrt (2.0 / (64 * 49)));
  assert_init (&f, "backbone.layer3.1.conv2.weight", RN_INIT_NORMAL, 0, sqrt (2.0 / (256 * 9)));
  assert_init (&f, "backbone.layer2.0.downsample.0.weight", RN_INIT_NORMAL, 0, sqrt (2.0 / 512));
  assert_init (&f, "backbone.bn1.weight", RN_INIT_CONSTANT, 1, 0);
  assert_init (&f, "backbone.layer4.2.bn2.weight", RN_INIT_CONSTANT, 1, 0);
  assert_init (&f, "backbone.layer4.2.bn3.weight", RN_INIT_CONSTANT, 0, 0); /* zero_init_residual */
  assert_init (&f, "backbone.layer2.0.downsample.1.weight", RN_INIT_CONSTANT, 1, 0);
  assert_init (&f, "backbone.layer4.2.bn3.running_var", RN_INIT_CONSTANT, 1, 0);

  double lateral = sqrt (6.0 / (512 + 256)), extra = sqrt (6.0 / ((2048 + 256) * 9));
  assert_init (&f, "neck.lateral_convs.0.conv.weight", RN_INIT_UNIFORM, -lateral, lateral);
  assert_init (&f, "neck.fpn_convs.3.conv.weight", RN_INIT_UNIFORM, -extra, extra);
  assert_init (&f, "neck.fpn_convs.3.conv.bias", RN_INIT_CONSTANT, 0, 0);

  assert_init (&f, "bbox_head.reg_convs.3.conv.weight", RN_INIT_NORMAL, 0, 0.01);
  assert_init (&f, "bbox_head.retina_cls.weight", RN_INIT_NORMAL, 0, 0.01);
  assert_init (&f, "bbox_head.retina_cls.bias", RN_INIT_CONSTANT, -4.595119850134589, 0);
  assert_init (&f, "bbox_head.retina_reg.bias", RN_INIT_CONSTANT, 0, 0);
}

/* A batch norm that the pretrained weights lack must let its block work. */
static void
test_pretrained_init (void)
{
  g_auto (Fixture) f = { 0 };
  fixture_init (&f, NULL);
  g_autoptr (RnGraph) graph = fixture_graph (&f, RN_MODE_TRAIN, 1, 64, 64);
  assert_init (&f, "backbone.layer4.2.bn3.weight", RN_INIT_CONSTANT, 1, 0);

  const char *whole[] = { "model.backbone.init_cfg=null",
                          "+model.init_cfg={type: Pretrained, checkpoint: a.pth}", NULL };
  g_auto (Fixture) other = { 0 };
  fixture_init (&other, whole);
  g_assert_cmpstr (rn_model_pretrained (other.model), ==, "a.pth");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/models/retinanet/backbone-counts", test_backbone_counts);
  g_test_add_func ("/models/retinanet/counts", test_counts);
  g_test_add_func ("/models/retinanet/names", test_names);
  g_test_add_func ("/models/retinanet/frozen", test_frozen);
  g_test_add_func ("/models/retinanet/sizes", test_sizes);
  g_test_add_func ("/models/retinanet/operations", test_operations);
  g_test_add_func ("/models/retinanet/marks", test_marks);
  g_test_add_func ("/models/retinanet/losses", test_losses);
  g_test_add_func ("/models/retinanet/selection", test_selection);
  g_test_add_func ("/models/retinanet/init", test_init);
  g_test_add_func ("/models/retinanet/pretrained-init", test_pretrained_init);
  return g_test_run ();
}
