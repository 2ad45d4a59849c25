/*
 * bench-table.c: which rows there are, and the order in which they run. Each repetition runs every row once
 * and begins with another one, so that what changes on the machine meanwhile falls on all of them.
 */
#include "config.h"

#include "runner/cli/bench-table.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/base/signals.h"
#include "runner/strategies.h"

#include <string.h>
#include <unistd.h>

#define MIB (1024 * 1024)
/* Of what base needs: about where recomputation becomes necessary for detectors. */
#define DEFAULT_BUDGET(bytes_) ((bytes_) / 5 * 3)

/* The table that users know; all: every one before it but base. */
static const char *const usual_rows[] = { "base", "fp16", "accumulation", "with_cp", "all", "budget", NULL };
#define ALL "fp16+accumulation+with_cp"

static void
row_free (gpointer data)
{
  RnBenchRow *row = data;
  g_free (row->name);
  g_free (row->refusal);
  g_ptr_array_unref (row->lines);
  g_array_unref (row->seconds);
  g_free (row);
}

void
rn_bench_table_free (RnBenchTable *table)
{
  if (table == NULL)
    return;
  g_ptr_array_unref (table->rows);
  g_free (table->device);
  g_free (table);
}

static gboolean
unknown_row (const char *name, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (int i = 0; usual_rows[i] != NULL; i++)
    g_ptr_array_add (names, (gpointer) usual_rows[i]);
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    g_ptr_array_add (names, (gpointer) rn_strategy_get ((RnStrategyId) id)->name);
  g_ptr_array_add (names, NULL);
  const char *nearest = rn_suggest (name, (const char *const *) names->pdata);
  if (nearest != NULL)
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                 "--strategies: there is no strategy \"%s\"; did you mean \"%s\"?", name, nearest);
  else
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                 "--strategies: there is no strategy \"%s\"; there are base, all, and those of `runner "
                 "strategies`",
                 name);
  return FALSE;
}

/* Adds the lines of @parts that the file does not have yet. */
static gboolean
add_lines (RnBenchRow *row, const char *parts, const RnNode *root, GError **error)
{
  g_auto (GStrv) names = g_strsplit (parts, "+", -1);

  for (char **name = names; *name != NULL; name++)
    {
      const RnStrategy *strategy = rn_strategy_find (*name);
      if (strategy == NULL)
        return unknown_row (*name, error);
      if (strategy->id == RN_STRATEGY_BUDGET)
        row->is_budget = TRUE;
      else if (!rn_strategy_is_on (strategy, root))
        for (int i = 0; strategy->lines[i] != NULL; i++)
          g_ptr_array_add (row->lines, g_strdup (strategy->lines[i]));
    }
  if (row->lines->len == 0 && !row->is_budget)
    row->refusal = g_strdup ("the file has it already");
  return TRUE;
}

static gboolean
add_row (RnBenchTable *table, const char *name, const RnNode *root, GError **error)
{
  RnBenchRow *row = g_new0 (RnBenchRow, 1);

  row->name = g_strdup (name);
  row->lines = g_ptr_array_new_with_free_func (g_free);
  row->seconds = g_array_new (FALSE, FALSE, sizeof (double));
  g_ptr_array_add (table->rows, row);
  return g_str_equal (name, "base") || add_lines (row, g_str_equal (name, "all") ? ALL : name, root, error);
}

RnBenchTable *
rn_bench_table_new (char **names, const RnNode *root, GError **error)
{
  g_autoptr (RnBenchTable) table = g_new0 (RnBenchTable, 1);
  const char *const *name = names != NULL ? (const char *const *) names : usual_rows;

  table->rows = g_ptr_array_new_with_free_func (row_free);
  if (!add_row (table, "base", root, error))
    return NULL;
  for (; *name != NULL; name++)
    if (!g_str_equal (*name, "base") && !add_row (table, *name, root, error))
      return NULL;
  return g_steal_pointer (&table);
}

/* ---- running ---- */

typedef struct
{
  RnBenchTable *table;
  const RnBenchTableOptions *options;
  int done, total; /* measurements */
  gint64 start;
} Progress;

/* On a terminal. How long all of it takes is known once every row has run. */
static void
show_progress (const Progress *progress, const RnBenchRow *row)
{
  int n_rows = (int) progress->table->rows->len;

  if (!isatty (STDERR_FILENO))
    return;
  g_printerr ("\r\033[K%d of %d: %s", progress->done + 1, progress->total, row->name);
  if (progress->done < n_rows)
    return;
  gint64 left = (g_get_monotonic_time () - progress->start) / progress->done
                * (progress->total - progress->done) / G_USEC_PER_SEC;
  g_printerr (", %d:%02d left", (int) (left / 60), (int) (left % 60));
}

static void
clear_progress (void)
{
  if (isatty (STDERR_FILENO))
    g_printerr ("\r\033[K");
}

