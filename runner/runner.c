#include "config.h"

#include "runner/runner-private.h"

#include "runner/base/error.h"
#include "runner/config/schema.h"

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
  runner->workflow = options->workflow != NULL ? g_array_copy ((GArray *) options->workflow)
                                               : rn_workflow_parse (NULL, NULL);
  runner->log_buffer = rn_log_buffer_new ();
  runner->val_log = rn_log_means_new ();
  runner->log_interval = options->log_interval;
  runner->allow_batch_change = options->allow_batch_change;
  runner->grad_scale = 1;
  runner->loss_weight = runner->grad_multiplier = 1;
  runner->lrs = g_new (double, task->n_groups);
  rn_runner_set_lr (runner, rn_optimizer_lr (options->optimizer));
  runner->momentum = rn_optimizer_momentum (options->optimizer);
  runner->pending = g_ptr_array_new_with_free_func (pending_free);
  runner->kept = g_ptr_array_new_with_free_func (g_free);
  runner->history = g_ptr_array_new_with_free_func (g_free);
  runner->changes = g_ptr_array_new_with_free_func (g_free);
  runner->saved_at = (RnCounters){ .iter = -1 };
  runner->keep_best = 1;
  runner->score_names = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (runner->score_names, NULL);
  return runner;
}

void
rn_runner_free (RnRunner *runner)
{
  if (runner == NULL)
    return;
  rn_hook_list_free (runner->hooks);
  rn_log_buffer_free (runner->log_buffer);
  g_clear_error (&runner->late_fault);
  rn_log_means_free (runner->val_log);
  g_array_unref (runner->workflow);
  rn_record_free (runner->scores);
  g_ptr_array_unref (runner->pending);
  g_ptr_array_unref (runner->kept);
  g_ptr_array_unref (runner->history);
  g_ptr_array_unref (runner->changes);
  g_ptr_array_unref (runner->score_names);
  g_free (runner->work_dir);
  g_free (runner->config_text);
  g_free (runner->timestamp);
  g_free (runner->checkpoint_dir);
  g_free (runner->resumed_from);
  g_free (runner->lrs);
  g_free (runner);
}

gboolean
rn_runner_init (RnRunner *runner, GError **error)
{
  if (rn_workflow_has_val (runner->workflow) && runner->task->val_length == 0)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY,
                   "the workflow has val, and there are no validation data; what works: data.val, or "
                   "`workflow: [[train, 1]]`");
      return FALSE;
    }
  return rn_hook_list_init (runner->hooks, runner, error);
}

int
rn_runner_signal (const RnRunner *runner)
{
  return runner->signal;
}

char *
rn_runner_describe_workflow (const RnRunner *runner)
{
  return rn_workflow_describe (runner->workflow, runner->is_by_epoch);
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
