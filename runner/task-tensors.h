/* task-tensors.h: all tensors of a training in a checkpoint: weights, the optimizer's state, pending
 * gradients, running mean. */
#ifndef RUNNER_TASK_TENSORS_H
#define RUNNER_TASK_TENSORS_H

#include "runner/job.h"
#include "runner/safetensors.h"

G_BEGIN_DECLS

/* @what: RN_TENSORS_*. @n_steps: that made the optimizer's state; with 0 there is none. */
void rn_task_tensors_add (RnPrograms *programs, gint64 n_steps, guint what, RnSafetensorsWriter *writer);

/*
 * Reads what the run has a place for. *@found: RN_TENSORS_*. *@n_steps is set where the optimizer's state was
 * found, at least 1. Says what the file has and the run does not take. Errors: RN_CHECKPOINT_ERROR_MISMATCH.
 */
gboolean rn_task_tensors_load (RnJob *job, const RnSafetensors *file, gint64 *n_steps, guint *found,
                               GError **error);

G_END_DECLS

#endif
