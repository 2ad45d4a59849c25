/* resume.c: takes up a run from a checkpoint. */
#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/batches.h"
#include "runner/checkpoint.h"
#include "runner/checkpoint-list.h"
#include "runner/config/config.h"
#include "runner/config/diff.h"
#include "runner/place.h"
#include "runner/plugin.h"
#include "runner/record.h"
#include "runner/run-history.h"
#include "runner/runner-private.h"
#include "runner/base/error.h"
#include "runner/base/open-file.h"

#include <math.h>
#include <string.h>

static RnRecord *
get_record (const RnSafetensors *file, const char *key, GError **error)
{
  const char *json = rn_safetensors_metadata (file, key);
  RnRecord *record = json != NULL ? rn_record_parse (json, error) : NULL;

  if (json == NULL)
    g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, "no metadata \"%s\"", key);
  return record;
}

/* Finished iterations of a checkpoint, or -1. Its tensors are not read. */
static gint64
read_iter (const char *path)
{
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, NULL);
  g_autoptr (RnRecord) counters = file != NULL ? get_record (file, RN_CHECKPOINT_COUNTERS, NULL) : NULL;
  return counters != NULL ? rn_record_int (counters, "iter", -1) : -1;
}

/* Entries that are newer than the file that is taken belong to a future that will not come; from a file of
 * another folder they belong to another run. */
static void
forget_newer (RnRunner *runner, const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path);
  gboolean is_ours = rn_is_same_file (folder, runner->work_dir);

  while (runner->kept->len > 0)
    {
      g_autofree char *first =
          rn_checkpoint_list_path (runner->work_dir, g_ptr_array_index (runner->kept, 0));
      if (rn_is_same_file (first, path))
        return;
      gint64 iter = is_ours ? read_iter (first) : -1;
      if (iter >= 0 && iter <= runner->now.iter)
        return;
      g_ptr_array_remove_index (runner->kept, 0);
    }
}

static gboolean
is_newest (const RnRunner *runner, const char *path)
{
  if (runner->kept->len == 0)
    return FALSE;
  g_autofree char *first = rn_checkpoint_list_path (runner->work_dir, g_ptr_array_index (runner->kept, 0));
  return rn_is_same_file (first, path);
}

#define MAX_COUNT (G_MAXINT64 / 2) /* a run can count on from here */

/* Those of the file, by its own count of batches. */
static gboolean
read_counters (const RnRecord *record, const RnBatches *batches, RnCounters *counters, GError **error)
{
  gint64 iters;

  *counters = (RnCounters){ .iter = rn_record_int (record, "iter", -1),
                            .epoch = rn_record_int (record, "epoch", -1),
                            .inner_iter = rn_record_int (record, "inner_iter", -1),
                            .opt_step = rn_record_int (record, "opt_step", -1) };
  if (counters->iter >= 0 && counters->iter <= MAX_COUNT && counters->epoch >= 0 && counters->inner_iter >= 0
      && counters->inner_iter <= batches->epoch_length && counters->opt_step >= 0
      && counters->opt_step <= MAX_COUNT
      && !__builtin_mul_overflow (counters->epoch, batches->epoch_length, &iters)
      && counters->iter - counters->inner_iter == iters)
    return TRUE;
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "its counters do not agree");
  return FALSE;
}

/* Where the run stands. *@is_changed: its batches are not those of the file. */
static gboolean
read_position (RnRunner *runner, const RnSafetensors *file, RnCounters *counters, gboolean *is_changed,
               GError **error)
{
  RnBatches was, now = rn_batches_of (runner);
  gint64 n_again = 0;
  g_autoptr (RnRecord) sampler = get_record (file, RN_CHECKPOINT_SAMPLER, error);
  g_autoptr (RnRecord) record = sampler != NULL ? get_record (file, RN_CHECKPOINT_COUNTERS, error) : NULL;

  if (record == NULL || !rn_batches_load (&was, sampler, error))
    return FALSE;
  *is_changed = !rn_batches_match (&was, &now);
  if (*is_changed && !runner->allow_batch_change)
    return rn_batches_refuse (&was, &now, error);
  if (!read_counters (record, &was, counters, error))
    return FALSE;
  RnCounters from = *counters;
  if ((*is_changed && !rn_batches_convert (&was, &now, counters, &n_again))
      || !rn_place_load (runner, record, counters))
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "its counters do not agree");
      return FALSE;
    }
  if (*is_changed)
    rn_batches_report (&was, &now, &from, counters, n_again);
  return TRUE;
}

