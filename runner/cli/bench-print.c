/* bench-print.c: what `runner bench` shows of its rows: text, JSON and a picture. */
#include "config.h"

#include "runner/cli/bench-table.h"

#include "graph/cost.h"
#include "runner/cli/json.h"
#include "runner/draw/bars.h"

#include <math.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)

void
rn_bench_table_finish (RnBenchTable *table)
{
  const RnBenchRow *base = table->rows->pdata[0];

  for (guint i = 0; i < table->rows->len; i++)
    {
      RnBenchRow *row = table->rows->pdata[i];
      g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
      row->ratio_min = INFINITY;
      row->ratio_max = -INFINITY;
      for (guint k = 0; k < row->seconds->len; k++)
        {
          double ratio = g_array_index (row->seconds, double, k) / g_array_index (base->seconds, double, k);
          g_array_append_val (ratios, ratio);
          row->ratio_min = MIN (row->ratio_min, ratio);
          row->ratio_max = MAX (row->ratio_max, ratio);
        }
      if (ratios->len == 0)
        continue;
      row->ratio = rn_bench_median (ratios);
      row->result.seconds = rn_bench_median (row->seconds);
    }
}

static double
mib (gint64 bytes)
{
  return (double) bytes / MIB;
}

static double
extra_percent (const RnBenchResult *result)
{
  return rn_plan_work_extra (&(RnPlanWork){ result->step_macs, result->recompute_macs });
}

/* ---- text ---- */

static int
name_width (const RnBenchTable *table)
{
  gsize width = strlen ("accumulation");

  for (guint i = 0; i < table->rows->len; i++)
    width = MAX (width, strlen (((const RnBenchRow *) table->rows->pdata[i])->name));
  return (int) width;
}

/* The first line of a refusal. */
static void
print_refusal (const RnBenchRow *row, int width)
{
  g_print ("%-*s  not measured: %.*s\n", width, row->name, (int) strcspn (row->refusal, "\n"), row->refusal);
}

static void
print_row (const RnBenchRow *row, int width)
{
  const RnBenchResult *r = &row->result;

  g_print ("%-*s %8.1f %7.1f %9.1f %9.1f %9.3f %6.3f %6.3f %6.3f %6.1f %11.7f\n", width, row->name,
           mib (r->planned_bytes), mib (r->host_bytes), mib (r->measured_bytes), mib (r->peak_resident_bytes),
           r->seconds, row->ratio, row->ratio_min, row->ratio_max, extra_percent (r), r->loss);
}

static void
print_lines (const RnBenchTable *table, int width)
{
  for (guint i = 0; i < table->rows->len; i++)
    {
      const RnBenchRow *row = table->rows->pdata[i];
      for (guint k = 0; k < row->lines->len; k++)
        g_print ("%-*s --set '%s'\n", width, k == 0 ? row->name : "", (const char *) row->lines->pdata[k]);
    }
}

void
rn_bench_table_print_text (const RnBenchTable *table, gboolean check)
{
  const RnBenchRow *base = table->rows->pdata[0];
  int width = name_width (table);

  g_print ("batch %d at %dx%d, %s\n", table->batch, table->height, table->width, table->device);
  g_print ("%" G_GINT64_FORMAT " iterations of random data in a process, each row in %d, interleaved\n",
           base->result.iters, table->repeat);
  g_print (
      "planned: device memory before the run; host: what waits in host memory, beside it; measured: up to "
      "the last byte\n"
      "that was written%s; resident: peak of the process; times base: median, least and most of the "
      "repetitions;\n"
      "work: convolutions done once more, in %%; loss: of the last iteration\n\n",
      check ? ", every op compared with the plan (times are those of the comparison)" : "");
  g_print ("%-*s %8s %7s %9s %9s %9s %20s %6s %11s\n", width, "", "planned", "host", "measured", "resident",
           "s per", "times base    ", "work", "");
  g_print ("%-*s %8s %7s %9s %9s %9s %6s %6s %6s %6s %11s\n", width, "", "MiB", "MiB", "MiB", "MiB",
           "iteration", "median", "least", "most", "%", "loss");
  for (guint i = 0; i < table->rows->len; i++)
    {
      const RnBenchRow *row = table->rows->pdata[i];
      if (row->refusal != NULL)
        print_refusal (row, width);
      else
        print_row (row, width);
    }
  g_print ("\n");
  print_lines (table, width);
}

