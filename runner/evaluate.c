#include "config.h"

#include "runner/evaluate.h"

#include "boxes/average-precision.h"
#include "boxes/coco-ap.h"
#include "runner/base/log.h"
#include "runner/base/signals.h"

G_STATIC_ASSERT ((int) RN_COCO_N_STATS == RN_BBOX_N_STATS);

/* What is collected. */
typedef struct
{
  GPtrArray *voc;   /* of RnApEval, one an IoU threshold */
  RnCocoEval *coco; /* NULL: not wanted */
} Evals;

/* Ground truth of one image, as the evaluation wants it. */
typedef struct
{
  GArray *boxes, *labels, *difficults, *difficult_labels;
} Truth;

static void
truth_init (Truth *truth)
{
  truth->boxes = g_array_new (FALSE, FALSE, sizeof (RnBox));
  truth->labels = g_array_new (FALSE, FALSE, sizeof (int32_t));
  truth->difficults = g_array_new (FALSE, FALSE, sizeof (RnBox));
  truth->difficult_labels = g_array_new (FALSE, FALSE, sizeof (int32_t));
}

static void
truth_clear (Truth *truth)
{
  g_array_unref (truth->boxes);
  g_array_unref (truth->labels);
  g_array_unref (truth->difficults);
  g_array_unref (truth->difficult_labels);
}

static void
truth_fill (Truth *truth, const RnDataset *dataset, int64_t index)
{
  RnGroundTruth found;

  g_array_set_size (truth->boxes, 0);
  g_array_set_size (truth->labels, 0);
  g_array_set_size (truth->difficults, 0);
  g_array_set_size (truth->difficult_labels, 0);
  rn_dataset_ground_truth (dataset, index, &found);
  for (int i = 0; i < found.n; i++)
    {
      const float *b = found.boxes[i];
      RnBox box = { b[0], b[1], b[2], b[3] };
      int32_t label = found.labels[i];
      g_array_append_val (found.difficult[i] ? truth->difficults : truth->boxes, box);
      g_array_append_val (found.difficult[i] ? truth->difficult_labels : truth->labels, label);
    }
}

static gboolean
add_image (const Evals *evals, const Truth *truth, const GArray *detections, GError **error)
{
  RnApImage image = {
    .detections = (const RnDetection *) (gconstpointer) detections->data,
    .n_detections = (int) detections->len,
    .gts = (const RnBox *) (gconstpointer) truth->boxes->data,
    .gt_labels = (const int32_t *) (gconstpointer) truth->labels->data,
    .n_gts = (int) truth->boxes->len,
    .difficults = (const RnBox *) (gconstpointer) truth->difficults->data,
    .difficult_labels = (const int32_t *) (gconstpointer) truth->difficult_labels->data,
    .n_difficults = (int) truth->difficults->len,
  };

  for (guint i = 0; i < evals->voc->len; i++)
    if (!rn_ap_eval_add (g_ptr_array_index (evals->voc, i), &image, error))
      return FALSE;
  return evals->coco == NULL || rn_coco_eval_add (evals->coco, &image, error);
}

static void
unref_detections (GArray **detections, int n)
{
  for (int i = 0; i < n; i++)
    g_array_unref (detections[i]);
}

static gboolean
run_batch (RnPrograms *programs, const RnDataset *dataset, const RnBatch *batch, const Evals *evals,
           Truth *truth, RnDetectionFunc func, gpointer user_data, GError **error)
{
  g_autofree GArray **detections = g_new0 (GArray *, batch->n);
  gboolean is_ok = TRUE;

  if (!rn_programs_infer (programs, batch, detections, error))
    return FALSE;
  for (int i = 0; is_ok && i < batch->n; i++)
    {
      truth_fill (truth, dataset, batch->metas[i].index);
      is_ok = add_image (evals, truth, detections[i], error)
              && (func == NULL || func (&batch->metas[i], detections[i], user_data, error));
    }
  unref_detections (detections, batch->n);
  return is_ok;
}

