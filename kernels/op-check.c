/*
 * op-check.c: whether a call makes sense: presence, dtypes, ranks and sizes of its tensors. Every kernel
 * relies on it and checks nothing again; what only some kernels can do is for their prepare () to refuse.
 */
#include "config.h"

#include "kernels/half.h"
#include "kernels/op.h"

#include <math.h>
#include <runner/batch.h>

typedef const char *Check; /* NULL or the reason */

#define TRY(check)                 \
  G_STMT_START                     \
  {                                \
    const char *reason_ = (check); \
    if (reason_ != NULL)           \
      return reason_;              \
  }                                \
  G_STMT_END

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
is_vector (const RnTensorDesc *d, RnDType dtype, int64_t n)
{
  return d->dtype == dtype && d->rank == 1 && d->dims[0] == n;
}

static gboolean
is_map (const RnTensorDesc *d)
{
  return d->dtype == RN_F32 && d->rank == 4;
}

/* An activation or the gradient of one. */
static gboolean
is_activation (const RnTensorDesc *d)
{
  return rn_dtype_is_float (d->dtype) && d->rank == 4;
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

#define BIT(slot) (1u << (slot))

static Check
check_desc (const RnTensorDesc *d)
{
  if ((guint) d->dtype >= RN_DTYPE_COUNT || d->rank < 0 || d->rank > RN_MAX_DIMS)
    return "a tensor has an unknown dtype or rank";
  if (d->cblk < 1 || (d->rank != 4 && d->cblk != 1))
    return "a tensor has a channel block that does not fit its rank";
  int64_t n = (int64_t) rn_dtype_size (d->dtype);
  for (int i = 0; i < d->rank; i++)
    {
      int64_t size = d->dims[i];
      if (size < 1 || (i == 1 && d->rank == 4 && size > G_MAXINT64 - d->cblk))
        return "a tensor has a size below 1";
      if (i == 1 && d->rank == 4)
        size = rn_desc_stored_channels (d);
      if (__builtin_mul_overflow (n, size, &n))
        return "a tensor is too large";
    }
  return NULL;
}

static Check
check_presence (const RnOpCall *call)
{
  guint all_in = BIT (rn_op_n_in (call->op)) - 1, all_out = BIT (rn_op_n_out (call->op)) - 1;

  if ((call->in_present & ~all_in) != 0 || (call->out_present & ~all_out) != 0)
    return "a slot is present that the op does not have";
  if ((all_in & ~rn_op_optional_in (call->op) & ~call->in_present) != 0)
    return "a required input is absent";
  if ((all_out & ~rn_op_optional_out (call->op) & ~call->out_present) != 0)
    return "a required output is absent";
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i))
      TRY (check_desc (&call->in[i]));
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    if (RN_HAS_OUT (call, i))
      TRY (check_desc (&call->out[i]));
  return NULL;
}

static Check
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

static Check
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

static Check
check_conv_fwd (const RnOpCall *call)
{
  const guint fold = BIT (RN_CONV_GAMMA) | BIT (RN_CONV_BETA) | BIT (RN_CONV_MEAN) | BIT (RN_CONV_VAR);
  const RnTensorDesc *dst = &call->out[RN_CONV_DST];

  TRY (check_conv_shapes (&call->args.conv, &call->in[RN_CONV_SRC], &call->in[RN_CONV_WEIGHTS], dst));
  if (!together (call->in_present, fold))
    return "gamma, beta, mean and var belong together";
  if (RN_HAS_IN (call, RN_CONV_GAMMA) && RN_HAS_IN (call, RN_CONV_BIAS))
    return "a folded convolution has no bias";
  if (RN_HAS_IN (call, RN_CONV_RESIDUAL) && !rn_desc_equal (&call->in[RN_CONV_RESIDUAL], dst))
    return "residual differs from dst";
  return check_vectors (call, fold | BIT (RN_CONV_BIAS), 0, dst->dims[1]);
}

