/*
 * ops-elementwise.c: ReLU, additions, means of weights. Tensors are walked as vectors, in any layout: padding
 * channels are zero on the way in and so on the way out. Where channels are added up on the way, they are
 * walked as maps.
 */
#include "config.h"

#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-elementwise.h"
#include "kernels/cuda/launch-sums.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/workspace.h"

static RnStatus
relu_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnTensorDesc *d = &call->out[0];
  return rn_cuda_check (
      device,
      rn_cuda_launch_relu_fwd (d->dtype, rn_desc_stored_elements (d), in[0], out[0], rn_cuda_stream (device)),
      "relu_fwd");
}

static RnStatus
relu_bwd_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  RnCudaMap map;

  if (!RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
    return RN_STATUS_OK;
  *reason = rn_cuda_map (&call->out[RN_RELU_BWD_DST], &map);
  if (*reason != NULL)
    return RN_STATUS_UNSUPPORTED;
  prepared->workspace_bytes =
      rn_cuda_channel_sums_workspace (map.n, map.c, (int64_t) map.h * map.w, map.nhwc);
  return RN_STATUS_OK;
}

static RnStatus
relu_bwd_sums (RnDevice *device, const RnOpCall *call, const void *const *in, void *const *out,
               void *workspace)
{
  const RnTensorDesc *d = &call->out[RN_RELU_BWD_DST];
  RnCudaMap map;

  rn_cuda_map (d, &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_relu_bwd_sums (
                            &map, d->dtype, in[RN_RELU_BWD_Y], in[RN_RELU_BWD_A], in[RN_RELU_BWD_B],
                            out[RN_RELU_BWD_DST], out[RN_RELU_BWD_SUMS], workspace, rn_cuda_stream (device)),
                        "relu_bwd");
}

static RnStatus
relu_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnTensorDesc *d = &call->out[RN_RELU_BWD_DST];

  if (out[RN_RELU_BWD_SUMS] != NULL)
    return relu_bwd_sums (device, call, in, out, workspace);
  return rn_cuda_check (device,
                        rn_cuda_launch_relu_bwd (d->dtype, rn_desc_stored_elements (d), in[RN_RELU_BWD_Y],
                                                 in[RN_RELU_BWD_A], in[RN_RELU_BWD_B], out[0],
                                                 rn_cuda_stream (device)),
                        "relu_bwd");
}

static RnStatus
add (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnTensorDesc *d = &call->out[0];
  return rn_cuda_check (device,
                        rn_cuda_launch_add (d->dtype, rn_desc_stored_elements (d), in[RN_ADD_A], in[RN_ADD_B],
                                            call->args.add.relu, out[0], rn_cuda_stream (device)),
                        "add");
}

static RnStatus
ema_update (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  return rn_cuda_check (device,
                        rn_cuda_launch_ema_update (call->out[0].dims[0], in[RN_EMA_SRC], in[RN_EMA_MOMENTUM],
                                                   out[0], rn_cuda_stream (device)),
                        "ema_update");
}

static RnStatus
swap (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  return rn_cuda_check (device,
                        rn_cuda_launch_swap (call->out[RN_SWAP_A].dims[0], out[RN_SWAP_A], out[RN_SWAP_B],
                                             rn_cuda_stream (device)),
                        "swap");
}

const RnKernel rn_cuda_relu_fwd = {
  .op = RN_OP_RELU_FWD, .name = "cuda:relu_fwd", .priority = 100, .run = relu_fwd
};
const RnKernel rn_cuda_relu_bwd = {
  .op = RN_OP_RELU_BWD, .name = "cuda:relu_bwd", .priority = 100, .prepare = relu_bwd_prepare, .run = relu_bwd
};
const RnKernel rn_cuda_add = { .op = RN_OP_ADD, .name = "cuda:add", .priority = 100, .run = add };
const RnKernel rn_cuda_ema_update = {
  .op = RN_OP_EMA_UPDATE, .name = "cuda:ema_update", .priority = 100, .run = ema_update
};
const RnKernel rn_cuda_swap = { .op = RN_OP_SWAP, .name = "cuda:swap", .priority = 100, .run = swap };
