/* largest-batch.h: how many images of a training batch fit, by planning alone. */
#ifndef RUNNER_LARGEST_BATCH_H
#define RUNNER_LARGEST_BATCH_H

#include "runner/predict.h"

G_BEGIN_DECLS

typedef struct
{
  RnRoom room;
  int batch;             /* 0: not even one image fits */
  RnPrediction fits;     /* of batch, unless that is 0 */
  RnPrediction too_much; /* of one more */
  char **lines;          /* that it takes, each as after --set, NULL-ended; NULL: batch is 0 */
} RnLargestBatch;

/*
 * Begins with the batch that @predictor's shapes have. @sets: of char **, NULL-ended: lines to try, not
 * empty; the first that fits is taken. What fits and what does not are both planned.
 */
void rn_largest_batch (RnPredictor *predictor, const GPtrArray *sets, const RnRoom *room,
                       RnLargestBatch *largest);
void rn_largest_batch_clear (RnLargestBatch *largest);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnLargestBatch, rn_largest_batch_clear)

G_END_DECLS

#endif
