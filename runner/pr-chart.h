/* pr-chart.h: precision over recall of each class, as a picture. */
#ifndef RUNNER_PR_CHART_H
#define RUNNER_PR_CHART_H

#include <runner/engine.h>

G_BEGIN_DECLS

/*
 * One panel for each IoU threshold of @evaluation, whose curves were kept (RnEvalOptions.keep_curves); the
 * legend has each class with objects and its average precision, best first. G_FILE_ERROR with the path.
 */
gboolean rn_pr_chart_write (const RnEvaluation *evaluation, const char *const *class_names, const char *path,
                            GError **error);

G_END_DECLS

#endif
