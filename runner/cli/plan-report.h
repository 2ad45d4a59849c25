/*
 * plan-report.h: what `runner plan` shows, gathered once; plan-text.c and plan-json.c print it.
 */
#ifndef RUNNER_CLI_PLAN_REPORT_H
#define RUNNER_CLI_PLAN_REPORT_H

#include <json-glib/json-glib.h>
#include "runner/budget.h"
#include "runner/largest-batch.h"
#include "runner/strategies.h"

G_BEGIN_DECLS

/* By RnPhase: what the ops of a step are for. */
#define RN_PLAN_N_PHASES 5
extern const char *const rn_plan_phase_names[RN_PLAN_N_PHASES];

/* ---- layers ---- */

/* One forward op with what it costs in both programs. */
typedef struct
{
  const char *scope, *op, *kernel; /* lent */
  RnTensorDesc dst;
  gint64 macs; /* of the batch, forward */
  gsize out_bytes;
  /* Of the output: kept for backward; dropped and computed again; waiting in host memory meanwhile. 0 where
   * its storage is that of an earlier row. */
  gsize kept_bytes, recomputed_bytes, offloaded_bytes;
  gsize workspace_bytes;      /* the largest of its forward and backward ops */
  const RnOpMeasure *measure; /* of the forward op; NULL: nothing was run. Lent */
} RnPlanLayer;

/* Of RnPlanLayer, in the order of the ops. (transfer full) */
GArray *rn_plan_layers (const RnPlan *plan);

/* ---- the peak ---- */

typedef struct
{
  const char *name; /* lent */
  const char *kind; /* "activation", "gradient", "input", "workspace" */
  gsize bytes;
} RnPeakBuffer;

/* What is alive in the device's arena at plan->peak_op, of RnPeakBuffer, largest first. (transfer full) */
GArray *rn_plan_peak (const RnPlan *plan);

/* ---- strategies ---- */

typedef struct
{
  const RnStrategy *strategy;
  gboolean is_on;          /* in the configuration */
  char *refusal;           /* why it cannot be switched; NULL: prediction is there */
  RnPrediction prediction; /* of the configuration with it switched the other way */
} RnStrategyRow;

typedef struct
{
  RnPrediction base; /* of the configuration, for the largest shapes */
  GArray *rows;      /* of RnStrategyRow: what changes a plan */
} RnStrategyTable;

/* Plans the configuration with each strategy switched, one at a time. */
RnStrategyTable *rn_strategy_table_new (RnPredictor *predictor, const RnNode *root, GError **error);
void rn_strategy_table_free (RnStrategyTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnStrategyTable, rn_strategy_table_free)

/* ---- a checked step ---- */

/*
 * Bytes of the arenas: planned; and behind the last one written, rounded up as buffers are. What an op leaves
 * of its scratch at the end of the arena is apart: how much of it is needed can depend on the numbers.
 */
typedef struct
{
  gsize unused_scratch_bytes;
  gsize arena_bytes, highest_byte;
  gsize host_bytes, highest_host_byte;
} RnPlanMeasure;

/* Runs a step on random data, each op compared with its plan; @job: opened with check. */
gboolean rn_plan_measure (RnJob *job, RnPlanMeasure *measure, GError **error);
/* Other bytes that were planned and not written: 0, if all is well. */
gsize rn_plan_measure_difference (const RnPlanMeasure *measure);

/* ---- all of it ---- */

typedef struct
{
  RnJob *job;         /* lent; with a budget and what was chosen for it, or without */
  const RnPlan *plan; /* lent: of the worst shape */
  const RnStrategyTable *strategies;
  const RnLargestBatch *largest; /* NULL: not asked for */
  const RnPlanMeasure *measure;  /* likewise; plan->measures belong to it */
} RnPlanReport;

void rn_plan_print_text (const RnPlanReport *report);
void rn_plan_print_json (const RnPlanReport *report);
/* The timeline: live bytes over the ops of the step. @config_name: for its title. G_FILE_ERROR. */
gboolean rn_plan_write_png (const RnPlanReport *report, const char *config_name, const char *path,
                            GError **error);

G_END_DECLS

#endif
