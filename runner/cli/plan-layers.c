/* plan-layers.c: a plan by its forward ops, and what is alive at its peak. */
#include "config.h"

#include "runner/cli/plan-report.h"

const char *const rn_plan_phase_names[RN_PLAN_N_PHASES] = { [RN_PHASE_FORWARD] = "forward",
                                                            [RN_PHASE_RECOMPUTE] = "computing again",
                                                            [RN_PHASE_BACKWARD] = "backward",
                                                            [RN_PHASE_UPDATE] = "update",
                                                            [RN_PHASE_MOVE] = "to or from host memory" };

/* The largest workspace of the other ops that belong to the forward op @i. */
static gsize
other_workspace (const RnPlan *plan, int i)
{
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  gsize bytes = 0;

  for (int k = i + 1; k < (int) plan->graph->ops->len; k++)
    {
      const RnGraphOp *other = rn_graph_op (plan->graph, k);
      if (other->group == op->group && g_str_equal (other->scope, op->scope))
        bytes = MAX (bytes, plan->prepared[k].workspace_bytes);
    }
  return bytes;
}

static gboolean
is_computed_again (const RnGraph *graph, int i)
{
  const RnGraphOp *op = rn_graph_op (graph, i);

  for (int k = i + 1; k < (int) graph->ops->len; k++)
    {
      const RnGraphOp *other = rn_graph_op (graph, k);
      if (other->phase == RN_PHASE_RECOMPUTE && other->op == op->op && other->group == op->group
          && g_str_equal (other->scope, op->scope))
        return TRUE;
    }
  return FALSE;
}

/* Is the value in buffer @b copied to host memory? */
static gboolean
is_moved (const RnPlan *plan, int b)
{
  for (guint k = 0; k < plan->graph->ops->len; k++)
    {
      const RnGraphOp *op = rn_graph_op (plan->graph, (int) k);
      if (op->phase == RN_PHASE_MOVE && plan->buffer_of[op->in[0]] == b
          && rn_graph_value (plan->graph, op->out[0])->space == RN_SPACE_HOST)
        return TRUE;
    }
  return FALSE;
}

static RnPlanLayer
describe_layer (const RnPlan *plan, int i)
{
  const RnGraphOp *op = rn_graph_op (plan->graph, i);
  RnPlanLayer layer = {
    .scope = op->scope,
    .op = rn_op_name (op->op),
    .kernel = plan->prepared[i].kernel->name,
    .dst = plan->calls[i].out[0],
    .macs = rn_op_cost (&plan->calls[i]).macs,
    .out_bytes = rn_desc_bytes (&plan->calls[i].out[0]),
    .workspace_bytes = MAX (plan->prepared[i].workspace_bytes, other_workspace (plan, i)),
    .measure = plan->measures != NULL ? &plan->measures[i] : NULL,
  };
  int b = op->out[0] != RN_NO_VALUE ? plan->buffer_of[op->out[0]] : -1;

  if (b < 0 || plan->buffers[b].first != i)
    return layer;
  RnPhase last_reader = rn_graph_op (plan->graph, plan->buffers[b].last)->phase;
  if (is_moved (plan, b))
    layer.offloaded_bytes = plan->buffers[b].bytes;
  else if (last_reader != RN_PHASE_FORWARD)
    layer.kept_bytes = plan->buffers[b].bytes;
  else if (is_computed_again (plan->graph, i))
    layer.recomputed_bytes = plan->buffers[b].bytes;
  return layer;
}

GArray *
rn_plan_layers (const RnPlan *plan)
{
  GArray *layers = g_array_new (FALSE, FALSE, sizeof (RnPlanLayer));

  for (int i = 0; i < (int) plan->graph->ops->len; i++)
    if (rn_graph_op (plan->graph, i)->phase == RN_PHASE_FORWARD)
      {
        RnPlanLayer layer = describe_layer (plan, i);
        g_array_append_val (layers, layer);
      }
  return layers;
}

/* ---- the peak ---- */

static const char *
kind_name (RnValueKind kind)
{
  switch (kind)
    {
    case RN_VALUE_INPUT:
      return "input";
    case RN_VALUE_GRADIENT:
      return "gradient";
    default:
      return "activation";
    }
}

static int
compare_sizes (gconstpointer a, gconstpointer b)
{
  gsize x = ((const RnPeakBuffer *) a)->bytes, y = ((const RnPeakBuffer *) b)->bytes;

  return x > y ? -1 : x < y;
}

GArray *
rn_plan_peak (const RnPlan *plan)
{
  GArray *alive = g_array_new (FALSE, FALSE, sizeof (RnPeakBuffer));

  for (int b = 0; b < plan->n_device_buffers; b++)
    {
      const RnBuffer *buffer = &plan->buffers[b];
      if (buffer->first > plan->peak_op || buffer->last < plan->peak_op)
        continue;
      RnPeakBuffer peak = { .bytes = buffer->bytes };
      if (buffer->value == RN_NO_VALUE)
        {
          peak.name = rn_graph_op (plan->graph, buffer->op)->scope;
          peak.kind = "workspace";
        }
      else
        {
          peak.name = rn_graph_value (plan->graph, buffer->value)->name;
          peak.kind = kind_name (rn_graph_value (plan->graph, buffer->value)->kind);
        }
      g_array_append_val (alive, peak);
    }
  g_array_sort (alive, compare_sizes);
  return alive;
}
