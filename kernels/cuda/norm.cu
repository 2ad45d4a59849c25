/*
 * norm.cu: batch normalisation (Ioffe and Szegedy 2015, arXiv 1502.03167) and its gradient, each in three
 * launches: sums over parts, coefficients of the channels, one pass that applies them.
 */
#include "kernels/cuda/launch-norm.h"
#include "kernels/cuda/moments.cuh"

namespace
{

/* Packs that a thread reads before it computes. */
#define UNROLL 4
/* Packs of a thread, at least, in the pass that applies coefficients; most blocks in its second dimension. */
#define PACKS_PER_THREAD 8
#define MAX_GRID_Y 4096

/* ---- sums over a part ---------------------------------------------------------------------------------- */

template <int A, typename M>
__device__ inline void
write_part (const RnPartShape &s, const M &own, int64_t part, int64_t c, float2 *partial)
{
  if (threadIdx.y == 0 && c < s.c)
    for (int a = 0; a < A; a++)
      partial[part * s.c + c + a] = own.result (a);
}

template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) norm_moments (RnPartShape s, const T *src, float2 *partial)
{
  constexpr int A = NHWC ? V : 1;
  RN_SHARED (float, shared, [RnMoments<A>::SIZE * RN_BLOCK]);
  const int64_t part = blockIdx.x / s.channel_blocks, c = rn_first_channel<V, NHWC> (s);
  const RnPartWalk<V, NHWC> walk (s, part, c);
  const int rows = (int) blockDim.y;
  RnMoments<A> own;

  for (int i = (int) threadIdx.y; i < walk.n; i += UNROLL * rows)
    {
      float values[UNROLL][V];
      int k = 0;
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * rows < walk.n)
          {
            rn_read<V> (src + walk.at (i + u * rows), values[u]);
            k++;
          }
      own.add (values, k);
    }
  rn_merge_columns (own, shared);
  write_part<A> (s, own, part, c, partial);
}

template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK)
    norm_products (RnPartShape s, const T *src, const T *diff_dst, const float *mean, float2 *partial)
{
  constexpr int A = NHWC ? V : 1;
  RN_SHARED (float, shared, [RnProducts<A>::SIZE * RN_BLOCK]);
  const int64_t part = blockIdx.x / s.channel_blocks, c = rn_first_channel<V, NHWC> (s);
  const RnPartWalk<V, NHWC> walk (s, part, c);
  const int rows = (int) blockDim.y;
  RnProducts<A> own;
  float mean_of[A] = {};

  for (int a = 0; a < A && c < s.c; a++)
    mean_of[a] = mean[c + a];
  for (int i = (int) threadIdx.y; i < walk.n; i += UNROLL * rows)
    {
      float x[UNROLL][V], dy[UNROLL][V];
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * rows < walk.n)
          {
            rn_read<V> (src + walk.at (i + u * rows), x[u]);
            rn_read<V> (diff_dst + walk.at (i + u * rows), dy[u]);
          }
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (i + u * rows < walk.n)
          own.add (x[u], dy[u], mean_of);
    }
  rn_merge_columns (own, shared);
  write_part<A> (s, own, part, c, partial);
}

/* ---- coefficients of the channels ---------------------------------------------------------------------- */

/* Elements of a channel in part @p. */
__device__ inline int64_t
part_elements (const RnPartShape &s, int64_t p, bool nhwc)
{
  const RnCudaChannelParts &parts = s.parts;
  const int64_t rest =
      (nhwc ? s.n * s.cells - p * parts.length : s.cells - p % parts.per_plane * parts.length);
  const int64_t images = nhwc ? 1 : s.n - p / parts.per_plane * parts.images;
  return (rest < parts.length ? rest : parts.length) * (images < parts.images ? images : parts.images);
}

/* Coefficients lie one kind after the other: [4][c]. */
enum
{
  MEAN,
  SCALE,
  SHIFT,
  SLOPE
};

