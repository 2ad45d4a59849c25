/* ops-optim.c: whether there is a step, and what it does to one parameter. States may lie in pinned memory of
 * the host: kernels read and write it at its own address. */
#include "config.h"

#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch-optim.h"

static RnStatus
step_guard (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  return rn_cuda_check (device, rn_cuda_launch_step_guard (in[0], out[0], rn_cuda_stream (device)),
                        "step_guard");
}

static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  return rn_cuda_check (
      device,
      rn_cuda_launch_sgd (&call->args.sgd, rn_desc_stored_elements (&call->out[RN_SGD_PARAM]),
                          in[RN_SGD_GRAD], in[RN_SGD_HYPER], out[RN_SGD_PARAM],
                          call->out[RN_SGD_MOMENTUM].dtype, out[RN_SGD_MOMENTUM], rn_cuda_stream (device)),
      "sgd");
}

static RnStatus
adam (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  return rn_cuda_check (
      device,
      rn_cuda_launch_adam (&call->args.adam, rn_desc_stored_elements (&call->out[RN_ADAM_PARAM]),
                           in[RN_ADAM_GRAD], in[RN_ADAM_HYPER], out[RN_ADAM_PARAM],
                           call->out[RN_ADAM_EXP_AVG].dtype, out[RN_ADAM_EXP_AVG], out[RN_ADAM_EXP_AVG_SQ],
                           out[RN_ADAM_MAX_EXP_AVG_SQ], rn_cuda_stream (device)),
      "adam");
}

const RnKernel rn_cuda_step_guard = {
  .op = RN_OP_STEP_GUARD, .name = "cuda:step_guard", .priority = 100, .run = step_guard
};
const RnKernel rn_cuda_sgd = { .op = RN_OP_SGD, .name = "cuda:sgd", .priority = 100, .run = sgd };
const RnKernel rn_cuda_adam = { .op = RN_OP_ADAM, .name = "cuda:adam", .priority = 100, .run = adam };
