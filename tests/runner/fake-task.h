/*
 * fake-task.h: a task without pixels: four weights that follow a sequence of numbers by SGD, as fast as a
 * test wants it, and a run around it in a folder of its own.
 */
#ifndef TESTS_RUNNER_FAKE_TASK_H
#define TESTS_RUNNER_FAKE_TASK_H

#include "runner/runner.h"

G_BEGIN_DECLS

#define FAKE_N 4
#define FAKE_CACHE_BYTES (3 << 20) /* that come free when the cache is emptied */

/* Configurations of runs; @rest are further lines. */
#define BY_ITER(max, rest)                           \
  "runner: {type: IterBasedRunner, max_iters: " #max \
  "}\nlog_config: {interval: 4, hooks: [{type: TextLoggerHook}]}\n" rest
#define BY_EPOCH(max, rest)                            \
  "runner: {type: EpochBasedRunner, max_epochs: " #max \
  "}\nlog_config: {interval: 4, hooks: [{type: TextLoggerHook}]}\n" rest

typedef struct
{
  RnTask task;     /* first */
  RnTaskVtbl vtbl; /* a copy, so that a test may take evaluation away */
  RnBatch batch;
  float w[FAKE_N], momentum[FAKE_N], grads[FAKE_N], ema[FAKE_N];
  float grad_scale;
  double grad_norm;  /* given instead of the real one when above 0 */
  RnGradStats stats; /* of the last guarded step */
  gboolean is_skipped;
  double losses[3];        /* of the last forward: loss_cls, loss_bbox, loss */
  gboolean has_due_losses; /* of a late task: they are NaN until they are settled */
  guint64 epoch;
  gint64 next;       /* batch of the epoch */
  RnBatch val_batch; /* of two images, the last one of a pass of one */
  gint64 val_next;
  gboolean is_val;      /* the last forward was of validation data; set task.val_length to have some */
  const double *scores; /* mAP of the first evaluation, the second, ... */
  guint n_scores, n_evaluations;
  int signal_in_evaluation; /* raised in the evaluation of this number, counted from 1; 0: never */
  GString *trace;           /* (nullable) lent: gets "forward", "backward", ... */
} FakeTask;

void fake_task_init (FakeTask *fake, gint64 epoch_length);

/* From now on the host has to wait for losses and for the outcome of guarded steps; the trace gets "settle"
 * and "outcome" where it does. */
void fake_task_be_late (FakeTask *fake);

/* A run of a fake task. */
typedef struct
{
  FakeTask fake;
  char *dir;    /* work dir, new */
  RnNode *root; /* owned */
  RnRunConfig config;
  RnOptimizer *optimizer;
  RnRunner *runner;
} FakeRun;

/* @yaml: the parts of a configuration file that the runner reads; `optimizer:` may be left out. @dir NULL: a
 * new one. */
void fake_run_open (FakeRun *run, const char *yaml, gint64 epoch_length, const char *dir);
/* The same in a new folder, and init; with what is wrong in the configuration as @error. To be closed in any
 * case. */
gboolean fake_run_try (FakeRun *run, const char *yaml, gint64 epoch_length, GError **error);
/* init and run; must succeed. */
void fake_run_go (FakeRun *run);
/* init and resume; must succeed. */
void fake_run_resume (FakeRun *run, const char *path);
/* Frees all but the folder. */
void fake_run_close (FakeRun *run);
/* Deletes @dir and the files in it. */
void fake_run_remove (const char *dir);

/* The newest log.json in @dir, its lines but those that say what run it is. (transfer full) */
GPtrArray *fake_run_json_lines (const char *dir);
/* The same without what depends on the clock and on the process, as "name=value;" with all digits. (transfer
 * full) */
GPtrArray *fake_run_timeless_lines (const char *dir);
/* Names of files in @dir that end in @suffix, sorted, separated by spaces. (transfer full) */
char *fake_run_files (const char *dir, const char *suffix);

/* The checkpoints in @dir are @expected: names, sorted, separated by spaces. */
void fake_run_assert_files (const char *dir, const char *expected);
/* Contents of @dir/last_checkpoint. (transfer full) */
char *fake_run_read_list (const char *dir);

G_END_DECLS

#endif
