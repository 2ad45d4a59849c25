/* Curves go through the pixels that they must go through, and through no others. */
#include "config.h"

#include "runner/draw/chart.h"
#include "runner/draw/picture.h"

#include <cairo.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define N_MANY 100000

static const RnPanelOptions unit = {
  .title = "title", .x_label = "x", .y_label = "y", .fixed_range = TRUE, .x_max = 1, .y_max = 1
};

/* Writes the chart and reads it again. (transfer full) */
static cairo_surface_t *
draw (const RnChart *chart)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("runner-chart-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *path = g_build_filename (dir, "chart.png", NULL);

  rn_chart_write_png (chart, path, &error);
  g_assert_no_error (error);
  cairo_surface_t *surface = cairo_image_surface_create_from_png (path);
  g_assert_cmpint (cairo_surface_status (surface), ==, CAIRO_STATUS_SUCCESS);
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0); /* no temporary file is left */
  return surface;
}

static guint32
pixel (cairo_surface_t *surface, double x, double y)
{
  int column = (int) x, row = (int) y;
  g_assert_cmpint (column, >=, 0);
  g_assert_cmpint (column, <, cairo_image_surface_get_width (surface));
  g_assert_cmpint (row, >=, 0);
  g_assert_cmpint (row, <, cairo_image_surface_get_height (surface));
  const guchar *data = cairo_image_surface_get_data (surface);
  return ((const guint32 *) (gconstpointer) (data
                                             + (gsize) row
                                                   * cairo_image_surface_get_stride (surface)))[column]
         & 0xffffff;
}

/* The colour of curve @index, mixed with at most a third of something else, within 2 pixels of a place in the
 * plot that is given in parts of its sides, from the lower left. */
static gboolean
has_curve (const RnChart *chart, cairo_surface_t *surface, guint panel, double x, double y, int index)
{
  double area[4], rgb[3];

  rn_chart_plot_area (chart, panel, area);
  rn_draw_color (index, rgb);
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++)
      {
        guint32 p = pixel (surface, area[0] + x * area[2] + dx, area[1] + (1 - y) * area[3] + dy);
        if (fabs ((p >> 16 & 255) / 255.0 - rgb[0]) < 0.34 && fabs ((p >> 8 & 255) / 255.0 - rgb[1]) < 0.34
            && fabs ((p & 255) / 255.0 - rgb[2]) < 0.34)
          return TRUE;
      }
  return FALSE;
}

static void
test_line (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("a line");
  const double x[] = { 0, 1 }, y[] = { 0, 1 }, flat[] = { 0.3, 0.3 };

  rn_chart_panel (chart, &unit);
  rn_chart_curve (chart, x, y, 2, 0, RN_CURVE_SOLID, "diagonal");
  rn_chart_curve (chart, x, flat, 2, 3, RN_CURVE_SOLID, NULL);
  cairo_surface_t *surface = draw (chart);
  for (int i = 1; i < 10; i++)
    {
      g_assert_true (has_curve (chart, surface, 0, i * 0.1, i * 0.1, 0)
                     || i == 3); /* the flat one is above */
      g_assert_true (has_curve (chart, surface, 0, i * 0.1, 0.3, 3));
    }
  g_assert_false (has_curve (chart, surface, 0, 0.25, 0.75, 0));
  g_assert_false (has_curve (chart, surface, 0, 0.75, 0.5, 0));
  g_assert_cmphex (pixel (surface, 0, 0), ==, 0xffffff);
  cairo_surface_destroy (surface);
}

/* A gap stays a gap; what lies between two gaps is a dot. */
static void
test_gaps (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("gaps");
  const double x[] = { 0, 0.2, 0.3, 0.5, 0.7, 0.8, 1 };
  const double y[] = { 0.5, 0.5, NAN, 0.5, INFINITY, 0.5, 0.5 };

  rn_chart_panel (chart, &unit);
  rn_chart_curve (chart, x, y, G_N_ELEMENTS (x), 0, RN_CURVE_SOLID, NULL);
  cairo_surface_t *surface = draw (chart);
  g_assert_true (has_curve (chart, surface, 0, 0.1, 0.5, 0));
  g_assert_false (has_curve (chart, surface, 0, 0.3, 0.5, 0));
  g_assert_true (has_curve (chart, surface, 0, 0.5, 0.5, 0));
  g_assert_false (has_curve (chart, surface, 0, 0.55, 0.5, 0));
  g_assert_false (has_curve (chart, surface, 0, 0.7, 0.5, 0));
  g_assert_true (has_curve (chart, surface, 0, 0.9, 0.5, 0));
  cairo_surface_destroy (surface);
}

