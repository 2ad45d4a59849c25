/* op-check-maps.c: whether calls on feature maps make sense: convolutions, norms, elementwise ops, pooling,
 * moves, pixels. */
#include "config.h"

#include "kernels/op-check.h"

int64_t
rn_window_size (int64_t in, int kernel, int stride, int pad, int dilation, gboolean ceil_mode)
{
  if (in < 1 || kernel < 1 || stride < 1 || pad < 0 || dilation < 1)
    return 0;
  int64_t room = in + 2 * (int64_t) pad - (int64_t) dilation * (kernel - 1) - 1;
  if (room < 0)
    return 0;
  int64_t out = room / stride + 1;
  /*
   * As PyTorch: one more when the division has a rest, but the last window must start inside the source or
   * the padding before it.
   */
  if (ceil_mode && room % stride != 0 && out * stride < in + pad)
    out++;
  return out;
}

static gboolean
is_map (const RnTensorDesc *d)
{
  return d->dtype == RN_F32 && d->rank == 4;
}

static gboolean
same_channels (const RnTensorDesc *a, const RnTensorDesc *b)
{
  return a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1];
}

/* All of @mask present, or none of it. */
static gboolean
together (guint present, guint mask)
{
  return (present & mask) == 0 || (present & mask) == mask;
}

static RnReason
check_vectors (const RnOpCall *call, guint in_mask, guint out_mask, int64_t n)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if ((call->in_present & in_mask & BIT (i)) != 0 && !is_vector (&call->in[i], RN_F32, n))
      return "a per-channel input is not an F32 vector of the channels";
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if ((call->out_present & out_mask & BIT (i)) != 0 && !is_vector (&call->out[i], RN_F32, n))
      return "a per-channel output is not an F32 vector of the channels";
  return NULL;
}

static RnReason
check_conv_shapes (const RnConvArgs *args, const RnTensorDesc *src, const RnTensorDesc *weights,
                   const RnTensorDesc *dst)
{
  if (!is_activation (src) || !is_activation (dst))
    return "source and destination must be activations of rank 4";
  if (!rn_dtype_is_float (args->compute) || (src->dtype != RN_F32 && src->dtype != args->compute)
      || (dst->dtype != RN_F32 && dst->dtype != args->compute))
    return "a convolution of halves must compute in their type";
  if (!is_map (weights) || weights->cblk != 1)
    return "weights must be F32 of rank 4, OIHW";
  if (args->groups < 1 || src->dims[1] % args->groups != 0 || dst->dims[1] % args->groups != 0)
    return "groups do not divide the channels";
  if (weights->dims[0] != dst->dims[1] || weights->dims[1] != src->dims[1] / args->groups
      || weights->dims[2] != args->kernel[0] || weights->dims[3] != args->kernel[1])
    return "weights are not [OC, IC / groups, KH, KW]";
  if (src->dims[0] != dst->dims[0])
    return "batch sizes differ";
  for (int i = 0; i < 2; i++)
    if (dst->dims[2 + i]
        != rn_window_size (src->dims[2 + i], args->kernel[i], args->stride[i], args->pad[i],
                           args->dilation[i], FALSE))
      return "output size does not follow from kernel, stride, pad and dilation";
  return NULL;
}

RnReason
rn_op_check_conv_fwd (const RnOpCall *call)
{
  const guint fold = BIT (RN_CONV_GAMMA) | BIT (RN_CONV_BETA) | BIT (RN_CONV_MEAN) | BIT (RN_CONV_VAR);
  const RnTensorDesc *dst = &call->out[RN_CONV_DST];

  RN_TRY_CHECK (
      check_conv_shapes (&call->args.conv, &call->in[RN_CONV_SRC], &call->in[RN_CONV_WEIGHTS], dst));
  if (!together (call->in_present, fold))
    return "gamma, beta, mean and var belong together";
  if (RN_HAS_IN (call, RN_CONV_GAMMA) && RN_HAS_IN (call, RN_CONV_BIAS))
    return "a folded convolution has no bias";
  if (RN_HAS_IN (call, RN_CONV_RESIDUAL) && !rn_desc_equal (&call->in[RN_CONV_RESIDUAL], dst))
    return "residual differs from dst";
  return check_vectors (call, fold | BIT (RN_CONV_BIAS), 0, dst->dims[1]);
}

RnReason
rn_op_check_conv_bwd_data (const RnOpCall *call)
{
  const guint fold = BIT (RN_CONV_BD_GAMMA) | BIT (RN_CONV_BD_VAR);
  const RnTensorDesc *diff_dst = &call->in[RN_CONV_BD_DIFF_DST];

  RN_TRY_CHECK (check_conv_shapes (&call->args.conv, &call->out[RN_CONV_BD_DIFF_SRC],
                                   &call->in[RN_CONV_BD_WEIGHTS], diff_dst));
  if (!together (call->in_present, fold))
    return "gamma and var belong together";
  return check_vectors (call, fold, 0, diff_dst->dims[1]);
}

