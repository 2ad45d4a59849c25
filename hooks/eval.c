/*
 * eval.c: evaluates the validation set every so many epochs or iterations, and keeps the best weights:
 * MMDetection's EvalHook.
 *
 * It runs before training as well when `start` is 0, and always at the end. An evaluation that a signal broke
 * off is made up for when the run is taken up.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include <runner/engine.h>

#include <math.h>
#include <string.h>

typedef struct
{
  RnHook hook;
  gint64 interval, start;
  gboolean by_epoch;
  char **metric; /* names of @metrics */
  guint metrics; /* of RnMetrics */
  int mode, rule;
  GArray *iou_thr; /* of double */
  char *save_best;
  double best_score; /* -INFINITY: none yet */
  char *best_name;   /* file in the work dir, or NULL */
  gint64 draw;
  gint64 owed; /* number of the epoch or iteration whose evaluation was broken off; -1: none */
} EvalHook;

static const char *const mode_names[] = { "auto", "11points", "area", NULL }; /* RnEvalMode */
static const char *const rule_names[] = { "greater", NULL };

static const RnKeySpec keys[] = {
  RN_KEY (EvalHook, interval, RN_KEY_INT, "1", "epochs or iterations between two evaluations", .min = 1,
          .max = 1e12),
  RN_KEY (EvalHook, start, RN_KEY_INT, "null",
          "the first one; the interval counts from it; 0: before training", .min = 0, .max = 1e12,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, by_epoch, RN_KEY_BOOL, "true", "interval and start count epochs, not iterations"),
  RN_KEY (EvalHook, metric, RN_KEY_STRING_LIST, "mAP",
          "what is computed: mAP (Pascal VOC), bbox (COCO), or a list of both"),
  RN_KEY (EvalHook, mode, RN_KEY_ENUM, "auto",
          "average precision over 11 recalls or the whole area; auto: 11 for VOC2007", .names = mode_names),
  RN_KEY (EvalHook, iou_thr, RN_KEY_FLOAT_LIST, "0.5",
          "a detection hits from this overlap on; mAP is the mean over all given", .min = 0.01, .max = 1),
  RN_KEY (EvalHook, save_best, RN_KEY_STRING, "null",
          "score whose best epoch is kept in a file of its own: auto, mAP, AP50, bbox_mAP; null: none",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, rule, RN_KEY_ENUM, "greater", "which of two scores is better", .names = rule_names),
  RN_KEY (EvalHook, draw, RN_KEY_INT, "0",
          "draw detections and ground truth of so many images, into vis/epoch_N of the work dir", .max = 1e9),
  RN_KEY_END,
};

/* A misspelt score is found before the training, not after it. */
static gboolean
check_save_best (EvalHook *self, GError **error)
{
  g_auto (GStrv) names = rn_metrics_score_names (
      self->metrics, (const double *) (gconstpointer) self->iou_thr->data, self->iou_thr->len);

  if (self->save_best == NULL || g_strv_contains ((const char *const *) names, self->save_best))
    return TRUE;
  if (g_str_equal (self->save_best, "auto"))
    {
      g_free (self->save_best);
      self->save_best = g_strdup (names[0]);
      return TRUE;
    }
  g_autofree char *all = g_strjoinv (", ", names);
  return rn_node_error (rn_node_get (self->hook.config, "save_best"), error,
                        "no score \"%s\"; with this metric and iou_thr there are auto, %s", self->save_best,
                        all);
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;

  self->best_score = -INFINITY;
  self->owed = -1;
  if (self->iou_thr->len == 0)
    return rn_node_error (hook->config, error, "iou_thr: needs at least one overlap");
  if (!rn_runner_can_evaluate (runner))
    return rn_node_error (hook->config, error, "needs a validation set: data.val");
  return rn_metrics_parse ((const char *const *) self->metric, hook->config, &self->metrics, error)
         && check_save_best (self, error);
}

static void
clear (RnHook *hook)
{
  g_free (((EvalHook *) hook)->best_name);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  const EvalHook *self = (const EvalHook *) hook;

  rn_record_set_int (state, "owed", self->owed);
  if (self->best_name == NULL)
    return;
  rn_record_set_float (state, "best_score", self->best_score);
  rn_record_set_string (state, "best_name", self->best_name);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  const char *name = rn_record_string (state, "best_name");

  self->owed = rn_record_int (state, "owed", -1);
  /* This file will be deleted when a better one comes: it must be one of ours. */
  if (name == NULL || !g_str_has_prefix (name, "best_") || strchr (name, '/') != NULL)
    return TRUE;
  g_free (self->best_name);
  self->best_name = g_strdup (name);
  self->best_score = rn_record_float (state, "best_score", -INFINITY);
  return TRUE;
}

