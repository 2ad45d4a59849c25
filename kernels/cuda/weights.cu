/*
 * weights.cu: parameters of convolutions, in F32 and OIHW, become what the library reads, and its gradients
 * become those of the parameters. One output channel is a row: its scale is computed once per block.
 */
#include "kernels/cuda/launch-weights.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/workspace.h"

namespace
{

/* Channels of a block's part of a row, and elements of it where the order does not change. */
#define CHANNELS 64
#define ELEMENTS 4096

/*
 * Scale of channel @k. Halves are multiplied with one of F32 on the way forward, as in the reference; else it
 * is of double.
 */
__device__ static inline double
scale (const RnCudaFold &fold, int64_t k, bool is_half)
{
  if (fold.gamma == nullptr)
    return 1;
  return is_half ? (double) __fdiv_rn (fold.gamma[k], __fsqrt_rn (__fadd_rn (fold.var[k], fold.eps)))
                 : fold.gamma[k] / sqrt ((double) fold.var[k] + fold.eps);
}

/* ---- forward ---- */

template <typename T>
__device__ static inline void
write_bias (const RnCudaFold &fold, const float *bias, double a, int64_t k, T *dst)
{
  if (dst == nullptr)
    return;
  if (fold.gamma != nullptr)
    rn_store (dst, k, (float) (fold.beta[k] - a * fold.mean[k]));
  else
    rn_store (dst, k, bias != nullptr ? bias[k] : 0);
}

/*
 * The weights of one output channel. @permutes: [c][cells] becomes [cells][c]. A block takes all cells of
 * some channels: neighbours write along c, and what they read apart from each other lies in the cache until
 * all is read.
 */
template <typename T>
__device__ static inline void
write_row (int64_t c, int64_t cells, int permutes, float factor, const float *row, T *dst)
{
  if (permutes)
    for (int64_t first = (int64_t) blockIdx.x * CHANNELS; first < c; first += (int64_t) gridDim.x * CHANNELS)
      for (int64_t i = threadIdx.x; i < cells * CHANNELS; i += blockDim.x)
        {
          const int64_t channel = first + i % CHANNELS, cell = i / CHANNELS;
          if (channel < c)
            rn_store (dst, cell * c + channel, __fmul_rn (factor, row[channel * cells + cell]));
        }
  else
    for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < c * cells;
         i += (int64_t) gridDim.x * blockDim.x)
      rn_store (dst, i, __fmul_rn (factor, row[i]));
}

template <typename T>
__global__ void
RN_BOUNDS (RN_BLOCK) weights_fwd (int64_t n_k, int64_t c, int64_t cells, int permutes, const float *weights,
                                  RnCudaFold fold, const float *bias, T *dst, T *bias_dst)
{
  RN_SHARED (float, factor, );

  for (int64_t k = blockIdx.y; k < n_k; k += gridDim.y)
    {
      if (threadIdx.x == 0)
        {
          const double a = scale (fold, k, sizeof (T) == 2);
          factor = (float) a;
          if (blockIdx.x == 0)
            write_bias (fold, bias, a, k, bias_dst);
        }
      __syncthreads ();
      if (dst != nullptr)
        write_row (c, cells, permutes, factor, weights + k * c * cells, dst + k * c * cells);
      __syncthreads (); /* the next factor is written where this one was read */
    }
}

/* ---- backward ---- */