/* What a child said when it failed: its last message. (transfer full) */
static char *
last_message (const RnBenchChild *child)
{
  const char *prefix = g_get_prgname ();
  const char *found = g_strrstr (child->err->str, prefix);

  if (child->code > 128)
    return g_strdup_printf ("its process was killed by signal %d", child->code - 128);
  if (found == NULL || !g_str_has_prefix (found + strlen (prefix), ": "))
    return g_strstrip (g_strdup (child->err->str));
  return g_strstrip (g_strdup (found + strlen (prefix) + 2));
}

/* FALSE: the output is not that of `bench --single --json`. */
static gboolean
read_output (RnBenchTable *table, RnBenchRow *row, const char *text)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  RnBenchResult result = { 0 };

  if (!json_parser_load_from_data (parser, text, -1, NULL)
      || !JSON_NODE_HOLDS_OBJECT (json_parser_get_root (parser)))
    return FALSE;
  JsonObject *object = json_node_get_object (json_parser_get_root (parser));
  if (!rn_bench_result_read (&result, object))
    return FALSE;
  if (row->seconds->len == 0)
    row->result = result;
  g_array_append_val (row->seconds, result.seconds);
  if (table->device == NULL)
    {
      table->batch = (int) json_object_get_int_member (object, "batch");
      table->height = (int) json_object_get_int_member (object, "height");
      table->width = (int) json_object_get_int_member (object, "width");
      table->threads = (int) json_object_get_int_member (object, "threads");
      table->device = g_strdup (json_object_get_string_member (object, "device"));
    }
  return TRUE;
}

/* The lines of a row as they are given to its process. (transfer full) */
static char **
row_arguments (const RnBenchRow *row, const RnBenchTableOptions *options)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  g_strv_builder_addv (builder, (const char **) options->arguments);
  for (guint i = 0; i < row->lines->len; i++)
    {
      g_autofree char *set = g_strconcat ("--set=", (const char *) row->lines->pdata[i], NULL);
      g_strv_builder_add (builder, set);
    }
  return g_strv_builder_end (builder);
}

/* 0, or the exit code. */
static int
run_row (Progress *progress, RnBenchRow *row)
{
  gboolean is_base = row == progress->table->rows->pdata[0];
  g_auto (GStrv) arguments = row_arguments (row, progress->options);
  g_auto (RnBenchChild) child = { 0 };
  g_autoptr (GError) error = NULL;

  show_progress (progress, row);
  progress->done++;
  if (!rn_bench_child_run (arguments, &child, &error))
    {
      clear_progress ();
      g_printerr ("%s: %s\n", g_get_prgname (), error->message);
      return 1;
    }
  if (child.signal != 0)
    {
      clear_progress ();
      return 128 + child.signal;
    }
  if (child.code == 0 && read_output (progress->table, row, child.out->str))
    return 0;
  g_autofree char *message = last_message (&child);
  if (!is_base && row->seconds->len == 0)
    {
      row->refusal = g_steal_pointer (&message);
      return 0;
    }
  clear_progress ();
  g_printerr ("%s: %s\n", g_get_prgname (), message);
  return child.code > 0 && child.code <= 128 ? child.code : 1;
}

/* The budget is a part of what base needs, which has run by then. */
static void
set_budget (RnBenchTable *table, guint64 budget_bytes)
{
  const RnBenchRow *base = table->rows->pdata[0];
  guint64 bytes = budget_bytes > 0 ? budget_bytes : DEFAULT_BUDGET ((guint64) base->result.planned_bytes);

  for (guint i = 0; i < table->rows->len; i++)
    {
      RnBenchRow *row = table->rows->pdata[i];
      if (!row->is_budget)
        continue;
      /* In bytes where whole MiB would be another budget. */
      g_ptr_array_add (row->lines,
                       budget_bytes > 0 && bytes % MIB != 0
                           ? g_strdup_printf ("memory.budget=%" G_GUINT64_FORMAT, bytes)
                           : g_strdup_printf ("memory.budget=%" G_GUINT64_FORMAT "MiB", bytes / MIB));
    }
}

int
rn_bench_table_run (RnBenchTable *table, const RnBenchTableOptions *options)
{
  int n = (int) table->rows->len, code = 0;
  Progress progress = { table, options, 0, n * options->repeat, g_get_monotonic_time () };

  table->repeat = options->repeat;
  rn_signals_install ();
  for (int repetition = 0; repetition < options->repeat && code == 0; repetition++)
    for (int i = 0; i < n && code == 0; i++)
      {
        RnBenchRow *row = table->rows->pdata[(repetition + i) % n];
        if (row->refusal != NULL)
          progress.total--;
        else
          code = run_row (&progress, row);
        if (repetition == 0 && i == 0 && code == 0)
          set_budget (table, options->budget_bytes);
      }
  rn_signals_remove ();
  if (code != 0)
    return code;
  clear_progress ();
  rn_bench_table_finish (table);
  return 0;
}
