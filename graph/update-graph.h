/* update-graph.h: the update program: statistics of the gradients, then one optimizer op per trainable
 * parameter. */
#ifndef GRAPH_UPDATE_GRAPH_H
#define GRAPH_UPDATE_GRAPH_H

#include "graph/graph.h"

G_BEGIN_DECLS

/* What is the same for all parameters and all steps. */
typedef struct
{
  gboolean momentum; /* keep one */
  gboolean nesterov;
  double dampening;
  double weight_decay;
} RnUpdateRule;

/* Of one parameter. */
typedef struct
{
  int group; /* of the hyper vector: its learning rate */
  double decay_mult;
} RnParamUpdate;

/*
 * rn_update_graph_new:
 * @params: their order is the order of the ops
 * @updates: [rn_param_set_size], NULL: all in group 0, with weight decay as it is
 *
 * Inputs: "hyper" F32 [RN_HYPER_COUNT + @n_groups * RN_GROUP_COUNT], "norm_type" F32 [1]. Output:
 * "grad_stats" F32 [RN_STATS_COUNT], written by op 0, over all gradients as they lie; ops 1... are the
 * optimizer's.
 */
RnGraph *rn_update_graph_new (RnParamSet *params, const RnUpdateRule *rule, const RnParamUpdate *updates,
                              int n_groups);

G_END_DECLS

#endif