RnReason
rn_op_check_conv_bwd_weights (const RnOpCall *call)
{
  const guint fold = BIT (RN_CONV_BW_GAMMA) | BIT (RN_CONV_BW_MEAN) | BIT (RN_CONV_BW_VAR);
  const guint folded_out = BIT (RN_CONV_BW_DIFF_GAMMA) | BIT (RN_CONV_BW_DIFF_BETA);
  const RnConvArgs *args = &call->args.conv;
  const RnTensorDesc *src = &call->in[RN_CONV_BW_SRC], *diff_dst = &call->in[RN_CONV_BW_DIFF_DST];
  gboolean folded = RN_HAS_IN (call, RN_CONV_BW_GAMMA);

  if (args->groups < 1)
    return "groups do not divide the channels";
  RnTensorDesc weights = {
    RN_F32, 4, { diff_dst->dims[1], src->dims[1] / args->groups, args->kernel[0], args->kernel[1] }, 1
  };
  RN_TRY_CHECK (check_conv_shapes (args, src, &weights, diff_dst));
  if (!together (call->in_present, fold | BIT (RN_CONV_BW_WEIGHTS)))
    return "weights, gamma, mean and var belong together";
  if (call->out_present == 0)
    return "no output is asked for";
  if (folded ? RN_HAS_OUT (call, RN_CONV_BW_DIFF_BIAS) : (call->out_present & folded_out) != 0)
    return "diff_bias is for plain, diff_gamma and diff_beta are for folded convolutions";
  if ((folded && !rn_desc_equal (&call->in[RN_CONV_BW_WEIGHTS], &weights))
      || (RN_HAS_OUT (call, RN_CONV_BW_DIFF_WEIGHTS)
          && !rn_desc_equal (&call->out[RN_CONV_BW_DIFF_WEIGHTS], &weights)))
    return "weights are not [OC, IC / groups, KH, KW]";
  return check_vectors (call, fold | BIT (RN_CONV_BW_SUMS), folded_out | BIT (RN_CONV_BW_DIFF_BIAS),
                        diff_dst->dims[1]);
}

RnReason
rn_op_check_norm_fwd (const RnOpCall *call)
{
  const guint stats = BIT (RN_NORM_MEAN) | BIT (RN_NORM_VAR);
  const guint saved = BIT (RN_NORM_SAVED_MEAN) | BIT (RN_NORM_SAVED_INVSTD);
  const guint running = BIT (RN_NORM_RUNNING_MEAN) | BIT (RN_NORM_RUNNING_VAR);
  const RnTensorDesc *src = &call->in[RN_NORM_SRC];

  if (!is_activation (src) || !rn_desc_equal (src, &call->out[RN_NORM_DST]))
    return "source and destination must be equal activations";
  if (call->args.norm.training)
    {
      if ((call->in_present & stats) != 0 || (call->out_present & saved) != saved)
        return "training needs saved_mean and saved_invstd and takes no statistics";
      if (!together (call->out_present, running))
        return "running_mean and running_var belong together";
    }
  else if ((call->in_present & stats) != stats || (call->out_present & (saved | running)) != 0)
    return "evaluation needs mean and var and gives only dst";
  return check_vectors (call, stats | BIT (RN_NORM_GAMMA) | BIT (RN_NORM_BETA), saved | running,
                        src->dims[1]);
}

RnReason
rn_op_check_norm_bwd (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[RN_NORM_BWD_SRC];

  if (!is_activation (src) || !rn_desc_equal (src, &call->in[RN_NORM_BWD_DIFF_DST])
      || !rn_desc_equal (src, &call->out[RN_NORM_BWD_DIFF_SRC]))
    return "source and both gradients must be equal activations";
  return check_vectors (call, BIT (RN_NORM_BWD_GAMMA) | BIT (RN_NORM_BWD_MEAN) | BIT (RN_NORM_BWD_VAR),
                        BIT (RN_NORM_BWD_DIFF_GAMMA) | BIT (RN_NORM_BWD_DIFF_BETA), src->dims[1]);
}

RnReason
rn_op_check_elementwise (const RnOpCall *call)
{
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i) && !rn_desc_equal (&call->in[i], &call->out[0]))
      return "inputs and output differ in shape, layout or dtype";
  return rn_dtype_is_float (call->out[0].dtype) ? NULL : "tensors must be F32, F16 or BF16";
}

