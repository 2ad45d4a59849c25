/*
 * task.h: what the runner drives: a source of batches, the programs of a step, and the weights. train-task.h
 * is the real one.
 *
 * The loop, the hooks and the checkpoints know training through this interface only.
 */
#ifndef RUNNER_TASK_H
#define RUNNER_TASK_H

#include <runner/engine.h>
#include "runner/programs.h"
#include "runner/safetensors.h"

G_BEGIN_DECLS

typedef struct _RnTask RnTask;

/* Batches to learn from, and those of the val items of a workflow. */
typedef enum
{
  RN_TASK_TRAIN,
  RN_TASK_VAL,
  RN_TASK_N_DATA
} RnTaskData;

/* What a checkpoint holds beside the weights. */
enum
{
  RN_TENSORS_OPTIMIZER = 1 << 0, /* momentum and the like */
  RN_TENSORS_PENDING = 1 << 1,   /* gradients of an unfinished window */
  RN_TENSORS_EMA = 1 << 2,
  /* In place of PENDING with an update in backward: the momentum holds a part of a step that is not done. */
  RN_TENSORS_PART_OF_STEP = 1 << 3,
};

typedef struct
{
  const double *lrs; /* [n_groups] */
  double momentum;   /* or beta1 */
  double grad_multiplier, clip_value;
  gboolean is_first;          /* the optimizer has no state yet */
  gboolean continues, waits;  /* of backward_update: see programs.h */
  double max_norm, norm_type; /* of update: see programs.h */
  gboolean checks_finite;
} RnTaskUpdate;

typedef struct
{
  /* Data: rn_loader_start, _next and _release. */
  void (*seek) (RnTask *task, RnTaskData data, guint64 epoch, gint64 first_batch);
  const RnBatch *(*next) (RnTask *task, RnTaskData data, GError **error);
  void (*release) (RnTask *task, RnTaskData data, const RnBatch *batch);

  /* A step: see programs.h. @mode: RN_MODE_TRAIN or RN_MODE_LOSS. */
  gboolean (*forward) (RnTask *task, const RnBatch *batch, RnMode mode, float grad_scale, GError **error);
  /* (optional) Waits for the losses; of a task with has_late_results. Where it fails they are NAN. */
  gboolean (*settle) (RnTask *task, GError **error);
  double (*loss) (RnTask *task, const char *name);
  gboolean (*backward) (RnTask *task, GError **error);
  gboolean (*zero_grads) (RnTask *task, GError **error);
  gboolean (*grad_stats) (RnTask *task, double norm_type, RnGradStats *stats, GError **error);
  gboolean (*update) (RnTask *task, const RnTaskUpdate *update, GError **error);
  /* Behind a guarded update, once: waits for what it was. *@is_done: FALSE where @checks_finite kept it from
   * doing anything. */
  gboolean (*settle_update) (RnTask *task, RnGradStats *stats, gboolean *is_done, GError **error);
  /* In place of backward, grad_stats and update if updates_in_backward. */
  gboolean (*backward_update) (RnTask *task, const RnTaskUpdate *update, GError **error);
  /* Running mean: see engine.h. */
  gboolean (*update_ema) (RnTask *task, double momentum, gboolean with_buffers, GError **error);
  gboolean (*swap_ema) (RnTask *task, GError **error);

  /* Parameters and activations: see hook.h. */
  gboolean (*read_param) (RnTask *task, guint param, float *values, GError **error);
  gboolean (*read_grad) (RnTask *task, guint param, float *values, GError **error);
  gboolean (*write_grad) (RnTask *task, guint param, const float *values, GError **error);
  gboolean (*read_activation) (RnTask *task, const char *name, RnTensorDesc *desc, float **values,
                               GError **error);
  char **(*unreached_params) (RnTask *task);
  gboolean (*find_non_finite) (RnTask *task, const RnBatch *batch, char **where, GError **error);
  guint64 (*empty_cache) (RnTask *task); /* returns the bytes that came free */

  /* These two NULL when there is no validation set. FALSE without error when rn_signals_pending broke it off.
   */
  gboolean (*evaluate) (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error);
  gboolean (*draw) (RnTask *task, gint64 index, double min_score, const char *path, GError **error);

  /* Weights under their names, the rest under "momentum/NAME", "pending/NAME", "ema/NAME", .... @what:
   * RN_TENSORS_* */
  void (*add_tensors) (RnTask *task, RnSafetensorsWriter *writer, guint what);
  /* *@found: what the file had. */
  gboolean (*load_tensors) (RnTask *task, const RnSafetensors *file, guint *found, GError **error);
} RnTaskVtbl;

/* What hooks may know of a parameter. */
typedef struct
{
  const char *name;
  const RnTensorDesc *desc;
  gboolean is_trained;
} RnTaskParam;

/* The head of every task. Everything is lent. */
struct _RnTask
{
  const RnTaskVtbl *vtbl;
  gint64 epoch_length; /* batches in one pass of the training data */
  gint64 val_length;   /* the same of the data for validation losses; 0: there are none */
  int batch_size;
  guint64 seed;                   /* of data order and augmentation */
  int num_classes;                /* of the head */
  const char *const *class_names; /* of the data, NULL-ended */
  const char *const *loss_names;  /* without their sum "loss", NULL-ended */
  const char *device;             /* in words: what the bits of a run depend on */
  const char *precision;          /* "fp16 O1"; NULL: "fp32" */
  const double *lr_mults;         /* [n_groups] of the groups, in the order of the parameters */
  guint n_groups;                 /* at least 1 */
  const RnTaskParam *params;      /* [n_params] */
  guint n_params;
  gboolean has_live_batch_norm;
  gboolean updates_in_backward; /* no gradients are kept */
  /* After forward, and after a guarded update, the device may still be at work: settle, settle_update. */
  gboolean has_late_results;
};

static inline const char *
rn_task_precision (const RnTask *task)
{
  return task->precision != NULL ? task->precision : "fp32";
}

G_END_DECLS

#endif
