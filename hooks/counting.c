#include "config.h"

#include "hooks/counting.h"

const char *const rn_by_epoch_names[] = { "false", "true", "auto", NULL };

gboolean
rn_counts_epochs (int by_epoch, const RnRunner *runner)
{
  return by_epoch == RN_BY_RUNNER ? rn_runner_is_by_epoch (runner) : by_epoch == RN_BY_EPOCH;
}
