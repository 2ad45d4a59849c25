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
  char *resumed_from; /* (nullable) path of a checkpoint */
  const RnOptimizer *optimizer;

  RnHookList *hooks;
  RnLogBuffer *log;
  gint64 log_interval;

  RnCounters now;
  RnStage stage;          /* the one that is running or ran last */
  const RnBatch *batch;   /* between next and release */
  gboolean is_validating; /* in a val item of the workflow */
  gint64 val_inner_iter;  /* finished validation iterations of the current pass */

  float grad_scale;
  double loss_weight;
  double *lrs; /* [groups] */
  double momentum;
  gint64 total_steps;           /* schedules count steps, to this number; 0: they count iterations */
  double grad_multiplier;       /* of the gradients of this step */
  gboolean is_backward_done;    /* in this iteration: its activations are gone */
  gboolean has_step_grads;      /* in this iteration: the gradients of a step are complete */
  gboolean is_window_open;      /* gradients matter beyond this iteration */
  gboolean has_optimizer_state; /* a step was done, or its momentum was loaded */
  gboolean uses_ema, has_loaded_ema;
  gboolean is_stopped; /* rn_runner_stop */
  int signal;          /* that was seen by the loop, or 0 */
  int n_bad_losses;    /* iterations in a row whose loss is NaN or infinite */

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
