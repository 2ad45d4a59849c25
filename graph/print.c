/* print.c: a graph as text, one line an op. */
#include "config.h"

#include "graph/graph.h"

static void
append_slot (GString *text, const char *name, RnValueId value)
{
  if (value != RN_NO_VALUE)
    g_string_append_printf (text, "%s%s=%%%d", text->str[text->len - 1] == '(' ? "" : " ", name, value);
}

char *
rn_graph_print (const RnGraph *graph)
{
  GString *text = g_string_new (NULL);
  int n = (int) graph->ops->len;
  for (int i = 0; i < n; i++)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (i == graph->turn)
        g_string_append (text, "---- backward\n");
      RnOpCall call;
      rn_graph_call (graph, i, &call);
      g_autofree char *description = rn_op_describe (&call);
      g_string_append_printf (text, "%4d  %s: %s  (", i, op->scope, description);
      for (int s = 0; s < rn_op_n_in (op->op); s++)
        append_slot (text, rn_op_in_name (op->op, s), op->in[s]);
      g_string_append (text, ") -> (");
      for (int s = 0; s < rn_op_n_out (op->op); s++)
        append_slot (text, rn_op_out_name (op->op, s), op->out[s]);
      g_string_append (text, op->group >= 0 ? ")" : ")\n");
      if (op->group >= 0)
        g_string_append_printf (text, "  group %d\n", op->group);
    }
  return g_string_free (text, FALSE);
}
