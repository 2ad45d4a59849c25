/* engine-api.c: engine.h: the handles that the built-in hooks turn. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/runner-private.h"

#include "runner/base/log.h"
#include "runner/config/schema.h"
#include "runner/crc32c.h"
#include "runner/plugin.h"
#include "runner/process-memory.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>

/* ---- Optimizer ---- */

double
rn_runner_base_lr (const RnRunner *runner)
{
  return rn_optimizer_lr (runner->optimizer);
}

double
rn_runner_base_momentum (const RnRunner *runner)
{
  return rn_optimizer_momentum (runner->optimizer);
}

guint
rn_runner_n_groups (const RnRunner *runner)
{
  return runner->task->n_groups;
}

double
rn_runner_group_base_lr (const RnRunner *runner, guint group)
{
  g_return_val_if_fail (group < runner->task->n_groups, NAN);
  return rn_optimizer_lr (runner->optimizer) * runner->task->lr_mults[group];
}

double
rn_runner_group_lr (const RnRunner *runner, guint group)
{
  g_return_val_if_fail (group < runner->task->n_groups, NAN);
  return runner->lrs[group];
}

void
rn_runner_set_group_lr (RnRunner *runner, guint group, double lr)
{
  g_return_if_fail (group < runner->task->n_groups);
  runner->lrs[group] = lr;
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
rn_runner_has_part_of_step (const RnRunner *runner)
{
  return runner->has_part_of_step;
}

char **
rn_runner_unreached_params (const RnRunner *runner)
{
  return runner->task->vtbl->unreached_params (runner->task);
}

gboolean
rn_runner_has_live_batch_norm (const RnRunner *runner)
{
  return runner->task->has_live_batch_norm;
}

gint64
rn_runner_schedule_now (const RnRunner *runner)
{
  return runner->total_steps > 0 ? rn_runner_opt_step (runner) : runner->now.iter;
}

gint64
rn_runner_schedule_total (const RnRunner *runner)
{
  return runner->total_steps > 0 ? runner->total_steps : runner->max_iters;
}

void
rn_runner_set_schedule (RnRunner *runner, gint64 total_steps)
{
  g_return_if_fail (total_steps > 0);
  runner->total_steps = total_steps;
}

/* ---- Running mean of the weights ---- */

gboolean
rn_runner_update_ema (RnRunner *runner, double momentum, gboolean with_buffers, GError **error)
{
  return runner->task->vtbl->update_ema (runner->task, momentum, with_buffers, error);
}

gboolean
rn_runner_has_loaded_ema (const RnRunner *runner)
{
  return runner->has_loaded_ema;
}

void
rn_runner_use_ema (RnRunner *runner, gboolean use)
{
  runner->uses_ema = use;
}

/* ---- Configuration ---- */

gboolean
rn_node_read (const RnNode *map, const RnKeySpec *keys, gpointer instance, GError **error)
{
  return rn_keys_parse (keys, map, instance, NULL, error);
}

/* ---- Looking inside ---- */

gboolean
rn_runner_find_non_finite (RnRunner *runner, char **where, GError **error)
{
  g_return_val_if_fail (runner->batch != NULL && !runner->is_backward_done, FALSE);
  return runner->task->vtbl->find_non_finite (runner->task, runner->batch, where, error);
}

guint64
rn_runner_empty_cache (RnRunner *runner)
{
  return runner->task->vtbl->empty_cache (runner->task);
}

/* ---- Evaluation ---- */

gboolean
rn_runner_can_evaluate (const RnRunner *runner)
{
  return runner->task->vtbl->evaluate != NULL;
}

gboolean
rn_runner_evaluate (RnRunner *runner, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  RnTask *task = runner->task;

  g_return_val_if_fail (rn_runner_can_evaluate (runner), FALSE);
  rn_runner_settle_step (runner);
  if (runner->late_fault != NULL) /* the run is over; the loop says why */
    return FALSE;
  if (!runner->uses_ema || runner->is_ema_in_place)
    return task->vtbl->evaluate (task, options, result, error);
  if (!task->vtbl->swap_ema (task, error))
    return FALSE;
  gboolean is_ok = task->vtbl->evaluate (task, options, result, error);
  /* Back in any case; the first failure is the one to tell. */
  return task->vtbl->swap_ema (task, is_ok ? error : NULL) && is_ok;
}

int
rn_runner_num_classes (const RnRunner *runner)
{
  return runner->task->num_classes;
}

/* ---- Checkpoints and log ---- */

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

void
rn_runner_set_checkpoint_dir (RnRunner *runner, const char *dir)
{
  g_free (runner->checkpoint_dir);
  runner->checkpoint_dir = g_strdup (dir);
}

gboolean
rn_runner_can_save (const RnRunner *runner)
{
  rn_runner_settle_step (runner);
  return runner->n_bad_losses == 0;
}

void
rn_runner_set_keep_best (RnRunner *runner, guint n)
{
  runner->keep_best = n;
}

guint
rn_runner_keep_best (const RnRunner *runner)
{
  return runner->keep_best;
}

char *
rn_runner_make_out_dir (const RnRunner *runner, const char *out_dir, const RnNode *config, GError **error)
{
  g_autofree char *name = g_path_get_basename (runner->work_dir);
  g_autofree char *dir = g_build_filename (out_dir, name, NULL);

  if (g_mkdir_with_parents (dir, 0777) == 0)
    return g_steal_pointer (&dir);
  rn_node_error (config, error, "out_dir: %s: %s", dir, g_strerror (errno));
  return NULL;
}

void
rn_runner_log_latest (RnRunner *runner, const char *name, double value)
{
  rn_log_buffer_push_latest (rn_runner_log_to_write (runner), name, rn_runner_log_iter (runner), value);
}

gboolean
rn_runner_is_log_latest (const RnRunner *runner, const char *name)
{
  return rn_log_buffer_is_latest (rn_runner_log_to_read (runner), name);
}

gint64
rn_runner_log_interval (const RnRunner *runner)
{
  return runner->log_interval;
}

void
rn_runner_reserve_log (RnRunner *runner, gint64 n_iters)
{
  rn_log_buffer_reserve (rn_runner_log_to_write (runner), n_iters);
}

void
rn_runner_foreach_log (const RnRunner *runner, gint64 n_iters, RnLogFunc func, gpointer user_data)
{
  if (runner->is_validating)
    {
      rn_log_means_foreach (runner->val_log, func, user_data);
      return;
    }
  rn_log_buffer_foreach (rn_runner_log_to_read (runner), runner->now.iter + 1,
                         rn_runner_log_span (runner, n_iters), func, user_data);
}

void
rn_runner_times (const RnRunner *runner, RnRunTimes *times)
{
  const RnTimes *us = &runner->times;

  rn_runner_settle (runner); /* the forward pass is not over before */
  *times = (RnRunTimes){ .data = (double) us->data / 1e6,
                         .forward = (double) us->forward / 1e6,
                         .backward = (double) us->backward / 1e6,
                         .step = (double) us->step / 1e6,
                         .hooks = (double) (us->hooks + rn_times_running_hooks (us)) / 1e6 };
}

RnRecord *
rn_runner_describe (const RnRunner *runner)
{
  RnRecord *record = rn_record_new ();
  g_autofree char *classes = g_strjoinv (", ", (char **) runner->task->class_names);
  g_autofree char *plugins = rn_plugins_describe ();

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
  if (plugins != NULL)
    rn_record_set_string (record, "plugins", plugins);
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
rn_runner_set_starts_with_evaluation (RnRunner *runner)
{
  runner->starts_with_evaluation = TRUE;
}

gboolean
rn_runner_starts_with_evaluation (const RnRunner *runner)
{
  return runner->starts_with_evaluation;
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

const char *const *
rn_runner_score_names (const RnRunner *runner)
{
  return (const char *const *) runner->score_names->pdata;
}

/* ---- Where the run came from, and the machine ---- */

const char *
rn_runner_resumed_from (const RnRunner *runner)
{
  return runner->resumed_from;
}

double
rn_runner_grad_factor (const RnRunner *runner)
{
  return (double) runner->grad_scale * runner->loss_weight;
}

guint32
rn_checksum (gconstpointer data, gsize size)
{
  return rn_crc32c (0, data, size);
}
