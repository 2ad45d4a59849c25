/* optim.c: what happens once per update: the norm of the gradient, and SGD. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/kernel-table.h"

#include <math.h>

static RnStatus
grad_norm_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  prepared->workspace_bytes = (gsize) rn_n_chunks (call->in[0].dims[0]) * sizeof (double);
  return RN_STATUS_OK;
}

static RnStatus
grad_norm (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
           void *const *out, void *workspace)
{
  const float *grad = in[0];
  const int64_t n = call->in[0].dims[0], n_chunks = rn_n_chunks (n);
  double *partial = workspace; /* [n_chunks] */

#pragma omp parallel for schedule(static)
  for (int64_t chunk = 0; chunk < n_chunks; chunk++)
    {
      const int64_t end = MIN ((chunk + 1) * RN_CHUNK, n);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = chunk * RN_CHUNK; i < end; i++)
        sum += (double) grad[i] * grad[i];
      partial[chunk] = sum;
    }
  *(float *) out[0] = (float) sqrt (rn_tree_sum (partial, n_chunks));
  return RN_STATUS_OK;
}

/* The operations of ref/optim.c in the same order: equal bits. */
static RnStatus
sgd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnSgdArgs *args = &call->args.sgd;
  const float *grad = in[RN_SGD_GRAD], *hyper = in[RN_SGD_HYPER];
  float *param = out[RN_SGD_PARAM], *momentum = out[RN_SGD_MOMENTUM];
  const float lr = hyper[RN_HYPER_LR] * args->lr_mult,
              decay = hyper[RN_HYPER_WEIGHT_DECAY] * args->decay_mult;
  const float mu = hyper[RN_HYPER_MOMENTUM], multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER],
              take = 1 - args->dampening;
  const gboolean first = hyper[RN_HYPER_FIRST] != 0, nesterov = args->nesterov;
  const int64_t n = rn_desc_stored_elements (&call->out[RN_SGD_PARAM]);

  if (momentum == NULL)
    {
#pragma omp parallel for simd schedule(static)
      for (int64_t i = 0; i < n; i++)
        param[i] -= lr * (grad[i] * multiplier + decay * param[i]);
      return RN_STATUS_OK;
    }
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    {
      float g = grad[i] * multiplier + decay * param[i];
      float v = first ? g : mu * momentum[i] + take * g;
      momentum[i] = v;
      param[i] -= lr * (nesterov ? g + mu * v : v);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_grad_norm = {
  .op = RN_OP_GRAD_NORM,
  .name = "cpu:grad_norm:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = grad_norm_prepare,
  .run = grad_norm,
};

const RnKernel rn_cpu_sgd = {
  .op = RN_OP_SGD, .name = "cpu:sgd:openmp", .priority = RN_PRIORITY_OPENMP, .run = sgd
};
