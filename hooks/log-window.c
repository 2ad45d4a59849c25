#include "config.h"

#include "hooks/log-window.h"

void
rn_log_window_init (RnLogWindow *window, RnHook *hook, RnRunner *runner)
{
  if (!rn_runner_starts_with_evaluation (runner))
    rn_hook_keep_stages (hook, ~(1u << RN_STAGE_BEFORE_TRAIN_ITER));
  if (window->interval == RN_NULL_INT)
    window->interval = rn_runner_log_interval (runner);
  rn_runner_reserve_log (runner, window->interval);
}

gboolean
rn_log_window_counts_epochs (const RnLogWindow *window, const RnRunner *runner)
{
  return rn_counts_epochs (window->by_epoch, runner);
}

gboolean
rn_log_window_is_due (const RnLogWindow *window, const RnRunner *runner)
{
  gboolean is_due = rn_log_window_counts_epochs (window, runner)
                        ? rn_runner_every_n_inner_iters (runner, window->interval)
                        : rn_runner_every_n_iters (runner, window->interval);
  gint64 epoch_start = rn_runner_iter (runner) - rn_runner_inner_iter (runner);

  if (rn_runner_is_end_of_epoch (runner) || rn_runner_is_last_iter (runner))
    is_due |= !window->ignore_last || window->last_line <= epoch_start
              || window->last_line > rn_runner_iter (runner);
  return is_due;
}

static void
add_mean (const char *name, double mean, gpointer user_data)
{
  rn_record_set_float (user_data, name, mean);
}

RnRecord *
rn_log_window_means (const RnLogWindow *window, const RnRunner *runner)
{
  RnRecord *means = rn_record_new ();
  gint64 n = rn_runner_iter (runner) + 1 - window->last_line;

  /* After a resume with larger batches the last line may lie ahead. */
  n = n > 0 ? MIN (n, window->interval) : window->interval;
  if (rn_log_window_counts_epochs (window, runner))
    n = MIN (n, rn_runner_inner_iter (runner) + 1);
  rn_runner_foreach_log (runner, n, add_mean, means);
  return means;
}

void
rn_log_window_close (RnLogWindow *window, const RnRunner *runner)
{
  window->last_line = rn_runner_iter (runner) + 1;
}

RnRecord *
rn_log_val_means (const RnRunner *runner)
{
  RnRecord *means = rn_record_new ();
  rn_runner_foreach_log (runner, G_MAXINT64, add_mean, means);
  return means;
}

void
rn_log_window_save (const RnLogWindow *window, RnRecord *state)
{
  rn_record_set_int (state, "last_line", window->last_line);
}

void
rn_log_window_load (RnLogWindow *window, const RnRecord *state)
{
  window->last_line = CLAMP (rn_record_int (state, "last_line", 0), 0, G_MAXINT64 / 2);
}
