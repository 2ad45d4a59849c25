/* checkpoint.c: writes checkpoints: what is in one is listed in write_metadata. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/checkpoint.h"

#include "runner/base/error.h"
#include "runner/checkpoint-list.h"
#include "runner/batches.h"
#include "runner/place.h"
#include "runner/plugin.h"
#include "runner/run-history.h"
#include "runner/record.h"
#include "runner/loop-private.h"
#include "runner/weights/weights.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

static void
set_record (RnSafetensorsWriter *writer, const char *key, const RnRecord *record)
{
  g_autoptr (GError) cause = NULL;
  g_autofree char *json = rn_record_to_state (record, &cause);

  if (json != NULL)
    rn_safetensors_writer_set_metadata (writer, key, json);
  else /* a log of very many iterations */
    g_warning ("%s IS NOT SAVED: %s", key, cause->message);
}

static void
set_counters (RnRunner *runner, RnSafetensorsWriter *writer)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  rn_record_set_int (record, "iter", runner->now.iter);
  rn_record_set_int (record, "epoch", runner->now.epoch);
  rn_record_set_int (record, "inner_iter", runner->now.inner_iter);
  rn_record_set_int (record, "opt_step", runner->now.opt_step);
  rn_place_save (runner, record);
  set_record (writer, RN_CHECKPOINT_COUNTERS, record);
}

/* Batches and augmentations are functions of (seed, epoch, position), so this is all the state that data and
 * random numbers have. */
static void
set_sampler (RnRunner *runner, RnSafetensorsWriter *writer)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  RnBatches now = rn_batches_of (runner);
  rn_record_set_string (record, "generator", "philox4x32-10");
  rn_record_set_int (record, "seed", (gint64) runner->task->seed);
  rn_record_set_int (record, "epoch", runner->now.epoch);
  rn_record_set_int (record, "next_batch", runner->now.inner_iter);
  rn_batches_save (&now, record);
  set_record (writer, RN_CHECKPOINT_SAMPLER, record);
}

/* A hook may have set them once and for all. Those that schedules set are set anew in each iteration. */
static void
set_rates (RnRunner *runner, RnSafetensorsWriter *writer)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  rn_record_set_float (record, "base_lr", rn_runner_base_lr (runner));
  rn_record_set_floats (record, "lrs", runner->lrs, runner->task->n_groups);
  rn_record_set_float (record, "base_momentum", rn_runner_base_momentum (runner));
  rn_record_set_float (record, "momentum", runner->momentum);
  set_record (writer, RN_CHECKPOINT_RATES, record);
}

static void
set_log (RnRunner *runner, RnSafetensorsWriter *writer)
{
  const RnLogBuffer *log = rn_runner_log_to_read (runner);

  for (guint i = 0; i < rn_log_buffer_size (log); i++)
    {
      g_autoptr (RnRecord) window = rn_log_buffer_save (log, i);
      g_autofree char *key = g_strdup_printf (RN_CHECKPOINT_LOG "%04u/%s", i, rn_log_buffer_name (log, i));
      set_record (writer, key, window);
    }
}

static void
write_metadata (RnRunner *runner, RnSafetensorsWriter *writer)
{
  g_autofree char *classes = g_strjoinv ("\n", (char **) runner->task->class_names);
  g_autofree char *plugins = rn_plugins_describe (), *history = rn_run_history_text (runner);

  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_FORMAT, RN_CHECKPOINT_FORMAT_NAME);
  rn_safetensors_writer_set_metadata (writer, "version", PACKAGE_VERSION);
  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_DEVICE, runner->task->device);
  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_PRECISION, rn_task_precision (runner->task));
  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_CLASSES, classes);
  if (plugins != NULL)
    rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_PLUGINS, plugins);
  if (history != NULL)
    rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_HISTORY, history);
  set_counters (runner, writer);
  set_sampler (runner, writer);
  set_rates (runner, writer);
  rn_hook_list_save (runner->hooks, writer);
  set_log (runner, writer);
  rn_safetensors_writer_set_metadata (writer, RN_CHECKPOINT_CONFIG, runner->config_text);
}

