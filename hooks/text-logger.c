/*
 * text-logger.c: MMCV's TextLoggerHook: a line for people every `interval` iterations, and the same as a JSON
 * line in work_dir/TIME.log.json. A terminal also shows where the run is between two lines.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include <runner/engine.h>

#include "hooks/eta.h"
#include "hooks/json-log.h"
#include "hooks/log-window.h"
#include "hooks/text-line.h"

#include <string.h>

#define SUFFIX ".log.json"
#define STATUS_US 200000 /* between two changes of the terminal's last line */

typedef struct
{
  RnHook hook;
  RnLogWindow window;
  gboolean append;
  RnJsonLog *json;
  char *name;  /* of the JSON log, without folder; of the run before, when it is loaded */
  GArray *lrs; /* of double: room for those of all groups */
  RnEta eta;
  gint64 status_us; /* when the terminal's last line was changed */
} TextLogger;

static const RnKeySpec keys[] = {
  RN_LOG_WINDOW_KEYS (TextLogger),
  RN_KEY (TextLogger, append, RN_KEY_BOOL, "false",
          "a resumed run goes on in the JSON log of the run before; else it begins a new one"),
  RN_UNUSED_KEY ("interval_exp_name", "the first line of each log says what was run"),
  RN_UNUSED_KEY ("out_dir", "logs are in the work dir"),
  RN_UNUSED_KEY ("out_suffix", "logs are in the work dir"),
  RN_UNUSED_KEY ("keep_local", "logs are in the work dir"),
  RN_UNUSED_KEY ("file_client_args", "logs are in the work dir"),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;

  rn_log_window_init (&self->window, hook, runner);
  self->lrs = g_array_new (FALSE, FALSE, sizeof (double));
  return TRUE;
}

static void
clear (RnHook *hook)
{
  TextLogger *self = (TextLogger *) hook;
  g_clear_pointer (&self->json, rn_json_log_close);
  g_clear_pointer (&self->name, g_free);
  g_clear_pointer (&self->lrs, g_array_unref);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  const TextLogger *self = (const TextLogger *) hook;

  rn_log_window_save (&self->window, state);
  if (self->append && self->name != NULL)
    rn_record_set_string (state, "json_log", self->name);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  TextLogger *self = (TextLogger *) hook;
  const char *name = rn_record_string (state, "json_log");

  rn_log_window_load (&self->window, state);
  if (name == NULL)
    return TRUE;
  if (strchr (name, '/') != NULL || !g_str_has_suffix (name, SUFFIX))
    return rn_hook_error (error, "json_log is no name of a log");
  g_free (self->name);
  self->name = g_strdup (name);
  return TRUE;
}

/* The numbers of @values, behind what @record has. */
static void
add_numbers (RnRecord *record, const RnRecord *values)
{
  for (guint i = 0; i < rn_record_size (values); i++)
    {
      const char *name = rn_record_name (values, i);
      if (rn_record_is_float (values, name))
        rn_record_set_float (record, name, rn_record_float (values, name, 0));
      else
        rn_record_set_int (record, name, rn_record_int (values, name, 0));
    }
}

static gboolean
json_train (TextLogger *self, RnRunner *runner, const RnRecord *means, double eta_s, guint64 current,
            guint64 peak, GError **error)
{
  g_autoptr (RnRecord) record = rn_record_new ();

  rn_record_set_string (record, "mode", "train");
  rn_record_set_int (record, "epoch", rn_runner_epoch (runner) + 1);
  rn_record_set_int (record, "iter", rn_runner_iter (runner) + 1);
  rn_record_set_int (record, "inner_iter", rn_runner_inner_iter (runner) + 1);
  rn_record_set_int (record, "opt_step", rn_runner_opt_step (runner));
  rn_record_set_float (record, "lr", rn_runner_lr (runner));
  g_array_set_size (self->lrs, 0);
  for (guint i = 0; i < rn_runner_n_groups (runner); i++)
    {
      double lr = rn_runner_group_lr (runner, i);
      g_array_append_val (self->lrs, lr);
    }
  if (self->lrs->len > 1)
    rn_record_set_floats (record, "group_lrs", (const double *) (gconstpointer) self->lrs->data,
                          self->lrs->len);
  rn_record_set_float (record, "momentum", rn_runner_momentum (runner));
  rn_record_set_float (record, "eta_s", eta_s);
  rn_record_set_int (record, "memory", (gint64) (peak >> 20)); /* MiB */
  rn_record_set_int (record, "memory_current", (gint64) (current >> 20));
  add_numbers (record, means);
  return rn_json_log_write (self->json, record, error);
}

static gboolean
log_train (TextLogger *self, RnRunner *runner, GError **error)
{
  g_autoptr (RnRecord) means = rn_log_window_means (&self->window, runner);
  gint64 now = g_get_monotonic_time (), done = rn_runner_iter (runner) + 1;
  guint64 current, peak;

  rn_eta_read (&self->eta, done, now);
  rn_runner_memory (runner, &current, &peak);
  double eta_s = rn_eta_seconds (&self->eta, rn_runner_max_iters (runner) - done, done, now);
  g_autofree char *line =
      rn_text_line_train (runner, means, rn_log_window_counts_epochs (&self->window, runner), eta_s, peak);
  g_message ("%s", line);
  rn_log_window_close (&self->window, runner);
  return json_train (self, runner, means, eta_s, current, peak, error);
}

