/* bars.h: charts of horizontal bars as PNG files: rows with names, panels beside each other. */
#ifndef RUNNER_DRAW_BARS_H
#define RUNNER_DRAW_BARS_H

#include <glib.h>

G_BEGIN_DECLS

/* Everything is lent. */
typedef struct
{
  const char *title;
  const char *const *series; /* names of the bars of a row, for the legend; NULL-ended, at least one */
  const double *values;      /* [rows][series]; not negative, or not finite: no bar */
  const double *low, *high;  /* (nullable) [rows]: a line over the first bar, from low to high */
  int decimals;              /* of the numbers beside the bars */
} RnBarPanel;

typedef struct
{
  const char *title;
  guint n_rows;
  const char *const *labels; /* [rows] */
  const char *const *notes;  /* [rows], each (nullable): stands in the place of the bars */
  const RnBarPanel *panels;
  guint n_panels;
} RnBars;

/* Each panel has an axis of its own, from 0. Through a temporary file. G_FILE_ERROR with the path. */
gboolean rn_bars_write_png (const RnBars *bars, const char *path, GError **error);
/* Where bar @series of @row in @panel lies in the picture, in pixels: x, y, width, height; of one without a
 * value the width is 0. For tests. */
void rn_bars_area (const RnBars *bars, guint panel, guint row, guint series, double area[4]);

G_END_DECLS

#endif
