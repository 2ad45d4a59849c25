/* cmd-train.c: `runner train`: a run from its configuration to its last checkpoint. */
#define G_LOG_DOMAIN "rn-cli"
#include "config.h"

#include "runner/cli/commands.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/log.h"
#include "runner/base/signals.h"
#include "runner/base/size.h"
#include "runner/check.h"
#include "runner/checkpoint-list.h"
#include "runner/checkpoint.h"
#include "runner/cli/common.h"
#include "runner/config/config.h"
#include "runner/predict.h"
#include "runner/process-memory.h"
#include "runner/train.h"
#include "runner/weights/load-start.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const RnUsage usage = {
  .arguments = "CONFIG",
  .summary = "Trains a detector. Writes logs and checkpoints to the work dir. Ctrl-C saves and leaves; "
             "--resume goes on, to the same bits.",
  .examples =
      "  runner train configs/retinanet_shapes.yaml\n"
      "  runner train configs/retinanet_shapes.yaml --work-dir work_dirs/long --set runner.max_epochs=24\n"
      "  runner train configs/retinanet_shapes.yaml --resume\n",
  .groups = RN_OPTIONS_CONFIG | RN_OPTIONS_RUN | RN_OPTIONS_RESUME,
};

static gboolean
work_dir_error (const RnNode *node, int code, GError **error)
{
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
               "%s: the run cannot write there: %s; --work-dir names another folder (this one comes from %s)",
               rn_node_as_string (node), g_strerror (code), rn_node_origin (node));
  return FALSE;
}

