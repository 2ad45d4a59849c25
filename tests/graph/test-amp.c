/*
 * test-amp.c: which values the pass amp makes half, where it casts, and what the step then computes: bit for
 * bit that of a step in single precision whose values are rounded where the pass says so.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/graph/interpreter.h"
#include "tests/graph/planned-step.h"

#include <math.h>
#include <string.h>

/* ---- types and casts ---- */

typedef struct
{
  RnParamSet *params;
  RnGraph *graph;
} Fixture;

static void
fixture_clear (Fixture *f)
{
  rn_graph_free (f->graph);
  rn_param_set_free (f->params);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static Fixture
run_passes (RnMode mode, PlannedNet net, NetOptions net_options, RnAmpOptions amp)
{
  g_autoptr (GError) error = NULL;
  const RnPassOptions passes = { .fold_frozen_bn = TRUE, .cblk = 1, .amp = amp };
  Fixture f = { .params = rn_param_set_new () };

  f.graph = rn_graph_new (mode, f.params);
  net (f.graph, &net_options);
  rn_graph_finish_forward (f.graph, &error);
  g_assert_no_error (error);
  rn_passes_run (f.graph, &passes, NULL, NULL, &error);
  g_assert_no_error (error);
  return f;
}

static int
count_casts (const RnGraph *graph, int first, int end)
{
  int n = 0;
  for (int i = first; i < end; i++)
    n += rn_graph_op (graph, i)->op == RN_OP_REORDER;
  return n;
}

/* Casts of the forward and of the backward program. */
static void
assert_casts (const RnGraph *graph, int forward, int backward)
{
  g_assert_cmpint (count_casts (graph, 0, graph->turn), ==, forward);
  g_assert_cmpint (count_casts (graph, graph->turn, (int) graph->ops->len), ==, backward);
}

static RnDType
type_of (const RnGraph *graph, const char *name)
{
  RnValueId v = rn_graph_find_value (graph, name);
  g_assert_cmpint (v, !=, RN_NO_VALUE);
  return rn_graph_value (graph, v)->desc.dtype;
}

/* The result of the last op of a module. */
static RnDType
type_of_module (const RnGraph *graph, const char *module)
{
  RnValueId v = rn_graph_module_output (graph, module);
  g_assert_cmpint (v, !=, RN_NO_VALUE);
  return rn_graph_value (graph, v)->desc.dtype;
}

static const RnGraphOp *
find_op (const RnGraph *graph, RnOp op, const char *scope)
{
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *found = rn_graph_op (graph, i);
      if (found->op == op && g_str_equal (found->scope, scope))
        return found;
    }
  g_assert_not_reached ();
}

/* Gradients have the type of their value, parameters and their gradients stay as they are, and losses. */
static void
assert_types_agree (const RnGraph *graph)
{
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (graph, v);
      if (value->kind == RN_VALUE_PARAM || value->kind == RN_VALUE_PARAM_GRAD || value->is_output
          || (value->desc.rank == 1 && value->kind == RN_VALUE_ACTIVATION))
        g_assert_cmpint (value->desc.dtype, ==, RN_F32);
      if (value->gradient != RN_NO_VALUE)
        g_assert_cmpint (rn_graph_value (graph, value->gradient)->desc.dtype, ==, value->desc.dtype);
    }
}

