/* optim.c: the optimizers: what an update does to one parameter. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernel-table.h"

#include <math.h>

/* NaN stays. @limit: infinite where nothing is cut. */
static inline float
clip (float g, float limit)
{
  return g > limit ? limit : g < -limit ? -limit : g;
}

static float
clip_limit (const float *hyper)
{
  return hyper[RN_HYPER_CLIP_VALUE] > 0 ? hyper[RN_HYPER_CLIP_VALUE] : INFINITY;
}

/* The operations of ref/optim.c in the same order: equal bits. */
static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *grad = in[RN_SGD_GRAD], *hyper = in[RN_SGD_HYPER];
  float *param = out[RN_SGD_PARAM], *momentum = out[RN_SGD_MOMENTUM];
  const float lr = rn_hyper_group (hyper, args->group)[RN_GROUP_LR], decay = (float) args->weight_decay;
  const float mu = hyper[RN_HYPER_MOMENTUM], multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER],
              take = 1 - args->dampening, limit = clip_limit (hyper);
  const gboolean first = hyper[RN_HYPER_FIRST] != 0, nesterov = args->nesterov;
  const gboolean waits = hyper[RN_HYPER_WAITS] != 0;
  const int64_t n = rn_desc_stored_elements (&call->out[RN_SGD_PARAM]);

  if (momentum == NULL)
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        param[i] -= lr * (clip (grad[i] * multiplier, limit) + decay * param[i]);
      return RN_STATUS_OK;
    }
  if (hyper[RN_HYPER_CONTINUES] != 0)
    {
      const float part = first ? 1 : take;
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        {
          float v = momentum[i] + part * clip (grad[i] * multiplier, limit);
          momentum[i] = v;
          param[i] -= waits ? 0 : lr * v;
        }
      return RN_STATUS_OK;
    }
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    {
      float g = clip (grad[i] * multiplier, limit) + decay * param[i];
      float v = first ? g : mu * momentum[i] + take * g;
      momentum[i] = v;
      param[i] -= waits ? 0 : lr * (nesterov ? g + mu * v : v);
    }
  return RN_STATUS_OK;
}

static RnStatus
adam (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnAdamArgs *args = &call->args.adam;
  const float *grad = in[RN_ADAM_GRAD], *hyper = in[RN_ADAM_HYPER];
  const float *group = rn_hyper_group (hyper, args->group);
  float *param = out[RN_ADAM_PARAM], *exp_avg = out[RN_ADAM_EXP_AVG], *exp_avg_sq = out[RN_ADAM_EXP_AVG_SQ];
  float *max_exp_avg_sq = out[RN_ADAM_MAX_EXP_AVG_SQ];
  const float decay = args->decoupled ? 0.0f : (float) args->weight_decay,
              shrink = rn_adam_shrink (args, group);
  const float beta1 = hyper[RN_HYPER_MOMENTUM], take1 = hyper[RN_HYPER_TAKE];
  const float beta2 = (float) args->beta2, take2 = (float) (1 - args->beta2), eps = (float) args->eps;
  const float multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER], limit = clip_limit (hyper);
  const float bias2 = hyper[RN_HYPER_BIAS2], step_size = group[RN_GROUP_STEP_SIZE];
  const gboolean first = hyper[RN_HYPER_FIRST] != 0;
  const int64_t n = rn_desc_stored_elements (&call->out[RN_ADAM_PARAM]);

#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    {
      float p = param[i] * shrink;
      float g = clip (grad[i] * multiplier, limit) + decay * p;
      float m = (first ? 0.0f : exp_avg[i] * beta1) + take1 * g;
      float v = (first ? 0.0f : exp_avg_sq[i] * beta2) + take2 * g * g;
      float top = v;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      if (max_exp_avg_sq != NULL)
        top = max_exp_avg_sq[i] = first || v > max_exp_avg_sq[i] ? v : max_exp_avg_sq[i];
      param[i] = p - step_size * m / (sqrtf (top) / bias2 + eps);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_sgd = {
  .op = RN_OP_SGD, .name = "cpu:sgd:openmp", .priority = RN_PRIORITY_OPENMP, .run = sgd
};

const RnKernel rn_cpu_adam = {
  .op = RN_OP_ADAM, .name = "cpu:adam:openmp", .priority = RN_PRIORITY_OPENMP, .run = adam
};
