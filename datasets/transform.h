/* transform.h: one step of a pipeline, and what such steps work on. */
#ifndef RUNNER_DATASETS_TRANSFORM_H
#define RUNNER_DATASETS_TRANSFORM_H

#include <runner/batch.h>
#include "datasets/dataset.h"
#include "runner/base/registry.h"
#include "runner/base/rng.h"

G_BEGIN_DECLS

/* One image on its way through the pipeline. All memory is lent by the caller. */
typedef struct
{
  RnSampleMeta
      *meta; /* sizes are planned before the first step runs; gt_boxes and gt_labels have room for truth.n */
  RnGroundTruth truth;       /* of the image as decoded */
  RnRng rng;                 /* keyed by (seed, epoch, index) */
  guint8 *pixels;            /* [height, width, 3] RGB: ori_* before Resize, img_* after it */
  guint8 *spare;             /* as large as pixels; a step may swap the two */
  const float (*table)[256]; /* [3]: the float of each byte, by output channel; NULL: the byte itself */
  gboolean rgb;              /* channel order of the output; FALSE: BGR, as OpenCV reads */
  float *image;              /* output [3, out_height, out_width] */
  int out_width, out_height; /* of the batch, at least the padded size of this image */
} RnSample;

/* The order that steps must have. */
typedef enum
{
  RN_TRANSFORM_LOAD,
  RN_TRANSFORM_ANNOTATIONS,
  RN_TRANSFORM_RESIZE,
  RN_TRANSFORM_FLIP,
  RN_TRANSFORM_NORMALIZE,
  RN_TRANSFORM_PAD,
  RN_TRANSFORM_BUNDLE,
  RN_TRANSFORM_COLLECT,
  RN_TRANSFORM_NEST, /* stands for other steps (MultiScaleFlipAug); anywhere */
} RnTransformRank;

typedef struct
{
  RnComponent component;
  RnTransformRank rank;
  /* Checks what the key table cannot, and prepares the instance. May be NULL. */
  gboolean (*setup) (gpointer self, const RnNode *node, gboolean test_mode, GError **error);
  /* Carries the sizes in @meta over this step; no pixels. May be NULL. */
  void (*plan) (gconstpointer self, RnSampleMeta *meta);
  /* May be NULL. */
  gboolean (*run) (gconstpointer self, RnSample *sample, GError **error);
} RnTransformDesc;

/* Keys of MultiScaleFlipAug, read by the pipeline. */
typedef struct
{
  GArray *img_scale;
  gboolean flip;
  const RnNode *transforms;
} RnMultiScaleFlipAug;

/* Keys of Resize. */
typedef struct
{
  GArray *img_scale; /* of gint64: two sides in pixels */
  gboolean keep_ratio;
} RnResize;

extern const RnTransformDesc rn_transform_load_image;
extern const RnTransformDesc rn_transform_load_annotations;
extern const RnTransformDesc rn_transform_resize;
extern const RnTransformDesc rn_transform_random_flip;
extern const RnTransformDesc rn_transform_normalize;
extern const RnTransformDesc rn_transform_pad;
extern const RnTransformDesc rn_transform_format_bundle;
extern const RnTransformDesc rn_transform_image_to_tensor;
extern const RnTransformDesc rn_transform_collect;
extern const RnTransformDesc rn_transform_multi_scale_flip_aug;

G_END_DECLS

#endif
