#include "config.h"

#include "hooks/schedule.h"

#include <math.h>

/* With one number as target_ratio, the end of a cycle is this much below its turning point. */
#define CYCLE_DIVISOR 1e5

const char *const rn_schedule_warmup_names[] = { "none", "constant", "linear", "exp", NULL };
const char *const rn_schedule_anneal_names[] = { "cos", "linear", NULL };

/* ---- Keys ---- */

static gboolean
check_warmup (const RnSchedule *schedule, GError **error)
{
  if (schedule->warmup == RN_WARMUP_NONE || schedule->warmup_iters > 0)
    return TRUE;
  return rn_node_error (schedule->hook.config, error, "warmup: %s needs warmup_iters > 0",
                        rn_schedule_warmup_names[schedule->warmup]);
}

gboolean
rn_schedule_prepare (RnHook *hook, RnScheduleCheck check, GError **error)
{
  RnSchedule *schedule = (RnSchedule *) hook;

  return check (schedule, error) && check_warmup (schedule, error);
}

static gboolean
read_positive (const RnNode *node, gint64 *value, GError **error)
{
  if (rn_node_kind (node) != RN_NODE_INT || rn_node_as_int (node) < 1)
    return rn_node_error (node, error, "must be a number above 0, or a list of such numbers");
  *value = rn_node_as_int (node);
  return TRUE;
}

gboolean
rn_schedule_read_step (RnSchedule *schedule, GError **error)
{
  const RnNode *step = schedule->step;

  schedule->milestones = g_array_new (FALSE, FALSE, sizeof (gint64));
  if (rn_node_kind (step) != RN_NODE_LIST)
    return read_positive (step, &schedule->every, error);
  for (guint i = 0; i < rn_node_size (step); i++)
    {
      gint64 milestone;
      if (!read_positive (rn_node_item (step, i), &milestone, error))
        return FALSE;
      g_array_append_val (schedule->milestones, milestone);
    }
  return TRUE;
}

void
rn_schedule_clear (RnHook *hook)
{
  g_clear_pointer (&((RnSchedule *) hook)->milestones, g_array_unref);
}

gboolean
rn_schedule_check_target (const RnSchedule *schedule, const char *what, GError **error)
{
  if (isnan (schedule->min) != isnan (schedule->min_ratio))
    return TRUE;
  return rn_node_error (schedule->hook.config, error, "needs min_%s or min_%s_ratio, one of the two", what,
                        what);
}

gboolean
rn_schedule_count_iters (RnSchedule *schedule, GError **error)
{
  if (schedule->by_epoch == RN_BY_EPOCH)
    return rn_node_error (rn_node_get (schedule->hook.config, "by_epoch"), error,
                          "this policy counts iterations, in runs by epoch too; what works: by_epoch: false");
  schedule->by_epoch = RN_BY_ITER;
  return TRUE;
}

gboolean
rn_schedule_check_cyclic (RnSchedule *schedule, GError **error)
{
  const RnNode *config = schedule->hook.config;

  if (!rn_schedule_count_iters (schedule, error))
    return FALSE;
  if (schedule->target_ratio->len != 1 && schedule->target_ratio->len != 2)
    return rn_node_error (rn_node_get (config, "target_ratio"), error,
                          "must be two numbers, of turning point and end, or the first alone");
  if (schedule->step_ratio_up >= 1)
    return rn_node_error (rn_node_get (config, "step_ratio_up"), error,
                          "must be below 1: a cycle goes down too");
  if (schedule->gamma == 0)
    return rn_node_error (rn_node_get (config, "gamma"), error, "must be above 0");
  return TRUE;
}

/* ---- Where it stands ---- */

RnProgress
rn_schedule_progress (const RnSchedule *schedule, const RnRunner *runner)
{
  if (rn_counts_epochs (schedule->by_epoch, runner))
    return (RnProgress){ rn_runner_epoch (runner), rn_runner_max_epochs (runner) };
  return (RnProgress){ rn_runner_schedule_now (runner), rn_runner_schedule_total (runner) };
}

double
rn_schedule_warmup_factor (const RnSchedule *schedule, const RnRunner *runner)
{
  RnWarmupRule rule = { (RnWarmup) schedule->warmup, schedule->warmup_ratio, schedule->warmup_iters };

  if (!schedule->warmup_by_epoch)
    return rn_warmup_factor (&rule, rn_runner_schedule_now (runner));
  rule.length *= rn_runner_epoch_length (runner);
  return rn_warmup_factor (&rule, rn_runner_iter (runner));
}

double
rn_schedule_target (const RnSchedule *schedule, double base)
{
  return isnan (schedule->min) ? base * schedule->min_ratio : schedule->min;
}

/* ---- Policies ---- */

double
rn_schedule_step (const RnSchedule *schedule, RnProgress progress, double base)
{
  RnStepRule rule = {
    .every = schedule->every,
    .milestones = (const gint64 *) (gconstpointer) schedule->milestones->data,
    .n_milestones = schedule->milestones->len,
    .gamma = schedule->gamma,
    .min = schedule->min,
  };
  return rn_step_policy (&rule, progress, base);
}

double
rn_schedule_cosine (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_annealing_policy (RN_ANNEAL_COS, schedule->start_percent, rn_schedule_target (schedule, base),
                              progress, base);
}

double
rn_schedule_linear (const RnSchedule *schedule, RnProgress progress, double base)
{
  return rn_annealing_policy (RN_ANNEAL_LINEAR, 0, rn_schedule_target (schedule, base), progress, base);
}

double
rn_schedule_cyclic (const RnSchedule *schedule, RnProgress progress, double base)
{
  const GArray *ratios = schedule->target_ratio;
  double turn = g_array_index (ratios, double, 0);
  RnCyclicRule rule = {
    .ratios = { turn, ratios->len > 1 ? g_array_index (ratios, double, 1) : turn / CYCLE_DIVISOR },
    .n_cycles = schedule->cyclic_times,
    .up_part = schedule->step_ratio_up,
    .gamma = schedule->gamma,
    .anneal = (RnAnneal) schedule->anneal_strategy,
  };
  return rn_cyclic_policy (&rule, progress, base);
}

double
rn_schedule_one_cycle (const RnSchedule *schedule, RnProgress progress, double first, double peak,
                       double last)
{
  RnOneCycleRule rule = {
    .pct_start = schedule->pct_start,
    .three_phase = schedule->three_phase,
    .anneal = (RnAnneal) schedule->anneal_strategy,
    .first = first,
    .peak = peak,
    .last = last,
  };
  if (schedule->total_steps != RN_NULL_INT)
    progress.end = schedule->total_steps;
  return rn_one_cycle_policy (&rule, progress);
}
