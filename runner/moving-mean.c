#include "config.h"

#include "runner/moving-mean.h"

#include <math.h>

#define MAX_CANCELLATION \
  1e6 /* of a value that leaves, over what stays: ten of sixteen digits are left then */

static double
sum_finite (const double *y, gsize begin, gsize end)
{
  double sum = 0;
  for (gsize i = begin; i < end; i++)
    sum += isfinite (y[i]) ? y[i] : 0;
  return sum;
}

/* The sum goes along with the window. Where a value that dwarfs the others leaves, it is taken anew: the
 * difference would hold rounding errors only, for good. */
double *
rn_moving_mean (const double *y, gsize n, gsize half)
{
  double *mean = g_new (double, n), sum = 0;
  gsize n_in = 0, begin = 0, end = 0; /* of the window */

  for (gsize i = 0; i < n; i++)
    {
      for (; end < n && end <= i + half; end++)
        if (isfinite (y[end]))
          {
            sum += y[end];
            n_in++;
          }
      for (; begin + half < i; begin++)
        if (isfinite (y[begin]))
          {
            sum -= y[begin];
            n_in--;
            if (fabs (y[begin]) > MAX_CANCELLATION * fabs (sum))
              sum = sum_finite (y, begin + 1, end);
          }
      mean[i] = isfinite (y[i]) && n_in > 0 ? sum / (double) n_in : (double) NAN;
    }
  return mean;
}
