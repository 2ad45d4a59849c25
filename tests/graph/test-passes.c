/* test-passes.c: what each pass does to small networks, by counting ops, and what rn_graph_check finds. */
#include "config.h"

#include "tests/graph/pass-fixture.h"

#include <string.h>

/* ---- forward ---- */

static void
test_fold_and_fuse (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 }, TRUE);
  /* stem, pool, two and three convolutions, head, loss */
  g_assert_cmpint (f.graph->turn, ==, 9);
  g_assert_cmpint (fixture_count (&f, RN_OP_CONV2D_FWD), ==, 7);
  g_assert_cmpint (fixture_count (&f, RN_OP_BATCH_NORM_FWD), ==, 0);
  g_assert_cmpint (fixture_count (&f, RN_OP_RELU_FWD), ==, 0);

  /* The add went into the later one of its writers, the projection, whose residual is the other branch. */
  const RnGraphOp *down = rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_FWD, "layer1.1.conv_down"));
  const RnGraphOp *second = rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_FWD, "layer1.1.conv2"));
  g_assert_cmpint (down->in[RN_CONV_RESIDUAL], ==, second->out[RN_CONV_DST]);
  g_assert_true (down->args.conv.relu);
  g_assert_false (second->args.conv.relu);
  g_assert_cmpint (second->in[RN_CONV_GAMMA], !=, RN_NO_VALUE);
  g_assert_cmpfloat_with_epsilon (second->args.conv.eps, 1e-5, 1e-12);
  g_assert_cmpint (down->block, ==, 1);
}

static void
test_unfolded (void)
{
  for (int training = 0; training < 2; training++)
    {
      g_auto (Fixture) f =
          fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ .bn_training = training }, training);
      g_assert_cmpint (fixture_count (&f, RN_OP_BATCH_NORM_FWD), ==, 6);
      g_assert_cmpint (fixture_count (&f, RN_OP_BATCH_NORM_BWD), ==, 6);
      g_assert_cmpint (fixture_count (&f, RN_OP_RELU_FWD), ==, 0);
      /* The adds have no convolution in front of them, but take the ReLU behind them. */
      const RnGraphOp *add = rn_graph_op (f.graph, fixture_find (&f, RN_OP_ADD, "layer1.0.add"));
      g_assert_true (add->args.add.relu);
      const RnGraphOp *norm = rn_graph_op (f.graph, fixture_find (&f, RN_OP_BATCH_NORM_FWD, "stem.bn1"));
      g_assert_true (norm->args.norm.relu);
      g_assert_cmpint (norm->args.norm.training, ==, training);
      g_assert_cmpint (norm->out[RN_NORM_RUNNING_VAR] != RN_NO_VALUE, ==, training);
    }
}

/* What is asked for by name has an effect, or is a fault. */
static void
test_must_fold (void)
{
  const RnPassOptions options = { .fold_frozen_bn = TRUE, .must_fold = TRUE, .cblk = 1 };

  for (int bn_training = 0; bn_training <= 1; bn_training++)
    for (int is_loss = 0; is_loss <= 1; is_loss++)
      {
        g_autoptr (GError) error = NULL;
        g_autoptr (RnParamSet) params = rn_param_set_new ();
        g_autoptr (RnGraph) graph = rn_graph_new (is_loss ? RN_MODE_LOSS : RN_MODE_TRAIN, params);
        gboolean has_effect = !bn_training || is_loss;

        net_residual (graph, &(NetOptions){ .bn_training = bn_training });
        g_assert_cmpint (rn_passes_run (graph, &options, NULL, NULL, &error), ==, has_effect);
        if (has_effect)
          g_assert_no_error (error);
        else
          {
            g_assert_error (error, RN_PASS_ERROR, RN_OPTION_FOLD);
            g_assert_nonnull (strstr (error->message, "what works: auto"));
          }
      }
}

/* Without gradients every batch norm is on running statistics, so all of them fold whatever the options say.
 */
static void
test_loss_mode (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_LOSS, net_residual, (NetOptions){ .bn_training = TRUE }, FALSE);
  g_assert_cmpint (fixture_count (&f, RN_OP_BATCH_NORM_FWD), ==, 0);
  g_assert_cmpint ((int) f.graph->ops->len, ==, 9);
  g_assert_cmpint (f.graph->turn, ==, 9);
  for (RnValueId v = 0; v < (int) f.graph->values->len; v++)
    {
      g_assert_cmpint (rn_graph_value (f.graph, v)->kind, !=, RN_VALUE_GRADIENT);
      g_assert_false (rn_graph_value (f.graph, v)->requires_grad);
    }
  const RnGraphOp *pool = rn_graph_op (f.graph, fixture_find (&f, RN_OP_MAX_POOL_FWD, "stem.max_pool_fwd"));
  g_assert_cmpint (pool->out[RN_POOL_INDEX], ==, RN_NO_VALUE);
}

