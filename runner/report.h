/* report.h: what became of a run, in words and as a picture. */
#ifndef RUNNER_REPORT_H
#define RUNNER_REPORT_H

#include "runner/run-log.h"

G_BEGIN_DECLS

/*
 * Lines: logs, iterations, losses, every score with its last and best value, seconds of an iteration, memory.
 * (transfer full)
 */
char *rn_report_text (const RnRunLog *log);

/* Whether @log has no line of a training or an evaluation: there is nothing to draw. */
gboolean rn_report_is_empty (const RnRunLog *log);

/*
 * One picture of all @logs (of RnRunLog), each with its name where there are several: loss, average
 * precision, learning rate, time of an iteration, memory, norm of the gradients. G_FILE_ERROR with the path.
 */
gboolean rn_report_draw (const GPtrArray *logs, const char *path, GError **error);

G_END_DECLS

#endif
