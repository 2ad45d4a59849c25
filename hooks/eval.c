/*
 * eval.c: evaluates the validation set every so many epochs or iterations, and keeps the best weights:
 * MMDetection's EvalHook.
 *
 * It runs before training as well when `start` is 0, and always at the end. An evaluation that a signal broke
 * off is made up for when the run is taken up. The best files are written before the regular checkpoint of
 * the same stage, which so knows of them.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include "hooks/best.h"
#include "hooks/counting.h"
#include "hooks/unused-key.h"

#include <runner/engine.h>

#include <math.h>
#include <string.h>

/* From the epoch or iteration @milestone on, @interval holds. */
typedef struct
{
  gint64 milestone, interval;
} Milestone;

typedef struct
{
  RnHook hook;
  gint64 interval, start;
  const RnNode *dynamic_intervals;
  GArray *milestones;     /* of Milestone, in order; or NULL */
  int by_epoch;           /* RN_BY_* */
  gboolean counts_epochs; /* what it comes to */
  char **metric;          /* names of @metrics */
  guint metrics;          /* of RnMetrics */
  int mode;
  GArray *iou_thr; /* of double */
  gboolean classwise;
  char *save_best, *rule, *out_dir;
  char **greater_keys, **less_keys;
  gint64 keep_best_k;
  char *dir;        /* of the best files */
  RnBestList *best; /* NULL without save_best */
  gint64 draw;
  gint64 owed; /* number of the epoch or iteration whose evaluation was broken off; -1: none */
} EvalHook;

static const char *const mode_names[] = { "auto", "11points", "area", NULL }; /* RnEvalMode */

