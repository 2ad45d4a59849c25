#include "config.h"

#include "datasets/resize.h"

#include <math.h>
#include <string.h>

/*
 * OpenCV's modules/imgproc/src/resize.cpp for 8-bit images: weights are 11-bit integers; a row is first
 * interpolated horizontally in int32, then two rows are mixed. The truncating shifts of the mix are part of
 * the result.
 */
#define WEIGHT_ONE 2048
#define CHANNELS 3

/* One output position: source index and the weights of it and its successor. */
typedef struct
{
  int index;
  int weights[2];
} Tap;

static Tap
tap_at (int position, int src, int dst, gboolean clamp)
{
  double scale = 1.0 / ((double) dst / src);
  float f = (float) ((position + 0.5) * scale - 0.5);
  int index = (int) floorf (f);

  f -= (float) index;
  if (clamp && index < 0)
    index = 0, f = 0;
  if (clamp && index >= src - 1)
    index = src - 1, f = 0;
  return (Tap){ index, { (int) lrintf ((1.0f - f) * WEIGHT_ONE), (int) lrintf (f * WEIGHT_ONE) } };
}

static void
interpolate_row (const guint8 *row, const Tap *taps, int width, int last, gint32 *out)
{
  for (int x = 0; x < width; x++, out += CHANNELS)
    {
      const guint8 *a = row + taps[x].index * CHANNELS;
      const guint8 *b = taps[x].index < last ? a + CHANNELS : a;

      for (int c = 0; c < CHANNELS; c++)
        out[c] = a[c] * taps[x].weights[0] + b[c] * taps[x].weights[1];
    }
}

static void
mix_rows (const gint32 *restrict a, const gint32 *restrict b, const int weights[2], int n,
          guint8 *restrict out)
{
  for (int i = 0; i < n; i++)
    out[i] = (guint8) ((((weights[0] * (a[i] >> 4)) >> 16) + ((weights[1] * (b[i] >> 4)) >> 16) + 2) >> 2);
}

/* Halving both sides exactly is a mean of 2 x 2 in OpenCV, also for INTER_LINEAR. */
static void
halve (const guint8 *src, int src_width, guint8 *dst, int dst_width, int dst_height)
{
  gsize pitch = (gsize) src_width * CHANNELS;

  for (int y = 0; y < dst_height; y++)
    {
      const guint8 *row = src + 2 * (gsize) y * pitch;

      for (int x = 0; x < dst_width; x++, row += 2 * CHANNELS)
        for (int c = 0; c < CHANNELS; c++)
          *dst++ =
              (guint8) ((row[c] + row[c + CHANNELS] + row[c + pitch] + row[c + CHANNELS + pitch] + 2) >> 2);
    }
}

void
rn_resize_bilinear (const guint8 *src, int src_width, int src_height, guint8 *dst, int dst_width,
                    int dst_height)
{
  g_autofree Tap *taps = NULL;
  g_autofree gint32 *memory = NULL;
  gint32 *rows[2];
  int held[2] = { -1, -1 }; /* source rows in @rows */
  int n = dst_width * CHANNELS;

  if (src_width == dst_width && src_height == dst_height)
    {
      memcpy (dst, src, (gsize) n * dst_height);
      return;
    }
  if (src_width == 2 * dst_width && src_height == 2 * dst_height)
    {
      halve (src, src_width, dst, dst_width, dst_height);
      return;
    }

  taps = g_new (Tap, dst_width);
  memory = g_new (gint32, 2 * (gsize) n);
  rows[0] = memory;
  rows[1] = memory + n;
  for (int x = 0; x < dst_width; x++)
    taps[x] = tap_at (x, src_width, dst_width, TRUE);

  for (int y = 0; y < dst_height; y++)
    {
      Tap tap = tap_at (y, src_height, dst_height, FALSE);
      int wanted[2] = { CLAMP (tap.index, 0, src_height - 1), CLAMP (tap.index + 1, 0, src_height - 1) };

      if (held[1] == wanted[0] && held[0] != wanted[0]) /* the lower row becomes the upper one */
        {
          gint32 *row = rows[0];

          rows[0] = rows[1], rows[1] = row;
          held[1] = held[0], held[0] = wanted[0];
        }
      for (int i = 0; i < 2; i++)
        if (held[i] != wanted[i])
          {
            interpolate_row (src + (gsize) wanted[i] * src_width * CHANNELS, taps, dst_width, src_width - 1,
                             rows[i]);
            held[i] = wanted[i];
          }
      mix_rows (rows[0], rows[1], tap.weights, n, dst + (gsize) y * n);
    }
}
