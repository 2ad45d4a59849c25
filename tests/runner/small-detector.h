/*
 * small-detector.h: a detector that is two convolutions deep, on drawn shapes of 64x64 pixels: the whole
 * program, data set, loaders, plans and all, at a thousandth of the time.
 */
#ifndef TESTS_RUNNER_SMALL_DETECTOR_H
#define TESTS_RUNNER_SMALL_DETECTOR_H

#include "runner/train.h"

G_BEGIN_DECLS

#define SMALL_EPOCH 10 /* batches of two images in one pass of the data */

/* Registers its parts: backbone OneConv (convolution of stride 16, batch norm with the statistics of the
 * batch, ReLU) and neck PassOn. Call it once. */
void small_detector_register (void);
/* A new folder with the data. (transfer full) */
char *small_detector_data (void);

/*
 * A training of it in @work_dir, which must exist. @changes: as after --set, NULL-ended. A failure ends the
 * test, unless @error is given. (transfer full)
 */
RnTraining *small_detector_training (const char *data, const char *work_dir, const char *const *changes,
                                     gboolean is_resumed, GError **error);

G_END_DECLS

#endif
