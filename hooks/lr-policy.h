/*
 * lr-policy.h: MMCV's policies and warm-ups of learning rate and momentum, as functions of progress without
 * any state. Progress past the end gives what the end gives.
 */
#ifndef HOOKS_LR_POLICY_H
#define HOOKS_LR_POLICY_H

#include <runner/hook.h>

G_BEGIN_DECLS

typedef enum
{
  RN_WARMUP_NONE,
  RN_WARMUP_CONSTANT, /* ratio */
  RN_WARMUP_LINEAR,   /* 1 - (1 - t / W) * (1 - ratio) */
  RN_WARMUP_EXP,      /* ratio ^ (1 - t / W) */
} RnWarmup;

typedef struct
{
  RnWarmup warmup;
  double ratio;  /* of the first rate to the regular one, in (0, 1] */
  gint64 length; /* W */
} RnWarmupRule;

/* The regular learning rate of @now (which is t) is multiplied by this, so that a decay during the warm-up is
 * not lost; a momentum is divided by it. 1 from W on. */
double rn_warmup_factor (const RnWarmupRule *rule, gint64 now);

/* Finished epochs, iterations or steps, of so many. */
typedef struct
{
  gint64 now, end;
} RnProgress;

typedef enum
{
  RN_ANNEAL_COS,
  RN_ANNEAL_LINEAR,
} RnAnneal;

typedef struct
{
  gint64 every; /* a step each so many; 0: at the milestones */
  const gint64 *milestones;
  guint n_milestones;
  double gamma, min; /* factor of a step; bound from below, NAN: none */
} RnStepRule;

/* A milestone counts from itself on. */
double rn_step_policy (const RnStepRule *rule, RnProgress progress, double base);
/* base * gamma ^ now */
double rn_exp_policy (double gamma, RnProgress progress, double base);
/* base * (1 + gamma * now) ^ -power */
double rn_inv_policy (double gamma, double power, RnProgress progress, double base);
/* (base - min) * (1 - now / end) ^ power + min */
double rn_poly_policy (double power, double min, RnProgress progress, double base);
/* @base until @start_percent of the run (0: none of it; rounded to a whole number, halves to the even one),
 * from there to @target at the end. */
double rn_annealing_policy (RnAnneal anneal, double start_percent, double target, RnProgress progress,
                            double base);

typedef struct
{
  const gint64 *periods; /* lengths */
  const double *weights; /* of the way from target to base, where a period starts; NULL: 1 */
  guint n_periods;       /* at least 1 */
} RnRestartRule;

/* A cosine to @target in each period. */
double rn_restart_policy (const RnRestartRule *rule, double target, RnProgress progress, double base);

typedef struct
{
  double ratios[2]; /* of peak and end to base */
  gint64 n_cycles;  /* of equal length; what is left over behind them keeps the last value */
  double up_part;   /* of a cycle, below 1 */
  double gamma;     /* of each cycle's peak: its distance from base times this */
  RnAnneal anneal;
} RnCyclicRule;

/* base to its peak and down to its end, so many times; the next cycle starts from base again. */
double rn_cyclic_policy (const RnCyclicRule *rule, RnProgress progress, double base);

typedef struct
{
  double pct_start;     /* part of the run in which the peak is reached */
  gboolean three_phase; /* back to the first value at twice that */
  RnAnneal anneal;
  double first, peak, last;
} RnOneCycleRule;

/* torch.optim.lr_scheduler.OneCycleLR: `last` is the value of number end - 1. */
double rn_one_cycle_policy (const RnOneCycleRule *rule, RnProgress progress);

G_END_DECLS

#endif
