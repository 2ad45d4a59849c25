/* launch-select.h: the anchors of a level with the largest class logit. */
#ifndef KERNELS_CUDA_LAUNCH_SELECT_H
#define KERNELS_CUDA_LAUNCH_SELECT_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C"
{
#endif

  typedef struct
  {
    int64_t k;            /* anchors that are selected per image, 1 .. h * w * anchors */
    int classes, anchors; /* anchors of a cell */
  } RnCudaTopk;

  /*
   * In the order of rn_topk_key (kernels/topk-key.h); all anchors, in their own order, when k is their
   * number. Maps of logits and deltas have equal n, h, w.
   *
   * index: [n][k]; row_logits: [n][k][classes], row_deltas: [n][k][4]. Workspace: rn_cuda_topk_workspace.
   */
  cudaError_t rn_cuda_launch_topk (const RnCudaTopk *topk, const RnCudaMap *logits_map, RnDType logits_type,
                                   const void *logits, const RnCudaMap *deltas_map, RnDType deltas_type,
                                   const void *deltas, int32_t *index, float *row_logits, float *row_deltas,
                                   void *workspace, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
