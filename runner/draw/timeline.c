#include "config.h"

#include "runner/draw/timeline.h"

#include "runner/draw/axis.h"
#include "runner/draw/picture.h"
#include "runner/draw/surface.h"

#include <math.h>

/* Pixels. */
#define LEFT 74.0
#define TOP 62.0 /* title and subtitle */
#define PLOT_WIDTH 760.0
#define PLOT_HEIGHT 400.0
#define SIDE 340.0  /* the list beside the plot */
#define NUMBER 68.0 /* of it, the sizes */
#define SIDE_LINE 17.5
#define STRIP_GAP 4.0
#define STRIP 14.0  /* of phases, below the plot */
#define X_AXIS 44.0 /* below the strip */
#define LEGEND_LINE 18.0
#define LEGEND_LABEL 92.0 /* what a line of the legend is about */
#define SWATCH 12.0
#define BOTTOM 12.0
#define FONT 11.0
#define HEADROOM 1.08 /* of the axis over the highest line: its label stands there */

void
rn_timeline_kind_color (guint kind, double rgb[3])
{
  /* From what is always there to what comes and goes. */
  static const double colors[][3] = {
    { 0.62, 0.64, 0.67 }, { 0.55, 0.36, 0.17 }, { 0.12, 0.37, 0.63 }, { 0.46, 0.72, 0.90 },
    { 0.16, 0.60, 0.42 }, { 0.86, 0.44, 0.16 }, { 0.80, 0.70, 0.20 }, { 0.60, 0.30, 0.60 },
  };
  for (int i = 0; i < 3; i++)
    rgb[i] = colors[kind % G_N_ELEMENTS (colors)][i];
}

void
rn_timeline_phase_color (guint phase, double rgb[3])
{
  static const double colors[][3] = {
    { 0.70, 0.82, 0.95 }, { 0.25, 0.75, 0.60 }, { 0.96, 0.75, 0.60 },
    { 0.75, 0.55, 0.80 }, { 0.95, 0.85, 0.30 },
  };
  for (int i = 0; i < 3; i++)
    rgb[i] = colors[phase % G_N_ELEMENTS (colors)][i];
}

static void
set_color (cairo_t *cr, const double rgb[3])
{
  cairo_set_source_rgb (cr, rgb[0], rgb[1], rgb[2]);
}

/* The sum of the kinds up to @kind. */
static double
stacked (const RnTimeline *t, guint kind, guint op)
{
  double sum = 0;
  for (guint k = 0; k <= kind; k++)
    sum += t->sizes[k * t->n + op];
  return sum;
}

static RnAxis
size_axis (const RnTimeline *t)
{
  double most = MAX (t->reserved, t->needed);
  RnAxis axis;

  for (guint i = 0; i < t->n; i++)
    most = MAX (most, stacked (t, t->n_kinds - 1, i));
  rn_axis_init (&axis, RN_SCALE_LINEAR, 0, MAX (most * HEADROOM, 1e-6), TRUE, 8);
  return axis;
}

static double
edge_x (const RnTimeline *t, guint op)
{
  return LEFT + PLOT_WIDTH * op / t->n;
}

static double
to_y (const RnAxis *axis, double size)
{
  return TOP + (1 - rn_axis_place (axis, size)) * PLOT_HEIGHT;
}

void
rn_timeline_place (const RnTimeline *t, guint op, double size, double *x, double *y)
{
  RnAxis axis = size_axis (t);

  *x = (edge_x (t, op) + edge_x (t, op + 1)) / 2;
  *y = to_y (&axis, size);
}