/* From 1 to 100 the middle is 10; what is not positive is left out. */
static void
test_log (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("log");
  const double x[] = { 0, 1, 2, 3, 4 }, y[] = { 1, -5, 10, 0, 100 };
  RnPanelOptions options = { .title = "log", .y_scale = RN_SCALE_LOG };

  rn_chart_panel (chart, &options);
  rn_chart_curve (chart, x, y, G_N_ELEMENTS (x), 0, RN_CURVE_SOLID, NULL);
  rn_chart_curve (chart, (const double[]){ 0, 4 }, (const double[]){ 1, 100 }, 2, 3, RN_CURVE_SOLID, NULL);
  rn_chart_panel (chart, &options);
  rn_chart_curve (chart, (const double[]){ 0, 4 }, (const double[]){ 10, 10 }, 2, 0, RN_CURVE_SOLID, NULL);
  rn_chart_curve (chart, x, y, G_N_ELEMENTS (x), 3, RN_CURVE_SOLID, NULL);
  cairo_surface_t *surface = draw (chart);
  for (int i = 1; i < 10; i++)
    g_assert_true (has_curve (chart, surface, 0, i * 0.1, i * 0.1, 3));
  g_assert_true (has_curve (chart, surface, 1, 0.5, 0.5, 3)); /* a dot on the other curve */
  g_assert_true (has_curve (chart, surface, 1, 0.4, 0.5, 0));
  g_assert_false (has_curve (chart, surface, 1, 0.4, 0.5, 3));
  cairo_surface_destroy (surface);
}

/* One value among very many is not thinned away, and the band that they fill is filled. */
static void
test_many (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("many");
  g_autofree double *x = g_new (double, N_MANY), *band = g_new (double, N_MANY),
                    *spike = g_new (double, N_MANY);

  for (int i = 0; i < N_MANY; i++)
    {
      x[i] = (i + 0.5) / N_MANY;
      band[i] = i % 2 ? 0.2 : 0.4;
      spike[i] = i == 70000 ? 0.9 : 0.6;
    }
  rn_chart_panel (chart, &unit);
  rn_chart_curve (chart, x, band, N_MANY, 0, RN_CURVE_SOLID, "band");
  rn_chart_curve (chart, x, spike, N_MANY, 3, RN_CURVE_SOLID, "spike");
  cairo_surface_t *surface = draw (chart);
  for (int i = 1; i < 20; i++)
    {
      g_assert_true (has_curve (chart, surface, 0, i * 0.05, 0.3, 0));
      g_assert_true (has_curve (chart, surface, 0, i * 0.05, 0.6, 3));
    }
  g_assert_true (has_curve (chart, surface, 0, 0.7, 0.85, 3));
  g_assert_false (has_curve (chart, surface, 0, 0.6, 0.85, 3));
  g_assert_false (has_curve (chart, surface, 0, 0.5, 0.5, 0));
  cairo_surface_destroy (surface);
}

/* More vertices than one path takes; unsorted on purpose. */
static void
test_unsorted (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("zigzag");
  double x[6001], y[6001];

  for (int i = 0; i < 6001; i++)
    {
      x[i] = i % 2 ? 0.9 : 0.1;
      y[i] = i / 6000.0;
    }
  rn_chart_panel (chart, &unit);
  rn_chart_curve (chart, x, y, G_N_ELEMENTS (x), 0, RN_CURVE_SOLID, NULL);
  cairo_surface_t *surface = draw (chart);
  for (int i = 1; i < 20; i++)
    g_assert_true (has_curve (chart, surface, 0, 0.5, i * 0.05, 0));
  g_assert_false (has_curve (chart, surface, 0, 0.95, 0.5, 0));
  cairo_surface_destroy (surface);
}

