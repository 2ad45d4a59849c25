#include "config.h"

#include "runner/report.h"

#include <runner/engine.h>
#include "runner/base/error.h"

#include <math.h>

/* A number that a log has at some iteration. */
typedef struct
{
  gboolean exists;
  RnLogPoint point;
} Found;

/* The best value, the first on ties; @sign 1: the largest, -1: the smallest. Scores below 0 do not exist. */
static Found
find_best (const RnLogSeries *series, int sign)
{
  Found best = { FALSE, { 0, 0 } };

  for (guint i = 0; i < series->points->len; i++)
    {
      RnLogPoint point = g_array_index (series->points, RnLogPoint, i);
      if (isnan (point.value) || (sign > 0 && point.value < 0))
        continue;
      if (!best.exists || sign * point.value > sign * best.point.value)
        best = (Found){ TRUE, point };
    }
  return best;
}

static RnLogPoint
last_point (const RnLogSeries *series)
{
  return g_array_index (series->points, RnLogPoint, series->points->len - 1);
}

/* "epoch 4, iteration 412" */
static char *
describe_place (const RnRunLog *log, gint64 iter)
{
  const RnLogSeries *epochs = rn_log_find (log->val, "epoch");

  for (guint i = 0; epochs != NULL && i < epochs->points->len; i++)
    {
      const RnLogPoint *point = &g_array_index (epochs->points, RnLogPoint, i);
      if (point->iter == iter && !isnan (point->value))
        return g_strdup_printf ("epoch %.0f, iteration %" G_GINT64_FORMAT, point->value, iter);
    }
  return g_strdup_printf ("iteration %" G_GINT64_FORMAT, iter);
}

/*
 * Sum over the iterations: a line holds the mean of those since the line before. @n_iters: how many they are.
 * Lines without the number count nothing.
 */
static double
sum_iterations (const RnRunLog *log, const RnLogSeries *series, gint64 *n_iters)
{
  gint64 before = log->first_iter;
  double sum = 0;

  *n_iters = 0;
  for (guint i = 0; series != NULL && i < series->points->len; i++)
    {
      const RnLogPoint *point = &g_array_index (series->points, RnLogPoint, i);
      if (!isnan (point->value))
        {
          sum += point->value * (double) (point->iter - before);
          *n_iters += point->iter - before;
        }
      before = point->iter;
    }
  return sum;
}

static void
append_iterations (GString *text, const RnRunLog *log)
{
  const RnLogSeries *epochs = rn_log_find (log->train, "epoch");
  gint64 last = 0;

  for (guint i = 0; i < log->train->len; i++)
    last = MAX (last, last_point (g_ptr_array_index (log->train, i)).iter);
  g_string_append_printf (text, "  %-13s %u file%s", "logs", log->n_files, log->n_files == 1 ? "" : "s");
  if (log->started != NULL)
    g_string_append_printf (text, ", started %s", log->started);
  g_string_append_printf (text, "\n  %-13s ", "iterations");
  if (log->train->len == 0)
    g_string_append (text, "none logged");
  else
    g_string_append_printf (text, "%" G_GINT64_FORMAT, last);
  if (log->max_iters > 0)
    g_string_append_printf (text, " of %" G_GINT64_FORMAT, log->max_iters);
  if (epochs != NULL && !isnan (last_point (epochs).value))
    g_string_append_printf (text, ", in epoch %.0f", last_point (epochs).value);
  if (log->first_iter > 0)
    g_string_append_printf (text, "; the first %" G_GINT64_FORMAT " are in no log", log->first_iter);
  g_string_append_c (text, '\n');
}

static void
append_loss (GString *text, const char *prefix, const RnLogSeries *series)
{
  g_autofree char *name = g_strconcat (prefix, series->name, NULL);
  RnLogPoint last = last_point (series);
  Found least = find_best (series, -1);
  guint n_nan = 0;
  gint64 first_nan = 0;

  for (guint i = series->points->len; i-- > 0;)
    if (isnan (g_array_index (series->points, RnLogPoint, i).value))
      {
        n_nan++;
        first_nan = g_array_index (series->points, RnLogPoint, i).iter;
      }
  g_string_append_printf (text, "  %-13s last %.4f", name, last.value);
  if (least.exists)
    g_string_append_printf (text, ", least %.4f at iteration %" G_GINT64_FORMAT, least.point.value,
                            least.point.iter);
  if (n_nan > 0)
    g_string_append_printf (text, "; not a number in %u line%s, first at iteration %" G_GINT64_FORMAT, n_nan,
                            n_nan == 1 ? "" : "s", first_nan);
  g_string_append_c (text, '\n');
}

static void
append_score (GString *text, const RnRunLog *log, const RnLogSeries *series)
{
  RnLogPoint last = last_point (series);
  Found best = find_best (series, 1);

  if (!best.exists)
    {
      g_string_append_printf (text, "  %-13s none: there is nothing to measure it on\n", series->name);
      return;
    }
  g_autofree char *last_place = describe_place (log, last.iter);
  g_autofree char *best_place = describe_place (log, best.point.iter);
  g_string_append_printf (text, "  %-13s last %.4f (%s), best %.4f (%s)\n", series->name, last.value,
                          last_place, best.point.value, best_place);
}

static void
append_time (GString *text, const RnRunLog *log)
{
  gint64 n, n_data;
  double time_s = sum_iterations (log, rn_log_find (log->train, "time"), &n);
  double data_s = sum_iterations (log, rn_log_find (log->train, "data_time"), &n_data);

  if (n == 0)
    return;
  g_autofree char *all = rn_format_duration (time_s);
  g_string_append_printf (text, "  %-13s %.3f s an iteration", "time", time_s / (double) n);
  if (n_data > 0)
    g_string_append_printf (text, " (waiting for data %.3f s)", data_s / (double) n_data);
  g_string_append_printf (text, ", %s in all without evaluations\n", all);
}

gboolean
rn_report_is_empty (const RnRunLog *log)
{
  return log->train->len == 0 && log->val->len == 0;
}

char *
rn_report_text (const RnRunLog *log)
{
  GString *text = g_string_new (NULL);
  const RnLogSeries *memory = rn_log_find (log->train, "memory");
  g_autofree char *path = rn_printable (log->path, FALSE);

  g_string_append_printf (text, "%s\n", path);
  append_iterations (text, log);
  for (guint i = 0; i < log->train->len; i++)
    {
      const RnLogSeries *series = g_ptr_array_index (log->train, i);
      if (rn_log_is_loss (series->name))
        append_loss (text, "", series);
    }
  for (guint i = 0; i < log->val->len; i++)
    {
      const RnLogSeries *series = g_ptr_array_index (log->val, i);
      if (rn_log_is_loss (series->name))
        append_loss (text, "val ", series);
      else if (rn_log_is_score (series->name))
        append_score (text, log, series);
    }
  append_time (text, log);
  if (memory != NULL && find_best (memory, 1).exists)
    g_string_append_printf (text, "  %-13s %.0f MiB at most\n", "memory", find_best (memory, 1).point.value);
  return g_string_free (text, FALSE);
}
