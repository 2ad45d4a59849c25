/* scan.h: one function over many items in threads, with progress. */
#ifndef RUNNER_DATASETS_SCAN_H
#define RUNNER_DATASETS_SCAN_H

#include "datasets/dataset.h"

G_BEGIN_DECLS

/* Called from several threads, for every item once, in any order. */
typedef gboolean (*RnScanVisit) (gpointer data, int64_t item, GError **error);

/*
 * Visits items 0 to @n - 1 with options->n_threads threads. After a failure no item is begun; of several
 * failures the one of the lowest item is reported, so that the message does not depend on the threads. @what
 * goes to options->progress.
 */
gboolean rn_scan (int64_t n, RnScanVisit visit, gpointer data, const char *what,
                  const RnDatasetOptions *options, GError **error);

G_END_DECLS

#endif
