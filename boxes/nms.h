/*
 * nms.h: of many overlapping candidates keeps the best ones (greedy non-maximum suppression, class by class).
 */
#ifndef BOXES_NMS_H
#define BOXES_NMS_H

#include <glib.h>
#include <stdint.h>
#include "boxes/box.h"
#include "runner/base/error.h"

G_BEGIN_DECLS

typedef struct
{
  float score_thr;  /* a (box, class) is a candidate if its score is above */
  float iou_thr;    /* it is suppressed by a better one of its class if their IoU is above */
  int max_per_img;  /* detections of one image, > 0 */
} RnNmsRule;

/**
 * rn_nms_multiclass:
 * @boxes: [n]; those that are not finite are left out
 * @scores: [n][n_classes]
 * @detections: [rule->max_per_img]
 * @n_detections: (out): number written
 *
 * Candidates are taken in the order of descending score, on ties of ascending box * n_classes + class. The
 * first max_per_img survivors are the detections, in this order.
 *
 * Returns: RN_STATUS_OK, RN_STATUS_SHAPE for negative numbers or products above 2^31-1, RN_STATUS_MEMORY
 */
RnStatus rn_nms_multiclass (const RnNmsRule *rule, const RnBox *boxes, const float *scores, int n,
                            int n_classes, RnDetection *detections, int *n_detections);

G_END_DECLS

#endif
