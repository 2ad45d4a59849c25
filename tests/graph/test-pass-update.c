/* test-pass-update.c: the optimizer in the backward program: where its ops stand, that nothing but the place
 * of the gradients changes, and a step that takes its gradient in parts. */
#include "config.h"

#include "tests/graph/planned-step.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define N_STEPS 3

/* ---- A network with parameters that no gradient reaches ---- */

static void
net_with_spare (RnGraph *graph, const NetOptions *options)
{
  rn_conv2d_declare (graph, 3,
                     &(RnConv2d){ .name = "spare",
                                  .out_channels = 2,
                                  .kernel = 1,
                                  .bias = TRUE,
                                  .weight_init = { RN_INIT_NORMAL, 0, 0.5 },
                                  .bias_init = { RN_INIT_CONSTANT, 0.25, 0 } });
  net_pyramid (graph, options);
}

/* ---- The list ---- */

/* Does op @i look at @param, or add to its gradient? */
static gboolean
uses_param (const RnGraph *graph, int i, int param)
{
  const RnGraphOp *op = rn_graph_op (graph, i);
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (op->in[s] != RN_NO_VALUE && rn_graph_value (graph, op->in[s])->param == param)
      return TRUE;
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    if (op->out[s] != RN_NO_VALUE && rn_graph_value (graph, op->out[s])->param == param)
      return TRUE;
  return FALSE;
}

/* The first use of a parameter's gradient clears it; the last use of the parameter is its step, which comes
 * as soon as it may: directly behind the last other use, or behind steps that do so, or at the turn. */
static void
check_param (const RnGraph *graph, int param)
{
  int step = -1, clear = -1, before = -1;

  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (!uses_param (graph, i, param))
        continue;
      g_assert_cmpint (step, ==, -1); /* nothing comes behind it */
      if (op->op == RN_OP_SGD)
        step = i;
      else
        before = i;
      if (op->op == RN_OP_ZERO)
        {
          g_assert_cmpint (clear, ==, -1);
          clear = i;
        }
      if (op->op == RN_OP_CONV2D_BWD_WEIGHTS || op->op == RN_OP_BATCH_NORM_BWD)
        g_assert_cmpint (clear, >=, 0);
    }
  g_assert_cmpint (step, >=, graph->turn);
  g_assert_cmpint (clear, >=, 0);
  g_assert_cmpint (rn_graph_op (graph, step)->phase, ==, RN_PHASE_UPDATE);
  for (int i = MAX (before + 1, graph->turn); i < step; i++)
    g_assert_cmpint (rn_graph_op (graph, i)->op, ==, RN_OP_SGD);
}

static void
test_order (gconstpointer head)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  const RnUpdateSpec spec = { .rule = { .momentum = TRUE }, .n_groups = 1 };
  /* blocks of channels: the gradients of weights have none */
  const RnPassOptions options = { .fold_frozen_bn = TRUE,
                                  .inplace = TRUE,
                                  .cblk = 8,
                                  .head = (RnHeadOrder) GPOINTER_TO_INT (head),
                                  .update = &spec };
  planned_step_init (&step, device, net_with_spare, &(NetOptions){ .frozen_stem = TRUE }, &options, 1);
  const RnGraph *graph = step.plan->graph;
  int n_trained = 0, n_steps = 0;

  for (int i = 0; i < rn_param_set_size (step.params); i++)
    if (rn_param_set_get (step.params, i)->trainable)
      {
        check_param (graph, i);
        n_trained++;
      }
  for (int i = 0; i < (int) graph->ops->len; i++)
    n_steps += rn_graph_op (graph, i)->op == RN_OP_SGD;
  g_assert_cmpint (n_steps, ==, n_trained);
  for (guint v = 0; v < graph->values->len; v++)
    g_assert_cmpint (rn_graph_value (graph, (RnValueId) v)->kind, !=, RN_VALUE_PARAM_GRAD);
}

/* ---- The bits ---- */

typedef struct
{
  const char *name;
  RnUpdateRule rule;
  NetOptions net;
} Case;

static const Case cases[] = {
  { "sgd", { .weight_decay = 0.1 }, { 0 } },
  { "momentum", { .momentum = TRUE, .weight_decay = 0.1, .dampening = 0.2 }, { .bn_training = TRUE } },
  { "nesterov", { .momentum = TRUE, .nesterov = TRUE, .weight_decay = 0.1 }, { .frozen_stem = TRUE } },
  { "adam", { .kind = RN_UPDATE_ADAM, .weight_decay = 0.1, .beta2 = 0.9, .eps = 1e-8 }, { 0 } },
  { "adamw",
    { .kind = RN_UPDATE_ADAM,
      .weight_decay = 0.1,
      .beta2 = 0.9,
      .eps = 1e-8,
      .amsgrad = TRUE,
      .decoupled = TRUE },
    { .bn_training = TRUE } },
};