RnReason
rn_op_check_relu_bwd (const RnOpCall *call)
{
  const RnTensorDesc *dst = &call->out[RN_RELU_BWD_DST];

  RN_TRY_CHECK (rn_op_check_elementwise (call));
  if (!RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
    return NULL;
  if (dst->rank != 4)
    return "only maps of rank 4 have channels to add up";
  return check_vectors (call, 0, BIT (RN_RELU_BWD_SUMS), dst->dims[1]);
}

static RnReason
check_pool_shapes (const RnPoolArgs *args, const RnTensorDesc *src, const RnTensorDesc *dst)
{
  if (!is_activation (src) || !is_activation (dst))
    return "source and destination must be activations of rank 4";
  if (!same_channels (src, dst) || src->cblk != dst->cblk || src->dtype != dst->dtype)
    return "batch, channels, layout or type differ";
  for (int i = 0; i < 2; i++)
    {
      if (args->kernel[i] < 1 || args->pad[i] < 0 || args->pad[i] > args->kernel[i] / 2)
        return "the padding is larger than half of the window"; /* PyTorch's rule */
      if (dst->dims[2 + i]
          != rn_window_size (src->dims[2 + i], args->kernel[i], args->stride[i], args->pad[i], 1,
                             args->ceil_mode))
        return "output size does not follow from kernel, stride and pad";
    }
  return NULL;
}

static RnReason
check_pool_index (const RnPoolArgs *args, const RnTensorDesc *index, RnTensorDesc dst)
{
  dst.dtype = RN_U8;
  if ((int64_t) args->kernel[0] * args->kernel[1] > 256)
    return "a window of more than 256 cells has no U8 index";
  return rn_desc_equal (index, &dst) ? NULL : "index is not U8 in the shape and layout of dst";
}

RnReason
rn_op_check_max_pool_fwd (const RnOpCall *call)
{
  RN_TRY_CHECK (check_pool_shapes (&call->args.pool, &call->in[0], &call->out[RN_POOL_DST]));
  if (RN_HAS_OUT (call, RN_POOL_INDEX))
    return check_pool_index (&call->args.pool, &call->out[RN_POOL_INDEX], call->out[RN_POOL_DST]);
  return NULL;
}

RnReason
rn_op_check_max_pool_bwd (const RnOpCall *call)
{
  RN_TRY_CHECK (check_pool_shapes (&call->args.pool, &call->out[0], &call->in[RN_POOL_BWD_DIFF_DST]));
  return check_pool_index (&call->args.pool, &call->in[RN_POOL_BWD_INDEX], call->in[RN_POOL_BWD_DIFF_DST]);
}

RnReason
rn_op_check_avg_pool_fwd (const RnOpCall *call)
{
  return check_pool_shapes (&call->args.pool, &call->in[0], &call->out[0]);
}

RnReason
rn_op_check_avg_pool_bwd (const RnOpCall *call)
{
  return check_pool_shapes (&call->args.pool, &call->out[0], &call->in[0]);
}

RnReason
rn_op_check_upsample (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[RN_UPSAMPLE_SRC], *dst = &call->out[0];

  if (!is_activation (src) || !is_activation (dst) || !same_channels (src, dst) || src->cblk != dst->cblk
      || src->dtype != dst->dtype)
    return "source and destination must be activations of rank 4 with equal batch, channels, layout and type";
  if (RN_HAS_IN (call, RN_UPSAMPLE_ADDEND) && !rn_desc_equal (&call->in[RN_UPSAMPLE_ADDEND], dst))
    return "addend differs from dst";
  return NULL;
}

RnReason
rn_op_check_reorder (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[0], *dst = &call->out[0];

  if (!is_activation (src) || !is_activation (dst) || !same_channels (src, dst)
      || src->dims[2] != dst->dims[2] || src->dims[3] != dst->dims[3])
    return "source and destination must be activations of rank 4 with equal sizes";
  return NULL;
}

RnReason
rn_op_check_copy (const RnOpCall *call)
{
  return rn_desc_equal (&call->in[0], &call->out[0]) ? NULL : "source and destination differ";
}

RnReason
rn_op_check_zero (const RnOpCall *call)
{
  return NULL;
}

RnReason
rn_op_check_normalize (const RnOpCall *call)
{
  const RnTensorDesc *pixels = &call->in[RN_NORMALIZE_PIXELS], *sizes = &call->in[RN_NORMALIZE_SIZES],
                     *table = &call->in[RN_NORMALIZE_TABLE], *dst = &call->out[0];
  const int64_t n = dst->dims[0];

  if (!is_activation (dst) || dst->dims[1] != 3)
    return "the destination must be an activation of three channels";
  if (pixels->dtype != RN_U8 || pixels->rank != 3 || pixels->dims[0] != n || pixels->dims[1] != dst->dims[2]
      || pixels->dims[2] != 3 * dst->dims[3])
    return "pixels are not U8 [N, H, 3 W]";
  if (sizes->dtype != RN_I32 || sizes->rank != 2 || sizes->dims[0] != n || sizes->dims[1] != 2)
    return "sizes are not I32 [N, 2]";
  if (table->dtype != RN_F32 || table->rank != 3 || table->dims[0] != n || table->dims[1] != 3
      || table->dims[2] != 256)
    return "the table is not F32 [N, 3, 256]";
  return NULL;
}
