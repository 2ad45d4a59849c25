/*
 * op-check.c: whether a call makes sense: presence, dtypes, ranks and sizes of its tensors. Every kernel
 * relies on it and checks nothing again; what only some kernels can do is for their prepare () to refuse.
 */
#include "config.h"

#include "kernels/op-check.h"

#include <math.h>
#include <runner/batch.h>

static RnReason
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

static RnReason
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
      RN_TRY_CHECK (check_desc (&call->in[i]));
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    if (RN_HAS_OUT (call, i))
      RN_TRY_CHECK (check_desc (&call->out[i]));
  return NULL;
}

/* ---- losses and selection ---- */

static RnReason
check_scalar_inputs (const RnOpCall *call, guint mask)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if ((mask & BIT (i)) != 0 && !is_vector (&call->in[i], RN_F32, 1))
      return "normaliser and gradient scale must be F32 vectors of one element";
  return NULL;
}

static RnReason
check_loss_outputs (const RnOpCall *call, const RnTensorDesc *in)
{
  if (!is_vector (&call->out[RN_LOSS_VALUE], RN_F32, 1))
    return "loss must be an F32 vector of one element";
  if (RN_HAS_OUT (call, RN_LOSS_DIFF) && !rn_desc_equal (&call->out[RN_LOSS_DIFF], in))
    return "the gradient differs from the predictions in shape, layout or type";
  return NULL;
}

static RnReason
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
  RN_TRY_CHECK (check_scalar_inputs (call, BIT (RN_FOCAL_AVG) | BIT (RN_FOCAL_GRAD_SCALE)));
  return check_loss_outputs (call, logits);
}

static RnReason
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
  RN_TRY_CHECK (check_scalar_inputs (call, BIT (RN_BOX_AVG) | BIT (RN_BOX_GRAD_SCALE)));
  return check_loss_outputs (call, pred);
}

static RnReason
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

/* ---- update ---- */

static RnReason
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
static RnReason
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

static RnReason
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

static RnReason
check_sgd (const RnOpCall *call)
{
  const RnTensorDesc *param = &call->out[RN_SGD_PARAM];

  if (!is_gradient_of (&call->in[RN_SGD_GRAD], param))
    return "gradient and parameter must be F32, in plain layout, and of equal size";
  if (RN_HAS_OUT (call, RN_SGD_MOMENTUM) && !is_state_of (&call->out[RN_SGD_MOMENTUM], *param))
    return "momentum must have the shape of the parameter and be F32 or BF16";
  return check_hyper (&call->in[RN_SGD_HYPER], call->args.sgd.group);
}

static RnReason
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

static RnReason
check_ema_update (const RnOpCall *call)
{
  const RnTensorDesc *mean = &call->out[0];

  if (mean->dtype != RN_F32 || mean->rank != 1 || !rn_desc_equal (mean, &call->in[RN_EMA_SRC]))
    return "mean and weights must be F32 vectors of equal size";
  if (!is_vector (&call->in[RN_EMA_MOMENTUM], RN_F32, 1))
    return "the momentum must be F32 of one element";
  return NULL;
}

static RnReason
check_swap (const RnOpCall *call)
{
  const RnTensorDesc *a = &call->out[RN_SWAP_A];

  if (a->dtype != RN_F32 || a->rank != 1 || !rn_desc_equal (a, &call->out[RN_SWAP_B]))
    return "only F32 vectors of equal size can be exchanged";
  return NULL;
}

/* ---- all ops ---- */

static RnReason (*const checks[]) (const RnOpCall *) = {
  [RN_OP_CONV2D_FWD] = rn_op_check_conv_fwd,
  [RN_OP_CONV2D_BWD_DATA] = rn_op_check_conv_bwd_data,
  [RN_OP_CONV2D_BWD_WEIGHTS] = rn_op_check_conv_bwd_weights,
  [RN_OP_BATCH_NORM_FWD] = rn_op_check_norm_fwd,
  [RN_OP_BATCH_NORM_BWD] = rn_op_check_norm_bwd,
  [RN_OP_RELU_FWD] = rn_op_check_elementwise,
  [RN_OP_RELU_BWD] = rn_op_check_relu_bwd,
  [RN_OP_ADD] = rn_op_check_elementwise,
  [RN_OP_MAX_POOL_FWD] = rn_op_check_max_pool_fwd,
  [RN_OP_MAX_POOL_BWD] = rn_op_check_max_pool_bwd,
  [RN_OP_AVG_POOL_FWD] = rn_op_check_avg_pool_fwd,
  [RN_OP_AVG_POOL_BWD] = rn_op_check_avg_pool_bwd,
  [RN_OP_UPSAMPLE_FWD] = rn_op_check_upsample,
  [RN_OP_UPSAMPLE_BWD] = rn_op_check_upsample,
  [RN_OP_REORDER] = rn_op_check_reorder,
  [RN_OP_COPY] = rn_op_check_copy,
  [RN_OP_ZERO] = rn_op_check_zero,
  [RN_OP_NORMALIZE] = rn_op_check_normalize,
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
  RN_TRY_CHECK (check_presence (call));
  return checks[call->op](call);
}
