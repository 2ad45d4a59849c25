/* update-graph.c: the update is a graph as the others are, so that its scratch is planned and its kernels are
 * chosen in the same way. */
#include "config.h"

#include "graph/update-graph.h"

RnGraph *
rn_update_graph_new (RnParamSet *params, const RnParamMultipliers *multipliers, gboolean momentum,
                     float dampening, gboolean nesterov)
{
  RnGraph *graph = rn_graph_new (RN_MODE_TRAIN, params);
  RnValueId hyper = rn_graph_input (graph, "hyper", rn_desc_vector (RN_F32, RN_HYPER_COUNT));

  gint64 n_floats = (gint64) (rn_param_set_grad_bytes (params) / sizeof (float));
  RnValueId grads =
      rn_graph_add_value (graph, "grads", rn_desc_vector (RN_F32, n_floats), RN_VALUE_PARAM_GRAD, -1);
  RnValueId norm =
      rn_graph_add_value (graph, "grad_norm", rn_desc_vector (RN_F32, 1), RN_VALUE_ACTIVATION, -1);
  RnGraphOp *op = rn_graph_append_op (graph, RN_OP_GRAD_NORM, "grad_norm");
  op->in[0] = grads;
  op->out[0] = norm;
  rn_graph_mark_output (graph, norm);

  for (int i = 0; i < rn_param_set_size (params); i++)
    {
      const RnParam *param = rn_param_set_get (params, i);
      if (!param->trainable)
        continue;
      RnTensorDesc flat = rn_desc_vector (RN_F32, rn_desc_elements (&param->desc));
      op = rn_graph_append_op (graph, RN_OP_SGD, param->name);
      op->args.sgd = (RnSgdArgs){ .lr_mult = multipliers ? multipliers[i].lr_mult : 1,
                                  .decay_mult = multipliers ? multipliers[i].decay_mult : 1,
                                  .dampening = dampening,
                                  .nesterov = nesterov };
      op->in[RN_SGD_GRAD] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_PARAM_GRAD, i);
      op->in[RN_SGD_HYPER] = hyper;
      op->out[RN_SGD_PARAM] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_PARAM, i);
      if (momentum)
        op->out[RN_SGD_MOMENTUM] = rn_graph_add_value (graph, param->name, flat, RN_VALUE_MOMENTUM, i);
    }
  graph->turn = (int) graph->ops->len;
  return graph;
}
