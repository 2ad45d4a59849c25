/* bench-run.h: one measurement of `runner bench`: steps of a configuration on random data, in this process.
 */
#ifndef RUNNER_CLI_BENCH_RUN_H
#define RUNNER_CLI_BENCH_RUN_H

#include <json-glib/json-glib.h>
#include "runner/job.h"

G_BEGIN_DECLS

typedef enum
{
  RN_BENCH_FORWARD,
  RN_BENCH_BACKWARD,
  RN_BENCH_UPDATE,
  RN_BENCH_N_PHASES
} RnBenchPhase;

extern const char *const rn_bench_phase_names[RN_BENCH_N_PHASES];

typedef struct
{
  int iters, warmup; /* counted iterations, and those before them */
  gboolean check;    /* every op is compared with the plan: slow */
} RnBenchOptions;

/* Times are seconds, medians over the windows of accumulation, each divided by its iterations. */
typedef struct
{
  gint64 iters; /* counted */
  double seconds, phases[RN_BENCH_N_PHASES];
  double first_loss, loss;                       /* of the first and of the last iteration */
  gint64 planned_bytes, arena_bytes, host_bytes; /* host: beside the others, what waits there */
  gint64 highest_arena_byte, highest_host_byte;  /* behind the last byte that the steps wrote */
  gint64 measured_bytes;                         /* static bytes and the arena up to that byte */
  gint64 peak_resident_bytes;                    /* of the process */
  /*
   * Of a device with memory of its own, else 0: the most that was taken on it, by whoever, when it was opened
   * (its context is in that) and behind any step; and what of the difference is not planned.
   */
  gint64 device_opened_bytes, device_used_bytes, outside_plan_bytes;
  gint64 step_macs, recompute_macs; /* convolutions of one iteration, see graph/cost.h */
} RnBenchResult;

/*
 * @job: with programs that are planned, and nothing reserved. The iterations are rounded up to whole steps of
 * the optimizer. Errors: RN_DEVICE_ERROR_MEMORY when it would not fit.
 */
gboolean rn_bench_run (RnJob *job, const RnBenchOptions *options, RnBenchResult *result, GError **error);

/* The steps of a job, one by one: what rn_bench_run repeats. */
typedef struct _RnBenchSteps RnBenchSteps;

/* Takes the memory of @job, whose programs are planned. Errors: as rn_bench_run. */
RnBenchSteps *rn_bench_steps_new (RnJob *job, GError **error);
void rn_bench_steps_free (RnBenchSteps *steps);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBenchSteps, rn_bench_steps_free)
/* Iterations of one step: those of a window of accumulation. */
int rn_bench_steps_window (const RnBenchSteps *steps);
/* One step of the optimizer: seconds of each phase, per iteration, and the loss of its first one. */
gboolean rn_bench_steps_run (RnBenchSteps *steps, double phases[RN_BENCH_N_PHASES], double *first_loss,
                             GError **error);

/* Of an array of double, not empty, which stays as it is. */
double rn_bench_median (const GArray *values);

/* Members of an object that is begun. */
void rn_bench_result_add (const RnBenchResult *result, JsonBuilder *builder);
/* FALSE: a member is missing. */
gboolean rn_bench_result_read (RnBenchResult *result, JsonObject *object);

G_END_DECLS

#endif