/* Two groups with rates of their own, and parameters without weight decay. (transfer full) */
static RnParamUpdate *
make_updates (PlannedNet net, const NetOptions *options)
{
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_TRAIN, params);
  net (graph, options);
  RnParamUpdate *updates = g_new0 (RnParamUpdate, rn_param_set_size (params));
  for (int i = 0; i < rn_param_set_size (params); i++)
    updates[i] = (RnParamUpdate){ i % 2, i % 3 == 0 ? 0 : 1 };
  return updates;
}

static void
fill_hyper (float *hyper, int step)
{
  const float values[] = {
    [RN_HYPER_MOMENTUM] = 0.9f,
    [RN_HYPER_TAKE] = 0.1f,
    [RN_HYPER_BIAS2] = 0.5f,
    [RN_HYPER_GRAD_MULTIPLIER] = 0.75f,
    [RN_HYPER_CLIP_VALUE] = 0.5f,
    [RN_HYPER_FIRST] = step == 0,
    [RN_HYPER_COUNT + RN_GROUP_LR] = 0.05f,
    [RN_HYPER_COUNT + RN_GROUP_STEP_SIZE] = 0.05f,
    [RN_HYPER_COUNT + RN_GROUP_COUNT + RN_GROUP_LR] = 0.02f,
    [RN_HYPER_COUNT + RN_GROUP_COUNT + RN_GROUP_STEP_SIZE] = 0.02f,
  };
  memcpy (hyper, values, sizeof values);
}

/* The update program on the gradients of @step. */
static void
run_update (PlannedStep *step, const RnUpdateSpec *spec, int i)
{
  g_autoptr (GError) error = NULL;
  RnUpdateParts parts;
  g_autoptr (RnPlan) plan =
      rn_plan_new (rn_update_graph_new (step->params, spec, &parts), step->device, TRUE, &error);
  g_assert_no_error (error);
  g_autofree guint8 *arena = g_malloc0 (plan->arena_bytes);
  g_autoptr (RnExecutor) executor = rn_executor_new (plan, arena, plan->arena_bytes, &error);
  g_assert_no_error (error);
  fill_hyper (rn_executor_address (executor, rn_graph_find_value (plan->graph, "hyper")), i);
  rn_executor_run (executor, parts.step, parts.ema, &error);
  g_assert_no_error (error);
}

static void
train_plainly (PlannedStep *step, const RnUpdateSpec *spec, int i)
{
  rn_param_set_zero_grads (step->params, NULL);
  planned_step_forward (step);
  planned_step_backward (step);
  run_update (step, spec, i);
}

static void
train_in_backward (PlannedStep *step, int i)
{
  RnValueId hyper = rn_graph_find_value (step->plan->graph, "hyper");
  planned_step_forward (step);
  fill_hyper (rn_executor_address (step->executor, hyper), i);
  g_assert_true (rn_executor_host_wrote (step->executor, hyper, NULL));
  planned_step_backward (step);
}

static void
assert_same_params (const PlannedStep *a, const PlannedStep *b, int n_states)
{
  int bytes = (int) rn_param_set_value_bytes (a->params);
  g_assert_cmpmem (rn_param_set_all_values (a->params), bytes, rn_param_set_all_values (b->params), bytes);
  for (int i = 0; i < rn_param_set_size (a->params); i++)
    for (int k = 0; k < n_states && rn_param_set_get (a->params, i)->trainable; k++)
      {
        int n = (int) rn_desc_bytes (&rn_param_set_get (a->params, i)->desc);
        g_assert_cmpmem (rn_param_set_state (a->params, k, i), n, rn_param_set_state (b->params, k, i), n);
      }
}

/* Parameters, statistics and states, with and without a depth-first head. */
static void
test_bits (gconstpointer data)
{
  const Case *c = data;
  const char *names[RN_PARAM_MAX_STATES];
  int n_states = rn_update_rule_states (&c->rule, names);
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autofree RnParamUpdate *updates = make_updates (net_with_spare, &c->net);
  const RnUpdateSpec spec = { .rule = c->rule, .updates = updates, .n_groups = 2 };
  RnPassOptions options = { .fold_frozen_bn = TRUE, .inplace = TRUE, .cblk = 1 };
  g_auto (PlannedStep) plain = { 0 }, fused = { 0 }, deep = { 0 };

  planned_step_init (&plain, device, net_with_spare, &c->net, &options, n_states);
  options.update = &spec;
  planned_step_init (&fused, device, net_with_spare, &c->net, &options, n_states);
  options.head = RN_HEAD_DEPTH_FIRST;
  planned_step_init (&deep, device, net_with_spare, &c->net, &options, n_states);
  g_assert_null (rn_param_set_all_grads (fused.params));
  for (int i = 0; i < N_STEPS; i++)
    {
      train_plainly (&plain, &spec, i);
      train_in_backward (&fused, i);
      train_in_backward (&deep, i);
      assert_same_params (&plain, &fused, n_states);
      assert_same_params (&plain, &deep, n_states);
    }
  /* and the spare ones moved too, by their weight decay */
  int spare = rn_param_set_find (plain.params, "spare.bias");
  g_assert_cmpfloat (*(float *) rn_param_set_value (fused.params, spare) == 0.25f, ==,
                     updates[spare].decay_mult == 0);
}

