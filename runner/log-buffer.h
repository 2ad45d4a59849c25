/*
 * log-buffer.h: the last values of everything that is logged, by name and iteration.
 *
 * A mean is taken over iterations, not over entries: a value that is logged once in a while does not reach
 * further back than the others. Each name has a ring of its own, so the memory does not grow with the run.
 */
#ifndef RUNNER_LOG_BUFFER_H
#define RUNNER_LOG_BUFFER_H

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct _RnLogBuffer RnLogBuffer;

RnLogBuffer *rn_log_buffer_new (void);
void rn_log_buffer_free (RnLogBuffer *buffer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnLogBuffer, rn_log_buffer_free)

/* More would not fit into the header of a checkpoint, of which the format allows 100 MB. */
#define RN_LOG_MAX_ITERS 100000

/* Keeps at least @n_iters iterations of what is logged once an iteration, but no more than RN_LOG_MAX_ITERS.
 * Before the first value. */
void rn_log_buffer_reserve (RnLogBuffer *buffer, gint64 n_iters);
/* @iter: 0-based number of the iteration; must not go back for a name. */
void rn_log_buffer_push (RnLogBuffer *buffer, const char *name, gint64 iter, double value);
/* The same for a count or a scale: its last value stands for the mean. */
void rn_log_buffer_push_latest (RnLogBuffer *buffer, const char *name, gint64 iter, double value);
/* Names that are new from now on go in front of number @place, one after the other; at the end if there are
 * no more than that. */
void rn_log_buffer_set_place (RnLogBuffer *buffer, guint place);
gboolean rn_log_buffer_is_latest (const RnLogBuffer *buffer,
                                  const char *name); /* FALSE for an unknown name */
/* Means over the iterations [@end - @n_iters, @end), for names that have a value there, in the order of first
 * use. */
void rn_log_buffer_foreach (const RnLogBuffer *buffer, gint64 end, gint64 n_iters, RnLogFunc func,
                            gpointer user_data);

/* The same of one name; NAN if it has no value there. */
double rn_log_buffer_mean (const RnLogBuffer *buffer, const char *name, gint64 end, gint64 n_iters);

/* Names in the order of first use. Lent. */
guint rn_log_buffer_size (const RnLogBuffer *buffer);
const char *rn_log_buffer_name (const RnLogBuffer *buffer, guint i);
/* The window of name @i: lists "iters" and "values", and "latest" where the last value stands for the mean.
 * (transfer full) */
RnRecord *rn_log_buffer_save (const RnLogBuffer *buffer, guint i);
/* Puts such a window back. */
void rn_log_buffer_load (RnLogBuffer *buffer, const char *name, const RnRecord *window);

G_END_DECLS

#endif