/* Something is written in the middle of a panel without data. */
static void
test_no_data (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("");
  const double nan[] = { NAN };
  double area[4];
  guint n_ink = 0;

  rn_chart_panel (chart, &(RnPanelOptions){ .title = NULL });
  rn_chart_curve (chart, nan, nan, 1, 0, RN_CURVE_SOLID, NULL);
  rn_chart_curve (chart, NULL, NULL, 0, 0, RN_CURVE_SOLID, NULL);
  rn_chart_plot_area (chart, 0, area);
  cairo_surface_t *surface = draw (chart);
  for (int dy = -12; dy < 12; dy++)
    for (int dx = -30; dx < 30; dx++)
      n_ink += pixel (surface, area[0] + area[2] / 2 + dx, area[1] + area[3] / 2 + dy) != 0xffffff;
  g_assert_cmpuint (n_ink, >, 20);
  cairo_surface_destroy (surface);

  g_autoptr (RnChart) empty = rn_chart_new ("no panel");
  cairo_surface_destroy (draw (empty));
}

/* Panels lie beside and below each other, all inside, whatever their legends hold. */
static void
test_layout (void)
{
  for (int n = 1; n <= 8; n++)
    {
      g_autoptr (RnChart) chart = rn_chart_new ("\xff many \n panels");
      for (int i = 0; i < n; i++)
        {
          rn_chart_panel (chart, &unit);
          for (int k = 0; k < i * 12; k++)
            rn_chart_curve (
                chart, (const double[]){ 0 }, (const double[]){ 0 }, 1, k, RN_CURVE_DASHED,
                "a class with a long name that does not end; \xff\xfe and so on and on and on and on "
                "and on and on and on and on and on");
        }
      cairo_surface_t *surface = draw (chart);
      for (int i = 0; i < n; i++)
        {
          double a[4], b[4];
          rn_chart_plot_area (chart, (guint) i, a);
          g_assert_cmpfloat (a[0], >, 0);
          g_assert_cmpfloat (a[1], >, 0);
          g_assert_cmpfloat (a[0] + a[2], <, cairo_image_surface_get_width (surface));
          g_assert_cmpfloat (a[1] + a[3], <, cairo_image_surface_get_height (surface));
          for (int k = 0; k < i; k++)
            {
              rn_chart_plot_area (chart, (guint) k, b);
              g_assert_true (a[0] >= b[0] + b[2] || b[0] >= a[0] + a[2] || a[1] >= b[1] + b[3]
                             || b[1] >= a[1] + a[3]);
            }
        }
      cairo_surface_destroy (surface);
    }
}

static void
test_not_writable (void)
{
  g_autoptr (RnChart) chart = rn_chart_new ("nowhere");
  g_autoptr (GError) error = NULL;

  rn_chart_panel (chart, &unit);
  g_assert_false (rn_chart_write_png (chart, "/nonexistent/chart.png", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
  g_assert_nonnull (strstr (error->message, "/nonexistent/chart.png"));
}

/* A machine without fonts. Fontconfig reads its environment once, so the test is a process of its own. */
static void
test_no_fonts (void)
{
  if (!g_test_subprocess ())
    {
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
      g_test_trap_assert_passed ();
      return;
    }
  g_setenv ("FONTCONFIG_FILE", "/nonexistent/fonts.conf", TRUE);
  g_setenv ("FONTCONFIG_PATH", "/nonexistent", TRUE);
  test_no_data ();
  test_line ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/draw/chart/line", test_line);
  g_test_add_func ("/draw/chart/gaps", test_gaps);
  g_test_add_func ("/draw/chart/log", test_log);
  g_test_add_func ("/draw/chart/many", test_many);
  g_test_add_func ("/draw/chart/unsorted", test_unsorted);
  g_test_add_func ("/draw/chart/no-data", test_no_data);
  g_test_add_func ("/draw/chart/layout", test_layout);
  g_test_add_func ("/draw/chart/not-writable", test_not_writable);
  g_test_add_func ("/draw/chart/no-fonts", test_no_fonts);
  return g_test_run ();
}