RnSafetensors *
rn_checkpoint_open (const char *path, GError **error)
{
  g_autoptr (GError) cause = NULL;
  RnSafetensors *file = rn_safetensors_open (path, &cause);

  if (file != NULL)
    return file;
  g_autoptr (RnWeights) weights = rn_weights_open (path, NULL);
  if (weights == NULL)
    g_propagate_error (error, g_steal_pointer (&cause));
  else
    g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                 "%s: a file of PyTorch has no run to go on with; what starts from its weights: --set "
                 "load_from=%s",
                 path, path);
  return NULL;
}

/* A whole file, its checksum verified. */
static RnSafetensors *
open_whole (const char *path, GError **error)
{
  g_autoptr (RnSafetensors) file = rn_checkpoint_open (path, error);
  if (file == NULL || !rn_safetensors_verify (file, error))
    return NULL;
  return g_steal_pointer (&file);
}

RnSafetensors *
rn_checkpoint_open_resumed (const char *work_dir, const char *path, GPtrArray *list, gboolean is_quiet,
                            GError **error)
{
  guint n = list->len;

  if (path != NULL)
    return open_whole (path, error);
  while (list->len > 0)
    {
      g_autofree char *first = rn_checkpoint_list_path (work_dir, g_ptr_array_index (list, 0));
      g_autoptr (GError) cause = NULL;
      RnSafetensors *file = open_whole (first, &cause);
      if (file != NULL)
        return file;
      if (!is_quiet)
        g_warning ("THIS CHECKPOINT IS LOST: %s; going back to the one before it", cause->message);
      g_ptr_array_remove_index (list, 0);
    }
  if (n > 0)
    g_set_error (
        error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
        "%s: none of the %u checkpoints in last_checkpoint is whole; without --resume the run starts anew",
        work_dir, n);
  return NULL;
}

gboolean
rn_checkpoint_compare_classes (const char *const *was, const char *const *names, GError **error)
{
  guint i = 0;

  while (was[i] != NULL && g_strcmp0 (was[i], names[i]) == 0)
    i++;
  if (was[i] == NULL && names[i] == NULL)
    return TRUE;
  g_set_error (
      error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
      "it was trained on other classes: number %u is %s in the checkpoint and %s in the data set; what "
      "works: `classes:` with the list of the training",
      i, was[i] != NULL ? was[i] : "missing", names[i] != NULL ? names[i] : "missing");
  return FALSE;
}

gboolean
rn_checkpoint_check_classes (const RnSafetensors *file, const char *const *names, GError **error)
{
  const char *stored = rn_safetensors_metadata (file, RN_CHECKPOINT_CLASSES);

  if (stored == NULL)
    return TRUE;
  g_auto (GStrv) was = g_strsplit (stored, "\n", -1);
  return rn_checkpoint_compare_classes ((const char *const *) was, names, error);
}

static gboolean
write_checkpoint (RnRunner *runner, const char *path, gboolean with_optimizer, GError **error)
{
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();

  guint what = with_optimizer ? RN_TENSORS_OPTIMIZER : 0;
  if (with_optimizer && runner->is_window_open)
    what |= RN_TENSORS_PENDING;
  if (runner->uses_ema)
    what |= RN_TENSORS_EMA;
  write_metadata (runner, writer);
  runner->task->vtbl->add_tensors (runner->task, writer, what);
  return rn_safetensors_writer_save (writer, path, error);
}

static gboolean
save_regular (RnRunner *runner, const RnCheckpointRequest *request, GError **error)
{
  g_autofree char *dir = request->dir != NULL ? g_canonicalize_filename (request->dir, NULL) : NULL;
  g_autofree char *entry =
      dir != NULL ? g_build_filename (dir, request->name, NULL) : g_strdup (request->name);
  g_autofree char *path = rn_checkpoint_list_path (runner->work_dir, entry);

  if (dir != NULL && g_mkdir_with_parents (dir, 0777) != 0)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE, "%s: %s", dir, g_strerror (errno));
      return FALSE;
    }
  if (!write_checkpoint (runner, path, request->save_optimizer, error)
      || !rn_checkpoint_list_add (runner->kept, runner->work_dir, entry, request->max_keep, error))
    return FALSE;
  runner->saved_at = runner->now;
  g_message ("saved %s", path);
  return TRUE;
}

