/*
 * momentum-updater.c: sets the momentum of SGD, beta1 of Adam, before each iteration: MMCV's policies. They
 * turn the other way from those of the learning rate: a warm-up starts from more than the regular momentum.
 */
#include "config.h"

#include "hooks/schedule.h"

#include <math.h>

/* ---- Keys ---- */

/* clang-format off */
#define WARMUP_KEYS RN_SCHEDULE_WARMUP_KEYS ("0.9", "regular momentum over first momentum")
/* clang-format on */

static const RnKeySpec step_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_STEP_KEYS ("momentum", "0.5", 1),
  RN_KEY_END,
};

static const RnKeySpec annealing_keys[] = {
  RN_SCHEDULE_BY_EPOCH_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_TARGET_KEYS ("momentum"),
  RN_KEY_END,
};

static const RnKeySpec cyclic_keys[] = {
  RN_SCHEDULE_BY_ITER_KEY,
  WARMUP_KEYS,
  RN_SCHEDULE_CYCLIC_KEYS ("[0.8947368421052632, 1]"), /* 0.85 / 0.95 */
  RN_KEY_END,
};

static const RnKeySpec one_cycle_keys[] = {
  RN_SCHEDULE_BY_ITER_KEY,
  WARMUP_KEYS,
  RN_KEY (RnSchedule, base_momentum, RN_KEY_FLOAT, "0.85", "lowest momentum, where the rate is highest",
          .min = 0, .max = 1),
  RN_KEY (RnSchedule, max_momentum, RN_KEY_FLOAT, "0.95",
          "momentum at both ends; it stands in for the optimizer's", .min = 0, .max = 1),
  RN_SCHEDULE_ONE_CYCLE_KEYS,
  RN_KEY_END,
};

/* ---- Checks of them ---- */

static gboolean
check_annealing (RnSchedule *schedule, GError **error)
{
  return rn_schedule_check_target (schedule, "momentum", error);
}

#define PREPARE(name, check)                                                    \
  static gboolean prepare_##name (RnHook *hook, RnWants *wants, GError **error) \
  {                                                                             \
    return rn_schedule_prepare (hook, check, error);                            \
  }
PREPARE (step, rn_schedule_read_step)
PREPARE (annealing, check_annealing)
PREPARE (cyclic, rn_schedule_check_cyclic)
PREPARE (one_cycle, rn_schedule_count_iters)

/* @peak: the highest regular momentum. With 1 and more no gradient is ever forgotten, and steps only grow. */
static gboolean
check_peak (RnHook *hook, const RnRunner *runner, double peak, GError **error)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;
  gboolean has_warmup = schedule->warmup != RN_WARMUP_NONE;

  if (rn_runner_base_momentum (runner) == 0)
    return rn_node_error (
        hook->config, error,
        "the optimizer has no momentum to schedule; what works: optimizer.momentum: 0.9, or "
        "with Adam a first beta above 0");
  if (peak >= 1)
    return rn_node_error (hook->config, error, "the momentum would rise to %g, and it must stay below 1",
                          peak);
  if (has_warmup && peak / schedule->warmup_ratio >= 1)
    return rn_node_error (
        hook->config, error,
        "the warm-up would start from a momentum of %g, and it must be below 1; what works: "
        "a warmup_ratio above %g",
        peak / schedule->warmup_ratio, peak);
  return TRUE;
}

static gboolean
init_step (RnHook *hook, RnRunner *runner, GError **error)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;
  double base = rn_runner_base_momentum (runner);

  return check_peak (hook, runner, isnan (schedule->min) ? base : fmax (base, schedule->min), error);
}

static gboolean
init_annealing (RnHook *hook, RnRunner *runner, GError **error)
{
  double base = rn_runner_base_momentum (runner);

  return check_peak (hook, runner, fmax (base, rn_schedule_target ((const RnSchedule *) hook, base)), error);
}

static gboolean
init_cyclic (RnHook *hook, RnRunner *runner, GError **error)
{
  const GArray *ratios = ((const RnSchedule *) hook)->target_ratio;
  double highest = 1;

  for (guint i = 0; i < ratios->len; i++)
    highest = fmax (highest, g_array_index (ratios, double, i));
  return check_peak (hook, runner, rn_runner_base_momentum (runner) * highest, error);
}

static gboolean
init_one_cycle (RnHook *hook, RnRunner *runner, GError **error)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;

  return check_peak (hook, runner, fmax (schedule->base_momentum, schedule->max_momentum), error);
}

/* ---- Before an iteration ---- */

static double
one_cycle (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_schedule_one_cycle (schedule, progress, schedule->max_momentum, schedule->base_momentum,
                                schedule->max_momentum);
}

static gboolean
set_momentum (RnHook *hook, RnRunner *runner, RnPolicyFunc policy)
{
  const RnSchedule *schedule = (const RnSchedule *) hook;
  RnProgress progress = rn_schedule_progress (schedule, runner);

  rn_runner_set_momentum (runner, policy (schedule, progress, rn_runner_base_momentum (runner))
                                      / rn_schedule_warmup_factor (schedule, runner));
  return TRUE;
}

#define SET(name, policy)                                               \
  static gboolean name (RnHook *hook, RnRunner *runner, GError **error) \
  {                                                                     \
    return set_momentum (hook, runner, policy);                         \
  }
SET (set_step, rn_schedule_step)
SET (set_cosine, rn_schedule_cosine)
SET (set_linear, rn_schedule_linear)
SET (set_cyclic, rn_schedule_cyclic)
SET (set_one_cycle, one_cycle)

RN_HOOK_DEFINE (step_momentum_updater, RnSchedule, .name = "StepMomentumUpdaterHook",
                .summary = "momentum_config.policy step: times gamma at each step",
                .priority = RN_PRIORITY_HIGH, .keys = step_keys, .prepare = prepare_step, .init = init_step,
                .clear = rn_schedule_clear, .before_train_iter = set_step);

RN_HOOK_DEFINE (cosine_momentum_updater, RnSchedule, .name = "CosineAnnealingMomentumUpdaterHook",
                .summary = "momentum_config.policy CosineAnnealing: half a cosine to min_momentum",
                .priority = RN_PRIORITY_HIGH, .keys = annealing_keys, .prepare = prepare_annealing,
                .init = init_annealing, .before_train_iter = set_cosine);

RN_HOOK_DEFINE (linear_momentum_updater, RnSchedule, .name = "LinearAnnealingMomentumUpdaterHook",
                .summary = "momentum_config.policy LinearAnnealing: a straight line to min_momentum",
                .priority = RN_PRIORITY_HIGH, .keys = annealing_keys, .prepare = prepare_annealing,
                .init = init_annealing, .before_train_iter = set_linear);

RN_HOOK_DEFINE (cyclic_momentum_updater, RnSchedule, .name = "CyclicMomentumUpdaterHook",
                .summary = "momentum_config.policy cyclic: down and up again, in cycles",
                .priority = RN_PRIORITY_HIGH, .keys = cyclic_keys, .prepare = prepare_cyclic,
                .init = init_cyclic, .before_train_iter = set_cyclic);

RN_HOOK_DEFINE (one_cycle_momentum_updater, RnSchedule, .name = "OneCycleMomentumUpdaterHook",
                .summary = "momentum_config.policy OneCycle: down to base_momentum and up again",
                .priority = RN_PRIORITY_HIGH, .keys = one_cycle_keys, .prepare = prepare_one_cycle,
                .init = init_one_cycle, .before_train_iter = set_one_cycle);
