/* launch-sums.h: sums over the channels of a map: the gradient of a convolution's bias; by themselves, or
 * while the gradient is written. */
#ifndef KERNELS_CUDA_LAUNCH_SUMS_H
#define KERNELS_CUDA_LAUNCH_SUMS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * sums[c] = sum over n, h, w of x, of type @t; diff[c] += sums[c]. Partial sums in F32, of parts that @map
   * fixes (workspace.h), in a fixed tree; these are added in double, in another.
   * @sums, @diff: (nullable) [c]. Workspace: rn_cuda_channel_sums_workspace.
   */
  cudaError_t rn_cuda_launch_channel_sums (const RnCudaMap *map, RnDType t, const void *x, float *sums,
                                           float *diff, void *workspace, cudaStream_t stream);

  /*
   * dst = y > 0 ? a + b : 0, as rn_cuda_launch_relu_bwd, and sums[c] of dst as it is stored: equal bits with
   * that and rn_cuda_launch_channel_sums.
   * @b: (nullable); @dst may be @a or @b. Workspace: rn_cuda_channel_sums_workspace.
   */
  cudaError_t rn_cuda_launch_relu_bwd_sums (const RnCudaMap *map, RnDType t, const void *y, const void *a,
                                            const void *b, void *dst, float *sums, void *workspace,
                                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
