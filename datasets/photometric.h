/* photometric.h: brightness, contrast, saturation, hue and channel order of 8-bit RGB pixels. */
#ifndef RUNNER_DATASETS_PHOTOMETRIC_H
#define RUNNER_DATASETS_PHOTOMETRIC_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  float brightness;        /* is added to every value */
  float contrast;          /* every value is multiplied by it */
  gboolean contrast_first; /* before the colours are changed, not after */
  float saturation;        /* is multiplied by it */
  float hue;               /* degrees to add */
  int order[3];            /* value k of the result is value order[k], of blue, green, red */
} RnPhotometric;

#define RN_PHOTOMETRIC_INIT                              \
  {                                                      \
    .contrast = 1, .saturation = 1, .order = { 0, 1, 2 } \
  }

/*
 * @pixels [n, 3] RGB, in place. All steps in float32 as OpenCV's conversions between BGR and HSV (hue in
 * degrees, the value as it is), in the order of MMDetection's PhotoMetricDistortion; only the end is rounded
 * and clipped to bytes.
 */
void rn_photometric_apply (const RnPhotometric *change, guint8 *pixels, gsize n);

G_END_DECLS

#endif