__global__ void
RN_BOUNDS (RN_BLOCK)
    norm_fwd_finish (RnPartShape s, bool nhwc, RnCudaNorm norm, const float2 *partial, float *coefficients)
{
  RN_SHARED (double, shared, [RN_BLOCK]);
  const int64_t c = rn_finish_channel ();
  const bool is_channel = c < s.c, leads = is_channel && threadIdx.y == 0;
  double mean, var;

  if (norm.mean == nullptr)
    {
      const double count = (double) (s.n * s.cells);
      double sum = 0, squares = 0;
      for (int64_t p = threadIdx.y; is_channel && p < s.parts.parts; p += RN_FINISH_THREADS)
        sum += (double) part_elements (s, p, nhwc) * partial[p * s.c + c].x;
      mean = rn_column_sum (sum, shared) / count;
      for (int64_t p = threadIdx.y; is_channel && p < s.parts.parts; p += RN_FINISH_THREADS)
        {
          const float2 part = partial[p * s.c + c];
          const double distance = part.x - mean;
          squares += part.y + (double) part_elements (s, p, nhwc) * distance * distance;
        }
      var = rn_column_sum (squares, shared) / count;
      if (leads)
        {
          norm.saved_mean[c] = (float) mean;
          norm.saved_invstd[c] = (float) (1 / sqrt (var + norm.eps));
        }
      if (leads && norm.running_mean != nullptr)
        {
          /* One value says nothing of a variance: it stays 0. */
          const double unbiased = count > 1 ? var * count / (count - 1) : var;
          norm.running_mean[c] =
              (float) ((1 - norm.momentum) * (double) norm.running_mean[c] + norm.momentum * mean);
          norm.running_var[c] =
              (float) ((1 - norm.momentum) * (double) norm.running_var[c] + norm.momentum * unbiased);
        }
    }
  else
    {
      mean = is_channel ? norm.mean[c] : 0;
      var = is_channel ? norm.var[c] : 1;
    }
  if (leads)
    {
      const double scale = norm.gamma[c] / sqrt (var + norm.eps);
      coefficients[MEAN * s.c + c] = (float) mean;
      coefficients[SCALE * s.c + c] = (float) scale;
      /* with what is left of the mean */
      coefficients[SHIFT * s.c + c] = (float) (norm.beta[c] + ((float) mean - mean) * scale);
    }
}

__global__ void
RN_BOUNDS (RN_BLOCK)
    norm_bwd_finish (RnPartShape s, RnCudaNormBwd norm, const float2 *partial, float *coefficients)
{
  RN_SHARED (double, shared, [RN_BLOCK]);
  const int64_t c = rn_finish_channel ();
  const double count = (double) (s.n * s.cells);
  const bool is_channel = c < s.c;
  double sum = 0, dot = 0;

  for (int64_t p = threadIdx.y; is_channel && p < s.parts.parts; p += RN_FINISH_THREADS)
    {
      sum += partial[p * s.c + c].x;
      dot += partial[p * s.c + c].y;
    }
  sum = rn_column_sum (sum, shared);
  dot = rn_column_sum (dot, shared);
  if (!is_channel || threadIdx.y != 0)
    return;

  const double invstd = norm.training ? norm.var[c] : 1 / sqrt ((double) norm.var[c] + norm.eps);
  if (norm.diff_gamma != nullptr)
    norm.diff_gamma[c] += (float) (dot * invstd);
  if (norm.diff_beta != nullptr)
    norm.diff_beta[c] += (float) sum;
  coefficients[MEAN * s.c + c] = norm.mean[c];
  coefficients[SCALE * s.c + c] = (float) (norm.gamma[c] * invstd);
  coefficients[SHIFT * s.c + c] = (float) (sum / count);
  coefficients[SLOPE * s.c + c] = (float) (dot * invstd * invstd / count);
}

/* ---- the pass that applies them ------------------------------------------------------------------------ */

/* Per channel of a pack: mean, factor, addend; and in the gradient the factor of src - mean. */
template <int V> struct Coefficients
{
  float mean[V], scale[V], shift[V], slope[V];
};

/* Calls @body (offset, coefficients) for the packs of this thread. Rows are pixels in NHWC, planes in NCHW.
 */
