#include "config.h"

#include "hooks/eta.h"

#define NEW_PART 0.3 /* of the newest span in the moving mean */

void
rn_eta_start (RnEta *eta, gint64 iter, gint64 now_us)
{
  *eta = (RnEta){ iter, now_us, 0 };
}

/* Seconds that an iteration took since the last reading. */
static double
recent_iter_s (const RnEta *eta, gint64 iter, gint64 now_us)
{
  return (double) (now_us - eta->us) / 1e6 / (double) MAX (iter - eta->iter, 1);
}

void
rn_eta_read (RnEta *eta, gint64 iter, gint64 now_us)
{
  double iter_s = recent_iter_s (eta, iter, now_us);

  eta->iter_s = eta->iter_s == 0 ? iter_s : (1 - NEW_PART) * eta->iter_s + NEW_PART * iter_s;
  eta->iter = iter;
  eta->us = now_us;
}

double
rn_eta_seconds (const RnEta *eta, gint64 n_iters, gint64 iter, gint64 now_us)
{
  double iter_s = eta->iter_s > 0 ? eta->iter_s : recent_iter_s (eta, iter, now_us);
  return iter_s * (double) n_iters;
}
