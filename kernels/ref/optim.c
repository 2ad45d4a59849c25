/* optim.c: what happens once per update: statistics of the gradient, and SGD. */
#include "config.h"

#include "kernels/kernel-table.h"

#include <float.h>
#include <math.h>

static float
largest_abs (const float *data, int64_t n)
{
  float largest = 0;

  for (int64_t i = 0; i < n; i++)
    if (isnan (data[i]))
      return NAN;
    else
      largest = fmaxf (largest, fabsf (data[i]));
  return largest;
}

/* Of finite elements. Over the largest, so that no power overflows. */
static double
norm_of (const float *data, int64_t n, double largest, double p)
{
  double sum = 0;

  if (largest == 0 || isinf (p))
    return largest;
  for (int64_t i = 0; i < n; i++)
    sum += pow (fabs ((double) data[i]) / largest, p);
  return largest * pow (sum, 1 / p);
}

static RnStatus
grad_stats (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const float *grad = in[RN_GRAD_STATS_GRAD], *norm_type = in[RN_GRAD_STATS_NORM_TYPE];
  int64_t n = call->in[RN_GRAD_STATS_GRAD].dims[0];
  float *stats = out[0], largest = largest_abs (grad, n);

  stats[RN_STATS_MAX_ABS] = stats[RN_STATS_NORM] = largest;
  if (isfinite (largest))
    stats[RN_STATS_NORM] = (float) fmin (norm_of (grad, n, (double) largest, (double) *norm_type), FLT_MAX);
  return RN_STATUS_OK;
}

/* NaN stays. */
static float
clip (float g, float limit)
{
  return limit > 0 && fabsf (g) > limit ? copysignf (limit, g) : g;
}

/* As torch.optim.SGD of PyTorch 1.13, its single-tensor form, operation by operation in single precision. */
static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *grad = in[RN_SGD_GRAD], *hyper = in[RN_SGD_HYPER];
  float *param = out[RN_SGD_PARAM], *momentum = out[RN_SGD_MOMENTUM];
  float lr = rn_hyper_group (hyper, args->group)[RN_GROUP_LR], decay = (float) args->weight_decay;
  float mu = hyper[RN_HYPER_MOMENTUM], multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER];
  gboolean first = hyper[RN_HYPER_FIRST] != 0;

  for (int64_t i = 0; i < rn_desc_stored_elements (&call->out[RN_SGD_PARAM]); i++)
    {
      float g = clip (grad[i] * multiplier, hyper[RN_HYPER_CLIP_VALUE]) + decay * param[i];
      if (momentum != NULL)
        {
          momentum[i] = first ? g : mu * momentum[i] + (1 - args->dampening) * g;
          g = args->nesterov ? g + mu * momentum[i] : momentum[i];
        }
      param[i] -= lr * g;
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_grad_stats = { .op = RN_OP_GRAD_STATS, .name = "ref:grad_stats", .run = grad_stats };
const RnKernel rn_ref_sgd = { .op = RN_OP_SGD, .name = "ref:sgd", .run = sgd };