/* Hooks choose these names. One that the list may own would be deleted with the list's oldest file. */
static gboolean
check_name (const char *name, GError **error)
{
  gboolean is_ok = *name != '.' && strchr (name, '/') == NULL && !rn_checkpoint_list_owns (name);

  for (const char *p = name; *p != '\0'; p++)
    is_ok = is_ok && !g_ascii_iscntrl (*p);
  if (is_ok)
    return TRUE;
  g_autofree char *shown = g_strescape (name, NULL);
  g_set_error (
      error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE,
      "\"%s\" is no name for a checkpoint of a hook: epoch_N, iter_N and latest are the runner's, and "
      "it has no folder and no line break in it",
      shown);
  return FALSE;
}

static gboolean
save_best (RnRunner *runner, const RnCheckpointRequest *request, GError **error)
{
  const char *dir = request->dir != NULL ? request->dir : runner->work_dir;
  g_autofree char *path = g_build_filename (dir, request->name, NULL);

  if (!check_name (request->name, error) || !write_checkpoint (runner, path, request->save_optimizer, error))
    return FALSE;
  g_message ("saved %s", path);
  if (request->replaces == NULL || strcmp (request->replaces, request->name) == 0)
    return TRUE;
  g_autofree char *old = g_build_filename (dir, request->replaces, NULL);
  if (g_unlink (old) != 0 && errno != ENOENT)
    g_warning ("%s: not deleted: %s", old, g_strerror (errno));
  return TRUE;
}

static gboolean
flush_kind (RnRunner *runner, gboolean is_best, GError **error)
{
  for (guint i = 0; i < runner->pending->len; i++)
    {
      const RnPendingCheckpoint *pending = g_ptr_array_index (runner->pending, i);
      if (pending->request.is_best != is_best)
        continue;
      if (!(is_best ? save_best : save_regular) (runner, &pending->request, error))
        {
          g_prefix_error (error, "%s: %s: ", pending->hook->desc->name, rn_stage_name (pending->stage));
          return FALSE;
        }
    }
  return TRUE;
}

/* Weights without a finite loss are worth nothing, and must not push whole checkpoints out of the list. */
static gboolean
is_lost (const RnRunner *runner)
{
  if (runner->n_bad_losses == 0)
    return FALSE;
  g_warning ("no checkpoint of iteration %" G_GINT64_FORMAT ": its loss is not finite", runner->now.iter);
  return TRUE;
}

gboolean
rn_runner_flush_checkpoints (RnRunner *runner, GError **error)
{
  if (runner->pending->len == 0)
    return TRUE;
  if (!rn_runner_check_step (runner, error))
    return FALSE;
  if (is_lost (runner))
    {
      g_ptr_array_set_size (runner->pending, 0);
      return TRUE;
    }
  gboolean is_ok = flush_kind (runner, TRUE, error);
  /* The regular ones in any case: they are what a run goes on from. */
  if (!flush_kind (runner, FALSE, is_ok ? error : NULL))
    is_ok = FALSE;
  g_ptr_array_set_size (runner->pending, 0);
  return is_ok;
}

gboolean
rn_runner_settle_checkpoints (RnRunner *runner, gint64 max_keep, GError **error)
{
  return rn_checkpoint_list_settle (runner->kept, runner->work_dir, max_keep, error);
}

gboolean
rn_runner_save_interrupted (RnRunner *runner, GError **error)
{
  g_autofree char *name = g_strdup_printf ("iter_%" G_GINT64_FORMAT ".safetensors", runner->now.iter);
  RnCheckpointRequest request = { .dir = runner->checkpoint_dir, .name = name, .save_optimizer = TRUE };

  if (memcmp (&runner->saved_at, &runner->now, sizeof runner->now) == 0 || is_lost (runner))
    return TRUE;
  return save_regular (runner, &request, error);
}
