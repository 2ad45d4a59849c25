/* moving-mean.h: a curve without its noise. */
#ifndef RUNNER_MOVING_MEAN_H
#define RUNNER_MOVING_MEAN_H

#include <glib.h>

G_BEGIN_DECLS

/* Around each of @y [n], the mean of what is finite among it and @half values on either side; NAN where @y is
 * not finite. [n] (transfer full) */
double *rn_moving_mean (const double *y, gsize n, gsize half);

G_END_DECLS

#endif