/* Keys that say where a run is kept and how it is taken up, not what it does. */
static gboolean
is_about_place (const char *path)
{
  return strcmp (path, "work_dir") == 0 || strcmp (path, "resume_from") == 0 || strcmp (path, "resume") == 0
         || g_str_has_prefix (path, "resume.");
}

static void
report_difference (const char *path, const RnNode *was, const RnNode *is, gpointer user_data)
{
  if (is_about_place (path))
    return;
  g_autofree char *text = rn_config_diff_text (was, is);
  g_autofree char *change = g_strdup_printf ("%s: %s", path, text);
  g_message ("resume: %s; the configuration wins", change);
  rn_run_history_add_change (user_data, change);
}

static void
compare_configs (RnRunner *runner, const RnSafetensors *file)
{
  const char *text = rn_safetensors_metadata (file, RN_CHECKPOINT_CONFIG);
  if (text == NULL || runner->config_text == NULL || strcmp (text, runner->config_text) == 0)
    return;

  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) was = rn_config_load_text (text, "checkpoint", NULL, &error);
  g_autoptr (RnNode) is =
      was != NULL ? rn_config_load_text (runner->config_text, "configuration", NULL, &error) : NULL;
  if (is == NULL)
    g_warning ("resume: the configuration in the checkpoint cannot be compared: %s", error->message);
  else
    rn_config_diff ("", was, is, report_difference, runner);
}

static void
compare_devices (RnRunner *runner, const RnSafetensors *file)
{
  const char *device = rn_safetensors_metadata (file, RN_CHECKPOINT_DEVICE);

  if (g_strcmp0 (device, runner->task->device) != 0)
    g_warning ("resume: the checkpoint was made on \"%s\", this is \"%s\": the run goes on, but the last "
               "bits may differ",
               device != NULL ? device : "?", runner->task->device);
}

/* Parameters are fp32 in every checkpoint, so any of them can be gone on from. One of before says nothing. */
static void
compare_precisions (RnRunner *runner, const RnSafetensors *file)
{
  const char *was = rn_safetensors_metadata (file, RN_CHECKPOINT_PRECISION),
             *is = rn_task_precision (runner->task);

  if (was != NULL && strcmp (was, is) != 0)
    g_warning ("resume: the checkpoint was trained in %s, this run computes in %s: it goes on, but not as "
               "one that was not stopped",
               was, is);
}

static gboolean
are_rates (const double *values, gsize n)
{
  for (gsize i = 0; i < n; i++)
    if (!(isfinite (values[i]) && values[i] >= 0))
      return FALSE;
  return TRUE;
}

/* Those that a hook had set, unless the configuration has others now. A checkpoint of before has none. */
static void
load_rates (RnRunner *runner, const RnSafetensors *file)
{
  g_autoptr (RnRecord) record = get_record (file, RN_CHECKPOINT_RATES, NULL);
  if (record == NULL)
    return;

  gsize n;
  const double *lrs = rn_record_floats (record, "lrs", &n);
  if (rn_record_float (record, "base_lr", NAN) == rn_runner_base_lr (runner) && n == runner->task->n_groups
      && are_rates (lrs, n))
    memcpy (runner->lrs, lrs, n * sizeof *lrs);
  double momentum = rn_record_float (record, "momentum", NAN);
  if (rn_record_float (record, "base_momentum", NAN) == rn_runner_base_momentum (runner)
      && are_rates (&momentum, 1) && momentum <= 1)
    runner->momentum = momentum;
}

static gboolean
load_log (RnRunner *runner, const RnSafetensors *file, GError **error)
{
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, RN_CHECKPOINT_LOG);

  for (guint i = 0; i < keys->len; i++)
    {
      const char *key = g_ptr_array_index (keys, i), *name = strchr (key + strlen (RN_CHECKPOINT_LOG), '/');
      g_autoptr (RnRecord) window = get_record (file, key, error);
      if (window == NULL)
        return FALSE;
      if (name != NULL)
        rn_log_buffer_load (rn_runner_log_to_write (runner), name + 1, window);
    }
  return TRUE;
}

