#include "config.h"

#include "runner/pr-chart.h"

#include "runner/draw/chart.h"

/* Best first, then in the order of labels. */
static int
compare_ap (const void *pa, const void *pb)
{
  const RnClassScore *a = *(const RnClassScore *const *) pa, *b = *(const RnClassScore *const *) pb;
  return a->ap != b->ap ? (a->ap < b->ap ? 1 : -1) : a->label - b->label;
}

static void
add_class (RnChart *chart, const RnClassScore *score, const char *class_name)
{
  gsize n = score->curve->len;
  g_autofree double *x = g_new (double, n), *y = g_new (double, n);
  g_autofree char *label = g_strdup_printf ("%s %.3f", class_name, score->ap);

  for (gsize i = 0; i < n; i++)
    {
      const RnCurvePoint *point = &g_array_index (score->curve, RnCurvePoint, i);
      x[i] = point->recall;
      y[i] = point->precision;
    }
  rn_chart_curve (chart, x, y, n, score->label, RN_CURVE_SOLID, label);
}

static void
add_overlap (RnChart *chart, const RnIouScore *score, const char *const *class_names)
{
  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  g_autofree char *title = g_strdup_printf ("IoU %g: mAP %.3f", score->iou_thr, score->map);
  const RnPanelOptions options = {
    .title = title,
    .x_label = "recall",
    .y_label = "precision",
    .fixed_range = TRUE,
    .x_max = 1,
    .y_max = 1,
    .x_percent = TRUE,
    .y_percent = TRUE,
  };

  for (guint i = 0; i < score->classes->len; i++)
    {
      RnClassScore *class = &g_array_index (score->classes, RnClassScore, i);
      if (class->n_gts > 0)
        g_ptr_array_add (order, class);
    }
  g_ptr_array_sort (order, compare_ap);
  rn_chart_panel (chart, &options);
  for (guint i = 0; i < order->len; i++)
    {
      const RnClassScore *class = g_ptr_array_index (order, i);
      add_class (chart, class, class_names[class->label]);
    }
}

gboolean
rn_pr_chart_write (const RnEvaluation *evaluation, const char *const *class_names, const char *path,
                   GError **error)
{
  g_autofree char *title = g_strdup_printf ("precision and recall, %" G_GINT64_FORMAT " image%s",
                                            evaluation->n_images, evaluation->n_images == 1 ? "" : "s");
  g_autoptr (RnChart) chart = rn_chart_new (title);

  for (guint i = 0; i < evaluation->scores->len; i++)
    add_overlap (chart, &g_array_index (evaluation->scores, RnIouScore, i), class_names);
  return rn_chart_write_png (chart, path, error);
}
