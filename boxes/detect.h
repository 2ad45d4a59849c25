/* detect.h: from the head's selected rows to the detections of one image. */
#ifndef BOXES_DETECT_H
#define BOXES_DETECT_H

#include <glib.h>
#include <stdint.h>
#include "boxes/anchors.h"
#include "boxes/coder.h"
#include "boxes/nms.h"

G_BEGIN_DECLS

/* What one level selected for one image (its best anchors by largest class logit). Lent. */
typedef struct
{
  int n;
  const int32_t *anchors; /* [n] (y * W + x) * A + a within the level */
  const float *logits;    /* [n][K], before the sigmoid */
  const float *deltas;    /* [n][4] */
} RnLevelRows;

/* How detections are made; lent. */
typedef struct
{
  const RnAnchorGenerator *anchors;
  const RnBoxCoder *coder;
  int num_classes;
  RnNmsRule nms;
} RnDetectRule;

/* The image as the network saw it. */
typedef struct
{
  int img_height, img_width; /* resized, before padding: boxes are clipped to this */
  float scale_w, scale_h;    /* resized / original, > 0 */
} RnDetectImage;

/**
 * rn_detect:
 * @sizes: {height, width} of each level
 * @rows: [n_levels]
 * @detections: [rule->nms.max_per_img], best first, in pixels of the original image
 * @n_detections: (out): number written; 0 is possible
 *
 * Decodes, clips, divides by the scale and then suppresses, so that overlaps are those of the original image.
 * Ties of scores go to the earlier level, then the earlier row, then the lower class.
 *
 * Returns: RN_STATUS_OK, RN_STATUS_SHAPE for an anchor outside its level or sizes that rn_anchors_count
 * refuses, RN_STATUS_MEMORY
 */
RnStatus rn_detect (const RnDetectRule *rule, const RnDetectImage *image, const int (*sizes)[2],
                    const RnLevelRows *rows, RnDetection *detections, int *n_detections);

G_END_DECLS

#endif
