/* report-draw.c: the picture of a report. */
#include "config.h"

#include "runner/report.h"

#include "runner/draw/chart.h"
#include "runner/moving-mean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SMOOTHED 60 /* points; fewer are drawn as they are */
#define WINDOWS 40      /* windows of the moving mean that a curve has room for */
#define MAX_PARTS 6     /* panels of loss parts and scores, where runs are compared */
#define LOG_RATIO 20    /* largest over middle value from which the scale is logarithmic */

typedef struct
{
  gsize n;
  double *x, *y;
} Points;

static void
points_clear (Points *points)
{
  g_free (points->x);
  g_free (points->y);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Points, points_clear)

/* @is_score: values below 0 stand for "none". */
static void
points_init (Points *points, const RnLogSeries *series, gboolean is_score)
{
  points->n = series->points->len;
  points->x = g_new (double, points->n);
  points->y = g_new (double, points->n);
  for (gsize i = 0; i < points->n; i++)
    {
      RnLogPoint point = g_array_index (series->points, RnLogPoint, i);
      points->x[i] = (double) point.iter;
      points->y[i] = is_score && point.value < 0 ? (double) NAN : point.value;
    }
}

static void
add_curve (RnChart *chart, const RnLogSeries *series, int color, RnCurveStyle style, gboolean is_score,
           const char *label)
{
  g_auto (Points) points = { 0 };
  points_init (&points, series, is_score);
  rn_chart_curve (chart, points.x, points.y, points.n, color, style, label);
}

/* The mean, and the numbers themselves faintly behind it where there are many. */
static void
add_smoothed (RnChart *chart, const RnLogSeries *series, int color, gboolean with_raw, const char *label)
{
  g_auto (Points) points = { 0 };

  points_init (&points, series, FALSE);
  if (points.n < MIN_SMOOTHED)
    {
      rn_chart_curve (chart, points.x, points.y, points.n, color, RN_CURVE_SOLID, label);
      return;
    }
  g_autofree double *mean = rn_moving_mean (points.y, points.n, points.n / WINDOWS / 2);
  if (with_raw)
    rn_chart_curve (chart, points.x, points.y, points.n, color, RN_CURVE_FAINT, NULL);
  rn_chart_curve (chart, points.x, mean, points.n, color, RN_CURVE_SOLID, label);
}

static int
compare_doubles (const void *pa, const void *pb)
{
  double a = *(const double *) pa, b = *(const double *) pb;
  return (a > b) - (a < b);
}

/* Logarithmic where a few values would press the others to the ground: a loss that exploded. */
static RnScale
choose_scale (const GPtrArray *logs, const char *name)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i < logs->len; i++)
    {
      const RnLogSeries *series = rn_log_find (((const RnRunLog *) g_ptr_array_index (logs, i))->train, name);
      for (guint k = 0; series != NULL && k < series->points->len; k++)
        {
          double value = g_array_index (series->points, RnLogPoint, k).value;
          if (value <= 0)
            return RN_SCALE_LINEAR;
          if (isfinite (value))
            g_array_append_val (values, value);
        }
    }
  if (values->len == 0)
    return RN_SCALE_LINEAR;
  g_array_sort (values, compare_doubles);
  return g_array_index (values, double, values->len - 1)
                 > LOG_RATIO * g_array_index (values, double, values->len / 2)
             ? RN_SCALE_LOG
             : RN_SCALE_LINEAR;
}

static void
begin_panel (RnChart *chart, const char *title, const char *y_label, RnScale scale)
{
  const RnPanelOptions options = {
    .title = title, .x_label = "iteration", .y_label = y_label, .y_scale = scale
  };
  rn_chart_panel (chart, &options);
}

/* Curve and legend number @i of a panel: of the run where there are several. */
static const char *
label_of (const GPtrArray *logs, guint i, const char *what)
{
  const RnRunLog *log = g_ptr_array_index (logs, i);

  if (logs->len == 1)
    return what;
  for (guint k = 0; k < logs->len; k++)
    if (k != i && strcmp (((const RnRunLog *) g_ptr_array_index (logs, k))->name, log->name) == 0)
      return log->path;
  return log->name;
}

/* Names that pass @test, of all runs, in the order of first use. (transfer container) of lent char * */
static GPtrArray *
collect_names (const GPtrArray *logs, gboolean of_val, gboolean (*test) (const char *name))
{
  GPtrArray *names = g_ptr_array_new ();

  for (guint i = 0; i < logs->len; i++)
    {
      const RnRunLog *log = g_ptr_array_index (logs, i);
      const GPtrArray *all = of_val ? log->val : log->train;
      for (guint k = 0; k < all->len; k++)
        {
          char *name = ((RnLogSeries *) g_ptr_array_index (all, k))->name;
          if (test (name) && !g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL))
            g_ptr_array_add (names, name);
        }
    }
  return names;
}

