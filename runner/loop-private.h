/* loop-private.h: what the training and the validation of a run share. */
#ifndef RUNNER_LOOP_PRIVATE_H
#define RUNNER_LOOP_PRIVATE_H

#include "runner/runner-private.h"

G_BEGIN_DECLS

/* Hooks may ask for the end at any time, the system too. */
gboolean rn_runner_must_leave (RnRunner *runner);
/* The hooks of a stage, their time counted. */
gboolean rn_runner_call_stage (RnRunner *runner, RnStage stage, GError **error);
/* Writes the checkpoints that hooks asked for; their time counts as the hooks'. */
gboolean rn_runner_flush (RnRunner *runner, GError **error);
/* Lent until it is released; NULL without error at the end of the data. */
const RnBatch *rn_runner_next_batch (RnRunner *runner, RnTaskData data, GError **error);
/* Of the current batch; its losses are expected then. */
gboolean rn_runner_forward (RnRunner *runner, RnMode mode, float grad_scale, GError **error);
/* Puts the iteration that runs in front of an error. */
void rn_runner_name_iter (const RnRunner *runner, GError **error);

#define RN_LOSS_HELP                                                       \
  "what usually helps: a smaller optimizer.lr, lr_config.warmup: linear, " \
  "optimizer_config.grad_clip: {max_norm: 35}"

/* The losses of a forward pass are logged now, or later if they come late. */
gboolean rn_runner_expect_losses (RnRunner *runner, GError **error);
/* They are logged, and checked: FALSE when they could not be had, or have been bad for too long. *@error may
 * be one that followed from it, and is replaced. */
gboolean rn_runner_check_losses (RnRunner *runner, GError **error);

/* The same with the guarded step behind them that may be due. */
gboolean rn_runner_check_step (RnRunner *runner, GError **error);

/* One pass of the val item at which the run stands, or of a run counted in iterations all of it. */
gboolean rn_runner_validate (RnRunner *runner, GError **error);

G_END_DECLS

#endif
