/* cmd-eval.c: `runner eval`: average precision of a checkpoint. */
#define G_LOG_DOMAIN "rn-cli"
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/signals.h"
#include "runner/cli/common.h"
#include "runner/cli/eval-output.h"
#include "runner/config/schema.h"
#include "runner/draw/show.h"
#include "runner/evaluate.h"
#include "runner/job.h"
#include "runner/pr-chart.h"
#include "runner/weights/load.h"

#include <string.h>

/* The part of `evaluation:` that says what is computed; when it is done concerns training only. */
typedef struct
{
  char **metric;
  guint metrics; /* of RnMetrics */
  int mode;      /* RnEvalMode */
  GArray *iou_thr;
} EvalConfig;

static const char *const mode_names[] = { "auto", "11points", "area", NULL };

static const RnKeySpec eval_keys[] = {
  RN_KEY (EvalConfig, metric, RN_KEY_STRING_LIST, "mAP", "what is computed: mAP, bbox, or both"),
  RN_KEY (EvalConfig, mode, RN_KEY_ENUM, "auto", "how precision is averaged", .names = mode_names),
  RN_KEY (EvalConfig, iou_thr, RN_KEY_FLOAT_LIST, "0.5", "a detection hits from this overlap on", .min = 0.01,
          .max = 1),
  RN_KEY_END,
};

/* What the command line asks for; files to write beside the table: NULL where they are not wanted. */
typedef struct
{
  char *detections, *truth, *scores, *pr_curve;
  char *show_dir; /* folder of pictures */
  double show_score_thr;
  gboolean no_ema; /* evaluate the weights themselves */
} Wishes;

/* Where the detections of each image go, besides into the table; NULL: not wanted. */
typedef struct
{
  RnDetectionFile *file;
  RnShow *show;
} Sinks;

