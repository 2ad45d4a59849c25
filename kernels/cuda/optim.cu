/*
 * optim.cu: the optimizers: whether there is a step, and what it does to one parameter. The operations of the
 * reference in its order, none of them fused: equal bits. What changes from step to step is read from the
 * hyper vector here, so the host need not know it when it queues a step.
 */
#include "kernels/cuda/launch-optim.h"
#include "kernels/cuda/pack.cuh"

#include <float.h>

namespace
{

/* Elements that a thread takes at once; of BF16 these are 8 bytes. */
#define PACK 4

/* NaN stays. @limit: 0 does not cut */
__device__ static inline float
clip (float g, float limit)
{
  return limit > 0 && fabsf (g) > limit ? copysignf (limit, g) : g;
}

/* a + b * c, rounded twice. */
__device__ static inline float
add_product (float a, float b, float c)
{
  return __fadd_rn (a, __fmul_rn (b, c));
}

/* ---- whether there is a step, and how long it is ---- */

/* One thread. */
__global__ void RN_BOUNDS (32) guard_step (const float *stats, float *hyper)
{
  const double multiplier = hyper[RN_HYPER_GRAD_MULTIPLIER];

  if (threadIdx.x != 0)
    return;
  hyper[RN_HYPER_SKIPS] = hyper[RN_HYPER_CHECKS_FINITE] != 0 && !(stats[RN_STATS_MAX_ABS] <= FLT_MAX);
  if (hyper[RN_HYPER_MAX_NORM] > 0)
    {
      const double norm = __dmul_rn ((double) stats[RN_STATS_NORM], multiplier);
      const double coefficient = (double) hyper[RN_HYPER_MAX_NORM] / (norm + 1e-6);
      hyper[RN_HYPER_GRAD_MULTIPLIER] = (float) __dmul_rn (multiplier, coefficient > 1 ? 1 : coefficient);
    }
}

/* ---- SGD ---- */

struct Sgd
{
  float decay, take; /* of every step but the first */
  int nesterov;
};

/* One element after a step; @v: its momentum, updated. */
template <bool HAS_MOMENTUM>
__device__ static inline float
sgd_element (const Sgd &s, const float *hyper, float lr, float grad, float p, float *v)
{
  const bool first = hyper[RN_HYPER_FIRST] != 0, continues = hyper[RN_HYPER_CONTINUES] != 0;
  const float mu = hyper[RN_HYPER_MOMENTUM];
  float g = clip (__fmul_rn (grad, hyper[RN_HYPER_GRAD_MULTIPLIER]), hyper[RN_HYPER_CLIP_VALUE]);

  if (!continues)
    g = add_product (g, s.decay, p);
  if (HAS_MOMENTUM)
    {
      const float before = continues ? *v : first ? 0 : __fmul_rn (mu, *v);
      *v = first && !continues ? g : add_product (before, first ? 1 : s.take, g);
      g = s.nesterov ? add_product (g, mu, *v) : *v;
    }
  return hyper[RN_HYPER_WAITS] == 0 ? __fsub_rn (p, __fmul_rn (lr, g)) : p;
}

template <int V>
__global__ void
RN_BOUNDS (RN_BLOCK)
    sgd_plain (int64_t n, Sgd s, const float *grad, const float *hyper, const float *group, float *param)
{
  const float lr = group[RN_GROUP_LR];
  if (hyper[RN_HYPER_SKIPS] != 0)
    return;
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float g[W], p[W];
    rn_read<W> (grad + i, g);
    rn_read<W> (param + i, p);
    for (int k = 0; k < W; k++)
      p[k] = sgd_element<false> (s, hyper, lr, g[k], p[k], nullptr);
    rn_write<W> (param + i, p);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) sgd_momentum (int64_t n, Sgd s, const float *grad, const float *hyper,
                                   const float *group, float *param, T *momentum)
{
  const float lr = group[RN_GROUP_LR];
  if (hyper[RN_HYPER_SKIPS] != 0)
    return;
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float g[W], p[W], v[W];
    rn_read<W> (grad + i, g);
    rn_read<W> (param + i, p);
    rn_read<W> (momentum + i, v);
    for (int k = 0; k < W; k++)
      p[k] = sgd_element<true> (s, hyper, lr, g[k], p[k], &v[k]);
    rn_write<W> (momentum + i, v);
    rn_write<W> (param + i, p);
  });
}

/* ---- Adam ---- */

struct Adam
{
  double weight_decay;
  float decay; /* 0 if decoupled */
  float beta2, take2, eps;
  int decoupled;
};

