/*
 * conv.c: the three directions of a convolution, from the definition (cross-correlation, as in PyTorch):
 *
 *   dst[n, o, y, x] = sum over i, u, v of src[n, i, y * stride - pad + u * dilation, ...] * w[o, i, u, v],
 *
 * and the folded batch norm on fixed statistics: a = gamma / sqrt (var + eps) per output channel. Sums are in
 * double.
 *
 * With args.compute F16 or BF16 the activation that is read is rounded to it, and so is the product of scale
 * and weight, which is one of F32: this is what a kernel multiplies with.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>

typedef struct
{
  const RnConvArgs *args;
  const RnTensorDesc *src, *dst; /* of the forward direction */
  int64_t ic_group, oc_group;    /* channels per group */
} Conv;

static Conv
conv_init (const RnOpCall *call, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  const RnConvArgs *args = &call->args.conv;
  return (Conv){ args, src, dst, src->dims[1] / args->groups, dst->dims[1] / args->groups };
}

/* Source row or column (axis 0, 1) that output @out reads at kernel position @k; -1 in the padding. */
static int64_t
source_of (const Conv *c, int axis, int64_t out, int k)
{
  int64_t in = out * c->args->stride[axis] - c->args->pad[axis] + (int64_t) k * c->args->dilation[axis];
  return in < c->src->dims[2 + axis] ? in : -1;
}

/* Output whose window has source @in at kernel position @k; -1 when there is none. */
static int64_t
output_of (const Conv *c, int axis, int64_t in, int k)
{
  int64_t at = in + c->args->pad[axis] - (int64_t) k * c->args->dilation[axis];
  if (at < 0 || at % c->args->stride[axis] != 0)
    return -1;
  int64_t out = at / c->args->stride[axis];
  return out < c->dst->dims[2 + axis] ? out : -1;
}

static int64_t
weights_index (const Conv *c, int64_t o, int64_t i, int u, int v)
{
  return ((o * c->ic_group + i) * c->args->kernel[0] + u) * c->args->kernel[1] + v;
}

static float
rounded (const Conv *c, float value)
{
  float stored;
  rn_float_set (c->args->compute, &stored, 0, value);
  return rn_float_get (c->args->compute, &stored, 0);
}

/* Element @at of an activation, as a factor. */
static double
factor (const Conv *c, const RnTensorDesc *d, const void *data, int64_t at)
{
  return d->dtype == RN_F32 ? rounded (c, ((const float *) data)[at]) : rn_float_get (d->dtype, data, at);
}

/* A weight of an output channel with scale @a, as a factor. */
static double
weight_factor (const Conv *c, double a, float weight)
{
  return c->args->compute == RN_F32 ? a * weight : rounded (c, (float) a * weight);
}

/* The scale of a folded batch norm; in half precision it is one of F32. */
static double
fold_scale (const Conv *c, const float *gamma, const float *var, int64_t o)
{
  if (gamma == NULL)
    return 1;
  return c->args->compute == RN_F32 ? gamma[o] / sqrt ((double) var[o] + c->args->eps)
                                    : gamma[o] / sqrtf (var[o] + c->args->eps);
}

static double
conv_at (const Conv *c, const void *src, const float *weights, double a, int64_t n, int64_t o, int64_t y,
         int64_t x)
{
  int64_t first = o / c->oc_group * c->ic_group;
  double sum = 0;

  for (int64_t i = 0; i < c->ic_group; i++)
    for (int u = 0; u < c->args->kernel[0]; u++)
      for (int v = 0; v < c->args->kernel[1]; v++)
        {
          int64_t sy = source_of (c, 0, y, u), sx = source_of (c, 1, x, v);
          if (sy >= 0 && sx >= 0)
            sum += factor (c, c->src, src, rn_desc_index (c->src, n, first + i, sy, sx))
                   * weight_factor (c, a, weights[weights_index (c, o, i, u, v)]);
        }
  return sum;
}

static RnStatus
conv2d_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const Conv c = conv_init (call, &call->in[RN_CONV_SRC], &call->out[RN_CONV_DST]);
  const float *weights = in[RN_CONV_WEIGHTS], *bias = in[RN_CONV_BIAS];
  const float *gamma = in[RN_CONV_GAMMA], *beta = in[RN_CONV_BETA], *mean = in[RN_CONV_MEAN],
              *var = in[RN_CONV_VAR];
  const void *residual = in[RN_CONV_RESIDUAL];
  void *dst = out[RN_CONV_DST];
  int64_t stored = rn_desc_stored_channels (c.dst);

  for (int64_t n = 0; n < c.dst->dims[0]; n++)
    for (int64_t o = 0; o < stored; o++)
      for (int64_t y = 0; y < c.dst->dims[2]; y++)
        for (int64_t x = 0; x < c.dst->dims[3]; x++)
          {
            int64_t at = rn_desc_index (c.dst, n, o, y, x);
            if (o >= c.dst->dims[1])
              {
                rn_float_set (c.dst->dtype, dst, at, 0);
                continue;
              }
            double a = fold_scale (&c, gamma, var, o);
            double value = conv_at (&c, in[RN_CONV_SRC], weights, a, n, o, y, x);
            if (gamma != NULL)
              value += beta[o] - a * mean[o];
            if (bias != NULL)
              value += bias[o];
            if (residual != NULL)
              value += rn_float_get (c.dst->dtype, residual, at);
            rn_float_set (c.dst->dtype, dst, at, (float) (c.args->relu && value < 0 ? 0 : value));
          }
  return RN_STATUS_OK;
}