static void
test_o1 (void)
{
  g_auto (Fixture) f = run_passes (RN_MODE_TRAIN, net_residual, (NetOptions){ .bn_training = TRUE },
                                   (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_BF16 });
  const RnGraphOp *head = find_op (f.graph, RN_OP_CONV2D_FWD, "head"),
                  *loss = find_op (f.graph, RN_OP_FOCAL_LOSS, "loss_cls.0");

  assert_casts (f.graph, 0, 0);
  assert_types_agree (f.graph);
  g_assert_cmpint (type_of (f.graph, "image"), ==, RN_BF16);
  g_assert_cmpint (type_of_module (f.graph, "stem"), ==, RN_BF16);
  g_assert_cmpint (type_of_module (f.graph, "layer1.0"), ==, RN_BF16);
  g_assert_cmpint (type_of_module (f.graph, "head"), ==, RN_F32);
  g_assert_cmpint (head->args.conv.compute, ==, RN_BF16);
  g_assert_cmpint (rn_graph_value (f.graph, loss->out[RN_LOSS_DIFF])->desc.dtype, ==, RN_F32);
  g_assert_cmpint (find_op (f.graph, RN_OP_CONV2D_BWD_WEIGHTS, "head")->args.conv.compute, ==, RN_BF16);
  g_assert_cmpint (find_op (f.graph, RN_OP_CONV2D_BWD_DATA, "layer1.0.conv2")->args.conv.compute, ==,
                   RN_BF16);
}

static void
test_o2 (void)
{
  g_auto (Fixture) f = run_passes (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 },
                                   (RnAmpOptions){ .level = RN_AMP_O2, .dtype = RN_F16 });
  const RnGraphOp *loss = find_op (f.graph, RN_OP_BOX_LOSS, "loss_bbox.2");

  assert_casts (f.graph, 0, 0);
  assert_types_agree (f.graph);
  g_assert_cmpint (type_of (f.graph, "cls"), ==, RN_F16);
  g_assert_cmpint (rn_graph_value (f.graph, loss->out[RN_LOSS_DIFF])->desc.dtype, ==, RN_F16);
  g_assert_cmpint (type_of_module (f.graph, "backbone"), ==, RN_F16);
}

/* One cast where the module begins, however many ops read it, one behind it, and the same ways back. */
static void
test_single_block (void)
{
  const char *const single[] = { "layer1.1", NULL };
  g_auto (Fixture) f =
      run_passes (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 },
                  (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16, .single_modules = single });

  assert_casts (f.graph, 2, 2);
  assert_types_agree (f.graph);
  g_assert_cmpint (type_of_module (f.graph, "layer1.0"), ==, RN_F16);
  g_assert_cmpint (type_of_module (f.graph, "layer1.1"), ==, RN_F32);
  g_assert_cmpint (find_op (f.graph, RN_OP_CONV2D_FWD, "layer1.1.conv_down")->args.conv.compute, ==, RN_F32);
  g_assert_cmpint (find_op (f.graph, RN_OP_CONV2D_FWD, "head")->args.conv.compute, ==, RN_F16);
}

/*
 * Levels that both branches of the head read: each is cast once, outside of the groups, or the gradient of
 * the first group would be closed when the second one contributes. Three maps come in and four levels go out.
 */
static void
test_single_neck (void)
{
  const char *const single[] = { "neck", NULL };
  g_auto (Fixture) f =
      run_passes (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 },
                  (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16, .single_modules = single });

  assert_casts (f.graph, 7, 7);
  assert_types_agree (f.graph);
  for (int i = 0; i < f.graph->turn; i++)
    if (rn_graph_op (f.graph, i)->op == RN_OP_REORDER)
      g_assert_cmpint (rn_graph_op (f.graph, i)->group, ==, -1);
  g_assert_cmpint (type_of_module (f.graph, "neck"), ==, RN_F32);
  g_assert_cmpint (type_of_module (f.graph, "cls_tower"), ==, RN_F16);
}

/* The image is single as soon as one of its readers is; nothing that is frozen gets a cast back. */
static void
test_single_stem (void)
{
  const char *const single[] = { "stem", NULL };
  g_auto (Fixture) f =
      run_passes (RN_MODE_TRAIN, net_residual, (NetOptions){ .frozen_stem = TRUE },
                  (RnAmpOptions){ .level = RN_AMP_O2, .dtype = RN_F16, .single_modules = single });

  assert_casts (f.graph, 1, 0);
  g_assert_cmpint (type_of (f.graph, "image"), ==, RN_F32);
  g_assert_cmpint (type_of_module (f.graph, "stem"), ==, RN_F32);
  g_assert_cmpint (type_of_module (f.graph, "layer1.0"), ==, RN_F16);
}

