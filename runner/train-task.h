/* train-task.h: the task of a training run: loaders, programs and weights of a job. */
#ifndef RUNNER_TRAIN_TASK_H
#define RUNNER_TRAIN_TASK_H

#include "runner/job.h"
#include "runner/task.h"

G_BEGIN_DECLS

/*
 * @job: lent; its training split is open and its programs are planned (but reserved only before the first
 * step). Where its validation split is open too, the task can evaluate; where RN_SPLIT_VAL_LOSS is, it
 * has validation losses. (transfer full)
 */
RnTask *rn_train_task_new (RnJob *job, GError **error);
void rn_train_task_free (RnTask *task);
/* Bytes of the loaders' buffers. */
gsize rn_train_task_loader_bytes (const RnTask *task);

G_END_DECLS

#endif