/* The highest kind first: each covers the one before. One polygon each, so that no seams show. */
static void
draw_areas (cairo_t *cr, const RnTimeline *t, const RnAxis *axis)
{
  for (guint k = t->n_kinds; k-- > 0;)
    {
      double rgb[3];
      rn_timeline_kind_color (k, rgb);
      set_color (cr, rgb);
      cairo_move_to (cr, LEFT, TOP + PLOT_HEIGHT);
      for (guint i = 0; i < t->n; i++)
        {
          double y = to_y (axis, stacked (t, k, i));
          cairo_line_to (cr, edge_x (t, i), y);
          cairo_line_to (cr, edge_x (t, i + 1), y);
        }
      cairo_line_to (cr, LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
      cairo_close_path (cr);
      cairo_fill (cr);
    }
}

static void
draw_axes (cairo_t *cr, const RnTimeline *t, const RnAxis *axis)
{
  const double strip = TOP + PLOT_HEIGHT + STRIP_GAP, bottom = strip + STRIP;
  RnAxis ops;

  rn_axis_init (&ops, RN_SCALE_LINEAR, 0, t->n, TRUE, 8);
  cairo_set_line_width (cr, 1);
  for (int i = 0; i < ops.n_ticks; i++)
    {
      double x = round (LEFT + rn_axis_place (&ops, ops.ticks[i]) * PLOT_WIDTH) + 0.5;
      g_autofree char *label = rn_axis_label (&ops, ops.ticks[i]);
      rn_set_grey (cr, 0.4);
      rn_draw_line (cr, x, bottom, x, bottom + 4);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, x, bottom + FONT + 6, 0.5, label);
    }
  rn_draw_text (cr, LEFT + PLOT_WIDTH / 2, bottom + 2 * FONT + 12, 0.5,
                "op of the step, in the order in which they run");
  for (int i = 0; i < axis->n_ticks; i++)
    {
      double y = round (to_y (axis, axis->ticks[i])) + 0.5;
      g_autofree char *label = rn_axis_label (axis, axis->ticks[i]);
      cairo_set_source_rgba (cr, 0, 0, 0, 0.12);
      rn_draw_line (cr, LEFT, y, LEFT + PLOT_WIDTH, y);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, LEFT - 6, y + FONT * 0.35, 1, label);
    }
  cairo_save (cr);
  cairo_translate (cr, LEFT - 50, TOP + PLOT_HEIGHT / 2);
  cairo_rotate (cr, -G_PI / 2);
  rn_draw_text (cr, 0, 0, 0.5, "device memory, MiB");
  cairo_restore (cr);
}

static void
draw_phases (cairo_t *cr, const RnTimeline *t)
{
  for (guint i = 0; i < t->n;)
    {
      double rgb[3];
      guint end = i + 1;
      while (end < t->n && t->phase_of[end] == t->phase_of[i])
        end++;
      rn_timeline_phase_color ((guint) t->phase_of[i], rgb);
      set_color (cr, rgb);
      cairo_rectangle (cr, edge_x (t, i), TOP + PLOT_HEIGHT + STRIP_GAP, edge_x (t, end) - edge_x (t, i),
                       STRIP);
      cairo_fill (cr);
      i = end;
    }
}

/* Text that areas may lie behind. */
static void
draw_label (cairo_t *cr, double x, double y, double anchor, const char *text)
{
  double width = rn_text_width (cr, text);

  cairo_set_source_rgba (cr, 1, 1, 1, 0.8);
  cairo_rectangle (cr, x - anchor * width - 2, y - FONT + 1, width + 4, FONT + 2);
  cairo_fill (cr);
  rn_set_grey (cr, 0.1);
  rn_draw_text (cr, x, y, anchor, text);
}

static void
draw_marks (cairo_t *cr, const RnTimeline *t, const RnAxis *axis)
{
  const double dashes[] = { 6, 4 }, right = LEFT + PLOT_WIDTH;
  double reserved = to_y (axis, t->reserved), needed = to_y (axis, t->needed), x;
  g_autofree char *text =
      g_strdup_printf ("reserved: %.1f MiB; no placement needs less than %.1f", t->reserved, t->needed);

  cairo_set_line_width (cr, 1.2);
  cairo_set_source_rgb (cr, 0.75, 0.1, 0.1);
  rn_draw_line (cr, LEFT, reserved, right, reserved);
  cairo_set_dash (cr, dashes, G_N_ELEMENTS (dashes), 0);
  rn_draw_line (cr, LEFT, needed, right, needed);
  rn_set_grey (cr, 0.1);
  if (t->turn < t->n)
    rn_draw_line (cr, edge_x (t, t->turn), TOP, edge_x (t, t->turn), TOP + PLOT_HEIGHT + STRIP_GAP + STRIP);
  cairo_set_dash (cr, NULL, 0, 0);
  /* Not where the peak is marked. */
  if (t->peak < t->n / 2)
    draw_label (cr, right - 8, reserved - 5, 1, text);
  else
    draw_label (cr, LEFT + 8, reserved - 5, 0, text);
  if (t->turn < t->n)
    {
      gboolean is_left = t->turn > t->n / 2;
      x = edge_x (t, t->turn) + (is_left ? -6 : 6);
      draw_label (cr, x, TOP + PLOT_HEIGHT - 8, is_left ? 1 : 0,
                  is_left ? "backward program \342\206\222"
                          : "\342\206\220 turn: backward program from here");
    }
  /* The peak: a triangle that points at it. */
  x = (edge_x (t, t->peak) + edge_x (t, t->peak + 1)) / 2;
  double y = to_y (axis, stacked (t, t->n_kinds - 1, t->peak));
  rn_set_grey (cr, 0);
  cairo_move_to (cr, x, y - 1);
  cairo_line_to (cr, x - 5, y - 10);
  cairo_line_to (cr, x + 5, y - 10);
  cairo_close_path (cr);
  cairo_fill (cr);
}

