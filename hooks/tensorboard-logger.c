/*
 * tensorboard-logger.c: MMCV's TensorboardLoggerHook: curves for TensorBoard.
 *
 * The step of every point is the number of finished iterations, of training and of evaluations. A resumed run
 * writes a new file and says where it begins; TensorBoard then drops what the run before had later.
 */
#include "config.h"

#include <runner/engine.h>

#include "hooks/event-file.h"
#include "hooks/log-window.h"
#include "hooks/text-line.h"

#include <string.h>

typedef struct
{
  RnHook hook;
  RnLogWindow window;
  char *log_dir;
  RnEventFile *file;
} TensorboardLogger;

static const RnKeySpec keys[] = {
  RN_LOG_WINDOW_KEYS (TensorboardLogger),
  RN_KEY (TensorboardLogger, log_dir, RN_KEY_STRING, "null",
          "folder of the event files; null: tf_logs in the work dir", .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_log_window_init (&((TensorboardLogger *) hook)->window, hook, runner);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_clear_pointer (&((TensorboardLogger *) hook)->file, rn_event_file_free);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  rn_log_window_save (&((const TensorboardLogger *) hook)->window, state);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  rn_log_window_load (&((TensorboardLogger *) hook)->window, state);
  return TRUE;
}

/* All floats of @values but times, as "GROUP/NAME". */
static void
add_values (RnEventFile *file, const char *group, const RnRecord *values)
{
  for (guint i = 0; i < rn_record_size (values); i++)
    {
      const char *name = rn_record_name (values, i);
      if (!rn_record_is_float (values, name) || rn_log_is_time (name))
        continue;
      g_autofree char *tag = g_strconcat (group, "/", name, NULL);
      rn_event_file_add_scalar (file, tag, rn_record_float (values, name, 0));
    }
}

static void
add_rates (RnEventFile *file, const RnRunner *runner)
{
  rn_event_file_add_scalar (file, "learning_rate", rn_runner_lr (runner));
  for (guint i = 1; i < rn_runner_n_groups (runner); i++)
    {
      g_autofree char *tag = g_strdup_printf ("learning_rate/group_%u", i);
      rn_event_file_add_scalar (file, tag, rn_runner_group_lr (runner, i));
    }
  rn_event_file_add_scalar (file, "momentum", rn_runner_momentum (runner));
}

/* The result of an evaluation in this stage, if there was one. */
static gboolean
write_scores (TensorboardLogger *self, RnRunner *runner, GError **error)
{
  const RnRecord *scores = rn_runner_scores (runner);

  if (scores == NULL)
    return TRUE;
  add_values (self->file, "val", scores);
  return rn_event_file_write (self->file, rn_record_int (scores, "iter", 0), error);
}

/* The text panel shows Markdown, in which four spaces make a block of code. */
static void
add_config (RnEventFile *file, RnRunner *runner)
{
  g_autoptr (RnRecord) description = rn_runner_describe (runner);
  const char *config = rn_record_string (description, "config");

  if (config == NULL)
    return;
  g_auto (GStrv) lines = g_strsplit (config, "\n", -1);
  g_autofree char *joined = g_strjoinv ("\n    ", lines);
  g_autofree char *text = g_strconcat ("    ", joined, NULL);
  rn_event_file_add_text (file, "config/text_summary", text);
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  TensorboardLogger *self = (TensorboardLogger *) hook;
  g_autofree char *dir = self->log_dir != NULL
                             ? g_strdup (self->log_dir)
                             : g_build_filename (rn_runner_work_dir (runner), "tf_logs", NULL);
  gint64 done = rn_runner_iter (runner);

  self->file = rn_event_file_new (dir, error);
  if (self->file == NULL)
    return FALSE;
  /* What was logged when @done iterations were finished stays. */
  if (rn_runner_resumed_from (runner) != NULL && !rn_event_file_restart (self->file, done + 1, error))
    return FALSE;
  add_config (self->file, runner);
  return rn_event_file_write (self->file, done, error) && write_scores (self, runner, error);
}

/* An evaluation before training is here. */
static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  return write_scores ((TensorboardLogger *) hook, runner, error);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  TensorboardLogger *self = (TensorboardLogger *) hook;

  if (rn_log_window_is_due (&self->window, runner))
    {
      g_autoptr (RnRecord) means = rn_log_window_means (&self->window, runner);
      add_values (self->file, "train", means);
      add_rates (self->file, runner);
      rn_log_window_close (&self->window, runner);
      if (!rn_event_file_write (self->file, rn_runner_iter (runner) + 1, error))
        return FALSE;
    }
  return write_scores (self, runner, error);
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return write_scores ((TensorboardLogger *) hook, runner, error);
}

static gboolean
after_val_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  TensorboardLogger *self = (TensorboardLogger *) hook;
  g_autoptr (RnRecord) means = rn_log_val_means (runner);

  add_values (self->file, "val", means);
  return rn_event_file_write (self->file, rn_runner_iter (runner), error)
         && write_scores (self, runner, error);
}

RN_HOOK_DEFINE (tensorboard_logger, TensorboardLogger, .name = "TensorboardLoggerHook",
                .summary = "curves for TensorBoard", .priority = RN_PRIORITY_VERY_LOW, .needs = RN_NEEDS_LOSS,
                .keys = keys, .init = init, .clear = clear, .save_state = save_state,
                .load_state = load_state, .before_run = before_run, .before_train_iter = before_train_iter,
                .after_train_iter = after_train_iter, .after_train_epoch = after_train_epoch,
                .after_val_epoch = after_val_epoch);
