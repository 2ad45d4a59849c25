/* plan-device.c: CUDA as the planner sees it. */
#include "config.h"

#include "kernels/plan-device.h"

#include "kernels/cuda/conv-workspace.h"
#include "kernels/no-memory.h"

static void
destroy (RnDevice *device)
{
  g_free (device->description);
  g_free (device);
}

static const RnDeviceVtbl plan_vtbl = {
  .name = "cuda",
  RN_NO_MEMORY_SLOTS,
  .destroy = destroy,
};

/* The layout is the device's to choose: the most of both. */
static gsize
norm_bytes (const RnTensorDesc *map, gboolean reduces)
{
  const int64_t cells = map->dims[2] * map->dims[3];
  return MAX (rn_cuda_norm_workspace (map->dims[0], map->dims[1], cells, FALSE, reduces),
              rn_cuda_norm_workspace (map->dims[0], map->dims[1], cells, TRUE, reduces));
}

static gsize
channel_sums_bytes (const RnTensorDesc *map)
{
  const int64_t cells = map->dims[2] * map->dims[3];
  return MAX (rn_cuda_channel_sums_workspace (map->dims[0], map->dims[1], cells, FALSE),
              rn_cuda_channel_sums_workspace (map->dims[0], map->dims[1], cells, TRUE));
}

/* What the engine may take, and what stands beside it, in the layout that needs more. */
static gsize
conv_bytes (const RnDevice *device, const RnOpCall *call)
{
  if (device->workspace_limit > 0)
    return device->workspace_limit;
  return RN_PLAN_DEVICE_WORKSPACE + RN_CUDA_CONV_SLACK
         + MAX (rn_cuda_conv_workspace (call, FALSE).bytes, rn_cuda_conv_workspace (call, TRUE).bytes);
}

static gsize
topk_bytes (const RnTensorDesc *logits, const RnTopkArgs *args)
{
  return rn_cuda_topk_workspace (logits->dims[0], logits->dims[2] * logits->dims[3] * args->anchors_per_cell,
                                 args->k);
}

static RnStatus
describe (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const int64_t elements = rn_desc_elements (&call->in[0]);

  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
    case RN_OP_CONV2D_BWD_DATA:
    case RN_OP_CONV2D_BWD_WEIGHTS:
      prepared->workspace_bytes = conv_bytes (device, call);
      break;
    case RN_OP_BATCH_NORM_FWD:
      prepared->workspace_bytes = norm_bytes (&call->in[RN_NORM_SRC], call->args.norm.training);
      break;
    case RN_OP_BATCH_NORM_BWD:
      prepared->workspace_bytes = norm_bytes (
          &call->in[RN_NORM_BWD_SRC],
          rn_cuda_norm_bwd_reduces (call->args.norm.training, RN_HAS_OUT (call, RN_NORM_BWD_DIFF_GAMMA),
                                    RN_HAS_OUT (call, RN_NORM_BWD_DIFF_BETA)));
      break;
    case RN_OP_RELU_BWD:
      if (RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
        prepared->workspace_bytes = channel_sums_bytes (&call->out[RN_RELU_BWD_DST]);
      break;
    case RN_OP_FOCAL_LOSS:
      prepared->workspace_bytes = rn_cuda_focal_workspace (elements);
      break;
    case RN_OP_BOX_LOSS:
      prepared->workspace_bytes = rn_cuda_box_workspace (elements / 4);
      break;
    case RN_OP_GRAD_STATS:
      prepared->workspace_bytes = rn_cuda_stats_workspace (elements);
      break;
    case RN_OP_TOPK:
      prepared->workspace_bytes = topk_bytes (&call->in[RN_TOPK_LOGITS], &call->args.topk);
      break;
    default:
      break;
    }
  return RN_STATUS_OK;
}

static RnStatus
no_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
        void *workspace)
{
  return RN_STATUS_UNSUPPORTED;
}

/* One for every op. */
static const RnKernel plan_kernels[] = {
#define RN_OP(ID, name_, args, n_in, n_out) \
  { .op = RN_OP_##ID,                       \
    .name = "cuda:" #name_ ":planned",      \
    .takes_limit = TRUE,                    \
    .prepare = describe,                    \
    .run = no_run },
#include "kernels/ops.def"
#undef RN_OP
};

RnDevice *
rn_device_new_plan_cuda (void)
{
  static const RnKernel *kernels[G_N_ELEMENTS (plan_kernels) + 1];
  RnDevice *device = g_new0 (RnDevice, 1);

  for (gsize i = 0; i < G_N_ELEMENTS (plan_kernels); i++)
    kernels[i] = &plan_kernels[i];
  device->vtbl = &plan_vtbl;
  device->cblk = 1;
  device->masks_with_sums = TRUE;
  device->n_threads = 1;
  device->kernels = kernels;
  device->description =
      g_strdup ("CUDA, planned without looking at one; NHWC in half precision, NCHW in single");
  return device;
}
