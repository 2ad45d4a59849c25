/*
 * run-history.h: the runs that have led to a checkpoint, the first one first.
 *
 * One that is taken up may have other batches, another release of the program or a changed configuration
 * behind it, of which the configuration in the file does not know. In a checkpoint it is text, a JSON object
 * a run and line: "started", "version", "device", "iter", "epoch" and "opt_step" where it began,
 * "batch_size", "world_size", "epoch_length", "max_iters", "lr", and of a resumed run "checkpoint" and
 * "changed", a line a difference.
 */
#ifndef RUNNER_RUN_HISTORY_H
#define RUNNER_RUN_HISTORY_H

#include "runner/runner-private.h"

G_BEGIN_DECLS

/* Takes over what a checkpoint has; @text (nullable) may be anything. */
void rn_run_history_load (RnRunner *runner, const char *text);
/* A difference between the run of the checkpoint and this one, on one line. */
void rn_run_history_add_change (RnRunner *runner, const char *change);
/* Adds this run, when it begins. */
void rn_run_history_begin (RnRunner *runner);
/* NULL before rn_run_history_begin. (transfer full) */
char *rn_run_history_text (const RnRunner *runner);

G_END_DECLS

#endif
