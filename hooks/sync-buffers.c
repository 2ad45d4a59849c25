/* sync-buffers.c: MMCV's SyncBuffersHook, which makes the statistics of batch norms those of all processes. A
 * run is one process: there is nothing to make equal. */
#include "config.h"

#include <runner/hook.h>

typedef struct
{
  RnHook hook;
  gboolean distributed;
} SyncBuffers;

static const RnKeySpec keys[] = {
  RN_KEY (SyncBuffers, distributed, RN_KEY_BOOL, "true", "makes no difference in a run of one process"),
  RN_KEY_END,
};

static gboolean
after_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return TRUE;
}

RN_HOOK_DEFINE (sync_buffers, SyncBuffers, .name = "SyncBuffersHook",
                .summary = "accepted for MMCV's sake; there is one process, whose buffers are its own",
                .keys = keys, .after_epoch = after_epoch);
