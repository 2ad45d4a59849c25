#include "config.h"

#include "runner/runner-private.h"

#include "runner/base/error.h"
#include "runner/base/log.h"
#include "runner/config/schema.h"
#include "runner/process-memory.h"

#include <string.h>

typedef struct
{
  int type;
  gint64 max_epochs, max_iters;
} RunnerConfig;

enum
{
  EPOCH_BASED,
  ITER_BASED,
};

static const char *const type_names[] = { "EpochBasedRunner", "IterBasedRunner", NULL };

static const RnKeySpec runner_keys[] = {
  RN_KEY (RunnerConfig, max_epochs, RN_KEY_INT, "null", "passes of the data (EpochBasedRunner)", .min = 1,
          .max = 1e9, .flags = RN_KEY_NULLABLE),
  RN_KEY (RunnerConfig, max_iters, RN_KEY_INT, "null",
          "iterations (IterBasedRunner); EpochBasedRunner: ends after so many, if that comes first", .min = 1,
          .max = 1e12, .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

gboolean
rn_runner_options_parse (const RnNode *config, RnRunnerOptions *options, GError **error)
{
  RunnerConfig parsed = { 0 };
  const RnNode *type = rn_node_get (config, "type");
  const char *name = type != NULL && rn_node_kind (type) == RN_NODE_STRING ? rn_node_as_string (type) : NULL;

  if (type != NULL && (name == NULL || !g_strv_contains (type_names, name)))
    return rn_node_error (
        type, error,
        "no such runner; there are EpochBasedRunner (max_epochs) and IterBasedRunner (max_iters)");
  if (!rn_keys_parse (runner_keys, config, &parsed, NULL, error))
    return FALSE;

  options->is_by_epoch = name == NULL || strcmp (name, type_names[EPOCH_BASED]) == 0;
  if (options->is_by_epoch && parsed.max_epochs == RN_NULL_INT)
    return rn_node_error (config, error, "EpochBasedRunner needs max_epochs");
  if (!options->is_by_epoch && (parsed.max_iters == RN_NULL_INT || parsed.max_epochs != RN_NULL_INT))
    return rn_node_error (config, error, "IterBasedRunner needs max_iters, and no max_epochs");
  options->max_epochs = options->is_by_epoch ? parsed.max_epochs : G_MAXINT64;
  options->max_iters = parsed.max_iters != RN_NULL_INT ? parsed.max_iters : G_MAXINT64;
  return TRUE;
}

static void
pending_free (gpointer data)
{
  RnPendingCheckpoint *pending = data;
  g_free ((char *) pending->request.dir);
  g_free ((char *) pending->request.name);
  g_free ((char *) pending->request.replaces);
  g_free (pending);
}

RnRunner *
rn_runner_new (RnTask *task, const RnRunnerOptions *options)
{
  RnRunner *runner = g_new0 (RnRunner, 1);
  g_autoptr (GDateTime) start = g_date_time_new_now_local ();

  runner->task = task;
  runner->is_by_epoch = options->is_by_epoch;
  gint64 iters_of_epochs;
  if (__builtin_mul_overflow (options->max_epochs, task->epoch_length, &iters_of_epochs))
    iters_of_epochs = G_MAXINT64;
  runner->max_iters = MIN (options->max_iters, iters_of_epochs);
  runner->max_epochs = (runner->max_iters - 1) / task->epoch_length + 1;
  runner->work_dir = g_strdup (options->work_dir);
  runner->config_text = g_strdup (options->config_text);
  runner->timestamp = options->timestamp != NULL ? g_strdup (options->timestamp)
                                                 : g_date_time_format (start, "%Y%m%d_%H%M%S");
  runner->optimizer = options->optimizer;
  runner->hooks = options->hooks;
  runner->log = rn_log_buffer_new ();
  runner->log_interval = options->log_interval;
  runner->grad_scale = 1;
  runner->lr = rn_optimizer_lr (options->optimizer);
  runner->pending = g_ptr_array_new_with_free_func (pending_free);
  runner->kept = g_ptr_array_new_with_free_func (g_free);
  runner->saved_at = (RnCounters){ -1, -1, -1, -1 };
  return runner;
}

void
rn_runner_free (RnRunner *runner)
{
  if (runner == NULL)
    return;
  rn_hook_list_free (runner->hooks);
  rn_log_buffer_free (runner->log);
  rn_record_free (runner->scores);
  g_ptr_array_unref (runner->pending);
  g_ptr_array_unref (runner->kept);
  g_free (runner->work_dir);
  g_free (runner->config_text);
  g_free (runner->timestamp);
  g_free (runner);
}

gboolean
rn_runner_init (RnRunner *runner, GError **error)
{
  return rn_hook_list_init (runner->hooks, runner, error);
}

int
rn_runner_signal (const RnRunner *runner)
{
  return runner->signal;
}

char *
rn_runner_describe_hooks (const RnRunner *runner)
{
  g_autoptr (GString) text = g_string_new (NULL);

  for (int stage = 0; stage < RN_STAGE_COUNT; stage++)
    {
      g_autofree char *hooks = rn_hook_list_describe (runner->hooks, (RnStage) stage);
      if (hooks != NULL)
        g_string_append_printf (text, "%s  %-18s %s", text->len > 0 ? "\n" : "",
                                rn_stage_name ((RnStage) stage), hooks);
    }
  return g_strdup (text->str);
}

/* ---- hook.h ---- */

gint64
rn_runner_iter (const RnRunner *runner)
{
  return runner->now.iter;
}

gint64
rn_runner_epoch (const RnRunner *runner)
{
  return runner->now.epoch;
}

gint64
rn_runner_inner_iter (const RnRunner *runner)
{
  return runner->now.inner_iter;
}

gint64
rn_runner_opt_step (const RnRunner *runner)
{
  return runner->now.opt_step;
}

gint64
rn_runner_max_iters (const RnRunner *runner)
{
  return runner->max_iters;
}

gint64
rn_runner_max_epochs (const RnRunner *runner)
{
  return runner->max_epochs;
}

gint64
rn_runner_epoch_length (const RnRunner *runner)
{
  return runner->task->epoch_length;
}

gboolean
rn_runner_is_by_epoch (const RnRunner *runner)
{
  return runner->is_by_epoch;
}

gboolean
rn_runner_every_n_epochs (const RnRunner *runner, gint64 n)
{
  return n > 0 && (runner->now.epoch + 1) % n == 0;
}

gboolean
rn_runner_every_n_iters (const RnRunner *runner, gint64 n)
{
  return n > 0 && (runner->now.iter + 1) % n == 0;
}

gboolean
rn_runner_every_n_inner_iters (const RnRunner *runner, gint64 n)
{
  return n > 0 && (runner->now.inner_iter + 1) % n == 0;
}

gboolean
rn_runner_is_end_of_epoch (const RnRunner *runner)
{
  return runner->now.inner_iter + 1 == runner->task->epoch_length;
}

gboolean
rn_runner_is_last_iter (const RnRunner *runner)
{
  return runner->now.iter + 1 == runner->max_iters;
}

gboolean
rn_runner_is_last_epoch (const RnRunner *runner)
{
  return runner->now.epoch + 1 == runner->max_epochs;
}

const char *
rn_runner_work_dir (const RnRunner *runner)
{
  return runner->work_dir;
}

const char *const *
rn_runner_class_names (const RnRunner *runner)
{
  return runner->task->class_names;
}

const RnBatch *
rn_runner_batch (const RnRunner *runner)
{
  return runner->batch;
}

double
rn_runner_loss (const RnRunner *runner, const char *name)
{
  return runner->task->vtbl->loss (runner->task, name);
}

void
rn_runner_log (RnRunner *runner, const char *name, double value)
{
  rn_log_buffer_push (runner->log, name, runner->now.iter, value);
}

void
rn_runner_stop (RnRunner *runner)
{
  runner->is_stopped = TRUE;
}

/* ---- engine.h: optimizer ---- */

double
rn_runner_base_lr (const RnRunner *runner)
{
  return rn_optimizer_lr (runner->optimizer);
}

void
rn_runner_set_lr (RnRunner *runner, double lr)
{
  runner->lr = lr;
}

double
rn_runner_lr (const RnRunner *runner)
{
  return runner->task->n_lr_mults > 0 ? runner->lr * (double) runner->task->lr_mults[0] : runner->lr;
}

GArray *
rn_runner_group_lrs (const RnRunner *runner)
{
  GArray *lrs = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < runner->task->n_lr_mults; i++)
    {
      double lr = runner->lr * (double) runner->task->lr_mults[i];
      g_array_append_val (lrs, lr);
    }
  return lrs;
}

void
rn_runner_set_grad_scale (RnRunner *runner, float scale)
{
  g_return_if_fail (runner->stage == RN_STAGE_BEFORE_TRAIN_ITER);
  runner->grad_scale = scale;
}

gboolean
rn_runner_zero_grads (RnRunner *runner, GError **error)
{
  return runner->task->vtbl->zero_grads (runner->task, error);
}

gboolean
rn_runner_backward (RnRunner *runner, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  if (!runner->task->vtbl->backward (runner->task, error))
    return FALSE;
  rn_runner_log (runner, "backward_time", (double) (g_get_monotonic_time () - start) / 1e6);
  return TRUE;
}

gboolean
rn_runner_grad_norm (RnRunner *runner, double *norm, GError **error)
{
  return runner->task->vtbl->grad_norm (runner->task, norm, error);
}

gboolean
rn_runner_step (RnRunner *runner, double grad_multiplier, GError **error)
{
  gint64 start = g_get_monotonic_time ();
  RnUpdate update = {
    .lr = runner->lr,
    .momentum = rn_optimizer_momentum (runner->optimizer),
    .weight_decay = rn_optimizer_weight_decay (runner->optimizer),
    .grad_multiplier = grad_multiplier,
    .first = !runner->has_momentum,
  };
  if (!runner->task->vtbl->update (runner->task, &update, error))
    return FALSE;
  runner->has_momentum = TRUE;
  runner->now.opt_step++;
  rn_runner_log (runner, "step_time", (double) (g_get_monotonic_time () - start) / 1e6);
  return TRUE;
}

/* ---- engine.h: evaluation ---- */

gboolean
rn_runner_can_evaluate (const RnRunner *runner)
{
  return runner->task->vtbl->evaluate != NULL;
}

gboolean
rn_runner_evaluate (RnRunner *runner, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  g_return_val_if_fail (rn_runner_can_evaluate (runner), FALSE);
  return runner->task->vtbl->evaluate (runner->task, options, result, error);
}

int
rn_runner_num_classes (const RnRunner *runner)
{
  return runner->task->num_classes;
}

/* ---- engine.h: checkpoints and log ---- */

void
rn_runner_request_checkpoint (RnRunner *runner, RnHook *hook, const RnCheckpointRequest *request)
{
  RnPendingCheckpoint *pending = g_new0 (RnPendingCheckpoint, 1);

  pending->hook = hook;
  pending->stage = runner->stage;
  pending->request = *request;
  pending->request.dir = g_strdup (request->dir);
  pending->request.name = g_strdup (request->name);
  pending->request.replaces = g_strdup (request->replaces);
  g_ptr_array_add (runner->pending, pending);
}

gint64
rn_runner_log_interval (const RnRunner *runner)
{
  return runner->log_interval;
}

void
rn_runner_reserve_log (RnRunner *runner, gint64 n_iters)
{
  rn_log_buffer_reserve (runner->log, n_iters);
}

void
rn_runner_foreach_log (const RnRunner *runner, gint64 n_iters, RnLogFunc func, gpointer user_data)
{
  /* The running iteration counts. */
  rn_log_buffer_foreach (runner->log, runner->now.iter + 1, n_iters, func, user_data);
}

RnRecord *
rn_runner_describe (const RnRunner *runner)
{
  RnRecord *record = rn_record_new ();
  g_autofree char *classes = g_strjoinv (", ", (char **) runner->task->class_names);

  rn_record_set_string (record, "mode", "meta");
  rn_record_set_int (record, "schema", 1);
  rn_record_set_string (record, "version", PACKAGE_VERSION);
  rn_record_set_string (record, "started", runner->timestamp);
  rn_record_set_string (record, "device", runner->task->device);
  rn_record_set_int (record, "seed", (gint64) runner->task->seed);
  rn_record_set_int (record, "iter", runner->now.iter); /* more than 0: a resumed run */
  rn_record_set_int (record, "max_iters", runner->max_iters);
  rn_record_set_int (record, "epoch_length", runner->task->epoch_length);
  rn_record_set_int (record, "batch_size", runner->task->batch_size);
  rn_record_set_string (record, "classes", classes);
  rn_record_set_string (record, "config", runner->config_text);
  return record;
}

const char *
rn_runner_timestamp (const RnRunner *runner)
{
  return runner->timestamp;
}

void
rn_runner_memory (const RnRunner *runner, guint64 *current, guint64 *peak)
{
  rn_process_memory (current, peak);
}

void
rn_runner_show_status (RnRunner *runner, const char *text)
{
  rn_log_set_status (text);
}

void
rn_runner_put_scores (RnRunner *runner, RnRecord *scores)
{
  rn_record_free (runner->scores);
  runner->scores = scores;
}

const RnRecord *
rn_runner_scores (const RnRunner *runner)
{
  return runner->scores;
}
