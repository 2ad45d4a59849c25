/*
 * schedule.h: what the hooks of learning rate and of momentum share: keys, where a schedule stands, and the
 * policies that both have.
 *
 * A value is set before each iteration, from the configuration and the counters alone: a resumed run needs no
 * state, and a changed configuration takes effect at once.
 */
#ifndef HOOKS_SCHEDULE_H
#define HOOKS_SCHEDULE_H

#include "hooks/counting.h"
#include "hooks/lr-policy.h"

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct
{
  RnHook hook;
  int by_epoch; /* RN_BY_* */
  int warmup;   /* RnWarmup */
  gint64 warmup_iters;
  double warmup_ratio;
  gboolean warmup_by_epoch;

  /* Keys of policies; each hook fills those of its own. */
  const RnNode *step;
  double gamma, power;
  double min, min_ratio; /* NAN: not given */
  double start_percent;
  GArray *periods, *restart_weights, *target_ratio; /* of gint64, double, double; or NULL */
  gint64 cyclic_times;
  double step_ratio_up;
  int anneal_strategy; /* RnAnneal */
  double max_lr, div_factor, final_div_factor;
  double base_momentum, max_momentum;
  gint64 total_steps; /* RN_NULL_INT: as the run has */
  double pct_start;
  gboolean three_phase;

  /* rn_schedule_read_step */
  gint64 every;       /* it is a number; else 0 */
  GArray *milestones; /* it is a list; of gint64 */
} RnSchedule;

extern const char *const rn_schedule_warmup_names[];
extern const char *const rn_schedule_anneal_names[];