static void
sinks_clear (Sinks *sinks)
{
  g_clear_pointer (&sinks->file, rn_detection_file_free);
  g_clear_pointer (&sinks->show, rn_show_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sinks, sinks_clear)

static void
wishes_clear (Wishes *wishes)
{
  g_free (wishes->detections);
  g_free (wishes->truth);
  g_free (wishes->scores);
  g_free (wishes->pr_curve);
  g_free (wishes->show_dir);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Wishes, wishes_clear)

static void
config_clear (EvalConfig *config)
{
  rn_keys_clear (eval_keys, config);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (EvalConfig, config_clear)

static gboolean
parse_evaluation (const RnNode *node, EvalConfig *config, GError **error)
{
  g_autoptr (GPtrArray) skip = g_ptr_array_new ();

  for (guint i = 0; node != NULL && i < rn_node_size (node); i++)
    {
      const char *key = rn_node_key (node, i);
      gboolean is_ours = FALSE;
      for (const RnKeySpec *spec = eval_keys; spec->name != NULL; spec++)
        is_ours |= strcmp (spec->name, key) == 0;
      if (!is_ours)
        g_ptr_array_add (skip, (gpointer) key);
    }
  g_ptr_array_add (skip, NULL);
  if (!rn_keys_parse (eval_keys, node, config, (const char *const *) skip->pdata, error))
    return FALSE;
  if (config->iou_thr->len == 0)
    return rn_node_error (rn_node_get (node, "iou_thr"), error, "needs at least one overlap");
  return rn_metrics_parse ((const char *const *) config->metric, node, &config->metrics, error);
}

static gboolean
put_detections (const RnSampleMeta *meta, const GArray *detections, gpointer user_data, GError **error)
{
  const Sinks *sinks = user_data;

  return (sinks->file == NULL || rn_detection_file_add (sinks->file, meta->id, detections, error))
         && (sinks->show == NULL || rn_show_add (sinks->show, meta, detections, error));
}

/* Data, model and the weights of @path. */
static gboolean
open_job (RnJob *job, RnSplit split, const char *path, gboolean use_ema, GError **error)
{
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  g_autoptr (RnWeights) weights = rn_weights_open (path, error);

  if (weights == NULL || !rn_job_open_data (job, split, error))
    return FALSE;
  if (use_ema)
    rn_weights_use_ema (weights, RN_WEIGHTS_NO_EMA);
  g_autofree char *data = rn_dataset_describe (job->datasets[split]);
  g_message ("%s", data);
  if (!rn_weights_check_classes (weights, rn_dataset_class_names (job->datasets[split]), error))
    return FALSE;
  rn_weights_compare_config (weights, job->root);
  rn_job_add_shapes (job, split, RN_MODE_INFER, shapes);
  return rn_job_open_model (job, error) && rn_job_open_programs (job, shapes, FALSE, FALSE, error)
         && rn_programs_plan (job->programs, rn_job_show_progress, (gpointer) "planning shapes", error)
         && rn_programs_reserve (job->programs, error) && rn_job_load_weights (job, weights, error);
}

static gboolean
evaluate (RnJob *job, RnSplit split, const EvalConfig *config, Sinks *sinks, gboolean keep_curves,
          RnEvaluation *result, GError **error)
{
  RnEvalOptions options = {
    .metrics = config->metrics | (keep_curves ? RN_METRIC_MAP : 0),
    .mode = (RnEvalMode) config->mode,
    .iou_thrs = (const double *) (gconstpointer) config->iou_thr->data,
    .n_iou_thrs = config->iou_thr->len,
    .keep_curves = keep_curves,
  };
  g_autoptr (RnLoader) loader = rn_job_loader (job, split, error);
  return loader != NULL
         && rn_evaluate (job->programs, job->datasets[split], loader, &options, put_detections, sinks, result,
                         error);
}

/* Tries it and leaves nothing. */
static gboolean
can_write (const char *path, GError **error)
{
  g_autoptr (RnAtomicFile) file = path != NULL ? rn_atomic_file_new (path, error) : NULL;
  return path == NULL || file != NULL;
}

static gboolean
write_files (const Wishes *wishes, const char *checkpoint, const RnDataset *dataset,
             const RnEvaluation *result, GError **error)
{
  const char *const *names = rn_dataset_class_names (dataset);

  return (wishes->scores == NULL || rn_scores_write (wishes->scores, checkpoint, result, names, error))
         && (wishes->pr_curve == NULL || rn_pr_chart_write (result, names, wishes->pr_curve, error));
}

static gboolean
run (RnNode *root, const char *checkpoint, const Wishes *wishes, GError **error)
{
  g_autoptr (RnJob) job = rn_job_new (root, error);
  g_auto (EvalConfig) config = { 0 };
  g_auto (Sinks) sinks = { NULL, NULL };

  if (job == NULL || !parse_evaluation (job->config.evaluation, &config, error))
    return FALSE;
  RnSplit split = job->data.test != NULL ? RN_SPLIT_TEST : RN_SPLIT_VAL;
  if (!open_job (job, split, checkpoint, !wishes->no_ema, error))
    return FALSE;

  /* What cannot be written is said before the evaluation, which takes time. */
  const RnDataset *dataset = job->datasets[split];
  if (!can_write (wishes->scores, error) || !can_write (wishes->pr_curve, error))
    return FALSE;
  if (wishes->truth != NULL && !rn_truth_write (wishes->truth, dataset, error))
    return FALSE;
  if (wishes->detections != NULL
      && (sinks.file = rn_detection_file_new (wishes->detections, dataset, error)) == NULL)
    return FALSE;
  if (wishes->show_dir != NULL
      && (sinks.show = rn_show_new (wishes->show_dir, dataset, rn_dataset_size (dataset),
                                    wishes->show_score_thr, error))
             == NULL)
    return FALSE;
  RnEvaluation result = { 0 };
  rn_signals_install ();
  if (!evaluate (job, split, &config, &sinks, wishes->pr_curve != NULL, &result, error))
    return FALSE;
  g_autofree char *table = rn_evaluation_table (&result, rn_dataset_class_names (dataset));
  g_print ("%s\n", table);
  if (wishes->show_dir != NULL)
    g_message ("%" G_GINT64_FORMAT " pictures: %s", (gint64) rn_dataset_size (dataset), wishes->show_dir);
  gboolean is_ok = (sinks.file == NULL || rn_detection_file_commit (sinks.file, error))
                   && write_files (wishes, checkpoint, dataset, &result, error);
  rn_evaluation_clear (&result);
  return is_ok;
}

int
rn_cmd_eval (int argc, char **argv)
{
  g_auto (Wishes) wishes = { .show_score_thr = RN_SHOW_SCORE_THR };
  const GOptionEntry entries[] = {
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &wishes.detections,
      "Write the detections as JSON, in the form of COCO's results: image_id is the image's name, "
      "category_id "
      "its place in classes, from 0",
      "FILE" },
    { "out-truth", 0, 0, G_OPTION_ARG_FILENAME, &wishes.truth,
      "Write the ground truth that belongs to --out, for pycocotools", "FILE" },
    { "metrics-json", 0, 0, G_OPTION_ARG_FILENAME, &wishes.scores,
      "Write the scores, also of each class, as JSON", "FILE" },
    { "pr-curve", 0, 0, G_OPTION_ARG_FILENAME, &wishes.pr_curve,
      "Draw precision over recall of each class as PNG", "FILE" },
    { "show-dir", 0, 0, G_OPTION_ARG_FILENAME, &wishes.show_dir,
      "Draw each image with its detections and, dashed, the ground truth", "DIR" },
    { "show-score-thr", 0, 0, G_OPTION_ARG_DOUBLE, &wishes.show_score_thr,
      "Do not draw detections that do not score more (0.3)", "S" },
    { "no-ema", 0, 0, G_OPTION_ARG_NONE, &wishes.no_ema, RN_NO_EMA_HELP, NULL },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG CHECKPOINT",
    .summary = "Prints the average precision of a checkpoint on data.test, or on data.val where there is no "
               "data.test.\nevaluation.metric says which: mAP (Pascal VOC), bbox (COCO), or [mAP, bbox].",
    .examples = "  runner eval configs/retinanet_shapes.yaml work_dirs/retinanet_shapes/latest.safetensors\n"
                "  runner eval configs/retinanet_shapes.yaml best.safetensors --out detections.json\n"
                "  runner eval configs/retinanet_shapes.yaml best.safetensors --set evaluation.metric=bbox "
                "--pr-curve pr.png\n",
    .n_min = 1,
    .n_max = 1,
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (!(wishes.show_score_thr >= 0 && wishes.show_score_thr <= 1))
    {
      g_set_error_literal (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                           "--show-score-thr: expected 0 to 1");
      return rn_cli_fail (error);
    }
  RnNode *root = rn_options_load (&options, &error);
  if (root != NULL && run (root, options.arguments[0], &wishes, &error))
    return 0;
  if (error != NULL)
    return rn_cli_fail (error);
  return 128 + rn_signals_pending ();
}
