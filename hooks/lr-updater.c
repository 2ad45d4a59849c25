/*
 * lr-updater.c: sets the learning rate before each iteration, from the configuration and the counters alone,
 * so that a resumed run needs no state and a changed `lr_config` takes effect at once.
 */
#include "config.h"

#include "hooks/lr-policy.h"

#include <runner/engine.h>

#include <math.h>

typedef struct
{
  RnHook hook;
  int by_epoch; /* index into auto_names */
  int warmup;   /* RnWarmup */
  gint64 warmup_iters;
  double warmup_ratio;
  gboolean warmup_by_epoch;
} LrUpdater;

typedef struct
{
  LrUpdater updater; /* first */
  const RnNode *step;
  double gamma, min_lr;
  gint64 every;       /* `step` is a number; else 0 */
  GArray *milestones; /* `step` is a list; of gint64 */
} StepLrUpdater;

static const char *const auto_names[] = { "false", "true", "auto", NULL };
static const char *const warmup_names[] = { "none", "constant", "linear", "exp", NULL };

enum
{
  BY_ITER,
  BY_EPOCH,
  BY_RUNNER,
};

/* clang-format off */
#define UPDATER_KEY(Struct, prefix, field, type_, deflt_, help_, ...) \
  { .name = #field, .type = (type_), .offset = G_STRUCT_OFFSET (Struct, prefix field), .deflt = (deflt_), \
    .help = (help_), ##__VA_ARGS__ }
#define UPDATER_KEYS(Struct, prefix) \
  UPDATER_KEY (Struct, prefix, by_epoch, RN_KEY_ENUM, "auto", \
               "progress counts epochs, not iterations; auto: as the runner does", .names = auto_names), \
  UPDATER_KEY (Struct, prefix, warmup, RN_KEY_ENUM, "none", \
               "how the first iterations approach the regular rate", .names = warmup_names, \
               .flags = RN_KEY_NULLABLE), \
  UPDATER_KEY (Struct, prefix, warmup_iters, RN_KEY_INT, "0", \
               "length of the warm-up in iterations, or epochs if warmup_by_epoch", .min = 0, .max = 1e9), \
  UPDATER_KEY (Struct, prefix, warmup_ratio, RN_KEY_FLOAT, "0.1", "first rate over regular rate", \
               .min = 1e-12, .max = 1), \
  UPDATER_KEY (Struct, prefix, warmup_by_epoch, RN_KEY_BOOL, "false", "warmup_iters counts epochs")
/* clang-format on */

static const RnKeySpec fixed_keys[] = {
  UPDATER_KEYS (LrUpdater, ),
  RN_KEY_END,
};

static const RnKeySpec step_keys[] = {
  UPDATER_KEYS (StepLrUpdater, updater.),
  RN_KEY (StepLrUpdater, step, RN_KEY_NODE, NULL,
          "a number: a step every so many; a list of numbers: where the steps are", .flags = RN_KEY_REQUIRED),
  RN_KEY (StepLrUpdater, gamma, RN_KEY_FLOAT, "0.1", "factor of a step", .min = 0, .max = 1e3),
  RN_KEY (StepLrUpdater, min_lr, RN_KEY_FLOAT, "null", "no step goes below this rate", .min = 0, .max = 1e6,
          .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  const LrUpdater *updater = (const LrUpdater *) hook;

  if (updater->warmup == RN_WARMUP_NONE || updater->warmup_iters > 0)
    return TRUE;
  return rn_node_error (hook->config, error, "warmup: %s needs warmup_iters > 0",
                        warmup_names[updater->warmup]);
}

static gboolean
read_positive (const RnNode *node, gint64 *value, GError **error)
{
  if (rn_node_kind (node) != RN_NODE_INT || rn_node_as_int (node) < 1)
    return rn_node_error (node, error, "must be a number above 0, or a list of such numbers");
  *value = rn_node_as_int (node);
  return TRUE;
}

static gboolean
step_init (RnHook *hook, RnRunner *runner, GError **error)
{
  StepLrUpdater *step = (StepLrUpdater *) hook;

  step->milestones = g_array_new (FALSE, FALSE, sizeof (gint64));
  if (rn_node_kind (step->step) != RN_NODE_LIST)
    return read_positive (step->step, &step->every, error) && init (hook, runner, error);
  for (guint i = 0; i < rn_node_size (step->step); i++)
    {
      gint64 milestone;
      if (!read_positive (rn_node_item (step->step, i), &milestone, error))
        return FALSE;
      g_array_append_val (step->milestones, milestone);
    }
  return init (hook, runner, error);
}

static void
step_clear (RnHook *hook)
{
  g_array_unref (((StepLrUpdater *) hook)->milestones);
}

static void
set_lr (const LrUpdater *updater, RnRunner *runner, double regular)
{
  RnWarmupRule rule = { (RnWarmup) updater->warmup, updater->warmup_ratio, updater->warmup_iters };

  if (updater->warmup_by_epoch)
    rule.n_iters *= rn_runner_epoch_length (runner);
  rn_runner_set_lr (runner, rn_warmup_lr (&rule, rn_runner_iter (runner), regular));
}

static gint64
get_progress (const LrUpdater *updater, const RnRunner *runner)
{
  gboolean by_epoch =
      updater->by_epoch == BY_RUNNER ? rn_runner_is_by_epoch (runner) : updater->by_epoch == BY_EPOCH;
  return by_epoch ? rn_runner_epoch (runner) : rn_runner_iter (runner);
}

static gboolean
fixed_before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  set_lr ((const LrUpdater *) hook, runner, rn_runner_base_lr (runner));
  return TRUE;
}

static gboolean
step_before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  const StepLrUpdater *step = (const StepLrUpdater *) hook;
  RnStepRule rule = {
    .every = step->every,
    .milestones = (const gint64 *) (gconstpointer) step->milestones->data,
    .n_milestones = step->milestones->len,
    .gamma = step->gamma,
    .min_lr = step->min_lr,
  };

  set_lr (&step->updater, runner,
          rn_step_lr (&rule, get_progress (&step->updater, runner), rn_runner_base_lr (runner)));
  return TRUE;
}

RN_HOOK_DEFINE (fixed_lr_updater, LrUpdater, .name = "FixedLrUpdaterHook",
                .summary = "lr_config.policy fixed: the optimizer's rate, after a warm-up",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = fixed_keys, .init = init,
                .before_train_iter = fixed_before_train_iter);

RN_HOOK_DEFINE (step_lr_updater, StepLrUpdater, .name = "StepLrUpdaterHook",
                .summary = "lr_config.policy step: times gamma at each step",
                .priority = RN_PRIORITY_VERY_HIGH, .keys = step_keys, .init = step_init, .clear = step_clear,
                .before_train_iter = step_before_train_iter);
