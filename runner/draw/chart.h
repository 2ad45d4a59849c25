/*
 * chart.h: line charts as PNG files: titles, axes with round ticks, legends; several panels in one file.
 */
#ifndef RUNNER_DRAW_CHART_H
#define RUNNER_DRAW_CHART_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct _RnChart RnChart;

typedef enum
{
  RN_SCALE_LINEAR,
  RN_SCALE_LOG, /* values <= 0 are left out */
} RnScale;

typedef struct
{
  const char *title, *x_label, *y_label; /* y_label and x_label may be NULL */
  RnScale y_scale;
  gboolean fixed_range; /* the axes span x_min..x_max and y_min..y_max, not the data */
  double x_min, x_max, y_min, y_max;
  gboolean x_percent, y_percent; /* 0.5 is labelled "50%" */
} RnPanelOptions;

typedef enum
{
  RN_CURVE_SOLID,
  RN_CURVE_DASHED,
  RN_CURVE_FAINT, /* behind another curve of the same colour: the numbers that a smoothed one comes from */
} RnCurveStyle;

RnChart *rn_chart_new (const char *title);
void rn_chart_free (RnChart *chart);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnChart, rn_chart_free)

/* Starts a panel; curves that follow belong to it. Strings are copied; what is not UTF-8 is made valid. */
void rn_chart_panel (RnChart *chart, const RnPanelOptions *options);
/*
 * A curve through @n points, not necessarily sorted; points that are not finite break the line, and a point
 * without neighbours is a dot. @color_index as in rn_draw_color. @label (nullable) goes to the legend. Curves
 * that come later lie on top.
 */
void rn_chart_curve (RnChart *chart, const double *x, const double *y, gsize n, int color_index,
                     RnCurveStyle style, const char *label);
/*
 * Panels lie in rows of up to three. Without a point a panel says "no data". Through a temporary file.
 * G_FILE_ERROR with the path.
 */
gboolean rn_chart_write_png (const RnChart *chart, const char *path, GError **error);

/* Where the plot of panel @panel lies in the picture, in pixels: x, y, width, height. For tests. */
void rn_chart_plot_area (const RnChart *chart, guint panel, double area[4]);

G_END_DECLS

#endif
