/* plan-measure.c: a step that is run as it was planned, to compare both. */
#include "config.h"

#include "runner/cli/plan-report.h"

#include "runner/cli/bench-run.h"

static gsize
align (gsize bytes)
{
  return (bytes + RN_ARENA_ALIGNMENT - 1) / RN_ARENA_ALIGNMENT * RN_ARENA_ALIGNMENT;
}

/* Does the scratch of an op reach from byte @from of the arena to its end? */
static gboolean
ends_in_scratch (const RnPlan *plan, gsize from)
{
  for (int b = 0; b < plan->n_device_buffers; b++)
    {
      const RnBuffer *buffer = &plan->buffers[b];
      if (buffer->value == RN_NO_VALUE && buffer->offset <= from
          && align (buffer->offset + buffer->bytes) == align (plan->arena_bytes))
        return TRUE;
    }
  return FALSE;
}

gboolean
rn_plan_measure (RnJob *job, RnPlanMeasure *measure, GError **error)
{
  const RnBenchOptions options = { .iters = 1, .check = TRUE };
  RnMemory memory = rn_programs_memory (job->programs);
  RnBenchResult result;

  if (!rn_bench_run (job, &options, &result, error))
    return FALSE;
  const RnPlan *plan = rn_programs_get_plan (job->programs, memory.worst, error);
  if (plan == NULL)
    return FALSE;
  *measure = (RnPlanMeasure){
    .arena_bytes = align ((gsize) result.arena_bytes),
    .highest_byte = align ((gsize) result.highest_arena_byte),
    .host_bytes = align (memory.host_arena_bytes),
    .highest_host_byte = align ((gsize) result.highest_host_byte),
  };
  if (ends_in_scratch (plan, measure->highest_byte))
    measure->unused_scratch_bytes = measure->arena_bytes - measure->highest_byte;
  return TRUE;
}

gsize
rn_plan_measure_difference (const RnPlanMeasure *measure)
{
  return measure->arena_bytes - measure->highest_byte - measure->unused_scratch_bytes + measure->host_bytes
         - measure->highest_host_byte;
}
