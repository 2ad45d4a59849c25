/* Bars are as long as their values, in the colours of their series. */
#include "config.h"

#include "runner/draw/bars.h"
#include "runner/draw/picture.h"
#include "tests/draw/drawn.h"

#include <glib.h>
#include <math.h>

static const char *const labels[] = { "one", "two", "three" };
static const char *const notes[] = { NULL, NULL, "not there" };
static const char *const series[] = { "a", "b", NULL };
static const char *const single[] = { "c", NULL };
static const double values[] = { 100, 50, 25, 75, (double) NAN, (double) NAN };
static const double times[] = { 1, 1.5, (double) NAN };
static const double low[] = { 1, 1.25, (double) INFINITY }, high[] = { 1, 2, -(double) INFINITY };
static const RnBarPanel panels[] = {
  { .title = "memory", .series = series, .values = values },
  { .title = "time", .series = single, .values = times, .low = low, .high = high, .decimals = 2 },
};
static const RnBars bars = {
  .title = "bars", .n_rows = 3, .labels = labels, .notes = notes, .panels = panels, .n_panels = 2
};

static gboolean
write_png (const char *path, GError **error)
{
  return rn_bars_write_png (&bars, path, error);
}

static guint32
pixel (cairo_surface_t *surface, double x, double y)
{
  int column = (int) x, row = (int) y;
  g_assert_cmpint (column, <, cairo_image_surface_get_width (surface));
  g_assert_cmpint (row, <, cairo_image_surface_get_height (surface));
  const guchar *data = cairo_image_surface_get_data (surface);
  gsize stride = (gsize) cairo_image_surface_get_stride (surface);
  return ((const guint32 *) (gconstpointer) (data + (gsize) row * stride))[column] & 0xffffff;
}

/* Within the rounding of a byte. */
static gboolean
has_color (guint32 p, int index)
{
  double rgb[3];

  rn_draw_color (index, rgb);
  return fabs ((p >> 16 & 255) / 255.0 - rgb[0]) < 0.01 && fabs ((p >> 8 & 255) / 255.0 - rgb[1]) < 0.01
         && fabs ((p & 255) / 255.0 - rgb[2]) < 0.01;
}

static void
test_lengths (void)
{
  double longest[4], area[4];

  rn_bars_area (&bars, 0, 0, 0, longest);
  for (guint row = 0; row < 2; row++)
    for (guint s = 0; s < 2; s++)
      {
        rn_bars_area (&bars, 0, row, s, area);
        g_assert_cmpfloat_with_epsilon (area[2] / longest[2], values[row * 2 + s] / 100, 1e-9);
        g_assert_cmpfloat (area[0], ==, longest[0]);
      }
  rn_bars_area (&bars, 0, 2, 0, area);
  g_assert_cmpfloat (area[2], ==, 0);
  rn_bars_area (&bars, 1, 1, 0, area);
  g_assert_cmpfloat (area[0], >, longest[0] + longest[2]); /* beside the first panel */
}

static void
test_pixels (void)
{
  cairo_surface_t *surface = drawn (write_png);

  for (guint panel = 0; panel < 2; panel++)
    for (guint row = 0; row < 2; row++)
      {
        double area[4];
        rn_bars_area (&bars, panel, row, 0, area);
        double y = area[1] + 2;
        g_assert_true (has_color (pixel (surface, area[0] + 3, y), (int) panel));
        g_assert_true (has_color (pixel (surface, area[0] + area[2] - 3, y), (int) panel));
        g_assert_false (has_color (pixel (surface, area[0] + area[2] + 3, y), (int) panel));
      }
  /* The spread of the second row reaches from 1.25 to 2, over a bar of 1.5. */
  double area[4];
  rn_bars_area (&bars, 1, 1, 0, area);
  double unit = area[2] / 1.5, middle = area[1] + area[3] / 2;
  g_assert_cmpuint (pixel (surface, area[0] + 1.9 * unit, middle) & 0xff, <, 0x90);
  g_assert_true (has_color (pixel (surface, area[0] + 1.1 * unit, middle), 1));
  cairo_surface_destroy (surface);
}

static void
test_no_place (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (rn_bars_write_png (&bars, "/nonexistent/bars.png", &error));
  g_assert_true (error->domain == G_FILE_ERROR);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/bars/lengths", test_lengths);
  g_test_add_func ("/bars/pixels", test_pixels);
  g_test_add_func ("/bars/no-place", test_no_place);
  return g_test_run ();
}