template <int V, bool NHWC, int KINDS, typename Body>
__device__ inline void
for_each_pack (const RnPartShape &s, const float *coefficients, Body body)
{
  const int64_t rows = s.n * (NHWC ? s.cells : s.c), length = NHWC ? s.c : s.cells;
  const int64_t first_row = (int64_t) blockIdx.y * blockDim.y + threadIdx.y;
  const int64_t row_step = (int64_t) gridDim.y * blockDim.y;
  const int64_t first = ((int64_t) blockIdx.x * blockDim.x + threadIdx.x) * V;
  const int64_t step = (int64_t) gridDim.x * blockDim.x * V;
  Coefficients<V> k = {};

  if (NHWC)
    for (int64_t c = first; c < length; c += step)
      {
        rn_read<V> (coefficients + MEAN * s.c + c, k.mean);
        rn_read<V> (coefficients + SCALE * s.c + c, k.scale);
        rn_read<V> (coefficients + SHIFT * s.c + c, k.shift);
        if (KINDS > SLOPE)
          rn_read<V> (coefficients + SLOPE * s.c + c, k.slope);
        for (int64_t row = first_row; row < rows; row += row_step)
          body (row * length + c, k);
      }
  else
    for (int64_t row = first_row; row < rows; row += row_step)
      {
        const int64_t c = row % s.c;
#pragma unroll
        for (int v = 0; v < V; v++)
          {
            k.mean[v] = coefficients[MEAN * s.c + c];
            k.scale[v] = coefficients[SCALE * s.c + c];
            k.shift[v] = coefficients[SHIFT * s.c + c];
            if (KINDS > SLOPE)
              k.slope[v] = coefficients[SLOPE * s.c + c];
          }
        for (int64_t cell = first; cell < length; cell += step)
          body (row * length + cell, k);
      }
}

template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) norm_normalise (RnPartShape s, const float *coefficients, int relu, const T *src, T *dst)
{
  for_each_pack<V, NHWC, SLOPE> (s, coefficients, [=] (int64_t at, const Coefficients<V> &k) {
    float value[V];
    rn_read<V> (src + at, value);
#pragma unroll
    for (int v = 0; v < V; v++)
      {
        value[v] = (value[v] - k.mean[v]) * k.scale[v] + k.shift[v];
        value[v] = relu && value[v] < 0 ? 0 : value[v];
      }
    rn_write<V> (dst + at, value);
  });
}

/* @src: NULL where statistics were given */
template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK)
    norm_gradient (RnPartShape s, const float *coefficients, const T *src, const T *diff_dst, T *diff_src)
{
  for_each_pack<V, NHWC, SLOPE + 1> (s, coefficients, [=] (int64_t at, const Coefficients<V> &k) {
    float diff[V], value[V];
    rn_read<V> (diff_dst + at, diff);
    if (src != nullptr)
      {
        rn_read<V> (src + at, value);
#pragma unroll
        for (int v = 0; v < V; v++)
          diff[v] = diff[v] - k.shift[v] - (value[v] - k.mean[v]) * k.slope[v];
      }
#pragma unroll
    for (int v = 0; v < V; v++)
      diff[v] *= k.scale[v];
    rn_write<V> (diff_src + at, diff);
  });
}

/* ---- launches ------------------------------------------------------------------------------------------ */

/* How the blocks of one map are laid out, for packs of @width. */
struct Layout
{
  RnPartShape shape;
  dim3 apply_block, apply_grid;
  float *coefficients;
  float2 *partial;

  Layout (const RnCudaMap *map, int width, void *workspace) : shape (map, width)
  {
    const int64_t cells = shape.cells, packs = (map->nhwc ? map->c : cells) / width;
    const int64_t rows = map->n * (map->nhwc ? cells : map->c);
    const int x = rn_power_of_2 (packs, RN_BLOCK), y = RN_BLOCK / x;
    const int64_t grid_x =
        map->nhwc ? rn_cuda_n_parts (packs, x) : rn_cuda_n_parts (packs, x * PACKS_PER_THREAD);
    const int64_t grid_y = rn_cuda_n_parts (rows, map->nhwc ? y * PACKS_PER_THREAD : y);
    apply_block = dim3 (x, y);
    apply_grid = dim3 ((unsigned) grid_x, (unsigned) (grid_y < MAX_GRID_Y ? grid_y : MAX_GRID_Y));

    coefficients = static_cast<float *> (workspace);
    partial = reinterpret_cast<float2 *> (coefficients + 4 * shape.c);
  }
};

