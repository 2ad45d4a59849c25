/*
 * coder.h: boxes as four numbers relative to an anchor (MMDetection's DeltaXYWHBBoxCoder; Girshick et al.,
 * 2014).
 */
#ifndef BOXES_CODER_H
#define BOXES_CODER_H

#include <glib.h>
#include "boxes/box.h"

G_BEGIN_DECLS

typedef struct
{
  float means[4], stds[4]; /* of dx, dy, dw, dh; stds > 0 */
  double wh_ratio_clip;    /* 0 to 1: decoding scales a side by wh_ratio_clip to 1 / wh_ratio_clip */
  gboolean clip_border;    /* decoded boxes are clipped to the image */
} RnBoxCoder;

#define RN_BOX_CODER_INIT { .stds = { 1, 1, 1, 1 }, .wh_ratio_clip = 16.0 / 1000.0, .clip_border = TRUE }

/*
 * dx = (gx - px) / pw, dy = (gy - py) / ph, dw = ln (gw / pw), dh = ln (gh / ph) with centres x, y and sides
 * w, h of @anchor (p) and @gt (g); then (d - mean) / std. FALSE if a delta is not finite (a box without
 * area); @deltas is written all the same.
 */
gboolean rn_coder_encode (const RnBoxCoder *coder, RnBox anchor, RnBox gt, float deltas[4]);

/*
 * The inverse, in pixels of the image of @width x @height that the box is clipped to. A delta that is NaN
 * gives a NaN.
 */
RnBox rn_coder_decode (const RnBoxCoder *coder, RnBox anchor, const float deltas[4],
                       float width, float height);

G_END_DECLS

#endif