/* See rn_adam_shrink. */
__device__ static inline float
adam_shrink (const Adam &a, float lr)
{
  return a.decoupled ? (float) __dsub_rn (1, __dmul_rn ((double) lr, a.weight_decay)) : 1;
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) adam (int64_t n, Adam a, const float *grad, const float *hyper, const float *group,
                           float *param, T *exp_avg, T *exp_avg_sq, T *max_exp_avg_sq)
{
  const float shrink = adam_shrink (a, group[RN_GROUP_LR]), step = group[RN_GROUP_STEP_SIZE];
  if (hyper[RN_HYPER_SKIPS] != 0)
    return;
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    const bool first = hyper[RN_HYPER_FIRST] != 0;
    float g[W], p[W], m[W], v[W], top[W] = {};
    rn_read<W> (grad + i, g);
    rn_read<W> (param + i, p);
    rn_read<W> (exp_avg + i, m);
    rn_read<W> (exp_avg_sq + i, v);
    if (max_exp_avg_sq != nullptr)
      rn_read<W> (max_exp_avg_sq + i, top);
    for (int k = 0; k < W; k++)
      {
        p[k] = __fmul_rn (p[k], shrink);
        g[k] = clip (__fmul_rn (g[k], hyper[RN_HYPER_GRAD_MULTIPLIER]), hyper[RN_HYPER_CLIP_VALUE]);
        g[k] = add_product (g[k], a.decay, p[k]);
        m[k] =
            add_product (first ? 0 : __fmul_rn (m[k], hyper[RN_HYPER_MOMENTUM]), hyper[RN_HYPER_TAKE], g[k]);
        v[k] = __fadd_rn (first ? 0 : __fmul_rn (v[k], a.beta2), __fmul_rn (__fmul_rn (a.take2, g[k]), g[k]));
        top[k] = max_exp_avg_sq == nullptr || first || v[k] > top[k] ? v[k] : top[k];
        p[k] = __fsub_rn (
            p[k], __fdiv_rn (__fmul_rn (step, m[k]),
                             __fadd_rn (__fdiv_rn (__fsqrt_rn (top[k]), hyper[RN_HYPER_BIAS2]), a.eps)));
      }
    rn_write<W> (exp_avg + i, m);
    rn_write<W> (exp_avg_sq + i, v);
    if (max_exp_avg_sq != nullptr)
      rn_write<W> (max_exp_avg_sq + i, top);
    rn_write<W> (param + i, p);
  });
}

}

/* ---- launchers ---- */

cudaError_t
rn_cuda_launch_step_guard (const float *stats, float *hyper, cudaStream_t stream)
{
  return RN_LAUNCH (guard_step, 1, 32, 0, stream, stats, hyper);
}

template <typename T, int V>
static cudaError_t
launch_sgd (const Sgd &s, int64_t n, const float *grad, const float *hyper, const float *group, float *param,
            T *momentum, cudaStream_t stream)
{
  const unsigned blocks = rn_n_blocks (n / V, RN_BLOCK);

  if (momentum == nullptr)
    return RN_LAUNCH ((sgd_plain<V>), blocks, RN_BLOCK, 0, stream, n, s, grad, hyper, group, param);
  return RN_LAUNCH ((sgd_momentum<T, V>), blocks, RN_BLOCK, 0, stream, n, s, grad, hyper, group, param,
                    momentum);
}

template <typename T>
static cudaError_t
sgd_of (const Sgd &s, int64_t n, const float *grad, const float *hyper, const float *group, float *param,
        T *momentum, cudaStream_t stream)
{
  if (rn_is_aligned (grad, 16) && rn_is_aligned (param, 16)
      && rn_is_aligned (momentum, PACK * (int) sizeof (T)))
    return launch_sgd<T, PACK> (s, n, grad, hyper, group, param, momentum, stream);
  return launch_sgd<T, 1> (s, n, grad, hyper, group, param, momentum, stream);
}

cudaError_t
rn_cuda_launch_sgd (const RnSgdArgs *args, int64_t n, const float *grad, const float *hyper, float *param,
                    RnDType t, void *momentum, cudaStream_t stream)
{
  const Sgd s = { (float) args->weight_decay, 1 - args->dampening, args->nesterov };
  const float *group = rn_hyper_group (hyper, args->group);

  if (momentum != nullptr && t == RN_BF16)
    return sgd_of (s, n, grad, hyper, group, param, (__nv_bfloat16 *) momentum, stream);
  if (momentum != nullptr && t != RN_F32)
    return cudaErrorInvalidValue;
  return sgd_of (s, n, grad, hyper, group, param, (float *) momentum, stream);
}

template <typename T>
static cudaError_t
adam_of (const Adam &a, int64_t n, const float *grad, const float *hyper, const float *group, float *param,
         T *exp_avg, T *exp_avg_sq, T *max_exp_avg_sq, cudaStream_t stream)
{
  const int bytes = PACK * (int) sizeof (T);

  if (rn_is_aligned (grad, 16) && rn_is_aligned (param, 16) && rn_is_aligned (exp_avg, bytes)
      && rn_is_aligned (exp_avg_sq, bytes) && rn_is_aligned (max_exp_avg_sq, bytes))
    return RN_LAUNCH ((adam<T, PACK>), rn_n_blocks (n / PACK, RN_BLOCK), RN_BLOCK, 0, stream, n, a, grad,
                      hyper, group, param, exp_avg, exp_avg_sq, max_exp_avg_sq);
  return RN_LAUNCH ((adam<T, 1>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, a, grad, hyper, group,
                    param, exp_avg, exp_avg_sq, max_exp_avg_sq);
}

cudaError_t
rn_cuda_launch_adam (const RnAdamArgs *args, int64_t n, const float *grad, const float *hyper, float *param,
                     RnDType t, void *exp_avg, void *exp_avg_sq, void *max_exp_avg_sq, cudaStream_t stream)
{
  const Adam a = { args->weight_decay,  args->decoupled ? 0 : (float) args->weight_decay,
                   (float) args->beta2, (float) (1 - args->beta2),
                   (float) args->eps,   args->decoupled };
  const float *group = rn_hyper_group (hyper, args->group);

  if (t == RN_BF16)
    return adam_of (a, n, grad, hyper, group, param, (__nv_bfloat16 *) exp_avg, (__nv_bfloat16 *) exp_avg_sq,
                    (__nv_bfloat16 *) max_exp_avg_sq, stream);
  if (t != RN_F32)
    return cudaErrorInvalidValue;
  return adam_of (a, n, grad, hyper, group, param, (float *) exp_avg, (float *) exp_avg_sq,
                  (float *) max_exp_avg_sq, stream);
}