template <typename T, int V, bool NHWC>
cudaError_t
launch_fwd (const RnCudaMap *map, const RnCudaNorm *norm, const T *src, T *dst, void *workspace,
            cudaStream_t stream)
{
  const Layout l (map, V, workspace);
  cudaError_t error = cudaSuccess;

  if (norm->mean == nullptr)
    error = RN_LAUNCH ((norm_moments<T, V, NHWC>), l.shape.grid (), l.shape.block (), 0, stream, l.shape, src,
                       l.partial);
  if (error == cudaSuccess)
    error = RN_LAUNCH (norm_fwd_finish, rn_finish_grid (l.shape.c), rn_finish_block (), 0, stream, l.shape,
                       NHWC, *norm, l.partial, l.coefficients);
  if (error == cudaSuccess)
    error = RN_LAUNCH ((norm_normalise<T, V, NHWC>), l.apply_grid, l.apply_block, 0, stream, l.shape,
                       l.coefficients, norm->relu, src, dst);
  return error;
}

template <typename T, int V, bool NHWC>
cudaError_t
launch_bwd (const RnCudaMap *map, const RnCudaNormBwd *norm, const T *src, const T *diff_dst, T *diff_src,
            void *workspace, cudaStream_t stream)
{
  Layout l (map, V, workspace);
  cudaError_t error = cudaSuccess;

  if (rn_cuda_norm_bwd_reduces (norm->training, norm->diff_gamma != nullptr, norm->diff_beta != nullptr))
    error = RN_LAUNCH ((norm_products<T, V, NHWC>), l.shape.grid (), l.shape.block (), 0, stream, l.shape,
                       src, diff_dst, norm->mean, l.partial);
  else
    l.shape.parts.parts = 0;
  if (error == cudaSuccess)
    error = RN_LAUNCH (norm_bwd_finish, rn_finish_grid (l.shape.c), rn_finish_block (), 0, stream, l.shape,
                       *norm, l.partial, l.coefficients);
  if (error == cudaSuccess)
    error = RN_LAUNCH ((norm_gradient<T, V, NHWC>), l.apply_grid, l.apply_block, 0, stream, l.shape,
                       l.coefficients, norm->training ? src : nullptr, diff_dst, diff_src);
  return error;
}

}

extern "C" cudaError_t
rn_cuda_launch_norm_fwd (const RnCudaMap *map, RnDType t, const RnCudaNorm *norm, const void *src, void *dst,
                         void *workspace, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *from = static_cast<const T *> (src);
    T *to = static_cast<T *> (dst);
    const bool packs = rn_has_packs (map, V, src, dst, nullptr);
    if (map->nhwc)
      return packs ? launch_fwd<T, V, true> (map, norm, from, to, workspace, stream)
                   : launch_fwd<T, 1, true> (map, norm, from, to, workspace, stream);
    return packs ? launch_fwd<T, V, false> (map, norm, from, to, workspace, stream)
                 : launch_fwd<T, 1, false> (map, norm, from, to, workspace, stream);
  });
}

extern "C" cudaError_t
rn_cuda_launch_norm_bwd (const RnCudaMap *map, RnDType t, const RnCudaNormBwd *norm, const void *src,
                         const void *diff_dst, void *diff_src, void *workspace, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *x = static_cast<const T *> (src), *dy = static_cast<const T *> (diff_dst);
    T *dx = static_cast<T *> (diff_src);
    const bool packs = rn_has_packs (map, V, src, diff_dst, diff_src);
    if (map->nhwc)
      return packs ? launch_bwd<T, V, true> (map, norm, x, dy, dx, workspace, stream)
                   : launch_bwd<T, 1, true> (map, norm, x, dy, dx, workspace, stream);
    return packs ? launch_bwd<T, V, false> (map, norm, x, dy, dx, workspace, stream)
                 : launch_bwd<T, 1, false> (map, norm, x, dy, dx, workspace, stream);
  });
}
