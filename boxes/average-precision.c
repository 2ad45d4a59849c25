#include <config.h>

#include "boxes/average-precision.h"

#include <float.h>
#include <math.h>

#include "runner/base/error.h"

/* What remains of a detection when its image is done. */
typedef struct
{
  float score;
  RnApVerdict verdict;
} Hit;

typedef struct
{
  int64_t n_gts;
  GArray *hits; /* of Hit, in the order of images */
} Class;

struct _RnApEval
{
  int num_classes;
  double iou_thr;
  RnApMode mode;
  Class *classes;
  GArray *detections, *gts, *difficults, *verdicts; /* of one image and class */
};

static int
compare_detections (const void *pa, const void *pb, gpointer user_data)
{
  const RnDetection *detections = user_data;
  float a = detections[*(const int *) pa].score, b = detections[*(const int *) pb].score;
  return (a < b) - (a > b);
}

static int
compare_hits (const void *pa, const void *pb)
{
  float a = ((const Hit *) pa)->score, b = ((const Hit *) pb)->score;
  return (a < b) - (a > b);
}

void
rn_ap_match (const RnDetection *detections, int n_detections, const RnBox *gts, int n_gts,
             const RnBox *difficults, int n_difficults, double iou_thr, RnApVerdict *verdicts)
{
  g_autofree int *order = g_new (int, n_detections);
  g_autofree gboolean *is_taken = g_new0 (gboolean, n_gts);

  for (int i = 0; i < n_detections; i++)
    order[i] = i;
  /* This sort is stable. */
  g_qsort_with_data (order, n_detections, sizeof *order, compare_detections, (gpointer) detections);

  for (int i = 0; i < n_detections; i++)
    {
      RnBox box = detections[order[i]].box;
      float best_iou = -1;
      int best = -1;

      for (int g = 0; g < n_gts + n_difficults; g++)
        {
          float iou = rn_box_iou (box, g < n_gts ? gts[g] : difficults[g - n_gts], TRUE);
          if (iou > best_iou)
            {
              best_iou = iou;
              best = g;
            }
        }

      RnApVerdict *verdict = &verdicts[order[i]];
      if (best < 0 || (double) best_iou < iou_thr)
        *verdict = RN_AP_FALSE;
      else if (best >= n_gts)
        *verdict = RN_AP_IGNORED;
      else
        {
          *verdict = is_taken[best] ? RN_AP_FALSE : RN_AP_TRUE;
          is_taken[best] = TRUE;
        }
    }
}

RnApEval *
rn_ap_eval_new (int num_classes, double iou_thr, RnApMode mode)
{
  RnApEval *eval = g_new0 (RnApEval, 1);

  eval->num_classes = num_classes;
  eval->iou_thr = iou_thr;
  eval->mode = mode;
  eval->classes = g_new0 (Class, num_classes);
  for (int c = 0; c < num_classes; c++)
    eval->classes[c].hits = g_array_new (FALSE, FALSE, sizeof (Hit));
  eval->detections = g_array_new (FALSE, FALSE, sizeof (RnDetection));
  eval->gts = g_array_new (FALSE, FALSE, sizeof (RnBox));
  eval->difficults = g_array_new (FALSE, FALSE, sizeof (RnBox));
  eval->verdicts = g_array_new (FALSE, FALSE, sizeof (RnApVerdict));
  return eval;
}

void
rn_ap_eval_free (RnApEval *eval)
{
  if (eval == NULL)
    return;
  for (int c = 0; c < eval->num_classes; c++)
    g_array_unref (eval->classes[c].hits);
  g_array_unref (eval->detections);
  g_array_unref (eval->gts);
  g_array_unref (eval->difficults);
  g_array_unref (eval->verdicts);
  g_free (eval->classes);
  g_free (eval);
}

static gboolean
check_label (const char *what, int32_t label, int num_classes, GError **error)
{
  if (label >= 0 && label < num_classes)
    return TRUE;
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s has label %d, but there are %d classes", what,
               label, num_classes);
  return FALSE;
}

gboolean
rn_ap_image_check (const RnApImage *image, int num_classes, GError **error)
{
  for (int i = 0; i < image->n_detections; i++)
    {
      if (!check_label ("a detection", image->detections[i].label, num_classes, error))
        return FALSE;
      if (isnan (image->detections[i].score))
        {
          g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "a detection's score is not a number");
          return FALSE;
        }
    }
  for (int i = 0; i < image->n_gts; i++)
    if (!check_label ("a ground-truth box", image->gt_labels[i], num_classes, error))
      return FALSE;
  for (int i = 0; i < image->n_difficults; i++)
    if (!check_label ("a difficult box", image->difficult_labels[i], num_classes, error))
      return FALSE;
  return TRUE;
}