static Check
check_conv_bwd_data (const RnOpCall *call)
{
  const guint fold = BIT (RN_CONV_BD_GAMMA) | BIT (RN_CONV_BD_VAR);
  const RnTensorDesc *diff_dst = &call->in[RN_CONV_BD_DIFF_DST];

  TRY (check_conv_shapes (&call->args.conv, &call->out[RN_CONV_BD_DIFF_SRC], &call->in[RN_CONV_BD_WEIGHTS],
                          diff_dst));
  if (!together (call->in_present, fold))
    return "gamma and var belong together";
  return check_vectors (call, fold, 0, diff_dst->dims[1]);
}

static Check
check_conv_bwd_weights (const RnOpCall *call)
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
  TRY (check_conv_shapes (args, src, &weights, diff_dst));
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

static Check
check_norm_fwd (const RnOpCall *call)
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

static Check
check_norm_bwd (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[RN_NORM_BWD_SRC];

  if (!is_activation (src) || !rn_desc_equal (src, &call->in[RN_NORM_BWD_DIFF_DST])
      || !rn_desc_equal (src, &call->out[RN_NORM_BWD_DIFF_SRC]))
    return "source and both gradients must be equal activations";
  return check_vectors (call, BIT (RN_NORM_BWD_GAMMA) | BIT (RN_NORM_BWD_MEAN) | BIT (RN_NORM_BWD_VAR),
                        BIT (RN_NORM_BWD_DIFF_GAMMA) | BIT (RN_NORM_BWD_DIFF_BETA), src->dims[1]);
}

static Check
check_elementwise (const RnOpCall *call)
{
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i) && !rn_desc_equal (&call->in[i], &call->out[0]))
      return "inputs and output differ in shape, layout or dtype";
  return rn_dtype_is_float (call->out[0].dtype) ? NULL : "tensors must be F32, F16 or BF16";
}

static Check
check_relu_bwd (const RnOpCall *call)
{
  const RnTensorDesc *dst = &call->out[RN_RELU_BWD_DST];

  TRY (check_elementwise (call));
  if (!RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
    return NULL;
  if (dst->rank != 4)
    return "only maps of rank 4 have channels to add up";
  return check_vectors (call, 0, BIT (RN_RELU_BWD_SUMS), dst->dims[1]);
}

static Check
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

static Check
check_pool_index (const RnPoolArgs *args, const RnTensorDesc *index, RnTensorDesc dst)
{
  dst.dtype = RN_U8;
  if ((int64_t) args->kernel[0] * args->kernel[1] > 256)
    return "a window of more than 256 cells has no U8 index";
  return rn_desc_equal (index, &dst) ? NULL : "index is not U8 in the shape and layout of dst";
}

static Check
check_max_pool_fwd (const RnOpCall *call)
{
  TRY (check_pool_shapes (&call->args.pool, &call->in[0], &call->out[RN_POOL_DST]));
  if (RN_HAS_OUT (call, RN_POOL_INDEX))
    return check_pool_index (&call->args.pool, &call->out[RN_POOL_INDEX], call->out[RN_POOL_DST]);
  return NULL;
}

static Check
check_max_pool_bwd (const RnOpCall *call)
{
  TRY (check_pool_shapes (&call->args.pool, &call->out[0], &call->in[RN_POOL_BWD_DIFF_DST]));
  return check_pool_index (&call->args.pool, &call->in[RN_POOL_BWD_INDEX], call->in[RN_POOL_BWD_DIFF_DST]);
}

static Check
check_avg_pool_fwd (const RnOpCall *call)
{
  return check_pool_shapes (&call->args.pool, &call->in[0], &call->out[0]);
}

static Check
check_avg_pool_bwd (const RnOpCall *call)
{
  return check_pool_shapes (&call->args.pool, &call->out[0], &call->in[0]);
}

static Check
check_upsample (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[RN_UPSAMPLE_SRC], *dst = &call->out[0];

  if (!is_activation (src) || !is_activation (dst) || !same_channels (src, dst) || src->cblk != dst->cblk
      || src->dtype != dst->dtype)
    return "source and destination must be activations of rank 4 with equal batch, channels, layout and type";
  if (RN_HAS_IN (call, RN_UPSAMPLE_ADDEND) && !rn_desc_equal (&call->in[RN_UPSAMPLE_ADDEND], dst))
    return "addend differs from dst";
  return NULL;
}

static Check
check_reorder (const RnOpCall *call)
{
  const RnTensorDesc *src = &call->in[0], *dst = &call->out[0];

  if (!is_activation (src) || !is_activation (dst) || !same_channels (src, dst)
      || src->dims[2] != dst->dims[2] || src->dims[3] != dst->dims[3])
    return "source and destination must be activations of rank 4 with equal sizes";
  return NULL;
}

static Check
check_copy (const RnOpCall *call)
{
  return rn_desc_equal (&call->in[0], &call->out[0]) ? NULL : "source and destination differ";
}

static Check
check_zero (const RnOpCall *call)
{
  return NULL;
}

static Check
check_normalize (const RnOpCall *call)
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

static Check
check_scalar_inputs (const RnOpCall *call, guint mask)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if ((mask & BIT (i)) != 0 && !is_vector (&call->in[i], RN_F32, 1))
      return "normaliser and gradient scale must be F32 vectors of one element";
  return NULL;
}

