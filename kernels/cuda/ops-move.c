/* ops-move.c: copies, zeros, another layout or type, nearest upsampling and its gradient. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-move.h"
#include "kernels/cuda/map.h"

/* ---- upsampling ---- */

static RnStatus
upsample_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  gboolean is_fwd = call->op == RN_OP_UPSAMPLE_FWD;
  RnCudaMap coarse, fine;

  if ((*reason = rn_cuda_map (&call->in[RN_UPSAMPLE_SRC], is_fwd ? &coarse : &fine)) != NULL
      || (*reason = rn_cuda_map (&call->out[0], is_fwd ? &fine : &coarse)) != NULL)
    return RN_STATUS_UNSUPPORTED;
  if (!rn_cuda_upsample_is_supported (&coarse, &fine))
    {
      *reason = "a product of two heights or two widths needs more than 31 bits";
      return RN_STATUS_UNSUPPORTED;
    }
  return RN_STATUS_OK;
}

static RnStatus
upsample_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  RnCudaMap coarse, fine;

  rn_cuda_map (&call->in[RN_UPSAMPLE_SRC], &coarse);
  rn_cuda_map (&call->out[0], &fine);
  return rn_cuda_check (device,
                        rn_cuda_launch_upsample_fwd (&coarse, &fine, call->out[0].dtype, in[RN_UPSAMPLE_SRC],
                                                     in[RN_UPSAMPLE_ADDEND], out[0], rn_cuda_stream (device)),
                        "upsample_fwd");
}

static RnStatus
upsample_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  RnCudaMap coarse, fine;

  rn_cuda_map (&call->in[RN_UPSAMPLE_SRC], &fine);
  rn_cuda_map (&call->out[0], &coarse);
  return rn_cuda_check (device,
                        rn_cuda_launch_upsample_bwd (&coarse, &fine, call->out[0].dtype, in[RN_UPSAMPLE_SRC],
                                                     in[RN_UPSAMPLE_ADDEND], out[0], rn_cuda_stream (device)),
                        "upsample_bwd");
}

/* ---- layout and type ---- */

static RnStatus
reorder_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  RnCudaMap src, dst;

  if ((*reason = rn_cuda_map (&call->in[0], &src)) != NULL
      || (*reason = rn_cuda_map (&call->out[0], &dst)) != NULL)
    return RN_STATUS_UNSUPPORTED;
  return RN_STATUS_OK;
}

static RnStatus
reorder (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
         void *workspace)
{
  RnCudaMap map;

  rn_cuda_map (&call->in[0], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_reorder (&map, call->in[0].dtype, in[0],
                                                RN_CUDA_IS_NHWC (&call->out[0]), call->out[0].dtype, out[0],
                                                rn_cuda_stream (device)),
                        "reorder");
}

/* ---- copies and zeros: of any tensor, by the runtime ---- */

/* Either side may lie in pinned memory of the host. */
static RnStatus
copy (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  return rn_cuda_check (device,
                        cudaMemcpyAsync (out[0], in[0], rn_desc_bytes (&call->out[0]), cudaMemcpyDefault,
                                         rn_cuda_stream (device)),
                        "cudaMemcpyAsync");
}

static RnStatus
zero (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  return rn_cuda_check (device,
                        cudaMemsetAsync (out[0], 0, rn_desc_bytes (&call->out[0]), rn_cuda_stream (device)),
                        "cudaMemsetAsync");
}

const RnKernel rn_cuda_upsample_fwd = { .op = RN_OP_UPSAMPLE_FWD,
                                        .name = "cuda:upsample_fwd",
                                        .priority = 100,
                                        .prepare = upsample_prepare,
                                        .run = upsample_fwd };
const RnKernel rn_cuda_upsample_bwd = { .op = RN_OP_UPSAMPLE_BWD,
                                        .name = "cuda:upsample_bwd",
                                        .priority = 100,
                                        .prepare = upsample_prepare,
                                        .run = upsample_bwd };
const RnKernel rn_cuda_reorder = {
  .op = RN_OP_REORDER, .name = "cuda:reorder", .priority = 100, .prepare = reorder_prepare, .run = reorder
};
const RnKernel rn_cuda_copy = { .op = RN_OP_COPY, .name = "cuda:copy", .priority = 100, .run = copy };
const RnKernel rn_cuda_zero = { .op = RN_OP_ZERO, .name = "cuda:zero", .priority = 100, .run = zero };