/* A block per output channel. */
template <typename T>
__global__ void
RN_BOUNDS (RN_BLOCK)
    weights_bwd (int64_t n_k, unsigned c, unsigned cells, int permutes, const T *dw, const float *weights,
                 RnCudaFold fold, const float *sums, float *diff_weights, float *diff_gamma)
{
  RN_SHARED (double, shared, [32]);

  for (int64_t k = blockIdx.x; k < n_k; k += gridDim.x)
    {
      const float factor = (float) scale (fold, k, false);
      const int64_t row = k * c * cells;
      double dot = 0;
      for (unsigned i = threadIdx.x; i < c * cells; i += blockDim.x)
        {
          const unsigned at = permutes ? i % cells * c + i / cells : i;
          const float value = rn_load (dw, row + at);
          if (diff_weights != nullptr)
            diff_weights[row + i] = __fadd_rn (diff_weights[row + i], __fmul_rn (factor, value));
          if (diff_gamma != nullptr)
            dot += (double) weights[row + i] * value;
        }
      if (diff_gamma == nullptr)
        continue;
      dot = rn_block_sum (dot, shared);
      if (threadIdx.x == 0)
        diff_gamma[k] +=
            (float) ((dot - (double) fold.mean[k] * sums[k]) / sqrt ((double) fold.var[k] + fold.eps));
    }
}

/* ---- sums over channels ---- */

#define LANES 32
#define LINES (RN_BLOCK / LANES)

/* NHWC: partials[part][c] = sum of rows part * length, ..., of @rows: each line of the block takes some of
 * them, each lane a pack of channels. */
template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) sum_rows (int64_t rows, int64_t length, unsigned c, const T *x, float *partials)
{
  RN_SHARED (float, lines, [LINES][LANES * V]);

  const unsigned first = blockIdx.x * LANES * V, channel = first + threadIdx.x * V;
  const int64_t begin = blockIdx.y * length, end = begin + length < rows ? begin + length : rows;
  float sum[V] = {};
  if (channel < c)
    for (int64_t row = begin + threadIdx.y; row < end; row += LINES)
      {
        float value[V];
        rn_read<V> (x + row * c + channel, value);
        for (int k = 0; k < V; k++)
          sum[k] += value[k];
      }
  for (int k = 0; k < V; k++)
    lines[threadIdx.y][threadIdx.x * V + k] = sum[k];
  __syncthreads ();
  const unsigned i = threadIdx.y * LANES + threadIdx.x;
  if (i < LANES * V && first + i < c)
    {
      float total = lines[0][i];
      for (int line = 1; line < LINES; line++)
        total += lines[line][i];
      partials[(int64_t) blockIdx.y * c + first + i] = total;
    }
}

/* NCHW: partials[part][c], see RnCudaNormParts. A block per part and channel. */
template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK)
    sum_planes (int n, unsigned c, int64_t cells, RnCudaNormParts p, const T *x, float *partials)
{
  RN_SHARED (float, shared, [32]);

  for (int64_t block = blockIdx.x; block < p.parts * c; block += gridDim.x)
    {
      const int64_t part = block / c, channel = block % c;
      const int64_t first = part / p.per_plane * p.images, begin = part % p.per_plane * p.length;
      const int64_t end = begin + p.length < cells ? begin + p.length : cells;
      float sum = 0;
      for (int64_t image = first; image < first + p.images && image < n; image++)
        for (int64_t i = begin + threadIdx.x * V; i < end; i += RN_BLOCK * V)
          {
            float value[V];
            rn_read<V> (x + (image * c + channel) * cells + i, value);
            for (int k = 0; k < V; k++)
              sum += value[k];
          }
      sum = rn_block_sum (sum, shared);
      if (threadIdx.x == 0)
        partials[part * c + channel] = sum;
    }
}

__global__ void
RN_BOUNDS (RN_BLOCK) sum_parts (int64_t c, int64_t parts, const float *partials, float *sums, float *diff)
{
  RN_FOR_EACH (channel, c)
    {
      double sum = 0;
      for (int64_t part = 0; part < parts; part++)
        sum += partials[part * c + channel];
      if (sums != nullptr)
        sums[channel] = (float) sum;
      if (diff != nullptr)
        diff[channel] = __fadd_rn (diff[channel], (float) sum);
    }
}

}

/* ---- launchers ---- */

static bool
is_permuted (const RnCudaFilter *filter)
{
  return filter->krsc && filter->c > 1 && (int64_t) filter->r * filter->s > 1;
}

