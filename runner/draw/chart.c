#include "config.h"

#include "runner/draw/chart.h"

#include "runner/draw/axis.h"
#include "runner/draw/picture.h"
#include "runner/draw/surface.h"

#include <math.h>

/* Pixels. */
#define PANEL_WIDTH 600.0
#define PLOT_HEIGHT 270.0
#define CHART_TITLE 36.0
#define PANEL_TITLE 30.0
#define LEFT 74.0 /* of the plot: labels of ticks and of the axis */
#define RIGHT 20.0
#define X_AXIS 40.0 /* below the plot */
#define LEGEND_LINE 17.0
#define LEGEND_MARK 20.0 /* the piece of curve before an entry's text */
#define LEGEND_GAP 14.0
#define BOTTOM 12.0
#define FONT 11.0
#define DOT 2.6 /* radius */

#define MAX_COLUMNS 3
#define MAX_LEGEND 40     /* entries of a panel */
#define MAX_VALUE 1e300   /* larger numbers count as not finite: differences must not overflow */
#define MAX_PIXEL 1e5     /* cairo's coordinates overflow at 2^23 */
#define MAX_VERTICES 2000 /* of a path that is stroked at once: cairo's time grows with the square */

typedef struct
{
  double *x, *y;
  gsize n;
  int color;
  RnCurveStyle style;
  char *label; /* NULL: none */
} Curve;

typedef struct
{
  RnPanelOptions options; /* strings owned */
  GPtrArray *curves;      /* of Curve */
} Panel;

struct _RnChart
{
  char *title;
  GPtrArray *panels; /* of Panel */
};

typedef struct
{
  double x, y, width, height;
} Area;

/* ---- What is to be drawn ---- */

static char *
clean_or_null (const char *text)
{
  return text != NULL ? rn_text_clean (text) : NULL;
}

static void
curve_free (gpointer data)
{
  Curve *curve = data;
  g_free (curve->x);
  g_free (curve->y);
  g_free (curve->label);
  g_free (curve);
}

static void
panel_free (gpointer data)
{
  Panel *panel = data;
  g_free ((char *) panel->options.title);
  g_free ((char *) panel->options.x_label);
  g_free ((char *) panel->options.y_label);
  g_ptr_array_unref (panel->curves);
  g_free (panel);
}

RnChart *
rn_chart_new (const char *title)
{
  RnChart *chart = g_new0 (RnChart, 1);
  chart->title = rn_text_clean (title);
  chart->panels = g_ptr_array_new_with_free_func (panel_free);
  return chart;
}

void
rn_chart_free (RnChart *chart)
{
  if (chart == NULL)
    return;
  g_free (chart->title);
  g_ptr_array_unref (chart->panels);
  g_free (chart);
}

void
rn_chart_panel (RnChart *chart, const RnPanelOptions *options)
{
  Panel *panel = g_new0 (Panel, 1);
  panel->options = *options;
  panel->options.title = clean_or_null (options->title);
  panel->options.x_label = clean_or_null (options->x_label);
  panel->options.y_label = clean_or_null (options->y_label);
  panel->curves = g_ptr_array_new_with_free_func (curve_free);
  g_ptr_array_add (chart->panels, panel);
}

void
rn_chart_curve (RnChart *chart, const double *x, const double *y, gsize n, int color_index,
                RnCurveStyle style, const char *label)
{
  g_return_if_fail (chart->panels->len > 0);
  Panel *panel = g_ptr_array_index (chart->panels, chart->panels->len - 1);
  Curve *curve = g_new0 (Curve, 1);

  curve->x = g_memdup2 (x, n * sizeof *x);
  curve->y = g_memdup2 (y, n * sizeof *y);
  curve->n = n;
  curve->color = color_index;
  curve->style = style;
  curve->label = clean_or_null (label);
  g_ptr_array_add (panel->curves, curve);
}

/* ---- Where it goes ---- */

static guint
n_columns (const RnChart *chart)
{
  guint n = chart->panels->len;
  return n <= 1 ? 1 : n <= 4 ? 2 : MAX_COLUMNS;
}

/* Calls of @func for each entry of the legend, @x and @line relative to its start. Gives the number of lines.
 */
typedef void (*LegendFunc) (cairo_t *cr, const Curve *curve, const char *text, double x, int line,
                            const Area *plot);

