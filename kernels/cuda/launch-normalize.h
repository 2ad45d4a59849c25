/* launch-normalize.h: the bytes of a batch become the model's input. */
#ifndef KERNELS_CUDA_LAUNCH_NORMALIZE_H
#define KERNELS_CUDA_LAUNCH_NORMALIZE_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * @dst, of the three channels and sizes of @map and of type @t: @table of the byte where the image is, else
   * 0. @pixels: [n, h, w, 3]; @sizes: [n] height, width, whatever they are; @table: F32 [n, 3, 256].
   */
  cudaError_t rn_cuda_launch_normalize (const RnCudaMap *map, RnDType t, const uint8_t *pixels,
                                        const int32_t *sizes, const float *table, void *dst,
                                        cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
