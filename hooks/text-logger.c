/*
 * text-logger.c: MMCV's TextLoggerHook: a line for people every `interval` iterations, and the same as a JSON
 * line in work_dir/TIME.log.json.
 *
 * Every epoch gets a line, be it shorter than the interval. The time to go counts evaluations and checkpoints
 * too: it comes from a moving mean of the wall-clock time between lines. A terminal also shows where the run
 * is between two lines.
 */
#define G_LOG_DOMAIN "rn-hooks"
#include "config.h"

#include <runner/engine.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NEW_PART 0.3     /* of the newest span in the moving mean */
#define STATUS_US 200000 /* between two changes of the terminal's last line */

typedef struct
{
  RnHook hook;
  gint64 interval;
  gboolean ignore_last;
  int by_epoch; /* index into auto_names */
  FILE *json;
  gint64 last_line;  /* finished iterations at the line before */
  gint64 clock_iter; /* finished iterations when clock_us was read */
  gint64 clock_us;
  double iter_s;    /* moving mean of the time of an iteration, all included; 0: none yet */
  gint64 status_us; /* when the terminal's last line was changed */
} TextLogger;

static const char *const auto_names[] = { "false", "true", "auto", NULL };

enum
{
  BY_ITER,
  BY_EPOCH,
  BY_RUNNER,
};

static const RnKeySpec keys[] = {
  RN_KEY (TextLogger, interval, RN_KEY_INT, "null", "iterations between two lines; null: log_config.interval",
          .min = 1, .max = 1e7, .flags = RN_KEY_NULLABLE),
  RN_KEY (TextLogger, ignore_last, RN_KEY_BOOL, "true",
          "no line for the rest at the end of an epoch, unless it is the epoch's only one"),
  RN_KEY (TextLogger, by_epoch, RN_KEY_ENUM, "auto", "count within the epoch; auto: as the runner does",
          .names = auto_names),
  RN_KEY_END,
};

static gboolean
counts_epochs (const TextLogger *self, const RnRunner *runner)
{
  return self->by_epoch == BY_RUNNER ? rn_runner_is_by_epoch (runner) : self->by_epoch == BY_EPOCH;
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;

  if (self->interval == RN_NULL_INT)
    self->interval = rn_runner_log_interval (runner);
  rn_runner_reserve_log (runner, self->interval);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_clear_pointer (&((TextLogger *) hook)->json, fclose);
}

static void
save_state (RnHook *hook, RnRecord *state)
{
  rn_record_set_int (state, "last_line", ((TextLogger *) hook)->last_line);
}

static gboolean
load_state (RnHook *hook, const RnRecord *state, GError **error)
{
  ((TextLogger *) hook)->last_line = rn_record_int (state, "last_line", 0);
  return TRUE;
}

static gboolean
write_json (TextLogger *self, const RnRecord *record, GError **error)
{
  g_autofree char *line = rn_record_to_json (record, 9);

  /* Flushed, so that a run that is killed leaves its last line. */
  if (fprintf (self->json, "%s\n", line) < 0 || fflush (self->json) != 0)
    return rn_hook_error (error, "writing the JSON log: %s", g_strerror (errno));
  return TRUE;
}

/* Seconds that an iteration took since the line before. */
static double
recent_iter_s (const TextLogger *self, const RnRunner *runner, gint64 now)
{
  return (double) (now - self->clock_us) / 1e6
         / (double) MAX (rn_runner_iter (runner) + 1 - self->clock_iter, 1);
}

static void
update_clock (TextLogger *self, const RnRunner *runner)
{
  gint64 now = g_get_monotonic_time (), iter = rn_runner_iter (runner) + 1;
  double iter_s = recent_iter_s (self, runner, now);

  self->iter_s = self->iter_s == 0 ? iter_s : (1 - NEW_PART) * self->iter_s + NEW_PART * iter_s;
  self->clock_us = now;
  self->clock_iter = iter;
}

