/* optimizer.c: gradients from zero, backward pass, clipping, step: MMCV's OptimizerHook. */
#include "config.h"

#include <runner/engine.h>

typedef struct
{
  double max_norm, norm_type;
} GradClip;

typedef struct
{
  RnHook hook;
  gboolean has_clip;
  GradClip clip;
  int detect_anomalous_params; /* no other value than false yet */
} OptimizerHook;

static const RnKeySpec clip_keys[] = {
  RN_KEY (GradClip, max_norm, RN_KEY_FLOAT, NULL, "gradients are scaled down to this norm", .min = 1e-12,
          .max = 1e12, .flags = RN_KEY_REQUIRED),
  RN_KEY (GradClip, norm_type, RN_KEY_FLOAT, "2", "the norm: 2", .min = 2, .max = 2),
  RN_KEY_END,
};

static const char *const only_false[] = { "false", NULL };

static const RnKeySpec keys[] = {
  { .name = "grad_clip",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (OptimizerHook, clip),
    .keys = clip_keys,
    .present = G_STRUCT_OFFSET (OptimizerHook, has_clip),
    .flags = RN_KEY_NULLABLE,
    .help = "bounds the norm over all gradients; null: no bound" },
  RN_KEY (OptimizerHook, detect_anomalous_params, RN_KEY_ENUM, "false", "not in this release",
          .names = only_false),
  RN_KEY_END,
};

static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_set_grad_scale (runner, 1);
  return rn_runner_zero_grads (runner, error);
}

/* torch.nn.utils.clip_grad_norm_: times max_norm / (norm + 1e-6) where that is below 1. The norm in the log
 * is the one before. */
static gboolean
clip (const OptimizerHook *self, RnRunner *runner, double *multiplier, GError **error)
{
  RnGradStats stats;

  if (!rn_runner_grad_stats (runner, 2, &stats, error))
    return FALSE;
  rn_runner_log (runner, "grad_norm", stats.norm);
  *multiplier = MIN (1.0, self->clip.max_norm / (stats.norm + 1e-6));
  return TRUE;
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  const OptimizerHook *self = (const OptimizerHook *) hook;
  double multiplier = 1;

  return rn_runner_backward (runner, error) && rn_runner_call_before_step (runner, 1, error)
         && (!self->has_clip || clip (self, runner, &multiplier, error))
         && rn_runner_step (runner, multiplier, 0, error);
}

RN_HOOK_DEFINE (optimizer, OptimizerHook, .name = "OptimizerHook",
                .summary = "backward pass, gradient clipping and optimizer step of each iteration",
                .priority = RN_PRIORITY_ABOVE_NORMAL, .needs = RN_NEEDS_GRADIENTS, .keys = keys,
                .before_train_iter = before_train_iter, .after_train_iter = after_train_iter);
