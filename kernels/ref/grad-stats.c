/* grad-stats.c: norm and largest element of the gradients. */
#include "config.h"

#include "kernels/kernel-table.h"

#include <float.h>
#include <math.h>

static float
largest_abs (const float *data, int64_t n)
{
  float largest = 0;

  for (int64_t i = 0; i < n; i++)
    if (isnan (data[i]))
      return NAN;
    else
      largest = fmaxf (largest, fabsf (data[i]));
  return largest;
}

/* Of finite elements. Over the largest, so that no power overflows. */
static double
norm_of (const float *data, int64_t n, double largest, double p)
{
  double sum = 0;

  if (largest == 0 || isinf (p))
    return largest;
  for (int64_t i = 0; i < n; i++)
    sum += pow (fabs ((double) data[i]) / largest, p);
  return largest * pow (sum, 1 / p);
}

static RnStatus
grad_stats (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *grad = in[RN_GRAD_STATS_GRAD], *norm_type = in[RN_GRAD_STATS_NORM_TYPE];
  int64_t n = call->in[RN_GRAD_STATS_GRAD].dims[0];
  float *stats = out[0], largest = largest_abs (grad, n);

  stats[RN_STATS_MAX_ABS] = stats[RN_STATS_NORM] = largest;
  if (isfinite (largest))
    stats[RN_STATS_NORM] = (float) fmin (norm_of (grad, n, (double) largest, (double) *norm_type), FLT_MAX);
  return RN_STATUS_OK;
}

const RnKernel rn_ref_grad_stats = { .op = RN_OP_GRAD_STATS, .name = "ref:grad_stats", .run = grad_stats };
