/* small-model.h: configs/retinanet_shapes.yaml with a model that trains in milliseconds. */
#ifndef TESTS_SMALL_MODEL_H
#define TESTS_SMALL_MODEL_H

/* Texts for --set, separated by commas. With 8 channels in place of 16, convolutions are far slower. */
#define SMALL_MODEL                                                              \
  "model.backbone.base_channels=16", "model.neck.in_channels=[16, 32, 64, 128]", \
      "model.neck.out_channels=16", "model.bbox_head.in_channels=16", "model.bbox_head.feat_channels=16"

#endif
