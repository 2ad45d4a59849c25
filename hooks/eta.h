/*
 * eta.h: the time that a run has still to go.
 *
 * From a moving mean of the wall-clock time of an iteration, between two readings: all that happens between
 * them counts, evaluations, checkpoints and iterations without a line too.
 */
#ifndef HOOKS_ETA_H
#define HOOKS_ETA_H

#include <glib.h>

G_BEGIN_DECLS

typedef struct
{
  gint64 iter, us; /* finished iterations at the last reading, and its time */
  double iter_s;   /* moving mean of the seconds of an iteration; 0: none yet */
} RnEta;

void rn_eta_start (RnEta *eta, gint64 iter, gint64 now_us);
/* A reading, @iter finished iterations after the start of the run. */
void rn_eta_read (RnEta *eta, gint64 iter, gint64 now_us);
/* Seconds of @n_iters iterations. Before the first reading: from what has passed since the start. */
double rn_eta_seconds (const RnEta *eta, gint64 n_iters, gint64 iter, gint64 now_us);

G_END_DECLS

#endif
