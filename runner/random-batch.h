/* random-batch.h: a batch of noise with random boxes, for timing and for checks without a data set. */
#ifndef RUNNER_RANDOM_BATCH_H
#define RUNNER_RANDOM_BATCH_H

#include <runner/batch.h>
#include "models/model.h"

G_BEGIN_DECLS

/*
 * Pixels that are normalised to mean 0 and deviation 1, in steps of 1/32, and the targets of @n_boxes boxes
 * per image, 16 pixels to half the image in size, as the model's assigner gives them. The same arguments give
 * the same bits. Errors: RN_DEVICE_ERROR_MEMORY.
 */
RnBatch *rn_random_batch_new (const RnModel *model, int n, int height, int width, int n_boxes, guint64 seed,
                              GError **error);
void rn_random_batch_free (RnBatch *batch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnBatch, rn_random_batch_free)

G_END_DECLS

#endif