static void
add_mean (const char *name, double mean, gpointer user_data)
{
  rn_record_set_float (user_data, name, mean);
}

/* The means of the iterations since the last line; never further back than the interval, nor into the epoch
 * before. */
static RnRecord *
make_means (const TextLogger *self, const RnRunner *runner)
{
  RnRecord *means = rn_record_new ();
  gint64 n = MIN (self->interval, rn_runner_iter (runner) + 1 - self->last_line);

  if (counts_epochs (self, runner))
    n = MIN (n, rn_runner_inner_iter (runner) + 1);
  rn_runner_foreach_log (runner, n, add_mean, means);
  return means;
}

static void
print_train (const TextLogger *self, RnRunner *runner, const RnRecord *means, double eta_s, guint64 peak)
{
  g_autoptr (GString) line = g_string_new (NULL);
  g_autofree char *eta = rn_format_duration (eta_s);

  if (counts_epochs (self, runner))
    g_string_append_printf (line, "Epoch [%" G_GINT64_FORMAT "][%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "]\t",
                            rn_runner_epoch (runner) + 1, rn_runner_inner_iter (runner) + 1,
                            rn_runner_epoch_length (runner));
  else
    g_string_append_printf (line, "Iter [%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "]\t",
                            rn_runner_iter (runner) + 1, rn_runner_max_iters (runner));
  g_string_append_printf (line, "lr: %.3e, eta: %s", rn_runner_lr (runner), eta);
  if (rn_record_is_float (means, "time"))
    g_string_append_printf (line, ", time: %.3f, data_time: %.3f", rn_record_float (means, "time", 0),
                            rn_record_float (means, "data_time", 0));
  g_string_append_printf (line, ", memory: %" G_GUINT64_FORMAT, peak >> 20);
  for (guint i = 0; i < rn_record_size (means); i++)
    {
      const char *name = rn_record_name (means, i);
      if (!g_str_equal (name, "time") && !g_str_has_suffix (name, "_time"))
        g_string_append_printf (line, ", %s: %.4f", name, rn_record_float (means, name, 0));
    }
  g_message ("%s", line->str);
}

static GArray *
group_lrs (const RnRunner *runner)
{
  GArray *lrs = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < rn_runner_n_groups (runner); i++)
    {
      double lr = rn_runner_group_lr (runner, i);
      g_array_append_val (lrs, lr);
    }
  return lrs;
}

static gboolean
json_train (TextLogger *self, RnRunner *runner, const RnRecord *means, double eta_s, guint64 current,
            guint64 peak, GError **error)
{
  g_autoptr (RnRecord) record = rn_record_new ();
  g_autoptr (GArray) lrs = group_lrs (runner);

  rn_record_set_string (record, "mode", "train");
  rn_record_set_int (record, "epoch", rn_runner_epoch (runner) + 1);
  rn_record_set_int (record, "iter", rn_runner_iter (runner) + 1);
  rn_record_set_int (record, "inner_iter", rn_runner_inner_iter (runner) + 1);
  rn_record_set_int (record, "opt_step", rn_runner_opt_step (runner));
  rn_record_set_float (record, "lr", rn_runner_lr (runner));
  if (lrs->len > 1)
    rn_record_set_floats (record, "group_lrs", (const double *) (gconstpointer) lrs->data, lrs->len);
  rn_record_set_float (record, "eta_s", eta_s);
  rn_record_set_int (record, "memory", (gint64) (peak >> 20)); /* MiB */
  rn_record_set_int (record, "memory_current", (gint64) (current >> 20));
  for (guint i = 0; i < rn_record_size (means); i++)
    rn_record_set_float (record, rn_record_name (means, i),
                         rn_record_float (means, rn_record_name (means, i), 0));
  return write_json (self, record, error);
}

