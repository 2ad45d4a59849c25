/* test-depth-first.c: the pass that runs each group of the head forward and backward in turn: the order of
 * the list, what it saves, and that no bit changes. */
#include "config.h"

#include "tests/graph/planned-step.h"

#include <string.h>

#define N_GROUPS 8 /* of net_pyramid: class and box of four levels */

static RnPassOptions
pass_options (RnHeadOrder head, gboolean inplace)
{
  return (RnPassOptions){ .fold_frozen_bn = TRUE, .inplace = inplace, .cblk = 1, .head = head };
}

static void
open_step (PlannedStep *step, RnDevice *device, const NetOptions *net, RnHeadOrder head, gboolean inplace)
{
  const RnPassOptions options = pass_options (head, inplace);
  planned_step_init (step, device, net_pyramid, net, &options, 0);
}

/* ---- The list ---- */

/* Where an op belongs in the list: trunk forward, groups with forward before backward, trunk backward. */
static int
rank_of (const RnGraphOp *op)
{
  gboolean is_backward = op->phase != RN_PHASE_FORWARD;
  if (op->group < 0)
    return is_backward ? 2 * N_GROUPS : -1;
  return 2 * op->group + is_backward;
}

static void
test_order (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) plain = { 0 }, step = { 0 };
  open_step (&plain, device, &(NetOptions){ 0 }, RN_HEAD_ALL_LEVELS, TRUE);
  open_step (&step, device, &(NetOptions){ 0 }, RN_HEAD_DEPTH_FIRST, TRUE);
  const RnGraph *graph = step.plan->graph;
  int n_in_head = 0;

  g_assert_cmpuint (graph->ops->len, ==, plain.plan->graph->ops->len);
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (i > 0)
        g_assert_cmpint (rank_of (op), >=, rank_of (rn_graph_op (graph, i - 1)));
      g_assert_cmpint (i < graph->turn, ==, rank_of (op) < 2 * N_GROUPS);
      n_in_head += op->group >= 0 && op->phase == RN_PHASE_BACKWARD;
    }
  /* a group has at least the gradients of weights and of input of two convolutions, and a mask between */
  g_assert_cmpint (n_in_head, >=, 5 * N_GROUPS);
  g_assert_cmpint (graph->turn, ==, plain.plan->graph->turn + n_in_head);
  g_assert_cmpint (step.plan->macs, ==, plain.plan->macs); /* of the forward pass alone */
  g_assert_cmpuint (step.plan->live_bound_bytes, <, plain.plan->live_bound_bytes);
}

/* What a module gives is what a forward op of it gives, though backward ops have its scope too. */
static void
test_module_outputs (void)
{
  static const char *const modules[] = { "backbone.conv0", "neck.lateral0", "neck.extra",
                                         "cls_tower",      "reg",           NULL };
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) plain = { 0 }, step = { 0 };
  open_step (&plain, device, &(NetOptions){ 0 }, RN_HEAD_ALL_LEVELS, TRUE);
  open_step (&step, device, &(NetOptions){ 0 }, RN_HEAD_DEPTH_FIRST, TRUE);

  for (const char *const *module = modules; *module != NULL; module++)
    {
      RnValueId output = rn_graph_module_output (step.plan->graph, *module);
      g_assert_cmpint (output, !=, RN_NO_VALUE);
      g_assert_cmpint (output, ==, rn_graph_module_output (plain.plan->graph, *module));
    }
  g_auto (GStrv) names = rn_graph_module_names (step.plan->graph);
  g_auto (GStrv) plain_names = rn_graph_module_names (plain.plan->graph);
  g_assert_true (g_strv_equal ((const char *const *) names, (const char *const *) plain_names));
}

