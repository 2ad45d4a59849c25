#include "config.h"

#include "tests/graph/pass-fixture.h"

void
fixture_clear (Fixture *f)
{
  rn_graph_free (f->graph);
  rn_param_set_free (f->params);
}

Fixture
fixture_forward (RnMode mode, Net net, NetOptions options)
{
  g_autoptr (GError) error = NULL;
  Fixture f = { .params = rn_param_set_new () };
  f.graph = rn_graph_new (mode, f.params);
  net (f.graph, &options);
  rn_graph_finish_forward (f.graph, &error);
  g_assert_no_error (error);
  return f;
}

Fixture
fixture_step (RnMode mode, Net net, NetOptions options, gboolean fold)
{
  g_autoptr (GError) error = NULL;
  Fixture f = fixture_forward (mode, net, options);
  rn_passes_run (f.graph, &(RnPassOptions){ .fold_frozen_bn = fold, .cblk = 1 }, NULL, NULL, &error);
  g_assert_no_error (error);
  return f;
}

int
fixture_count (const Fixture *f, RnOp op)
{
  int n = 0;
  for (guint i = 0; i < f->graph->ops->len; i++)
    n += rn_graph_op (f->graph, (int) i)->op == op;
  return n;
}

int
fixture_find (const Fixture *f, RnOp op, const char *scope)
{
  for (int i = 0; i < (int) f->graph->ops->len; i++)
    if (rn_graph_op (f->graph, i)->op == op && g_str_equal (rn_graph_op (f->graph, i)->scope, scope))
      return i;
  g_error ("no %s %s", rn_op_name (op), scope);
}
