/* launch-pool.h: max and average pooling and their gradients. */
#ifndef KERNELS_CUDA_LAUNCH_POOL_H
#define KERNELS_CUDA_LAUNCH_POOL_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /* A window, H and W; output sizes follow from it and are in the map of the output. */
  typedef struct
  {
    int kernel[2], stride[2], pad[2];
  } RnCudaWindow;

  /*
   * @src and @dst: maps of the forward direction, of equal batch, channels and layout, with elements of @t.
   * Gradients are gathered, in the order of the windows: equal bits with the reference.
   */

  /* Pads with -inf; the first maximum wins, and NaN. @index: (nullable) its place in the window, row by row
   */
  cudaError_t rn_cuda_launch_max_pool_fwd (const RnCudaMap *src, const RnCudaMap *dst,
                                           const RnCudaWindow *window, RnDType t, const void *x, void *y,
                                           uint8_t *index, cudaStream_t stream);
  cudaError_t rn_cuda_launch_max_pool_bwd (const RnCudaMap *src, const RnCudaMap *dst,
                                           const RnCudaWindow *window, RnDType t, const void *dy,
                                           const uint8_t *index, void *dx, cudaStream_t stream);
  /* The mean of the cells inside of the source. */
  cudaError_t rn_cuda_launch_avg_pool_fwd (const RnCudaMap *src, const RnCudaMap *dst,
                                           const RnCudaWindow *window, RnDType t, const void *x, void *y,
                                           cudaStream_t stream);
  cudaError_t rn_cuda_launch_avg_pool_bwd (const RnCudaMap *src, const RnCudaMap *dst,
                                           const RnCudaWindow *window, RnDType t, const void *dy, void *dx,
                                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
