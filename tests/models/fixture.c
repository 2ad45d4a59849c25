#include "config.h"

#include "tests/models/fixture.h"

#include "runner/config/config.h"

RnModel *
fixture_model (const char *const *changes, GError **error)
{
  g_autoptr (GError) fault = NULL;
  g_assert_true (rn_models_register (&fault));
  g_assert_no_error (fault);

  g_autofree char *path =
      g_test_build_filename (G_TEST_DIST, "configs/_base_/models/retinanet_r50_fpn.yaml", NULL);
  g_autoptr (RnNode) root = rn_config_load (path, changes, error);
  return root ? rn_model_new (rn_node_get (root, "model"), 0, error) : NULL;
}

void
fixture_init (Fixture *self, const char *const *changes)
{
  g_autoptr (GError) error = NULL;
  self->model = fixture_model (changes, &error);
  g_assert_no_error (error);
  self->params = rn_param_set_new ();
}

void
fixture_clear (Fixture *self)
{
  g_clear_pointer (&self->model, rn_model_free);
  g_clear_pointer (&self->params, rn_param_set_free);
}

RnGraph *
fixture_graph (Fixture *self, RnMode mode, int n, int height, int width)
{
  g_autoptr (GError) error = NULL;
  RnGraph *graph = rn_model_build (self->model, self->params, mode, n, height, width, &error);
  g_assert_no_error (error);
  g_autofree char *fault = rn_graph_check (graph);
  g_assert_cmpstr (fault, ==, NULL);
  return graph;
}

gint64
fixture_count (const Fixture *self, const char *prefix, WeightKind kind, gboolean tensors)
{
  gint64 count = 0;
  for (int i = 0; i < rn_param_set_size (self->params); i++)
    {
      const RnParam *p = rn_param_set_get (self->params, i);
      if (p->kind == RN_PARAM_WEIGHT && g_str_has_prefix (p->name, prefix)
          && (kind == ALL_WEIGHTS || (kind == TRAINABLE_WEIGHTS ? p->trainable : p->is_norm)))
        count += tensors ? 1 : rn_desc_elements (&p->desc);
    }
  return count;
}

int
fixture_count_ops (const RnGraph *graph, RnOp op, const char *prefix)
{
  int count = 0;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      const RnGraphOp *o = rn_graph_op (graph, (int) i);
      count += o->op == op && g_str_has_prefix (o->scope, prefix);
    }
  return count;
}

static gint64
count_operations (const RnOpCall *call)
{
  gint64 elements = rn_desc_elements (&call->out[0]);
  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
      return rn_op_cost (call).macs + (RN_HAS_IN (call, RN_CONV_BIAS) ? elements : 0);
    case RN_OP_BATCH_NORM_FWD:
      return 2 * elements;
    case RN_OP_RELU_FWD:
      return elements;
    case RN_OP_MAX_POOL_FWD:
      return rn_desc_elements (&call->in[0]);
    default:
      return 0;
    }
}

gint64
fixture_count_operations (const RnGraph *graph, const char *prefix, gboolean convolutions_only)
{
  gint64 count = 0;
  for (guint i = 0; i < graph->ops->len; i++)
    {
      RnOpCall call;
      rn_graph_call (graph, (int) i, &call);
      if (g_str_has_prefix (rn_graph_op (graph, (int) i)->scope, prefix)
          && (!convolutions_only || call.op == RN_OP_CONV2D_FWD))
        count += count_operations (&call);
    }
  return count;
}