static void
test_half_module (void)
{
  const char *const half[] = { "cls", NULL };
  g_auto (Fixture) f =
      run_passes (RN_MODE_TRAIN, net_pyramid, (NetOptions){ 0 },
                  (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16, .half_modules = half });

  assert_casts (f.graph, 0, 0);
  assert_types_agree (f.graph);
  g_assert_cmpint (type_of (f.graph, "cls"), ==, RN_F16);
  g_assert_cmpint (type_of (f.graph, "reg"), ==, RN_F32);
}

static void
test_longest_name (void)
{
  const char *const single[] = { "layer1", NULL }, *const half[] = { "layer1.1", NULL };
  g_auto (Fixture) f = run_passes (
      RN_MODE_TRAIN, net_residual, (NetOptions){ 0 },
      (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16, .single_modules = single, .half_modules = half });

  g_assert_cmpint (type_of_module (f.graph, "layer1.0"), ==, RN_F32);
  g_assert_cmpint (type_of_module (f.graph, "layer1.1"), ==, RN_F16);
  g_assert_true (rn_scope_is_in ("layer1.0.conv1", "layer1") && rn_scope_is_in ("layer1", "layer1"));
  g_assert_false (rn_scope_is_in ("layer10.0", "layer1") || rn_scope_is_in ("layer", "layer1"));
}

/* Nothing is trained: the losses still read single precision, and the image is half. */
static void
test_loss_mode (void)
{
  g_auto (Fixture) f = run_passes (RN_MODE_LOSS, net_pyramid, (NetOptions){ 0 },
                                   (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16 });

  g_assert_cmpint (f.graph->turn, ==, f.graph->ops->len);
  g_assert_cmpint (type_of (f.graph, "image"), ==, RN_F16);
  g_assert_cmpint (type_of (f.graph, "cls"), ==, RN_F32);
}

static void
net_topk (RnGraph *graph, const NetOptions *options)
{
  RnConv2d conv = { .name = "cls", .out_channels = 4, .kernel = 1 };
  RnValueId image = rn_graph_input (graph, "image", rn_desc_nchw (RN_F32, 1, 3, 4, 4, 1));
  RnValueId logits = rn_conv2d (graph, image, &conv);

  conv.name = "reg";
  conv.out_channels = 8;
  const RnTopkArgs args = { .k = 3, .num_classes = 2, .anchors_per_cell = 2 };
  rn_topk (graph, "level0", logits, rn_conv2d (graph, image, &conv), &args);
}

/* A selection reads both predictions in one type. */
static void
test_topk (void)
{
  const char *const single[] = { "reg", NULL };
  RnAmpOptions amp = { .level = RN_AMP_O1, .dtype = RN_F16 };
  g_auto (Fixture) o1 = run_passes (RN_MODE_INFER, net_topk, (NetOptions){ 0 }, amp);
  amp.level = RN_AMP_O2;
  g_auto (Fixture) o2 = run_passes (RN_MODE_INFER, net_topk, (NetOptions){ 0 }, amp);
  amp.single_modules = single;
  g_auto (Fixture) mixed = run_passes (RN_MODE_INFER, net_topk, (NetOptions){ 0 }, amp);

  g_assert_cmpint (type_of (o1.graph, "cls"), ==, RN_F32);
  g_assert_cmpint (type_of (o2.graph, "cls"), ==, RN_F16);
  g_assert_cmpint (type_of (o2.graph, "level0.logits"), ==, RN_F32);
  g_assert_cmpint (type_of (mixed.graph, "cls"), ==, RN_F16);
  assert_casts (mixed.graph, 2, 0); /* the image for cls, and what cls gives */
  g_assert_cmpint (
      rn_graph_value (mixed.graph, find_op (mixed.graph, RN_OP_TOPK, "level0")->in[0])->desc.dtype, ==,
      RN_F32);
}