static int
walk_legend (cairo_t *cr, const Panel *panel, LegendFunc func, const Area *plot)
{
  const double room = PANEL_WIDTH - LEFT - RIGHT;
  double x = 0;
  int line = 0, n = 0, n_left_out = 0;

  for (guint i = 0; i < panel->curves->len; i++)
    {
      const Curve *curve = g_ptr_array_index (panel->curves, i);
      if (curve->label == NULL || n++ >= MAX_LEGEND)
        {
          n_left_out += curve->label != NULL;
          continue;
        }
      g_autofree char *text = rn_text_fit (cr, curve->label, room - LEGEND_MARK);
      double width = LEGEND_MARK + rn_text_width (cr, text);
      if (x > 0 && x + width > room)
        {
          x = 0;
          line++;
        }
      if (func != NULL)
        func (cr, curve, text, x, line, plot);
      x += width + LEGEND_GAP;
    }
  if (n_left_out > 0)
    {
      g_autofree char *text = g_strdup_printf ("and %d more", n_left_out);
      line++;
      if (func != NULL)
        func (cr, NULL, text, 0, line, plot);
    }
  return n > 0 ? line + 1 : 0;
}

/* Height of the row that begins with panel @first. */
static double
row_height (cairo_t *cr, const RnChart *chart, guint first)
{
  int n_lines = 0;

  for (guint i = first; i < MIN (first + n_columns (chart), chart->panels->len); i++)
    n_lines = MAX (n_lines, walk_legend (cr, g_ptr_array_index (chart->panels, i), NULL, NULL));
  return PANEL_TITLE + PLOT_HEIGHT + X_AXIS + n_lines * LEGEND_LINE + BOTTOM;
}

/* Top of panel @index, which may be one past the end: then the end of the chart. */
static double
panel_top (cairo_t *cr, const RnChart *chart, guint index)
{
  double top = CHART_TITLE;
  guint columns = n_columns (chart),
        row = (index + (index == chart->panels->len ? columns - 1 : 0)) / columns;

  for (guint r = 0; r < row; r++)
    top += row_height (cr, chart, r * columns);
  return top;
}

static Area
plot_area (cairo_t *cr, const RnChart *chart, guint index)
{
  return (Area){ index % n_columns (chart) * PANEL_WIDTH + LEFT, panel_top (cr, chart, index) + PANEL_TITLE,
                 PANEL_WIDTH - LEFT - RIGHT, PLOT_HEIGHT };
}

static cairo_t *
new_context (double width, double height)
{
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_RGB24, (int) MIN (width, 1e9), (int) MIN (height, 1e9));
  cairo_t *cr = cairo_create (surface);

  cairo_surface_destroy (surface);
  cairo_select_font_face (cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size (cr, FONT);
  return cr;
}

void
rn_chart_plot_area (const RnChart *chart, guint panel, double area[4])
{
  g_autoptr (cairo_t) cr = new_context (1, 1);
  Area plot = plot_area (cr, chart, panel);

  area[0] = plot.x;
  area[1] = plot.y;
  area[2] = plot.width;
  area[3] = plot.height;
}

/* ---- Ranges ---- */

typedef struct
{
  double min, max; /* min > max: nothing yet */
} Range;

static void
range_add (Range *range, double value)
{
  range->min = MIN (range->min, value);
  range->max = MAX (range->max, value);
}

/* A point that can be shown. */
static gboolean
is_shown (const Panel *panel, double x, double y)
{
  return isfinite (x) && isfinite (y) && fabs (x) <= MAX_VALUE && fabs (y) <= MAX_VALUE
         && (panel->options.y_scale != RN_SCALE_LOG || y > 0);
}

/* FALSE: there is no point to show. */
static gboolean
make_axes (const Panel *panel, RnAxis *x_axis, RnAxis *y_axis)
{
  const RnPanelOptions *options = &panel->options;
  Range x = { INFINITY, -INFINITY }, y = x;

  for (guint c = 0; c < panel->curves->len; c++)
    {
      const Curve *curve = g_ptr_array_index (panel->curves, c);
      for (gsize i = 0; i < curve->n; i++)
        if (is_shown (panel, curve->x[i], curve->y[i]))
          {
            range_add (&x, curve->x[i]);
            range_add (&y, curve->y[i]);
          }
    }
  if (x.min > x.max)
    return FALSE;
  if (options->fixed_range)
    {
      x = (Range){ options->x_min, options->x_max };
      y = (Range){ options->y_min, options->y_max };
    }
  rn_axis_init (x_axis, RN_SCALE_LINEAR, x.min, x.max, TRUE, 6);
  rn_axis_init (y_axis, options->y_scale, y.min, y.max, options->fixed_range, 5);
  x_axis->percent = options->x_percent;
  y_axis->percent = options->y_percent;
  return TRUE;
}

