/*
 * color.c: the palette of everything that is drawn: the seven colours of Okabe and Ito ("Color Universal
 * Design", 2008), which people with any kind of colour blindness tell apart, then darker and lighter forms of
 * them.
 */
#include "config.h"

#include "runner/draw/picture.h"

#define N_HUES 7
#define N_TONES 3
#define DARK 0.35  /* share of black in the second round */
#define LIGHT 0.45 /* share of white in the third */

static const guint8 hues[N_HUES][3] = {
  { 0, 114, 178 },   /* blue */
  { 230, 159, 0 },   /* orange */
  { 0, 158, 115 },   /* bluish green */
  { 213, 94, 0 },    /* vermilion */
  { 204, 121, 167 }, /* reddish purple */
  { 86, 180, 233 },  /* sky blue */
  { 240, 228, 66 },  /* yellow, last: faint on white paper */
};

void
rn_draw_color (int index, double rgb[3])
{
  int i = index % (N_HUES * N_TONES);
  if (i < 0)
    i += N_HUES * N_TONES;

  for (int c = 0; c < 3; c++)
    {
      double hue = hues[i % N_HUES][c] / 255.0;
      rgb[c] = i < N_HUES ? hue : i < 2 * N_HUES ? hue * (1 - DARK) : hue + (1 - hue) * LIGHT;
    }
}