/* A tensor with another reader, or one that the host reads, must stay. */
static void
test_fuse_keeps_what_is_read (void)
{
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_INFER, params);
  RnValueId x = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, 1, 4, 5, 5, 1));
  RnValueId a = rn_conv2d (graph, x, &(RnConv2d){ .name = "a", .out_channels = 4, .kernel = 1 });
  RnValueId r = rn_relu (graph, a);
  RnValueId sum = rn_add (graph, a, r); /* a second reader of a; its later writer is the ReLU */
  RnValueId b = rn_conv2d (graph, sum, &(RnConv2d){ .name = "b", .out_channels = 4, .kernel = 1 });
  rn_graph_mark_output (graph, b);
  RnValueId y = rn_relu (graph, b);
  RnValueId c = rn_conv2d (graph, y, &(RnConv2d){ .name = "c", .out_channels = 4, .kernel = 1 });
  rn_graph_mark_output (graph, rn_add (graph, c, c)); /* both operands are the same tensor */
  int before = (int) graph->ops->len;
  rn_pass_fuse (graph);
  g_autofree char *fault = rn_graph_check (graph);
  g_assert_null (fault);
  g_assert_cmpint ((int) graph->ops->len, ==, before);
}

/* ---- backward ---- */

static void
test_gradient (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 }, TRUE);
  g_assert_cmpint (fixture_count (&f, RN_OP_CONV2D_BWD_WEIGHTS), ==, 7);
  g_assert_cmpint (fixture_count (&f, RN_OP_CONV2D_BWD_DATA), ==, 6); /* none for the image */
  g_assert_cmpint (fixture_count (&f, RN_OP_RELU_BWD), ==, 5);
  g_assert_cmpint (fixture_count (&f, RN_OP_MAX_POOL_BWD), ==, 1);
  /* Two values have two readers: the first block's input, a pooled map, and its output, whose ReLU mask takes
   * the sum. */
  g_assert_cmpint (fixture_count (&f, RN_OP_ADD), ==, 1);
  const RnGraphOp *mask = rn_graph_op (f.graph, fixture_find (&f, RN_OP_RELU_BWD, "layer1.0.conv2"));
  g_assert_cmpint (mask->in[RN_RELU_BWD_B], !=, RN_NO_VALUE);

  /* The weights' gradient comes before that of the input. */
  g_assert_cmpint (fixture_find (&f, RN_OP_CONV2D_BWD_WEIGHTS, "head"), <,
                   fixture_find (&f, RN_OP_CONV2D_BWD_DATA, "head"));
  const RnGraphOp *weights = rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_BWD_WEIGHTS, "head"));
  g_assert_cmpint (weights->out[RN_CONV_BW_DIFF_BIAS], !=, RN_NO_VALUE);
  g_assert_cmpint (weights->in[RN_CONV_BW_WEIGHTS], ==, RN_NO_VALUE);
  g_assert_false (
      rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_BWD_DATA, "layer1.0.conv2"))->args.conv.relu);
}

static void
test_frozen_prefix (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ .frozen_stem = TRUE }, TRUE);
  for (int i = f.graph->turn; i < (int) f.graph->ops->len; i++)
    {
      const char *scope = rn_graph_op (f.graph, i)->scope;
      g_assert_false (g_str_has_prefix (scope, "stem") || g_str_has_prefix (scope, "layer1.0"));
    }
  g_assert_cmpint (fixture_count (&f, RN_OP_CONV2D_BWD_WEIGHTS), ==, 4);
  g_assert_cmpint (fixture_count (&f, RN_OP_CONV2D_BWD_DATA), ==,
                   2); /* head, and the second convolution of the block */
  g_assert_cmpint (fixture_count (&f, RN_OP_RELU_BWD), ==, 2);
  g_assert_cmpint (fixture_count (&f, RN_OP_ADD) + fixture_count (&f, RN_OP_MAX_POOL_BWD), ==, 0);
}

