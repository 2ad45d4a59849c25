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
} RnPanelOptions;

RnChart *rn_chart_new (const char *title);
void rn_chart_free (RnChart *chart);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnChart, rn_chart_free)

/* Starts a panel; curves that follow belong to it. Strings are copied. */
void rn_chart_panel (RnChart *chart, const RnPanelOptions *options);
/*
 * A curve through @n points, not necessarily sorted; points that are not finite break the line. @color_index as in
 * rn_draw_color. @label (nullable) goes to the legend.
 */
void rn_chart_curve (RnChart *chart, const double *x, const double *y, gsize n, int color_index,
                     const char *label);
/* Through a temporary file. G_FILE_ERROR with the path. */
gboolean rn_chart_write_png (const RnChart *chart, const char *path, GError **error);

G_END_DECLS

#endif