/* ---- Drawing ---- */

static double
to_x (const RnAxis *axis, const Area *plot, double value)
{
  return CLAMP (plot->x + rn_axis_place (axis, value) * plot->width, -MAX_PIXEL, MAX_PIXEL);
}

static double
to_y (const RnAxis *axis, const Area *plot, double value)
{
  return CLAMP (plot->y + (1 - rn_axis_place (axis, value)) * plot->height, -MAX_PIXEL, MAX_PIXEL);
}

static void
draw_axes (cairo_t *cr, const RnAxis *x_axis, const RnAxis *y_axis, const Area *plot)
{
  double bottom = plot->y + plot->height;

  cairo_set_line_width (cr, 1);
  for (int i = 0; i < x_axis->n_ticks; i++)
    {
      double x = round (to_x (x_axis, plot, x_axis->ticks[i])) + 0.5;
      g_autofree char *label = rn_axis_label (x_axis, x_axis->ticks[i]);
      rn_set_grey (cr, 0.9);
      rn_draw_line (cr, x, plot->y, x, bottom);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, x, bottom + FONT + 4, 0.5, label);
    }
  for (int i = 0; i < y_axis->n_ticks; i++)
    {
      double y = round (to_y (y_axis, plot, y_axis->ticks[i])) + 0.5;
      g_autofree char *label = rn_axis_label (y_axis, y_axis->ticks[i]);
      rn_set_grey (cr, 0.9);
      rn_draw_line (cr, plot->x, y, plot->x + plot->width, y);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, plot->x - 6, y + FONT * 0.35, 1, label);
    }
}

static void
draw_frame (cairo_t *cr, const Panel *panel, const Area *plot)
{
  const RnPanelOptions *options = &panel->options;

  rn_set_grey (cr, 0.4);
  cairo_set_line_width (cr, 1);
  cairo_rectangle (cr, plot->x + 0.5, plot->y + 0.5, plot->width, plot->height);
  cairo_stroke (cr);
  rn_set_grey (cr, 0);
  if (options->title != NULL)
    {
      cairo_set_font_size (cr, FONT + 2);
      g_autofree char *title = rn_text_fit (cr, options->title, plot->width);
      rn_draw_text (cr, plot->x + plot->width / 2, plot->y - 9, 0.5, title);
      cairo_set_font_size (cr, FONT);
    }
  rn_set_grey (cr, 0.2);
  if (options->x_label != NULL)
    rn_draw_text (cr, plot->x + plot->width / 2, plot->y + plot->height + 2 * FONT + 10, 0.5,
                  options->x_label);
  if (options->y_label != NULL)
    {
      cairo_save (cr);
      cairo_translate (cr, plot->x - LEFT + FONT + 4, plot->y + plot->height / 2);
      cairo_rotate (cr, -G_PI / 2);
      rn_draw_text (cr, 0, 0, 0.5, options->y_label);
      cairo_restore (cr);
    }
}

static void
set_style (cairo_t *cr, const Curve *curve)
{
  const double dashes[] = { 5, 3 };
  double rgb[3];

  rn_draw_color (curve->color, rgb);
  cairo_set_source_rgba (cr, rgb[0], rgb[1], rgb[2], curve->style == RN_CURVE_FAINT ? 0.3 : 1);
  cairo_set_line_width (cr, curve->style == RN_CURVE_SOLID ? 1.8 : 1.2);
  cairo_set_line_join (cr, CAIRO_LINE_JOIN_ROUND);
  cairo_set_dash (cr, dashes, curve->style == RN_CURVE_DASHED ? G_N_ELEMENTS (dashes) : 0, 0);
}

/* The points of a curve that fall into one column of pixels: four of them look like all. */
typedef struct
{
  cairo_t *cr;
  int n_vertices; /* of the path so far */
  gsize n_points; /* of the line so far, 0: the next one begins it */
  double column, first_x, last_x, first, least, most, last;
} Pen;

static void
pen_vertex (Pen *pen, double x, double y)
{
  if (pen->n_vertices == 0)
    cairo_move_to (pen->cr, x, y);
  else
    cairo_line_to (pen->cr, x, y);
  if (++pen->n_vertices < MAX_VERTICES)
    return;
  cairo_stroke (pen->cr);
  cairo_move_to (pen->cr, x, y);
  pen->n_vertices = 1;
}

