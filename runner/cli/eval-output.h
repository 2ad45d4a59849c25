/* eval-output.h: what `runner eval` writes beside its table: detections, ground truth and scores as JSON. */
#ifndef RUNNER_CLI_EVAL_OUTPUT_H
#define RUNNER_CLI_EVAL_OUTPUT_H

#include <runner/engine.h>
#include "datasets/dataset.h"

G_BEGIN_DECLS

/*
 * Detections on their way to a file in the form of COCO's results, which pycocotools' loadRes takes: a list
 * of
 * {"image_id", "category_id", "category", "bbox", "score"}. image_id is the image's name in the split list,
 * as a string; category_id the place in `classes`, from 0; bbox x, y, width and height in pixels of the
 * image.
 */
typedef struct _RnDetectionFile RnDetectionFile;

RnDetectionFile *rn_detection_file_new (const char *path, const RnDataset *dataset, GError **error);
/* @detections: of RnDetection, of the image @id. */
gboolean rn_detection_file_add (RnDetectionFile *file, const char *id, const GArray *detections,
                                GError **error);
gboolean rn_detection_file_commit (RnDetectionFile *file, GError **error);
void rn_detection_file_free (RnDetectionFile *file); /* without a commit nothing is left */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnDetectionFile, rn_detection_file_free)

/*
 * The ground truth that goes with it, in the form of COCO's instances: "images", "categories", "annotations",
 * with the same ids. Difficult objects have "iscrowd" 1, which is how pycocotools is told to ignore them.
 */
gboolean rn_truth_write (const char *path, const RnDataset *dataset, GError **error);

/*
 * {"checkpoint", "n_images", "scores": {"AP50", "mAP", "bbox_mAP", ...}, "classes": [...]}: for each class
 * its name, "bbox_mAP" and for each overlap "iou_thr", "gts", "dets", "recall" and "ap". Numbers that do not
 * exist (no object of that size) are null.
 */
gboolean rn_scores_write (const char *path, const char *checkpoint, const RnEvaluation *evaluation,
                          const char *const *class_names, GError **error);

G_END_DECLS

#endif
