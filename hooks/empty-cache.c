/* empty-cache.c: MMCV's EmptyCacheHook. */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  RnHook hook;
  gboolean before_epoch, after_epoch, after_iter;
} EmptyCache;

static const RnKeySpec keys[] = {
  RN_KEY (EmptyCache, before_epoch, RN_KEY_BOOL, "false", "before each epoch, of training and validation"),
  RN_KEY (EmptyCache, after_epoch, RN_KEY_BOOL, "true", "after each epoch"),
  RN_KEY (EmptyCache, after_iter, RN_KEY_BOOL, "false", "after each iteration"),
  RN_KEY_END,
};

static gboolean
empty_if (gboolean wanted, RnRunner *runner)
{
  if (wanted)
    g_message ("EmptyCacheHook: %.1f MiB given back", (double) rn_runner_empty_cache (runner) / (1 << 20));
  return TRUE;
}

static gboolean
before_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return empty_if (((const EmptyCache *) hook)->before_epoch, runner);
}

static gboolean
after_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return empty_if (((const EmptyCache *) hook)->after_epoch, runner);
}

static gboolean
after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  return empty_if (((const EmptyCache *) hook)->after_iter, runner);
}

RN_HOOK_DEFINE (empty_cache, EmptyCache, .name = "EmptyCacheHook",
                .summary = "gives memory above the plan of the current shape back to the system",
                .keys = keys, .before_epoch = before_epoch, .after_iter = after_iter,
                .after_epoch = after_epoch);