cudaError_t
rn_cuda_launch_weights_fwd (const RnCudaFilter *filter, const float *weights, const RnCudaFold *fold,
                            const float *bias, void *dst, void *bias_dst, cudaStream_t stream)
{
  const int64_t k = filter->k, c = filter->c, cells = (int64_t) filter->r * filter->s;
  const int permutes = is_permuted (filter);
  const unsigned parts = permutes ? rn_n_blocks (c, CHANNELS) : rn_n_blocks (c * cells, ELEMENTS);
  const dim3 grid (parts, rn_n_blocks (k, 1));

  RN_SWITCH_FLOAT (filter->t, T,
                   return RN_LAUNCH (weights_fwd<T>, grid, RN_BLOCK, 0, stream, k, c, cells, permutes,
                                     weights, *fold, bias, (T *) dst, (T *) bias_dst));
}

cudaError_t
rn_cuda_launch_weights_bwd (const RnCudaFilter *filter, const void *dw, const float *weights,
                            const RnCudaFold *fold, const float *sums, float *diff_weights, float *diff_gamma,
                            cudaStream_t stream)
{
  const int64_t k = filter->k, c = filter->c, cells = (int64_t) filter->r * filter->s;
  const int permutes = is_permuted (filter);

  if (c * cells > INT32_MAX)
    return cudaErrorInvalidValue;
  RN_SWITCH_FLOAT (filter->t, T,
                   return RN_LAUNCH (weights_bwd<T>, rn_n_blocks (k, 1), RN_BLOCK, 0, stream, k, (unsigned) c,
                                     (unsigned) cells, permutes, (const T *) dw, weights, *fold, sums,
                                     diff_weights, diff_gamma));
}

template <typename T, int V>
static cudaError_t
launch_partial_sums (const RnCudaMap *map, const RnCudaNormParts &p, const T *x, float *partials,
                     cudaStream_t stream)
{
  const int64_t cells = (int64_t) map->h * map->w;

  if (map->nhwc)
    {
      const dim3 grid (((unsigned) map->c + LANES * V - 1) / (LANES * V), (unsigned) p.parts);
      return RN_LAUNCH ((sum_rows<T, V>), grid, dim3 (LANES, LINES), 0, stream, map->n * cells, p.length,
                        (unsigned) map->c, x, partials);
    }
  return RN_LAUNCH ((sum_planes<T, V>), rn_n_blocks (p.parts * map->c, 1), RN_BLOCK, 0, stream, map->n,
                    (unsigned) map->c, cells, p, x, partials);
}

template <typename T>
static cudaError_t
partial_sums (const RnCudaMap *map, const RnCudaNormParts &p, const T *x, float *partials,
              cudaStream_t stream)
{
  const int64_t length = map->nhwc ? map->c : (int64_t) map->h * map->w;

  if (length % RN_PACK_OF (T) == 0 && rn_is_aligned (x, 16))
    return launch_partial_sums<T, RN_PACK_OF (T)> (map, p, x, partials, stream);
  return launch_partial_sums<T, 1> (map, p, x, partials, stream);
}

static cudaError_t
launch_partials (const RnCudaMap *map, const RnCudaNormParts &p, RnDType t, const void *x, float *partials,
                 cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, return partial_sums (map, p, (const T *) x, partials, stream));
}

cudaError_t
rn_cuda_launch_channel_sums (const RnCudaMap *map, RnDType t, const void *x, float *sums, float *diff,
                             void *workspace, cudaStream_t stream)
{
  const RnCudaNormParts p = rn_cuda_norm_parts (map->n, (int64_t) map->h * map->w, map->nhwc);
  float *partials = (float *) workspace;
  cudaError_t error = launch_partials (map, p, t, x, partials, stream);

  if (error != cudaSuccess)
    return error;
  return RN_LAUNCH (sum_parts, rn_n_blocks (map->c, RN_BLOCK), RN_BLOCK, 0, stream, map->c, p.parts, partials,
                    sums, diff);
}
