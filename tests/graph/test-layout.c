/* test-layout.c: a training step in NHWC gives the bits of the one in NCHW, and nothing is reordered: pixels
 * are written in the layout that they are read in. */
#include "config.h"

#include "tests/graph/planned-step.h"

#include <string.h>

typedef struct
{
  const char *name;
  PlannedNet net;
  NetOptions net_options;
  RnPassOptions passes;
} Case;

#define HALF .amp = { .level = RN_AMP_O1, .dtype = RN_F16 }

/* With NORMALIZE in front, as every program has it. */
static const Case cases[] = {
  { "residual", net_residual, { 0 }, { .fold_frozen_bn = TRUE } },
  { "in place", net_residual, { 0 }, { .fold_frozen_bn = TRUE, .inplace = TRUE } },
  { "frozen stem", net_residual, { .frozen_stem = TRUE }, { .fold_frozen_bn = TRUE, .inplace = TRUE } },
  { "pyramid", net_pyramid, { .bn_training = TRUE }, { .inplace = TRUE } },
  { "half", net_residual, { .bn_training = TRUE }, { .inplace = TRUE, HALF } },
  { "offload", net_residual, { 0 }, { .inplace = TRUE, .offload = { .form = RN_OFFLOAD_IDLE, .idle = 4 } } },
  { "offload and fold",
    net_residual,
    { 0 },
    { .fold_frozen_bn = TRUE, .inplace = TRUE, .offload = { .form = RN_OFFLOAD_IDLE, .idle = 4 } } },
};

static GArray *
run_step (RnDevice *device, const Case *c, int64_t cblk)
{
  g_auto (PlannedStep) step = { 0 };
  RnPassOptions passes = c->passes;

  passes.cblk = cblk;
  passes.normalize = TRUE;
  planned_step_init (&step, device, c->net, &c->net_options, &passes, 0);
  const RnGraph *graph = step.plan->graph;
  RnValueId image = rn_graph_find_value (graph, "image");
  g_assert_cmpint (rn_graph_value (graph, image)->desc.cblk, ==, cblk == RN_CBLK_ALL ? 3 : 1);
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (op->op == RN_OP_REORDER) /* a cast */
        g_assert_cmpint (rn_graph_value (graph, op->in[0])->desc.cblk, ==,
                         rn_graph_value (graph, op->out[0])->desc.cblk);
      for (int s = 0; s < RN_OP_MAX_OUT; s++)
        {
          const RnValue *value = op->out[s] != RN_NO_VALUE ? rn_graph_value (graph, op->out[s]) : NULL;
          if (value != NULL && value->desc.rank == 4 && value->param < 0)
            g_assert_cmpint (value->desc.cblk, ==, cblk == RN_CBLK_ALL ? value->desc.dims[1] : cblk);
        }
    }
  planned_step_forward (&step);
  planned_step_backward (&step);
  return planned_step_results (&step);
}

/* The reference takes every layout, and sums in the order of channels. */
static void
test_nhwc (gconstpointer data)
{
  g_autoptr (RnDevice) device = rn_device_new_ref ();
  g_autoptr (GArray) nchw = run_step (device, data, 1);
  g_autoptr (GArray) nhwc = run_step (device, data, RN_CBLK_ALL);

  g_assert_cmpuint (nchw->len, ==, nhwc->len);
  g_assert_cmpint (memcmp (nchw->data, nhwc->data, nchw->len * sizeof (float)), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strdup_printf ("/layout/%s", cases[i].name);
      g_test_add_data_func (path, &cases[i], test_nhwc);
    }
  return g_test_run ();
}
