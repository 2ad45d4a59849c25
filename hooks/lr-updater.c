/* lr-updater.c: sets the learning rate of each parameter group before each iteration: MMCV's policies. */
#include "config.h"

#include "hooks/schedule.h"

#include <math.h>

/* ---- Keys ---- */

/* clang-format off */
#define WARMUP_KEYS RN_SCHEDULE_WARMUP_KEYS ("0.1", "first rate over regular rate")
/* clang-format on */

static const RnKeySpec fixed_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY_END,
};

static const RnKeySpec step_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_STEP_KEYS ("lr", "0.1", 1e3),
  RN_KEY_END,
};

static const RnKeySpec exp_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, gamma, RN_KEY_FLOAT, NULL, "factor of each epoch or iteration", .min = 0, .max = 1e3,
          .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static const RnKeySpec poly_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, power, RN_KEY_FLOAT, "1", "exponent of the part of the run that is left", .min = 0,
          .max = 1e3),
  RN_SCHEDULE_KEY ("min_lr", min, RN_KEY_FLOAT, "0", "rate at the end", .min = 0, .max = 1e6),
  RN_KEY_END,
};

static const RnKeySpec inv_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, gamma, RN_KEY_FLOAT, NULL, "how fast: rate * (1 + gamma * progress) ^ -power", .min = 0,
          .max = 1e6, .flags = RN_KEY_REQUIRED),
  RN_KEY (RnSchedule, power, RN_KEY_FLOAT, "1", "exponent", .min = 0, .max = 1e3),
  RN_KEY_END,
};

static const RnKeySpec annealing_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_TARGET_KEYS ("lr"),
  RN_KEY_END,
};

static const RnKeySpec flat_cosine_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, start_percent, RN_KEY_FLOAT, "0.75", "part of the run that keeps the optimizer's rate",
          .min = 0, .max = 1),
  RN_SCHEDULE_TARGET_KEYS ("lr"),
  RN_KEY_END,
};

static const RnKeySpec restart_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, periods, RN_KEY_INT_LIST, NULL,
          "lengths of the cosines in epochs or iterations; after the last one its end stays", .min = 1,
          .max = 1e12, .flags = RN_KEY_REQUIRED),
  RN_KEY (RnSchedule, restart_weights, RN_KEY_FLOAT_LIST, "null",
          "height of each cosine, over that of the optimizer's rate; null: 1 for each", .min = 0, .max = 1e6,
          .flags = RN_KEY_NULLABLE),
  RN_SCHEDULE_TARGET_KEYS ("lr"),
  RN_KEY_END,
};

static const RnKeySpec cyclic_keys[] = {
  RN_SCHEDULE_BY_ITER_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_CYCLIC_KEYS ("[10, 0.0001]"),
  RN_KEY_END,
};

static const RnKeySpec one_cycle_keys[] = {
  RN_SCHEDULE_BY_ITER_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, max_lr, RN_KEY_FLOAT, NULL,
          "highest rate; it stands in for optimizer.lr, and groups with an lr_mult get it times that",
          .min = 0, .max = 1e6, .flags = RN_KEY_REQUIRED),
  RN_SCHEDULE_ONE_CYCLE_KEYS,
  RN_KEY (RnSchedule, div_factor, RN_KEY_FLOAT, "25", "highest rate over first", .min = 1e-6, .max = 1e12),
  RN_KEY (RnSchedule, final_div_factor, RN_KEY_FLOAT, "10000", "first rate over last", .min = 1e-6,
          .max = 1e12),
  RN_KEY_END,
};

/* ---- Checks of them ---- */

static gboolean
check_nothing (RnSchedule *schedule, GError **error)
{
  return TRUE;
}

static gboolean
check_annealing (RnSchedule *schedule, GError **error)
{
  return rn_schedule_check_target (schedule, "lr", error);
}

static gboolean
check_restart (RnSchedule *schedule, GError **error)
{
  const RnNode *config = schedule->hook.config;
  guint n_periods = schedule->periods->len;

  if (n_periods == 0)
    return rn_node_error (rn_node_get (config, "periods"), error, "needs at least one period");
  if (schedule->restart_weights != NULL && schedule->restart_weights->len != n_periods)
    return rn_node_error (rn_node_get (config, "restart_weights"), error,
                          "%u weights for %u periods; there must be one for each",
                          schedule->restart_weights->len, n_periods);
  return check_annealing (schedule, error);
}

#define PREPARE(name, check)                                                    \
  static gboolean prepare_##name (RnHook *hook, RnWants *wants, GError **error) \
  {                                                                             \
    return rn_schedule_prepare (hook, check, error);                            \
  }
PREPARE (plain, check_nothing)
PREPARE (step, rn_schedule_read_step)
PREPARE (annealing, check_annealing)
PREPARE (restart, check_restart)
PREPARE (cyclic, rn_schedule_check_cyclic)
PREPARE (one_cycle, rn_schedule_count_iters)

/* ---- Policies that only the learning rate has ---- */

static double
fixed (const RnSchedule *schedule, RnProgress progress, double base)
{
  return base;
}

static double
exponential (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_exp_policy (schedule->gamma, progress, base);
}

static double
poly (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_poly_policy (schedule->power, schedule->min, progress, base);
}

static double
inverse (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_inv_policy (schedule->gamma, schedule->power, progress, base);
}

static double
restart (const RnSchedule *schedule, RnProgress progress, double base)
{
  RnRestartRule rule = {
    .periods = (const gint64 *) (gconstpointer) schedule->periods->data,
    .weights = schedule->restart_weights != NULL
                   ? (const double *) (gconstpointer) schedule->restart_weights->data
                   : NULL,
    .n_periods = schedule->periods->len,
  };
  return rn_restart_policy (&rule, rn_schedule_target (schedule, base), progress, base);
}

