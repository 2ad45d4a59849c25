/*
 * coco-ap.h: average precision and recall as COCO defines them for boxes, computed as pycocotools' COCOeval
 * does: mean over ten overlaps and 101 recalls, by size of the object.
 *
 * Widths and areas are x2 - x1, without the +1 of Pascal VOC. A difficult box is one to ignore: COCOeval with
 * `ignore` set and `iscrowd` 0. It overlaps like any other, takes one detection, which then counts neither
 * way, and is looked at after the normal ones.
 */
#ifndef BOXES_COCO_AP_H
#define BOXES_COCO_AP_H

#include "boxes/average-precision.h"

G_BEGIN_DECLS

/* In the order of COCOeval.stats. Overlaps from 0.5 to 0.95 unless the name has one, 100 detections of a
 * class in an image unless the name has another number. Small objects have areas up to 32^2, large ones from
 * 96^2. */
typedef enum
{
  RN_COCO_AP,
  RN_COCO_AP_50,
  RN_COCO_AP_75,
  RN_COCO_AP_S,
  RN_COCO_AP_M,
  RN_COCO_AP_L,
  RN_COCO_AR_1,
  RN_COCO_AR_10,
  RN_COCO_AR_100,
  RN_COCO_AR_S,
  RN_COCO_AR_M,
  RN_COCO_AR_L,
  RN_COCO_N_STATS,
} RnCocoStat;

/* Collects the images of an evaluation; 24 bytes a detection. */
typedef struct _RnCocoEval RnCocoEval;

RnCocoEval *rn_coco_eval_new (int num_classes);
void rn_coco_eval_free (RnCocoEval *eval);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCocoEval, rn_coco_eval_free)

/*
 * The order of images decides between detections of the same score. Errors as of rn_ap_eval_add. A box that
 * is not finite overlaps nothing.
 */
gboolean rn_coco_eval_add (RnCocoEval *eval, const RnApImage *image, GError **error);

/*
 * Fills @stats, -1 where no object of that size exists, and @class_ap [num_classes] (nullable) with the
 * RN_COCO_AP of each class, -1 for a class without objects.
 */
void rn_coco_eval_finish (RnCocoEval *eval, double stats[RN_COCO_N_STATS], double *class_ap);

G_END_DECLS

#endif
