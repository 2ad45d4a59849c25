/* counting.h: the key `by_epoch` of schedules, loggers and checkpoints: what they count. */
#ifndef HOOKS_COUNTING_H
#define HOOKS_COUNTING_H

#include <runner/engine.h>

G_BEGIN_DECLS

enum
{
  RN_BY_ITER,
  RN_BY_EPOCH,
  RN_BY_RUNNER, /* as the runner does */
};

/* "false", "true", "auto", for RN_KEY_ENUM; NULL-ended. */
extern const char *const rn_by_epoch_names[];

/* @by_epoch: RN_BY_* */
gboolean rn_counts_epochs (int by_epoch, const RnRunner *runner);

G_END_DECLS

#endif
