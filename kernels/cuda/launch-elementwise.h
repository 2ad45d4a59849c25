/* launch-elementwise.h: ops that treat tensors as vectors: ReLU, additions, means of weights. */
#ifndef KERNELS_CUDA_LAUNCH_ELEMENTWISE_H
#define KERNELS_CUDA_LAUNCH_ELEMENTWISE_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * @n elements of @t (F32, F16, BF16). The output may be any of the inputs. Arithmetic is in F32, rounded
   * once: equal bits with the reference.
   */

  /* dst = src < 0 ? 0 : src; NaN stays. */
  cudaError_t rn_cuda_launch_relu_fwd (RnDType t, int64_t n, const void *src, void *dst, cudaStream_t stream);
  /* dst = y > 0 ? a + b : 0; @b: (nullable) */
  cudaError_t rn_cuda_launch_relu_bwd (RnDType t, int64_t n, const void *y, const void *a, const void *b,
                                       void *dst, cudaStream_t stream);
  /* dst = a + b, then as relu_fwd if @relu. */
  cudaError_t rn_cuda_launch_add (RnDType t, int64_t n, const void *a, const void *b, int relu, void *dst,
                                  cudaStream_t stream);

  /* mean += momentum[0] * (src - mean), of F32; a momentum of 1 copies. */
  cudaError_t rn_cuda_launch_ema_update (int64_t n, const float *src, const float *momentum, float *mean,
                                         cudaStream_t stream);
  /* Exchanges the elements of two vectors of F32. */
  cudaError_t rn_cuda_launch_swap (int64_t n, float *a, float *b, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
