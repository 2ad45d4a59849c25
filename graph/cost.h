/*
 * cost.h: how long a plan will take, without running it: what the budget planner compares plans by.
 *
 * An op takes the longer of two times: its multiply-adds at the rate of its kernel, and its bytes at the rate
 * of memory; and a little for being called. The rates are constants, measured with tests/graph/bench-cost: a
 * calibration on the spot would let noise decide which plan a run gets. They are rates of one kind of
 * machine, so only ratios of two predictions mean something elsewhere.
 */
#ifndef GRAPH_COST_H
#define GRAPH_COST_H

#include "graph/plan.h"

G_BEGIN_DECLS

/* Predicted seconds of one call with the kernel that was found for it. */
double rn_cost_op (const RnDevice *device, const RnOpCall *call, const RnPrepared *prepared);
/* Of all ops of @plan, one after the other. */
double rn_cost_plan (const RnPlan *plan);

/* Convolution multiply-adds of a plan, for the whole batch. */
typedef struct
{
  gint64 step;      /* of the ops that a plain step has */
  gint64 recompute; /* done once more to save memory */
} RnPlanWork;

RnPlanWork rn_cost_work (const RnPlan *plan);
/* What is done once more, in percent of the step. */
double rn_plan_work_extra (const RnPlanWork *work);

G_END_DECLS

#endif
