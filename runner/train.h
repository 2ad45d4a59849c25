/* train.h: from a configuration to a run that is ready to start. */
#ifndef RUNNER_TRAIN_H
#define RUNNER_TRAIN_H

#include "runner/job.h"
#include "runner/optimizer.h"
#include "runner/runner.h"
#include "runner/weights/load-start.h"

G_BEGIN_DECLS

typedef struct
{
  RnJob *job;
  RnOptimizer *optimizer;
  RnStartWeights *start; /* NULL once they are loaded, or when the run is resumed */
  RnTask *task;
  RnRunner *runner;
} RnTraining;

/**
 * rn_training_new:
 * @job: (transfer full): nothing of it opened yet; its work_dir must exist
 * @timestamp: "20240501_123000", names the logs; NULL: now
 * @is_resumed: a checkpoint will be loaded over the weights, so those to start from are not looked for
 *
 * Indexes the data, plans every shape, checks that the run fits, allocates and touches its memory, draws the
 * weights or loads those to start from, and makes the hooks. Says on the way what will be used.
 *
 * Errors: RN_CONFIG_ERROR, RN_DATA_ERROR, RN_CHECKPOINT_ERROR, RN_DEVICE_ERROR_MEMORY when it
 * would not fit.
 */
RnTraining *rn_training_new (RnJob *job, const char *timestamp, gboolean is_resumed, GError **error);
void rn_training_free (RnTraining *training);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnTraining, rn_training_free)

G_END_DECLS

#endif
