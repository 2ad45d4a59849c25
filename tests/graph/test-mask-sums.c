/* test-mask-sums.c: which weight gradients take their sums from the mask in front of them. */
#include "config.h"

#include "tests/graph/pass-fixture.h"

static Fixture
step_with_sums (Net net, NetOptions options, gboolean fold)
{
  g_autoptr (GError) error = NULL;
  const RnPassOptions passes = { .fold_frozen_bn = fold, .cblk = 1, .mask_sums = TRUE };
  Fixture f = fixture_forward (RN_MODE_TRAIN, net, options);
  rn_passes_run (f.graph, &passes, NULL, NULL, &error);
  g_assert_no_error (error);
  return f;
}

/* The masks that give sums. */
static int
count_sums (const Fixture *f)
{
  int n = 0;
  for (int i = 0; i < (int) f->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (f->graph, i);
      n += op->op == RN_OP_RELU_BWD && op->out[RN_RELU_BWD_SUMS] != RN_NO_VALUE;
    }
  return n;
}

/* What op @i takes as sums is what the mask in front of it gives, if there is a mask, and else nothing.
 * Returns whether there is one. */
static gboolean
check_sums_of (const Fixture *f, const int *writers, int i)
{
  const RnGraphOp *op = rn_graph_op (f->graph, i);
  const RnGraphOp *writer = rn_graph_op (f->graph, writers[op->in[RN_CONV_BW_DIFF_DST]]);
  gboolean is_masked = writer->op == RN_OP_RELU_BWD;
  g_assert_cmpint (op->in[RN_CONV_BW_SUMS], ==, is_masked ? writer->out[RN_RELU_BWD_SUMS] : RN_NO_VALUE);
  if (is_masked)
    g_assert_cmpint (op->in[RN_CONV_BW_SUMS], !=, RN_NO_VALUE);
  return is_masked;
}

/* *@n: weight gradients without sums, and with. */
static void
check_sums (const Fixture *f, int n[2])
{
  g_autofree int *writers = rn_graph_find_writers (f->graph);
  n[FALSE] = n[TRUE] = 0;
  for (int i = 0; i < (int) f->graph->ops->len; i++)
    if (rn_graph_op (f->graph, i)->op == RN_OP_CONV2D_BWD_WEIGHTS)
      n[check_sums_of (f, writers, i)]++;
}

/* Every convolution but the head has a mask behind it; two of them share one, as a block and its shortcut do.
 */
static void
test_residual (void)
{
  g_auto (Fixture) f = step_with_sums (net_residual, (NetOptions){ 0 }, TRUE);
  int n[2];
  check_sums (&f, n);
  g_assert_cmpint (n[TRUE], ==, 6);
  g_assert_cmpint (n[FALSE], ==, 1);
  g_assert_cmpint (count_sums (&f), ==, 5);
  const RnGraphOp *last =
      rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_BWD_WEIGHTS, "layer1.1.conv2"));
  const RnGraphOp *down =
      rn_graph_op (f.graph, fixture_find (&f, RN_OP_CONV2D_BWD_WEIGHTS, "layer1.1.conv_down"));
  g_assert_cmpint (last->in[RN_CONV_BW_SUMS], ==, down->in[RN_CONV_BW_SUMS]);
}

/* In a neck gradients are sums of several, and in a head those of a loss. */
static void
test_pyramid (void)
{
  g_auto (Fixture) f = step_with_sums (net_pyramid, (NetOptions){ 0 }, TRUE);
  int n[2];
  check_sums (&f, n);
  g_assert_cmpint (n[TRUE], >, 0);
  g_assert_cmpint (n[FALSE], >, 0);
}

/* Nobody asks for them: a batch norm lies between mask and convolution; or it is folded, and is not trained.
 */
static void
test_not_needed (void)
{
  g_auto (Fixture) unfolded = step_with_sums (net_residual, (NetOptions){ 0 }, FALSE);
  g_assert_cmpint (count_sums (&unfolded), ==, 0);
  int n[2];
  check_sums (&unfolded, n);
  g_assert_cmpint (n[TRUE], ==, 0);
  g_assert_cmpint (n[FALSE], ==, 7);

  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = fixture_forward (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 });
  for (int i = 0; i < rn_param_set_size (f.params); i++)
    if (rn_param_set_get (f.params, i)->is_norm)
      rn_param_set_edit (f.params, i)->trainable = FALSE;
  rn_passes_run (f.graph, &(RnPassOptions){ .fold_frozen_bn = TRUE, .cblk = 1, .mask_sums = TRUE }, NULL,
                 NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (fixture_count (&f, RN_OP_RELU_BWD), ==, 5);
  g_assert_cmpint (count_sums (&f), ==, 0);
}

/* A convolution that rounds a gradient before it reads it adds up what is rounded. */
static void
test_rounded (void)
{
  g_auto (Fixture) f = fixture_step (RN_MODE_TRAIN, net_residual, (NetOptions){ 0 }, TRUE);
  int rounding = fixture_find (&f, RN_OP_CONV2D_BWD_WEIGHTS, "layer1.0.conv1");
  rn_graph_op (f.graph, rounding)->args.conv.compute = RN_F16;
  rn_pass_mask_sums (f.graph);
  g_autofree char *fault = rn_graph_check (f.graph);
  g_assert_null (fault);
  g_assert_cmpint (rn_graph_op (f.graph, rounding)->in[RN_CONV_BW_SUMS], ==, RN_NO_VALUE);
  g_assert_cmpint (count_sums (&f), ==, 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/graph/mask-sums/residual", test_residual);
  g_test_add_func ("/graph/mask-sums/pyramid", test_pyramid);
  g_test_add_func ("/graph/mask-sums/not-needed", test_not_needed);
  g_test_add_func ("/graph/mask-sums/rounded", test_rounded);
  return g_test_run ();
}