/* With nothing to learn nothing is left of the backward part, not even the losses' gradients. */
static void
test_all_frozen (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_forward (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 });
  for (int i = 0; i < rn_param_set_size (f.params); i++)
    rn_param_set_edit (f.params, i)->trainable = FALSE;
  rn_passes_run (f.graph, &(RnPassOptions){ .cblk = 1 }, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint ((int) f.graph->ops->len, ==, f.graph->turn);
  g_assert_cmpint (
      rn_graph_op (f.graph, fixture_find (&f, RN_OP_FOCAL_LOSS, "loss_cls.0"))->out[RN_LOSS_DIFF], ==,
      RN_NO_VALUE);
}

/* Groups ascending, then the trunk; so the shared parameters are summed from level 0 on. */
static void
test_order_of_groups (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 }, TRUE);
  int last = 0;
  for (int i = f.graph->turn; i < (int) f.graph->ops->len; i++)
    {
      int group = rn_graph_op (f.graph, i)->group;
      if (last < 0)
        g_assert_cmpint (group, ==, -1);
      else if (group >= 0)
        g_assert_cmpint (group, >=, last);
      last = group;
    }
  g_assert_cmpint (last, ==, -1);

  int writes = 0;
  RnValueId shared = RN_NO_VALUE;
  for (int i = f.graph->turn; i < (int) f.graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (f.graph, i);
      if (op->op != RN_OP_CONV2D_BWD_WEIGHTS || !g_str_equal (op->scope, "cls"))
        continue;
      g_assert_cmpint (op->group, ==, 2 * writes++);
      if (shared != RN_NO_VALUE)
        g_assert_cmpint (op->out[RN_CONV_BW_DIFF_WEIGHTS], ==, shared);
      shared = op->out[RN_CONV_BW_DIFF_WEIGHTS];
    }
  g_assert_cmpint (writes, ==, 4);
}

static void
test_upsample_gradient (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 }, TRUE);
  g_assert_cmpint (fixture_count (&f, RN_OP_UPSAMPLE_BWD), ==, 2);
  for (int i = f.graph->turn; i < (int) f.graph->ops->len; i++)
    if (rn_graph_op (f.graph, i)->op == RN_OP_UPSAMPLE_BWD)
      g_assert_cmpint (rn_graph_op (f.graph, i)->in[RN_UPSAMPLE_ADDEND], !=, RN_NO_VALUE);
}

/* A finished gradient is written by somebody and has the shape of its value. */
static void
test_gradient_values (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 }, TRUE);
  g_autofree int *writers = rn_graph_find_writers (f.graph);
  int n_params = 0;
  for (RnValueId v = 0; v < (int) f.graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (f.graph, v);
      if (value->gradient == RN_NO_VALUE)
        continue;
      g_assert_true (value->requires_grad);
      g_assert_true (rn_desc_equal (&rn_graph_value (f.graph, value->gradient)->desc, &value->desc));
      g_assert_cmpint (writers[value->gradient], >=, 0);
      n_params += value->kind == RN_VALUE_PARAM;
    }
  g_assert_cmpint (n_params, ==, rn_param_set_n_weights (f.params));
}

/* A group whose tensor another group reads would be differentiated before all its gradients are there. */
static void
test_crossing_groups (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_TRAIN, params);
  const RnFocalArgs args = {
    .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = 1, .anchors_per_cell = 1
  };
  RnValueId x = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, 1, 1, 2, 2, 1));
  RnValueId labels = rn_graph_input (graph, "labels", (RnTensorDesc){ RN_I16, 2, { 1, 4, 1, 1 }, 1 });
  RnValueId one = rn_graph_input (graph, "one", rn_desc_vector (RN_F32, 1));
  graph->group = 0;
  x = rn_conv2d (graph, x, &(RnConv2d){ .name = "a", .out_channels = 1, .kernel = 1 });
  rn_focal_loss (graph, x, labels, one, one, &args);
  graph->group = 1;
  x = rn_conv2d (graph, x, &(RnConv2d){ .name = "b", .out_channels = 1, .kernel = 1 });
  rn_focal_loss (graph, x, labels, one, one, &args);
  g_assert_false (rn_passes_run (graph, &(RnPassOptions){ .cblk = 1 }, NULL, NULL, &error));
  g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "another group"));
}

/* ---- all together ---- */

static void
test_layout (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_forward (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 });
  rn_passes_run (f.graph, &(RnPassOptions){ .fold_frozen_bn = TRUE, .cblk = 8 }, NULL, NULL, &error);
  g_assert_no_error (error);
  for (RnValueId v = 0; v < (int) f.graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (f.graph, v);
      gboolean is_map =
          value->desc.rank == 4 && (value->kind == RN_VALUE_ACTIVATION || value->kind == RN_VALUE_GRADIENT);
      g_assert_cmpint ((int) value->desc.cblk, ==, is_map ? 8 : 1);
    }
}

