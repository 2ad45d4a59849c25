/* grad-stats.c: norm and largest element of the gradients. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernel-table.h"

#include <float.h>
#include <math.h>

static RnStatus
grad_stats_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  prepared->workspace_bytes =
      (gsize) rn_n_chunks (call->in[RN_GRAD_STATS_GRAD].dims[0]) * (sizeof (double) + sizeof (int32_t));
  return RN_STATUS_OK;
}

/*
 * The bits without the sign, as a number: they are in the order of the absolute values, infinity above all
 * numbers and NaN above infinity.
 */
static int32_t
largest_bits (const float *data, int64_t n)
{
  int32_t largest = 0;

#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; i++)
    {
      int32_t bits;
      memcpy (&bits, &data[i], sizeof bits);
      largest = MAX (largest, bits & 0x7fffffff);
    }
  return largest;
}

static double
sum_squares (const float *data, int64_t n)
{
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += (double) data[i] * data[i];
  return sum;
}

static double
sum_abs (const float *data, int64_t n)
{
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += fabs ((double) data[i]);
  return sum;
}

static double
sum_powers (const float *data, int64_t n, double largest, double p)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += pow (fabs ((double) data[i]) / largest, p);
  return sum;
}

/* Squares of floats do not overflow in double: these sums need no largest element before. */
static double
sum_plain (const float *data, int64_t n, float p)
{
  return p == 2 ? sum_squares (data, n) : p == 1 ? sum_abs (data, n) : 0;
}

/* Of finite elements, not all 0. @partial: [chunks], of sum_plain. */
static double
norm_of (const float *data, int64_t n, double *partial, double largest, double p)
{
  const int64_t n_chunks = rn_n_chunks (n);

  if (p == 2)
    return sqrt (rn_tree_sum (partial, n_chunks));
  if (p == 1)
    return rn_tree_sum (partial, n_chunks);
  if (isinf (p))
    return largest;
#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < n_chunks; chunk++)
    partial[chunk] = sum_powers (data + chunk * RN_CHUNK, MIN (RN_CHUNK, n - chunk * RN_CHUNK), largest, p);
  return largest * pow (rn_tree_sum (partial, n_chunks), 1 / p);
}

static RnStatus
grad_stats (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *grad = in[RN_GRAD_STATS_GRAD], p = *(const float *) in[RN_GRAD_STATS_NORM_TYPE];
  const int64_t n = call->in[RN_GRAD_STATS_GRAD].dims[0], n_chunks = rn_n_chunks (n);
  double *sums = workspace;                      /* [n_chunks] */
  int32_t *bits = (int32_t *) (sums + n_chunks); /* [n_chunks] */
  int32_t largest = 0;
  float *stats = out[0], max_abs;

#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < n_chunks; chunk++)
    {
      const float *first = grad + chunk * RN_CHUNK;
      const int64_t length = MIN (RN_CHUNK, n - chunk * RN_CHUNK);
      sums[chunk] = sum_plain (first, length, p);
      bits[chunk] = largest_bits (first, length);
    }
  for (int64_t chunk = 0; chunk < n_chunks; chunk++)
    largest = MAX (largest, bits[chunk]);
  memcpy (&max_abs, &largest, sizeof largest);
  stats[RN_STATS_MAX_ABS] = stats[RN_STATS_NORM] = max_abs;
  if (isfinite (max_abs) && max_abs > 0)
    stats[RN_STATS_NORM] = (float) fmin (norm_of (grad, n, sums, (double) max_abs, (double) p), FLT_MAX);
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_grad_stats = {
  .op = RN_OP_GRAD_STATS,
  .name = "cpu:grad_stats:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = grad_stats_prepare,
  .run = grad_stats,
};
