/* test-build.c: shapes, names and faults of the functions that write a forward graph. */
#include "config.h"

#include "runner/base/error.h"
#include "tests/graph/nets.h"

#include <string.h>

typedef struct
{
  RnParamSet *params;
  RnGraph *graph;
  RnValueId image; /* 2x3x11x8 */
} Fixture;

static Fixture
fixture_new (RnMode mode)
{
  Fixture f = { .params = rn_param_set_new () };
  f.graph = rn_graph_new (mode, f.params);
  f.image = rn_graph_input (f.graph, "image", rn_desc_nchw (RN_F32, 2, 3, 11, 8, 1));
  return f;
}

static void
fixture_clear (Fixture *f)
{
  rn_graph_free (f->graph);
  rn_param_set_free (f->params);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static void
assert_map (const Fixture *f, RnValueId v, int64_t channels, int64_t h, int64_t w)
{
  g_assert_cmpint (v, !=, RN_NO_VALUE);
  RnTensorDesc expected = rn_desc_nchw (RN_F32, 2, channels, h, w, 1);
  g_assert_true (rn_desc_equal (&rn_graph_value (f->graph, v)->desc, &expected));
}

/* Output sizes as PyTorch's documentation of Conv2d and the pools gives them. */
static void
test_shapes (void)
{
  g_auto (Fixture) f = fixture_new (RN_MODE_INFER);
  RnGraph *g = f.graph;
  RnValueId x = rn_conv2d (g, f.image,
                           &(RnConv2d){ .name = "a", .out_channels = 6, .kernel = 7, .stride = 2, .pad = 3 });
  assert_map (&f, x, 6, 6, 4);
  assert_map (
      &f,
      rn_conv2d (
          g, x,
          &(RnConv2d){ .name = "b", .out_channels = 4, .kernel = 3, .pad = 2, .dilation = 2, .groups = 2 }),
      4, 6, 4);
  assert_map (&f, rn_max_pool2d (g, x, 3, 2, 1), 6, 3, 2);
  RnValueId coarse = rn_avg_pool2d (g, f.image, 2, 2, TRUE);
  assert_map (&f, coarse, 3, 6, 4);
  assert_map (&f, rn_avg_pool2d (g, f.image, 2, 2, FALSE), 3, 5, 4);
  assert_map (&f, rn_upsample_add (g, coarse, f.image), 3, 11, 8);
  assert_map (&f, rn_relu (g, rn_add (g, x, x)), 6, 6, 4);
  assert_map (&f, rn_batch_norm (g, x, &(RnBatchNorm){ .name = "bn", .eps = 1e-5 }), 6, 6, 4);
  g_autofree char *fault = rn_graph_check (g);
  g_assert_null (fault);
  g_assert_cmpint (g->turn, ==, (int) g->ops->len);

  const RnParam *grouped = rn_param_set_get (f.params, rn_param_set_find (f.params, "b.weight"));
  RnTensorDesc expected = { RN_F32, 4, { 4, 3, 3, 3 }, 1 };
  g_assert_true (rn_desc_equal (&grouped->desc, &expected));
}

static void
test_names (void)
{
  g_auto (Fixture) f = fixture_new (RN_MODE_TRAIN);
  RnGraph *g = f.graph;
  rn_graph_push_scope (g, "backbone");
  rn_graph_push_scope (g, "layer%d.%d", 1, 0);
  RnValueId x =
      rn_conv2d (g, f.image, &(RnConv2d){ .name = "conv1", .out_channels = 4, .kernel = 1, .bias = TRUE });
  g_assert_cmpstr (rn_graph_value (g, x)->name, ==, "backbone.layer1.0.conv1");
  rn_graph_pop_scope (g);
  x = rn_batch_norm (
      g, x,
      &(RnBatchNorm){ .name = "bn1", .eps = 1e-5, .momentum = 0.1, .training = TRUE, .weight_init = 0.5 });
  g_assert_cmpstr (rn_graph_op (g, 1)->scope, ==, "backbone.bn1");
  rn_graph_pop_scope (g);
  rn_relu (g, x);
  g_assert_cmpstr (rn_graph_op (g, 2)->scope, ==, "relu_fwd");
  g_assert_cmpint (rn_graph_find_value (g, "backbone.bn1"), ==, x);
  g_assert_cmpint (rn_graph_find_value (g, "nothing"), ==, RN_NO_VALUE);

  static const struct
  {
    const char *name;
    RnParamKind kind;
    gboolean trainable, is_norm, is_bias;
    double init;
  } expected[] = {
    { "backbone.layer1.0.conv1.weight", RN_PARAM_WEIGHT, TRUE, FALSE, FALSE, 0 },
    { "backbone.layer1.0.conv1.bias", RN_PARAM_WEIGHT, TRUE, FALSE, TRUE, 0 },
    { "backbone.bn1.weight", RN_PARAM_WEIGHT, TRUE, TRUE, FALSE, 0.5 },
    { "backbone.bn1.bias", RN_PARAM_WEIGHT, TRUE, TRUE, TRUE, 0 },
    { "backbone.bn1.running_mean", RN_PARAM_BUFFER, FALSE, FALSE, FALSE, 0 },
    { "backbone.bn1.running_var", RN_PARAM_BUFFER, FALSE, FALSE, FALSE, 1 },
  };
  g_assert_cmpint (rn_param_set_size (f.params), ==, (int) G_N_ELEMENTS (expected));
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      const RnParam *param = rn_param_set_get (f.params, (int) i);
      g_assert_cmpstr (param->name, ==, expected[i].name);
      g_assert_cmpint (param->kind, ==, expected[i].kind);
      g_assert_cmpint (param->trainable, ==, expected[i].trainable);
      g_assert_cmpint (param->is_norm, ==, expected[i].is_norm);
      g_assert_cmpint (param->is_bias, ==, expected[i].is_bias);
      g_assert_cmpfloat (param->init.a, ==, expected[i].init);
    }
  g_assert_cmpint (rn_param_set_n_weights (f.params), ==, 4);
  g_assert_cmpint (rn_param_set_n_elements (f.params, FALSE), ==, 4 * 3 + 4 + 4 + 4);
}

