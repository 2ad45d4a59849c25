/* plan-device.c: CUDA as the planner sees it. */
#include "config.h"

#include "kernels/plan-device.h"

/* Partial sums of reductions: so many blocks share the rows of a map, and each keeps a count, a mean and a
 * sum of squares per channel. */
#define REDUCTION_BLOCKS 256
#define PARTIAL_BYTES 12
/* Elements of a flat array that one block sums up. */
#define CHUNK 65536
/* The three histograms of a radix select. */
#define SELECT_BYTES (3 * 2048 * 4)

static RnStatus
no_alloc (RnDevice *device, gsize bytes, void **memory)
{
  return RN_STATUS_UNSUPPORTED;
}

static void
no_free (RnDevice *device, void *memory, gsize bytes)
{
}

static RnStatus
no_copy_in (RnDevice *device, void *dst, const void *host_src, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

static RnStatus
no_copy_out (RnDevice *device, void *host_dst, const void *src, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

static RnStatus
no_fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  return RN_STATUS_UNSUPPORTED;
}

static void
destroy (RnDevice *device)
{
  g_free (device->description);
  g_free (device);
}

static const RnDeviceVtbl plan_vtbl = {
  .name = "cuda",
  .alloc = no_alloc,
  .free = no_free,
  .alloc_host = no_alloc,
  .free_host = no_free,
  .copy_in = no_copy_in,
  .copy_out = no_copy_out,
  .fill = no_fill,
  .destroy = destroy,
};

static gsize
norm_bytes (const RnTensorDesc *map)
{
  return (gsize) map->dims[1] * REDUCTION_BLOCKS * PARTIAL_BYTES;
}

static RnStatus
describe (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  gsize elements = (gsize) rn_desc_elements (&call->in[0]);

  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
    case RN_OP_CONV2D_BWD_DATA:
    case RN_OP_CONV2D_BWD_WEIGHTS:
      prepared->workspace_bytes =
          device->workspace_limit > 0 ? device->workspace_limit : RN_PLAN_DEVICE_WORKSPACE;
      break;
    case RN_OP_BATCH_NORM_FWD:
      prepared->workspace_bytes = call->args.norm.training ? norm_bytes (&call->in[RN_NORM_SRC]) : 0;
      break;
    case RN_OP_BATCH_NORM_BWD:
      prepared->workspace_bytes = norm_bytes (&call->in[RN_NORM_BWD_SRC]);
      break;
    case RN_OP_FOCAL_LOSS:
    case RN_OP_BOX_LOSS:
    case RN_OP_GRAD_STATS:
      prepared->workspace_bytes = (elements / CHUNK + 1) * PARTIAL_BYTES;
      break;
    case RN_OP_TOPK:
      prepared->workspace_bytes =
          (gsize) call->in[RN_TOPK_LOGITS].dims[0] * SELECT_BYTES + elements * sizeof (float);
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
  device->n_threads = 1;
  device->kernels = kernels;
  device->description =
      g_strdup ("CUDA, planned without looking at one; NHWC in half precision, NCHW in single");
  return device;
}
