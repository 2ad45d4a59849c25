/* runner-private.h: the Runner's struct, for the files that implement it. */
#ifndef RUNNER_RUNNER_PRIVATE_H
#define RUNNER_RUNNER_PRIVATE_H

#include "runner/hook-list.h"
#include "runner/log-buffer.h"
#include "runner/log-means.h"
#include "runner/runner.h"
#include "runner/times.h"

G_BEGIN_DECLS

typedef struct
{
  gint64 iter, epoch,
      inner_iter;  /* finished iterations, passes of the data, iterations of the current pass */
  gint64 opt_step; /* performed optimizer steps */
  /* The place in the workflow, see place.h: number of the item, what is done of its epochs or iterations. */
  gint64 item, item_done;
  gint64 val_batch; /* the next of the validation stream of a run counted in iterations */
} RnCounters;

/* A request with the hook that is to blame if it fails, and copies of the strings. */
typedef struct
{
  RnHook *hook;
  RnStage stage;
  RnCheckpointRequest request;
} RnPendingCheckpoint;

/* The guarded step that is not settled: steps.c. */
typedef struct
{
  gboolean is_due;
  RnGuardedStep step;
  gint64 iter;      /* that it ends */
  guint log_place;  /* of the names that it logs first: how many there were with the losses */
  gboolean is_told; /* its function runs */
} RnDueStep;

struct _RnRunner
{
  RnTask *task;
  gboolean is_by_epoch;
  gint64 max_epochs, max_iters;
  char *work_dir, *config_text, *timestamp;
  char *resumed_from;           /* (nullable) path of a checkpoint */
  GPtrArray *history, *changes; /* of char *: lines of run-history.h, and what this run has changed */
  const RnOptimizer *optimizer;
  GArray *workflow; /* of RnWorkflowItem */

  RnHookList *hooks;
  RnLogBuffer *log_buffer; /* through rn_runner_log_to_read and _to_write */
  RnLogMeans *val_log;     /* of the running pass of validation */
  gint64 log_interval;

  RnCounters now;
  RnStage stage;          /* the one that is running or ran last */
  const RnBatch *batch;   /* between next and release */
  gboolean is_pass_open;  /* between before_train_epoch and after_train_epoch */
  gboolean is_validating; /* in a val item of the workflow */
  gint64 val_inner_iter;  /* finished validation iterations of the current pass */
  gint64 val_item_length; /* iterations of that pass */
  gboolean is_val_open;   /* the validation data were sought */
  RnTimes times;

  float grad_scale;
  double loss_weight;
  double *lrs; /* [groups] */
  double momentum;
  gint64 total_steps;           /* schedules count steps, to this number; 0: they count iterations */
  double grad_multiplier;       /* of the gradients of this step */
  gboolean is_backward_done;    /* in this iteration, or it has none: nobody needs its activations any more */
  gboolean has_step_grads;      /* in this iteration: the gradients of a step are complete */
  gboolean is_window_open;      /* gradients matter beyond this iteration */
  gboolean has_optimizer_state; /* a step was done, or its momentum was loaded */
  gboolean has_part_of_step;    /* the checkpoint's momentum has the gradients of an open window in it */
  gboolean uses_ema, has_loaded_ema;
  gboolean is_ema_in_place; /* the weights and their running mean have changed places */
  gboolean is_stopped;      /* rn_runner_stop */
  int signal;               /* that was seen by the loop, or 0 */
  int n_bad_losses;         /* iterations in a row whose loss is NaN or infinite; after rn_runner_settle */
  gboolean has_due_losses;  /* of the last forward pass: not yet logged */
  RnDueStep due_step;
  GError *late_fault; /* why these could not be had, or end the run; told by rn_runner_check_losses */

  GPtrArray *pending; /* of RnPendingCheckpoint */
  GPtrArray *kept;    /* of char *: regular checkpoints of this run, newest first, as in last_checkpoint */
  gboolean allow_batch_change;
  char *checkpoint_dir; /* rn_runner_set_checkpoint_dir, or NULL */
  RnCounters saved_at;  /* counters of the newest regular checkpoint */
  guint keep_best;      /* rn_runner_set_keep_best */
  gboolean starts_with_evaluation;
  GPtrArray *score_names; /* of char *, with a NULL at the end: what evaluations will have */
  RnRecord *scores;       /* of an evaluation in the current stage; or NULL */
};

/* Losses that are due are waited for, and logged: losses.c. Whoever reads them, or writes to the log, comes
 * by here. */
void rn_runner_settle (const RnRunner *runner);
/* So is, behind them, a guarded step that is due: steps.c. Whoever reads the log or what depends on the step
 * comes by here. */
void rn_runner_settle_step (const RnRunner *runner);

static inline RnLogBuffer *
rn_runner_log_to_write (const RnRunner *runner)
{
  rn_runner_settle (runner);
  return runner->log_buffer;
}

static inline RnLogBuffer *
rn_runner_log_to_read (const RnRunner *runner)
{
  rn_runner_settle_step (runner);
  return runner->log_buffer;
}

/* The iteration that what is logged now belongs to. */
static inline gint64
rn_runner_log_iter (const RnRunner *runner)
{
  return runner->due_step.is_told ? runner->due_step.iter : runner->now.iter;
}

/*
 * Iterations to look back from the one that runs, or will, for the last @n_iters. Between two iterations what
 * is logged counts for the next one, which is looked at beside those.
 */
static inline gint64
rn_runner_log_span (const RnRunner *runner, gint64 n_iters)
{
  return runner->batch != NULL ? n_iters : MIN (n_iters, G_MAXINT64 - 1) + 1;
}

/* Writes what was asked for, in order; the best ones first, so that the regular one knows of them. */
gboolean rn_runner_flush_checkpoints (RnRunner *runner, GError **error);
/* Writes iter_N unless a checkpoint of this very iteration was written. */
gboolean rn_runner_save_interrupted (RnRunner *runner, GError **error);

G_END_DECLS

#endif