/* The head is called once per level; a second graph uses the same parameters. */
static void
test_sharing (void)
{
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  for (int round = 0; round < 2; round++)
    {
      g_autoptr (RnGraph) graph = rn_graph_new (round == 0 ? RN_MODE_TRAIN : RN_MODE_LOSS, params);
      net_pyramid (graph, &(NetOptions){ 0 });
      g_autofree char *fault = rn_graph_check (graph);
      g_assert_null (fault);
      /* conv0 and bias; conv1, bn1; three laterals and four outputs with biases; four shared convolutions
       * with biases */
      g_assert_cmpint (rn_param_set_n_weights (params), ==, 2 + 1 + 2 + 7 * 2 + 4 * 2);
      g_assert_cmpint (rn_param_set_size (params), ==, 27 + 2);
      g_assert_cmpint (rn_param_set_n_elements (params, TRUE), ==,
                       (4 * 27 + 4) + 5 * 36 + 10 + (3 * 4 + 3) + 2 * (3 * 5 + 3) + 4 * (3 * 27 + 3)
                           + 2 * (3 * 27 + 3) + (4 * 27 + 4) + (8 * 27 + 8));
    }
}

/* ---- results ---- */

static void
test_topk (void)
{
  g_auto (Fixture) f = fixture_new (RN_MODE_INFER);
  RnGraph *g = f.graph;
  rn_graph_push_scope (g, "bbox_head");
  RnValueId cls = rn_conv2d (g, f.image, &(RnConv2d){ .name = "cls", .out_channels = 10, .kernel = 1 });
  RnValueId reg = rn_conv2d (g, f.image, &(RnConv2d){ .name = "reg", .out_channels = 8, .kernel = 1 });
  rn_topk (g, "level0", cls, reg, &(RnTopkArgs){ .k = 20, .num_classes = 5, .anchors_per_cell = 2 });
  rn_graph_pop_scope (g);
  static const struct
  {
    const char *name;
    RnTensorDesc desc;
  } expected[] = {
    { "level0.index", { RN_I32, 2, { 2, 20 }, 1 } },
    { "level0.logits", { RN_F32, 3, { 2, 20, 5 }, 1 } },
    { "level0.deltas", { RN_F32, 3, { 2, 20, 4 }, 1 } },
  };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    {
      const RnValue *value = rn_graph_value (g, rn_graph_find_value (g, expected[i].name));
      g_assert_true (value->is_output);
      g_assert_true (rn_desc_equal (&value->desc, &expected[i].desc));
    }
  g_autofree char *fault = rn_graph_check (g);
  g_assert_null (fault);
}

