#include "config.h"

#include "hooks/lr-policy.h"

#include <math.h>

double
rn_warmup_lr (const RnWarmupRule *rule, gint64 iter, double lr)
{
  if (rule->warmup == RN_WARMUP_NONE || iter >= rule->n_iters)
    return lr;

  double rest = 1 - (double) iter / (double) rule->n_iters;
  switch (rule->warmup)
    {
    case RN_WARMUP_CONSTANT:
      return lr * rule->ratio;
    case RN_WARMUP_LINEAR:
      return lr * (1 - rest * (1 - rule->ratio));
    case RN_WARMUP_EXP:
      return lr * pow (rule->ratio, rest);
    case RN_WARMUP_NONE:
      break;
    }
  return lr;
}

double
rn_step_lr (const RnStepRule *rule, gint64 progress, double base_lr)
{
  gint64 n_steps = 0;

  if (rule->every > 0)
    n_steps = progress / rule->every;
  else
    for (guint i = 0; i < rule->n_milestones; i++)
      n_steps += rule->milestones[i] <= progress;

  double lr = base_lr * pow (rule->gamma, (double) n_steps);
  return isnan (rule->min_lr) ? lr : fmax (lr, rule->min_lr);
}
