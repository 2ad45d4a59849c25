/* launch-move.h: ops that only move values: another layout or type, nearest upsampling and its gradient. */
#ifndef KERNELS_CUDA_LAUNCH_MOVE_H
#define KERNELS_CUDA_LAUNCH_MOVE_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * @dst = @src, of the sizes of @map, in another type (any two of F32, F16, BF16; what is too large becomes
   * infinite), and in the other layout if @dst_nhwc differs from that of @map.
   */
  cudaError_t rn_cuda_launch_reorder (const RnCudaMap *map, RnDType src_type, const void *src, int dst_nhwc,
                                      RnDType dst_type, void *dst, cudaStream_t stream);

  /*
   * Nearest neighbour: the cell (y, x) of @fine lies in cell (floor (y * h / fine h), ...) of @coarse; either
   * may be the larger one. Both have the same batch, channels and layout, and elements of @t. Sizes whose
   * products need more than 31 bits are not supported: cudaErrorInvalidValue.
   */
  int rn_cuda_upsample_is_supported (const RnCudaMap *coarse, const RnCudaMap *fine);

  /* dst (fine) = src (coarse) of its cell + addend; @addend: (nullable) fine, may be @dst */
  cudaError_t rn_cuda_launch_upsample_fwd (const RnCudaMap *coarse, const RnCudaMap *fine, RnDType t,
                                           const void *src, const void *addend, void *dst,
                                           cudaStream_t stream);
  /* dst (coarse) = addend + sum of the cells of src (fine) that lie in it, in order; @addend: (nullable)
   * coarse, may be @dst */
  cudaError_t rn_cuda_launch_upsample_bwd (const RnCudaMap *coarse, const RnCudaMap *fine, RnDType t,
                                           const void *src, const void *addend, void *dst,
                                           cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
