/* update-graph.h: the update program: gradient norm, then one optimizer op per trainable parameter. */
#ifndef GRAPH_UPDATE_GRAPH_H
#define GRAPH_UPDATE_GRAPH_H

#include "graph/graph.h"

G_BEGIN_DECLS

/* Of one parameter, by paramwise_cfg. */
typedef struct
{
  float lr_mult, decay_mult;
} RnParamMultipliers;

/*
 * rn_update_graph_new:
 * @params: their order is the order of the ops
 * @multipliers: [rn_param_set_size], NULL: all 1
 *
 * Inputs: "hyper" F32 [RN_HYPER_COUNT]. Output: "grad_norm" F32 [1], written by op 0; ops 1... are SGD. The
 * norm covers all gradients as they lie.
 */
RnGraph *rn_update_graph_new (RnParamSet *params, const RnParamMultipliers *multipliers, gboolean momentum,
                              float dampening, gboolean nesterov);

G_END_DECLS

#endif
