/* ops-norm.c: batch normalisation and its gradient. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-norm.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/workspace.h"

static RnStatus
prepare (const RnTensorDesc *d, gboolean reduces, RnPrepared *prepared, const char **reason)
{
  RnCudaMap map;

  if ((*reason = rn_cuda_map (d, &map)) != NULL)
    return RN_STATUS_UNSUPPORTED;
  prepared->workspace_bytes =
      rn_cuda_norm_workspace (map.n, map.c, (int64_t) map.h * map.w, map.nhwc, reduces);
  return RN_STATUS_OK;
}

static RnStatus
norm_fwd_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  return prepare (&call->in[RN_NORM_SRC], call->args.norm.training, prepared, reason);
}

static RnStatus
norm_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnNormArgs *args = &call->args.norm;
  const gboolean updates = args->training && !args->recompute;
  const RnCudaNorm norm = {
    .gamma = in[RN_NORM_GAMMA],
    .beta = in[RN_NORM_BETA],
    .mean = args->training ? NULL : in[RN_NORM_MEAN],
    .var = args->training ? NULL : in[RN_NORM_VAR],
    .saved_mean = out[RN_NORM_SAVED_MEAN],
    .saved_invstd = out[RN_NORM_SAVED_INVSTD],
    .running_mean = updates ? out[RN_NORM_RUNNING_MEAN] : NULL,
    .running_var = updates ? out[RN_NORM_RUNNING_VAR] : NULL,
    .eps = args->eps,
    .momentum = args->momentum,
    .relu = args->relu,
  };
  RnCudaMap map;

  rn_cuda_map (&call->in[RN_NORM_SRC], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_norm_fwd (&map, call->in[RN_NORM_SRC].dtype, &norm, in[RN_NORM_SRC],
                                                 out[RN_NORM_DST], workspace, rn_cuda_stream (device)),
                        "batch_norm_fwd");
}

static RnStatus
norm_bwd_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  return prepare (&call->in[RN_NORM_BWD_SRC],
                  rn_cuda_norm_bwd_reduces (call->args.norm.training,
                                            RN_HAS_OUT (call, RN_NORM_BWD_DIFF_GAMMA),
                                            RN_HAS_OUT (call, RN_NORM_BWD_DIFF_BETA)),
                  prepared, reason);
}

static RnStatus
norm_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnCudaNormBwd norm = {
    .gamma = in[RN_NORM_BWD_GAMMA],
    .mean = in[RN_NORM_BWD_MEAN],
    .var = in[RN_NORM_BWD_VAR],
    .diff_gamma = out[RN_NORM_BWD_DIFF_GAMMA],
    .diff_beta = out[RN_NORM_BWD_DIFF_BETA],
    .eps = call->args.norm.eps,
    .training = call->args.norm.training,
  };
  RnCudaMap map;

  rn_cuda_map (&call->in[RN_NORM_BWD_SRC], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_norm_bwd (&map, call->in[RN_NORM_BWD_SRC].dtype, &norm,
                                                 in[RN_NORM_BWD_SRC], in[RN_NORM_BWD_DIFF_DST],
                                                 out[RN_NORM_BWD_DIFF_SRC], workspace,
                                                 rn_cuda_stream (device)),
                        "batch_norm_bwd");
}

const RnKernel rn_cuda_batch_norm_fwd = { .op = RN_OP_BATCH_NORM_FWD,
                                          .name = "cuda:batch_norm_fwd",
                                          .priority = 100,
                                          .prepare = norm_fwd_prepare,
                                          .run = norm_fwd };
const RnKernel rn_cuda_batch_norm_bwd = { .op = RN_OP_BATCH_NORM_BWD,
                                          .name = "cuda:batch_norm_bwd",
                                          .priority = 100,
                                          .prepare = norm_bwd_prepare,
                                          .run = norm_bwd };
