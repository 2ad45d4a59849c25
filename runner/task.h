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

typedef struct
{
  /* Data: rn_loader_start, _next and _release. */
  void (*seek) (RnTask *task, guint64 epoch, gint64 first_batch);
  const RnBatch *(*next) (RnTask *task, GError **error);
  void (*release) (RnTask *task, const RnBatch *batch);

  /* A step: see programs.h. */
  gboolean (*forward) (RnTask *task, const RnBatch *batch, float grad_scale, GError **error);
  double (*loss) (RnTask *task, const char *name);
  gboolean (*backward) (RnTask *task, GError **error);
  gboolean (*zero_grads) (RnTask *task, GError **error);
  gboolean (*grad_norm) (RnTask *task, double *norm, GError **error);
  gboolean (*update) (RnTask *task, const RnUpdate *update, GError **error);

  /* NULL when there is no validation set. FALSE without error when rn_signals_pending broke it off. */
  gboolean (*evaluate) (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error);

  /* Weights under their names, momentum under "momentum/NAME". */
  void (*add_tensors) (RnTask *task, RnSafetensorsWriter *writer, gboolean with_optimizer);
  /* *@has_optimizer says whether the file had momentum. */
  gboolean (*load_tensors) (RnTask *task, const RnSafetensors *file, gboolean *has_optimizer, GError **error);
} RnTaskVtbl;

/* The head of every task. Everything is lent. */
struct _RnTask
{
  const RnTaskVtbl *vtbl;
  gint64 epoch_length; /* batches in one pass of the data */
  int batch_size;
  guint64 seed;                   /* of data order and augmentation */
  int num_classes;                /* of the head */
  const char *const *class_names; /* of the data, NULL-ended */
  const char *const *loss_names;  /* without their sum "loss", NULL-ended */
  const char *device;             /* in words: what the bits of a run depend on */
  const float *lr_mults;          /* [n_lr_mults] distinct ones, in the order of the parameters */
  guint n_lr_mults;
};

G_END_DECLS

#endif