static void
test_print (void)
{
  g_auto (Fixture) f = run_passes (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 },
                                   (RnAmpOptions){ .level = RN_AMP_O1, .dtype = RN_F16 });
  g_autofree char *text = rn_graph_print (f.graph);

  g_assert_nonnull (strstr (text, "head: conv2d_fwd 2x8x4x3:f16 -> 2x4x4x3 k1"));
}

/* ---- what is computed ---- */

typedef struct
{
  const char *name;
  PlannedNet net;
  NetOptions net_options;
  RnDType dtype;
} Case;

static const Case cases[] = {
  { "residual/f16", net_residual, { .bn_training = FALSE }, RN_F16 },
  { "residual/bf16", net_residual, { .bn_training = TRUE }, RN_BF16 },
  { "pyramid/f16", net_pyramid, { .bn_training = TRUE }, RN_F16 },
  { "pyramid/bf16", net_pyramid, { .bn_training = FALSE, .frozen_stem = TRUE }, RN_BF16 },
};

static void
init_step (PlannedStep *step, RnDevice *device, const Case *c, RnAmpLevel level)
{
  const RnPassOptions passes = { .cblk = 1,
                                 .inplace = TRUE,
                                 .amp = { .level = level, .dtype = level == RN_AMP_O0 ? RN_F32 : c->dtype } };
  planned_step_init (step, device, c->net, &c->net_options, &passes, 0);
}

static void
run_step (PlannedStep *step)
{
  g_autoptr (GError) error = NULL;

  rn_param_set_zero_grads (step->params, &error);
  g_assert_no_error (error);
  planned_step_forward (step);
  planned_step_backward (step);
}

/* The same parameters, with the operands of multiplications rounded. */
static RnParamSet *
copy_params (RnGraph *graph, RnDevice *device, const RnParamSet *from, RnDType dtype)
{
  g_autoptr (GError) error = NULL;
  RnParamSet *params = graph->params;

  rn_param_set_allocate (params, device, TRUE, 0, &error);
  g_assert_no_error (error);
  rn_param_set_zero_grads (params, &error);
  g_assert_no_error (error);
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnTensorDesc *desc = &rn_param_set_get (params, i)->desc;
      float *values = rn_param_set_value (params, i);
      memcpy (values, rn_param_set_value (from, i), rn_desc_bytes (desc));
      if (desc->rank == 4)
        rn_floats_round (dtype, values, rn_desc_elements (desc));
    }
  return params;
}

static void
copy_inputs (const Interpreter *to, const PlannedStep *from)
{
  for (RnValueId v = 0; v < (int) to->graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (to->graph, v), *other = rn_graph_value (from->plan->graph, v);
      if (value->kind != RN_VALUE_INPUT)
        continue;
      const void *src = rn_executor_address (from->executor, v);
      void *dst = interpreter_address (to, v);
      if (rn_dtype_is_half (other->desc.dtype))
        rn_floats_from (other->desc.dtype, src, rn_desc_elements (&value->desc), dst);
      else if (src != NULL)
        memcpy (dst, src, rn_desc_bytes (&value->desc));
    }
}

/* Every op in single precision; a result that is half in @types is rounded. The ops of both are the same. */
static void
run_rounded (Interpreter *interpreter, const RnGraph *types)
{
  for (int i = 0; i < (int) interpreter->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (interpreter->graph, i);
      interpreter_run (interpreter, i, i + 1);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        {
          if (op->out[s] == RN_NO_VALUE)
            continue;
          const RnTensorDesc *desc = &rn_graph_value (types, op->out[s])->desc;
          if (rn_dtype_is_half (desc->dtype))
            rn_floats_round (desc->dtype, interpreter_address (interpreter, op->out[s]),
                             rn_desc_elements (desc));
        }
    }
}

/*
 * With O2 every feature map is half, so that the whole step is: operands rounded, sums in single precision,
 * results rounded once. That has one result, to the bit.
 */