static const RnKeySpec keys[] = {
  RN_KEY (EvalHook, interval, RN_KEY_INT, "1", "epochs or iterations between two evaluations", .min = 1,
          .max = 1e12),
  RN_KEY (EvalHook, start, RN_KEY_INT, "null",
          "the first one; the interval counts from it; 0: before training", .min = 0, .max = 1e12,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, dynamic_intervals, RN_KEY_NODE, "null",
          "list of [milestone, interval]: from that epoch or iteration on the interval is this one",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, by_epoch, RN_KEY_ENUM, "auto",
          "interval and start count epochs, not iterations; auto: as the runner does",
          .names = rn_by_epoch_names),
  RN_KEY (EvalHook, metric, RN_KEY_STRING_LIST, "mAP",
          "what is computed: mAP (Pascal VOC), bbox (COCO), or a list of both"),
  RN_KEY (EvalHook, mode, RN_KEY_ENUM, "auto",
          "average precision over 11 recalls or the whole area; auto: 11 for VOC2007", .names = mode_names),
  RN_KEY (EvalHook, iou_thr, RN_KEY_FLOAT_LIST, "0.5",
          "a detection hits from this overlap on; mAP is the mean over all given", .min = 0.01, .max = 1),
  RN_KEY (EvalHook, classwise, RN_KEY_BOOL, "true", "print bbox_mAP of each class too"),
  RN_KEY (EvalHook, save_best, RN_KEY_STRING, "null",
          "score whose best epoch is kept in a file of its own: auto, mAP, AP50, bbox_mAP; null: none",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, rule, RN_KEY_STRING, "null",
          "which of two scores is better: greater, less; null: what the name of the score says",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, greater_keys, RN_KEY_STRING_LIST, "null",
          "names, or parts of names, of scores that are better when greater; null: MMCV's",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, less_keys, RN_KEY_STRING_LIST, "null", "the same for less; null: loss",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, keep_best_k, RN_KEY_INT, "null",
          "best files to keep; null: checkpoint_config.keep_best_k, which is 1 if not given", .min = 1,
          .max = 1000, .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, out_dir, RN_KEY_STRING, "null",
          "write the best files to out_dir/(name of the work dir); null: to the work dir",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (EvalHook, draw, RN_KEY_INT, "0",
          "draw detections and ground truth of so many images, into vis/epoch_N, or iter_N, of the work dir",
          .max = 1e9),
  RN_UNUSED_KEY ("broadcast_bn_buffer", "there is one process"),
  RN_UNUSED_KEY ("file_client_args", "files go to the file system"),
  RN_UNUSED_KEY ("gpu_collect", "there is one process"),
  RN_UNUSED_KEY ("iou_thrs", "bbox is over 0.5 to 0.95, as COCO says; iou_thr is that of mAP"),
  RN_UNUSED_KEY ("jsonfile_prefix", "`runner eval --out` writes the detections"),
  RN_UNUSED_KEY ("logger", "results go to all loggers"),
  RN_UNUSED_KEY ("metric_items", "all scores of a metric are logged"),
  RN_UNUSED_KEY ("nproc", "`threads:` sets the threads"),
  RN_UNUSED_KEY ("proposal_nums", "COCO's 1, 10 and 100 detections"),
  RN_UNUSED_KEY ("scale_ranges", "scores of small, medium and large objects come with bbox"),
  RN_UNUSED_KEY ("tmpdir", "there is one process"),
  RN_KEY_END,
};

/* [milestone, interval] */
static gboolean
read_milestone (const RnNode *node, gint64 previous, Milestone *milestone, GError **error)
{
  gboolean is_pair = rn_node_kind (node) == RN_NODE_LIST && rn_node_size (node) == 2;

  for (guint i = 0; i < 2 && is_pair; i++)
    is_pair =
        rn_node_kind (rn_node_item (node, i)) == RN_NODE_INT && rn_node_as_int (rn_node_item (node, i)) >= 1;
  if (!is_pair)
    return rn_node_error (node, error, "must be [milestone, interval], both at least 1");
  milestone->milestone = rn_node_as_int (rn_node_item (node, 0));
  milestone->interval = rn_node_as_int (rn_node_item (node, 1));
  return milestone->milestone > previous
         || rn_node_error (node, error,
                           "milestones must grow: %" G_GINT64_FORMAT " follows %" G_GINT64_FORMAT,
                           milestone->milestone, previous);
}

static gboolean
read_milestones (EvalHook *self, GError **error)
{
  const RnNode *list = self->dynamic_intervals;
  gint64 previous = 0;

  if (list == NULL)
    return TRUE;
  if (rn_node_kind (list) != RN_NODE_LIST)
    return rn_node_error (list, error, "must be a list of [milestone, interval]");
  self->milestones = g_array_new (FALSE, FALSE, sizeof (Milestone));
  for (guint i = 0; i < rn_node_size (list); i++)
    {
      Milestone milestone;
      if (!read_milestone (rn_node_item (list, i), previous, &milestone, error))
        return FALSE;
      previous = milestone.milestone;
      g_array_append_val (self->milestones, milestone);
    }
  return TRUE;
}

/* A misspelt score is found before the training, not after it. */
static gboolean
check_save_best (EvalHook *self, const char *const *names, GError **error)
{
  if (g_strv_contains (names, self->save_best))
    return TRUE;
  if (g_str_equal (self->save_best, "auto"))
    {
      g_free (self->save_best);
      self->save_best = g_strdup (names[0]);
      return TRUE;
    }
  g_autofree char *all = g_strjoinv (", ", (char **) names);
  return rn_node_error (rn_node_get (self->hook.config, "save_best"), error,
                        "no score \"%s\"; with this metric and iou_thr there are auto, %s", self->save_best,
                        all);
}

/* The names of all scores. (transfer full) */
static char **
score_names (const EvalHook *self)
{
  return rn_metrics_score_names (self->metrics, (const double *) (gconstpointer) self->iou_thr->data,
                                 self->iou_thr->len);
}

static gboolean
prepare_best (EvalHook *self, GError **error)
{
  g_auto (GStrv) names = score_names (self);
  RnRuleKeys rule_keys = { self->rule, (const char *const *) self->greater_keys,
                           (const char *const *) self->less_keys };
  RnScoreRule rule;

  if (self->save_best == NULL)
    return TRUE;
  if (!check_save_best (self, (const char *const *) names, error)
      || !rn_score_rule_choose (self->save_best, &rule_keys, self->hook.config, &rule, error))
    return FALSE;
  self->best = rn_best_list_new (rule);
  return TRUE;
}

/* What the file alone can get wrong. */
static gboolean
prepare (RnHook *hook, RnWants *wants, GError **error)
{
  EvalHook *self = (EvalHook *) hook;

  if (self->iou_thr->len == 0)
    return rn_node_error (rn_node_get (hook->config, "iou_thr"), error, "needs at least one overlap");
  return rn_metrics_parse ((const char *const *) self->metric, hook->config, &self->metrics, error)
         && read_milestones (self, error) && prepare_best (self, error);
}

/* More of them than this take longer than the training; the interval was meant for epochs. */
#define MANY_EVALUATIONS 100

static void
warn_of_interval (const EvalHook *self, const RnRunner *runner)
{
  gint64 n = rn_runner_max_iters (runner) / self->interval;

  if (self->by_epoch == RN_BY_RUNNER && !self->counts_epochs && n > MANY_EVALUATIONS)
    g_warning ("evaluation.interval: %" G_GINT64_FORMAT
               " counts iterations in this run: that is %" G_GINT64_FORMAT
               " evaluations; a larger interval, or by_epoch: true, makes them fewer",
               self->interval, n);
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  g_auto (GStrv) names = score_names (self);

  self->owed = -1;
  self->counts_epochs = rn_counts_epochs (self->by_epoch, runner);
  warn_of_interval (self, runner);
  if (!rn_runner_can_evaluate (runner))
    return rn_node_error (hook->config, error, "needs a validation set: data.val");
  for (char **name = names; *name != NULL; name++)
    rn_runner_declare_score (runner, *name);
  if (self->start == 0)
    rn_runner_set_starts_with_evaluation (runner);
  if (self->best == NULL)
    return TRUE;
  self->dir = self->out_dir != NULL ? rn_runner_make_out_dir (runner, self->out_dir, hook->config, error)
                                    : g_strdup (rn_runner_work_dir (runner));
  return self->dir != NULL;
}

static void
clear (RnHook *hook)
{
  EvalHook *self = (EvalHook *) hook;

  rn_best_list_free (self->best);
  g_clear_pointer (&self->milestones, g_array_unref);
  g_free (self->dir);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  const EvalHook *self = (const EvalHook *) hook;

  rn_record_set_int (state, "owed", self->owed);
  if (self->best == NULL)
    return;
  rn_record_set_string (state, "save_best", self->save_best);
  rn_record_set_string (state, "rule", rn_score_rule_name (rn_best_list_rule (self->best)));
  rn_best_list_save (self->best, state);
}

static guint
n_to_keep (const EvalHook *self, const RnRunner *runner)
{
  return self->keep_best_k != RN_NULL_INT ? (guint) self->keep_best_k : rn_runner_keep_best (runner);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  const char *score = rn_record_string (state, "save_best"), *rule = rn_record_string (state, "rule");

  self->owed = rn_record_int (state, "owed", -1);
  if (self->best == NULL || score == NULL)
    return TRUE;
  if (g_str_equal (score, self->save_best)
      && g_strcmp0 (rule, rn_score_rule_name (rn_best_list_rule (self->best))) == 0)
    rn_best_list_load (self->best, state, self->dir);
  else
    g_message (
        "resume: the best files so far are those of %s (%s); %s (%s) starts without one, and they stay",
        score, rule != NULL ? rule : "?", self->save_best,
        rn_score_rule_name (rn_best_list_rule (self->best)));
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
  if (self->best == NULL)
    return;
  double score = rn_record_float (scores, self->save_best, NAN);
  if (!rn_runner_can_save (runner))
    {
      g_warning ("no best file of this evaluation: the loss is not finite");
      return;
    }
  g_autofree char *name = g_strdup_printf ("best_%s_%s_%" G_GINT64_FORMAT ".safetensors", self->save_best,
                                           self->counts_epochs ? "epoch" : "iter", n);
  g_autofree char *dropped = NULL;
  int place = rn_best_list_offer (self->best, name, score, n_to_keep (self, runner), &dropped);
  if (place < 0)
    return;
  RnCheckpointRequest request = {
    .dir = self->dir, .name = name, .save_optimizer = TRUE, .is_best = TRUE, .replaces = dropped
  };
  rn_runner_request_checkpoint (runner, &self->hook, &request);
  if (place == 0)
    g_message ("best %s so far: %.4f", self->save_best, score);
  else
    g_message ("%s %.4f: number %d of the best", self->save_best, score, place + 1);
}

/* @epoch, @iter: finished ones that the weights stand for. */
static gboolean
evaluate (EvalHook *self, RnRunner *runner, gint64 epoch, gint64 iter, GError **error)
{
  gint64 n = self->counts_epochs ? epoch : iter;
  g_autofree char *stage =
      g_strdup_printf ("%s_%" G_GINT64_FORMAT, self->counts_epochs ? "epoch" : "iter", n);
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
      self->owed = n; /* after an error too, in the checkpoint of this stage */
      if (cause != NULL)
        g_propagate_error (error, cause);
      return cause == NULL;
    }
  if (!self->classwise)
    g_clear_pointer (&evaluation.class_bbox, g_free);
  g_autofree char *table = rn_evaluation_table (&evaluation, rn_runner_class_names (runner));
  g_message ("%s", table);
  RnRecord *scores = make_scores (&evaluation, epoch, iter);
  keep_best (self, runner, scores, n);
  rn_runner_put_scores (runner, scores);
  rn_evaluation_clear (&evaluation);
  return TRUE;
}