/* The image stays as convolutions read it: three channels, in the type that they want. */
static void
test_normalize (void)
{
  static const RnAmpLevel levels[] = { RN_AMP_O0, RN_AMP_O1 };

  for (gsize k = 0; k < G_N_ELEMENTS (levels); k++)
    {
      g_autoptr (GError) error = NULL;
      g_auto (Fixture) f = fixture_forward (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 });
      const RnPassOptions options = { .cblk = 8,
                                      .normalize = TRUE,
                                      .amp = { .level = levels[k], .dtype = RN_BF16 } };
      rn_passes_run (f.graph, &options, NULL, NULL, &error);
      g_assert_no_error (error);
      const RnGraphOp *op = rn_graph_op (f.graph, 0);
      const RnValue *image = rn_graph_value (f.graph, rn_graph_find_value (f.graph, "image"));
      g_assert_cmpint (op->op, ==, RN_OP_NORMALIZE);
      g_assert_cmpint (op->out[0], ==, rn_graph_find_value (f.graph, "image"));
      g_assert_cmpint (image->kind, ==, RN_VALUE_ACTIVATION);
      g_assert_cmpint ((int) image->desc.cblk, ==, 1);
      g_assert_cmpint (image->desc.dtype, ==, k == 0 ? RN_F32 : RN_BF16);
      g_assert_false (image->requires_grad);
      for (int s = 0; s < RN_NORMALIZE_IN_COUNT; s++)
        g_assert_cmpint (rn_graph_value (f.graph, op->in[s])->kind, ==, RN_VALUE_INPUT);
    }
}

/* A graph without an image is a fault, not a crash. */
static void
test_normalize_without_image (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_INFER, params);
  RnValueId x = rn_graph_input (graph, "sound", rn_desc_nchw (RN_F32, 1, 3, 5, 5, 1));
  rn_graph_mark_output (graph, rn_relu (graph, x));

  g_assert_false (
      rn_passes_run (graph, &(RnPassOptions){ .cblk = 1, .normalize = TRUE }, NULL, NULL, &error));
  g_assert_nonnull (strstr (error->message, "no op reads an input \"image\""));
}

static void
note_pass (const char *pass, const RnGraph *graph, gpointer names)
{
  g_string_append_printf (names, "%s ", pass);
}

static void
test_trace (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_forward (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 });
  GString *names = g_string_new (NULL);
  const RnPassOptions options = { .fold_frozen_bn = TRUE, .normalize = TRUE, .cblk = 1 };
  rn_passes_run (f.graph, &options, note_pass, names, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (names->str, ==, "freeze fold_bn fuse gradient fuse_backward normalize layout ");
  g_string_free (names, TRUE);
}

static void
test_print (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 }, TRUE);
  g_autofree char *text = rn_graph_print (f.graph);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), ==, f.graph->ops->len + 2); /* the turn, and the end */
  g_assert_cmpstr (lines[f.graph->turn], ==, "---- backward");
  g_assert_nonnull (strstr (lines[0], "backbone.conv0"));
  g_assert_nonnull (strstr (text, "group 7"));
}

/* ---- planted faults ---- */

static void
read_before_write (Fixture *f)
{
  gpointer first = f->graph->ops->pdata[0];
  f->graph->ops->pdata[0] = f->graph->ops->pdata[1];
  f->graph->ops->pdata[1] = first;
}

static void
write_twice (Fixture *f)
{
  rn_graph_op (f->graph, 2)->out[0] = rn_graph_op (f->graph, 1)->out[0];
}

static void
lose_a_slot (Fixture *f)
{
  rn_graph_op (f->graph, 0)->in[RN_CONV_WEIGHTS] = RN_NO_VALUE;
}

static void
use_a_slot_too_many (Fixture *f)
{
  rn_graph_op (f->graph, fixture_find (f, RN_OP_MAX_POOL_FWD, "stem.max_pool_fwd"))->in[1] = 0;
}

static void
name_a_value_too_many (Fixture *f)
{
  rn_graph_op (f->graph, 0)->in[RN_CONV_SRC] = (int) f->graph->values->len;
}

static void
write_a_parameter (Fixture *f)
{
  rn_graph_op (f->graph, 0)->out[0] = rn_graph_op (f->graph, 0)->in[RN_CONV_WEIGHTS];
}

