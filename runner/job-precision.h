/* job-precision.h: what `fp16:` and `fp16_enabled` come to for the model of a job. */
#ifndef RUNNER_JOB_PRECISION_H
#define RUNNER_JOB_PRECISION_H

#include "runner/job.h"

G_BEGIN_DECLS

/* For the passes, from the open model on. What it points to is the job's. */
RnAmpOptions rn_job_amp_options (const RnJob *job);
/* (transfer container): the modules in single precision, lent, NULL-ended */
const char **rn_job_single_modules (const RnJob *job);
/*
 * Are the modules of the lists there, and is anything in half where it should be? @graph: of the job's
 * model, after the passes. Says what the run computes in.
 */
gboolean rn_job_check_precision (const RnJob *job, const RnGraph *graph, GError **error);

G_END_DECLS

#endif
