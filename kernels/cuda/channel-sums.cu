/*
 * channel-sums.cu: sums over the channels of a map, in two launches: over parts, and over the parts of a
 * channel. The map may be one that is written on the way.
 */
#include "kernels/cuda/launch-sums.h"
#include "kernels/cuda/parts.cuh"

namespace
{

/* Packs of each map that a thread reads before it adds them. */
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

/* ---- what is added up: packs as they are stored, and their values ---- */

template <typename T, int V> struct Plain
{
  typedef RnElements<T, V> Packs;
  const T *x;

  __device__ Packs load (int64_t at) const
  {
    return rn_read_pack<V> (x + at);
  }

  __device__ void finish (int64_t, const Packs &packs, float (&values)[V]) const
  {
    rn_unpack (packs, values);
  }
};

/* The gradient behind a ReLU's mask, which is written here. */
template <typename T, int V> struct Masked
{
  struct Packs
  {
    RnElements<T, V> y, a, b;
  };
  const T *y, *a, *b;
  T *dst;

  __device__ Packs load (int64_t at) const
  {
    Packs packs;
    packs.y = rn_read_pack<V> (y + at);
    packs.a = rn_read_pack<V> (a + at);
    packs.b = b != nullptr ? rn_read_pack<V> (b + at) : packs.a; /* not looked at */
    return packs;
  }

  __device__ void finish (int64_t at, const Packs &packs, float (&values)[V]) const
  {
    float output[V], other[V] = {};
    rn_unpack (packs.y, output);
    rn_unpack (packs.a, values);
    if (b != nullptr)
      rn_unpack (packs.b, other);
#pragma unroll
    for (int k = 0; k < V; k++)
      values[k] = output[k] > 0 ? values[k] + other[k] : 0;
    const RnElements<T, V> stored = rn_pack<T> (values);
    rn_write_pack<V> (dst + at, stored);
    rn_unpack (stored, values);
  }
};

/* N packs of a thread, from number @i on, @rows from one to the next. All are on their way before the first
 * is looked at. */
template <int N, int V, typename Source, typename Walk, typename M>
__device__ inline void
add_packs (const Source &source, const Walk &walk, int i, int rows, M &own)
{
  typename Source::Packs packs[N];
#pragma unroll
  for (int u = 0; u < N; u++)
    packs[u] = source.load (walk.at (i + u * rows));
#pragma unroll
  for (int u = 0; u < N; u++)
    {
      float values[V];
      source.finish (walk.at (i + u * rows), packs[u], values);
      own.add (values);
    }
}

/* partials[part][c] */
template <typename Source, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) channel_sums (RnPartShape s, Source source, float *partials)
{
  constexpr int A = NHWC ? V : 1;
  RN_SHARED (float, shared, [Sums<A>::SIZE * RN_BLOCK]);
  const int64_t part = blockIdx.x / s.channel_blocks, c = rn_first_channel<V, NHWC> (s);
  const RnPartWalk<V, NHWC> walk (s, part, c);
  const int rows = (int) blockDim.y;
  Sums<A> own;
  int i = (int) threadIdx.y;

  for (; i + (UNROLL - 1) * rows < walk.n; i += UNROLL * rows)
    add_packs<UNROLL, V> (source, walk, i, rows, own);
  for (; i < walk.n; i += rows)
    add_packs<1, V> (source, walk, i, rows, own);
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

template <int V, bool NHWC, typename Source>
cudaError_t
launch_sums (const RnCudaMap *map, const Source &source, float *sums, float *diff, float *partials,
             cudaStream_t stream)
{
  const RnPartShape shape (map, V);
  cudaError_t error = RN_LAUNCH ((channel_sums<Source, V, NHWC>), shape.grid (), shape.block (), 0, stream,
                                 shape, source, partials);

  if (error != cudaSuccess)
    return error;
  return RN_LAUNCH (finish_sums, rn_finish_grid (shape.c), rn_finish_block (), 0, stream, shape.c,
                    shape.parts.parts, partials, sums, diff);
}

template <int V, typename Source>
cudaError_t
launch_layout (const RnCudaMap *map, const Source &source, float *sums, float *diff, void *workspace,
               cudaStream_t stream)
{
  float *partials = static_cast<float *> (workspace);

  return map->nhwc ? launch_sums<V, true> (map, source, sums, diff, partials, stream)
                   : launch_sums<V, false> (map, source, sums, diff, partials, stream);
}

}

extern "C" cudaError_t
rn_cuda_launch_channel_sums (const RnCudaMap *map, RnDType t, const void *x, float *sums, float *diff,
                             void *workspace, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *from = static_cast<const T *> (x);
    if (rn_has_packs (map, V, x, nullptr, nullptr))
      return launch_layout<V> (map, Plain<T, V>{ from }, sums, diff, workspace, stream);
    return launch_layout<1> (map, Plain<T, 1>{ from }, sums, diff, workspace, stream);
  });
}

extern "C" cudaError_t
rn_cuda_launch_relu_bwd_sums (const RnCudaMap *map, RnDType t, const void *y, const void *a, const void *b,
                              void *dst, float *sums, void *workspace, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *output = static_cast<const T *> (y), *grad = static_cast<const T *> (a),
            *other = static_cast<const T *> (b);
    T *to = static_cast<T *> (dst);
    if (rn_has_packs (map, V, y, a, b) && rn_is_aligned (dst, 16))
      return launch_layout<V> (map, Masked<T, V>{ output, grad, other, to }, sums, nullptr, workspace,
                               stream);
    return launch_layout<1> (map, Masked<T, 1>{ output, grad, other, to }, sums, nullptr, workspace, stream);
  });
}