/* That of the last milestone that @n has reached. */
static gint64
interval_at (const EvalHook *self, gint64 n)
{
  gint64 interval = self->interval;
  for (guint i = 0; self->milestones != NULL && i < self->milestones->len; i++)
    if (g_array_index (self->milestones, Milestone, i).milestone <= n)
      interval = g_array_index (self->milestones, Milestone, i).interval;
  return interval;
}

/* @n: finished epochs or iterations, the running one included. */
static gboolean
is_due (const EvalHook *self, gint64 n)
{
  gint64 start = self->start == RN_NULL_INT ? 0 : self->start;
  return n >= start && (n - start) % interval_at (self, n) == 0;
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;

  if (self->owed < 0)
    return TRUE;
  /* A pass may be done whose after_train_epoch is still to come. */
  gboolean is_pass_done = rn_runner_inner_iter (runner) == rn_runner_epoch_length (runner);
  return evaluate (self, runner, rn_runner_epoch (runner) + is_pass_done, rn_runner_iter (runner), error);
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
  if (self->counts_epochs ? is_last && !rn_runner_is_end_of_epoch (runner) : is_last || is_due (self, n))
    return evaluate (self, runner,
                     rn_runner_epoch (runner) + (self->counts_epochs || rn_runner_is_end_of_epoch (runner)),
                     n, error);
  return TRUE;
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  EvalHook *self = (EvalHook *) hook;
  gint64 n = rn_runner_epoch (runner) + 1;

  if (self->counts_epochs && (rn_runner_is_last_epoch (runner) || is_due (self, n)))
    return evaluate (self, runner, n, rn_runner_iter (runner), error);
  return TRUE;
}

RN_HOOK_DEFINE (eval, EvalHook, .name = "EvalHook",
                .summary = "mean average precision of the validation set, and the best weights",
                .priority = RN_PRIORITY_LOW, .keys = keys, .prepare = prepare, .init = init, .clear = clear,
                .save_state = save_state, .load_state = load_state, .before_run = before_run,
                .before_train_iter = before_train_iter, .after_train_iter = after_train_iter,
                .after_train_epoch = after_train_epoch);
