/*
 * loss-scaler.h: the factor that keeps small gradients of half precision from becoming zero, and how it
 * follows overflows: pure arithmetic.
 */
#ifndef HOOKS_LOSS_SCALER_H
#define HOOKS_LOSS_SCALER_H

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  RN_SCALER_STATIC,
  RN_SCALER_GRAD, /* torch.cuda.amp.GradScaler: grows after so many good steps in a row */
  RN_SCALER_LOSS, /* MMCV's LossScaler: grows at multiples of scale_window after the last overflow */
} RnScalerForm;

typedef struct
{
  RnScalerForm form;
  double growth, backoff; /* factors of the scale */
  gint64 interval;        /* updates until it grows */
  double min_scale, max_scale;

  double scale;                    /* a float's value */
  gint64 n_good;                   /* GRAD: updates since the last change */
  gint64 n_updates, last_overflow; /* LOSS: updates so far; the number of the last bad one, or -1 */
  gint64 n_skipped;                /* bad updates so far */
  gint64 n_stuck;                  /* bad updates in a row that could not lower the scale */
} RnLossScaler;

/* Keeps the rules; counts start anew. @scale is rounded to a float and cut to [min_scale, max_scale]. */
void rn_loss_scaler_start (RnLossScaler *scaler, double scale);
/* After each window. @is_overflow: its gradients are not finite, so no step was done. */
void rn_loss_scaler_update (RnLossScaler *scaler, gboolean is_overflow);

G_END_DECLS

#endif
