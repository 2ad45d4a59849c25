/* runner-private.h: the Runner's struct, for the files that implement it. */
#ifndef RUNNER_RUNNER_PRIVATE_H
#define RUNNER_RUNNER_PRIVATE_H

#include "runner/hook-list.h"
#include "runner/log-buffer.h"
#include "runner/runner.h"

G_BEGIN_DECLS

typedef struct
{
  gint64 iter, epoch,
      inner_iter;  /* finished iterations, passes of the data, iterations of the current pass */
  gint64 opt_step; /* performed optimizer steps */
} RnCounters;

/* A request with the hook that is to blame if it fails, and copies of the strings. */
typedef struct
{
  RnHook *hook;
  RnStage stage;
  RnCheckpointRequest request;
} RnPendingCheckpoint;

struct _RnRunner
{
  RnTask *task;
  gboolean is_by_epoch;
  gint64 max_epochs, max_iters;
  char *work_dir, *config_text, *timestamp;
  const RnOptimizer *optimizer;

  RnHookList *hooks;
  RnLogBuffer *log;
  gint64 log_interval;

  RnCounters now;
  RnStage stage;        /* the one that is running or ran last */
  const RnBatch *batch; /* between next and release */
  float grad_scale;
  double lr;
  gboolean has_momentum; /* a step was done, or its momentum was loaded */
  gboolean is_stopped;   /* rn_runner_stop */
  int signal;            /* that was seen by the loop, or 0 */
  int n_bad_losses; /* iterations in a row whose loss is NaN or infinite */

  GPtrArray *pending;  /* of RnPendingCheckpoint */
  GPtrArray *kept;     /* of char *: regular checkpoints of this run, newest first, as in last_checkpoint */
  RnCounters saved_at; /* counters of the newest regular checkpoint */
  RnRecord *scores;    /* of an evaluation in the current stage; or NULL */
};

/* Writes what was asked for, in order; the best ones first, so that the regular one knows of them. */
gboolean rn_runner_flush_checkpoints (RnRunner *runner, GError **error);
/* Writes iter_N unless a checkpoint of this very iteration was written. */
gboolean rn_runner_save_interrupted (RnRunner *runner, GError **error);

G_END_DECLS

#endif