static void
draw_frame (cairo_t *cr)
{
  rn_set_grey (cr, 0.4);
  cairo_set_line_width (cr, 1);
  cairo_rectangle (cr, LEFT + 0.5, TOP + 0.5, PLOT_WIDTH, PLOT_HEIGHT);
  cairo_stroke (cr);
}

static void
draw_side (cairo_t *cr, const RnTimeline *t)
{
  const double left = LEFT + PLOT_WIDTH + 20, room = SIDE - 30;
  double y = TOP + FONT;
  g_autofree char *clean = rn_text_clean (t->peak_title);
  g_autofree char *title = rn_text_fit (cr, clean, room);

  rn_set_grey (cr, 0);
  rn_draw_text (cr, left, y, 0, "alive in the arena at the peak (black triangle):");
  y += SIDE_LINE;
  rn_draw_text (cr, left, y, 0, title);
  rn_set_grey (cr, 0.2);
  for (guint i = 0; i < t->n_largest; i++)
    {
      g_autofree char *number = g_strdup_printf ("%.2f MiB", t->largest[i].size);
      g_autofree char *name = rn_text_clean (t->largest[i].name);
      g_autofree char *fitted = rn_text_fit (cr, name, room - NUMBER - 8);
      y += SIDE_LINE;
      rn_draw_text (cr, left + NUMBER, y, 1, number);
      rn_draw_text (cr, left + NUMBER + 8, y, 0, fitted);
    }
}

/* One line of swatches with names. */
static void
draw_legend (cairo_t *cr, const char *label, const char *const *names, guint n,
             void (*color) (guint, double rgb[3]), double y)
{
  double x = LEFT;

  rn_set_grey (cr, 0.2);
  rn_draw_text (cr, x, y + SWATCH - 2, 0, label);
  x += LEGEND_LABEL;
  for (guint i = 0; i < n; i++)
    {
      double rgb[3];
      color (i, rgb);
      set_color (cr, rgb);
      cairo_rectangle (cr, x, y, SWATCH, SWATCH);
      cairo_fill (cr);
      rn_set_grey (cr, 0.2);
      rn_draw_text (cr, x + SWATCH + 5, y + SWATCH - 2, 0, names[i]);
      x += SWATCH + 5 + rn_text_width (cr, names[i]) + 16;
    }
}

static void
draw_titles (cairo_t *cr, const RnTimeline *t)
{
  g_autofree char *title = rn_text_clean (t->title), *subtitle = rn_text_clean (t->subtitle);
  const double room = PLOT_WIDTH + SIDE - 20;

  cairo_set_font_size (cr, FONT + 4);
  rn_set_grey (cr, 0);
  g_autofree char *fitted = rn_text_fit (cr, title, room);
  rn_draw_text (cr, LEFT, 26, 0, fitted);
  cairo_set_font_size (cr, FONT);
  rn_set_grey (cr, 0.3);
  g_autofree char *second = rn_text_fit (cr, subtitle, room);
  rn_draw_text (cr, LEFT, 46, 0, second);
}

gboolean
rn_timeline_write_png (const RnTimeline *t, const char *path, GError **error)
{
  const double below = TOP + PLOT_HEIGHT + STRIP_GAP + STRIP + X_AXIS;
  g_autoptr (cairo_surface_t) surface = cairo_image_surface_create (
      CAIRO_FORMAT_RGB24, (int) (LEFT + PLOT_WIDTH + SIDE), (int) (below + 2 * LEGEND_LINE + BOTTOM));
  g_autoptr (cairo_t) cr = cairo_create (surface);
  RnAxis axis = size_axis (t);

  rn_set_grey (cr, 1);
  cairo_paint (cr);
  cairo_select_font_face (cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
  draw_titles (cr, t);
  draw_areas (cr, t, &axis);
  draw_axes (cr, t, &axis);
  draw_phases (cr, t);
  draw_frame (cr);
  draw_marks (cr, t, &axis);
  draw_side (cr, t);
  draw_legend (cr, "bytes of", t->kinds, t->n_kinds, rn_timeline_kind_color, below);
  draw_legend (cr, "ops of", t->phases, t->n_phases, rn_timeline_phase_color, below + LEGEND_LINE);
  return rn_surface_write_png (cr, path, error);
}
