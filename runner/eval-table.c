/* eval-table.c: the result of an evaluation as a table, in the form that MMDetection prints. */
#include "config.h"

#include <runner/engine.h>

#include <string.h>

enum
{
  N_COLUMNS = 5,
};

static const char *const head[N_COLUMNS] = { "class", "gts", "dets", "recall", "ap" };

typedef char *Row[N_COLUMNS];

static void
row_clear (gpointer data)
{
  char **row = data;
  for (int i = 0; i < N_COLUMNS; i++)
    g_free (row[i]);
}

static void
append_rule (GString *text, const gsize *widths)
{
  for (int i = 0; i < N_COLUMNS; i++)
    {
      g_string_append_c (text, '+');
      for (gsize k = 0; k < widths[i] + 2; k++)
        g_string_append_c (text, '-');
    }
  g_string_append (text, "+\n");
}

static void
append_row (GString *text, const gsize *widths, const char *const *row)
{
  for (int i = 0; i < N_COLUMNS; i++)
    {
      g_string_append_printf (text, "| %s", row[i]);
      for (gsize k = (gsize) g_utf8_strlen (row[i], -1); k < widths[i] + 1; k++)
        g_string_append_c (text, ' ');
    }
  g_string_append (text, "|\n");
}

static GArray *
make_rows (const RnIouScore *score, const char *const *class_names)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (Row));
  g_array_set_clear_func (rows, row_clear);

  for (guint i = 0; i < score->classes->len; i++)
    {
      const RnClassScore *c = &g_array_index (score->classes, RnClassScore, i);
      Row row = { g_utf8_make_valid (class_names[i], -1), g_strdup_printf ("%" G_GINT64_FORMAT, c->n_gts),
                  g_strdup_printf ("%" G_GINT64_FORMAT, c->n_dets), g_strdup_printf ("%.3f", c->recall),
                  g_strdup_printf ("%.3f", c->ap) };
      g_array_append_val (rows, row);
    }
  Row mean = { g_strdup ("mAP"), g_strdup (""), g_strdup (""), g_strdup (""),
               g_strdup_printf ("%.3f", score->map) };
  g_array_append_val (rows, mean);
  return rows;
}

static void
append_table (GString *text, const RnIouScore *score, const char *const *class_names)
{
  g_autoptr (GArray) rows = make_rows (score, class_names);
  gsize widths[N_COLUMNS];

  for (int i = 0; i < N_COLUMNS; i++)
    {
      widths[i] = strlen (head[i]);
      for (guint k = 0; k < rows->len; k++)
        widths[i] = MAX (widths[i], (gsize) g_utf8_strlen (g_array_index (rows, Row, k)[i], -1));
    }
  append_rule (text, widths);
  append_row (text, widths, head);
  append_rule (text, widths);
  for (guint k = 0; k < rows->len; k++)
    {
      if (k == rows->len - 1)
        append_rule (text, widths);
      append_row (text, widths, (const char *const *) g_array_index (rows, Row, k));
    }
  append_rule (text, widths);
}

/* pycocotools' twelve lines, without the last newline. */
static void
append_bbox (GString *text, const double *stats)
{
  static const struct
  {
    const char *title, *overlap, *area;
    int n_dets;
  } lines[RN_BBOX_N_STATS] = {
    { "Average Precision  (AP)", "0.50:0.95", "all", 100 },
    { "Average Precision  (AP)", "0.50", "all", 100 },
    { "Average Precision  (AP)", "0.75", "all", 100 },
    { "Average Precision  (AP)", "0.50:0.95", "small", 100 },
    { "Average Precision  (AP)", "0.50:0.95", "medium", 100 },
    { "Average Precision  (AP)", "0.50:0.95", "large", 100 },
    { "Average Recall     (AR)", "0.50:0.95", "all", 1 },
    { "Average Recall     (AR)", "0.50:0.95", "all", 10 },
    { "Average Recall     (AR)", "0.50:0.95", "all", 100 },
    { "Average Recall     (AR)", "0.50:0.95", "small", 100 },
    { "Average Recall     (AR)", "0.50:0.95", "medium", 100 },
    { "Average Recall     (AR)", "0.50:0.95", "large", 100 },
  };

  for (int i = 0; i < RN_BBOX_N_STATS; i++)
    g_string_append_printf (text, " %s @[ IoU=%-9s | area=%6s | maxDets=%3d ] = %0.3f\n", lines[i].title,
                            lines[i].overlap, lines[i].area, lines[i].n_dets, stats[i]);
}

char *
rn_evaluation_table (const RnEvaluation *evaluation, const char *const *class_names)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < evaluation->scores->len; i++)
    {
      const RnIouScore *score = &g_array_index (evaluation->scores, RnIouScore, i);
      if (evaluation->scores->len > 1)
        g_string_append_printf (text, "---------------iou_thr: %g---------------\n", score->iou_thr);
      append_table (text, score, class_names);
    }
  if (evaluation->scores->len > 1)
    g_string_append_printf (text, "mAP, the mean of the %u thresholds: %.3f\n", evaluation->scores->len,
                            evaluation->map);
  if (evaluation->bbox != NULL)
    append_bbox (text, evaluation->bbox);
  g_string_truncate (text, text->len - 1); /* the last newline */
  return g_string_free (text, FALSE);
}
