/*
 * box.h: one axis-aligned box and its overlap with another. Pixels, x to the right, y down, corner 1 above
 * and left of corner 2.
 */
#ifndef BOXES_BOX_H
#define BOXES_BOX_H

#include <glib.h>
#include <math.h>
#include <stdint.h>

G_BEGIN_DECLS

/* Four floats without padding: an array of boxes and a float [n][4] are the same bytes. */
typedef struct
{
  float x1, y1, x2, y2;
} RnBox;

/* What a detector says. */
typedef struct
{
  RnBox box;
  float score;   /* 0 to 1 */
  int32_t label; /* 0..K-1 */
} RnDetection;

/* Union areas, in square pixels, are not taken below this. */
#define RN_BOX_MIN_UNION 1e-6f

static inline float
rn_box_area (RnBox a, float extra)
{
  return (a.x2 - a.x1 + extra) * (a.y2 - a.y1 + extra);
}

/* Area common to both; 0 if they only touch. */
static inline float
rn_box_intersection (RnBox a, RnBox b, float extra)
{
  float w = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1) + extra;
  float h = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1) + extra;
  return (w > 0 ? w : 0) * (h > 0 ? h : 0);
}

/**
 * rn_box_iou:
 * @legacy: corners are inclusive pixel indices, so widths are x2 - x1 + 1 (VOC's own evaluation); else x2 -
 *   x1
 *
 * Intersection over union in float32, as MMDetection's bbox_overlaps.
 *
 * Returns: 0 to 1; 0 for boxes that have no area, that are inside out or not finite
 */
static inline float
rn_box_iou (RnBox a, RnBox b, gboolean legacy)
{
  float extra = legacy ? 1 : 0;
  float common = rn_box_intersection (a, b, extra);
  float all = rn_box_area (a, extra) + rn_box_area (b, extra) - common;
  float iou = common / (all < RN_BOX_MIN_UNION ? RN_BOX_MIN_UNION : all); /* a NaN in all stays */
  return iou > 0 ? iou : 0;
}

/* Part of @a's area that @b covers, 0 to 1. */
static inline float
rn_box_iof (RnBox a, RnBox b)
{
  float area = rn_box_area (a, 0);
  float iof = rn_box_intersection (a, b, 0) / (area < RN_BOX_MIN_UNION ? RN_BOX_MIN_UNION : area);
  return iof > 0 ? iof : 0;
}

static inline gboolean
rn_box_is_finite (RnBox a)
{
  return isfinite (a.x1) && isfinite (a.y1) && isfinite (a.x2) && isfinite (a.y2);
}

/* Moves the corners into 0..width, 0..height. A NaN stays. */
static inline RnBox
rn_box_clip (RnBox a, float width, float height)
{
  return (RnBox) { CLAMP (a.x1, 0, width), CLAMP (a.y1, 0, height),
                   CLAMP (a.x2, 0, width), CLAMP (a.y2, 0, height) };
}

G_END_DECLS

#endif