static RnRecord *
make_scores (const RnEvaluation *evaluation, gint64 epoch, gint64 iter)
{
  RnRecord *scores = rn_record_new ();

  rn_record_set_int (scores, "epoch", epoch);
  rn_record_set_int (scores, "iter", iter);
  rn_record_set_int (scores, "n_images", evaluation->n_images);
  rn_evaluation_put_scores (evaluation, scores);
  return scores;
}

static void
keep_best (EvalHook *self, RnRunner *runner, const RnRecord *scores, gint64 n)
{
  double score = self->save_best != NULL ? rn_record_float (scores, self->save_best, NAN) : NAN;
  if (!(score > self->best_score)) /* NaN is never better */
    return;

  char *name = g_strdup_printf ("best_%s_%s_%" G_GINT64_FORMAT ".safetensors", self->save_best,
                                self->by_epoch ? "epoch" : "iter", n);
  RnCheckpointRequest request = {
    .name = name, .save_optimizer = TRUE, .is_best = TRUE, .replaces = self->best_name
  };
  rn_runner_request_checkpoint (runner, &self->hook, &request);
  g_message ("best %s so far: %.4f", self->save_best, score);
  g_free (self->best_name);
  self->best_name = name;
  self->best_score = score;
}

/* @epoch, @iter: finished ones that the weights stand for. */
static gboolean
evaluate (EvalHook *self, RnRunner *runner, gint64 epoch, gint64 iter, GError **error)
{
  gint64 n = self->by_epoch ? epoch : iter;
  g_autofree char *stage = g_strdup_printf ("%s_%" G_GINT64_FORMAT, self->by_epoch ? "epoch" : "iter", n);
  g_autofree char *draw_dir = g_build_filename (rn_runner_work_dir (runner), "vis", stage, NULL);
  RnEvalOptions options = {
    .metrics = self->metrics,
    .mode = (RnEvalMode) self->mode,
    .iou_thrs = (const double *) (gconstpointer) self->iou_thr->data,
    .n_iou_thrs = self->iou_thr->len,
    .n_draw = self->draw,
    .draw_dir = draw_dir,
  };
  RnEvaluation evaluation = { 0 };
  GError *cause = NULL;

  self->owed = -1;
  if (!rn_runner_evaluate (runner, &options, &evaluation, &cause))
    {
      if (cause == NULL)
        self->owed = n;
      else
        g_propagate_error (error, cause);
      return cause == NULL;
    }
  g_autofree char *table = rn_evaluation_table (&evaluation, rn_runner_class_names (runner));
  g_message ("%s", table);
  RnRecord *scores = make_scores (&evaluation, epoch, iter);
  keep_best (self, runner, scores, n);
  rn_runner_put_scores (runner, scores);
  rn_evaluation_clear (&evaluation);
  return TRUE;
}

static gboolean
is_due (const EvalHook *self, gint64 n)
{
  gint64 start = self->start == RN_NULL_INT ? 0 : self->start;
  return n >= start && (n - start) % self->interval == 0;
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;

  if (self->owed < 0)
    return TRUE;
  return evaluate (self, runner, rn_runner_epoch (runner), rn_runner_iter (runner), error);
}

static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;

  if (self->start != 0 || rn_runner_iter (runner) != 0)
    return TRUE;
  return evaluate (self, runner, 0, 0, error);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  gint64 n = rn_runner_iter (runner) + 1;
  gboolean is_last = rn_runner_is_last_iter (runner);

  /* A run counted in iterations may end in the middle of an epoch. */
  if (self->by_epoch ? is_last && !rn_runner_is_end_of_epoch (runner) : is_last || is_due (self, n))
    return evaluate (self, runner,
                     rn_runner_epoch (runner) + (self->by_epoch || rn_runner_is_end_of_epoch (runner)), n,
                     error);
  return TRUE;
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  gint64 n = rn_runner_epoch (runner) + 1;

  if (self->by_epoch && (rn_runner_is_last_epoch (runner) || is_due (self, n)))
    return evaluate (self, runner, n, rn_runner_iter (runner), error);
  return TRUE;
}

RN_HOOK_DEFINE (eval, EvalHook, .name = "EvalHook",
                .summary = "mean average precision of the validation set, and the best weights",
                .priority = RN_PRIORITY_LOW, .keys = keys, .init = init, .clear = clear,
                .save_state = save_state, .load_state = load_state, .before_run = before_run,
                .before_train_iter = before_train_iter, .after_train_iter = after_train_iter,
                .after_train_epoch = after_train_epoch);
