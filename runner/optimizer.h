/* optimizer.h: the `optimizer:` part of the configuration. */
#ifndef RUNNER_OPTIMIZER_H
#define RUNNER_OPTIMIZER_H

#include <glib.h>
#include <runner/node.h>
#include "graph/params.h"
#include "runner/programs.h"

G_BEGIN_DECLS

typedef struct _RnOptimizer RnOptimizer;

/* Registers the family "optimizer". May be called again. */
void rn_optimizers_register (void);

/* From a map with `type:`: SGD, Adam or AdamW, with the meaning of torch.optim's. (transfer full) */
RnOptimizer *rn_optimizer_new (const RnNode *config, GError **error);
void rn_optimizer_free (RnOptimizer *optimizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnOptimizer, rn_optimizer_free)

double rn_optimizer_lr (const RnOptimizer *optimizer);
/* Before a runner has it: auto_scale_lr. */
void rn_optimizer_scale_lr (RnOptimizer *optimizer, double factor);
double rn_optimizer_momentum (const RnOptimizer *optimizer); /* of SGD; beta1 of Adam */
/* What an update does, beside learning rate and momentum. */
RnUpdateRule rn_optimizer_rule (const RnOptimizer *optimizer);
/* The same in a run with @momentum_config (nullable): a momentum that may rise above 0 later is kept. */
RnUpdateRule rn_optimizer_scheduled_rule (const RnOptimizer *optimizer, const RnNode *momentum_config);

/* What `paramwise_cfg` says of one parameter: MMCV's DefaultOptimizerConstructor. */
RnParamMultipliers rn_optimizer_multipliers (const RnOptimizer *optimizer, const RnParam *param);

G_END_DECLS

#endif
