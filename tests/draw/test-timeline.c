/* Areas reach from one size to the next, in the colours of their kinds; the strip below has those of phases.
 */
#include "config.h"

#include "runner/draw/timeline.h"
#include "tests/draw/drawn.h"

#include <glib.h>
#include <math.h>

#define N 20

static const char *const kinds[] = { "static", "kept", "gradients" };
static const char *const phases[] = { "forward", "backward" };
static const RnTimelineEntry largest[] = { { 30, "a" }, { 20, "b" } };
static double sizes[3 * N];
static int phase_of[N];
static const RnTimeline timeline = {
  .title = "title",
  .subtitle = "subtitle",
  .n = N,
  .n_kinds = 3,
  .kinds = kinds,
  .sizes = sizes,
  .n_phases = 2,
  .phases = phases,
  .phase_of = phase_of,
  .turn = N / 2,
  .reserved = 120,
  .needed = 110,
  .peak = N / 2,
  .peak_title = "op 10",
  .largest = largest,
  .n_largest = 2,
};

static void
fill (void)
{
  for (int i = 0; i < N; i++)
    {
      sizes[i] = 40;
      sizes[N + i] = i < N / 2 ? 3 * i : 3 * (N - i);
      sizes[2 * N + i] = i < N / 2 ? 0 : 30;
      phase_of[i] = i >= N / 2;
    }
}

static gboolean
write_png (const char *path, GError **error)
{
  return rn_timeline_write_png (&timeline, path, error);
}

/* Within the rounding of a byte. */
static gboolean
has_color (cairo_surface_t *surface, double x, double y, const double rgb[3])
{
  const guchar *data = cairo_image_surface_get_data (surface);
  gsize stride = (gsize) cairo_image_surface_get_stride (surface);
  guint32 p = ((const guint32 *) (gconstpointer) (data + (gsize) y * stride))[(int) x];

  return fabs ((p >> 16 & 255) / 255.0 - rgb[0]) < 0.01 && fabs ((p >> 8 & 255) / 255.0 - rgb[1]) < 0.01
         && fabs ((p & 255) / 255.0 - rgb[2]) < 0.01;
}

static gboolean
has_kind (cairo_surface_t *surface, guint op, double size, guint kind)
{
  double x, y, rgb[3];

  rn_timeline_place (&timeline, op, size, &x, &y);
  rn_timeline_kind_color (kind, rgb);
  return has_color (surface, x, y, rgb);
}

static void
test_areas (void)
{
  const double white[] = { 1, 1, 1 };
  double x, y;
  cairo_surface_t *surface = drawn (write_png);

  for (guint op = 3; op < N; op += 7) /* 3, 10, 17; away from the lines of the axis, at multiples of 20 */
    {
      double kept = sizes[N + op], gradients = sizes[2 * N + op];
      g_assert_true (has_kind (surface, op, 30, 0));
      g_assert_true (has_kind (surface, op, 43, 1));
      g_assert_true (has_kind (surface, op, 40 + kept - 2, 1));
      g_assert_false (has_kind (surface, op, 40 + kept + 2, 1));
      if (gradients > 0)
        g_assert_true (has_kind (surface, op, 40 + kept + gradients - 2, 2));
    }
  rn_timeline_place (&timeline, 3, 90, &x, &y);
  g_assert_true (has_color (surface, x, y, white));
  cairo_surface_destroy (surface);
}

static void
test_phases (void)
{
  cairo_surface_t *surface = drawn (write_png);

  for (guint op = 2; op < N; op += 5)
    {
      double x, y, rgb[3];
      rn_timeline_place (&timeline, op, 0, &x, &y);
      rn_timeline_phase_color ((guint) phase_of[op], rgb);
      g_assert_true (has_color (surface, x, y + 10, rgb));
    }
  cairo_surface_destroy (surface);
}

static void
test_no_place (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (rn_timeline_write_png (&timeline, "/nonexistent/timeline.png", &error));
  g_assert_true (error->domain == G_FILE_ERROR);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  fill ();
  g_test_add_func ("/timeline/areas", test_areas);
  g_test_add_func ("/timeline/phases", test_phases);
  g_test_add_func ("/timeline/no-place", test_no_place);
  return g_test_run ();
}
