/*
 * step-run.h: fake runs for the optimizer hooks: batches of different sizes, gradients that overflow at will,
 * and what the hooks said.
 */
#ifndef TESTS_HOOKS_STEP_RUN_H
#define TESTS_HOOKS_STEP_RUN_H

#include "tests/runner/fake-task.h"

G_BEGIN_DECLS

/* 11 iterations in passes of 5, all of them logged. */
#define STEP_RUN                                                                                      \
  "runner: {type: IterBasedRunner, max_iters: 11}\noptimizer: {type: SGD, lr: 0.05, momentum: 0.9}\n" \
  "log_config: {interval: 1, hooks: [{type: TextLoggerHook}]}\n"
#define STEP_EPOCH 5

/* Batch @iter of a run has so many images, and so many positives. */
int step_run_images (gint64 iter);
float step_run_positives (gint64 iter);
/* What its gradient is for the weights @w: with loss scale 1, over one batch. */
void step_run_gradient (gint64 iter, const float *w, double *gradient);

/* Before step_run_open: bit i: an element of the gradient of iteration i becomes infinite. */
extern guint64 step_run_overflows;

/* Likewise: losses, and outcomes of guarded steps, come late. */
extern gboolean step_run_is_late;

/* As fake_run_open. */
void step_run_open (FakeRun *run, const char *yaml, const char *dir);
/* A new run to its end; closes it. @w: [FAKE_N] the weights. */
void step_run_weights (const char *yaml, float *w);

/* Lines of the log with losses, without times. (transfer full) */
GPtrArray *step_run_lines (const char *dir);
/* The value of @name in such a line; NAN if there is none. */
double step_run_value (const char *line, const char *name);

/* Collects what hooks say from now on, in place of printing it. */
void step_run_collect (void);
/* How many messages match @pattern; forgets all. */
guint step_run_count (const char *pattern);

G_END_DECLS

#endif
