/*
 * launch-weights.h: what stands between a convolution of cuDNN and the parameters, which are in F32 and OIHW:
 * weights that are folded, permuted and rounded, and their gradients on the way back.
 */
#ifndef KERNELS_CUDA_LAUNCH_WEIGHTS_H
#define KERNELS_CUDA_LAUNCH_WEIGHTS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /* The weights of a convolution: for the library [k][r * s][c] (KRSC) or [k][c][r * s] (KCRS), of type @t.
   */
  typedef struct
  {
    int k, c, r, s; /* output channels, input channels of a group, height, width */
    int krsc;
    RnDType t;
  } RnCudaFilter;

  /* A batch norm on fixed statistics, vectors of F32 [k]: a = gamma / sqrt (var + eps). */
  typedef struct
  {
    const float *gamma;       /* NULL: there is none, a = 1 */
    const float *beta, *mean; /* of the bias and of the gradient of gamma; NULL where neither is asked for */
    const float *var;
    float eps;
  } RnCudaFold;

  /*
   * dst = a * weights, rounded to the filter's type: in half precision the product is one of F32, as in the
   * reference. bias_dst [k], of the same type: beta - a * mean, or @bias, or zeros.
   * @bias: (nullable) without a batch norm; @dst, @bias_dst: (nullable)
   */
  cudaError_t rn_cuda_launch_weights_fwd (const RnCudaFilter *filter, const float *weights,
                                          const RnCudaFold *fold, const float *bias, void *dst,
                                          void *bias_dst, cudaStream_t stream);

  /*
   * @dw: the gradient of the weights as the library left it, in the filter's layout and type.
   * diff_weights += a * dw, and diff_gamma += (<weights, dw> - mean * sums) / sqrt (var + eps).
   * @diff_weights: (nullable) OIHW; @diff_gamma: (nullable), needs @weights and @sums, those of
   * rn_cuda_launch_channel_sums over the gradient of the output.
   */
  cudaError_t rn_cuda_launch_weights_bwd (const RnCudaFilter *filter, const void *dw, const float *weights,
                                          const RnCudaFold *fold, const float *sums, float *diff_weights,
                                          float *diff_gamma, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
