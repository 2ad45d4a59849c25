/*
 * moments.cuh: what threads of a batch norm add up of a channel, for rn_merge_columns.
 *
 * Means and sums of squared deviations are kept apart from the start and are merged as in Chan, Golub and
 * LeVeque (1983, "Algorithms for computing the sample variance"), so that F32 is enough within a part.
 */
#ifndef KERNELS_CUDA_MOMENTS_CUH
#define KERNELS_CUDA_MOMENTS_CUH

#include "kernels/cuda/parts.cuh"

/* Number, mean and sum of squared deviations of what was added, for A channels. */
template <int A> struct RnMoments
{
  static constexpr int SIZE = 2 * A + 1;
  float n, mean[A], squares[A];

  __device__ RnMoments () : n (0), mean{}, squares{}
  {
  }

  __device__ void merge (int a, float other_n, float other_mean, float other_squares)
  {
    const float share = other_n / (n + other_n), distance = other_mean - mean[a];
    mean[a] += distance * share;
    squares[a] += other_squares + distance * distance * (n * share);
  }

  /* The first @k packs of @values, k > 0. */
  template <int N, int V> __device__ void add (const float (&values)[N][V], int k)
  {
    constexpr int EACH = V / A; /* elements of a pack that belong to one channel */
    const float count = (float) (k * EACH);
#pragma unroll
    for (int a = 0; a < A; a++)
      {
        float sum = 0, deviations = 0;
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
          for (int e = 0; e < EACH; e++)
            sum += u < k ? values[u][a * EACH + e] : 0;
        const float chunk_mean = sum / count;
#pragma unroll
        for (int u = 0; u < N; u++)
#pragma unroll
          for (int e = 0; e < EACH; e++)
            {
              const float distance = u < k ? values[u][a * EACH + e] - chunk_mean : 0;
              deviations += distance * distance;
            }
        merge (a, count, chunk_mean, deviations);
      }
    n += count;
  }

  /* Each value is RN_BLOCK from the one before. */
  __device__ void put (float *shared) const
  {
    shared[0] = n;
    for (int a = 0; a < A; a++)
      {
        shared[(1 + a) * RN_BLOCK] = mean[a];
        shared[(1 + A + a) * RN_BLOCK] = squares[a];
      }
  }

  __device__ void merge_shared (const float *shared)
  {
    const float other_n = shared[0];
    if (other_n == 0)
      return;
    for (int a = 0; a < A; a++)
      merge (a, other_n, shared[(1 + a) * RN_BLOCK], shared[(1 + A + a) * RN_BLOCK]);
    n += other_n;
  }

  __device__ float2 result (int a) const
  {
    return make_float2 (mean[a], squares[a]);
  }
};

/* Sums of dy and of dy * (src - mean), for A channels. */
template <int A> struct RnProducts
{
  static constexpr int SIZE = 2 * A;
  float sum[A], dot[A];

  __device__ RnProducts () : sum{}, dot{}
  {
  }

  template <int V> __device__ void add (const float (&src)[V], const float (&diff)[V], const float (&mean)[A])
  {
    constexpr int EACH = V / A;
#pragma unroll
    for (int i = 0; i < V; i++)
      {
        sum[i / EACH] += diff[i];
        dot[i / EACH] += diff[i] * (src[i] - mean[i / EACH]);
      }
  }

  __device__ void put (float *shared) const
  {
    for (int a = 0; a < A; a++)
      {
        shared[a * RN_BLOCK] = sum[a];
        shared[(A + a) * RN_BLOCK] = dot[a];
      }
  }

  __device__ void merge_shared (const float *shared)
  {
    for (int a = 0; a < A; a++)
      {
        sum[a] += shared[a * RN_BLOCK];
        dot[a] += shared[(A + a) * RN_BLOCK];
      }
  }

  __device__ float2 result (int a) const
  {
    return make_float2 (sum[a], dot[a]);
  }
};

#endif
