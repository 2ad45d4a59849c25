/*
 * accumulation.h: which iterations make an optimizer step together: pure arithmetic.
 *
 * Windows are absolute: without a resume that lost gradients, where a window begins and ends depends on the
 * configuration and on the iteration's number alone.
 */
#ifndef HOOKS_ACCUMULATION_H
#define HOOKS_ACCUMULATION_H

#include <glib.h>

G_BEGIN_DECLS

/* What becomes of a window that ends before it has all its iterations: at the end of the run, or of an epoch
 * with flush_at_epoch_end. */
typedef enum
{
  RN_TAIL_AVERAGE, /* the mean over the iterations that there are, as MMCV */
  RN_TAIL_SCALE,   /* their sum over those that a whole window has: a smaller step */
  RN_TAIL_DROP,    /* no step */
} RnTail;

typedef struct
{
  gint64 n_iters;      /* iterations of a window, at least 1 */
  gint64 max_iters;    /* of the run, at least 1 */
  gint64 epoch_length; /* iterations, at least 1 */
  RnTail tail;
  gboolean flush_at_epoch_end; /* windows start anew with each epoch */
  gboolean is_mmcv;            /* factors of MMCV 1.7; with RN_TAIL_AVERAGE, without flush_at_epoch_end */
  gint64 cut_at;               /* gradients from before this iteration are not there; 0: all are */
} RnAccumulation;

typedef struct
{
  gint64 begin, end; /* iterations [begin, end) whose gradients are summed */
  gint64 factor;     /* that a loss is divided by to make the sum a mean */
  gboolean is_tail;
  gboolean is_dropped; /* ends without a step */
} RnWindow;

/* The window of @iter, which is in [0, max_iters). */
RnWindow rn_accumulation_window (const RnAccumulation *accumulation, gint64 iter);
/* Steps of a whole run that loses no gradients. */
gint64 rn_accumulation_n_steps (const RnAccumulation *accumulation);

G_END_DECLS

#endif
