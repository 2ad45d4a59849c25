#include "config.h"

#include "datasets/canvas.h"

#include <math.h>

#define SUBSAMPLES 3 /* per side of a pixel, for smooth edges */
#define NOISE 8      /* steps of 256 */

void
rn_canvas_init (RnCanvas *canvas, int width, int height)
{
  gsize n = (gsize) width * height;

  *canvas = (RnCanvas){ width, height, g_malloc (n * 3), g_malloc (n) };
}

void
rn_canvas_clear (RnCanvas *canvas)
{
  g_clear_pointer (&canvas->pixels, g_free);
  g_clear_pointer (&canvas->owners, g_free);
}

static guint8
to_byte (double value)
{
  return (guint8) CLAMP (value + 0.5, 0, 255);
}

double
rn_canvas_fill_background (RnCanvas *canvas, RnRng *rng)
{
  double base = 70 + 110 * rn_rng_uniform (rng);
  double slope_x = 60 * (rn_rng_uniform (rng) - 0.5), slope_y = 60 * (rn_rng_uniform (rng) - 0.5);
  double tint[3];
  guint8 *pixel = canvas->pixels;

  for (int c = 0; c < 3; c++)
    tint[c] = 30 * (rn_rng_uniform (rng) - 0.5);
  for (int y = 0; y < canvas->height; y++)
    for (int x = 0; x < canvas->width; x++, pixel += 3)
      {
        double light = base + slope_x * x / canvas->width + slope_y * y / canvas->height;

        for (int c = 0; c < 3; c++)
          pixel[c] = to_byte (light + tint[c]);
        canvas->owners[y * canvas->width + x] = -1;
      }
  return base + (slope_x + slope_y) / 2;
}

/* Five points: between a tip (radius 1) and a notch (radius 0.45, 36 degrees on) the edge is straight. */
static gboolean
is_in_star (double u, double v)
{
  const double step = G_PI / 5, notch_x = 0.45 * sin (step), notch_y = 0.45 * cos (step);
  double angle = fabs (remainder (atan2 (u, -v), 2 * step));
  double x = hypot (u, v) * sin (angle), y = hypot (u, v) * cos (angle);

  return notch_x * (y - 1) - (notch_y - 1) * x <= 0;
}

/* (u, v) in the frame of the form, -1 to 1, v down. */
static gboolean
is_inside (RnForm form, double u, double v)
{
  double r2 = u * u + v * v;

  switch (form)
    {
    case RN_FORM_SQUARE:
      return MAX (fabs (u), fabs (v)) <= 0.85;
    case RN_FORM_TRIANGLE: /* tip at (0, -1), base at v = 0.8 */
      return v <= 0.8 && fabs (u) <= (v + 1) / 1.8;
    case RN_FORM_STAR:
      return is_in_star (u, v);
    case RN_FORM_RING:
      return r2 <= 1 && r2 >= 0.3;
    case RN_FORM_CIRCLE:
    default:
      return r2 <= 1;
    }
}

/* Index in the shape's colours. */
static int
texture_at (RnTexture texture, double u, double v)
{
  switch (texture)
    {
    case RN_TEXTURE_STRIPES:
      return (int) floor ((u + 1) * 3) & 1;
    case RN_TEXTURE_CHECKS:
      return ((int) floor ((u + 1) * 2) + (int) floor ((v + 1) * 2)) & 1;
    case RN_TEXTURE_DOTS:
      return hypot (remainder (u, 0.5), remainder (v, 0.5)) < 0.13;
    case RN_TEXTURE_PLAIN:
    default:
      return 0;
    }
}

/* Adds up the colours of the subsamples of pixel (px, py) that lie inside; gives how many do. */
static int
sample_shape (const RnShape *shape, int px, int py, int sum[3])
{
  double c = cos (shape->angle) / shape->radius, s = sin (shape->angle) / shape->radius;
  int hits = 0;

  sum[0] = sum[1] = sum[2] = 0;
  for (int i = 0; i < SUBSAMPLES * SUBSAMPLES; i++)
    {
      double dx = px + (i % SUBSAMPLES + 0.5) / SUBSAMPLES - shape->x;
      double dy = py + (double) (i / SUBSAMPLES + 0.5) / SUBSAMPLES - shape->y;
      double u = c * dx + s * dy, v = c * dy - s * dx;

      if (is_inside (shape->form, u, v))
        {
          const guint8 *color = shape->colors[texture_at (shape->texture, u, v)];

          for (int k = 0; k < 3; k++)
            sum[k] += color[k];
          hits++;
        }
    }
  return hits;
}

int
rn_canvas_draw (RnCanvas *canvas, const RnShape *shape, int id, int box[4])
{
  const int all = SUBSAMPLES * SUBSAMPLES;
  double reach = shape->radius * G_SQRT2 + 1; /* the corner of a turned square */
  int x1 = MAX ((int) (shape->x - reach), 0), x2 = MIN ((int) (shape->x + reach) + 1, canvas->width);
  int y1 = MAX ((int) (shape->y - reach), 0), y2 = MIN ((int) (shape->y + reach) + 1, canvas->height);
  int covered = 0;

  for (int y = y1; y < y2; y++)
    for (int x = x1; x < x2; x++)
      {
        guint8 *pixel = canvas->pixels + 3 * ((gsize) y * canvas->width + x);
        int sum[3];
        int hits = sample_shape (shape, x, y, sum);

        for (int c = 0; c < 3; c++)
          pixel[c] = (guint8) ((sum[c] + (all - hits) * pixel[c] + all / 2) / all);
        if (2 * hits <= all)
          continue;
        canvas->owners[y * canvas->width + x] = (gint8) id;
        box[0] = covered > 0 ? MIN (box[0], x) : x;
        box[1] = covered > 0 ? box[1] : y;
        box[2] = covered > 0 ? MAX (box[2], x + 1) : x + 1;
        box[3] = y + 1;
        covered++;
      }
  return covered;
}

int
rn_canvas_count (const RnCanvas *canvas, int id)
{
  int n = 0;

  for (gsize i = 0; i < (gsize) canvas->width * canvas->height; i++)
    n += canvas->owners[i] == id;
  return n;
}

void
rn_canvas_add_noise (RnCanvas *canvas, RnRng *rng)
{
  for (gsize i = 0; i < (gsize) canvas->width * canvas->height; i++)
    {
      guint32 bits = rn_rng_u32 (rng);

      for (int c = 0; c < 3; c++, bits >>= 8)
        canvas->pixels[3 * i + c] =
            to_byte (canvas->pixels[3 * i + c] + (int) (bits % (2 * NOISE + 1)) - NOISE);
    }
}