static void
test_rounded (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) half = { 0 };
  const RnPassOptions plain = { .cblk = 1 };

  init_step (&half, device, c, RN_AMP_O2);
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_TRAIN, params);
  c->net (graph, &c->net_options);
  g_assert_true (rn_passes_run (graph, &plain, NULL, NULL, &error));
  g_assert_cmpuint (graph->ops->len, ==, half.plan->graph->ops->len);
  copy_params (graph, device, half.params, c->dtype);
  g_autoptr (Interpreter) interpreter = interpreter_new (graph, device);
  planned_step_write_inputs (&half);
  copy_inputs (interpreter, &half);

  run_step (&half);
  run_rounded (interpreter, half.plan->graph);
  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      const float *a = rn_param_set_grad (half.params, i), *b = rn_param_set_grad (params, i);
      for (int64_t k = 0; param->trainable && k < rn_desc_elements (&param->desc); k++)
        if (a[k] != b[k])
          g_error ("%s[%d]: %g and %g", param->name, (int) k, (double) a[k], (double) b[k]);
    }
}

/* |a - b| / |b| over all gradients together. */
static double
relative_error (const RnParamSet *a, const RnParamSet *b)
{
  double difference = 0, norm = 0;

  for (int i = 0; i < rn_param_set_size (a); i++)
    {
      const RnParam *param = rn_param_set_get (a, i);
      const float *x = rn_param_set_grad (a, i), *y = rn_param_set_grad (b, i);
      for (int64_t k = 0; param->trainable && k < rn_desc_elements (&param->desc); k++)
        {
          difference += pow ((double) x[k] - (double) y[k], 2);
          norm += pow ((double) y[k], 2);
        }
    }
  g_assert_cmpfloat (norm, >, 0);
  return sqrt (difference / norm);
}

/*
 * An op rounds its result by a relative error of up to @unit, 2^-11 in F16 and 2^-9 in BF16, and n ops in a
 * row by up to n units. That moves an element across zero, in front of a ReLU, with a chance of about n
 * units, as elements are spread over a width of about 1; its gradient is then all wrong. Such elements are n
 * units of all, and the norm of their gradients sqrt (n units) of the norm of all. Errors of elements that
 * stay on their side are n units, which is less.
 */
static void
test_near_single (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) single = { 0 };
  double unit = c->dtype == RN_F16 ? 0x1p-11 : 0x1p-9;

  init_step (&single, device, c, RN_AMP_O0);
  run_step (&single);
  for (RnAmpLevel level = RN_AMP_O1; level <= RN_AMP_O2; level++)
    {
      g_auto (PlannedStep) half = { 0 };
      init_step (&half, device, c, level);
      run_step (&half);
      double error = relative_error (half.params, single.params);
      g_test_message ("O%d: relative error %g", (int) level, error);
      g_assert_cmpfloat (error, >, 0);
      g_assert_cmpfloat (error, <, sqrt (unit * (double) single.plan->graph->ops->len));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/amp/o1", test_o1);
  g_test_add_func ("/graph/amp/o2", test_o2);
  g_test_add_func ("/graph/amp/single-block", test_single_block);
  g_test_add_func ("/graph/amp/single-neck", test_single_neck);
  g_test_add_func ("/graph/amp/single-stem", test_single_stem);
  g_test_add_func ("/graph/amp/half-module", test_half_module);
  g_test_add_func ("/graph/amp/longest-name", test_longest_name);
  g_test_add_func ("/graph/amp/loss-mode", test_loss_mode);
  g_test_add_func ("/graph/amp/topk", test_topk);
  g_test_add_func ("/graph/amp/print", test_print);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *rounded = g_strconcat ("/graph/amp/rounded/", cases[i].name, NULL);
      g_autofree char *near = g_strconcat ("/graph/amp/near-single/", cases[i].name, NULL);
      g_test_add_data_func (rounded, &cases[i], test_rounded);
      g_test_add_data_func (near, &cases[i], test_near_single);
    }
  return g_test_run ();
}