static void
test_no_head (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnParamSet) params = rn_param_set_new ();
  g_autoptr (RnGraph) graph = rn_graph_new (RN_MODE_TRAIN, params);
  const RnPassOptions options = pass_options (RN_HEAD_DEPTH_FIRST, TRUE);

  net_residual (graph, &(NetOptions){ 0 });
  g_assert_false (rn_passes_run (graph, &options, NULL, NULL, &error));
  g_assert_error (error, RN_PASS_ERROR, RN_OPTION_HEAD);
  g_assert_nonnull (strstr (error->message, "what works: all_levels"));
}

/* ---- The bits ---- */

typedef struct
{
  const char *name;
  NetOptions net;
  gboolean inplace;
} Case;

static const Case cases[] = {
  { "folded", { 0 }, TRUE },
  { "batch-statistics", { .bn_training = TRUE }, TRUE },
  { "frozen-stem", { .frozen_stem = TRUE }, TRUE },
  { "out-of-place", { .bn_training = TRUE }, FALSE },
};

/* Losses, gradients summed over two batches without a step between, parameters and statistics. */
static void
test_bits (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) plain = { 0 }, deep = { 0 };
  open_step (&plain, device, &c->net, RN_HEAD_ALL_LEVELS, c->inplace);
  open_step (&deep, device, &c->net, RN_HEAD_DEPTH_FIRST, c->inplace);

  for (int i = 0; i < 2; i++)
    {
      planned_step_forward (&plain);
      planned_step_forward (&deep);
      g_autoptr (GArray) want = planned_step_losses (&plain), got = planned_step_losses (&deep);
      g_assert_cmpuint (got->len, ==, N_GROUPS);
      g_assert_cmpuint (want->len, ==, got->len);
      g_assert_true (memcmp (got->data, want->data, got->len * sizeof (float)) == 0);
      planned_step_backward (&plain);
      planned_step_backward (&deep);
    }
  int grads = (int) rn_param_set_grad_bytes (plain.params),
      values = (int) rn_param_set_value_bytes (plain.params);
  g_assert_cmpmem (rn_param_set_all_grads (deep.params), grads, rn_param_set_all_grads (plain.params), grads);
  g_assert_cmpmem (rn_param_set_all_values (deep.params), values, rn_param_set_all_values (plain.params),
                   values);
  /* and the gradients of the head are there */
  const float *head = rn_param_set_grad (deep.params, rn_param_set_find (deep.params, "reg.weight"));
  g_assert_cmpfloat (head[0], !=, 0);
}

/* The gradients of the head are complete when the forward program is done, and only those. */
static void
test_head_at_the_turn (void)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_auto (PlannedStep) step = { 0 };
  open_step (&step, device, &(NetOptions){ 0 }, RN_HEAD_DEPTH_FIRST, TRUE);
  int n = rn_param_set_size (step.params);
  g_autofree gpointer *at_turn = g_new0 (gpointer, n);

  planned_step_forward (&step);
  for (int i = 0; i < n; i++)
    if (rn_param_set_grad (step.params, i) != NULL)
      at_turn[i] = g_memdup2 (rn_param_set_grad (step.params, i),
                              rn_desc_bytes (&rn_param_set_get (step.params, i)->desc));
  planned_step_backward (&step);
  for (int i = 0; i < n; i++)
    {
      const RnParam *param = rn_param_set_get (step.params, i);
      gboolean is_head = g_str_has_prefix (param->name, "cls") || g_str_has_prefix (param->name, "reg");
      if (at_turn[i] == NULL)
        continue;
      g_assert_cmpint (memcmp (at_turn[i], rn_param_set_grad (step.params, i), rn_desc_bytes (&param->desc))
                           == 0,
                       ==, is_head);
      g_free (at_turn[i]);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/depth-first/order", test_order);
  g_test_add_func ("/graph/depth-first/module-outputs", test_module_outputs);
  g_test_add_func ("/graph/depth-first/no-head", test_no_head);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/graph/depth-first/bits/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_bits);
    }
  g_test_add_func ("/graph/depth-first/head-at-the-turn", test_head_at_the_turn);
  return g_test_run ();
}