static void
pen_flush (Pen *pen)
{
  pen_vertex (pen, pen->first_x, pen->first);
  if (pen->least < pen->first && pen->least < pen->last)
    pen_vertex (pen, pen->first_x, pen->least);
  if (pen->most > pen->first && pen->most > pen->last)
    pen_vertex (pen, pen->last_x, pen->most);
  pen_vertex (pen, pen->last_x, pen->last);
}

static void
pen_add (Pen *pen, double x, double y)
{
  if (pen->n_points > 0 && floor (x) != pen->column)
    pen_flush (pen);
  if (pen->n_points == 0 || floor (x) != pen->column)
    {
      pen->column = floor (x);
      pen->first_x = x;
      pen->first = pen->least = pen->most = y;
    }
  pen->least = MIN (pen->least, y);
  pen->most = MAX (pen->most, y);
  pen->last_x = x;
  pen->last = y;
  pen->n_points++;
}

/* Ends a line, if there is one. */
static void
pen_lift (Pen *pen)
{
  if (pen->n_points == 1)
    {
      cairo_arc (pen->cr, pen->first_x, pen->first, DOT, 0, 2 * G_PI);
      cairo_fill (pen->cr);
    }
  else if (pen->n_points > 1)
    {
      pen_flush (pen);
      cairo_stroke (pen->cr);
    }
  pen->n_points = 0;
  pen->n_vertices = 0;
}

static void
draw_curve (cairo_t *cr, const Panel *panel, const Curve *curve, const RnAxis *x_axis, const RnAxis *y_axis,
            const Area *plot)
{
  Pen pen = { .cr = cr };

  cairo_save (cr);
  cairo_rectangle (cr, plot->x - DOT, plot->y - DOT, plot->width + 2 * DOT, plot->height + 2 * DOT);
  cairo_clip (cr);
  set_style (cr, curve);
  for (gsize i = 0; i < curve->n; i++)
    if (is_shown (panel, curve->x[i], curve->y[i]))
      pen_add (&pen, to_x (x_axis, plot, curve->x[i]), to_y (y_axis, plot, curve->y[i]));
    else
      pen_lift (&pen);
  pen_lift (&pen);
  cairo_restore (cr);
}

static void
draw_entry (cairo_t *cr, const Curve *curve, const char *text, double x, int line, const Area *plot)
{
  double left = plot->x + x, middle = plot->y + plot->height + X_AXIS + (line + 0.5) * LEGEND_LINE;

  if (curve != NULL)
    {
      cairo_save (cr);
      set_style (cr, curve);
      rn_draw_line (cr, left, middle, left + LEGEND_MARK - 5, middle);
      cairo_restore (cr);
      left += LEGEND_MARK;
    }
  rn_set_grey (cr, 0.2);
  rn_draw_text (cr, left, middle + FONT * 0.35, 0, text);
}

static void
draw_panel (cairo_t *cr, const RnChart *chart, guint index)
{
  const Panel *panel = g_ptr_array_index (chart->panels, index);
  Area plot = plot_area (cr, chart, index);
  RnAxis x_axis, y_axis;
  gboolean has_data = make_axes (panel, &x_axis, &y_axis);

  if (has_data)
    draw_axes (cr, &x_axis, &y_axis, &plot);
  draw_frame (cr, panel, &plot);
  for (guint i = 0; has_data && i < panel->curves->len; i++)
    draw_curve (cr, panel, g_ptr_array_index (panel->curves, i), &x_axis, &y_axis, &plot);
  rn_set_grey (cr, 0.5);
  if (!has_data)
    rn_draw_text (cr, plot.x + plot.width / 2, plot.y + plot.height / 2, 0.5, "no data");
  walk_legend (cr, panel, draw_entry, &plot);
}

gboolean
rn_chart_write_png (const RnChart *chart, const char *path, GError **error)
{
  g_autoptr (cairo_t) ruler = new_context (1, 1);
  double width = n_columns (chart) * PANEL_WIDTH, height = panel_top (ruler, chart, chart->panels->len);
  g_autoptr (cairo_t) cr = new_context (width, height);

  rn_set_grey (cr, 1);
  cairo_paint (cr);
  rn_set_grey (cr, 0);
  cairo_set_font_size (cr, FONT + 4);
  g_autofree char *title = rn_text_fit (cr, chart->title, width - LEFT);
  rn_draw_text (cr, width / 2, 24, 0.5, title);
  cairo_set_font_size (cr, FONT);
  for (guint i = 0; i < chart->panels->len; i++)
    draw_panel (cr, chart, i);
  return rn_surface_write_png (cr, path, error);
}
