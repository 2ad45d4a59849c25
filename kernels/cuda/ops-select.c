/* ops-select.c: the anchors of a level with the largest class logit. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-select.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/workspace.h"

static RnStatus
topk_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnTopkArgs *args = &call->args.topk;
  RnCudaMap logits, deltas;

  if ((*reason = rn_cuda_map (&call->in[RN_TOPK_LOGITS], &logits)) != NULL
      || (*reason = rn_cuda_map (&call->in[RN_TOPK_DELTAS], &deltas)) != NULL)
    return RN_STATUS_UNSUPPORTED;
  prepared->workspace_bytes =
      rn_cuda_topk_workspace (logits.n, (int64_t) logits.h * logits.w * args->anchors_per_cell, args->k);
  return RN_STATUS_OK;
}

static RnStatus
topk (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnTopkArgs *args = &call->args.topk;
  const RnCudaTopk topk = { args->k, args->num_classes, args->anchors_per_cell };
  RnCudaMap logits, deltas;

  rn_cuda_map (&call->in[RN_TOPK_LOGITS], &logits);
  rn_cuda_map (&call->in[RN_TOPK_DELTAS], &deltas);
  return rn_cuda_check (device,
                        rn_cuda_launch_topk (&topk, &logits, call->in[RN_TOPK_LOGITS].dtype,
                                             in[RN_TOPK_LOGITS], &deltas, call->in[RN_TOPK_DELTAS].dtype,
                                             in[RN_TOPK_DELTAS], out[RN_TOPK_INDEX], out[RN_TOPK_ROW_LOGITS],
                                             out[RN_TOPK_ROW_DELTAS], workspace, rn_cuda_stream (device)),
                        "topk");
}

const RnKernel rn_cuda_topk = {
  .op = RN_OP_TOPK, .name = "cuda:topk", .priority = 100, .prepare = topk_prepare, .run = topk
};
