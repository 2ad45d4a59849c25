/* pass-freeze.c: which values need a gradient. A frozen prefix needs none, so nothing is computed or kept for
 * it. */
#include "config.h"

#include "graph/passes.h"

static gboolean
any_input_requires_grad (const RnGraph *graph, const RnGraphOp *op)
{
  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (op->in[s] != RN_NO_VALUE && rn_graph_value (graph, op->in[s])->requires_grad)
      return TRUE;
  return FALSE;
}

void
rn_pass_freeze (RnGraph *graph)
{
  if (graph->mode != RN_MODE_TRAIN)
    return;
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      RnValue *value = rn_graph_value (graph, v);
      value->requires_grad =
          value->kind == RN_VALUE_PARAM && rn_param_set_get (graph->params, value->param)->trainable;
    }
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      RnGraphOp *op = rn_graph_op (graph, i);
      gboolean is_loss = rn_op_is_loss (op->op);
      if (!any_input_requires_grad (graph, op))
        {
          if (is_loss)
            op->out[RN_LOSS_DIFF] = RN_NO_VALUE;
        }
      else if (!is_loss)
        rn_graph_value (graph, op->out[0])->requires_grad =
            TRUE; /* the first output is the differentiable one */
    }
}
