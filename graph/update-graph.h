/* update-graph.h: the update program: statistics of the gradients, what they mean for the step, one optimizer
 * op per trainable parameter, and what keeps a running mean of the weights. */
#ifndef GRAPH_UPDATE_GRAPH_H
#define GRAPH_UPDATE_GRAPH_H

#include "graph/graph.h"

G_BEGIN_DECLS

typedef enum
{
  RN_UPDATE_SGD,
  RN_UPDATE_ADAM,
} RnUpdateKind;

/* What is the same for all parameters and all steps: see the ops SGD and ADAM. Zeros are plain SGD. */
typedef struct
{
  RnUpdateKind kind;
  double weight_decay;
  /* SGD */
  gboolean momentum; /* keep one */
  gboolean nesterov;
  double dampening;
  /* ADAM */
  double beta2, eps;
  gboolean amsgrad, decoupled;
} RnUpdateRule;

/* Names of the arrays that the optimizer keeps, as torch.optim has them, in order. Returns how many. */
int rn_update_rule_states (const RnUpdateRule *rule, const char *names[RN_PARAM_MAX_STATES]);

/* Of one parameter. */
typedef struct
{
  int group; /* of the hyper vector: its learning rate */
  double decay_mult;
} RnParamUpdate;

typedef struct
{
  RnUpdateRule rule;
  const RnParamUpdate *updates; /* [rn_param_set_size]; NULL: all in group 0, with weight decay as it is */
  int n_groups;                 /* at least 1 */
  gboolean ema;                 /* keep a running mean */
  gboolean in_backward;         /* the steps are in the backward programs, and gradients in no array */
} RnUpdateSpec;

/* Adds the input "hyper" F32 [RN_HYPER_COUNT + n_groups * RN_GROUP_COUNT]. */
RnValueId rn_update_add_hyper (RnGraph *graph, const RnUpdateSpec *spec);
/*
 * Inserts the optimizer's op of parameter @param at @position, and with states in host memory two copies for
 * each around it; @grad: its gradient, @hyper: the hyper vector.
 */
void rn_update_insert_step (RnGraph *graph, int position, const RnUpdateSpec *spec, int param, RnValueId grad,
                            RnValueId hyper);

/* Where the parts of the program begin. Statistics are op 0, and STEP_GUARD comes behind them: a step that is
 * run from there is guarded, one that is run from @step takes the hyper vector as it is. */
typedef struct
{
  int step;      /* the optimizer's ops of each trainable parameter */
  int ema, swap; /* all parameters and buffers; the exchange of weights and mean, one op */
  int end;
} RnUpdateParts;

/*
 * rn_update_graph_new:
 * @params: their order is the order of the ops
 * @parts: (out) (optional)
 *
 * Inputs: "hyper", "norm_type" F32 [1]; with a running mean
 * "ema_momentum" and "ema_momentum_buffers" F32 [1]. Output: "grad_stats" F32 [RN_STATS_COUNT], over all
 * gradients as they lie. With @spec->in_backward nothing is left of it but the running mean.
 */
RnGraph *rn_update_graph_new (RnParamSet *params, const RnUpdateSpec *spec, RnUpdateParts *parts);

G_END_DECLS

#endif