static void
accumulate_into_an_activation (Fixture *f)
{
  RnGraphOp *op = rn_graph_op (f->graph, fixture_find (f, RN_OP_CONV2D_BWD_WEIGHTS, "head"));
  RnTensorDesc desc = rn_graph_value (f->graph, op->out[0])->desc;
  op->out[0] = rn_graph_add_value (f->graph, "x", desc, RN_VALUE_GRADIENT, -1);
}

static void
change_a_shape (Fixture *f)
{
  rn_graph_value (f->graph, rn_graph_op (f->graph, 0)->out[0])->desc.dims[2]++;
}

static void
change_a_parameter (Fixture *f)
{
  rn_graph_value (f->graph, rn_graph_op (f->graph, 0)->in[RN_CONV_WEIGHTS])->param = 9999;
}

static void
lose_an_output (Fixture *f)
{
  rn_graph_drop_op (f->graph, fixture_find (f, RN_OP_FOCAL_LOSS, "loss_cls.0"));
  rn_graph_sweep (f->graph);
  for (int i = (int) f->graph->ops->len; i > f->graph->turn;) /* with all that needs it */
    rn_graph_drop_op (f->graph, --i);
  rn_graph_sweep (f->graph);
}

static void
name_an_unknown_op (Fixture *f)
{
  rn_graph_drop_op (f->graph, 3); /* and no sweep */
}

static void
move_the_turn (Fixture *f)
{
  f->graph->turn = 9999;
}

typedef struct
{
  const char *name;
  void (*plant) (Fixture *f);
  const char *message; /* a part of it */
} Fault;

static const Fault faults[] = {
  { "read-before-write", read_before_write, "not written yet" },
  { "two-writers", write_twice, "has a writer already" },
  { "missing-slot", lose_a_slot, "a required input is absent" },
  { "unknown-slot", use_a_slot_too_many, "no such value or slot" },
  { "unknown-value", name_a_value_too_many, "no such value or slot" },
  { "parameter-as-result", write_a_parameter, "must not be of the parameters" },
  { "accumulation-elsewhere", accumulate_into_an_activation, "which is not written yet" },
  { "wrong-shape", change_a_shape, "output size" },
  { "unknown-parameter", change_a_parameter, "no such parameter" },
  { "unwritten-output", lose_an_output, "written by no op" },
  { "unknown-op", name_an_unknown_op, "no such op" },
  { "turn", move_the_turn, "the turn is at" },
};

static void
test_planted_fault (gconstpointer data)
{
  const Fault *fault = data;
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 }, TRUE);
  g_autofree char *sound = rn_graph_check (f.graph);
  g_assert_null (sound);
  fault->plant (&f);
  g_autofree char *found = rn_graph_check (f.graph);
  g_assert_nonnull (found);
  g_test_message ("%s", found);
  g_assert_nonnull (strstr (found, fault->message));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/passes/fold-and-fuse", test_fold_and_fuse);
  g_test_add_func ("/graph/passes/unfolded", test_unfolded);
  g_test_add_func ("/graph/passes/must-fold", test_must_fold);
  g_test_add_func ("/graph/passes/loss-mode", test_loss_mode);
  g_test_add_func ("/graph/passes/fuse-keeps-what-is-read", test_fuse_keeps_what_is_read);
  g_test_add_func ("/graph/passes/gradient", test_gradient);
  g_test_add_func ("/graph/passes/frozen-prefix", test_frozen_prefix);
  g_test_add_func ("/graph/passes/all-frozen", test_all_frozen);
  g_test_add_func ("/graph/passes/order-of-groups", test_order_of_groups);
  g_test_add_func ("/graph/passes/upsample-gradient", test_upsample_gradient);
  g_test_add_func ("/graph/passes/gradient-values", test_gradient_values);
  g_test_add_func ("/graph/passes/crossing-groups", test_crossing_groups);
  g_test_add_func ("/graph/passes/layout", test_layout);
  g_test_add_func ("/graph/passes/trace", test_trace);
  g_test_add_func ("/graph/passes/normalize", test_normalize);
  g_test_add_func ("/graph/passes/normalize-without-image", test_normalize_without_image);
  g_test_add_func ("/graph/passes/print", test_print);
  for (guint i = 0; i < G_N_ELEMENTS (faults); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/check/", faults[i].name, NULL);
      g_test_add_data_func (path, &faults[i], test_planted_fault);
    }
  return g_test_run ();
}