/* ---- A gradient in parts ---- */

#define N 1000
#define N_PARTS 4

static void
run_sgd (RnDevice *device, const RnSgdArgs *args, float *grad, float *hyper, float *param, float *momentum)
{
  g_autoptr (GError) error = NULL;
  RnTensorDesc flat = rn_desc_vector (RN_F32, N);
  RnOpCall call = { .op = RN_OP_SGD, .args = { .sgd = *args }, .in_present = 3, .out_present = 3 };
  RnPrepared prepared = { 0 };
  const void *in[RN_OP_MAX_IN] = { [RN_SGD_GRAD] = grad, [RN_SGD_HYPER] = hyper };
  void *out[RN_OP_MAX_OUT] = { [RN_SGD_PARAM] = param, [RN_SGD_MOMENTUM] = momentum };

  call.in[RN_SGD_GRAD] = rn_desc_nchw (RN_F32, 10, 10, 5, 2, 1); /* as a convolution wrote it */
  call.in[RN_SGD_HYPER] = rn_desc_vector (RN_F32, RN_HYPER_COUNT + RN_GROUP_COUNT);
  call.out[RN_SGD_PARAM] = call.out[RN_SGD_MOMENTUM] = flat;
  g_assert_true (rn_device_prepare (device, &call, &prepared, &error));
  g_assert_no_error (error);
  g_assert_cmpint (prepared.kernel->run (device, &call, prepared.state, in, out, NULL), ==, RN_STATUS_OK);
  rn_prepared_release (&prepared);
}

/*
 * v = mu * v + take * (g1 + ... + g4 + decay * p), in double. Each part rounds twice, the first one four
 * times, each by half an ulp of a sum that is at most 1.5 + 4 * 1 + 0.1 < 6: 10 roundings. The step rounds
 * lr * v and the difference.
 */
static void
test_parts (gconstpointer is_first)
{
  gboolean first = GPOINTER_TO_INT (is_first);
  const RnSgdArgs args = { .weight_decay = 0.1, .dampening = 0.25f };
  const double lr = 0.5, mu = 0.5, take = first ? 1 : 0.75, bound = 10 * 6 * (double) FLT_EPSILON / 2;
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) cpu = rn_device_new_cpu (2, &error);
  g_assert_no_error (error);
  RnDevice *devices[] = { ref, cpu };
  float param[2][N], momentum[2][N], grad[N];
  double want[N], start[N];
  guint32 seed = 1;

  for (int i = 0; i < N; i++)
    {
      seed = seed * 1664525 + 1013904223;
      start[i] = (double) (param[0][i] = param[1][i] = (float) (seed >> 8) / (1 << 24) * 2 - 1);
      momentum[0][i] = momentum[1][i] = first ? 77 : (float) i / N;
      want[i] = (first ? 0 : mu * (double) momentum[0][i]) + take * 0.1f * start[i];
    }
  for (int part = 0; part < N_PARTS; part++)
    {
      float hyper[RN_HYPER_COUNT + RN_GROUP_COUNT] = {
        [RN_HYPER_MOMENTUM] = (float) mu,      [RN_HYPER_GRAD_MULTIPLIER] = 1,
        [RN_HYPER_FIRST] = first ? 1 : 0,      [RN_HYPER_CONTINUES] = part > 0,
        [RN_HYPER_WAITS] = part < N_PARTS - 1, [RN_HYPER_COUNT + RN_GROUP_LR] = (float) lr,
      };
      for (int i = 0; i < N; i++)
        {
          seed = seed * 1664525 + 1013904223;
          grad[i] = (float) (seed >> 8) / (1 << 24) * 2 - 1;
          want[i] += take * (double) grad[i];
        }
      for (int d = 0; d < 2; d++)
        run_sgd (devices[d], &args, grad, hyper, param[d], momentum[d]);
      if (part < N_PARTS - 1)
        for (int i = 0; i < N; i++)
          g_assert_cmpfloat ((double) param[0][i], ==, start[i]);
    }
  for (int i = 0; i < N; i++)
    {
      g_assert_cmpfloat (fabs ((double) momentum[0][i] - want[i]), <=, bound);
      g_assert_cmpfloat (fabs ((double) param[0][i] - (start[i] - lr * want[i])), <=,
                         lr * bound + 4 * (double) FLT_EPSILON);
    }
  g_assert_cmpmem (param[0], sizeof param[0], param[1], sizeof param[1]);
  g_assert_cmpmem (momentum[0], sizeof momentum[0], momentum[1], sizeof momentum[1]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/graph/update/order", GINT_TO_POINTER (RN_HEAD_ALL_LEVELS), test_order);
  g_test_add_data_func ("/graph/update/order-depth-first", GINT_TO_POINTER (RN_HEAD_DEPTH_FIRST), test_order);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/update/bits/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_bits);
    }
  g_test_add_data_func ("/graph/update/parts/first-step", GINT_TO_POINTER (TRUE), test_parts);
  g_test_add_data_func ("/graph/update/parts/later-step", GINT_TO_POINTER (FALSE), test_parts);
  return g_test_run ();
}
