/* map.h: the layout of a tensor as our kernels take it. */
#ifndef KERNELS_CUDA_MAP_H
#define KERNELS_CUDA_MAP_H

#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/launch.h"

G_BEGIN_DECLS

/* Our kernels count rows of pixels, channels and pixels of a plane in 31 bits; offsets in 64. */
#define RN_CUDA_MAX_COUNT G_MAXINT32

/*
 * @map as a rank-4 activation lies in memory: NCHW or NHWC; one channel is both. NULL, or the static reason
 * why our kernels do not take it.
 */
static inline const char *
rn_cuda_map (const RnTensorDesc *d, RnCudaMap *map)
{
  const gint64 max = RN_CUDA_MAX_COUNT;

  if (d->rank != 4 || (d->cblk != 1 && !RN_CUDA_IS_NHWC (d)))
    return "layouts other than NCHW and NHWC";
  if (d->dims[0] > max || d->dims[1] > max || d->dims[2] > max || d->dims[3] > max
      || d->dims[0] > max / d->dims[1] / d->dims[2] /* rows of NCHW */
      || d->dims[2] > max / d->dims[3] || d->dims[1] > max / d->dims[3])
    return "a map with more rows, or a row or a plane with more elements, than 31 bits count";
  *map = (RnCudaMap){ .n = (int) d->dims[0],
                      .c = (int) d->dims[1],
                      .h = (int) d->dims[2],
                      .w = (int) d->dims[3],
                      .nhwc = RN_CUDA_IS_NHWC (d) };
  return NULL;
}

G_END_DECLS

#endif
