#include "config.h"

#include "runner/draw/bars.h"

#include "runner/draw/axis.h"
#include "runner/draw/picture.h"
#include "runner/draw/surface.h"

#include <math.h>

/* Pixels. */
#define TITLE 36.0
#define PANEL_TITLE 26.0
#define LABELS 150.0 /* names of the rows, left of the first panel */
#define PANEL_WIDTH 420.0
#define NUMBER 56.0 /* right of the longest bar */
#define GAP 24.0    /* between panels */
#define BAR 13.0
#define ROW_GAP 9.0
#define X_AXIS 24.0
#define LEGEND_LINE 17.0
#define BOTTOM 10.0
#define FONT 11.0

static guint
count_series (const RnBarPanel *panel)
{
  return g_strv_length ((char **) panel->series);
}

/* Bars of the panel that has most. */
static guint
most_series (const RnBars *bars)
{
  guint most = 1;
  for (guint i = 0; i < bars->n_panels; i++)
    most = MAX (most, count_series (&bars->panels[i]));
  return most;
}

static double
row_height (const RnBars *bars)
{
  return most_series (bars) * BAR + ROW_GAP;
}

static RnAxis
make_axis (const RnBars *bars, const RnBarPanel *panel)
{
  guint n = bars->n_rows * count_series (panel);
  double most = 0;
  RnAxis axis;

  for (guint i = 0; i < n; i++)
    if (isfinite (panel->values[i]))
      most = MAX (most, panel->values[i]);
  for (guint i = 0; panel->high != NULL && i < bars->n_rows; i++)
    if (isfinite (panel->high[i]))
      most = MAX (most, panel->high[i]);
  rn_axis_init (&axis, RN_SCALE_LINEAR, 0, most > 0 ? most : 1, FALSE, 5);
  return axis;
}

static double
panel_left (guint panel)
{
  return LABELS + panel * (PANEL_WIDTH + NUMBER + GAP);
}

static double
plot_top (void)
{
  return TITLE + PANEL_TITLE;
}

void
rn_bars_area (const RnBars *bars, guint panel, guint row, guint series, double area[4])
{
  const RnBarPanel *p = &bars->panels[panel];
  guint n = count_series (p);
  RnAxis axis = make_axis (bars, p);
  double value = p->values[row * n + series];
  double unused = (most_series (bars) - n) * BAR; /* a panel with fewer bars centres them */

  area[0] = panel_left (panel);
  area[1] = plot_top () + ROW_GAP / 2 + row * row_height (bars) + unused / 2 + series * BAR;
  area[2] = isfinite (value) && value > 0 ? rn_axis_place (&axis, value) * PANEL_WIDTH : 0;
  area[3] = BAR - 1;
}

/* The first series is dark; the others are lighter, so that the eye compares the first. */
static void
set_series (cairo_t *cr, guint panel, guint series)
{
  double rgb[3], light = MIN (0.35 * series, 0.8);

  rn_draw_color ((int) panel, rgb);
  cairo_set_source_rgb (cr, rgb[0] + (1 - rgb[0]) * light, rgb[1] + (1 - rgb[1]) * light,
                        rgb[2] + (1 - rgb[2]) * light);
}

static void
draw_spread (cairo_t *cr, const RnBarPanel *panel, guint row, const double area[4])
{
  double per_unit = area[2] / panel->values[row], y = area[1] + area[3] / 2;
  double x1 = area[0] + panel->low[row] * per_unit, x2 = area[0] + panel->high[row] * per_unit;

  if (!isfinite (x1) || !isfinite (x2))
    return;
  rn_set_grey (cr, 0);
  cairo_set_line_width (cr, 1);
  rn_draw_line (cr, x1, y, x2, y);
  rn_draw_line (cr, x1, y - 4, x1, y + 4);
  rn_draw_line (cr, x2, y - 4, x2, y + 4);
}

