/* batches.h: how a run cuts its data into batches, and where it stands when they are cut in another way. */
#ifndef RUNNER_BATCHES_H
#define RUNNER_BATCHES_H

#include "runner/runner-private.h"

G_BEGIN_DECLS

typedef struct
{
  gint64 batch_size;   /* images in the batch of one process */
  gint64 world_size;   /* processes */
  gint64 epoch_length; /* iterations */
  gint64 max_iters;    /* of the run; to be shown only */
  double lr;           /* the base learning rate; to be shown only */
} RnBatches;

RnBatches rn_batches_of (const RnRunner *runner);
void rn_batches_save (const RnBatches *batches, RnRecord *record);
/* RN_CHECKPOINT_ERROR_DAMAGED. A record without a number of processes is of one. */
gboolean rn_batches_load (RnBatches *batches, const RnRecord *record, GError **error);

/* Are iterations of @a and @b the same number of images, as many in an epoch? */
gboolean rn_batches_match (const RnBatches *a, const RnBatches *b);
/* Refuses @was for @now, with the switch that allows it. RN_CHECKPOINT_ERROR_MISMATCH. Always FALSE. */
gboolean rn_batches_refuse (const RnBatches *was, const RnBatches *now, GError **error);

/*
 * Turns @counters of a run with @was, whose inner_iter is at most its epoch_length, into those with @now. The
 * epoch stays; of its images as many whole batches count as done as there were done. *@n_again: images of the
 * epoch that are done and will come again. FALSE when the numbers are too large.
 */
gboolean rn_batches_convert (const RnBatches *was, const RnBatches *now, RnCounters *counters,
                             gint64 *n_again);
/* The numbers of both, and what the change costs, as messages. */
void rn_batches_report (const RnBatches *was, const RnBatches *now, const RnCounters *from,
                        const RnCounters *to, gint64 n_again);

G_END_DECLS

#endif
