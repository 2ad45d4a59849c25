/*
 * conv-workspace.h: what a convolution keeps in its workspace beside what its engine takes: the weights and
 * the bias as the engine reads them, the gradient of the weights as it leaves it, and activations that are
 * stored in another type. A function of the call alone, for planner and kernel.
 *
 * An engine reads and writes one type, that of args.compute. Half precision whose result is to be stored in
 * F32 is computed in F32: the factors are rounded to half first, so their products are exact, on tensor cores
 * with TF32 as well (which keeps 10 bits of a mantissa, as F16; BF16 has 7).
 */
#ifndef KERNELS_CUDA_CONV_WORKSPACE_H
#define KERNELS_CUDA_CONV_WORKSPACE_H

#include "kernels/cuda/workspace.h"
#include "kernels/op.h"

G_BEGIN_DECLS

/* cudaMalloc's, and more than cuDNN asks for. */
#define RN_CUDA_CONV_ALIGNMENT 256

/* To the next such address from one that the arena has. */
#define RN_CUDA_CONV_SLACK (RN_CUDA_CONV_ALIGNMENT - 64)

/* A part of the workspace; 0 bytes: there is none. */
typedef struct
{
  gsize at, bytes;
} RnCudaPart;

/* An activation that the engine reads: rounded to half, then stored in the type of the engine. */
typedef struct
{
  RnCudaPart rounded, stored;
} RnCudaFactor;

typedef struct
{
  RnDType type; /* of the engine */
  RnCudaPart rounded_weights, weights, bias;
  RnCudaFactor src, diff_dst;
  RnCudaPart diff_weights, sums, partials;
  gsize bytes; /* of all, and where the engine's part begins */
} RnCudaConvWorkspace;

static inline RnCudaPart
rn_cuda_part (RnCudaConvWorkspace *w, int64_t elements, gsize size)
{
  const RnCudaPart part = { w->bytes, (gsize) elements * size };
  w->bytes += (part.bytes + RN_CUDA_CONV_ALIGNMENT - 1) / RN_CUDA_CONV_ALIGNMENT * RN_CUDA_CONV_ALIGNMENT;
  return part;
}

static inline RnCudaFactor
rn_cuda_factor (RnCudaConvWorkspace *w, const RnTensorDesc *d, RnDType compute)
{
  const int64_t n = rn_desc_elements (d);
  RnCudaFactor factor = { { 0, 0 }, { 0, 0 } };

  if (d->dtype == RN_F32 && compute != RN_F32 && w->type == RN_F32)
    factor.rounded = rn_cuda_part (w, n, rn_dtype_size (compute));
  if (d->dtype != w->type || factor.rounded.bytes > 0)
    factor.stored = rn_cuda_part (w, n, rn_dtype_size (w->type));
  return factor;
}

static inline gboolean
rn_cuda_conv_has_bias (const RnOpCall *call)
{
  return call->args.conv.relu || RN_HAS_IN (call, RN_CONV_BIAS) || RN_HAS_IN (call, RN_CONV_GAMMA)
         || RN_HAS_IN (call, RN_CONV_RESIDUAL);
}

static inline gboolean
rn_cuda_conv_has_diff_weights (const RnOpCall *call)
{
  return RN_HAS_OUT (call, RN_CONV_BW_DIFF_WEIGHTS) || RN_HAS_OUT (call, RN_CONV_BW_DIFF_GAMMA);
}

static inline void
rn_cuda_conv_add_weights (RnCudaConvWorkspace *w, const RnTensorDesc *weights, RnDType compute)
{
  const int64_t n = rn_desc_elements (weights);

  if (w->type != compute)
    w->rounded_weights = rn_cuda_part (w, n, rn_dtype_size (compute));
  w->weights = rn_cuda_part (w, n, rn_dtype_size (w->type));
}

static inline void
rn_cuda_conv_add_sums (RnCudaConvWorkspace *w, const RnTensorDesc *d, int nhwc)
{
  w->sums = rn_cuda_part (w, d->dims[1], sizeof (float));
  w->partials = rn_cuda_part (
      w, 1, rn_cuda_channel_sums_workspace (d->dims[0], d->dims[1], d->dims[2] * d->dims[3], nhwc));
}

/* @nhwc: the layout of the activations. */
static inline RnCudaConvWorkspace
rn_cuda_conv_workspace (const RnOpCall *call, int nhwc)
{
  const RnDType compute = call->args.conv.compute;
  RnCudaConvWorkspace w = { .type = compute };

  switch (call->op)
    {
    case RN_OP_CONV2D_FWD:
      w.type = call->out[RN_CONV_DST].dtype;
      rn_cuda_conv_add_weights (&w, &call->in[RN_CONV_WEIGHTS], compute);
      if (rn_cuda_conv_has_bias (call))
        w.bias = rn_cuda_part (&w, call->out[RN_CONV_DST].dims[1], rn_dtype_size (w.type));
      w.src = rn_cuda_factor (&w, &call->in[RN_CONV_SRC], compute);
      break;
    case RN_OP_CONV2D_BWD_DATA:
      w.type = call->out[RN_CONV_BD_DIFF_SRC].dtype;
      rn_cuda_conv_add_weights (&w, &call->in[RN_CONV_BD_WEIGHTS], compute);
      w.diff_dst = rn_cuda_factor (&w, &call->in[RN_CONV_BD_DIFF_DST], compute);
      break;
    case RN_OP_CONV2D_BWD_WEIGHTS:
      w.diff_dst = rn_cuda_factor (&w, &call->in[RN_CONV_BW_DIFF_DST], compute);
      if (rn_cuda_conv_has_diff_weights (call))
        {
          const RnConvArgs *args = &call->args.conv;
          int64_t n = call->in[RN_CONV_BW_DIFF_DST].dims[1]
                      * (call->in[RN_CONV_BW_SRC].dims[1] / args->groups) * args->kernel[0] * args->kernel[1];
          w.src = rn_cuda_factor (&w, &call->in[RN_CONV_BW_SRC], compute);
          w.diff_weights = rn_cuda_part (&w, n, rn_dtype_size (w.type));
        }
      if (rn_conv_adds_up (call))
        rn_cuda_conv_add_sums (&w, &call->in[RN_CONV_BW_DIFF_DST], nhwc);
      break;
    default:
      break;
    }
  return w;
}

G_END_DECLS

#endif
