#include "config.h"

#include "runner/schedule-preview.h"

#include "runner/auto-scale-lr.h"
#include "runner/base/error.h"
#include "runner/runner.h"

#define MAX_ITERS 10000000
#define MAX_POINTS 4000 /* more than a picture has columns */

/* A task that computes nothing and writes down each step. */
typedef struct
{
  RnTask task; /* first */
  RnBatch batch;
  RnSchedulePreview *preview;
  gint64 n_batches; /* that were handed out */
  gint64 stride;    /* iterations between two points */
  RnPreviewStep last;
  gboolean is_last_kept;
} DryTask;

static void
seek (RnTask *task, RnTaskData data, guint64 epoch, gint64 first_batch)
{
}

static const RnBatch *
next (RnTask *task, RnTaskData data, GError **error)
{
  DryTask *dry = (DryTask *) task;
  dry->n_batches++;
  return &dry->batch;
}

static void
release (RnTask *task, RnTaskData data, const RnBatch *batch)
{
}

static gboolean
forward (RnTask *task, const RnBatch *batch, RnMode mode, float grad_scale, GError **error)
{
  return TRUE;
}

static double
loss (RnTask *task, const char *name)
{
  return 0;
}

static gboolean
do_nothing (RnTask *task, GError **error)
{
  return TRUE;
}

static gboolean
grad_stats (RnTask *task, double norm_type, RnGradStats *stats, GError **error)
{
  *stats = (RnGradStats){ 0, 0 };
  return TRUE;
}

static void
keep_last (DryTask *dry)
{
  if (!dry->is_last_kept)
    g_array_append_val (dry->preview->steps, dry->last);
  dry->is_last_kept = TRUE;
}

static gboolean
update (RnTask *task, const RnTaskUpdate *step, GError **error)
{
  DryTask *dry = (DryTask *) task;
  const GArray *steps = dry->preview->steps;

  dry->last = (RnPreviewStep){ dry->n_batches - 1, step->lrs[0], step->momentum };
  dry->is_last_kept = FALSE;
  if (steps->len == 0
      || dry->last.iter - g_array_index (steps, RnPreviewStep, steps->len - 1).iter >= dry->stride)
    keep_last (dry);
  return TRUE;
}

static gboolean
settle_update (RnTask *task, RnGradStats *stats, gboolean *is_done, GError **error)
{
  *is_done = TRUE;
  return grad_stats (task, 2, stats, error);
}

static char **
unreached_params (RnTask *task)
{
  return g_new0 (char *, 1);
}

static gboolean
run (DryTask *dry, const RnRunnerOptions *options, GError **error)
{
  g_autoptr (RnRunner) runner = rn_runner_new (&dry->task, options);
  gint64 max_iters = rn_runner_max_iters (runner);

  dry->preview->max_iters = max_iters;
  dry->stride = max_iters / MAX_POINTS + 1;
  if (max_iters > MAX_ITERS)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                   "a run of %" G_GINT64_FORMAT " iterations is too long to look at; at most %d", max_iters,
                   MAX_ITERS);
      return FALSE;
    }
  if (!rn_runner_init (runner, error) || !rn_runner_run (runner, error))
    return FALSE;
  keep_last (dry);
  return TRUE;
}

static gboolean
make_preview (RnSchedulePreview *preview, const RnNode *root, const RnRunConfig *config, gint64 batch_size,
              GError **error)
{
  static const RnTaskVtbl vtbl = { .seek = seek,
                                   .next = next,
                                   .release = release,
                                   .forward = forward,
                                   .loss = loss,
                                   .backward = do_nothing,
                                   .zero_grads = do_nothing,
                                   .grad_stats = grad_stats,
                                   .update = update,
                                   .settle_update = settle_update,
                                   .unreached_params = unreached_params };
  static const char *const no_names[] = { NULL };
  static const double mult = 1;
  DryTask dry = { .task = { .vtbl = &vtbl,
                            .epoch_length = preview->epoch_length,
                            .batch_size = (int) batch_size,
                            .class_names = no_names,
                            .loss_names = no_names,
                            .device = "none",
                            .lr_mults = &mult,
                            .n_groups = 1 },
                  .batch = { .n = (int) batch_size, .avg_factor = 1 },
                  .preview = preview,
                  .is_last_kept = TRUE };
  RnRunnerOptions options = { .work_dir = config->work_dir, .config_text = "" };
  const RnNode *optimizer_node = rn_run_config_need (root, "optimizer", error);
  const RnNode *runner_node = optimizer_node != NULL ? rn_run_config_need (root, "runner", error) : NULL;
  g_autoptr (RnOptimizer) optimizer = runner_node != NULL ? rn_optimizer_new (optimizer_node, error) : NULL;

  if (optimizer == NULL || !rn_runner_options_parse (runner_node, &options, error))
    return FALSE;
  preview->is_by_epoch = options.is_by_epoch;
  g_autoptr (RnHookList) hooks = rn_schedule_hooks_new (config, error);
  g_autoptr (RnWants) wants = rn_wants_new ();
  if (hooks == NULL || !rn_auto_scale_lr (config, batch_size, optimizer, error)
      || !rn_hook_list_prepare (hooks, wants, error))
    return FALSE;
  options.optimizer = optimizer;
  options.hooks = g_steal_pointer (&hooks);
  options.log_interval = 1;
  return run (&dry, &options, error);
}

RnSchedulePreview *
rn_schedule_preview_new (const RnNode *root, const RnRunConfig *config, gint64 batch_size,
                         gint64 epoch_length, GError **error)
{
  g_autoptr (RnSchedulePreview) preview = g_new0 (RnSchedulePreview, 1);

  preview->epoch_length = epoch_length;
  preview->steps = g_array_new (FALSE, FALSE, sizeof (RnPreviewStep));
  return make_preview (preview, root, config, batch_size, error) ? g_steal_pointer (&preview) : NULL;
}

void
rn_schedule_preview_free (RnSchedulePreview *preview)
{
  if (preview == NULL)
    return;
  g_array_unref (preview->steps);
  g_free (preview);
}
