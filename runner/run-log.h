/*
 * run-log.h: reads back the JSON-lines logs of a run (hooks/text-logger.c). They may be anything: cut off,
 * damaged, huge, of a run that was killed and taken up three times.
 */
#ifndef RUNNER_RUN_LOG_H
#define RUNNER_RUN_LOG_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  gint64 iter;  /* finished iterations */
  double value; /* NaN: the log says null */
} RnLogPoint;

/* One number of the lines of a kind, by rising iteration, each iteration once. */
typedef struct
{
  char *name;
  GArray *points; /* of RnLogPoint, never empty */
} RnLogSeries;

typedef struct
{
  char *path; /* as given */
  char *name; /* last part of the path */
  guint n_files;
  char *started;     /* (nullable) time stamp of the first log */
  gint64 first_iter; /* iterations that were done when the first log began */
  gint64 max_iters;  /* of the whole run; 0: unknown */
  GPtrArray *train;  /* of RnLogSeries, in the order of first use: "lr", "loss", "time", ... */
  GPtrArray *val;    /* of RnLogSeries: "epoch", "n_images", "mAP", ...; "loss" of a val workflow */
  GPtrArray *notes;  /* of char *: what was left out, each with file:line */
} RnRunLog;

/**
 * rn_run_log_read:
 * @path: a work dir, whose *.log.json are read in the order of their start; or one such file
 *
 * Logs are joined: a run that was taken up at iteration k replaces what the ones before say of later
 * iterations, in a file of its own or behind them in one file. A line that cannot be read is left out and
 * noted. RN_DATA_ERROR_MISSING when there is no log.
 */
RnRunLog *rn_run_log_read (const char *path, GError **error);
void rn_run_log_free (RnRunLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnRunLog, rn_run_log_free)

/* NULL if there is none. Lent. */
const RnLogSeries *rn_log_find (const GPtrArray *series, const char *name);

/* What a series is, by its name: a loss or a part of it; a score of an evaluation, among those of `val`. */
gboolean rn_log_is_loss (const char *name);
gboolean rn_log_is_score (const char *name);

G_END_DECLS

#endif
