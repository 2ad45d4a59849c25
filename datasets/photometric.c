#include "config.h"

#include "datasets/photometric.h"

#include <float.h>

/* Pixels that are worked on at a time, channel by channel, in loops that the compiler turns into vectors. */
#define BLOCK 256

/* [0] blue, [1] green, [2] red; or hue in sixths of a turn, saturation, value. */
typedef float Block[3][BLOCK];

/* The float of each byte, before the colours are changed. */
static void
fill_table (const RnPhotometric *change, float table[256])
{
  for (int v = 0; v < 256; v++)
    table[v] = ((float) v + change->brightness) * (change->contrast_first ? change->contrast : 1);
}

static void
read_block (const guint8 *pixels, int n, const float table[256], Block out)
{
  for (int i = 0; i < n; i++)
    for (int c = 0; c < 3; c++)
      out[c][i] = table[pixels[3 * i + 2 - c]];
}

/* OpenCV's RGB2HSV_f, but for the unit of the hue. */
static void
to_hsv (Block block, int n)
{
#pragma omp simd
  for (int i = 0; i < n; i++)
    {
      float b = block[0][i], g = block[1][i], r = block[2][i];
      float bg_max = b > g ? b : g, bg_min = b < g ? b : g;
      float value = bg_max > r ? bg_max : r, span = value - (bg_min < r ? bg_min : r);
      float scale = 1.0f / (span + FLT_EPSILON);
      float of_red = (g - b) * scale, of_green = (b - r) * scale + 2, of_blue = (r - g) * scale + 4;
      float hue = value == r ? of_red : value == g ? of_green : of_blue;

      block[0][i] = hue < 0 ? hue + 6 : hue;
      block[1][i] = span / ((value < 0 ? -value : value) + FLT_EPSILON);
      block[2][i] = value;
    }
}

/* The hue is taken once around, as MMDetection does. */
static void
turn (Block block, int n, float hue, float saturation)
{
#pragma omp simd
  for (int i = 0; i < n; i++)
    {
      float h = block[0][i] + hue;

      h = h > 6 ? h - 6 : h;
      block[0][i] = h < 0 ? h + 6 : h;
      block[1][i] *= saturation;
    }
}

/*
 * One channel of OpenCV's HSV2RGB_f: over the six sectors that begin with the sector @first it falls from the
 * value to (1 - saturation) of it, stays for two, rises and stays for two, all in straight lines.
 */
static inline float
channel (float hue, float saturation, float value, float first)
{
  float k = hue + first;
  k = k >= 6 ? k - 6 : k;
  float t = k < 4 - k ? k : 4 - k;
  t = t < 1 ? t : 1;
  t = t > 0 ? t : 0;
  return value - value * saturation * t;
}

static void
to_bgr (Block block, int n)
{
#pragma omp simd
  for (int i = 0; i < n; i++)
    {
      float h = block[0][i], s = block[1][i], v = block[2][i];

      block[0][i] = channel (h, s, v, 1);
      block[1][i] = channel (h, s, v, 3);
      block[2][i] = channel (h, s, v, 5);
    }
}

/* Rounds half to even: the sum of a number below 2^22 and 1.5 * 2^23 has no bits behind the point. */
static inline int
to_byte (float value)
{
  value = value > 0 ? value : 0;
  value = value < 255 ? value : 255;
  return (int) ((value + 0x1.8p23f) - 0x1.8p23f);
}

static void
write_block (const float *in, int n, float factor, guint8 *out)
{
  int bytes[BLOCK];

#pragma omp simd
  for (int i = 0; i < n; i++)
    bytes[i] = to_byte (in[i] * factor);
  for (int i = 0; i < n; i++)
    out[3 * i] = (guint8) bytes[i];
}

/* Without a change of colours every byte has one result. */
static void
apply_table (const RnPhotometric *change, const float table[256], float last, guint8 *pixels, gsize n)
{
  guint8 bytes[256];

  for (int v = 0; v < 256; v++)
    bytes[v] = (guint8) to_byte (table[v] * last);
  for (gsize i = 0; i < n; i++, pixels += 3)
    {
      const guint8 bgr[3] = { pixels[2], pixels[1], pixels[0] };

      for (int c = 0; c < 3; c++)
        pixels[2 - c] = bytes[bgr[change->order[c]]];
    }
}

void
rn_photometric_apply (const RnPhotometric *change, guint8 *pixels, gsize n)
{
  float last = change->contrast_first ? 1 : change->contrast, table[256];

  fill_table (change, table);
  if (change->saturation == 1 && change->hue == 0)
    {
      apply_table (change, table, last, pixels, n);
      return;
    }
  for (gsize done = 0; done < n; done += BLOCK)
    {
      int n_block = (int) MIN (n - done, BLOCK);
      guint8 *at = pixels + 3 * done;
      Block block;

      read_block (at, n_block, table, block);
      to_hsv (block, n_block);
      turn (block, n_block, change->hue / 60, change->saturation);
      to_bgr (block, n_block);
      for (int c = 0; c < 3; c++)
        write_block (block[change->order[c]], n_block, last, at + 2 - c);
    }
}
