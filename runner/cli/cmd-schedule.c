/* cmd-schedule.c: `runner schedule`: learning rate and momentum of a run before it runs, in words and as a
 * picture. */
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/error.h"
#include "runner/cli/common.h"
#include "runner/draw/chart.h"
#include "runner/job.h"
#include "runner/schedule-preview.h"

#define DEFAULT_ROWS 12

typedef struct
{
  char *out;
  gint64 epoch_length;
  gint rows;
  gboolean log;
} Options;

static void
options_clear (Options *options)
{
  g_free (options->out);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Options, options_clear)

/* Batches of a pass: as asked for, or as the data has. */
static gboolean
find_epoch_length (RnJob *job, const Options *own, gint64 *length, GError **error)
{
  *length = own->epoch_length;
  if (*length > 0)
    return TRUE;
  if (!rn_job_open_data (job, RN_SPLIT_TRAIN, error))
    {
      g_prefix_error (error, "how many iterations has an epoch? --epoch-length N says it without the data. ");
      return FALSE;
    }
  *length = rn_sampler_n_batches (job->samplers[RN_SPLIT_TRAIN]);
  return TRUE;
}

static RnSchedulePreview *
preview_config (const RnOptions *options, const char *path, const Options *own, GError **error)
{
  RnOptions one = *options;
  gint64 epoch_length;

  one.config_path = (char *) path;
  RnNode *root = rn_options_load (&one, error);
  g_autoptr (RnJob) job = root != NULL ? rn_job_new_for_plan (root, error) : NULL;
  if (job == NULL || !find_epoch_length (job, own, &epoch_length, error))
    return NULL;
  return rn_schedule_preview_new (job->root, &job->config, job->data.samples_per_gpu, epoch_length, error);
}

static void
print_preview (const RnSchedulePreview *preview, const char *path, gint n_rows)
{
  guint n = preview->steps->len, n_shown = MIN (n, (guint) n_rows);

  g_print ("%s: %" G_GINT64_FORMAT " iterations, %" G_GINT64_FORMAT " in an epoch\n", path,
           preview->max_iters, preview->epoch_length);
  g_print ("%10s %9s %12s %9s\n", "iteration", "epoch", "lr", "momentum");
  for (guint row = 0; row < n_shown; row++)
    {
      /* The first and the last, and as many in between. */
      guint i = n_shown > 1 ? (guint) ((guint64) row * (n - 1) / (n_shown - 1)) : 0;
      const RnPreviewStep *step = &g_array_index (preview->steps, RnPreviewStep, i);
      g_print ("%10" G_GINT64_FORMAT " %9.2f %12.4e %9.4f\n", step->iter + 1,
               (double) step->iter / (double) preview->epoch_length, step->lr, step->momentum);
    }
}

static void
add_curve (RnChart *chart, const RnSchedulePreview *preview, gsize offset, int color)
{
  guint n = preview->steps->len;
  g_autofree double *x = g_new (double, n), *y = g_new (double, n);

  for (guint i = 0; i < n; i++)
    {
      const RnPreviewStep *step = &g_array_index (preview->steps, RnPreviewStep, i);
      x[i] = (double) step->iter / (preview->is_by_epoch ? (double) preview->epoch_length : 1);
      y[i] = G_STRUCT_MEMBER (double, step, offset);
    }
  rn_chart_curve (chart, x, y, n, color, RN_CURVE_SOLID, NULL);
}

static gboolean
is_momentum_constant (const RnSchedulePreview *preview)
{
  const RnPreviewStep *steps = (const RnPreviewStep *) (gconstpointer) preview->steps->data;

  for (guint i = 1; i < preview->steps->len; i++)
    if (steps[i].momentum != steps[0].momentum)
      return FALSE;
  return TRUE;
}

/* A panel for each configuration, and one for its momentum where that changes. */
static void
add_panels (RnChart *chart, const RnSchedulePreview *preview, const char *path, gboolean log)
{
  g_autofree char *base = g_path_get_basename (path);
  g_autofree char *name = rn_printable (base, FALSE);
  g_autofree char *momentum_title = g_strconcat (name, ": momentum", NULL);
  RnPanelOptions options = { .title = name,
                             .x_label = preview->is_by_epoch ? "epoch" : "iteration",
                             .y_scale = log ? RN_SCALE_LOG : RN_SCALE_LINEAR };

  rn_chart_panel (chart, &options);
  add_curve (chart, preview, G_STRUCT_OFFSET (RnPreviewStep, lr), 0);
  if (is_momentum_constant (preview))
    return;
  options.title = momentum_title;
  options.y_scale = RN_SCALE_LINEAR;
  rn_chart_panel (chart, &options);
  add_curve (chart, preview, G_STRUCT_OFFSET (RnPreviewStep, momentum), 1);
}

static gboolean
run (const RnOptions *options, const Options *own, GError **error)
{
  g_autoptr (RnChart) chart = rn_chart_new ("learning rate");
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();

  g_ptr_array_add (paths, options->config_path);
  for (char **path = options->arguments; *path != NULL; path++)
    g_ptr_array_add (paths, *path);
  for (guint i = 0; i < paths->len; i++)
    {
      const char *path = g_ptr_array_index (paths, i);
      g_autoptr (RnSchedulePreview) preview = preview_config (options, path, own, error);
      if (preview == NULL)
        return FALSE;
      print_preview (preview, path, own->rows);
      add_panels (chart, preview, path, own->log);
    }
  if (own->out == NULL)
    return TRUE;
  if (!rn_chart_write_png (chart, own->out, error))
    return FALSE;
  g_print ("%s: written\n", own->out);
  return TRUE;
}

int
rn_cmd_schedule (int argc, char **argv)
{
  g_auto (Options) own = { .rows = DEFAULT_ROWS };
  const GOptionEntry entries[] = {
    { "out", 'o', 0, G_OPTION_ARG_FILENAME, &own.out, "Draw it, a panel for each CONFIG", "FILE.png" },
    { "log", 0, 0, G_OPTION_ARG_NONE, &own.log, "Learning rates on a logarithmic axis", NULL },
    { "epoch-length", 0, 0, G_OPTION_ARG_INT64, &own.epoch_length,
      "Iterations of an epoch (default: as the training data has)", "N" },
    { "rows", 'n', 0, G_OPTION_ARG_INT, &own.rows, "Rows to print (default 12)", "N" },
    { NULL },
  };
  const RnUsage usage = {
    .arguments = "CONFIG...",
    .summary = "Says and draws what learning rate and momentum every step of a run will have, with warm-up, "
               "accumulation and auto_scale_lr.",
    .examples = "  runner schedule configs/retinanet_shapes.yaml -o schedule.png\n"
                "  runner schedule configs/retinanet_voc.yaml --epoch-length 24827\n"
                "  runner schedule configs/retinanet_shapes.yaml --epoch-length 50 \\\n"
                "    --set 'lr_config={policy: OneCycle, max_lr: 0.1, _delete_: true}'\n",
    .n_max = -1,
    .groups = RN_OPTIONS_CONFIG,
    .entries = entries,
  };
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  if (own.epoch_length < 0 || own.rows < 1)
    {
      g_set_error (&error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "--epoch-length and -n must be numbers above 0");
      return rn_cli_fail (error);
    }
  return run (&options, &own, &error) ? 0 : rn_cli_fail (error);
}
