/*
 * weights.cu: parameters of convolutions, in F32 and OIHW, become what the library reads, and its gradients
 * become those of the parameters. One output channel is a row: its scale is computed once per block.
 */
#include "kernels/cuda/launch-weights.h"
#include "kernels/cuda/pack.cuh"

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
