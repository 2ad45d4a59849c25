/* auto-scale-lr.h: MMDetection's auto_scale_lr: a learning rate that belongs to one batch size, for another.
 */
#ifndef RUNNER_AUTO_SCALE_LR_H
#define RUNNER_AUTO_SCALE_LR_H

#include "runner/optimizer.h"
#include "runner/run-config.h"

G_BEGIN_DECLS

/* Iterations whose gradients make one step: `cumulative_iters` of the optimizer hook, or 1. */
gint64 rn_iters_of_step (const RnRunConfig *config);

/**
 * rn_auto_scale_lr:
 * @batch_size: images of an iteration
 *
 * Reads the map `auto_scale_lr` and, if it is enabled, multiplies the learning rate of @optimizer by the
 * images of a step over its base_batch_size; says so with all factors. To be called once, when
 * optimizer_config is known to be good and before there is a runner.
 *
 * Errors: RN_CONFIG_ERROR.
 */
gboolean rn_auto_scale_lr (const RnRunConfig *config, gint64 batch_size, RnOptimizer *optimizer,
                           GError **error);

G_END_DECLS

#endif
