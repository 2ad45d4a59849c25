/* scene.h: the inputs that make_fixtures.py draws: parameters, pixels, boxes; and the targets that follow
 * from them. */
#ifndef TESTS_MODELS_PARITY_SCENE_H
#define TESTS_MODELS_PARITY_SCENE_H

#include <runner/batch.h>
#include "graph/params.h"
#include "models/model.h"

#define SCENE_IMAGES 2
#define SCENE_HEIGHT 71
#define SCENE_WIDTH 103
#define SCENE_CLASSES 3
#define SCENE_PIXELS (SCENE_IMAGES * 3 * SCENE_HEIGHT * SCENE_WIDTH)

typedef struct
{
  float *image;          /* [SCENE_PIXELS] */
  gint64 n_anchors;      /* of one image */
  gint16 *labels;        /* [SCENE_IMAGES][n_anchors] */
  RnPositive *positives; /* [n_positives] */
  gint64 n_positives;
  float avg_factor;
} Scene;

/* The targets are made by boxes/. */
Scene *scene_new (guint64 seed, const RnModel *model);
void scene_free (Scene *scene);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Scene, scene_free)

/* Draws all parameters and running statistics into @params, which must have memory. */
void scene_draw_params (guint64 seed, RnParamSet *params, RnDevice *device);

#endif
