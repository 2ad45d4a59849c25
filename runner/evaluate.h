/* evaluate.h: runs a data set through a model and computes the metrics of VOC and of COCO. */
#ifndef RUNNER_EVALUATE_H
#define RUNNER_EVALUATE_H

#include <runner/engine.h>
#include "datasets/loader.h"
#include "runner/programs.h"

G_BEGIN_DECLS

/* Gets the detections (of RnDetection, lent) of each image, in order. May be NULL. */
typedef gboolean (*RnDetectionFunc) (const RnSampleMeta *meta, const GArray *detections, gpointer user_data,
                                     GError **error);

/**
 * rn_evaluate:
 * @loader: of @dataset, in test mode, every image once
 * @result: filled on success; to be cleared with rn_evaluation_clear
 *
 * Returns: FALSE with @error, or FALSE without it when rn_signals_pending broke it off
 */
gboolean rn_evaluate (RnPrograms *programs, const RnDataset *dataset, RnLoader *loader,
                      const RnEvalOptions *options, RnDetectionFunc func, gpointer user_data,
                      RnEvaluation *result, GError **error);

G_END_DECLS

#endif
