/* checkpoint.c: when to save, and how many files to keep: MMCV's CheckpointHook. */
#include "config.h"

#include "hooks/counting.h"
#include "hooks/unused-key.h"

typedef struct
{
  RnHook hook;
  gint64 interval, save_begin, max_keep_ckpts, keep_best_k;
  int by_epoch; /* RN_BY_* */
  gboolean save_optimizer, save_last;
  char *out_dir;
  char *dir; /* of out_dir, or NULL */
} CheckpointHook;

static const RnKeySpec keys[] = {
  RN_KEY (CheckpointHook, interval, RN_KEY_INT, "-1",
          "epochs or iterations between two checkpoints; -1: only the last", .min = -1, .max = 1e12),
  RN_KEY (CheckpointHook, by_epoch, RN_KEY_ENUM, "auto",
          "interval counts epochs, not iterations; auto: as the runner does", .names = rn_by_epoch_names),
  RN_KEY (CheckpointHook, save_begin, RN_KEY_INT, "0",
          "the interval counts from this epoch or iteration, and nothing is saved before it but the last",
          .max = 1e12),
  RN_KEY (CheckpointHook, save_optimizer, RN_KEY_BOOL, "true",
          "with the momentum, without which no run can be taken up exactly"),
  RN_KEY (CheckpointHook, save_last, RN_KEY_BOOL, "true", "also at the end of the run"),
  RN_KEY (CheckpointHook, max_keep_ckpts, RN_KEY_INT, "-1",
          "files to keep, the newest ones; -1: all. The best ones of evaluation.save_best do not count",
          .min = -1, .max = 1e6),
  RN_KEY (CheckpointHook, keep_best_k, RN_KEY_INT, "1",
          "best files to keep for evaluation.save_best, if that does not say it itself", .min = 1,
          .max = 1000),
  RN_KEY (CheckpointHook, out_dir, RN_KEY_STRING, "null",
          "write to out_dir/(name of the work dir); null: to the work dir", .flags = RN_KEY_NULLABLE),
  RN_UNUSED_KEY ("create_symlink", "latest.safetensors is a link where links work, else there is a warning"),
  RN_UNUSED_KEY ("file_client_args", "files go to the file system"),
  RN_UNUSED_KEY ("filename_tmpl", "names are epoch_N.safetensors and iter_N.safetensors"),
  RN_UNUSED_KEY ("meta", "a checkpoint holds the configuration and all counters"),
  RN_UNUSED_KEY ("published_keys", "`runner convert` writes the weights alone"),
  RN_UNUSED_KEY ("sync_buffer", "there is one process"),
  RN_KEY_END,
};

static gboolean
prepare (RnHook *hook, RnWants *wants, GError **error)
{
  if (((const CheckpointHook *) hook)->max_keep_ckpts != 0)
    return TRUE;
  return rn_node_error (rn_node_get (hook->config, "max_keep_ckpts"), error,
                        "0 would keep nothing; -1 keeps all, and without a "
                        "checkpoint_config none is written");
}

static gboolean
init (RnHook *hook, RnRunner *runner, GError **error)
{
  CheckpointHook *self = (CheckpointHook *) hook;

  rn_runner_set_keep_best (runner, (guint) self->keep_best_k);
  if (self->out_dir == NULL)
    return TRUE;
  /* Now, and not when the first epoch is done. */
  self->dir = rn_runner_make_out_dir (runner, self->out_dir, hook->config, error);
  if (self->dir == NULL)
    return FALSE;
  rn_runner_set_checkpoint_dir (runner, self->dir);
  return TRUE;
}

static void
clear (RnHook *hook)
{
  g_free (((CheckpointHook *) hook)->dir);
}

static gboolean
before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  return rn_runner_settle_checkpoints (runner, MAX (((CheckpointHook *) hook)->max_keep_ckpts, 0), error);
}

/* @n: finished epochs or iterations, the running one included. */
static gboolean
is_due (const CheckpointHook *self, gint64 n)
{
  return self->interval > 0 && n > 0 && n >= self->save_begin && (n - self->save_begin) % self->interval == 0;
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
  if (rn_counts_epochs (self->by_epoch, runner) ? is_last && !rn_runner_is_end_of_epoch (runner)
                                                : is_last || is_due (self, rn_runner_iter (runner) + 1))
    request (self, runner, "iter", rn_runner_iter (runner) + 1);
  return TRUE;
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  CheckpointHook *self = (CheckpointHook *) hook;

  if (rn_counts_epochs (self->by_epoch, runner)
      && (is_due (self, rn_runner_epoch (runner) + 1)
          || (self->save_last && rn_runner_is_last_epoch (runner))))
    request (self, runner, "epoch", rn_runner_epoch (runner) + 1);
  return TRUE;
}

RN_HOOK_DEFINE (checkpoint, CheckpointHook, .name = "CheckpointHook",
                .summary = "saves the run every so many epochs or iterations", .keys = keys,
                .prepare = prepare, .init = init, .clear = clear, .before_run = before_run,
                .after_train_iter = after_train_iter, .after_train_epoch = after_train_epoch);
