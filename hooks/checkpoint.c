/* checkpoint.c: when to save, and how many files to keep: MMCV's CheckpointHook. */
#include "config.h"

#include <runner/engine.h>

#include <errno.h>

typedef struct
{
  RnHook hook;
  gint64 interval, max_keep_ckpts;
  int by_epoch; /* index into auto_names */
  gboolean save_optimizer, save_last;
  char *out_dir;
  char *dir; /* out_dir/NAME-OF-WORK-DIR, or NULL */
} CheckpointHook;

static const char *const auto_names[] = { "false", "true", "auto", NULL };

enum
{
  BY_ITER,
  BY_EPOCH,
  BY_RUNNER,
};

static const RnKeySpec keys[] = {
  RN_KEY (CheckpointHook, interval, RN_KEY_INT, "-1",
          "epochs or iterations between two checkpoints; -1: only the last", .min = -1, .max = 1e12),
  RN_KEY (CheckpointHook, by_epoch, RN_KEY_ENUM, "auto",
          "interval counts epochs, not iterations; auto: as the runner does", .names = auto_names),
  RN_KEY (CheckpointHook, save_optimizer, RN_KEY_BOOL, "true",
          "with the momentum, without which no run can be taken up exactly"),
  RN_KEY (CheckpointHook, save_last, RN_KEY_BOOL, "true", "also at the end of the run"),
  RN_KEY (CheckpointHook, max_keep_ckpts, RN_KEY_INT, "-1", "files to keep; -1: all", .min = -1, .max = 1e6),
  RN_KEY (CheckpointHook, out_dir, RN_KEY_STRING, "null",
          "write to out_dir/(name of the work dir); null: to the work dir", .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  CheckpointHook *self = (CheckpointHook *) hook;

  if (self->max_keep_ckpts == 0)
    return rn_node_error (hook->config, error,
                          "max_keep_ckpts: 0 would keep nothing; -1 keeps all, and without a "
                          "checkpoint_config none is written");
  if (self->out_dir != NULL)
    {
      g_autofree char *name = g_path_get_basename (rn_runner_work_dir (runner));
      self->dir = g_build_filename (self->out_dir, name, NULL);
      /* Now, and not when the first epoch is done. */
      if (g_mkdir_with_parents (self->dir, 0777) != 0)
        return rn_node_error (hook->config, error, "out_dir: %s: %s", self->dir, g_strerror (errno));
    }
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_free (((CheckpointHook *) hook)->dir);
}

static gboolean
counts_epochs (const CheckpointHook *self, const RnRunner *runner)
{
  return self->by_epoch == BY_RUNNER ? rn_runner_is_by_epoch (runner) : self->by_epoch == BY_EPOCH;
}

static void
request (CheckpointHook *self, RnRunner *runner, const char *unit, gint64 number)
{
  g_autofree char *name = g_strdup_printf ("%s_%" G_GINT64_FORMAT ".safetensors", unit, number);
  RnCheckpointRequest checkpoint = {
    .dir = self->dir,
    .name = name,
    .save_optimizer = self->save_optimizer,
    .max_keep = MAX (self->max_keep_ckpts, 0),
  };
  rn_runner_request_checkpoint (runner, &self->hook, &checkpoint);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  CheckpointHook *self = (CheckpointHook *) hook;
  gboolean is_last = self->save_last && rn_runner_is_last_iter (runner);

  /* A run counted in iterations may end in the middle of an epoch. */
  if (counts_epochs (self, runner) ? is_last && !rn_runner_is_end_of_epoch (runner)
                                   : is_last || rn_runner_every_n_iters (runner, self->interval))
    request (self, runner, "iter", rn_runner_iter (runner) + 1);
  return TRUE;
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  CheckpointHook *self = (CheckpointHook *) hook;

  if (counts_epochs (self, runner)
      && (rn_runner_every_n_epochs (runner, self->interval)
          || (self->save_last && rn_runner_is_last_epoch (runner))))
    request (self, runner, "epoch", rn_runner_epoch (runner) + 1);
  return TRUE;
}

RN_HOOK_DEFINE (checkpoint, CheckpointHook, .name = "CheckpointHook",
                .summary = "saves the run every so many epochs or iterations", .keys = keys, .init = init,
                .clear = clear, .after_train_iter = after_train_iter, .after_train_epoch = after_train_epoch);
