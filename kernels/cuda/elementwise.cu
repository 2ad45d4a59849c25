/*
 * elementwise.cu: ReLU, additions, means of weights. Tensors are vectors here; halves are computed with in
 * F32 and rounded once. An output may be an input: a thread reads what it writes, and before.
 */
#include "kernels/cuda/launch-elementwise.h"
#include "kernels/cuda/pack.cuh"

namespace
{

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) relu_fwd (int64_t n, const T *src, T *dst)
{
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float value[W];
    rn_read<W> (src + i, value);
    for (int k = 0; k < W; k++)
      value[k] = value[k] < 0 ? 0 : value[k];
    rn_write<W> (dst + i, value);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) relu_bwd (int64_t n, const T *y, const T *a, const T *b, T *dst)
{
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float value[W], grad[W], other[W] = {};
    rn_read<W> (y + i, value);
    rn_read<W> (a + i, grad);
    if (b != nullptr)
      rn_read<W> (b + i, other);
    for (int k = 0; k < W; k++)
      grad[k] = value[k] > 0 ? grad[k] + other[k] : 0;
    rn_write<W> (dst + i, grad);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) add (int64_t n, const T *a, const T *b, int relu, T *dst)
{
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float sum[W], other[W];
    rn_read<W> (a + i, sum);
    rn_read<W> (b + i, other);
    for (int k = 0; k < W; k++)
      {
        sum[k] += other[k];
        sum[k] = relu && sum[k] < 0 ? 0 : sum[k];
      }
    rn_write<W> (dst + i, sum);
  });
}

template <int V>
__global__ void
RN_BOUNDS (RN_BLOCK) ema_update (int64_t n, const float *src, const float *momentum, float *mean)
{
  const float m = *momentum;
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float value[W], kept[W];
    rn_read<W> (src + i, value);
    rn_read<W> (mean + i, kept);
    for (int k = 0; k < W; k++)
      kept[k] = m == 1 ? value[k] : __fadd_rn (kept[k], __fmul_rn (m, value[k] - kept[k]));
    rn_write<W> (mean + i, kept);
  });
}

template <int V>
__global__ void
RN_BOUNDS (RN_BLOCK) swap (int64_t n, float *a, float *b)
{
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float x[W], y[W];
    rn_read<W> (a + i, x);
    rn_read<W> (b + i, y);
    rn_write<W> (a + i, y);
    rn_write<W> (b + i, x);
  });
}

}

/* ---- launchers: packs where all addresses allow them ---- */

template <typename T>
static cudaError_t
launch_relu_fwd (int64_t n, const T *src, T *dst, cudaStream_t stream)
{
  constexpr int V = RN_PACK_OF (T);

  if (rn_is_aligned (src, 16) && rn_is_aligned (dst, 16))
    return RN_LAUNCH ((relu_fwd<T, V>), rn_n_blocks (n / V, RN_BLOCK), RN_BLOCK, 0, stream, n, src, dst);
  return RN_LAUNCH ((relu_fwd<T, 1>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, src, dst);
}

template <typename T>
static cudaError_t
launch_relu_bwd (int64_t n, const T *y, const T *a, const T *b, T *dst, cudaStream_t stream)
{
  constexpr int V = RN_PACK_OF (T);

  if (rn_is_aligned (y, 16) && rn_is_aligned (a, 16) && rn_is_aligned (b, 16) && rn_is_aligned (dst, 16))
    return RN_LAUNCH ((relu_bwd<T, V>), rn_n_blocks (n / V, RN_BLOCK), RN_BLOCK, 0, stream, n, y, a, b, dst);
  return RN_LAUNCH ((relu_bwd<T, 1>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, y, a, b, dst);
}

template <typename T>
static cudaError_t
launch_add (int64_t n, const T *a, const T *b, int relu, T *dst, cudaStream_t stream)
{
  constexpr int V = RN_PACK_OF (T);

  if (rn_is_aligned (a, 16) && rn_is_aligned (b, 16) && rn_is_aligned (dst, 16))
    return RN_LAUNCH ((add<T, V>), rn_n_blocks (n / V, RN_BLOCK), RN_BLOCK, 0, stream, n, a, b, relu, dst);
  return RN_LAUNCH ((add<T, 1>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, a, b, relu, dst);
}

cudaError_t
rn_cuda_launch_relu_fwd (RnDType t, int64_t n, const void *src, void *dst, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, return launch_relu_fwd (n, (const T *) src, (T *) dst, stream));
}

cudaError_t
rn_cuda_launch_relu_bwd (RnDType t, int64_t n, const void *y, const void *a, const void *b, void *dst,
                         cudaStream_t stream)
{
  RN_SWITCH_FLOAT (
      t, T, return launch_relu_bwd (n, (const T *) y, (const T *) a, (const T *) b, (T *) dst, stream));
}

cudaError_t
rn_cuda_launch_add (RnDType t, int64_t n, const void *a, const void *b, int relu, void *dst,
                    cudaStream_t stream)
{
  RN_SWITCH_FLOAT (t, T, return launch_add (n, (const T *) a, (const T *) b, relu, (T *) dst, stream));
}

cudaError_t
rn_cuda_launch_ema_update (int64_t n, const float *src, const float *momentum, float *mean,
                           cudaStream_t stream)
{
  if (rn_is_aligned (src, 16) && rn_is_aligned (mean, 16))
    return RN_LAUNCH (ema_update<4>, rn_n_blocks (n / 4, RN_BLOCK), RN_BLOCK, 0, stream, n, src, momentum,
                      mean);
  return RN_LAUNCH (ema_update<1>, rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, src, momentum, mean);
}

cudaError_t
rn_cuda_launch_swap (int64_t n, float *a, float *b, cudaStream_t stream)
{
  if (rn_is_aligned (a, 16) && rn_is_aligned (b, 16))
    return RN_LAUNCH (swap<4>, rn_n_blocks (n / 4, RN_BLOCK), RN_BLOCK, 0, stream, n, a, b);
  return RN_LAUNCH (swap<1>, rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, a, b);
}
