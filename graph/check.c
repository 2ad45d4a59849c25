/* check.c: rn_graph_check, the promise that every pass keeps. */
#include "config.h"

#include "graph/graph.h"

typedef struct
{
  const RnGraph *graph;
  gboolean *written; /* [values]: by the host or by an op before the current one */
  int i;             /* the current op */
} Check;

static char *G_GNUC_PRINTF (2, 3) fault (const Check *check, const char *format, ...)
{
  const RnGraphOp *op = rn_graph_op (check->graph, check->i);
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  return g_strdup_printf ("op %d, %s (%s): %s", check->i, op->scope, rn_op_name (op->op), what);
}

/* Values of the set may be seen flat, as vectors, or, with param -1, all of them as one. Of the others only a
 * gradient may belong to a parameter. */
static char *
check_value (const RnGraph *graph, RnValueId v)
{
  const RnValue *value = rn_graph_value (graph, v);
  gboolean is_whole = value->param == -1 && value->kind != RN_VALUE_STATE;
  gboolean may_belong = !rn_value_is_in_arena (value) || value->kind == RN_VALUE_GRADIENT;
  if (value->gradient < RN_NO_VALUE || value->gradient >= (int) graph->values->len)
    return g_strdup_printf ("value %%%d (%s): its gradient %%%d does not exist", v, value->name,
                            value->gradient);
  if (!may_belong || is_whole)
    return value->param == -1 ? NULL : g_strdup_printf ("value %%%d (%s): is no parameter", v, value->name);
  if (value->param < 0 || value->param >= rn_param_set_size (graph->params))
    return g_strdup_printf ("value %%%d (%s): no such parameter: %d", v, value->name, value->param);
  if (rn_desc_elements (&value->desc)
      != rn_desc_elements (&rn_param_set_get (graph->params, value->param)->desc))
    return g_strdup_printf ("value %%%d (%s): not the size of its parameter", v, value->name);
  return NULL;
}

static char *
check_inputs (const Check *check, const RnGraphOp *op)
{
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    {
      RnValueId v = op->in[s];
      if (v == RN_NO_VALUE)
        continue;
      if (v < 0 || v >= (int) check->graph->values->len || s >= rn_op_n_in (op->op))
        return fault (check, "input %d: no such value or slot", s);
      if (!check->written[v])
        return fault (check, "%s reads %%%d (%s), which is not written yet", rn_op_in_name (op->op, s), v,
                      rn_graph_value (check->graph, v)->name);
    }
  return NULL;
}

/* What an op updates is of the parameters, or lies in the arena and was written before; anything else is
 * written once. A copy may give a state of the optimizer back to the host memory that it came from. Of what
 * the host writes only the hyper vector is updated: the host gives it anew for each step. */
static char *
check_output (const Check *check, const RnGraphOp *op, int s)
{
  RnValueId v = op->out[s];
  const RnValue *value = rn_graph_value (check->graph, v);
  const char *slot = rn_op_out_name (op->op, s);
  gboolean is_param = !rn_value_is_in_arena (value), is_update = (rn_op_update_mask (op->op) >> s) & 1;
  gboolean is_state_home = op->op == RN_OP_COPY && value->kind == RN_VALUE_STATE;

  if (is_param && !is_update && !is_state_home)
    return fault (check, "%s must not be of the parameters, but is %%%d (%s)", slot, v, value->name);
  if (is_update && value->kind == RN_VALUE_INPUT && op->op != RN_OP_STEP_GUARD)
    return fault (check, "%s updates %%%d (%s), which is the host's", slot, v, value->name);
  if (is_update && !check->written[v])
    return fault (check, "%s updates %%%d (%s), which is not written yet", slot, v, value->name);
  if (!is_update && !is_state_home && check->written[v])
    return fault (check, "%s writes %%%d (%s), which has a writer already", slot, v, value->name);
  return NULL;
}

static char *
check_outputs (Check *check, const RnGraphOp *op)
{
  for (int s = 0; s < RN_OP_MAX_OUT; s++)
    {
      RnValueId v = op->out[s];
      if (v == RN_NO_VALUE)
        continue;
      if (v < 0 || v >= (int) check->graph->values->len || s >= rn_op_n_out (op->op))
        return fault (check, "output %d: no such value or slot", s);
      char *found = check_output (check, op, s);
      if (found)
        return found;
      check->written[v] = TRUE;
    }
  return NULL;
}

static char *
check_op (Check *check)
{
  const RnGraphOp *op = rn_graph_op (check->graph, check->i);
  if ((guint) op->op >= RN_OP_COUNT)
    return g_strdup_printf ("op %d, %s: no such op: %d", check->i, op->scope, (int) op->op);
  char *found = check_inputs (check, op);
  if (!found)
    found = check_outputs (check, op);
  if (found)
    return found;

  RnOpCall call;
  rn_graph_call (check->graph, check->i, &call);
  const char *reason = rn_op_check (&call);
  if (!reason)
    return NULL;
  g_autofree char *description = rn_op_describe (&call);
  return g_strdup_printf ("op %d, %s: %s: %s", check->i, op->scope, description, reason);
}

char *
rn_graph_check (const RnGraph *graph)
{
  int n_ops = (int) graph->ops->len, n_values = (int) graph->values->len;
  if (graph->fault)
    return g_strdup (graph->fault);
  if (graph->turn < 0 || graph->turn > n_ops)
    return g_strdup_printf ("the turn is at %d of %d ops", graph->turn, n_ops);

  g_autofree gboolean *written = g_new0 (gboolean, n_values);
  for (RnValueId v = 0; v < n_values; v++)
    {
      char *found = check_value (graph, v);
      if (found)
        return found;
      const RnValue *value = rn_graph_value (graph, v);
      written[v] = value->kind == RN_VALUE_INPUT || !rn_value_is_in_arena (value);
    }
  Check check = { .graph = graph, .written = written };
  for (; check.i < n_ops; check.i++)
    {
      char *found = check_op (&check);
      if (found)
        return found;
    }
  for (RnValueId v = 0; v < n_values; v++)
    if (rn_graph_value (graph, v)->is_output && !written[v])
      return g_strdup_printf ("output %%%d (%s) is written by no op", v, rn_graph_value (graph, v)->name);
  return NULL;
}
