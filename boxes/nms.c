#include <config.h>

#include "boxes/nms.h"

#include <stdlib.h>

typedef struct
{
  float score;
  int32_t index; /* box * n_classes + class */
} Candidate;

static int
compare_candidates (const void *pa, const void *pb)
{
  const Candidate *a = pa, *b = pb;

  if (a->score != b->score)
    return a->score > b->score ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

/* Writes the candidates to @candidates (unless NULL) in the order of their index. Returns their number. */
static gsize
find_candidates (const RnBox *boxes, const float *scores, int n, int n_classes, float score_thr,
                 Candidate *candidates)
{
  gsize found = 0;

  for (int i = 0; i < n; i++)
    {
      if (!rn_box_is_finite (boxes[i]))
        continue;
      for (int c = 0; c < n_classes; c++)
        {
          int32_t index = i * n_classes + c;
          if (!(scores[index] > score_thr))
            continue;
          if (candidates != NULL)
            candidates[found] = (Candidate) { scores[index], index };
          found++;
        }
    }
  return found;
}

static gboolean
is_suppressed (RnBox box, int32_t label, const RnDetection *kept, int n_kept, float iou_thr)
{
  for (int i = 0; i < n_kept; i++)
    if (kept[i].label == label && rn_box_iou (kept[i].box, box, FALSE) > iou_thr)
      return TRUE;
  return FALSE;
}

RnStatus
rn_nms_multiclass (const RnNmsRule *rule, const RnBox *boxes, const float *scores, int n, int n_classes,
                   RnDetection *detections, int *n_detections)
{
  int product;

  *n_detections = 0;
  if (n < 0 || n_classes < 0 || __builtin_mul_overflow (n, n_classes, &product))
    return RN_STATUS_SHAPE;
  gsize n_candidates = find_candidates (boxes, scores, n, n_classes, rule->score_thr, NULL);
  if (n_candidates == 0)
    return RN_STATUS_OK;
  g_autofree Candidate *candidates = g_try_new (Candidate, n_candidates);
  if (candidates == NULL)
    return RN_STATUS_MEMORY;
  find_candidates (boxes, scores, n, n_classes, rule->score_thr, candidates);
  qsort (candidates, n_candidates, sizeof *candidates, compare_candidates);

  /* Only kept boxes suppress, so each candidate meets max_per_img boxes at most. */
  int n_kept = 0;
  for (gsize i = 0; i < n_candidates && n_kept < rule->max_per_img; i++)
    {
      RnBox box = boxes[candidates[i].index / n_classes];
      int32_t label = candidates[i].index % n_classes;

      if (!is_suppressed (box, label, detections, n_kept, rule->iou_thr))
        detections[n_kept++] = (RnDetection) { box, candidates[i].score, label };
    }
  *n_detections = n_kept;
  return RN_STATUS_OK;
}
