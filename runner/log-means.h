/* log-means.h: weighted means of what is logged while validating, over the running pass. */
#ifndef RUNNER_LOG_MEANS_H
#define RUNNER_LOG_MEANS_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct _RnLogMeans RnLogMeans;

RnLogMeans *rn_log_means_new (void);
void rn_log_means_free (RnLogMeans *means);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnLogMeans, rn_log_means_free)

/* @weight: images that @value is the mean of, above 0. */
void rn_log_means_add (RnLogMeans *means, const char *name, double value, double weight);
/* Begins anew; the names keep their order. */
void rn_log_means_reset (RnLogMeans *means);
/* Names with a value since the last reset, in the order of first use. */
void rn_log_means_foreach (const RnLogMeans *means, RnLogFunc func, gpointer user_data);
/* NAN if there is none. */
double rn_log_means_get (const RnLogMeans *means, const char *name);

G_END_DECLS

#endif
