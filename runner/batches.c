#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/batches.h"

#include "runner/base/error.h"

#include <math.h>

#define MAX_BATCH (1 << 24)

RnBatches
rn_batches_of (const RnRunner *runner)
{
  return (RnBatches){ .batch_size = runner->task->batch_size,
                      .world_size = 1,
                      .epoch_length = runner->task->epoch_length,
                      .max_iters = runner->max_iters,
                      .lr = rn_optimizer_lr (runner->optimizer) };
}

void
rn_batches_save (const RnBatches *batches, RnRecord *record)
{
  rn_record_set_int (record, "batch_size", batches->batch_size);
  rn_record_set_int (record, "world_size", batches->world_size);
  rn_record_set_int (record, "epoch_length", batches->epoch_length);
  rn_record_set_int (record, "max_iters", batches->max_iters);
  rn_record_set_float (record, "lr", batches->lr);
}

gboolean
rn_batches_load (RnBatches *batches, const RnRecord *record, GError **error)
{
  batches->batch_size = rn_record_int (record, "batch_size", -1);
  batches->world_size = rn_record_int (record, "world_size", 1);
  batches->epoch_length = rn_record_int (record, "epoch_length", -1);
  batches->max_iters = rn_record_int (record, "max_iters", -1);
  batches->lr = rn_record_float (record, "lr", NAN);
  if (batches->batch_size >= 1 && batches->batch_size <= MAX_BATCH && batches->world_size >= 1
      && batches->world_size <= MAX_BATCH && batches->epoch_length >= 1)
    return TRUE;
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
               "its batch size, processes and epoch length are no such numbers");
  return FALSE;
}

/* Images of one iteration. */
static gint64
total (const RnBatches *batches)
{
  return batches->batch_size * batches->world_size;
}

gboolean
rn_batches_match (const RnBatches *a, const RnBatches *b)
{
  return total (a) == total (b) && a->epoch_length == b->epoch_length;
}

gboolean
rn_batches_refuse (const RnBatches *was, const RnBatches *now, GError **error)
{
  static const char *allow = "resume.allow_batch_change=true";

  if (was->world_size != now->world_size)
    g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                 "it was made by %" G_GINT64_FORMAT " processes with %" G_GINT64_FORMAT
                 " images in a batch each, this is %" G_GINT64_FORMAT " with %" G_GINT64_FORMAT
                 "; what goes on all the same, from the images that are done: --set %s",
                 was->world_size, was->batch_size, now->world_size, now->batch_size, allow);
  else if (was->batch_size != now->batch_size)
    g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
                 "it was made with %" G_GINT64_FORMAT
                 " images in a batch, the configuration has %" G_GINT64_FORMAT
                 "; what works: data.samples_per_gpu: %" G_GINT64_FORMAT
                 "; what goes on all the same, from the images that are done: --set %s",
                 was->batch_size, now->batch_size, was->batch_size, allow);
  else
    g_set_error (
        error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH,
        "an epoch had %" G_GINT64_FORMAT " iterations when it was made and has %" G_GINT64_FORMAT
        " now: the training set is another one; what goes on all the same, from as many images: --set %s",
        was->epoch_length, now->epoch_length, allow);
  return FALSE;
}

gboolean
rn_batches_convert (const RnBatches *was, const RnBatches *now, RnCounters *counters, gint64 *n_again)
{
  gint64 n_done, before;

  *n_again = 0;
  if (counters->inner_iter == was->epoch_length)
    counters->inner_iter = now->epoch_length; /* all of it, be the last batch full or not */
  else if (__builtin_mul_overflow (counters->inner_iter, total (was), &n_done))
    return FALSE;
  else
    {
      counters->inner_iter = MIN (n_done / total (now), now->epoch_length);
      *n_again = n_done - counters->inner_iter * total (now);
      if (counters->inner_iter == now->epoch_length) /* of a smaller data set */
        *n_again = 0;
    }
  return !__builtin_mul_overflow (counters->epoch, now->epoch_length, &before)
         && !__builtin_add_overflow (before, counters->inner_iter, &counters->iter);
}

void
rn_batches_report (const RnBatches *was, const RnBatches *now, const RnCounters *from, const RnCounters *to,
                   gint64 n_again)
{
  g_message ("resume: images in an iteration: %" G_GINT64_FORMAT " in the checkpoint, %" G_GINT64_FORMAT
             " now",
             total (was), total (now));
  g_message ("resume: iterations of an epoch: %" G_GINT64_FORMAT " in the checkpoint, %" G_GINT64_FORMAT
             " now; of the run: %" G_GINT64_FORMAT " in the checkpoint, %" G_GINT64_FORMAT " now",
             was->epoch_length, now->epoch_length, was->max_iters, now->max_iters);
  g_message ("resume: learning rate: %g in the checkpoint, %g now%s", was->lr, now->lr,
             was->lr == now->lr && total (was) != total (now)
                 ? "; the usual recipe changes it with the images in an iteration"
                 : "");
  g_message ("resume: iteration %" G_GINT64_FORMAT " (%" G_GINT64_FORMAT " of epoch %" G_GINT64_FORMAT
             ") becomes iteration %" G_GINT64_FORMAT " (%" G_GINT64_FORMAT "): %" G_GINT64_FORMAT
             " images of this epoch are done again. The order of an epoch depends on the batches, so some "
             "more may come "
             "twice, and some not at all. Means in the log start anew",
             from->iter, from->inner_iter, from->epoch + 1, to->iter, to->inner_iter, n_again);
}
