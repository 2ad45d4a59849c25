/* launch-stats.h: norm and largest element of the gradients. */
#ifndef KERNELS_CUDA_LAUNCH_STATS_H
#define KERNELS_CUDA_LAUNCH_STATS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * stats[0]: the p-norm of @n floats, p = norm_type[0], at least 1 or infinite; stats[1]: the largest
   * absolute value. Finite while all elements are; both NaN if there is a NaN, else infinite. Sums are in
   * double, in a fixed tree. Workspace: rn_cuda_stats_workspace.
   */
  cudaError_t rn_cuda_launch_grad_stats (int64_t n, const float *grad, const float *norm_type, float *stats,
                                         void *workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
