#include <config.h>

#include "boxes/detect.h"

#include <math.h>

static float
sigmoid (float x)
{
  return 1 / (1 + expf (-x));
}

static RnBox
unscale (RnBox box, float scale_w, float scale_h)
{
  return (RnBox) { box.x1 / scale_w, box.y1 / scale_h, box.x2 / scale_w, box.y2 / scale_h };
}

/* Total number of rows, or -1 if it, an anchor's number or the number of scores is out of range. */
static int
count_rows (const RnDetectRule *rule, const int (*sizes)[2], const RnLevelRows *rows)
{
  int n = 0, n_scores;

  for (int level = 0; level < rule->anchors->n_levels; level++)
    {
      int64_t n_level = (int64_t) sizes[level][0] * sizes[level][1] * rule->anchors->n_per_cell;

      if (rows[level].n < 0 || __builtin_add_overflow (n, rows[level].n, &n))
        return -1;
      for (int i = 0; i < rows[level].n; i++)
        if (rows[level].anchors[i] < 0 || rows[level].anchors[i] >= n_level)
          return -1;
    }
  return rule->num_classes > 0 && !__builtin_mul_overflow (n, rule->num_classes, &n_scores) ? n : -1;
}

RnStatus
rn_detect (const RnDetectRule *rule, const RnDetectImage *image, const int (*sizes)[2],
           const RnLevelRows *rows, RnDetection *detections, int *n_detections)
{
  const int n_classes = rule->num_classes;

  *n_detections = 0;
  if (rn_anchors_count (rule->anchors, sizes) < 0 || !(image->scale_w > 0) || !(image->scale_h > 0))
    return RN_STATUS_SHAPE;
  int n = count_rows (rule, sizes, rows);
  if (n < 0)
    return RN_STATUS_SHAPE;
  if (n == 0)
    return RN_STATUS_OK;

  g_autofree RnBox *boxes = g_try_new (RnBox, n);
  g_autofree float *scores = g_try_new (float, n * n_classes);
  if (boxes == NULL || scores == NULL)
    return RN_STATUS_MEMORY;

  RnBox *box = boxes;
  float *score = scores;
  for (int level = 0; level < rule->anchors->n_levels; level++)
    for (int i = 0; i < rows[level].n; i++)
      {
        RnBox anchor = rn_anchors_in_level (rule->anchors, level, sizes[level][1], rows[level].anchors[i]);
        RnBox decoded = rn_coder_decode (rule->coder, anchor, &rows[level].deltas[(gsize) i * 4],
                                         (float) image->img_width, (float) image->img_height);

        *box++ = unscale (decoded, image->scale_w, image->scale_h);
        for (int c = 0; c < n_classes; c++)
          *score++ = sigmoid (rows[level].logits[(gsize) i * n_classes + c]);
      }
  return rn_nms_multiclass (&rule->nms, boxes, scores, n, n_classes, detections, n_detections);
}