static Check
check_loss_outputs (const RnOpCall *call, const RnTensorDesc *in)
{
  if (!is_vector (&call->out[RN_LOSS_VALUE], RN_F32, 1))
    return "loss must be an F32 vector of one element";
  if (RN_HAS_OUT (call, RN_LOSS_DIFF) && !rn_desc_equal (&call->out[RN_LOSS_DIFF], in))
    return "the gradient differs from the predictions in shape, layout or type";
  return NULL;
}

static Check
check_focal_loss (const RnOpCall *call)
{
  const RnFocalArgs *args = &call->args.focal;
  const RnTensorDesc *logits = &call->in[RN_FOCAL_LOGITS], *labels = &call->in[RN_FOCAL_LABELS];

  if (args->num_classes < 1 || args->num_classes > G_MAXINT16 || args->anchors_per_cell < 1)
    return "classes and anchors must be at least 1, classes at most 32767";
  if (!is_activation (logits) || logits->dims[1] != (int64_t) args->num_classes * args->anchors_per_cell)
    return "logits are not floats [N, A * K, H, W]";
  if (labels->dtype != RN_I16 || labels->rank != 2 || labels->dims[0] != logits->dims[0])
    return "labels are not I16 [N, anchors]";
  if (args->anchor_offset < 0
      || args->anchor_offset > labels->dims[1] - logits->dims[2] * logits->dims[3] * args->anchors_per_cell)
    return "the level lies outside of the labels";
  if (!(args->alpha >= 0 && args->alpha <= 1) || !(args->gamma >= 0) || !isfinite (args->gamma)
      || !isfinite (args->weight))
    return "alpha must be in 0..1, gamma at least 0 and the weight finite";
  TRY (check_scalar_inputs (call, BIT (RN_FOCAL_AVG) | BIT (RN_FOCAL_GRAD_SCALE)));
  return check_loss_outputs (call, logits);
}

static Check
check_box_loss (const RnOpCall *call)
{
  const RnBoxArgs *args = &call->args.box;
  const RnTensorDesc *pred = &call->in[RN_BOX_PRED], *positives = &call->in[RN_BOX_POSITIVES];

  if (args->anchors_per_cell < 1 || args->anchor_offset < 0 || !(args->beta >= 0) || !isfinite (args->beta)
      || !isfinite (args->weight))
    return "anchors must be at least 1, the offset and beta at least 0 and the weight finite";
  if (!is_activation (pred) || pred->dims[1] != 4 * (int64_t) args->anchors_per_cell)
    return "predictions are not floats [N, A * 4, H, W]";
  if (positives->dtype != RN_U8 || positives->rank != 1
      || positives->dims[0] % (int64_t) sizeof (RnPositive) != 0)
    return "positives are not U8 records";
  if (!is_vector (&call->in[RN_BOX_COUNT], RN_I64, 1))
    return "count is not I64 of one element";
  TRY (check_scalar_inputs (call, BIT (RN_BOX_AVG) | BIT (RN_BOX_GRAD_SCALE)));
  return check_loss_outputs (call, pred);
}

