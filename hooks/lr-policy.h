/* lr-policy.h: the learning rate as a function of progress: MMCV's policies and warm-ups, without any state.
 */
#ifndef HOOKS_LR_POLICY_H
#define HOOKS_LR_POLICY_H

#include <runner/hook.h>

G_BEGIN_DECLS

typedef enum
{
  RN_WARMUP_NONE,
  RN_WARMUP_CONSTANT, /* lr * ratio */
  RN_WARMUP_LINEAR,   /* lr * (1 - (1 - t / W) * (1 - ratio)) */
  RN_WARMUP_EXP,      /* lr * ratio ^ (1 - t / W) */
} RnWarmup;

typedef struct
{
  RnWarmup warmup;
  double ratio;   /* of the first lr to the regular one, in (0, 1] */
  gint64 n_iters; /* W */
} RnWarmupRule;

/* @lr: the regular rate at iteration @iter (which is t), so that a decay during the warm-up is not lost. */
double rn_warmup_lr (const RnWarmupRule *rule, gint64 iter, double lr);

typedef struct
{
  gint64 every; /* a step each so many; 0: at the milestones */
  const gint64 *milestones;
  guint n_milestones;
  double gamma, min_lr; /* factor of a step; bound from below, NAN: none */
} RnStepRule;

/* @progress: finished epochs or iterations. A milestone counts from itself on. */
double rn_step_lr (const RnStepRule *rule, gint64 progress, double base_lr);

G_END_DECLS

#endif