static void
draw_row (cairo_t *cr, const RnBars *bars, guint index, guint row)
{
  const RnBarPanel *panel = &bars->panels[index];
  guint n = count_series (panel);

  for (guint s = 0; s < n; s++)
    {
      double area[4], value = panel->values[row * n + s], end;
      rn_bars_area (bars, index, row, s, area);
      if (!isfinite (value))
        continue;
      set_series (cr, index, s);
      cairo_rectangle (cr, area[0], area[1], area[2], area[3]);
      cairo_fill (cr);
      end = area[0] + area[2];
      if (s == 0 && panel->high != NULL && value > 0)
        {
          draw_spread (cr, panel, row, area);
          end = MAX (end, area[0] + panel->high[row] / value * area[2]);
        }
      g_autofree char *number = g_strdup_printf ("%.*f", panel->decimals, value);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, end + 5, area[1] + BAR - 3, 0, number);
    }
  if (bars->notes != NULL && bars->notes[row] != NULL)
    {
      rn_set_grey (cr, 0.5);
      rn_draw_text (cr, panel_left (index) + 5, plot_top () + (row + 0.5) * row_height (bars) + FONT * 0.35,
                    0, bars->notes[row]);
    }
}

static void
draw_panel (cairo_t *cr, const RnBars *bars, guint index)
{
  const RnBarPanel *panel = &bars->panels[index];
  RnAxis axis = make_axis (bars, panel);
  double left = panel_left (index), top = plot_top (), bottom = top + bars->n_rows * row_height (bars);

  rn_set_grey (cr, 0);
  g_autofree char *clean = rn_text_clean (panel->title);
  g_autofree char *title = rn_text_fit (cr, clean, PANEL_WIDTH + NUMBER);
  rn_draw_text (cr, left, top - 9, 0, title);
  cairo_set_line_width (cr, 1);
  for (int i = 0; i < axis.n_ticks; i++)
    {
      double x = round (left + rn_axis_place (&axis, axis.ticks[i]) * PANEL_WIDTH) + 0.5;
      g_autofree char *label = rn_axis_label (&axis, axis.ticks[i]);
      rn_set_grey (cr, 0.9);
      rn_draw_line (cr, x, top, x, bottom);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, x, bottom + FONT + 4, 0.5, label);
    }
  for (guint row = 0; row < bars->n_rows; row++)
    draw_row (cr, bars, index, row);
  rn_set_grey (cr, 0.4);
  rn_draw_line (cr, left + 0.5, top, left + 0.5, bottom);
  for (guint s = 0; s < count_series (panel); s++)
    {
      double y = bottom + X_AXIS + s * LEGEND_LINE;
      set_series (cr, index, s);
      cairo_rectangle (cr, left, y, 14, BAR - 2);
      cairo_fill (cr);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, left + 20, y + FONT - 1, 0, panel->series[s]);
    }
}

gboolean
rn_bars_write_png (const RnBars *bars, const char *path, GError **error)
{
  double width = panel_left (bars->n_panels);
  double height =
      plot_top () + bars->n_rows * row_height (bars) + X_AXIS + most_series (bars) * LEGEND_LINE + BOTTOM;
  g_autoptr (cairo_surface_t) surface =
      cairo_image_surface_create (CAIRO_FORMAT_RGB24, (int) MIN (width, 1e9), (int) MIN (height, 1e9));
  g_autoptr (cairo_t) cr = cairo_create (surface);
  g_autofree char *title = rn_text_clean (bars->title);

  rn_set_grey (cr, 1);
  cairo_paint (cr);
  cairo_select_font_face (cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size (cr, FONT + 3);
  rn_set_grey (cr, 0);
  g_autofree char *fitted = rn_text_fit (cr, title, width - 2 * GAP);
  rn_draw_text (cr, GAP, TITLE - 12, 0, fitted);
  cairo_set_font_size (cr, FONT);
  for (guint row = 0; row < bars->n_rows; row++)
    {
      g_autofree char *clean = rn_text_clean (bars->labels[row]);
      g_autofree char *label = rn_text_fit (cr, clean, LABELS - 18);
      rn_set_grey (cr, 0.1);
      rn_draw_text (cr, LABELS - 8, plot_top () + (row + 0.5) * row_height (bars) + FONT * 0.35, 1, label);
    }
  for (guint i = 0; i < bars->n_panels; i++)
    draw_panel (cr, bars, i);
  return rn_surface_write_png (cr, path, error);
}