/* clang-format off */
/* As RN_KEY, for a field that is not called like its key. */
#define RN_SCHEDULE_KEY(key, field, type_, deflt_, help_, ...) \
  { .name = (key), .type = (type_), .offset = G_STRUCT_OFFSET (RnSchedule, field), .deflt = (deflt_), \
    .help = (help_), ##__VA_ARGS__ }

#define RN_SCHEDULE_WARMUP_KEYS(ratio, ratio_help) \
  RN_KEY (RnSchedule, warmup, RN_KEY_ENUM, "none", "how the first iterations approach the regular value", \
          .names = rn_schedule_warmup_names, .flags = RN_KEY_NULLABLE), \
  RN_KEY (RnSchedule, warmup_iters, RN_KEY_INT, "0", \
          "length of the warm-up in iterations; in epochs with warmup_by_epoch; in optimizer steps with " \
          "schedule_by: step of the optimizer hook", .min = 0, .max = 1e9), \
  RN_KEY (RnSchedule, warmup_ratio, RN_KEY_FLOAT, ratio, ratio_help, .min = 1e-12, .max = 1), \
  RN_KEY (RnSchedule, warmup_by_epoch, RN_KEY_BOOL, "false", "warmup_iters counts epochs")

/* Of policies that count either. */
#define RN_SCHEDULE_BY_EPOCH_KEY \
  RN_KEY (RnSchedule, by_epoch, RN_KEY_ENUM, "auto", \
          "progress counts epochs, not iterations; auto: as the runner does", .names = rn_by_epoch_names)
/* Of policies that count iterations in any run. */
#define RN_SCHEDULE_BY_ITER_KEY \
  RN_KEY (RnSchedule, by_epoch, RN_KEY_ENUM, "false", "this policy counts iterations: false or auto", \
          .names = rn_by_epoch_names)

#define RN_SCHEDULE_STEP_KEYS(what, deflt_gamma, max_gamma) \
  RN_KEY (RnSchedule, step, RN_KEY_NODE, NULL, \
          "a number: a step every so many; a list of numbers: where the steps are", \
          .flags = RN_KEY_REQUIRED), \
  RN_KEY (RnSchedule, gamma, RN_KEY_FLOAT, deflt_gamma, "factor of a step", .min = 0, .max = max_gamma), \
  RN_SCHEDULE_KEY ("min_" what, min, RN_KEY_FLOAT, "null", "no step goes below this", .min = 0, .max = 1e6, \
                   .flags = RN_KEY_NULLABLE)

#define RN_SCHEDULE_TARGET_KEYS(what) \
  RN_SCHEDULE_KEY ("min_" what, min, RN_KEY_FLOAT, "null", \
                   "value at the end; this or min_" what "_ratio must be given", .min = 0, .max = 1e6, \
                   .flags = RN_KEY_NULLABLE), \
  RN_SCHEDULE_KEY ("min_" what "_ratio", min_ratio, RN_KEY_FLOAT, "null", \
                   "value at the end over that of the optimizer", .min = 0, .max = 1e6, \
                   .flags = RN_KEY_NULLABLE)

#define RN_SCHEDULE_ANNEAL_KEY \
  RN_KEY (RnSchedule, anneal_strategy, RN_KEY_ENUM, "cos", "shape of the way up and down", \
          .names = rn_schedule_anneal_names)

#define RN_SCHEDULE_CYCLIC_KEYS(deflt_ratio) \
  RN_KEY (RnSchedule, target_ratio, RN_KEY_FLOAT_LIST, deflt_ratio, \
          "turning point and end of a cycle, over the optimizer's value; one number x: [x, x / 100000]", \
          .min = 0, .max = 1e6), \
  RN_KEY (RnSchedule, cyclic_times, RN_KEY_INT, "1", "cycles in the run", .min = 1, .max = 1e9), \
  RN_KEY (RnSchedule, step_ratio_up, RN_KEY_FLOAT, "0.4", \
          "part of a cycle until its turning point, below 1", .min = 0, .max = 1), \
  RN_SCHEDULE_ANNEAL_KEY, \
  RN_KEY (RnSchedule, gamma, RN_KEY_FLOAT, "1", \
          "each cycle's turning point is this much nearer to the optimizer's value, above 0", .min = 0, \
          .max = 1)

#define RN_SCHEDULE_ONE_CYCLE_KEYS \
  RN_KEY (RnSchedule, total_steps, RN_KEY_INT, "null", \
          "length of the cycle in iterations; null: the run; after a shorter one the last value stays", \
          .min = 1, .max = 1e12, .flags = RN_KEY_NULLABLE), \
  RN_KEY (RnSchedule, pct_start, RN_KEY_FLOAT, "0.3", "part of the cycle until its turning point", \
          .min = 0, .max = 1), \
  RN_SCHEDULE_ANNEAL_KEY, \
  RN_KEY (RnSchedule, three_phase, RN_KEY_BOOL, "false", \
          "back to the first value before the last part of the cycle, as fast as away from it")
/* clang-format on */

/* What is wrong with the keys of a policy. */
typedef gboolean (*RnScheduleCheck) (RnSchedule *schedule, GError **error);
/* For prepare, so that nobody waits for a data set to learn of a wrong key. The warm-up is checked too. */
gboolean rn_schedule_prepare (RnHook *hook, RnScheduleCheck check, GError **error);

/* Such checks, and parts of them. The first reads the key `step`; rn_schedule_clear frees what that makes. */
gboolean rn_schedule_read_step (RnSchedule *schedule, GError **error);
/* @what: "lr" or "momentum", as in the keys */
gboolean rn_schedule_check_target (const RnSchedule *schedule, const char *what, GError **error);
/* Counts iterations, as rn_schedule_count_iters. */
gboolean rn_schedule_check_cyclic (RnSchedule *schedule, GError **error);
/* For policies that know iterations only. */
gboolean rn_schedule_count_iters (RnSchedule *schedule, GError **error);
void rn_schedule_clear (RnHook *hook);

RnProgress rn_schedule_progress (const RnSchedule *schedule, const RnRunner *runner);
/* Of the warm-up, for the running iteration. */
double rn_schedule_warmup_factor (const RnSchedule *schedule, const RnRunner *runner);
/* `min` or `min_ratio`. */
double rn_schedule_target (const RnSchedule *schedule, double base);

/* The regular value by a policy. @base: of the optimizer. */
typedef double (*RnPolicyFunc) (const RnSchedule *schedule, RnProgress progress, double base);
double rn_schedule_step (const RnSchedule *schedule, RnProgress progress, double base);
double rn_schedule_cosine (const RnSchedule *schedule, RnProgress progress, double base);
double rn_schedule_linear (const RnSchedule *schedule, RnProgress progress, double base);
double rn_schedule_cyclic (const RnSchedule *schedule, RnProgress progress, double base);
/* Of one that goes from @first to @peak to @last. */
double rn_schedule_one_cycle (const RnSchedule *schedule, RnProgress progress, double first, double peak,
                              double last);

G_END_DECLS

#endif
