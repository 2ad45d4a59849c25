/* axis.h: the range, ticks and labels of one axis of a chart. */
#ifndef RUNNER_DRAW_AXIS_H
#define RUNNER_DRAW_AXIS_H

#include <glib.h>
#include "runner/draw/chart.h"

G_BEGIN_DECLS

#define RN_AXIS_MAX_TICKS 32

typedef struct
{
  RnScale scale;
  double min, max;  /* finite, min < max; positive if the scale is logarithmic */
  gboolean percent; /* 0.5 is labelled "50%" */
  double ticks[RN_AXIS_MAX_TICKS];
  int n_ticks;
  double step; /* between two ticks; of a logarithmic axis 0 */
} RnAxis;

/**
 * rn_axis_init:
 * @min, @max: what is to be shown, finite, @min <= @max; positive for RN_SCALE_LOG
 * @is_fixed: the axis spans exactly this (where @min < @max), else it is widened to round numbers
 * @n_ticks: about so many, at least 2
 *
 * Ticks are 1, 2 or 5 times a power of ten apart; those of a logarithmic axis are powers of ten, with 2 and 5
 * times them where the range is short. A range too short for the type is widened.
 */
void rn_axis_init (RnAxis *axis, RnScale scale, double min, double max, gboolean is_fixed, int n_ticks);

/* Where @value lies: 0 at the beginning of the axis, 1 at its end. NaN for what cannot be shown. */
double rn_axis_place (const RnAxis *axis, double value);

/* "0.25", "15k", "1.5M", "40%", "2e-05". (transfer full) */
char *rn_axis_label (const RnAxis *axis, double value);

G_END_DECLS

#endif
