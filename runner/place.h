/* place.h: where in its workflow a run stands. It is part of the counters that a checkpoint keeps. */
#ifndef RUNNER_PLACE_H
#define RUNNER_PLACE_H

#include "runner/runner-private.h"

G_BEGIN_DECLS

const RnWorkflowItem *rn_place_item (const RnRunner *runner);
/* Before the first item, nothing of it done? */
gboolean rn_place_is_start (const RnRunner *runner);
/* @n more epochs or iterations of the item are done: the last one leads to the next item. */
void rn_place_advance (RnRunner *runner, gint64 n);
/* The item ends here, done or not. */
void rn_place_leave (RnRunner *runner);

void rn_place_save (const RnRunner *runner, RnRecord *record);
/*
 * Reads what rn_place_save wrote into @counters, whose other members are set. Without such a record, or with
 * that of another workflow, the run goes on in its first train item. FALSE when it cannot be.
 */
gboolean rn_place_load (const RnRunner *runner, const RnRecord *record, RnCounters *counters);

G_END_DECLS

#endif