static gboolean
check_file (const RnRunner *runner, const RnSafetensors *file, GError **error)
{
  if (g_strcmp0 (rn_safetensors_metadata (file, RN_CHECKPOINT_FORMAT), RN_CHECKPOINT_FORMAT_NAME) == 0)
    return rn_checkpoint_check_classes (file, runner->task->class_names, error);
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
               "not a checkpoint of this program; what starts from its weights: --set load_from=%s",
               rn_safetensors_path (file));
  return FALSE;
}

static gboolean
refuse_part_of_step (const char *reason, GError **error)
{
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, RN_PART_OF_STEP_TEXT, reason);
  return FALSE;
}

/* Gradients of an unfinished window are means over batches of the old size: hooks that find the window closed
 * begin a new one. */
static gboolean
load_tensors (RnRunner *runner, const RnSafetensors *file, gboolean is_changed, GError **error)
{
  guint found;

  if (!runner->task->vtbl->load_tensors (runner->task, file, &found, error))
    return FALSE;
  runner->has_optimizer_state = (found & RN_TENSORS_OPTIMIZER) != 0;
  runner->has_part_of_step = (found & RN_TENSORS_PART_OF_STEP) != 0;
  runner->is_window_open = runner->has_part_of_step || (found & RN_TENSORS_PENDING) != 0;
  runner->has_loaded_ema = (found & RN_TENSORS_EMA) != 0;
  if (runner->has_part_of_step && !runner->task->updates_in_backward)
    return refuse_part_of_step ("memory.update is after_backward and was in_backward", error);
  if (!is_changed || !runner->is_window_open)
    return TRUE;
  if (runner->has_part_of_step)
    return refuse_part_of_step ("its batches are not those of this run", error);
  g_warning ("resume: the gradients of an unfinished step are dropped: they are those of other batches");
  runner->is_window_open = FALSE;
  return rn_runner_zero_grads (runner, error);
}

static gboolean
apply (RnRunner *runner, const RnSafetensors *file, gboolean *is_changed, GError **error)
{
  RnCounters counters;

  if (!check_file (runner, file, error) || !read_position (runner, file, &counters, is_changed, error))
    return FALSE;
  compare_devices (runner, file);
  compare_precisions (runner, file);
  rn_run_history_load (runner, rn_safetensors_metadata (file, RN_CHECKPOINT_HISTORY));
  compare_configs (runner, file);
  rn_plugins_compare (rn_safetensors_metadata (file, RN_CHECKPOINT_PLUGINS));
  if (!load_tensors (runner, file, *is_changed, error) || !rn_hook_list_load (runner->hooks, file, error)
      || (!*is_changed && !load_log (runner, file, error)))
    return FALSE;
  load_rates (runner, file);
  if (!runner->has_optimizer_state && counters.opt_step > 0 && rn_optimizer_momentum (runner->optimizer) > 0)
    g_warning ("resume: the checkpoint has no state of this optimizer: it starts anew");
  runner->now = counters;
  return TRUE;
}

gboolean
rn_runner_resume (RnRunner *runner, const char *path, GError **error)
{
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (runner->work_dir, error);
  if (list == NULL)
    return FALSE;
  g_ptr_array_unref (runner->kept);
  runner->kept = g_steal_pointer (&list);

  GError *cause = NULL;
  g_autoptr (RnSafetensors) file =
      rn_checkpoint_open_resumed (runner->work_dir, path, runner->kept, FALSE, &cause);
  if (cause != NULL)
    {
      g_propagate_error (error, cause);
      return FALSE;
    }
  if (file == NULL)
    {
      g_message ("resume: %s has no checkpoint; the run starts at the beginning", runner->work_dir);
      return TRUE;
    }
  gboolean is_changed;
  if (!apply (runner, file, &is_changed, error))
    {
      g_prefix_error (error, "%s: cannot resume: ", rn_safetensors_path (file));
      return FALSE;
    }
  if (path != NULL)
    forget_newer (runner, path);
  if (is_newest (runner, rn_safetensors_path (file)) && !is_changed)
    runner->saved_at = runner->now;
  g_free (runner->resumed_from);
  runner->resumed_from = g_strdup (rn_safetensors_path (file));
  g_message ("resumed from %s: %" G_GINT64_FORMAT " epochs and %" G_GINT64_FORMAT
             " iterations done, %" G_GINT64_FORMAT " iterations to go",
             rn_safetensors_path (file), runner->now.epoch, runner->now.inner_iter,
             MAX (runner->max_iters - runner->now.iter, 0));
  return TRUE;
}
