/* programs-step.c: what the graph of a training step says of the model. */
#include "config.h"

#include "runner/programs-private.h"

/* The graph of one training shape: they differ in sizes only. */
static const RnGraph *
training_graph (RnPrograms *p, GError **error)
{
  for (int i = 0; i < p->n_shapes; i++)
    if (p->shapes[i].mode == RN_MODE_TRAIN)
      {
        const RnPlan *plan = rn_programs_get_plan (p, p->shapes[i], error);
        return plan != NULL ? plan->graph : NULL;
      }
  g_return_val_if_reached (NULL);
}

static char **
unreached_params (const RnGraph *graph)
{
  g_autofree gboolean *is_reached = g_new0 (gboolean, rn_param_set_size (graph->params));
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();

  for (int i = 0; i < (int) graph->ops->len; i++)
    for (int slot = 0; slot < RN_OP_MAX_OUT; slot++)
      {
        const RnGraphOp *op = rn_graph_op (graph, i);
        const RnValue *value = op->out[slot] != RN_NO_VALUE ? rn_graph_value (graph, op->out[slot]) : NULL;
        gboolean is_gradient = value != NULL
                               && (value->kind == RN_VALUE_PARAM_GRAD
                                   || (value->kind == RN_VALUE_GRADIENT && op->op != RN_OP_ZERO));
        if (is_gradient && value->param >= 0)
          is_reached[value->param] = TRUE;
      }
  for (int i = 0; i < rn_param_set_size (graph->params); i++)
    if (rn_param_set_get (graph->params, i)->trainable && !is_reached[i])
      g_strv_builder_add (names, rn_param_set_get (graph->params, i)->name);
  return g_strv_builder_end (names);
}

gboolean
rn_programs_describe_step (RnPrograms *p, RnStepFacts *facts, GError **error)
{
  const RnGraph *graph = training_graph (p, error);

  if (graph == NULL)
    return FALSE;
  facts->unreached_params = unreached_params (graph);
  facts->has_live_batch_norm = rn_graph_has_live_batch_norm (graph);
  return TRUE;
}
