/*
 * small-detector.h: a detector that is two convolutions deep, on drawn shapes of 64x64 pixels: the whole
 * program, data set, loaders, plans and all, at a thousandth of the time.
 */
#ifndef TESTS_RUNNER_SMALL_DETECTOR_H
#define TESTS_RUNNER_SMALL_DETECTOR_H

#include "runner/strategies.h"
#include "runner/train.h"

G_BEGIN_DECLS

#define SMALL_EPOCH 10 /* batches of two images in one pass of the data */

/* Registers its parts: backbone OneConv (convolution of stride 16, batch norm with the statistics of the
 * batch, ReLU) and neck PassOn. Call it once. */
void small_detector_register (void);
/* A new folder with the data. (transfer full) */
char *small_detector_data (void);

/*
 * For --set: another model, which has everything that memory strategies are about: the first stages of a
 * ResNet, of which the first is frozen (its batch norms are on frozen statistics, those of the second learn),
 * a pyramid of two levels, and a convolution in each tower of the head. Weights stay random: pass
 * @is_resumed.
 */
#define SMALL_RESNET                                                                                        \
  "model.backbone={type: ResNet, depth: 18, num_stages: 2, stem_channels: 16, base_channels: 16, strides: " \
  "[1, 2], dilations: [1, 1], out_indices: [0, 1], frozen_stages: 1, norm_eval: false}",                    \
      "model.neck={type: FPN, in_channels: [16, 32], out_channels: 16, num_outs: 2}",                       \
      "model.bbox_head.in_channels=16", "model.bbox_head.feat_channels=16",                                 \
      "model.bbox_head.stacked_convs=1", "model.bbox_head.anchor_generator.strides=[4, 8]"

/*
 * Adds what --set has to say for @id, with settings that have an effect on SMALL_RESNET; strings are lent.
 * @workspace_limit: the line for RN_STRATEGY_WORKSPACE_LIMIT, as kernels of a device can work with.
 */
void small_detector_add_strategy (GPtrArray *changes, RnStrategyId id, const char *workspace_limit);

/*
 * A training of it in @work_dir, which must exist. @changes: as after --set, NULL-ended. A failure ends the
 * test, unless @error is given. (transfer full)
 */
RnTraining *small_detector_training (const char *data, const char *work_dir, const char *const *changes,
                                     gboolean is_resumed, GError **error);
/* The part of it in front of rn_training_new. Errors are the caller's. */
RnJob *small_detector_job (const char *data, const char *work_dir, const char *const *changes,
                           GError **error);

G_END_DECLS

#endif
