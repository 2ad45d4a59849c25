/* launch-loss.h: the losses of one level, with their gradients. */
#ifndef KERNELS_CUDA_LAUNCH_LOSS_H
#define KERNELS_CUDA_LAUNCH_LOSS_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  /*
   * value[0] = weight * sum / avg[0]; diff = weight * d/dx / avg[0] * grad_scale[0], of the type of the
   * predictions; avg, grad_scale and value are F32 on the device. The sum is in F32 in a fixed tree within a
   * part (workspace.h), and in double over the parts.
   *
   * @diff: (nullable) may be the predictions
   */

  typedef struct
  {
    float alpha, gamma, weight;
    int classes, anchors;  /* anchors of a cell */
    const int16_t *labels; /* of the level: those of the next image are label_stride further */
    int64_t label_stride;
    const float *avg, *grad_scale;
  } RnCudaFocal;

  /* @map: of the logits, channels anchor * classes + class. Workspace: rn_cuda_focal_workspace. */
  cudaError_t rn_cuda_launch_focal_loss (const RnCudaMap *map, RnDType t, const RnCudaFocal *focal,
                                         const void *logits, void *diff, float *value, void *workspace,
                                         cudaStream_t stream);

  /* RnPositive of runner/batch.h. */
  typedef struct
  {
    int32_t image, anchor;
    float target[4];
  } RnCudaPositive;

  typedef struct
  {
    float beta, weight;
    int anchors;                     /* of a cell */
    int64_t anchor_offset;           /* of the level in the anchors of an image */
    const RnCudaPositive *positives; /* ordered by image, then anchor */
    const int64_t *count;            /* on the device; cut to 0 .. capacity */
    int64_t capacity;
    const float *avg, *grad_scale;
  } RnCudaBox;

  /* @map: of the predictions, channels anchor * 4 + delta. Workspace: rn_cuda_box_workspace. */
  cudaError_t rn_cuda_launch_box_loss (const RnCudaMap *map, RnDType t, const RnCudaBox *box,
                                       const void *pred, void *diff, float *value, void *workspace,
                                       cudaStream_t stream);

  /* The last step of both: value[0] = weight * (sum of @n parts) / avg[0]. */
  cudaError_t rn_cuda_launch_loss_value (const float *parts, int64_t n, float weight, const float *avg,
                                         float *value, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
