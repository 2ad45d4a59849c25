/* optim.c: the optimizers: whether there is a step, and what it does to one parameter. */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>

/* NaN stays. */
static float
clip (float g, float limit)
{
  return limit > 0 && fabsf (g) > limit ? copysignf (limit, g) : g;
}

/* As torch.nn.utils.clip_grad_norm_, and the decision of torch.cuda.amp.GradScaler. */
static RnStatus
step_guard (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *stats = in[0];
  float *hyper = out[0];
  double multiplier = (double) hyper[RN_HYPER_GRAD_MULTIPLIER];

  hyper[RN_HYPER_SKIPS] = hyper[RN_HYPER_CHECKS_FINITE] != 0 && !isfinite (stats[RN_STATS_MAX_ABS]);
  if (hyper[RN_HYPER_MAX_NORM] > 0)
    {
      double norm = (double) stats[RN_STATS_NORM] * multiplier;
      double coefficient = (double) hyper[RN_HYPER_MAX_NORM] / (norm + 1e-6);
      hyper[RN_HYPER_GRAD_MULTIPLIER] = (float) (multiplier * (coefficient > 1 ? 1 : coefficient));
    }
  return RN_STATUS_OK;
}

/* As torch.optim.SGD of PyTorch 1.13, its single-tensor form, operation by operation in single precision. */
static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *grad = in[RN_SGD_GRAD], *hyper = in[RN_SGD_HYPER];
  float *param = out[RN_SGD_PARAM];
  void *momentum = out[RN_SGD_MOMENTUM];
  const RnDType t = call->out[RN_SGD_MOMENTUM].dtype;
  float lr = rn_hyper_group (hyper, args->group)[RN_GROUP_LR], decay = (float) args->weight_decay;
  float mu = hyper[RN_HYPER_MOMENTUM], multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER];
  gboolean first = hyper[RN_HYPER_FIRST] != 0, continues = hyper[RN_HYPER_CONTINUES] != 0;
  float take = first ? 1 : 1 - args->dampening;

  if (hyper[RN_HYPER_SKIPS] != 0)
    return RN_STATUS_OK;
  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[RN_SGD_PARAM]); i++)
    {
      float g = clip (grad[i] * multiplier, hyper[RN_HYPER_CLIP_VALUE]);
      if (!continues)
        g += decay * param[i];
      if (momentum != NULL)
        {
          float stored = rn_float_get (t, momentum, i), before = continues ? stored : first ? 0 : mu * stored;
          float v = first && !continues ? g : before + take * g;
          rn_float_set (t, momentum, i, v);
          g = args->nesterov ? g + mu * v : v;
        }
      if (hyper[RN_HYPER_WAITS] == 0)
        param[i] -= lr * g;
    }
  return RN_STATUS_OK;
}

/* As torch.optim.Adam and AdamW of PyTorch 1.13, likewise. */
static RnStatus
adam (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnAdamArgs *args = &call->args.adam;
  const float *grad = in[RN_ADAM_GRAD], *hyper = in[RN_ADAM_HYPER];
  const float *group = rn_hyper_group (hyper, args->group);
  float *param = out[RN_ADAM_PARAM];
  void *exp_avg = out[RN_ADAM_EXP_AVG], *exp_avg_sq = out[RN_ADAM_EXP_AVG_SQ];
  void *max_exp_avg_sq = out[RN_ADAM_MAX_EXP_AVG_SQ];
  const RnDType t = call->out[RN_ADAM_EXP_AVG].dtype;
  float decay = args->decoupled ? 0.0f : (float) args->weight_decay, shrink = rn_adam_shrink (args, group);
  gboolean first = hyper[RN_HYPER_FIRST] != 0;

  if (hyper[RN_HYPER_SKIPS] != 0)
    return RN_STATUS_OK;
  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[RN_ADAM_PARAM]); i++)
    {
      float p = param[i] * shrink;
      float g = clip (grad[i] * hyper[RN_HYPER_GRAD_MULTIPLIER], hyper[RN_HYPER_CLIP_VALUE]) + decay * p;
      float m =
          (first ? 0.0f : rn_float_get (t, exp_avg, i) * hyper[RN_HYPER_MOMENTUM]) + hyper[RN_HYPER_TAKE] * g;
      float v = (first ? 0.0f : rn_float_get (t, exp_avg_sq, i) * (float) args->beta2)
                + (float) (1 - args->beta2) * g * g;
      float top = v;
      rn_float_set (t, exp_avg, i, m);
      rn_float_set (t, exp_avg_sq, i, v);
      if (max_exp_avg_sq != NULL)
        {
          float before = rn_float_get (t, max_exp_avg_sq, i);
          top = first || v > before ? v : before;
          rn_float_set (t, max_exp_avg_sq, i, top);
        }
      float denominator = sqrtf (top) / hyper[RN_HYPER_BIAS2] + (float) args->eps;
      param[i] = p - group[RN_GROUP_STEP_SIZE] * m / denominator;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_step_guard = { .op = RN_OP_STEP_GUARD, .name = "ref:step_guard", .run = step_guard };
const RnKernel rn_ref_sgd = { .op = RN_OP_SGD, .name = "ref:sgd", .run = sgd };
const RnKernel rn_ref_adam = { .op = RN_OP_ADAM, .name = "ref:adam", .run = adam };
