/*
 * detector.h: what a model is made of, for model.c and the detectors.
 */
#ifndef MODELS_DETECTOR_H
#define MODELS_DETECTOR_H

#include "models/component.h"
#include "models/model.h"

G_BEGIN_DECLS

/* `setup` of the detector fills everything but detector. */
struct _RnModel
{
  RnPart detector;     /* RnDetectorDesc and its keys */
  RnFeatures features; /* of the head's input */
  RnHeadOutputs head;
  RnMaxIoUAssigner assigner;
  RnTestConfig test;
  RnModelMemory memory;
  gboolean has_frozen_stages;
  const char *pretrained; /* lent by the detector or the backbone, or NULL */
};

typedef struct
{
  RnPartDesc part;
  const char *const *loss_names;
  /* @num_classes: of the data set, or 0 */
  gboolean (*setup) (RnModel *model, const RnNode *config, int num_classes, GError **error);
  /* @sizes: of the head's levels; @inputs: NULL in RN_MODE_INFER */
  void (*write) (const RnModel *model, RnGraph *graph, RnValueId image, const int (*sizes)[2],
                 const RnLossInputs *inputs);
} RnDetectorDesc;

G_END_DECLS

#endif
