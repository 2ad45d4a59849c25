/* cmd-report.c: `runner report`: what became of one run or of several, in words and as a picture. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/cli/common.h"
#include "runner/report.h"

/* report.png in the work dir, or beside the log. (transfer full) */
static char *
default_out (const char *path)
{
  g_autofree char *dir = g_file_test (path, G_FILE_TEST_IS_DIR) ? g_strdup (path) : g_path_get_dirname (path);
  return g_build_filename (dir, "report.png", NULL);
}

/* (transfer full) of RnRunLog */
static GPtrArray *
read_logs (char **paths, GError **error)
{
  g_autoptr (GPtrArray) logs = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_run_log_free);

  for (char **path = paths; *path != NULL; path++)
    {
      RnRunLog *log = rn_run_log_read (*path, error);
      if (log == NULL)
        return NULL;
      g_ptr_array_add (logs, log);
    }
  return g_steal_pointer (&logs);
}

/* Says which logs are empty. An error if all are: a picture without a curve would look like a result. */
static gboolean
check_logs (const GPtrArray *logs, GError **error)
{
  guint n_empty = 0;

  for (guint i = 0; i < logs->len; i++)
    {
      const RnRunLog *log = g_ptr_array_index (logs, i);
      if (!rn_report_is_empty (log))
        continue;
      n_empty++;
      g_autofree char *path = rn_printable (log->path, FALSE);
      if (logs->len > 1)
        g_printerr ("%s: %s: no line of a training or an evaluation in its log\n", g_get_prgname (), path);
    }
  if (n_empty < logs->len)
    return TRUE;
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY,
               "%s: nothing to draw: no line of a training or an evaluation in %s",
               ((const RnRunLog *) g_ptr_array_index (logs, 0))->path,
               logs->len == 1 ? "its log" : "any log");
  return FALSE;
}

static void
print_log (const RnRunLog *log)
{
  g_autofree char *text = rn_report_text (log);

  for (guint i = 0; i < log->notes->len; i++)
    g_printerr ("%s: %s\n", g_get_prgname (), (const char *) g_ptr_array_index (log->notes, i));
  g_print ("%s", text);
}

int
rn_cmd_report (int argc, char **argv)
{
  g_autofree char *out = NULL;
  const GOptionEntry entries[] = {
    { "out", 0, 0, G_OPTION_ARG_FILENAME, &out, "The picture (report.png in the first WORK_DIR)",
      "FILE.png" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "WORK_DIR...",
    .summary = "Draws the losses, average precision, learning rate, time and memory of runs, and prints what "
               "they came to.\nWORK_DIR is what `runner train` wrote, or one *.log.json of it.",
    .examples = "  runner report work_dirs/mine\n"
                "  runner report work_dirs/mine work_dirs/mine_lr --out compare.png\n",
    .n_min = 1,
    .n_max = -1,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  g_autoptr (GPtrArray) logs = read_logs (options.arguments, &error);
  if (logs == NULL)
    return rn_cli_fail (error);
  for (guint i = 0; i < logs->len; i++)
    print_log (g_ptr_array_index (logs, i));
  if (!check_logs (logs, &error))
    return rn_cli_fail (error);
  if (out == NULL)
    out = default_out (options.arguments[0]);
  if (!rn_report_draw (logs, out, &error))
    return rn_cli_fail (error);
  g_print ("%s: written\n", out);
  return 0;
}
