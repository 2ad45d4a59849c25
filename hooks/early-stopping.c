/*
 * early-stopping.c: ends a run whose score no longer gets better: MMEngine's EarlyStoppingHook.
 *
 * It looks at each evaluation, of an epoch or of an iteration, once all other hooks of the stage have seen
 * it.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/best.h"

#include <runner/engine.h>

#include <math.h>

typedef struct
{
  RnHook hook;
  char *monitor, *rule;
  double min_delta, stopping_threshold; /* NAN: none */
  gint64 patience;
  gboolean strict, check_finite;
  RnScoreRule chosen;
  double best;   /* NAN: none yet */
  gint64 n_wait; /* evaluations in a row without a better score */
} EarlyStopping;

static const RnKeySpec keys[] = {
  RN_KEY (EarlyStopping, monitor, RN_KEY_STRING, NULL, "the score to look at: mAP, AP50, bbox_mAP, ...",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (EarlyStopping, rule, RN_KEY_STRING, "null",
          "which of two scores is better: greater, less; null: what the name of the score says",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EarlyStopping, min_delta, RN_KEY_FLOAT, "0.1",
          "a score counts as better when it is more than this ahead of the best so far; mAP goes from 0 to 1",
          .max = 1e9),
  RN_KEY (EarlyStopping, patience, RN_KEY_INT, "5",
          "evaluations in a row without a better score, then the end", .min = 1, .max = 1e9),
  RN_KEY (EarlyStopping, strict, RN_KEY_BOOL, "false",
          "an evaluation without the score is an error; else a warning"),
  RN_KEY (EarlyStopping, check_finite, RN_KEY_BOOL, "true", "a score that is NaN or infinite ends the run"),
  RN_KEY (EarlyStopping, stopping_threshold, RN_KEY_FLOAT, "null",
          "a score better than this ends the run; null: none", .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  EarlyStopping *self = (EarlyStopping *) hook;
  RnRuleKeys rule = { .rule = self->rule };

  self->best = NAN;
  return rn_score_rule_choose (self->monitor, &rule, hook->config, &self->chosen, error);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  const EarlyStopping *self = (const EarlyStopping *) hook;

  rn_record_set_string (state, "monitor", self->monitor);
  rn_record_set_int (state, "n_wait", self->n_wait);
  if (!isnan (self->best))
    rn_record_set_float (state, "best", self->best);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  EarlyStopping *self = (EarlyStopping *) hook;
  const char *monitor = rn_record_string (state, "monitor");

  if (monitor == NULL || !g_str_equal (monitor, self->monitor)) /* of another score */
    return TRUE;
  self->best = rn_record_float (state, "best", NAN);
  self->n_wait = MAX (rn_record_int (state, "n_wait", 0), 0);
  return TRUE;
}

/* Is @score more than min_delta ahead of the best? */
static gboolean
is_progress (const EarlyStopping *self, double score)
{
  double delta = self->chosen == RN_RULE_LESS ? -self->min_delta : self->min_delta;
  return isnan (self->best) || rn_score_is_better (self->chosen, score, self->best + delta);
}

static gboolean
is_past_threshold (const EarlyStopping *self, double score)
{
  return !isnan (self->stopping_threshold)
         && rn_score_is_better (self->chosen, score, self->stopping_threshold);
}

static void
stop (const EarlyStopping *self, RnRunner *runner, const char *reason)
{
  g_message ("early stopping: %s", reason);
  rn_runner_stop (runner);
}

static void
count (EarlyStopping *self, double score)
{
  if (isfinite (score) && is_progress (self, score))
    {
      self->best = score;
      self->n_wait = 0;
    }
  else
    self->n_wait = MIN (self->n_wait, G_MAXINT64 - 1) + 1;
}

/* Why the run should end, or NULL. (transfer full) */
static char *
find_reason (const EarlyStopping *self, double score)
{
  if (!isfinite (score) && self->check_finite)
    return g_strdup_printf ("%s is %g", self->monitor, score);
  if (is_past_threshold (self, score))
    return g_strdup_printf ("%s is %.4f, better than the stopping_threshold %g", self->monitor, score,
                            self->stopping_threshold);
  if (self->n_wait >= self->patience)
    return g_strdup_printf ("%s has not got better by more than %g in %" G_GINT64_FORMAT
                            " evaluations; best %.4f, now %.4f",
                            self->monitor, self->min_delta, self->n_wait, self->best, score);
  return NULL;
}

static void
judge (EarlyStopping *self, RnRunner *runner, double score)
{
  count (self, score);
  g_autofree char *reason = find_reason (self, score);
  if (reason != NULL)
    stop (self, runner, reason);
}

static gboolean
look (RnHook *hook, RnRunner *runner, GError **error)
{
  EarlyStopping *self = (EarlyStopping *) hook;
  const RnRecord *scores = rn_runner_scores (runner);

  if (scores == NULL)
    return TRUE;
  if (rn_record_is_float (scores, self->monitor))
    judge (self, runner, rn_record_float (scores, self->monitor, NAN));
  else if (self->strict)
    return rn_hook_error (error, "this evaluation has no score \"%s\"", self->monitor);
  else
    g_warning ("EarlyStoppingHook: this evaluation has no score \"%s\": not counted", self->monitor);
  return TRUE;
}

/* All hooks have said by now what scores they will give. */
static gboolean
check_monitor (const EarlyStopping *self, const RnRunner *runner, GError **error)
{
  const char *const *names = rn_runner_score_names (runner);
  const RnNode *node = rn_node_get (self->hook.config, "monitor");

  if (g_strv_contains (names, self->monitor))
    return TRUE;
  if (names[0] == NULL)
    return rn_node_error (node, error,
                          "there is no evaluation to look at; what works: `evaluation: {interval: 1}`");
  g_autofree char *all = g_strjoinv (", ", (char **) names);
  return rn_node_error (node, error, "no score \"%s\"; there are %s", self->monitor, all);
}

/* A run that had stopped and is taken up does not go on, unless the configuration says so. One that owed an
 * evaluation has just made up for it. */
static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  EarlyStopping *self = (EarlyStopping *) hook;

  if (!check_monitor (self, runner, error))
    return FALSE;
  if (rn_runner_scores (runner) != NULL)
    return look (hook, runner, error);
  if (is_past_threshold (self, self->best) || self->n_wait >= self->patience)
    stop (self, runner,
          "the run had stopped before; what goes on: a larger patience, or no EarlyStoppingHook");
  return TRUE;
}

RN_HOOK_DEFINE (early_stopping, EarlyStopping, .name = "EarlyStoppingHook",
                .summary = "ends a run whose score no longer gets better", .priority = RN_PRIORITY_LOWEST,
                .keys = keys, .init = init, .save_state = save_state, .load_state = load_state,
                .before_run = before_run, .after_train_iter = look, .after_train_epoch = look);
