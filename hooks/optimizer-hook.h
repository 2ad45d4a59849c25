/*
 * optimizer-hook.h: what the optimizer hooks are made of: windows of iterations, a loss scale, clipping, the
 * step.
 *
 * One struct serves all of them. A hook that lacks a feature lacks its keys, and their fields are zero.
 */
#ifndef HOOKS_OPTIMIZER_HOOK_H
#define HOOKS_OPTIMIZER_HOOK_H

#include "hooks/accumulation.h"
#include "hooks/grad-clip.h"
#include "hooks/loss-scale-config.h"

G_BEGIN_DECLS

/* What the sum of a window's gradients is divided by. */
typedef enum
{
  RN_NORMALIZE_MICRO,     /* iterations: a mean of their means, as MMCV */
  RN_NORMALIZE_SAMPLES,   /* images */
  RN_NORMALIZE_POSITIVES, /* matched anchors, at least one an image: what the losses are divided by */
} RnNormalize;

typedef struct
{
  gint64 cumulative_iters; /* 0 without the key */
  int tail;                /* RnTail */
  gboolean flush_at_epoch_end;
  int normalize;   /* RnNormalize */
  int schedule_by; /* 0: iterations; 1: steps */
  gboolean save_pending;
  int compat; /* 0: none; 1: MMCV 1.7 */
} RnAccumulationConfig;

/* The sum of gradients of a window that is not finished. */
typedef struct
{
  gint64 begin;   /* its first iteration */
  gint64 n_micro; /* iterations summed */
  double total;   /* images or positives in them; 0 with RN_NORMALIZE_MICRO */
  gint64 factor;  /* that each was divided by; 1 unless RN_NORMALIZE_MICRO */
  double scale;   /* loss scale that all are multiplied by */
  gint64 n_iters; /* cumulative_iters */
  int normalize;  /* RnNormalize */
} RnPending;

typedef struct
{
  RnHook hook;
  /* keys */
  gboolean has_clip;
  RnGradClip clip;
  gboolean detect_anomalous_params;
  RnAccumulationConfig accumulation;
  RnLossScaleConfig scaling;

  RnAccumulation windows;
  RnLossScaler scaler; /* from prepare on */
  RnPending pending;
  RnGuardedStep step; /* the last one, and the window that it ended */
  RnPending stepped;
  gboolean has_loaded;
  RnPending loaded; /* of the checkpoint, until the run begins */
} RnOptimizerHook;

/* Members of a descriptor. */
gboolean rn_optimizer_hook_prepare (RnHook *hook, RnWants *wants, GError **error);
gboolean rn_optimizer_hook_init (RnHook *hook, RnRunner *runner, GError **error);
void rn_optimizer_hook_save_state (RnHook *hook, RnRecord *state);
gboolean rn_optimizer_hook_load_state (RnHook *hook, const RnRecord *state, GError **error);
gboolean rn_optimizer_hook_before_run (RnHook *hook, RnRunner *runner, GError **error);
gboolean rn_optimizer_hook_before_train_iter (RnHook *hook, RnRunner *runner, GError **error);
gboolean rn_optimizer_hook_after_train_iter (RnHook *hook, RnRunner *runner, GError **error);

static inline gboolean
rn_optimizer_hook_is_scaled (const RnOptimizerHook *self)
{
  return self->scaling.loss_scale != NULL;
}

static inline double
rn_optimizer_hook_scale (const RnOptimizerHook *self)
{
  return rn_optimizer_hook_is_scaled (self) ? self->scaler.scale : 1;
}

G_END_DECLS

#endif