/* ---- JSON ---- */

static void
add_row (JsonBuilder *builder, const RnBenchRow *row)
{
  json_builder_begin_object (builder);
  rn_json_add_string (builder, "name", row->name);
  json_builder_set_member_name (builder, "lines");
  json_builder_begin_array (builder);
  for (guint i = 0; i < row->lines->len; i++)
    json_builder_add_string_value (builder, row->lines->pdata[i]);
  json_builder_end_array (builder);
  if (row->refusal != NULL)
    rn_json_add_string (builder, "refused", row->refusal);
  else
    {
      rn_bench_result_add (&row->result, builder);
      rn_json_add_float (builder, "time_ratio", row->ratio);
      rn_json_add_float (builder, "time_ratio_min", row->ratio_min);
      rn_json_add_float (builder, "time_ratio_max", row->ratio_max);
      json_builder_set_member_name (builder, "seconds_of_repetitions");
      json_builder_begin_array (builder);
      for (guint i = 0; i < row->seconds->len; i++)
        json_builder_add_double_value (builder, g_array_index (row->seconds, double, i));
      json_builder_end_array (builder);
    }
  json_builder_end_object (builder);
}

void
rn_bench_table_print_json (const RnBenchTable *table)
{
  const RnBenchRow *base = table->rows->pdata[0];
  g_autoptr (JsonBuilder) builder = json_builder_new ();

  json_builder_begin_object (builder);
  rn_json_add_int (builder, "batch", table->batch);
  rn_json_add_int (builder, "height", table->height);
  rn_json_add_int (builder, "width", table->width);
  rn_json_add_int (builder, "threads", table->threads);
  rn_json_add_string (builder, "device", table->device);
  rn_json_add_int (builder, "repeat", table->repeat);
  rn_bench_result_add (&base->result, builder);
  json_builder_set_member_name (builder, "strategies");
  json_builder_begin_array (builder);
  for (guint i = 0; i < table->rows->len; i++)
    add_row (builder, table->rows->pdata[i]);
  json_builder_end_array (builder);
  json_builder_end_object (builder);
  rn_json_print (builder);
}

/* ---- picture ---- */

#define N_MEMORY 3

gboolean
rn_bench_table_write_png (const RnBenchTable *table, const char *title, const char *path, GError **error)
{
  static const char *const memory_series[] = { "planned", "up to the last byte written", "peak resident",
                                               NULL };
  static const char *const time_series[] = { "median; the line: least and most of the repetitions", NULL };
  guint n = table->rows->len;
  const RnBenchRow *base = table->rows->pdata[0];
  g_autofree const char **labels = g_new0 (const char *, n), **refusals = g_new0 (const char *, n);
  g_autofree double *memory = g_new (double, n *N_MEMORY), *times = g_new (double, n),
                    *least = g_new (double, n), *most = g_new (double, n);

  for (guint i = 0; i < n; i++)
    {
      const RnBenchRow *row = table->rows->pdata[i];
      const RnBenchResult *r = &row->result;
      gboolean is_there = row->refusal == NULL;
      labels[i] = row->name;
      refusals[i] = is_there ? NULL : "not measured";
      memory[i * N_MEMORY] = is_there ? mib (r->planned_bytes) : (double) NAN;
      memory[i * N_MEMORY + 1] = is_there ? mib (r->measured_bytes) : (double) NAN;
      memory[i * N_MEMORY + 2] = is_there ? mib (r->peak_resident_bytes) : (double) NAN;
      times[i] = is_there ? row->ratio : (double) NAN;
      least[i] = row->ratio_min;
      most[i] = row->ratio_max;
    }
  g_autofree char *time_title =
      g_strdup_printf ("time of an iteration, times base (%.3f s)", base->result.seconds);
  const RnBarPanel panels[] = {
    { .title = "memory, MiB", .series = memory_series, .values = memory, .decimals = 0 },
    { .title = time_title,
      .series = time_series,
      .values = times,
      .low = least,
      .high = most,
      .decimals = 2 },
  };
  const RnBars bars = { .title = title,
                        .n_rows = n,
                        .labels = labels,
                        .notes = refusals,
                        .panels = panels,
                        .n_panels = G_N_ELEMENTS (panels) };
  return rn_bars_write_png (&bars, path, error);
}