static void
show_progress (int64_t done, int64_t total)
{
  g_autofree char *text = g_strdup_printf ("evaluating %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT, done, total);
  rn_log_set_status (text);
}

static gboolean
run_all (RnPrograms *programs, const RnDataset *dataset, RnLoader *loader, const Evals *evals,
         RnDetectionFunc func, gpointer user_data, GError **error)
{
  Truth truth;
  gboolean is_ok = TRUE;
  const RnBatch *batch = NULL;
  GError *cause = NULL;

  truth_init (&truth);
  rn_loader_start (loader, 0, 0);
  for (int64_t i = 1;
       is_ok && rn_signals_pending () == 0 && (batch = rn_loader_next (loader, &cause)) != NULL; i++)
    {
      is_ok = run_batch (programs, dataset, batch, evals, &truth, func, user_data, &cause);
      rn_loader_release (loader, batch);
      show_progress (i, rn_loader_n_batches (loader));
    }
  rn_log_set_status (NULL);
  truth_clear (&truth);
  if (cause != NULL)
    g_propagate_error (error, cause);
  return is_ok && cause == NULL && rn_signals_pending () == 0;
}

static void
class_clear (gpointer data)
{
  g_clear_pointer (&((RnClassScore *) data)->curve, g_array_unref);
}

static void
score_clear (gpointer data)
{
  g_array_unref (((RnIouScore *) data)->classes);
}

/* (transfer full) */
static GArray *
copy_curve (RnApEval *eval, int label)
{
  g_autoptr (GArray) points = rn_ap_eval_curve (eval, label);
  GArray *curve = g_array_sized_new (FALSE, FALSE, sizeof (RnCurvePoint), points->len);

  for (guint i = 0; i < points->len; i++)
    {
      const RnApPoint *p = &g_array_index (points, RnApPoint, i);
      RnCurvePoint point = { p->recall, (double) p->precision };
      g_array_append_val (curve, point);
    }
  return curve;
}

static void
finish_voc (const Evals *evals, const RnEvalOptions *options, int n_classes, RnEvaluation *result)
{
  g_autofree RnApClass *table = g_new0 (RnApClass, n_classes);

  result->scores = g_array_new (FALSE, FALSE, sizeof (RnIouScore));
  g_array_set_clear_func (result->scores, score_clear);
  result->map = 0;
  for (guint i = 0; i < evals->voc->len; i++)
    {
      RnApEval *eval = g_ptr_array_index (evals->voc, i);
      RnIouScore score = { .iou_thr = options->iou_thrs[i],
                           .classes = g_array_new (FALSE, FALSE, sizeof (RnClassScore)) };
      g_array_set_clear_func (score.classes, class_clear);
      score.map = rn_ap_eval_finish (eval, table);
      for (int k = 0; k < n_classes; k++)
        {
          RnClassScore class = { k,
                                 table[k].n_gts,
                                 table[k].n_dets,
                                 table[k].recall,
                                 (double) table[k].ap,
                                 options->keep_curves ? copy_curve (eval, k) : NULL };
          g_array_append_val (score.classes, class);
        }
      g_array_append_val (result->scores, score);
      result->map += score.map / evals->voc->len;
    }
}

static void
finish_coco (const Evals *evals, int n_classes, RnEvaluation *result)
{
  result->bbox = NULL;
  result->class_bbox = NULL;
  if (evals->coco == NULL)
    return;
  result->bbox = g_new (double, RN_BBOX_N_STATS);
  result->class_bbox = g_new (double, n_classes);
  rn_coco_eval_finish (evals->coco, result->bbox, result->class_bbox);
}

gboolean
rn_evaluate (RnPrograms *programs, const RnDataset *dataset, RnLoader *loader, const RnEvalOptions *options,
             RnDetectionFunc func, gpointer user_data, RnEvaluation *result, GError **error)
{
  int n_classes = rn_model_num_classes (rn_programs_model (programs));
  RnApMode mode = options->mode == RN_EVAL_11POINTS ? RN_AP_11POINTS
                  : options->mode == RN_EVAL_AREA   ? RN_AP_AREA
                                                    : rn_dataset_default_ap_mode (dataset);
  g_autoptr (GPtrArray) voc = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_ap_eval_free);
  g_autoptr (RnCocoEval) coco = options->metrics & RN_METRIC_BBOX ? rn_coco_eval_new (n_classes) : NULL;
  const Evals evals = { voc, coco };

  for (gsize i = 0; options->metrics & RN_METRIC_MAP && i < options->n_iou_thrs; i++)
    g_ptr_array_add (voc, rn_ap_eval_new (n_classes, options->iou_thrs[i], mode));
  if (!run_all (programs, dataset, loader, &evals, func, user_data, error))
    return FALSE;
  finish_voc (&evals, options, n_classes, result);
  finish_coco (&evals, n_classes, result);
  result->n_images = rn_dataset_size (dataset);
  return TRUE;
}