/* The result of an evaluation in this stage, if there was one. */
static gboolean
log_scores (TextLogger *self, RnRunner *runner, GError **error)
{
  const RnRecord *scores = rn_runner_scores (runner);
  if (scores == NULL)
    return TRUE;

  g_autoptr (RnRecord) record = rn_record_new ();
  g_autofree char *line = rn_text_line_val (
      runner, scores, rn_log_window_counts_epochs (&self->window, runner), rn_record_int (scores, "epoch", 0),
      rn_record_int (scores, "iter", 0), rn_record_int (scores, "n_images", 0));
  rn_record_set_string (record, "mode", "val");
  add_numbers (record, scores);
  g_message ("%s", line);
  return rn_json_log_write (self->json, record, error);
}

static void
show_status (TextLogger *self, RnRunner *runner)
{
  gint64 now = g_get_monotonic_time ();
  if (now - self->status_us < STATUS_US)
    return;
  self->status_us = now;

  gint64 done = rn_runner_iter (runner) + 1, max = rn_runner_max_iters (runner);
  g_autofree char *eta = rn_format_duration (rn_eta_seconds (&self->eta, max - done, done, now));
  g_autofree char *text =
      g_strdup_printf ("iteration %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT ", loss %.4f, %s to go", done, max,
                       rn_runner_loss (runner, "loss"), eta);
  rn_runner_show_status (runner, text);
}

/* The log to write: that of the run before, if it is wanted and there. (transfer full) */
static char *
choose_path (TextLogger *self, const RnRunner *runner)
{
  if (self->append && rn_runner_resumed_from (runner) != NULL && self->name != NULL)
    {
      g_autofree char *path = g_build_filename (rn_runner_work_dir (runner), self->name, NULL);
      if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
        return g_steal_pointer (&path);
      g_message ("%s is not there; the log begins anew", path);
    }
  g_free (self->name);
  self->name = g_strconcat (rn_runner_timestamp (runner), SUFFIX, NULL);
  return g_build_filename (rn_runner_work_dir (runner), self->name, NULL);
}

/* What readers need to join the logs of a run: what later iterations had before is void. */
static gboolean
log_resume (TextLogger *self, RnRunner *runner, GError **error)
{
  const char *from = rn_runner_resumed_from (runner);
  if (from == NULL)
    return TRUE;

  g_autoptr (RnRecord) record = rn_record_new ();
  rn_record_set_string (record, "mode", "resume");
  rn_record_set_int (record, "iter", rn_runner_iter (runner));
  rn_record_set_int (record, "opt_step", rn_runner_opt_step (runner));
  rn_record_set_string (record, "checkpoint", from);
  return rn_json_log_write (self->json, record, error);
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;
  g_autofree char *path = choose_path (self, runner);
  g_autoptr (RnRecord) meta = rn_runner_describe (runner);

  self->json = rn_json_log_open (path, error);
  if (self->json == NULL)
    return FALSE;
  rn_eta_start (&self->eta, rn_runner_iter (runner), g_get_monotonic_time ());
  return rn_json_log_write (self->json, meta, error) && log_resume (self, runner, error)
         && log_scores (self, runner, error);
}

/* An evaluation before training is here. */
static gboolean
before_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  return log_scores ((TextLogger *) hook, runner, error);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;

  show_status (self, runner);
  return (!rn_log_window_is_due (&self->window, runner) || log_train (self, runner, error))
         && log_scores (self, runner, error);
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return log_scores ((TextLogger *) hook, runner, error);
}

/* Losses on the validation data, which a val item of the workflow computes. */
static gboolean
after_val_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;
  g_autoptr (RnRecord) means = rn_log_val_means (runner), record = rn_record_new ();
  gint64 epoch = rn_runner_epoch (runner), iter = rn_runner_iter (runner),
         n_batches = rn_runner_inner_iter (runner);
  g_autofree char *line = rn_text_line_val (
      runner, means, rn_log_window_counts_epochs (&self->window, runner), epoch, iter, n_batches);

  rn_record_set_string (record, "mode", "val");
  rn_record_set_int (record, "epoch", epoch);
  rn_record_set_int (record, "iter", iter);
  rn_record_set_int (record, "n_batches", n_batches);
  add_numbers (record, means);
  g_message ("%s", line);
  return rn_json_log_write (self->json, record, error) && log_scores (self, runner, error);
}

static gboolean
after_run (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_show_status (runner, NULL);
  return TRUE;
}

RN_HOOK_DEFINE (text_logger, TextLogger, .name = "TextLoggerHook",
                .summary = "a line for people, and one of JSON, every so many iterations",
                .priority = RN_PRIORITY_VERY_LOW, .needs = RN_NEEDS_LOSS, .keys = keys, .init = init,
                .clear = clear, .save_state = save_state, .load_state = load_state, .before_run = before_run,
                .before_train_iter = before_train_iter, .after_train_iter = after_train_iter,
                .after_train_epoch = after_train_epoch, .after_val_epoch = after_val_epoch,
                .after_run = after_run);
