/* launch-norm.h: batch normalisation and its gradient. */
#ifndef KERNELS_CUDA_LAUNCH_NORM_H
#define KERNELS_CUDA_LAUNCH_NORM_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * Vectors are F32 [c]. The sums are over parts that the map fixes (workspace.h): in F32 in a fixed tree
   * within a part, and over the parts in double. Workspace: rn_cuda_norm_workspace.
   */

  typedef struct
  {
    const float *gamma, *beta;
    const float *mean, *var;           /* given statistics; NULL: those of the batch */
    float *saved_mean, *saved_invstd;  /* of the batch */
    float *running_mean, *running_var; /* (nullable) updated with those of the batch */
    float eps, momentum;
    int relu;
  } RnCudaNorm;

  /* @dst may be @src; elements of type @t. A NaN stays one, with ReLU too. */
  cudaError_t rn_cuda_launch_norm_fwd (const RnCudaMap *map, RnDType t, const RnCudaNorm *norm,
                                       const void *src, void *dst, void *workspace, cudaStream_t stream);

  typedef struct
  {
    const float *gamma;
    const float *mean, *var;       /* training: saved mean and 1 / sqrt (var + eps), else the statistics */
    float *diff_gamma, *diff_beta; /* (nullable) added to */
    float eps;
    int training;
  } RnCudaNormBwd;

  /* @diff_src may be @diff_dst. */
  cudaError_t rn_cuda_launch_norm_bwd (const RnCudaMap *map, RnDType t, const RnCudaNormBwd *norm,
                                       const void *src, const void *diff_dst, void *diff_src, void *workspace,
                                       cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
