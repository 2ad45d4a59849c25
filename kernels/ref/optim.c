/* optim.c: what happens once per update: the norm of the gradient, and SGD. */
#include "config.h"

#include "kernels/kernel-table.h"

#include <math.h>

static RnStatus
grad_norm (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  const float *grad = in[0];
  double sum = 0;

  for (int64_t i = 0; i < call->in[0].dims[0]; i++)
    sum += (double) grad[i] * grad[i];
  *(float *) out[0] = (float) sqrt (sum);
  return RN_STATUS_OK;
}

/* As torch.optim.SGD of PyTorch 1.13, its single-tensor form, operation by operation in single precision. */
static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *grad = in[RN_SGD_GRAD], *hyper = in[RN_SGD_HYPER];
  float *param = out[RN_SGD_PARAM], *momentum = out[RN_SGD_MOMENTUM];
  float lr = hyper[RN_HYPER_LR] * args->lr_mult, decay = hyper[RN_HYPER_WEIGHT_DECAY] * args->decay_mult;
  float mu = hyper[RN_HYPER_MOMENTUM], multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER];
  gboolean first = hyper[RN_HYPER_FIRST] != 0;

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[RN_SGD_PARAM]); i++)
    {
      float g = grad[i] * multiplier + decay * param[i];
      if (momentum != NULL)
        {
          momentum[i] = first ? g : mu * momentum[i] + (1 - args->dampening) * g;
          g = args->nesterov ? g + mu * momentum[i] : momentum[i];
        }
      param[i] -= lr * g;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_grad_norm = { .op = RN_OP_GRAD_NORM, .name = "ref:grad_norm", .run = grad_norm };
const RnKernel rn_ref_sgd = { .op = RN_OP_SGD, .name = "ref:sgd", .run = sgd };
