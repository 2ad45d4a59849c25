/*
 * average-precision.h: mean average precision as Pascal VOC defines it, computed as MMDetection's eval_map
 * does.
 */
#ifndef BOXES_AVERAGE_PRECISION_H
#define BOXES_AVERAGE_PRECISION_H

#include <glib.h>
#include <stdint.h>
#include "boxes/box.h"

G_BEGIN_DECLS

typedef enum
{
  RN_AP_11POINTS, /* mean of the best precision at recall 0, 0.1, ..., 1 (VOC2007) */
  RN_AP_AREA,     /* area under the precision envelope (VOC2010 and later) */
} RnApMode;

typedef enum
{
  RN_AP_IGNORED, /* found a difficult box: counts neither way */
  RN_AP_TRUE,
  RN_AP_FALSE,
} RnApVerdict;

typedef struct
{
  int64_t n_gts; /* without difficult ones */
  int64_t n_dets;
  double recall; /* of all detections */
  float ap;      /* 0 without ground truth */
} RnApClass;

/* Boxes of one image in pixels of the original, 0-based inclusive corners. Lent. */
typedef struct
{
  const RnDetection *detections;
  int n_detections;
  const RnBox *gts;
  const int32_t *gt_labels;
  int n_gts;
  const RnBox *difficults;
  const int32_t *difficult_labels;
  int n_difficults;
} RnApImage;

/* RN_DATA_ERROR_FORMAT for a label outside 0..@num_classes - 1 or a score that is NaN. */
gboolean rn_ap_image_check (const RnApImage *image, int num_classes, GError **error);

/**
 * rn_ap_match:
 * @detections, @n_detections: of one image and one class
 * @gts, @n_gts, @difficults, @n_difficults: ground truth of this image and class
 * @iou_thr: an IoU (legacy, see rn_box_iou) from here on is a hit; a float32 IoU of 0.7 does not reach the
 * double 0.7, as in MMDetection with NumPy 1
 * @verdicts: [n_detections]
 *
 * In the order of descending score, the earlier on ties: each looks at the box that it overlaps most, the
 * first on ties, normal boxes before difficult ones. The first to hit a normal box is true, the next ones are
 * false.
 */
void rn_ap_match (const RnDetection *detections, int n_detections, const RnBox *gts, int n_gts,
                  const RnBox *difficults, int n_difficults, double iou_thr, RnApVerdict *verdicts);

/* Collects the images of an evaluation. */
typedef struct _RnApEval RnApEval;

/* @iou_thr: usually 0.5 */
RnApEval *rn_ap_eval_new (int num_classes, double iou_thr, RnApMode mode);
void rn_ap_eval_free (RnApEval *eval);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnApEval, rn_ap_eval_free)

/* The order of images decides between detections of the same score. Errors as of rn_ap_image_check. */
gboolean rn_ap_eval_add (RnApEval *eval, const RnApImage *image, GError **error);

/* Precision and recall of all detections down to one score, in the types that MMDetection has. */
typedef struct
{
  double recall;
  float precision;
} RnApPoint;

/* Of RnApPoint, one a detection of class @label, from the best score down. (transfer full) */
GArray *rn_ap_eval_curve (RnApEval *eval, int label);

/*
 * Fills @table [num_classes] (may be NULL) and gives the mean AP of the classes that have ground truth, 0 if
 * there are none.
 */
double rn_ap_eval_finish (RnApEval *eval, RnApClass *table);

G_END_DECLS

#endif