static Check
check_topk (const RnOpCall *call)
{
  const RnTopkArgs *args = &call->args.topk;
  const RnTensorDesc *logits = &call->in[RN_TOPK_LOGITS], *deltas = &call->in[RN_TOPK_DELTAS];
  const RnTensorDesc *index = &call->out[RN_TOPK_INDEX];
  const RnTensorDesc *row_logits = &call->out[RN_TOPK_ROW_LOGITS],
                     *row_deltas = &call->out[RN_TOPK_ROW_DELTAS];

  if (!is_activation (logits) || !is_activation (deltas) || args->num_classes < 1
      || args->anchors_per_cell < 1
      || logits->dims[1] != (int64_t) args->num_classes * args->anchors_per_cell)
    return "logits are not floats [N, A * K, H, W]";
  if (deltas->dims[0] != logits->dims[0] || deltas->dims[1] != 4 * (int64_t) args->anchors_per_cell
      || deltas->dims[2] != logits->dims[2] || deltas->dims[3] != logits->dims[3])
    return "deltas are not floats [N, A * 4, H, W]";
  int64_t n = logits->dims[0], n_anchors = logits->dims[2] * logits->dims[3] * args->anchors_per_cell;
  if (args->k < 1 || args->k > n_anchors || n_anchors > G_MAXINT32)
    return "k must be in 1 .. H * W * A";
  if (index->dtype != RN_I32 || index->rank != 2 || index->dims[0] != n || index->dims[1] != args->k)
    return "index is not I32 [N, k]";
  if (row_logits->dtype != RN_F32 || row_logits->rank != 3 || row_logits->dims[0] != n
      || row_logits->dims[1] != args->k || row_logits->dims[2] != args->num_classes)
    return "rows of logits are not F32 [N, k, K]";
  if (row_deltas->dtype != RN_F32 || row_deltas->rank != 3 || row_deltas->dims[0] != n
      || row_deltas->dims[1] != args->k || row_deltas->dims[2] != 4)
    return "rows of deltas are not F32 [N, k, 4]";
  return NULL;
}

static Check
check_grad_stats (const RnOpCall *call)
{
  const RnTensorDesc *grad = &call->in[RN_GRAD_STATS_GRAD];

  if (grad->dtype != RN_F32 || grad->rank != 1)
    return "the gradient must be an F32 vector";
  if (!is_vector (&call->in[RN_GRAD_STATS_NORM_TYPE], RN_F32, 1))
    return "the type of the norm must be F32 of one element";
  if (!is_vector (&call->out[0], RN_F32, RN_STATS_COUNT))
    return "stats must be F32 of two elements: norm, largest";
  return NULL;
}

/* @group must be one of the groups that the hyper vector has. */
static Check
check_hyper (const RnTensorDesc *hyper, int group)
{
  int64_t n_groups = (hyper->dims[0] - RN_HYPER_COUNT) / RN_GROUP_COUNT;

  if (hyper->dims[0] <= RN_HYPER_COUNT
      || !is_vector (hyper, RN_F32, RN_HYPER_COUNT + n_groups * RN_GROUP_COUNT))
    return "hyper is not the F32 vector of the optimizer";
  if (group < 0 || group >= n_groups)
    return "hyper has no such group";
  return NULL;
}

static Check
check_step_guard (const RnOpCall *call)
{
  if (!is_vector (&call->in[0], RN_F32, RN_STATS_COUNT))
    return "stats must be F32 of two elements: norm, largest";
  return check_hyper (&call->out[0], 0);
}

/* A gradient may lie in the shape of its parameter, while this one is seen as a vector. */
static gboolean
is_gradient_of (const RnTensorDesc *grad, const RnTensorDesc *param)
{
  return param->dtype == RN_F32 && grad->dtype == RN_F32
         && rn_desc_stored_elements (grad) == rn_desc_elements (param)
         && rn_desc_stored_elements (param) == rn_desc_elements (param);
}

/* A state of an optimizer: like its parameter, but maybe in BF16. */
static gboolean
is_state_of (const RnTensorDesc *state, RnTensorDesc param)
{
  if (state->dtype == RN_BF16)
    param.dtype = RN_BF16;
  return rn_desc_equal (state, &param);
}

