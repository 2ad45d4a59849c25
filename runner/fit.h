/* fit.h: a run that would not fit does not start, and says what would. */
#ifndef RUNNER_FIT_H
#define RUNNER_FIT_H

#include "runner/job.h"

G_BEGIN_DECLS

/*
 * rn_job_check_fit:
 * @job: with planned programs
 * @other_bytes: that the run takes beside them: loaders
 *
 * Errors: RN_DEVICE_ERROR_MEMORY when the run needs more than is free, with the lines that cost the least
 * time of those that make it fit, or, if none do, with the smallest plan and a batch that fits. Likewise when
 * the host has not what a device with memory of its own leaves to it.
 */
gboolean rn_job_check_fit (const RnJob *job, gsize other_bytes, GError **error);

G_END_DECLS

#endif
