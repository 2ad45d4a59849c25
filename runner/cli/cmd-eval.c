/* cmd-eval.c: `runner eval`: mean average precision of a checkpoint. */
#define G_LOG_DOMAIN "rn-cli"
#include "config.h"

#include "runner/cli/commands.h"

#include "boxes/box.h"
#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/signals.h"
#include "runner/checkpoint.h"
#include "runner/cli/common.h"
#include "runner/config/schema.h"
#include "runner/evaluate.h"
#include "runner/job.h"
#include "runner/param-io.h"

#include <string.h>

/* The part of `evaluation:` that says what is computed; when it is done concerns training only. */
typedef struct
{
  int mode; /* RnEvalMode */
  GArray *iou_thr;
} EvalConfig;

static const char *const mode_names[] = { "auto", "11points", "area", NULL };

static const RnKeySpec eval_keys[] = {
  RN_KEY (EvalConfig, mode, RN_KEY_ENUM, "auto", "how precision is averaged", .names = mode_names),
  RN_KEY (EvalConfig, iou_thr, RN_KEY_FLOAT_LIST, "0.5", "a detection hits from this overlap on", .min = 0.01,
          .max = 1),
  RN_KEY_END,
};

/* Detections on their way to the file: one JSON list in the form of COCO's results. */
typedef struct
{
  RnAtomicFile *file;
  const RnDataset *dataset;
  gboolean has_items;
} Output;

static gboolean
parse_evaluation (const RnNode *node, EvalConfig *config, GError **error)
{
  g_autoptr (GPtrArray) skip = g_ptr_array_new ();

  for (guint i = 0; node != NULL && i < rn_node_size (node); i++)
    if (strcmp (rn_node_key (node, i), "mode") != 0 && strcmp (rn_node_key (node, i), "iou_thr") != 0)
      g_ptr_array_add (skip, (gpointer) rn_node_key (node, i));
  g_ptr_array_add (skip, NULL);
  return rn_keys_parse (eval_keys, node, config, (const char *const *) skip->pdata, error);
}

static gboolean
write_text (Output *output, const char *text, GError **error)
{
  return rn_atomic_file_write (output->file, text, strlen (text), error);
}

static gboolean
write_detections (const RnSampleMeta *meta, const GArray *detections, gpointer user_data, GError **error)
{
  Output *output = user_data;

  for (guint i = 0; i < detections->len; i++)
    {
      const RnDetection *d = &g_array_index (detections, RnDetection, i);
      const double box[] = { (double) d->box.x1, (double) d->box.y1, (double) (d->box.x2 - d->box.x1),
                             (double) (d->box.y2 - d->box.y1) };
      g_autoptr (RnRecord) record = rn_record_new ();
      rn_record_set_string (record, "image_id", meta->id);
      rn_record_set_int (record, "category_id", d->label);
      rn_record_set_string (record, "category", rn_dataset_class_name (output->dataset, d->label));
      rn_record_set_floats (record, "bbox", box, G_N_ELEMENTS (box)); /* x, y, width, height in pixels */
      rn_record_set_float (record, "score", (double) d->score);
      g_autofree char *json = rn_record_to_json (record, 9);
      if (!write_text (output, output->has_items ? ",\n" : "[\n", error) || !write_text (output, json, error))
        return FALSE;
      output->has_items = TRUE;
    }
  return TRUE;
}

/* Data, model and the weights of @path. */
static gboolean
open_job (RnJob *job, RnSplit split, const char *path, GError **error)
{
  g_autoptr (GArray) shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, error);

  if (file == NULL || !rn_safetensors_verify (file, error) || !rn_job_open_data (job, split, error))
    return FALSE;
  g_autofree char *data = rn_dataset_describe (job->datasets[split]);
  g_message ("%s", data);
  if (!rn_checkpoint_check_classes (file, rn_dataset_class_names (job->datasets[split]), error))
    {
      g_prefix_error (error, "%s: ", path);
      return FALSE;
    }
  rn_job_add_shapes (job, split, RN_MODE_INFER, shapes);
  return rn_job_open_model (job, error) && rn_job_open_programs (job, shapes, FALSE, FALSE, error)
         && rn_programs_plan (job->programs, rn_job_show_progress, (gpointer) "planning shapes", error)
         && rn_programs_reserve (job->programs, error)
         && rn_params_load (rn_programs_params (job->programs), rn_programs_device (job->programs), file,
                            error);
}

static gboolean
evaluate (RnJob *job, RnSplit split, const EvalConfig *config, Output *output, RnEvaluation *result,
          GError **error)
{
  RnEvalOptions options = {
    .mode = (RnEvalMode) config->mode,
    .iou_thrs = (const double *) (gconstpointer) config->iou_thr->data,
    .n_iou_thrs = config->iou_thr->len,
  };
  g_autoptr (RnLoader) loader = rn_job_loader (job, split, error);
  return loader != NULL
         && rn_evaluate (job->programs, job->datasets[split], loader, &options,
                         output->file != NULL ? write_detections : NULL, output, result, error);
}

static gboolean
run (RnNode *root, const char *checkpoint, const char *out, GError **error)
{
  g_autoptr (RnJob) job = rn_job_new (root, error);
  EvalConfig config = { 0 };

  if (job == NULL || !parse_evaluation (job->config.evaluation, &config, error))
    return FALSE;
  g_autoptr (GArray) iou_thr = config.iou_thr;
  if (iou_thr->len == 0)
    return rn_node_error (rn_node_get (job->config.evaluation, "iou_thr"), error,
                          "needs at least one overlap");
  RnSplit split = job->data.test != NULL ? RN_SPLIT_TEST : RN_SPLIT_VAL;
  if (!open_job (job, split, checkpoint, error))
    return FALSE;

  g_autoptr (RnAtomicFile) file = out != NULL ? rn_atomic_file_new (out, error) : NULL;
  if (out != NULL && file == NULL)
    return FALSE;
  Output output = { file, job->datasets[split], FALSE };
  RnEvaluation result = { 0 };
  rn_signals_install ();
  if (!evaluate (job, split, &config, &output, &result, error))
    return FALSE;
  g_autofree char *table = rn_evaluation_table (&result, rn_dataset_class_names (job->datasets[split]));
  g_print ("%s\n", table);
  rn_evaluation_clear (&result);
  return file == NULL
         || (write_text (&output, output.has_items ? "\n]\n" : "[]\n", error)
             && rn_atomic_file_commit (file, error));
}

int
rn_cmd_eval (int argc, char **argv)
{
  g_autofree char *out = NULL;
  const GOptionEntry entries[] = {
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &out, "Write the detections as JSON, in the form of COCO's results",
      "FILE" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG CHECKPOINT",
    .summary = "Prints the mean average precision of a checkpoint on data.test, or on data.val where there "
               "is no data.test.",
    .examples = "  runner eval configs/retinanet_shapes.yaml work_dirs/retinanet_shapes/latest.safetensors\n"
                "  runner eval configs/retinanet_shapes.yaml best.safetensors --out detections.json\n",
    .n_min = 1,
    .n_max = 1,
    .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  RnNode *root = rn_options_load (&options, &error);
  if (root != NULL && run (root, options.arguments[0], out, &error))
    return 0;
  if (error != NULL)
    return rn_cli_fail (error);
  return 128 + rn_signals_pending ();
}
