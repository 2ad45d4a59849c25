/* check.h: what is wrong in a configuration, as far as the file alone can say. */
#ifndef RUNNER_CHECK_H
#define RUNNER_CHECK_H

#include "runner/job.h"

G_BEGIN_DECLS

/*
 * Makes every part that the file names and drops it again: optimizer, runner, hooks, model, and the
 * transforms of each data set; no file of the data is opened but a list of classes. Parts that the file
 * leaves out are not missed. So nobody waits for a large data set to learn of a misspelt key. Errors:
 * RN_CONFIG_ERROR with file:line.
 */
gboolean rn_job_check (const RnJob *job, GError **error);

G_END_DECLS

#endif
