/* channel-sums.cu: sums over the channels of a map, in two launches: over parts, and over the parts of a
 * channel. */
#include "kernels/cuda/launch-sums.h"
#include "kernels/cuda/parts.cuh"

namespace
{

/* Packs that a thread reads before it adds them. */
#define UNROLL 4

/* Sums of A channels. */
template <int A> struct Sums
{
  static constexpr int SIZE = A;
  float sum[A];

  __device__ Sums () : sum{}
  {
  }

  template <int V> __device__ void add (const float (&values)[V])
  {
#pragma unroll
    for (int i = 0; i < V; i++)
      sum[i / (V / A)] += values[i];
  }

  __device__ void put (float *shared) const
  {
    for (int a = 0; a < A; a++)
      shared[a * RN_BLOCK] = sum[a];
  }

  __device__ void merge_shared (const float *shared)
  {
    for (int a = 0; a < A; a++)
      sum[a] += shared[a * RN_BLOCK];
  }
};

/* Adds N packs of a thread, from number @i on, @rows from one to the next. */
template <int N, int V, typename T, typename Walk, typename M>
__device__ inline void
add_packs (const T *x, const Walk &walk, int i, int rows, M &own)
{
  float values[N][V];
#pragma unroll
  for (int u = 0; u < N; u++)
    rn_read<V> (x + walk.at (i + u * rows), values[u]);
#pragma unroll
  for (int u = 0; u < N; u++)
    own.add (values[u]);
}

/* partials[part][c] */
template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) channel_sums (RnPartShape s, const T *x, float *partials)
{
  constexpr int A = NHWC ? V : 1;
  RN_SHARED (float, shared, [Sums<A>::SIZE * RN_BLOCK]);
  const int64_t part = blockIdx.x / s.channel_blocks, c = rn_first_channel<V, NHWC> (s);
  const RnPartWalk<V, NHWC> walk (s, part, c);
  const int rows = (int) blockDim.y;
  Sums<A> own;
  int i = (int) threadIdx.y;

  for (; i + (UNROLL - 1) * rows < walk.n; i += UNROLL * rows)
    add_packs<UNROLL, V> (x, walk, i, rows, own);
  for (; i < walk.n; i += rows)
    add_packs<1, V> (x, walk, i, rows, own);
  rn_merge_columns (own, shared);
  if (threadIdx.y == 0 && c < s.c)
    for (int a = 0; a < A; a++)
      partials[part * s.c + c + a] = own.sum[a];
}

__global__ void
RN_BOUNDS (RN_BLOCK) finish_sums (int64_t n_c, int64_t parts, const float *partials, float *sums, float *diff)
{
  RN_SHARED (double, shared, [RN_BLOCK]);
  const int64_t c = rn_finish_channel ();
  double sum = 0;

  for (int64_t p = threadIdx.y; c < n_c && p < parts; p += RN_FINISH_THREADS)
    sum += partials[p * n_c + c];
  sum = rn_column_sum (sum, shared);
  if (c >= n_c || threadIdx.y != 0)
    return;
  if (sums != nullptr)
    sums[c] = (float) sum;
  if (diff != nullptr)
    diff[c] = __fadd_rn (diff[c], (float) sum);
}

/* ---- launches ---- */

template <typename T, int V, bool NHWC>
cudaError_t
launch_sums (const RnCudaMap *map, const T *x, float *sums, float *diff, float *partials, cudaStream_t stream)
{
  const RnPartShape shape (map, V);
  cudaError_t error =
      RN_LAUNCH ((channel_sums<T, V, NHWC>), shape.grid (), shape.block (), 0, stream, shape, x, partials);

  if (error != cudaSuccess)
    return error;
  return RN_LAUNCH (finish_sums, rn_finish_grid (shape.c), rn_finish_block (), 0, stream, shape.c,
                    shape.parts.parts, partials, sums, diff);
}

}

extern "C" cudaError_t
rn_cuda_launch_channel_sums (const RnCudaMap *map, RnDType t, const void *x, float *sums, float *diff,
                             void *workspace, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *from = static_cast<const T *> (x);
    float *partials = static_cast<float *> (workspace);
    const bool packs = rn_has_packs (map, V, x, nullptr, nullptr);
    if (map->nhwc)
      return packs ? launch_sums<T, V, true> (map, from, sums, diff, partials, stream)
                   : launch_sums<T, 1, true> (map, from, sums, diff, partials, stream);
    return packs ? launch_sums<T, V, false> (map, from, sums, diff, partials, stream)
                 : launch_sums<T, 1, false> (map, from, sums, diff, partials, stream);
  });
}