/* Losses write a gradient only where there is training. */
static void
test_losses (void)
{
  for (RnMode mode = RN_MODE_TRAIN; mode <= RN_MODE_LOSS; mode++)
    {
      g_autoptr (RnParamSet) params = rn_param_set_new ();
      g_autoptr (RnGraph) graph = rn_graph_new (mode, params);
      net_pyramid (graph, &(NetOptions){ 0 });
      int n = 0;
      for (guint i = 0; i < graph->ops->len; i++)
        {
          const RnGraphOp *op = rn_graph_op (graph, (int) i);
          if (op->op != RN_OP_FOCAL_LOSS && op->op != RN_OP_BOX_LOSS)
            continue;
          g_assert_cmpint (op->out[RN_LOSS_DIFF] != RN_NO_VALUE, ==, mode == RN_MODE_TRAIN);
          g_assert_cmpint (op->group, ==, n++);
        }
      g_assert_cmpint (n, ==, 8);
      g_assert_cmpint (rn_graph_find_value (graph, "loss_bbox.3"), !=, RN_NO_VALUE);
    }
}

/* ---- faults ---- */

static void
kernel_too_large (Fixture *f)
{
  rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "a", .out_channels = 1, .kernel = 9 });
}

static void
groups_that_do_not_divide (Fixture *f)
{
  rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "a", .out_channels = 4, .kernel = 1, .groups = 2 });
}

static void
huge_channels (Fixture *f)
{
  rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "a", .out_channels = G_MAXINT64 / 2, .kernel = 1 });
}

static void
add_different_shapes (Fixture *f)
{
  rn_add (f->graph, rn_max_pool2d (f->graph, f->image, 2, 2, 0), f->image);
}

static void
pool_too_large (Fixture *f)
{
  rn_avg_pool2d (f->graph, f->image, 12, 1, FALSE);
}

static void
upsample_other_channels (Fixture *f)
{
  rn_upsample_add (f->graph,
                   rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "b", .out_channels = 4, .kernel = 1 }),
                   f->image);
}

static void
not_a_map (Fixture *f)
{
  rn_relu (f->graph, rn_graph_input (f->graph, "vector", rn_desc_vector (RN_F32, 3)));
}

static void
missing_input (Fixture *f)
{
  rn_relu (f->graph, rn_graph_find_value (f->graph, "nothing"));
}

static void
too_many_rows (Fixture *f)
{
  RnValueId x = rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "a", .out_channels = 4, .kernel = 1 });
  rn_topk (f->graph, "level0", x, x, &(RnTopkArgs){ .k = 89, .num_classes = 4, .anchors_per_cell = 1 });
}

static void
parameter_of_another_shape (Fixture *f)
{
  RnValueId x = rn_conv2d (f->graph, f->image, &(RnConv2d){ .name = "a", .out_channels = 4, .kernel = 1 });
  rn_conv2d (f->graph, x, &(RnConv2d){ .name = "a", .out_channels = 4, .kernel = 1 });
}

