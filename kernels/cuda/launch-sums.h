/* launch-sums.h: sums over the channels of a map: the gradient of a convolution's bias. */
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

#ifdef __cplusplus
}
#endif

#endif