/* ---- Before an iteration ---- */

static gboolean
check_lr (double lr, GError **error)
{
  return isfinite (lr) || rn_hook_error (error, "the learning rate would be %g", lr);
}

/* Each group by itself, from its own base: an absolute min_lr is the same for all of them. */
static gboolean
set_lrs (RnHook *hook, RnRunner *runner, RnPolicyFunc policy, GError **error)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;
  RnProgress progress = rn_schedule_progress (schedule, runner);
  double factor = rn_schedule_warmup_factor (schedule, runner);

  for (guint i = 0; i < rn_runner_n_groups (runner); i++)
    {
      double lr = policy (schedule, progress, rn_runner_group_base_lr (runner, i)) * factor;
      if (!check_lr (lr, error))
        return FALSE;
      rn_runner_set_group_lr (runner, i, lr);
    }
  return TRUE;
}

/* max_lr instead of the optimizer's rate; groups keep their multipliers. */
static gboolean
set_one_cycle (RnHook *hook, RnRunner *runner, GError **error)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;
  double first = schedule->max_lr / schedule->div_factor;
  double lr = rn_schedule_one_cycle (schedule, rn_schedule_progress (schedule, runner), first,
                                     schedule->max_lr, first / schedule->final_div_factor)
              * rn_schedule_warmup_factor (schedule, runner);

  if (!check_lr (lr, error))
    return FALSE;
  rn_runner_set_lr (runner, lr);
  return TRUE;
}

#define SET(name, policy)                                               \
  static gboolean name (RnHook *hook, RnRunner *runner, GError **error) \
  {                                                                     \
    return set_lrs (hook, runner, policy, error);                       \
  }
SET (set_fixed, fixed)
SET (set_step, rn_schedule_step)
SET (set_exp, exponential)
SET (set_poly, poly)
SET (set_inv, inverse)
SET (set_cosine, rn_schedule_cosine)
SET (set_linear, rn_schedule_linear)
SET (set_restart, restart)
SET (set_cyclic, rn_schedule_cyclic)

RN_HOOK_DEFINE (fixed_lr_updater, RnSchedule, .name = "FixedLrUpdaterHook",
                .summary = "lr_config.policy fixed: the optimizer's rate, after a warm-up",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = fixed_keys, .prepare = prepare_plain,
                .before_train_iter = set_fixed);

RN_HOOK_DEFINE (step_lr_updater, RnSchedule, .name = "StepLrUpdaterHook",
                .summary = "lr_config.policy step: times gamma at each step",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = step_keys, .prepare = prepare_step,
                .clear = rn_schedule_clear, .before_train_iter = set_step);

RN_HOOK_DEFINE (exp_lr_updater, RnSchedule, .name = "ExpLrUpdaterHook",
                .summary = "lr_config.policy exp: times gamma each epoch or iteration",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = exp_keys, .prepare = prepare_plain,
                .before_train_iter = set_exp);

RN_HOOK_DEFINE (poly_lr_updater, RnSchedule, .name = "PolyLrUpdaterHook",
                .summary = "lr_config.policy poly: a power of the part of the run that is left",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = poly_keys, .prepare = prepare_plain,
                .before_train_iter = set_poly);

RN_HOOK_DEFINE (inv_lr_updater, RnSchedule, .name = "InvLrUpdaterHook",
                .summary = "lr_config.policy inv: inverse to a power of the progress",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = inv_keys, .prepare = prepare_plain,
                .before_train_iter = set_inv);

RN_HOOK_DEFINE (cosine_lr_updater, RnSchedule, .name = "CosineAnnealingLrUpdaterHook",
                .summary = "lr_config.policy CosineAnnealing: half a cosine to min_lr",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = annealing_keys, .prepare = prepare_annealing,
                .before_train_iter = set_cosine);

RN_HOOK_DEFINE (flat_cosine_lr_updater, RnSchedule, .name = "FlatCosineAnnealingLrUpdaterHook",
                .summary = "lr_config.policy FlatCosineAnnealing: the optimizer's rate, then half a cosine",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = flat_cosine_keys, .prepare = prepare_annealing,
                .before_train_iter = set_cosine);

RN_HOOK_DEFINE (cosine_restart_lr_updater, RnSchedule, .name = "CosineRestartLrUpdaterHook",
                .summary = "lr_config.policy CosineRestart: half a cosine again and again",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = restart_keys, .prepare = prepare_restart,
                .before_train_iter = set_restart);

RN_HOOK_DEFINE (cyclic_lr_updater, RnSchedule, .name = "CyclicLrUpdaterHook",
                .summary = "lr_config.policy cyclic: up to a peak and down again, in cycles",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = cyclic_keys, .prepare = prepare_cyclic,
                .before_train_iter = set_cyclic);

RN_HOOK_DEFINE (one_cycle_lr_updater, RnSchedule, .name = "OneCycleLrUpdaterHook",
                .summary = "lr_config.policy OneCycle: up to max_lr, down to next to nothing",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = one_cycle_keys, .prepare = prepare_one_cycle,
                .before_train_iter = set_one_cycle);

RN_HOOK_DEFINE (linear_lr_updater, RnSchedule, .name = "LinearAnnealingLrUpdaterHook",
                .summary = "lr_config.policy LinearAnnealing: a straight line to min_lr",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = annealing_keys, .prepare = prepare_annealing,
                .before_train_iter = set_linear);
