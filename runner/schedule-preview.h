/* schedule-preview.h: learning rate and momentum of a run without the run: the hooks that set them, around
 * steps that do nothing. */
#ifndef RUNNER_SCHEDULE_PREVIEW_H
#define RUNNER_SCHEDULE_PREVIEW_H

#include "runner/run-config.h"

G_BEGIN_DECLS

/* What a step was done with. */
typedef struct
{
  gint64 iter; /* that it came in, from 0 */
  double lr;   /* of parameters whose lr_mult is 1 */
  double momentum;
} RnPreviewStep;

typedef struct
{
  gboolean is_by_epoch;
  gint64 epoch_length, max_iters;
  GArray *steps; /* of RnPreviewStep: some thousands of them, the first and the last too */
} RnSchedulePreview;

/**
 * rn_schedule_preview_new:
 * @config: the parts optimizer and runner are needed, lr_config, momentum_config, optimizer_config and
 * auto_scale_lr are used
 * @batch_size: images of an iteration
 * @epoch_length: iterations of one pass of the data
 *
 * Errors: RN_CONFIG_ERROR; also for a run of more than ten million iterations.
 */
RnSchedulePreview *rn_schedule_preview_new (const RnNode *root, const RnRunConfig *config, gint64 batch_size,
                                            gint64 epoch_length, GError **error);
void rn_schedule_preview_free (RnSchedulePreview *preview);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSchedulePreview, rn_schedule_preview_free)

G_END_DECLS

#endif
