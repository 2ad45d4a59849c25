/*
 * grad-stats.cu: norm and largest element of the gradients.
 *
 * Squares and absolute values of floats do not overflow in double. Other powers are of elements over the
 * largest of their part, and a part counts by what its largest is of that of all.
 */
#include "kernels/cuda/launch-stats.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/workspace.h"

#include <float.h>

namespace
{

/* Bits of infinity. Without the sign, bits are in the order of absolute values, and those of NaN are last. */
#define INFINITE_BITS 0x7f800000u

/* What this thread adds up of body (|g|) over the @length elements of a part. */
template <int V, typename Body>
__device__ inline double
sum_part (const float *grad, int length, Body body)
{
  double sum = 0;

  for (int i = (int) threadIdx.x * V; i + V <= length; i += RN_BLOCK * V)
    {
      float g[V];
      rn_read<V> (grad + i, g);
#pragma unroll
      for (int v = 0; v < V; v++)
        sum += body (fabsf (g[v]));
    }
  for (int i = length / V * V + (int) threadIdx.x; i < length; i += RN_BLOCK)
    sum += body (fabsf (grad[i]));
  return sum;
}

/* sums[part]: of |g|^p for p = 1 and 2, of (|g| / largest of the part)^p for others. */
template <int V>
__global__ void
RN_BOUNDS (RN_BLOCK)
    stats_parts (int64_t n, const float *grad, const float *norm_type, double *sums, unsigned *largest)
{
  RN_SHARED (unsigned, shared_bits, [32]);
  RN_SHARED (double, shared, [32]);
  const int64_t start = (int64_t) blockIdx.x * RN_CUDA_STATS_PART;
  const int length = (int) (n - start < RN_CUDA_STATS_PART ? n - start : RN_CUDA_STATS_PART);
  const float p = *norm_type;
  unsigned bits = 0;

  double sum = sum_part<V> (grad + start, length, [&] (float size) {
    const unsigned own = __float_as_uint (size) & 0x7fffffffu; /* a NaN may keep its sign */
    bits = own > bits ? own : bits;
    return p == 2 ? (double) size * size : (double) size;
  });
  bits = rn_block_max (bits, shared_bits, 0u);
  if (p != 1 && p != 2)
    {
      const double most = __uint_as_float (bits), power = p;
      sum = 0;
      if (bits > 0 && bits < INFINITE_BITS && !isinf (p))
        sum = sum_part<V> (grad + start, length, [=] (float size) { return pow (size / most, power); });
    }
  sum = rn_block_sum (sum, shared);
  if (threadIdx.x == 0)
    {
      sums[blockIdx.x] = sum;
      largest[blockIdx.x] = bits;
    }
}

/* One block. */
__global__ void
RN_BOUNDS (RN_BLOCK) stats_finish (int64_t n_parts, const double *sums, const unsigned *largest,
                                   const float *norm_type, float *stats)
{
  RN_SHARED (unsigned, shared_bits, [32]);
  RN_SHARED (double, shared, [32]);
  const double p = *norm_type;
  unsigned bits = 0;
  double sum = 0;

  for (int64_t i = threadIdx.x; i < n_parts; i += RN_BLOCK)
    bits = largest[i] > bits ? largest[i] : bits;
  bits = rn_block_max (bits, shared_bits, 0u);
  const float max_abs = __uint_as_float (bits);
  const bool is_plain = p == 1 || p == 2, has_sum = bits > 0 && bits < INFINITE_BITS && !isinf (p);

  for (int64_t i = threadIdx.x; has_sum && i < n_parts; i += RN_BLOCK)
    sum += is_plain ? sums[i] : sums[i] * pow ((double) __uint_as_float (largest[i]) / max_abs, p);
  sum = rn_block_sum (sum, shared);
  if (threadIdx.x != 0)
    return;
  double norm = max_abs;
  if (has_sum)
    norm = p == 1 ? sum : p == 2 ? sqrt (sum) : max_abs * pow (sum, 1 / p);
  stats[0] = has_sum && norm > FLT_MAX ? FLT_MAX : (float) norm;
  stats[1] = max_abs;
}

}

extern "C" cudaError_t
rn_cuda_launch_grad_stats (int64_t n, const float *grad, const float *norm_type, float *stats,
                           void *workspace, cudaStream_t stream)
{
  const int64_t n_parts = rn_cuda_n_parts (n, RN_CUDA_STATS_PART);
  double *sums = static_cast<double *> (workspace);
  unsigned *largest = reinterpret_cast<unsigned *> (sums + n_parts);
  cudaError_t error;

  if (rn_is_aligned (grad, 16))
    error = RN_LAUNCH ((stats_parts<4>), (unsigned) n_parts, RN_BLOCK, 0, stream, n, grad, norm_type, sums,
                       largest);
  else
    error = RN_LAUNCH ((stats_parts<1>), (unsigned) n_parts, RN_BLOCK, 0, stream, n, grad, norm_type, sums,
                       largest);
  if (error != cudaSuccess)
    return error;
  return RN_LAUNCH (stats_finish, 1, RN_BLOCK, 0, stream, n_parts, sums, largest, norm_type, stats);
}