/* Two runs in one folder would mix their checkpoints. The lock lives as long as the process. */
static gboolean
lock_work_dir (const RnNode *node, GError **error)
{
  int fd = open (rn_node_as_string (node), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (fd < 0)
    return work_dir_error (node, errno, error);
  if (flock (fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) /* a file system may have no locks */
    return TRUE;
  close (fd);
  g_set_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED,
               "%s: another run is at work there; --work-dir names another folder", rn_node_as_string (node));
  return FALSE;
}

/* The resolved configuration, into the work dir. */
static gboolean
save_config (const RnNode *root, GError **error)
{
  g_autofree char *path =
      g_build_filename (rn_node_as_string (rn_node_get (root, "work_dir")), "config.yaml", NULL);
  g_autofree char *config = rn_config_dump (root, FALSE);

  return rn_atomic_file_save (path, config, strlen (config), error);
}

/* Folder, text log and resolved configuration. */
static gboolean
open_work_dir (const RnNode *root, const char *timestamp, GError **error)
{
  const RnNode *node = rn_node_get (root, "work_dir");
  if (rn_node_kind (node) != RN_NODE_STRING || *rn_node_as_string (node) == '\0')
    return rn_node_error (node, error, "must be the name of a folder");
  const char *dir = rn_node_as_string (node);
  if (g_mkdir_with_parents (dir, 0777) != 0 || access (dir, W_OK | X_OK) != 0)
    return work_dir_error (node, errno, error);
  g_autofree char *log_name = g_strconcat (timestamp, ".log", NULL);
  g_autofree char *log_path = g_build_filename (dir, log_name, NULL);
  return lock_work_dir (node, error) && rn_log_set_file (log_path, error) && save_config (root, error);
}

/* A checkpoint that is not there, or is none, is found before the data is read. */
static gboolean
check_resume_from (const RnJob *job, GError **error)
{
  const char *path = job->config.resume_from;
  if (path == NULL)
    return TRUE;
  g_autoptr (RnSafetensors) file = rn_checkpoint_open (path, error);
  if (file == NULL)
    g_prefix_error (error, "%s: ", rn_node_origin (rn_node_get (job->root, "resume_from")));
  return file != NULL;
}

/* A new run in the folder of an old one takes nothing from it, and writes over files of the same names. */
static gboolean
warn_of_old_run (const char *dir, GError **error)
{
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (dir, error);
  if (list == NULL)
    return FALSE;
  if (list->len > 0)
    g_warning ("%s holds %u checkpoints of an earlier run; this one starts anew and will write over those of "
               "the same names (--resume would go on)",
               dir, list->len);
  return TRUE;
}

/* Whether a checkpoint will give the weights: --resume in an empty work dir starts a run. */
static gboolean
will_resume (const RnJob *job, const RnOptions *options, gboolean *is_resumed, GError **error)
{
  *is_resumed = job->config.resume_from != NULL;
  if (*is_resumed || !options->resume || !g_file_test (job->config.work_dir, G_FILE_TEST_IS_DIR))
    return TRUE;
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (job->config.work_dir, error);
  *is_resumed = list != NULL && list->len > 0;
  return list != NULL;
}

/* What the weights need, before there is a work dir to clean up. */
static gboolean
check_start (const RnNode *root, gboolean is_resumed, GError **error)
{
  return rn_run_config_check_training (root, is_resumed, error)
         && (is_resumed || rn_start_weights_check (root, error));
}

static gboolean
resume_or_start (RnTraining *training, const RnOptions *options, GError **error)
{
  const RnRunConfig *config = &training->job->config;

  if (config->resume_from != NULL || options->resume)
    return rn_runner_resume (training->runner, config->resume_from, error);
  return warn_of_old_run (config->work_dir, error);
}

/* What the run took, beside what was planned. */
static void
say_memory (RnJob *job)
{
  RnMemory memory = rn_programs_memory (job->programs);
  guint64 current, peak;

  rn_process_memory (&current, &peak);
  const RnRoom room = rn_room_free (job);
  g_autofree char *planned = rn_size_format (rn_room_needed (&room, &memory));
  g_autofree char *host = rn_size_format (memory.host_bytes);
  g_autofree char *resident = rn_size_format (peak);
  if (room.counts_host)
    g_message ("memory: %s planned; the process held at most %s, data, code and logs included", planned,
               resident);
  else
    g_message (
        "memory: %s planned on the device and %s on the host, where the process held at most %s, data, "
        "code and logs included",
        planned, host, resident);
}

/* A device that failed gives nothing any more, so what is on disk is what is left of the run. */
static void
name_checkpoint (const RnJob *job, GError **error)
{
  const char *work_dir = job->config.work_dir;
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (work_dir, NULL);

  if (error == NULL || (*error)->domain != RN_DEVICE_ERROR || list == NULL || list->len == 0)
    return;
  g_autoptr (GError) cause = g_steal_pointer (error);
  g_autofree char *path = rn_checkpoint_list_path (work_dir, g_ptr_array_index (list, 0));
  rn_set_error (error, cause->domain, cause->code, "%s; the last checkpoint is %s, --resume goes on from it",
                cause->message, path);
}

static gboolean
train (RnNode *root, const RnOptions *options, int *signal, GError **error)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *timestamp = g_date_time_format (now, "%Y%m%d_%H%M%S");

  gboolean is_resumed;

  g_autoptr (RnJob) job = rn_job_new_for_training (root, error);
  if (job == NULL || !rn_job_check (job, error) || !check_resume_from (job, error)
      || !will_resume (job, options, &is_resumed, error) || !check_start (root, is_resumed, error)
      || !open_work_dir (root, timestamp, error))
    return FALSE;
  g_autoptr (RnTraining) training = rn_training_new (g_steal_pointer (&job), timestamp, is_resumed, error);
  if (training == NULL || (training->job->chosen != NULL && !save_config (training->job->root, error))
      || !resume_or_start (training, options, error))
    return FALSE;

  g_autofree char *hooks = rn_runner_describe_hooks (training->runner);
  g_autofree char *workflow = rn_runner_describe_workflow (training->runner);
  g_message ("device: %s", training->task->device);
  g_message ("hooks, in the order of each stage:\n%s", hooks);
  g_message ("work dir: %s; workflow: %s; %" G_GINT64_FORMAT " iterations in all, %" G_GINT64_FORMAT
             " in an epoch",
             training->job->config.work_dir, workflow, rn_runner_max_iters (training->runner),
             rn_runner_epoch_length (training->runner));
  rn_signals_install ();
  gboolean is_ok = rn_runner_run (training->runner, error);
  *signal = rn_runner_signal (training->runner);
  if (is_ok)
    say_memory (training->job);
  else
    name_checkpoint (training->job, error);
  return is_ok;
}

int
rn_cmd_train (int argc, char **argv)
{
  g_auto (RnOptions) options = { 0 };
  GError *error = NULL;
  int signal = 0;

  if (!rn_options_parse (&usage, argc, argv, &options, &error))
    return rn_cli_fail (error);
  RnNode *root = rn_options_load (&options, &error);
  gboolean is_ok = root != NULL && train (root, &options, &signal, &error);
  if (!is_ok)
    return rn_cli_fail (error);
  if (signal != 0)
    g_message ("stopped by signal %d; --resume goes on", signal);
  return signal != 0 ? 128 + signal : 0;
}
