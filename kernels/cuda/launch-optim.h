/* launch-optim.h: whether there is a step of an optimizer, and what it does to one parameter. */
#ifndef KERNELS_CUDA_LAUNCH_OPTIM_H
#define KERNELS_CUDA_LAUNCH_OPTIM_H

#include "kernels/cuda/launch.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * @n elements. @hyper: the vector of op.h, on the device. States are of type @t (F32, BF16) and may lie in
   * pinned memory of the host. The operations of the reference in its order: equal bits.
   */

  /* See the op STEP_GUARD. */
  cudaError_t rn_cuda_launch_step_guard (const float *stats, float *hyper, cudaStream_t stream);
  /* @momentum: (nullable) */
  cudaError_t rn_cuda_launch_sgd (const RnSgdArgs *args, int64_t n, const float *grad, const float *hyper,
                                  float *param, RnDType t, void *momentum, cudaStream_t stream);
  /* @max_exp_avg_sq: (nullable) */
  cudaError_t rn_cuda_launch_adam (const RnAdamArgs *args, int64_t n, const float *grad, const float *hyper,
                                   float *param, RnDType t, void *exp_avg, void *exp_avg_sq,
                                   void *max_exp_avg_sq, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