static gboolean
log_train (TextLogger *self, RnRunner *runner, GError **error)
{
  g_autoptr (RnRecord) means = make_means (self, runner);
  guint64 current, peak;

  update_clock (self, runner);
  rn_runner_memory (runner, &current, &peak);
  double eta_s = self->iter_s * (double) (rn_runner_max_iters (runner) - rn_runner_iter (runner) - 1);
  print_train (self, runner, means, eta_s, peak);
  self->last_line = rn_runner_iter (runner) + 1;
  return json_train (self, runner, means, eta_s, current, peak, error);
}

/* The result of an evaluation in this stage, if there was one. */
static gboolean
log_scores (TextLogger *self, RnRunner *runner, GError **error)
{
  const RnRecord *scores = rn_runner_scores (runner);
  if (scores == NULL)
    return TRUE;

  g_autoptr (GString) line = g_string_new (NULL);
  g_autoptr (RnRecord) record = rn_record_new ();
  rn_record_set_string (record, "mode", "val");
  if (counts_epochs (self, runner))
    g_string_append_printf (line, "Epoch(val) [%" G_GINT64_FORMAT "][%" G_GINT64_FORMAT "]",
                            rn_record_int (scores, "epoch", 0), rn_record_int (scores, "n_images", 0));
  else
    g_string_append_printf (line, "Iter(val) [%" G_GINT64_FORMAT "]", rn_record_int (scores, "iter", 0));
  for (guint i = 0, n = 0; i < rn_record_size (scores); i++)
    {
      const char *name = rn_record_name (scores, i);
      if (rn_record_is_float (scores, name))
        {
          g_string_append_printf (line, "%s%s: %.4f", n++ == 0 ? "\t" : ", ", name,
                                  rn_record_float (scores, name, 0));
          rn_record_set_float (record, name, rn_record_float (scores, name, 0));
        }
      else
        rn_record_set_int (record, name, rn_record_int (scores, name, 0));
    }
  g_message ("%s", line->str);
  return write_json (self, record, error);
}

static void
show_status (TextLogger *self, RnRunner *runner)
{
  gint64 now = g_get_monotonic_time ();
  if (now - self->status_us < STATUS_US)
    return;
  self->status_us = now;

  double iter_s = self->iter_s > 0 ? self->iter_s : recent_iter_s (self, runner, now);
  gint64 iter = rn_runner_iter (runner) + 1, max = rn_runner_max_iters (runner);
  g_autofree char *eta = rn_format_duration (iter_s * (double) (max - iter));
  g_autofree char *text =
      g_strdup_printf ("iteration %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT ", loss %.4f, %s to go", iter, max,
                       rn_runner_loss (runner, "loss"), eta);
  rn_runner_show_status (runner, text);
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;
  g_autofree char *name = g_strconcat (rn_runner_timestamp (runner), ".log.json", NULL);
  g_autofree char *path = g_build_filename (rn_runner_work_dir (runner), name, NULL);
  g_autoptr (RnRecord) meta = rn_runner_describe (runner);

  self->json = fopen (path, "ae");
  if (self->json == NULL)
    return rn_hook_error (error, "%s: %s", path, g_strerror (errno));
  self->clock_us = g_get_monotonic_time ();
  self->clock_iter = rn_runner_iter (runner);
  return write_json (self, meta, error) && log_scores (self, runner, error);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  TextLogger *self = (TextLogger *) hook;
  gboolean is_due = counts_epochs (self, runner) ? rn_runner_every_n_inner_iters (runner, self->interval)
                                                 : rn_runner_every_n_iters (runner, self->interval);
  gint64 epoch_start = rn_runner_iter (runner) - rn_runner_inner_iter (runner);

  if (rn_runner_is_end_of_epoch (runner) || rn_runner_is_last_iter (runner))
    is_due |= !self->ignore_last || self->last_line <= epoch_start;
  show_status (self, runner);
  return (!is_due || log_train (self, runner, error)) && log_scores (self, runner, error);
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  return log_scores ((TextLogger *) hook, runner, error);
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
                .after_train_iter = after_train_iter, .after_train_epoch = after_train_epoch,
                .after_run = after_run);