/* A panel of one number, a curve for each run. */
static void
add_panel (RnChart *chart, const GPtrArray *logs, const char *name, const char *y_label, RnScale scale,
           gboolean is_smoothed)
{
  begin_panel (chart, name, y_label, scale);
  for (guint i = 0; i < logs->len; i++)
    {
      const RnRunLog *log = g_ptr_array_index (logs, i);
      const RnLogSeries *series = rn_log_find (log->train, name);
      if (series != NULL && is_smoothed)
        add_smoothed (chart, series, (int) i, logs->len <= 2, label_of (logs, i, name));
      else if (series != NULL)
        add_curve (chart, series, (int) i, RN_CURVE_SOLID, FALSE, label_of (logs, i, name));
    }
}

/* One run: the total and its parts together. Several: a panel for each. */
static void
add_losses (RnChart *chart, const GPtrArray *logs)
{
  g_autoptr (GPtrArray) names = collect_names (logs, FALSE, rn_log_is_loss);

  if (logs->len > 1)
    {
      add_panel (chart, logs, "loss", NULL, choose_scale (logs, "loss"), TRUE);
      for (guint i = 0; i < MIN (names->len, MAX_PARTS); i++)
        {
          const char *name = g_ptr_array_index (names, i);
          if (strcmp (name, "loss") != 0)
            add_panel (chart, logs, name, NULL, choose_scale (logs, name), TRUE);
        }
      return;
    }
  begin_panel (chart, "loss", NULL, choose_scale (logs, "loss"));
  guint color = 0;
  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < names->len; i++)
      {
        const RnLogSeries *series =
            rn_log_find (((const RnRunLog *) g_ptr_array_index (logs, 0))->train, names->pdata[i]);
        if ((strcmp (series->name, "loss") == 0) == (pass == 0))
          add_smoothed (chart, series, (int) color++, pass == 0, series->name);
      }
  const RnLogSeries *val = rn_log_find (((const RnRunLog *) g_ptr_array_index (logs, 0))->val, "loss");
  if (val != NULL)
    add_curve (chart, val, (int) color, RN_CURVE_SOLID, TRUE, "val loss");
}

/* Pascal VOC's mean over the overlaps that are required: over one, it would be the same curve again. */
static void
drop_mean_of_one (GPtrArray *names)
{
  guint n_overlaps = 0, mean;

  for (guint i = 0; i < names->len; i++)
    n_overlaps += g_str_has_prefix (g_ptr_array_index (names, i), "AP");
  if (n_overlaps == 1 && g_ptr_array_find_with_equal_func (names, "mAP", g_str_equal, &mean))
    g_ptr_array_remove_index (names, mean);
}

static void
add_scores (RnChart *chart, const GPtrArray *logs)
{
  g_autoptr (GPtrArray) names = collect_names (logs, TRUE, rn_log_is_score);

  drop_mean_of_one (names);
  if (logs->len == 1 || names->len == 0)
    begin_panel (chart, "average precision", NULL, RN_SCALE_LINEAR);
  for (guint k = 0; k < MIN (names->len, logs->len == 1 ? names->len : MAX_PARTS); k++)
    {
      const char *name = g_ptr_array_index (names, k);
      if (logs->len > 1)
        begin_panel (chart, name, NULL, RN_SCALE_LINEAR);
      for (guint i = 0; i < logs->len; i++)
        {
          const RnLogSeries *series =
              rn_log_find (((const RnRunLog *) g_ptr_array_index (logs, i))->val, name);
          if (series != NULL)
            add_curve (chart, series, (int) (logs->len == 1 ? k : i), RN_CURVE_SOLID, TRUE,
                       label_of (logs, i, name));
        }
    }
}

static void
add_time (RnChart *chart, const GPtrArray *logs)
{
  begin_panel (chart, "time of an iteration; dashed: waiting for data", "s", RN_SCALE_LINEAR);
  for (guint i = 0; i < logs->len; i++)
    {
      const RnRunLog *log = g_ptr_array_index (logs, i);
      const RnLogSeries *time = rn_log_find (log->train, "time"),
                        *data = rn_log_find (log->train, "data_time");
      if (time != NULL)
        add_curve (chart, time, (int) i, RN_CURVE_SOLID, FALSE, label_of (logs, i, "time"));
      if (data != NULL)
        add_curve (chart, data, (int) i, RN_CURVE_DASHED, FALSE, logs->len == 1 ? "data_time" : NULL);
    }
}

gboolean
rn_report_draw (const GPtrArray *logs, const char *path, GError **error)
{
  const RnRunLog *first = g_ptr_array_index (logs, 0);
  g_autofree char *title = logs->len == 1 ? g_strdup (first->name) : g_strdup_printf ("%u runs", logs->len);
  g_autoptr (RnChart) chart = rn_chart_new (title);

  add_losses (chart, logs);
  add_scores (chart, logs);
  add_panel (chart, logs, "lr", NULL, RN_SCALE_LINEAR, FALSE);
  add_time (chart, logs);
  add_panel (chart, logs, "memory", "MiB", RN_SCALE_LINEAR, FALSE);
  add_panel (chart, logs, "grad_norm", NULL, choose_scale (logs, "grad_norm"), TRUE);
  return rn_chart_write_png (chart, path, error);
}
