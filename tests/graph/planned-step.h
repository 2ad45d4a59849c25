/* planned-step.h: a training step of a small network, planned and run in the checking mode. */
#ifndef TESTS_GRAPH_PLANNED_STEP_H
#define TESTS_GRAPH_PLANNED_STEP_H

#include "graph/executor.h"
#include "tests/graph/nets.h"

typedef void (*PlannedNet) (RnGraph *graph, const NetOptions *options);

typedef struct
{
  RnDevice *device; /* lent */
  RnParamSet *params;
  RnPlan *plan;
  RnArenas arenas;
  RnExecutor *executor;
} PlannedStep;

/* @passes: with update, there are no gradients. @n_states: arrays of the optimizer. Parameters, statistics
 * and inputs are the same for all steps of one network. */
void planned_step_init (PlannedStep *step, RnDevice *device, PlannedNet net, const NetOptions *net_options,
                        const RnPassOptions *passes, int n_states);
void planned_step_clear (PlannedStep *step);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PlannedStep, planned_step_clear)

/* Address of an input. */
void *planned_step_input (const PlannedStep *step, const char *name);
/* What planned_step_forward begins with. */
void planned_step_write_inputs (PlannedStep *step);
/* Writes the inputs and runs the forward program; then the backward one. */
void planned_step_forward (PlannedStep *step);
void planned_step_backward (PlannedStep *step);
/* All losses, in the order of the graph's values. (transfer full) of float */
GArray *planned_step_losses (const PlannedStep *step);
/* These, and behind them all gradients, in the order of the parameters. (transfer full) of float */
GArray *planned_step_results (const PlannedStep *step);

#endif
