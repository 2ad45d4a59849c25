/* ops-normalize.c: the bytes of a batch become the model's input. */
#include "config.h"

#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-normalize.h"
#include "kernels/cuda/map.h"

static RnStatus
normalize_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  RnCudaMap map;

  *reason = rn_cuda_map (&call->out[0], &map);
  return *reason == NULL ? RN_STATUS_OK : RN_STATUS_UNSUPPORTED;
}

static RnStatus
normalize (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  RnCudaMap map;

  rn_cuda_map (&call->out[0], &map);
  return rn_cuda_check (device,
                        rn_cuda_launch_normalize (&map, call->out[0].dtype, in[RN_NORMALIZE_PIXELS],
                                                  in[RN_NORMALIZE_SIZES], in[RN_NORMALIZE_TABLE], out[0],
                                                  rn_cuda_stream (device)),
                        "normalize");
}

const RnKernel rn_cuda_normalize = { .op = RN_OP_NORMALIZE,
                                     .name = "cuda:normalize",
                                     .priority = 100,
                                     .prepare = normalize_prepare,
                                     .run = normalize };
