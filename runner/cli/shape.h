/* shape.h: the batch shape that plan and bench work on: from --shape and --batch, or from the data set. */
#ifndef RUNNER_CLI_SHAPE_H
#define RUNNER_CLI_SHAPE_H

#include "runner/job.h"

G_BEGIN_DECLS

/* "608x1024" to height and width, 1 to 65536 each. RN_CONFIG_ERROR_USAGE. */
gboolean rn_shape_parse (const char *text, int *height, int *width, GError **error);

/*
 * Opens the model and the programs of @job for training: of @text ("HxW") if given, else of every shape that
 * the training set can form (and, with
 * @evaluation, those of the validation set for inference). @batch: 0 for that of the file. Plans them all.
 */
gboolean rn_job_open_shapes (RnJob *job, const char *text, int batch, gboolean evaluation, gboolean check,
                             GError **error);

G_END_DECLS

#endif
