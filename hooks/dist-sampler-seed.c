/* dist-sampler-seed.c: MMCV's DistSamplerSeedHook, which tells the sampler of each process the number of the
 * epoch. Ours draws every order from (seed, epoch), so there is nothing to tell. */
#include "config.h"

#include <runner/hook.h>

typedef struct
{
  RnHook hook;
} DistSamplerSeed;

static gboolean
before_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return TRUE;
}

RN_HOOK_DEFINE (
    dist_sampler_seed, DistSamplerSeed, .name = "DistSamplerSeedHook",
    .summary = "accepted for MMCV's sake; the order of the data follows from seed and epoch anyway",
    .before_epoch = before_epoch);
