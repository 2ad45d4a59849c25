/* transform.h: one step of a pipeline, and what a step says about itself. */
#ifndef RUNNER_DATASETS_TRANSFORM_H
#define RUNNER_DATASETS_TRANSFORM_H

#include "datasets/sample.h"
#include "runner/base/registry.h"
#include "runner/base/rng.h"

G_BEGIN_DECLS

#define RN_MAX_SIDE 16384 /* of a resized or padded image */

/* The order that steps must have. Steps of the rank PIXELS stand in any order among themselves. */
typedef enum
{
  RN_TRANSFORM_LOAD,
  RN_TRANSFORM_ANNOTATIONS,
  RN_TRANSFORM_PIXELS,
  RN_TRANSFORM_NORMALIZE,
  RN_TRANSFORM_PAD,
  RN_TRANSFORM_BUNDLE,
  RN_TRANSFORM_COLLECT,
  RN_TRANSFORM_NEST, /* stands for other steps (MultiScaleFlipAug); anywhere */
} RnTransformRank;

/*
 * Random numbers of a step: a part of the sample's own for each kind, so that no step changes the choices of
 * another one.
 */
typedef enum
{
  RN_DRAWS_FLIP,
  RN_DRAWS_RESIZE,
  RN_DRAWS_CROP,
  RN_DRAWS_MIN_IOU_CROP,
  RN_DRAWS_EXPAND,
  RN_DRAWS_SHIFT,
  RN_DRAWS_PHOTOMETRIC,
  RN_DRAWS_COUNT
} RnDraws;

/* Sizes that an image can have, both ends included. */
typedef struct
{
  int min_width, max_width, min_height, max_height;
} RnSizeRange;

typedef struct
{
  RnComponent component;
  RnTransformRank rank;
  RnDraws draws;
  gboolean moves_only; /* pixels keep their values, so that the step may also stand after Normalize */
  /* Checks what the key table cannot, and prepares the instance. May be NULL. */
  gboolean (*setup) (gpointer self, const RnNode *node, gboolean test_mode, GError **error);
  /*
   * Draws, moves boxes, changes sample->width and height; no pixels. @decision comes active; its width and
   * height are filled in afterwards. May be NULL.
   */
  void (*plan) (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision);
  /* Adds to @out (of RnSizeRange) what can become of an image of @in. NULL: the size stays. */
  void (*bound) (gconstpointer self, RnSizeRange in, GArray *out);
  /* Only if active. @rng begins where it began for plan: a step draws in one of the two. May be NULL. */
  gboolean (*run) (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng,
                   GError **error);
} RnTransformDesc;

/* For setup: the error of a step that would draw in a test pipeline. Always FALSE. */
gboolean rn_transform_refuse_random (const RnNode *node, const char *name, GError **error);

/* ---- Scales: `img_scale:` of Resize and MultiScaleFlipAug ---- */

#define RN_MAX_SCALES 64

/* Two sides in pixels. */
typedef struct
{
  int n;
  int sides[RN_MAX_SCALES][2];
} RnScales;

/* [a, b] or a list of such. Errors: RN_CONFIG_ERROR. */
gboolean rn_scales_parse (const RnNode *node, RnScales *scales, GError **error);

/* Keys of Resize. */
typedef struct
{
  const RnNode *img_scale;
  int multiscale_mode;
  GArray *ratio_range; /* of double; NULL: none */
  gboolean keep_ratio, override;
  RnScales scales; /* of img_scale, or of the MultiScaleFlipAug around it */
} RnResize;

/* Keys of MultiScaleFlipAug, read by the pipeline. */
typedef struct
{
  const RnNode *img_scale;
  gboolean flip;
  const RnNode *transforms;
  RnScales scales;
} RnMultiScaleFlipAug;

/* Every transform there is; NULL-ended. */
extern const RnTransformDesc *const rn_transforms[];

extern const RnTransformDesc rn_transform_load_image;
extern const RnTransformDesc rn_transform_load_annotations;
extern const RnTransformDesc rn_transform_resize;
extern const RnTransformDesc rn_transform_random_flip;
extern const RnTransformDesc rn_transform_random_crop;
extern const RnTransformDesc rn_transform_min_iou_crop;
extern const RnTransformDesc rn_transform_expand;
extern const RnTransformDesc rn_transform_random_shift;
extern const RnTransformDesc rn_transform_photometric;
extern const RnTransformDesc rn_transform_normalize;
extern const RnTransformDesc rn_transform_pad;
extern const RnTransformDesc rn_transform_format_bundle;
extern const RnTransformDesc rn_transform_image_to_tensor;
extern const RnTransformDesc rn_transform_collect;
extern const RnTransformDesc rn_transform_multi_scale_flip_aug;

G_END_DECLS

#endif
