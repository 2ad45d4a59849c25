/* ops-loss.c: the focal loss and the box loss of one level. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-loss.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/workspace.h"

#include <runner/batch.h>

G_STATIC_ASSERT (sizeof (RnCudaPositive) == sizeof (RnPositive));
G_STATIC_ASSERT (G_STRUCT_OFFSET (RnCudaPositive, anchor) == G_STRUCT_OFFSET (RnPositive, anchor));
G_STATIC_ASSERT (G_STRUCT_OFFSET (RnCudaPositive, target) == G_STRUCT_OFFSET (RnPositive, target));

/* Kernels count the predictions of an image, and a block's part more, in 31 bits. */
#define MAX_PREDICTIONS (1 << 30)

/* The number of predictions, or -1 and a reason. */
static int64_t
count_predictions (const RnTensorDesc *d, const char **reason)
{
  RnCudaMap map;

  if ((*reason = rn_cuda_map (d, &map)) != NULL)
    return -1;
  if (map.c > MAX_PREDICTIONS / map.h / map.w)
    {
      *reason = "more than 2^30 predictions for an image";
      return -1;
    }
  return rn_desc_elements (d);
}

static RnStatus
focal_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  int64_t n = count_predictions (&call->in[RN_FOCAL_LOGITS], reason);

  if (n < 0)
    return RN_STATUS_UNSUPPORTED;
  prepared->workspace_bytes = rn_cuda_focal_workspace (n);
  return RN_STATUS_OK;
}

static RnStatus
focal_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const RnFocalArgs *args = &call->args.focal;
  const RnCudaFocal focal = {
    .alpha = args->alpha,
    .gamma = args->gamma,
    .weight = args->weight,
    .classes = args->num_classes,
    .anchors = args->anchors_per_cell,
    .labels = (const int16_t *) in[RN_FOCAL_LABELS] + args->anchor_offset,
    .label_stride = call->in[RN_FOCAL_LABELS].dims[1],
    .avg = in[RN_FOCAL_AVG],
    .grad_scale = in[RN_FOCAL_GRAD_SCALE],
  };
  RnCudaMap map;

  rn_cuda_map (&call->in[RN_FOCAL_LOGITS], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_focal_loss (&map, call->in[RN_FOCAL_LOGITS].dtype, &focal,
                                                   in[RN_FOCAL_LOGITS], out[RN_LOSS_DIFF], out[RN_LOSS_VALUE],
                                                   workspace, rn_cuda_stream (device)),
                        "focal_loss");
}

static RnStatus
box_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  int64_t n = count_predictions (&call->in[RN_BOX_PRED], reason);

  if (n < 0)
    return RN_STATUS_UNSUPPORTED;
  prepared->workspace_bytes = rn_cuda_box_workspace (n / 4);
  return RN_STATUS_OK;
}

static RnStatus
box_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnBoxArgs *args = &call->args.box;
  const RnCudaBox box = {
    .beta = args->beta,
    .weight = args->weight,
    .anchors = args->anchors_per_cell,
    .anchor_offset = args->anchor_offset,
    .positives = in[RN_BOX_POSITIVES],
    .count = in[RN_BOX_COUNT],
    .capacity = call->in[RN_BOX_POSITIVES].dims[0] / (int64_t) sizeof (RnPositive),
    .avg = in[RN_BOX_AVG],
    .grad_scale = in[RN_BOX_GRAD_SCALE],
  };
  RnCudaMap map;

  rn_cuda_map (&call->in[RN_BOX_PRED], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_box_loss (&map, call->in[RN_BOX_PRED].dtype, &box, in[RN_BOX_PRED],
                                                 out[RN_LOSS_DIFF], out[RN_LOSS_VALUE], workspace,
                                                 rn_cuda_stream (device)),
                        "box_loss");
}

const RnKernel rn_cuda_focal_loss = { .op = RN_OP_FOCAL_LOSS,
                                      .name = "cuda:focal_loss",
                                      .priority = 100,
                                      .prepare = focal_prepare,
                                      .run = focal_loss };
const RnKernel rn_cuda_box_loss = {
  .op = RN_OP_BOX_LOSS, .name = "cuda:box_loss", .priority = 100, .prepare = box_prepare, .run = box_loss
};