static void
labels_too_short (Fixture *f)
{
  RnValueId labels = rn_graph_input (f->graph, "labels", (RnTensorDesc){ RN_I16, 2, { 2, 87 }, 1 });
  RnValueId one = rn_graph_input (f->graph, "one", rn_desc_vector (RN_F32, 1));
  rn_focal_loss (
      f->graph, f->image, labels, one, one,
      &(RnFocalArgs){ .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = 3, .anchors_per_cell = 1 });
}

typedef struct
{
  const char *name;
  void (*write) (Fixture *f);
  const char *message; /* a part of it */
} Fault;

static const Fault faults[] = {
  { "kernel", kernel_too_large,
    "head.a: a kernel of 9 (stride 1, padding 0, dilation 1) does not fit a map of 11x8" },
  { "groups", groups_that_do_not_divide, "head.a: 2 groups do not divide 3 and 4 channels" },
  { "size", huge_channels, "1 TiB or more" },
  { "add", add_different_shapes, "head.add" },
  { "pool", pool_too_large, "a window of 12" },
  { "upsample", upsample_other_channels, "head.upsample_fwd" },
  { "rank", not_a_map, "no feature map" },
  { "missing", missing_input, "no feature map" },
  { "topk", too_many_rows, "k must be in" },
  { "parameter", parameter_of_another_shape, "head.a.weight: used before with another shape" },
  { "labels", labels_too_short, "the level lies outside of the labels" },
};

/* The first fault is the one that is told; what follows from it is silent. */
static void
test_fault (gconstpointer data)
{
  const Fault *fault = data;
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_new (RN_MODE_TRAIN);
  rn_graph_push_scope (f.graph, "head");
  fault->write (&f);
  kernel_too_large (&f);
  rn_graph_pop_scope (f.graph);
  g_assert_false (rn_graph_finish_forward (f.graph, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, fault->message));
  g_autofree char *found = rn_graph_check (f.graph);
  g_assert_cmpstr (found, ==, error->message);
}

/* ---- tools of passes ---- */

static void
test_insert_and_sweep (void)
{
  g_auto (Fixture) f = fixture_new (RN_MODE_TRAIN);
  rn_relu (f.graph, rn_relu (f.graph, f.image));
  rn_graph_append_op (f.graph, RN_OP_RELU_BWD, "behind");
  g_assert_cmpint (f.graph->turn, ==, 2);
  RnGraphOp *op = rn_graph_insert_op (f.graph, 1, RN_OP_REORDER, "between");
  g_assert_cmpint (f.graph->turn, ==, 3);
  g_assert_true (rn_graph_op (f.graph, 1) == op);
  g_assert_cmpint (op->in[0], ==, RN_NO_VALUE);
  g_assert_cmpint (op->out[0], ==, RN_NO_VALUE);

  rn_graph_drop_op (f.graph, 0);
  rn_graph_drop_op (f.graph, 3);
  rn_graph_sweep (f.graph);
  g_assert_cmpint (f.graph->turn, ==, 2);
  g_assert_cmpuint (f.graph->ops->len, ==, 2);
  g_assert_true (rn_graph_op (f.graph, 0) == op);
  g_assert_cmpint (rn_graph_op (f.graph, 1)->op, ==, RN_OP_RELU_FWD);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/build/shapes", test_shapes);
  g_test_add_func ("/graph/build/names", test_names);
  g_test_add_func ("/graph/build/sharing", test_sharing);
  g_test_add_func ("/graph/build/topk", test_topk);
  g_test_add_func ("/graph/build/losses", test_losses);
  g_test_add_func ("/graph/build/insert-and-sweep", test_insert_and_sweep);
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/build/fault/", faults[i].name, NULL);
      g_test_add_data_func (path, &faults[i], test_fault);
    }
  return g_test_run ();
}
