/* eval-table.c: the result of an evaluation as a table, in the form that MMDetection prints. */
#include "config.h"

#include <runner/engine.h>

#include "runner/base/error.h"

#include <string.h>

/* Rows of cells; the first is the head, the last the mean. */

static GPtrArray *
new_rows (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) g_strfreev);
}

/* @cells: NULL-ended, taken over. */
static void
add_row (GPtrArray *rows, char *const *cells)
{
  guint n = g_strv_length ((char **) cells);
  char **row = g_new0 (char *, n + 1);
  memcpy (row, cells, n * sizeof *row);
  g_ptr_array_add (rows, row);
}

#define ADD_ROW(rows, ...) add_row ((rows), (char *const[]){ __VA_ARGS__, NULL })

static void
append_rule (GString *text, const gsize *widths, guint n_columns)
{
  for (guint i = 0; i < n_columns; i++)
    {
      g_string_append_c (text, '+');
      for (gsize k = 0; k < widths[i] + 2; k++)
        g_string_append_c (text, '-');
    }
  g_string_append (text, "+\n");
}

static void
append_row (GString *text, const gsize *widths, char **row)
{
  for (guint i = 0; row[i] != NULL; i++)
    {
      g_string_append_printf (text, "| %s", row[i]);
      for (gsize k = (gsize) g_utf8_strlen (row[i], -1); k < widths[i] + 1; k++)
        g_string_append_c (text, ' ');
    }
  g_string_append (text, "|\n");
}

static void
append_table (GString *text, const GPtrArray *rows)
{
  guint n = g_strv_length (g_ptr_array_index (rows, 0));
  g_autofree gsize *widths = g_new0 (gsize, n);

  for (guint k = 0; k < rows->len; k++)
    for (guint i = 0; i < n; i++)
      widths[i] = MAX (widths[i], (gsize) g_utf8_strlen (((char **) g_ptr_array_index (rows, k))[i], -1));
  append_rule (text, widths, n);
  for (guint k = 0; k < rows->len; k++)
    {
      append_row (text, widths, g_ptr_array_index (rows, k));
      if (k == 0 || k + 2 >= rows->len)
        append_rule (text, widths, n);
    }
}

static void
append_overlap (GString *text, const RnIouScore *score, const char *const *class_names)
{
  g_autoptr (GPtrArray) rows = new_rows ();

  ADD_ROW (rows, g_strdup ("class"), g_strdup ("gts"), g_strdup ("dets"), g_strdup ("recall"),
           g_strdup ("ap"));
  for (guint i = 0; i < score->classes->len; i++)
    {
      const RnClassScore *c = &g_array_index (score->classes, RnClassScore, i);
      ADD_ROW (rows, rn_printable (class_names[i], FALSE), g_strdup_printf ("%" G_GINT64_FORMAT, c->n_gts),
               g_strdup_printf ("%" G_GINT64_FORMAT, c->n_dets), g_strdup_printf ("%.3f", c->recall),
               g_strdup_printf ("%.3f", c->ap));
    }
  ADD_ROW (rows, g_strdup ("mAP"), g_strdup (""), g_strdup (""), g_strdup (""),
           g_strdup_printf ("%.3f", score->map));
  append_table (text, rows);
}

/* A class without objects has a dash. */
static char *
format_ap (double ap)
{
  return ap >= 0 ? g_strdup_printf ("%.3f", ap) : g_strdup ("-");
}

static void
append_bbox_classes (GString *text, const RnEvaluation *evaluation, const char *const *class_names)
{
  g_autoptr (GPtrArray) rows = new_rows ();

  ADD_ROW (rows, g_strdup ("class"), g_strdup ("bbox_mAP"));
  for (guint i = 0; class_names[i] != NULL; i++)
    ADD_ROW (rows, rn_printable (class_names[i], FALSE), format_ap (evaluation->class_bbox[i]));
  ADD_ROW (rows, g_strdup ("mean"), format_ap (evaluation->bbox[0]));
  append_table (text, rows);
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
      append_overlap (text, score, class_names);
    }
  if (evaluation->scores->len > 1)
    g_string_append_printf (text, "mAP, the mean of the %u thresholds: %.3f\n", evaluation->scores->len,
                            evaluation->map);
  if (evaluation->bbox != NULL)
    {
      if (evaluation->class_bbox != NULL)
        append_bbox_classes (text, evaluation, class_names);
      append_bbox (text, evaluation->bbox);
    }
  g_string_truncate (text, text->len - 1); /* the last newline */
  return g_string_free (text, FALSE);
}
