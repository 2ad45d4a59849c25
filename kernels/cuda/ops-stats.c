/* ops-stats.c: norm and largest element of the gradients. */
#include "config.h"

#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-stats.h"
#include "kernels/cuda/workspace.h"

static RnStatus
grad_stats_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  prepared->workspace_bytes = rn_cuda_stats_workspace (call->in[RN_GRAD_STATS_GRAD].dims[0]);
  return RN_STATUS_OK;
}

static RnStatus
grad_stats (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  return rn_cuda_check (device,
                        rn_cuda_launch_grad_stats (call->in[RN_GRAD_STATS_GRAD].dims[0],
                                                   in[RN_GRAD_STATS_GRAD], in[RN_GRAD_STATS_NORM_TYPE],
                                                   out[0], workspace, rn_cuda_stream (device)),
                        "grad_stats");
}

const RnKernel rn_cuda_grad_stats = { .op = RN_OP_GRAD_STATS,
                                      .name = "cuda:grad_stats",
                                      .priority = 100,
                                      .prepare = grad_stats_prepare,
                                      .run = grad_stats };