static Check
check_sgd (const RnOpCall *call)
{
  const RnTensorDesc *param = &call->out[RN_SGD_PARAM];

  if (!is_gradient_of (&call->in[RN_SGD_GRAD], param))
    return "gradient and parameter must be F32, in plain layout, and of equal size";
  if (RN_HAS_OUT (call, RN_SGD_MOMENTUM) && !is_state_of (&call->out[RN_SGD_MOMENTUM], *param))
    return "momentum must have the shape of the parameter and be F32 or BF16";
  return check_hyper (&call->in[RN_SGD_HYPER], call->args.sgd.group);
}

static Check
check_adam (const RnOpCall *call)
{
  const RnTensorDesc *param = &call->out[RN_ADAM_PARAM];

  if (!is_gradient_of (&call->in[RN_ADAM_GRAD], param))
    return "gradient and parameter must be F32, in plain layout, and of equal size";
  for (int i = RN_ADAM_EXP_AVG; i < RN_ADAM_OUT_COUNT; i++)
    if (RN_HAS_OUT (call, i)
        && (!is_state_of (&call->out[i], *param) || call->out[i].dtype != call->out[RN_ADAM_EXP_AVG].dtype))
      return "the states must have the shape of the parameter and be all F32 or all BF16";
  return check_hyper (&call->in[RN_ADAM_HYPER], call->args.adam.group);
}

static Check
check_ema_update (const RnOpCall *call)
{
  const RnTensorDesc *mean = &call->out[0];

  if (mean->dtype != RN_F32 || mean->rank != 1 || !rn_desc_equal (mean, &call->in[RN_EMA_SRC]))
    return "mean and weights must be F32 vectors of equal size";
  if (!is_vector (&call->in[RN_EMA_MOMENTUM], RN_F32, 1))
    return "the momentum must be F32 of one element";
  return NULL;
}

static Check
check_swap (const RnOpCall *call)
{
  const RnTensorDesc *a = &call->out[RN_SWAP_A];

  if (a->dtype != RN_F32 || a->rank != 1 || !rn_desc_equal (a, &call->out[RN_SWAP_B]))
    return "only F32 vectors of equal size can be exchanged";
  return NULL;
}

static Check (*const checks[]) (const RnOpCall *) = {
  [RN_OP_CONV2D_FWD] = check_conv_fwd,
  [RN_OP_CONV2D_BWD_DATA] = check_conv_bwd_data,
  [RN_OP_CONV2D_BWD_WEIGHTS] = check_conv_bwd_weights,
  [RN_OP_BATCH_NORM_FWD] = check_norm_fwd,
  [RN_OP_BATCH_NORM_BWD] = check_norm_bwd,
  [RN_OP_RELU_FWD] = check_elementwise,
  [RN_OP_RELU_BWD] = check_relu_bwd,
  [RN_OP_ADD] = check_elementwise,
  [RN_OP_MAX_POOL_FWD] = check_max_pool_fwd,
  [RN_OP_MAX_POOL_BWD] = check_max_pool_bwd,
  [RN_OP_AVG_POOL_FWD] = check_avg_pool_fwd,
  [RN_OP_AVG_POOL_BWD] = check_avg_pool_bwd,
  [RN_OP_UPSAMPLE_FWD] = check_upsample,
  [RN_OP_UPSAMPLE_BWD] = check_upsample,
  [RN_OP_REORDER] = check_reorder,
  [RN_OP_COPY] = check_copy,
  [RN_OP_ZERO] = check_zero,
  [RN_OP_NORMALIZE] = check_normalize,
  [RN_OP_FOCAL_LOSS] = check_focal_loss,
  [RN_OP_BOX_LOSS] = check_box_loss,
  [RN_OP_TOPK] = check_topk,
  [RN_OP_GRAD_STATS] = check_grad_stats,
  [RN_OP_STEP_GUARD] = check_step_guard,
  [RN_OP_SGD] = check_sgd,
  [RN_OP_ADAM] = check_adam,
  [RN_OP_EMA_UPDATE] = check_ema_update,
  [RN_OP_SWAP] = check_swap,
};

G_STATIC_ASSERT (G_N_ELEMENTS (checks) == RN_OP_COUNT);

const char *
rn_op_check (const RnOpCall *call)
{
  if ((guint) call->op >= RN_OP_COUNT)
    return "unknown op";
  TRY (check_presence (call));
  return checks[call->op](call);
}
