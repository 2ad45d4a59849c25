/* fixture.h: models for tests, from the configurations that are shipped. */
#ifndef TESTS_MODELS_FIXTURE_H
#define TESTS_MODELS_FIXTURE_H

#include "models/model.h"

/* A model and the parameters of the graphs that were built from it. */
typedef struct
{
  RnModel *model;
  RnParamSet *params;
} Fixture;

/*
 * configs/_base_/models/retinanet_r50_fpn.yaml (80 classes, stem and layer1 frozen) with @changes, a
 * NULL-ended list as after --set, or NULL. The parts are registered on first use.
 */
RnModel *fixture_model (const char *const *changes, GError **error);
/* The same; a failure ends the test. */
void fixture_init (Fixture *self, const char *const *changes);
void fixture_clear (Fixture *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* (transfer full) */
RnGraph *fixture_graph (Fixture *self, RnMode mode, int n, int height, int width);

typedef enum
{
  ALL_WEIGHTS,
  TRAINABLE_WEIGHTS,
  NORM_WEIGHTS,
} WeightKind;

/* Elements, or with @tensors tensors, of the weights whose names start with @prefix. */
gint64 fixture_count (const Fixture *self, const char *prefix, WeightKind kind, gboolean tensors);

/* Ops of the kind in the scopes that start with @prefix. */
int fixture_count_ops (const RnGraph *graph, RnOp op, const char *prefix);
/*
 * Their operations, counted as MMCV's flops counter does: a multiply-add is one, an added bias, a ReLU and a
 * pooled pixel are one each, a batch norm is two per element; losses and upsampling are free.
 */
gint64 fixture_count_operations (const RnGraph *graph, const char *prefix, gboolean convolutions_only);

#endif