static void
select_boxes (GArray *selected, const RnBox *boxes, const int32_t *labels, int n, int32_t label)
{
  g_array_set_size (selected, 0);
  for (int i = 0; i < n; i++)
    if (labels[i] == label)
      g_array_append_val (selected, boxes[i]);
}

static void
select_detections (GArray *selected, const RnDetection *detections, int n, int32_t label)
{
  g_array_set_size (selected, 0);
  for (int i = 0; i < n; i++)
    if (detections[i].label == label)
      g_array_append_val (selected, detections[i]);
}

gboolean
rn_ap_eval_add (RnApEval *eval, const RnApImage *image, GError **error)
{
  if (!rn_ap_image_check (image, eval->num_classes, error))
    return FALSE;

  for (int c = 0; c < eval->num_classes; c++)
    {
      Class *class = &eval->classes[c];

      select_boxes (eval->gts, image->gts, image->gt_labels, image->n_gts, c);
      select_boxes (eval->difficults, image->difficults, image->difficult_labels, image->n_difficults, c);
      select_detections (eval->detections, image->detections, image->n_detections, c);
      class->n_gts += eval->gts->len;

      const RnDetection *detections = (const RnDetection *) eval->detections->data;
      guint n = eval->detections->len;
      g_array_set_size (eval->verdicts, n);
      const RnApVerdict *verdicts = (const RnApVerdict *) eval->verdicts->data;
      rn_ap_match (detections, (int) n, (const RnBox *) eval->gts->data, (int) eval->gts->len,
                   (const RnBox *) eval->difficults->data, (int) eval->difficults->len, eval->iou_thr,
                   (RnApVerdict *) eval->verdicts->data);
      for (guint i = 0; i < n; i++)
        {
          Hit hit = { detections[i].score, verdicts[i] };
          g_array_append_val (class->hits, hit);
        }
    }
  return TRUE;
}

/*
 * Sorts the hits and counts down from the best score. The sort is stable, so that equal scores stay in the
 * order of images. (transfer full)
 */
static GArray *
trace_curve (Class *class)
{
  GArray *curve = g_array_sized_new (FALSE, FALSE, sizeof (RnApPoint), class->hits->len);
  double n_gts = MAX ((double) class->n_gts, FLT_EPSILON);
  int64_t n_true = 0, n_false = 0;

  g_array_sort (class->hits, compare_hits);
  for (guint i = 0; i < class->hits->len; i++)
    {
      RnApVerdict verdict = g_array_index (class->hits, Hit, i).verdict;

      n_true += verdict == RN_AP_TRUE;
      n_false += verdict == RN_AP_FALSE;
      RnApPoint point = {
        .recall = (double) n_true / n_gts,
        .precision = (float) n_true / MAX ((float) (n_true + n_false), FLT_EPSILON),
      };
      g_array_append_val (curve, point);
    }
  return curve;
}

/*
 * MMDetection adds float32 precisions up in float32 and compares the double recall with the double k * 0.1.
 * That is 0.30000000000000004 for k = 3, which a recall of exactly 3/10 does not reach.
 */
static float
ap_11points (const RnApPoint *curve, guint n)
{
  float sum = 0;

  for (int k = 0; k <= 10; k++)
    {
      float best = 0;
      for (guint i = 0; i < n; i++)
        if (curve[i].recall >= k * 0.1)
          best = MAX (best, curve[i].precision);
      sum += best;
    }
  return sum / 11;
}

/* From the right, so that the envelope (the best precision at this recall or a higher one) needs no array. */
static float
ap_area (const RnApPoint *curve, guint n)
{
  double sum = 0, envelope = 0;

  for (guint i = n; i-- > 0;)
    {
      double before = i > 0 ? curve[i - 1].recall : 0;
      envelope = MAX (envelope, (double) curve[i].precision);
      sum += (curve[i].recall - before) * envelope;
    }
  return (float) sum;
}

GArray *
rn_ap_eval_curve (RnApEval *eval, int label)
{
  return trace_curve (&eval->classes[label]);
}

double
rn_ap_eval_finish (RnApEval *eval, RnApClass *table)
{
  double sum = 0;
  int n_with_gts = 0;

  for (int c = 0; c < eval->num_classes; c++)
    {
      Class *class = &eval->classes[c];
      g_autoptr (GArray) curve = trace_curve (class);
      const RnApPoint *points = (const RnApPoint *) curve->data;
      guint n = curve->len;
      float ap = eval->mode == RN_AP_11POINTS ? ap_11points (points, n) : ap_area (points, n);

      if (class->n_gts > 0)
        {
          sum += (double) ap;
          n_with_gts++;
        }
      if (table != NULL)
        table[c] = (RnApClass){ class->n_gts, n, n > 0 ? points[n - 1].recall : 0, ap };
    }
  return n_with_gts > 0 ? sum / n_with_gts : 0;
}
