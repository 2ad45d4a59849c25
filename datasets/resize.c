#include "config.h"

#include "datasets/resize.h"

#include <math.h>
#include <string.h>

/*
 * OpenCV's modules/imgproc/src/resize.cpp for 8-bit images: weights are 11-bit integers; a row is first
 * interpolated horizontally, then two rows are mixed. The truncating shifts are part of the result.
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

/*
 * The three channels of a pixel side by side in one word, LANE bits for each: enough for a channel times the
 * weights, which add up to WEIGHT_ONE, or to one more after rounding.
 */
#define LANE 21

static guint64
spread (const guint8 *pixel)
{
  return pixel[0] | (guint64) pixel[1] << LANE | (guint64) pixel[2] << 2 * LANE;
}

/* @out [3 * width]: what the sum of products is, over 16. @spare has room for a spread row of @src_width. */
static void
interpolate_row (const guint8 *row, int src_width, const Tap *taps, int width, guint64 *spare, gint16 *out)
{
  const guint64 mask = (1 << (LANE - 4)) - 1;

  for (int x = 0; x < src_width; x++, row += CHANNELS)
    spare[x] = spread (row);
  spare[src_width] = spare[src_width - 1]; /* beyond the last column, with weight 0 */
  for (int x = 0; x < width; x++, out += CHANNELS)
    {
      const guint64 *pair = spare + taps[x].index;
      guint64 sum = pair[0] * (guint64) taps[x].weights[0] + pair[1] * (guint64) taps[x].weights[1];

      out[0] = (gint16) (sum >> 4 & mask);
      out[1] = (gint16) (sum >> (LANE + 4) & mask);
      out[2] = (gint16) (sum >> (2 * LANE + 4) & mask);
    }
}

/* The high halves of products of 16 bits: one instruction for 8 and more of them. */
static void
mix_rows (const gint16 *restrict a, const gint16 *restrict b, const int weights[2], int n,
          guint8 *restrict out)
{
  const gint16 v = (gint16) weights[0], w = (gint16) weights[1];

#pragma omp simd
  for (int i = 0; i < n; i++)
    {
      gint16 x = (gint16) (a[i] * v >> 16), y = (gint16) (b[i] * w >> 16);

      out[i] = (guint8) ((gint16) (x + y + 2) >> 2);
    }
}

/* Halving both sides exactly is a mean of 2 x 2 in OpenCV, also for INTER_LINEAR. */
static void
halve (const guint8 *src, int src_width, guint8 *dst, int dst_width, int dst_height)
{
  gsize pitch = (gsize) src_width * CHANNELS;

  for (int y = 0; y < dst_height; y++)
    {
      const guint8 *row = src + 2 * (gsize) y * pitch;

      for (int x = 0; x < dst_width; x++, row += (gsize) 2 * CHANNELS)
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
  g_autofree gint16 *memory = NULL;
  g_autofree guint64 *spare = NULL;
  gint16 *rows[2];
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
  spare = g_new (guint64, (gsize) src_width + 1);
  memory = g_new0 (gint16, 2 * (gsize) n);
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
          gint16 *row = rows[0];

          rows[0] = rows[1], rows[1] = row;
          held[1] = held[0], held[0] = wanted[0];
        }
      for (int i = 0; i < 2; i++)
        if (held[i] != wanted[i])
          {
            interpolate_row (src + (gsize) wanted[i] * src_width * CHANNELS, src_width, taps, dst_width,
                             spare, rows[i]);
            held[i] = wanted[i];
          }
      mix_rows (rows[0], rows[1], tap.weights, n, dst + (gsize) y * n);
    }
}
