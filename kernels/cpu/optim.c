/*
 * optim.c: the optimizers: what an update does to one parameter. The operations of ref/optim.c in the same
 * order: equal bits.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strips.h"
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

typedef struct
{
  float lr, decay, mu, take, multiplier, limit;
  gboolean first, continues, waits, nesterov;
} Sgd;

/* @v: momentum, or NULL */
RN_CLONES static void
sgd_strip (const Sgd *s, const float *grad, int64_t n, float *v, float *param)
{
  const float lr = s->lr, decay = s->decay, mu = s->mu, take = s->take, multiplier = s->multiplier,
              limit = s->limit;
  const gboolean first = s->first, waits = s->waits, nesterov = s->nesterov;

  if (v == NULL)
    {
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        param[i] -= lr * (clip (grad[i] * multiplier, limit) + decay * param[i]);
      return;
    }
  if (s->continues)
    {
      const float part = first ? 1 : take;
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        {
          v[i] += part * clip (grad[i] * multiplier, limit);
          param[i] -= waits ? 0 : lr * v[i];
        }
      return;
    }
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    {
      float g = clip (grad[i] * multiplier, limit) + decay * param[i];
      float before = v[i]; /* loaded in any case: then the loop has no branch */
      v[i] = first ? g : mu * before + take * g;
      param[i] -= waits ? 0 : lr * (nesterov ? g + mu * v[i] : v[i]);
    }
}

static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *hyper = in[RN_SGD_HYPER];
  const Sgd s = {
    .lr = rn_hyper_group (hyper, args->group)[RN_GROUP_LR],
    .decay = (float) args->weight_decay,
    .mu = hyper[RN_HYPER_MOMENTUM],
    .take = 1 - args->dampening,
    .multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER],
    .limit = clip_limit (hyper),
    .first = hyper[RN_HYPER_FIRST] != 0,
    .continues = hyper[RN_HYPER_CONTINUES] != 0,
    .waits = hyper[RN_HYPER_WAITS] != 0,
    .nesterov = args->nesterov,
  };
  const RnDType t = call->out[RN_SGD_MOMENTUM].dtype;
  const int64_t n = rn_desc_stored_elements (&call->out[RN_SGD_PARAM]);

  if (hyper[RN_HYPER_SKIPS] != 0)
    return RN_STATUS_OK;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      float buffer[RN_STRIP];
      const int64_t size = MIN (RN_STRIP, n - at);
      float *v = rn_strip_update (t, out[RN_SGD_MOMENTUM], at, size, buffer);
      sgd_strip (&s, (const float *) in[RN_SGD_GRAD] + at, size, v, (float *) out[RN_SGD_PARAM] + at);
      rn_strip_write (t, v, size, out[RN_SGD_MOMENTUM], at);
    }
  return RN_STATUS_OK;
}

typedef struct
{
  float decay, shrink, beta1, take1, beta2, take2, eps, multiplier, limit, bias2, step_size;
  gboolean first;
} Adam;

/* @top: of amsgrad, or NULL */
RN_CLONES static void
adam_strip (const Adam *a, const float *grad, int64_t n, float *exp_avg, float *exp_avg_sq, float *top,
            float *param)
{
  const Adam s = *a;

#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    {
      float p = param[i] * s.shrink;
      float g = clip (grad[i] * s.multiplier, s.limit) + s.decay * p;
      float m = (s.first ? 0.0f : exp_avg[i] * s.beta1) + s.take1 * g;
      float v = (s.first ? 0.0f : exp_avg_sq[i] * s.beta2) + s.take2 * g * g;
      float largest = v;
      exp_avg[i] = m;
      exp_avg_sq[i] = v;
      if (top != NULL)
        largest = top[i] = s.first || v > top[i] ? v : top[i];
      param[i] = p - s.step_size * m / (sqrtf (largest) / s.bias2 + s.eps);
    }
}

static RnStatus
adam (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnAdamArgs *args = &call->args.adam;
  const float *hyper = in[RN_ADAM_HYPER], *group = rn_hyper_group (hyper, args->group);
  const Adam a = {
    .decay = args->decoupled ? 0.0f : (float) args->weight_decay,
    .shrink = rn_adam_shrink (args, group),
    .beta1 = hyper[RN_HYPER_MOMENTUM],
    .take1 = hyper[RN_HYPER_TAKE],
    .beta2 = (float) args->beta2,
    .take2 = (float) (1 - args->beta2),
    .eps = (float) args->eps,
    .multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER],
    .limit = clip_limit (hyper),
    .bias2 = hyper[RN_HYPER_BIAS2],
    .step_size = group[RN_GROUP_STEP_SIZE],
    .first = hyper[RN_HYPER_FIRST] != 0,
  };
  const RnDType t = call->out[RN_ADAM_EXP_AVG].dtype;
  const int64_t n = rn_desc_stored_elements (&call->out[RN_ADAM_PARAM]);

  if (hyper[RN_HYPER_SKIPS] != 0)
    return RN_STATUS_OK;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      float m[RN_STRIP], v[RN_STRIP], top[RN_STRIP];
      const int64_t size = MIN (RN_STRIP, n - at);
      float *exp_avg = rn_strip_update (t, out[RN_ADAM_EXP_AVG], at, size, m);
      float *exp_avg_sq = rn_strip_update (t, out[RN_ADAM_EXP_AVG_SQ], at, size, v);
      float *max_exp_avg_sq = rn_strip_update (t, out[RN_ADAM_MAX_EXP_AVG_SQ], at, size, top);
      adam_strip (&a, (const float *) in[RN_ADAM_GRAD] + at, size, exp_avg, exp_avg_sq, max_exp_avg_sq,
                  (float *) out[RN_ADAM_PARAM] + at);
      rn_strip_write (t, exp_avg, size, out[RN_ADAM_EXP_AVG], at);
      rn_strip_write (t, exp_avg_sq, size, out[RN_ADAM_EXP_AVG_SQ], at);
      rn_strip_write (t, max_exp_avg_sq, size, out[RN_ADAM_MAX_EXP_AVG_SQ], at);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_sgd = {
  .op = RN_OP_SGD, .name = "cpu:sgd:openmp", .priority = RN_PRIORITY_OPENMP, .run = sgd
};

const RnKernel rn_cpu_adam = {
  .op = RN_OP_ADAM, .name = "cpu:adam:openmp", .priority = RN_PRIORITY_OPENMP, .run = adam
};
