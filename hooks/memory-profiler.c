/* memory-profiler.c: MMDetection's MemoryProfilerHook: a line on the memory of the machine and of the
 * process.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  RnHook hook;
  gint64 interval;
} MemoryProfiler;

static const RnKeySpec keys[] = {
  RN_KEY (MemoryProfiler, interval, RN_KEY_INT, "50", "iterations between two lines", .min = 1, .max = 1e9),
  RN_KEY_END,
};

static double
percent (guint64 part, guint64 whole)
{
  return whole > 0 ? 100 * (double) part / (double) whole : 0;
}

static gboolean
after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  const MemoryProfiler *self = (const MemoryProfiler *) hook;
  gboolean is_due = rn_runner_is_validating (runner) ? rn_runner_every_n_inner_iters (runner, self->interval)
                                                     : rn_runner_every_n_iters (runner, self->interval);
  RnSystemMemory system;
  guint64 current, peak;

  if (!is_due)
    return TRUE;
  rn_system_memory (&system);
  rn_runner_memory (runner, &current, &peak);
  guint64 used = system.total - MIN (system.available, system.total),
          swap_used = system.swap_total - MIN (system.swap_free, system.swap_total);
  g_message ("Memory information available_memory: %" G_GUINT64_FORMAT " MB, used_memory: %" G_GUINT64_FORMAT
             " MB, memory_utilization: %.1f %%, available_swap_memory: %" G_GUINT64_FORMAT
             " MB, used_swap_memory: %" G_GUINT64_FORMAT
             " MB, swap_memory_utilization: %.1f %%, current_process_memory: %" G_GUINT64_FORMAT
             " MB, peak_process_memory: %" G_GUINT64_FORMAT " MB",
             system.available >> 20, used >> 20, percent (used, system.total),
             (system.swap_total - swap_used) >> 20, swap_used >> 20, percent (swap_used, system.swap_total),
             current >> 20, peak >> 20);
  return TRUE;
}

RN_HOOK_DEFINE (memory_profiler, MemoryProfiler, .name = "MemoryProfilerHook",
                .summary = "a line on the memory of the machine and of the process, in MiB", .keys = keys,
                .after_iter = after_iter);