static RnStatus
conv2d_bwd_data (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                 void *const *out, void *workspace)
{
  const Conv c = conv_init (call, &call->out[RN_CONV_BD_DIFF_SRC], &call->in[RN_CONV_BD_DIFF_DST]);
  const float *weights = in[RN_CONV_BD_WEIGHTS];
  const float *gamma = in[RN_CONV_BD_GAMMA], *var = in[RN_CONV_BD_VAR];
  int64_t stored = rn_desc_stored_channels (c.src);

  for (int64_t n = 0; n < c.src->dims[0]; n++)
    for (int64_t i = 0; i < stored; i++)
      for (int64_t y = 0; y < c.src->dims[2]; y++)
        for (int64_t x = 0; x < c.src->dims[3]; x++)
          {
            int64_t first = i / c.ic_group * c.oc_group;
            double sum = 0;
            for (int64_t o = first; o < first + c.oc_group && i < c.src->dims[1]; o++)
              {
                double a = fold_scale (&c, gamma, var, o);
                for (int u = 0; u < c.args->kernel[0]; u++)
                  for (int v = 0; v < c.args->kernel[1]; v++)
                    {
                      int64_t oy = output_of (&c, 0, y, u), ox = output_of (&c, 1, x, v);
                      if (oy >= 0 && ox >= 0)
                        sum +=
                            factor (&c, c.dst, in[RN_CONV_BD_DIFF_DST], rn_desc_index (c.dst, n, o, oy, ox))
                            * weight_factor (&c, a, weights[weights_index (&c, o, i % c.ic_group, u, v)]);
                    }
              }
            rn_float_set (c.src->dtype, out[RN_CONV_BD_DIFF_SRC], rn_desc_index (c.src, n, i, y, x),
                          (float) sum);
          }
  return RN_STATUS_OK;
}

static double
wgrad_at (const Conv *c, const void *src, const void *diff_dst, int64_t o, int64_t i, int u, int v)
{
  int64_t first = o / c->oc_group * c->ic_group;
  double sum = 0;

  for (int64_t n = 0; n < c->dst->dims[0]; n++)
    for (int64_t y = 0; y < c->dst->dims[2]; y++)
      for (int64_t x = 0; x < c->dst->dims[3]; x++)
        {
          int64_t sy = source_of (c, 0, y, u), sx = source_of (c, 1, x, v);
          if (sy >= 0 && sx >= 0)
            sum += factor (c, c->src, src, rn_desc_index (c->src, n, first + i, sy, sx))
                   * factor (c, c->dst, diff_dst, rn_desc_index (c->dst, n, o, y, x));
        }
  return sum;
}

static double
sum_of_channel (const Conv *c, const void *diff_dst, int64_t o)
{
  const RnTensorDesc *d = c->dst;
  double sum = 0;
  for (int64_t n = 0; n < d->dims[0]; n++)
    for (int64_t y = 0; y < d->dims[2]; y++)
      for (int64_t x = 0; x < d->dims[3]; x++)
        sum += factor (c, d, diff_dst, rn_desc_index (d, n, o, y, x));
  return sum;
}

static RnStatus
conv2d_bwd_weights (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                    void *const *out, void *workspace)
{
  const Conv c = conv_init (call, &call->in[RN_CONV_BW_SRC], &call->in[RN_CONV_BW_DIFF_DST]);
  const void *src = in[RN_CONV_BW_SRC], *diff_dst = in[RN_CONV_BW_DIFF_DST];
  const float *weights = in[RN_CONV_BW_WEIGHTS];
  const float *gamma = in[RN_CONV_BW_GAMMA], *mean = in[RN_CONV_BW_MEAN], *var = in[RN_CONV_BW_VAR];
  const float *sums = in[RN_CONV_BW_SUMS];
  float *diff_weights = out[RN_CONV_BW_DIFF_WEIGHTS], *diff_bias = out[RN_CONV_BW_DIFF_BIAS];
  float *diff_gamma = out[RN_CONV_BW_DIFF_GAMMA], *diff_beta = out[RN_CONV_BW_DIFF_BETA];

  for (int64_t o = 0; o < c.dst->dims[1]; o++)
    {
      double sigma = gamma != NULL ? sqrt ((double) var[o] + c.args->eps) : 1;
      double a = gamma != NULL ? gamma[o] / sigma : 1;
      double dot = 0; /* <weights, dw'> of this output channel */
      for (int64_t i = 0; i < c.ic_group; i++)
        for (int u = 0; u < c.args->kernel[0]; u++)
          for (int v = 0; v < c.args->kernel[1]; v++)
            {
              int64_t at = weights_index (&c, o, i, u, v);
              double dw = wgrad_at (&c, src, diff_dst, o, i, u, v);
              if (weights != NULL)
                dot += weights[at] * dw;
              if (diff_weights != NULL)
                diff_weights[at] += (float) (a * dw);
            }
      double sum = sums != NULL ? sums[o] : sum_of_channel (&c, diff_dst, o);
      if (diff_bias != NULL)
        diff_bias[o] += (float) sum;
      if (diff_beta != NULL)
        diff_beta[o] += (float) sum;
      if (diff_gamma != NULL)
        diff_gamma[o] += (float) ((dot - mean[o] * sum) / sigma);
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_conv2d_fwd = { .op = RN_OP_CONV2D_FWD, .name = "ref:conv2d_fwd", .run = conv2d_fwd };
const RnKernel rn_ref_conv2d_bwd_data = { .op = RN_OP_CONV2D_BWD_DATA,
                                          .name = "ref:conv2d_bwd_data",
                                          .run = conv2d_bwd_data };
const RnKernel rn_ref_conv2d_bwd_weights = { .op = RN_OP_CONV2D_BWD_WEIGHTS,
                                             .name = "ref:conv2d_bwd_weights",
                                             .run = conv2d_bwd_weights };
