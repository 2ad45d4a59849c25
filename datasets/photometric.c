#include "config.h"

#include "datasets/photometric.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Blue, green, red; or hue in degrees, saturation, value. */
typedef struct
{
  float v[3];
} Color;

/* OpenCV's RGB2HSV_f. */
static Color
to_hsv (Color bgr)
{
  float b = bgr.v[0], g = bgr.v[1], r = bgr.v[2];
  float value = MAX (MAX (b, g), r), span = value - MIN (MIN (b, g), r);
  float scale = 60.0f / (span + FLT_EPSILON);
  float hue = value == r ? (g - b) * scale : value == g ? (b - r) * scale + 120 : (r - g) * scale + 240;

  if (hue < 0)
    hue += 360;
  return (Color){ { hue, span / (fabsf (value) + FLT_EPSILON), value } };
}

/* OpenCV's HSV2RGB_f. */
static Color
to_bgr (Color hsv)
{
  static const guint8 sectors[6][3] = { { 1, 3, 0 }, { 1, 0, 2 }, { 3, 0, 1 },
                                        { 0, 2, 1 }, { 0, 1, 3 }, { 2, 1, 0 } };
  float s = hsv.v[1], v = hsv.v[2];

  if (s == 0)
    return (Color){ { v, v, v } };
  float h = hsv.v[0] / 60;
  int sector = (int) floorf (h);
  h -= (float) sector;
  sector = (sector % 6 + 6) % 6;
  const float table[4] = { v, v * (1 - s), v * (1 - s * h), v * (1 - s * (1 - h)) };
  const guint8 *at = sectors[sector];
  return (Color){ { table[at[0]], table[at[1]], table[at[2]] } };
}

static Color
change_colors (const RnPhotometric *change, Color bgr)
{
  Color hsv = to_hsv (bgr);

  hsv.v[1] *= change->saturation;
  hsv.v[0] += change->hue;
  if (hsv.v[0] > 360)
    hsv.v[0] -= 360;
  if (hsv.v[0] < 0)
    hsv.v[0] += 360;
  return to_bgr (hsv);
}

static guint8
to_byte (float value)
{
  return (guint8) lrintf (CLAMP (value, 0.0f, 255.0f));
}

void
rn_photometric_apply (const RnPhotometric *change, guint8 *pixels, gsize n)
{
  float first = change->contrast_first ? change->contrast : 1;
  float last = change->contrast_first ? 1 : change->contrast;
  gboolean colors = change->saturation != 1 || change->hue != 0; /* else there and back changes nothing */

  for (gsize i = 0; i < n; i++, pixels += 3)
    {
      Color color;

      for (int c = 0; c < 3; c++)
        color.v[c] = ((float) pixels[2 - c] + change->brightness) * first;
      if (colors)
        color = change_colors (change, color);
      for (int c = 0; c < 3; c++)
        pixels[2 - c] = to_byte (color.v[change->order[c]] * last);
    }
}
