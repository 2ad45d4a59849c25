/* update-graph.c: the update is a graph as the others are, so that its scratch is planned and its kernels are
 * chosen in the same way. */
#include "config.h"

#include "graph/update-graph.h"

static void
add_stats (RnGraph *graph)
{
  gint64 n_floats = (gint64) (rn_param_set_grad_bytes (graph->params) / sizeof (float));
  RnValueId grads =
      rn_graph_add_value (graph, "grads", rn_desc_vector (RN_F32, n_floats), RN_VALUE_PARAM_GRAD, -1);
  RnValueId stats = rn_graph_add_value (graph, "grad_stats", rn_desc_vector (RN_F32, RN_STATS_COUNT),
                                        RN_VALUE_ACTIVATION, -1);
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_GRAD_STATS, "grad_stats");

  op->in[RN_GRAD_STATS_GRAD] = grads;
  op->in[RN_GRAD_STATS_NORM_TYPE] = rn_graph_input (graph, "norm_type", rn_desc_vector (RN_F32, 1));
  op->out[0] = stats;
  rn_graph_mark_output (graph, stats);
}

static void
add_sgd (RnGraph *graph, const RnUpdateRule *rule, const RnParamUpdate *update, RnValueId hyper, int i)
{
  const RnParam *param = rn_param_set_get (graph->params, i);
  RnTensorDesc flat = rn_desc_vector (RN_F32, rn_desc_elements (&param->desc));
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_SGD, param->name);

  op->args.sgd = (RnSgdArgs){ .group = update->group,
                              .weight_decay = rule->weight_decay * update->decay_mult,
                              .dampening = (float) rule->dampening,
                              .nesterov = rule->nesterov };
  op->in[RN_SGD_GRAD] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_PARAM_GRAD, i);
  op->in[RN_SGD_HYPER] = hyper;
  op->out[RN_SGD_PARAM] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_PARAM, i);
  if (rule->momentum)
    op->out[RN_SGD_MOMENTUM] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_MOMENTUM, i);
}

RnGraph *
rn_update_graph_new (RnParamSet *params, const RnUpdateRule *rule, const RnParamUpdate *updates, int n_groups)
{
  static const RnParamUpdate plain = { 0, 1 };
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, params);
  RnValueId hyper = rn_graph_input (
      graph, "hyper", rn_desc_vector (RN_F32, RN_HYPER_COUNT + (gint64) n_groups * RN_GROUP_COUNT));

  add_stats (graph);
  for (int i = 0; i < rn_param_set_size (params); i++)
    if (rn_param_set_get (params, i)->trainable)
      add_sgd (graph, rule, updates != NULL ? &updates[i] : &plain, hyper, i);
  graph->turn = (int) graph->ops->len;
  return graph;
}
