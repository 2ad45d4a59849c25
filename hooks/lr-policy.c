#include "config.h"

#include "hooks/lr-policy.h"

#include <math.h>

double
rn_warmup_factor (const RnWarmupRule *rule, gint64 now)
{
  if (rule->warmup == RN_WARMUP_NONE || now >= rule->length)
    return 1;

  double rest = 1 - (double) now / (double) rule->length;
  switch (rule->warmup)
    {
    case RN_WARMUP_CONSTANT:
      return rule->ratio;
    case RN_WARMUP_LINEAR:
      return 1 - rest * (1 - rule->ratio);
    case RN_WARMUP_EXP:
      return pow (rule->ratio, rest);
    case RN_WARMUP_NONE:
      break;
    }
  return 1;
}

/* From @from at @part 0 to @to at 1. */
static double
anneal_between (RnAnneal anneal, double from, double to, double part)
{
  if (anneal == RN_ANNEAL_LINEAR)
    return from + (to - from) * part;
  return to + 0.5 * (from - to) * (cos (G_PI * part) + 1);
}

/* How much of the run, or of a phase of it, is over: 0 to 1. */
static double
get_part (gint64 now, gint64 length)
{
  return now < length ? (double) now / (double) length : 1;
}

double
rn_step_policy (const RnStepRule *rule, RnProgress progress, double base)
{
  gint64 n_steps = 0;

  if (rule->every > 0)
    n_steps = progress.now / rule->every;
  else
    for (guint i = 0; i < rule->n_milestones; i++)
      n_steps += rule->milestones[i] <= progress.now;

  double value = base * pow (rule->gamma, (double) n_steps);
  return isnan (rule->min) ? value : fmax (value, rule->min);
}

double
rn_exp_policy (double gamma, RnProgress progress, double base)
{
  return base * pow (gamma, (double) progress.now);
}

double
rn_inv_policy (double gamma, double power, RnProgress progress, double base)
{
  return base * pow (1 + gamma * (double) progress.now, -power);
}

double
rn_poly_policy (double power, double min, RnProgress progress, double base)
{
  return (base - min) * pow (1 - get_part (progress.now, progress.end), power) + min;
}

double
rn_annealing_policy (RnAnneal anneal, double start_percent, double target, RnProgress progress, double base)
{
  gint64 start = (gint64) rint ((double) progress.end * start_percent);

  if (progress.now < start || start >= progress.end)
    return base;
  return anneal_between (anneal, base, target, get_part (progress.now - start, progress.end - start));
}

double
rn_restart_policy (const RnRestartRule *rule, double target, RnProgress progress, double base)
{
  guint i = 0;
  gint64 now = progress.now;

  while (i + 1 < rule->n_periods && now >= rule->periods[i])
    now -= rule->periods[i++];
  double weight = rule->weights != NULL ? rule->weights[i] : 1, peak = target + weight * (base - target);
  return anneal_between (RN_ANNEAL_COS, peak, target, get_part (now, rule->periods[i]));
}

double
rn_cyclic_policy (const RnCyclicRule *rule, RnProgress progress, double base)
{
  gint64 length = MAX (progress.end / rule->n_cycles, 1);
  gint64 n_up = (gint64) (rule->up_part * (double) length);
  gint64 cycle = MIN (progress.now / length, rule->n_cycles - 1), now = progress.now - cycle * length;
  double scale = pow (rule->gamma, (double) cycle);
  double peak = base * (1 - scale + rule->ratios[0] * scale);

  if (now < n_up)
    return anneal_between (rule->anneal, base, peak, get_part (now, n_up));
  return anneal_between (rule->anneal, peak, base * rule->ratios[1], get_part (now - n_up, length - n_up));
}

double
rn_one_cycle_policy (const RnOneCycleRule *rule, RnProgress progress)
{
  double length = (double) progress.end, now = MIN ((double) progress.now, length - 1);
  double peak_at = rule->pct_start * length - 1;
  const struct
  {
    double end, value;
  } phases[] = {
    { peak_at, rule->peak },
    { rule->three_phase ? 2 * peak_at : peak_at, rule->three_phase ? rule->first : rule->peak },
    { length - 1, rule->last },
  };
  double start = 0, from = rule->first;
  guint i = 0;

  for (; i + 1 < G_N_ELEMENTS (phases) && now > phases[i].end; i++)
    {
      start = phases[i].end;
      from = phases[i].value;
    }
  double part = phases[i].end > start ? (now - start) / (phases[i].end - start) : 1;
  return anneal_between (rule->anneal, from, phases[i].value, part);
}
