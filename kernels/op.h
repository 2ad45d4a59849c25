/*
 * op.h: the op schema: which ops exist, their arguments, their tensors, and what all backends share: checks,
 * shapes, aliasing, cost.
 *
 * Activations and their gradients are F32, F16 or BF16; the arithmetic is always F32 (sums of many elements:
 * double, or F32 in a fixed tree), and a result is rounded once, to nearest even. The activations of one call
 * have one type, except those of REORDER, TOPK and convolutions. Parameters, statistics and losses are F32;
 * the states of an optimizer are F32 or BF16, and what a step does to its parameter is computed before they
 * are rounded.
 *
 * A call is described once, at plan time, by an RnOpCall. Tensors are named by slot; a slot that the call
 * does not use is absent. "acc" marks outputs that a kernel adds to instead of overwriting: the caller zeroes
 * them at the start of an accumulation window.
 */
#ifndef KERNELS_OP_H
#define KERNELS_OP_H

#include <glib.h>
#include <runner/tensor.h>
#include "runner/base/error.h"

G_BEGIN_DECLS

/* ---- slots ---- */

/*
 * dst = relu? (conv (src, weights) + bias + residual?)
 * With GAMMA, BETA, MEAN, VAR (batch norm on fixed statistics, folded): a = gamma / sqrt (var + eps) per
 * output channel, dst = relu? (conv (src, a * weights) + beta - a * mean + residual?); then there is no BIAS.
 * weights OIHW, I = IC / groups. dst may alias residual.
 */
enum
{
  RN_CONV_SRC,
  RN_CONV_WEIGHTS,
  RN_CONV_BIAS,
  RN_CONV_GAMMA,
  RN_CONV_BETA,
  RN_CONV_MEAN,
  RN_CONV_VAR,
  RN_CONV_RESIDUAL,
  RN_CONV_IN_COUNT
};
enum
{
  RN_CONV_DST,
  RN_CONV_OUT_COUNT
};

/* diff_src = convT (diff_dst, weights), or with GAMMA, VAR: convT (diff_dst, a * weights). diff_dst is the
 * gradient after the ReLU mask. */
enum
{
  RN_CONV_BD_DIFF_DST,
  RN_CONV_BD_WEIGHTS,
  RN_CONV_BD_GAMMA,
  RN_CONV_BD_VAR,
  RN_CONV_BWD_DATA_IN_COUNT
};
enum
{
  RN_CONV_BD_DIFF_SRC,
  RN_CONV_BWD_DATA_OUT_COUNT
};

/*
 * dw' = wgrad (src, diff_dst). Plain: diff_weights += dw', diff_bias += sum diff_dst.
 * Folded (WEIGHTS, GAMMA, MEAN, VAR present): diff_weights += a * dw', diff_beta += sum diff_dst,
 * diff_gamma += (<weights, dw'> - mean * sum diff_dst) / sqrt (var + eps), per output channel. Every output
 * is acc and optional. SUMS F32 [OC] (optional) is sum diff_dst, where somebody has it already.
 */
enum
{
  RN_CONV_BW_SRC,
  RN_CONV_BW_DIFF_DST,
  RN_CONV_BW_WEIGHTS,
  RN_CONV_BW_GAMMA,
  RN_CONV_BW_MEAN,
  RN_CONV_BW_VAR,
  RN_CONV_BW_SUMS,
  RN_CONV_BWD_WEIGHTS_IN_COUNT
};
enum
{
  RN_CONV_BW_DIFF_WEIGHTS,
  RN_CONV_BW_DIFF_BIAS,
  RN_CONV_BW_DIFF_GAMMA,
  RN_CONV_BW_DIFF_BETA,
  RN_CONV_BWD_WEIGHTS_OUT_COUNT
};

/*
 * dst = relu? ((src - mean) * invstd * gamma + beta)
 *
 * training: statistics of the batch (the biased variance normalises); RUNNING_* are updated in place as
 * (1 - m) * running + m * batch, the variance with n / (n - 1), unless args.recompute. SAVED_MEAN and
 * SAVED_INVSTD are outputs [C].
 *
 * not training: MEAN and VAR are inputs, the running statistics; there is no other output than DST.
 */
enum
{
  RN_NORM_SRC,
  RN_NORM_GAMMA,
  RN_NORM_BETA,
  RN_NORM_MEAN,
  RN_NORM_VAR,
  RN_NORM_IN_COUNT
};
enum
{
  RN_NORM_DST,
  RN_NORM_SAVED_MEAN,
  RN_NORM_SAVED_INVSTD,
  RN_NORM_RUNNING_MEAN,
  RN_NORM_RUNNING_VAR,
  RN_NORM_OUT_COUNT
};

/* training: MEAN = saved mean, VAR = saved 1/sqrt (var + eps). Not training: MEAN, VAR = running statistics,
 * dx = dy * gamma / sigma. */
enum
{
  RN_NORM_BWD_SRC,
  RN_NORM_BWD_DIFF_DST,
  RN_NORM_BWD_GAMMA,
  RN_NORM_BWD_MEAN,
  RN_NORM_BWD_VAR,
  RN_NORM_BWD_IN_COUNT
};
enum
{
  RN_NORM_BWD_DIFF_SRC,
  RN_NORM_BWD_DIFF_GAMMA /* acc, optional */,
  RN_NORM_BWD_DIFF_BETA /* acc, optional */,
  RN_NORM_BWD_OUT_COUNT
};

/*
 * dst = (a + b?) where y > 0, else 0; y is the ReLU's output. dst may alias a or b.
 * SUMS F32 [C] (optional, for maps): dst, as it is stored, added up over each channel; overwritten.
 */
enum
{
  RN_RELU_BWD_Y,
  RN_RELU_BWD_A,
  RN_RELU_BWD_B,
  RN_RELU_BWD_IN_COUNT
};
enum
{
  RN_RELU_BWD_DST,
  RN_RELU_BWD_SUMS,
  RN_RELU_BWD_OUT_COUNT
};

/* out = relu? (a + b). out may alias a or b. */
enum
{
  RN_ADD_A,
  RN_ADD_B,
  RN_ADD_IN_COUNT
};

/* Max pooling pads with -inf. INDEX (U8, same shape and layout as dst, optional): kh * KW + kw of the first
 * maximum in scan order. */
enum
{
  RN_POOL_DST,
  RN_POOL_INDEX,
  RN_POOL_OUT_COUNT
};
enum
{
  RN_POOL_BWD_DIFF_DST,
  RN_POOL_BWD_INDEX,
  RN_POOL_BWD_IN_COUNT
};

/*
 * UPSAMPLE_FWD: dst = nearest (src, to the size of dst) + addend?, source row = min (floor (y * IH / OH), IH
 * - 1). UPSAMPLE_BWD: src is the gradient of the fine map, dst = sum of the covered cells + addend?.
 *
 * dst may alias addend.
 */
enum
{
  RN_UPSAMPLE_SRC,
  RN_UPSAMPLE_ADDEND,
  RN_UPSAMPLE_IN_COUNT
};

/* REORDER: dst = src in another channel block or another element type (any two of F32, F16, BF16). COPY: the
 * same bytes, between any two of the memories of a device. ZERO: dst = 0. */

/*
 * NORMALIZE: dst (n, c, y, x) = table (n, c, pixels (n, y, x, c)) where the image is, y < sizes (n, 0) and x
 * < sizes (n, 1), else 0: mmcv.imnormalize by table, with the padding of a batch.
 *
 * pixels U8 [N, H, 3 W], three bytes a pixel. sizes I32 [N, 2]: height, width. table F32 [N, 3, 256]. dst is
 * an activation [N, 3, H, W].
 */
enum
{
  RN_NORMALIZE_PIXELS,
  RN_NORMALIZE_SIZES,
  RN_NORMALIZE_TABLE,
  RN_NORMALIZE_IN_COUNT
};

/*
 * Sigmoid focal loss over one level and its gradient (Lin et al. 2017, arXiv 1708.02002, eq. 5; stable form).
 *
 * logits [N, A*K, H, W], channel a*K + c. labels I16 [N, anchors of all levels]: 0..K-1, K background, -1
 * ignored. avg F32[1]: normaliser. grad_scale F32[1]: factor of the gradient only, loss scale over
 * accumulation factor.
 *
 * value F32[1] = weight * sum / avg, overwritten.
 * diff (optional) = weight * d/dlogits / avg * grad_scale, overwritten; may alias logits.
 */
enum
{
  RN_FOCAL_LOGITS,
  RN_FOCAL_LABELS,
  RN_FOCAL_AVG,
  RN_FOCAL_GRAD_SCALE,
  RN_FOCAL_IN_COUNT
};
/*
 * L1 (beta 0) or smooth L1 (beta > 0) over the matched anchors of one level; the rest as for FOCAL.
 *
 * pred [N, A*4, H, W], channel a*4 + d. positives U8 [capacity * sizeof (RnPositive)], ordered by image, then
 * anchor. count I64[1].
 */
enum
{
  RN_BOX_PRED,
  RN_BOX_POSITIVES,
  RN_BOX_COUNT,
  RN_BOX_AVG,
  RN_BOX_GRAD_SCALE,
  RN_BOX_IN_COUNT
};
enum
{
  RN_LOSS_VALUE,
  RN_LOSS_DIFF,
  RN_LOSS_OUT_COUNT
};

/*
 * One level of test-time selection: per image the k anchors with the largest class logit (all anchors in
 * order when k = H*W*A), ties by lower index.
 *
 * index I32 [N, k]: (y*W + x)*A + a. Their rows of logits F32 [N, k, K], before the sigmoid, and deltas F32
 * [N, k, 4].
 */
enum
{
  RN_TOPK_LOGITS,
  RN_TOPK_DELTAS,
  RN_TOPK_IN_COUNT
};
enum
{
  RN_TOPK_INDEX,
  RN_TOPK_ROW_LOGITS,
  RN_TOPK_ROW_DELTAS,
  RN_TOPK_OUT_COUNT
};

/*
 * Over all elements of an F32 vector. norm_type F32[1]: p of the norm, at least 1; infinite: the largest
 * element.
 *
 * stats F32[RN_STATS_COUNT]: NORM = (sum |g|^p)^(1/p), and MAX_ABS. While all elements are finite, so is the
 * norm (FLT_MAX at most). Otherwise both are NaN if there is a NaN, else infinite. Sums are in double, chunks
 * in a fixed tree.
 */
enum
{
  RN_GRAD_STATS_GRAD,
  RN_GRAD_STATS_NORM_TYPE,
  RN_GRAD_STATS_IN_COUNT
};
enum
{
  RN_STATS_NORM,
  RN_STATS_MAX_ABS,
  RN_STATS_COUNT
};

/*
 * STEP_GUARD: what the statistics of the gradients (F32[RN_STATS_COUNT], see GRAD_STATS) mean for the step.
 * The hyper vector is updated in place:
 *   hyper[SKIPS] = 1 if hyper[CHECKS_FINITE] and MAX_ABS is NaN or infinite, else 0
 *   hyper[GRAD_MULTIPLIER] *= min (1, hyper[MAX_NORM] / (NORM * hyper[GRAD_MULTIPLIER] + 1e-6)) if
 *     hyper[MAX_NORM] is not 0: torch.nn.utils.clip_grad_norm_, of gradients times their multiplier. In
 * double, rounded once; NaN stays.
 */

/*
 * SGD, as torch.optim.SGD. Param and momentum are updated in place, but not where hyper[SKIPS] is set:
 *   g = clip (grad * hyper[GRAD_MULTIPLIER]) + weight_decay * p
 *   v = momentum * v + (1 - dampening) * g, or v = g at the first step
 *   g = g + momentum * v if nesterov, else v
 *   p = p - lr * g
 * where clip cuts to [-hyper[CLIP_VALUE], hyper[CLIP_VALUE]]. Without momentum there is no MOMENTUM slot, and
 * g is used as it is.
 *
 * A step may take its gradient in parts, one call each, where there is momentum and nesterov is off. The
 * first does the first two lines; with hyper[CONTINUES] a further one adds to v instead, v = v + (1 -
 * dampening) * clip (grad * hyper[GRAD_MULTIPLIER]), without the factor at the first step; hyper[WAITS] says
 * that there are more to come, and p stays.
 */
enum
{
  RN_SGD_GRAD,
  RN_SGD_HYPER,
  RN_SGD_IN_COUNT
};
enum
{
  RN_SGD_PARAM,
  RN_SGD_MOMENTUM,
  RN_SGD_OUT_COUNT
};

/*
 * Adam, as torch.optim.Adam, and AdamW if args.decoupled. Param and state are updated in place, but not where
 * hyper[SKIPS] is set:
 *   p = p * (1 - lr * weight_decay) if decoupled
 *   g = clip (grad * hyper[GRAD_MULTIPLIER]), + weight_decay * p unless decoupled
 *   m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g; m and v are 0 before the first step
 *   p = p - step_size * m / (sqrt (v) / hyper[BIAS2] + eps)
 * With MAX_EXP_AVG_SQ (amsgrad) the largest v so far stands in the last line.
 */
enum
{
  RN_ADAM_GRAD,
  RN_ADAM_HYPER,
  RN_ADAM_IN_COUNT
};
enum
{
  RN_ADAM_PARAM,
  RN_ADAM_EXP_AVG,
  RN_ADAM_EXP_AVG_SQ,
  RN_ADAM_MAX_EXP_AVG_SQ,
  RN_ADAM_OUT_COUNT
};

/*
 * F32 vector of values that change from step to step: these, then RN_GROUP_COUNT for each parameter group.
 * FIRST: 1 when the optimizer has no state yet, else 0. CLIP_VALUE: 0 does not cut. CONTINUES, WAITS: 1 or 0,
 * see SGD. MAX_NORM: 0 does not clip. CHECKS_FINITE, SKIPS: 1 or 0, see STEP_GUARD.
 * For Adam, in step t = 1, 2, ...: MOMENTUM is beta1, TAKE 1 - beta1, BIAS2 sqrt (1 - beta2^t), STEP_SIZE
 * lr / (1 - beta1^t).
 */
enum
{
  RN_HYPER_MOMENTUM,
  RN_HYPER_TAKE,
  RN_HYPER_BIAS2,
  RN_HYPER_GRAD_MULTIPLIER,
  RN_HYPER_CLIP_VALUE,
  RN_HYPER_FIRST,
  RN_HYPER_CONTINUES,
  RN_HYPER_WAITS,
  RN_HYPER_MAX_NORM,
  RN_HYPER_CHECKS_FINITE,
  RN_HYPER_SKIPS,
  RN_HYPER_COUNT
};
enum
{
  RN_GROUP_LR,
  RN_GROUP_STEP_SIZE,
  RN_GROUP_COUNT
};

/* The values of group @group in a hyper vector. */
static inline const float *
rn_hyper_group (const float *hyper, int group)
{
  return hyper + RN_HYPER_COUNT + (gsize) group * RN_GROUP_COUNT;
}

/* EMA_UPDATE: mean += momentum * (src - mean), F32 vectors; the mean is updated in place. momentum F32[1]: 1
 * copies. */
enum
{
  RN_EMA_SRC,
  RN_EMA_MOMENTUM,
  RN_EMA_IN_COUNT
};

/* SWAP: two F32 vectors exchange their elements. */
enum
{
  RN_SWAP_A,
  RN_SWAP_B,
  RN_SWAP_OUT_COUNT
};

/* ---- arguments ---- */

typedef struct
{
  int kernel[2], stride[2], pad[2], dilation[2]; /* H, W; dilation 1 = dense, as in PyTorch and cuDNN */
  int groups;
  gboolean relu;
  float eps; /* of the folded batch norm */
  /* RN_F16, RN_BF16: the activations (or gradients of them) that are read are rounded to it, and so are the
   * weights after they were folded; sums are F32. Activations are stored in this type or as F32. */
  RnDType compute;
} RnConvArgs;

typedef struct
{
  float eps, momentum;
  gboolean training;
  gboolean relu;
  gboolean recompute; /* second execution inside the backward program: must not update running statistics */
} RnNormArgs;

typedef struct
{
  gboolean relu;
} RnAddArgs;

typedef struct
{
  int kernel[2], stride[2], pad[2];
  gboolean ceil_mode; /* AVG: windows that start inside the source count; padding is never in the mean */
} RnPoolArgs;

typedef struct
{
  float alpha, gamma, weight;
  int num_classes, anchors_per_cell;
  int64_t anchor_offset; /* of this level in the labels of an image */
} RnFocalArgs;

typedef struct
{
  float beta, weight;
  int anchors_per_cell;
  int64_t anchor_offset;
} RnBoxArgs;

typedef struct
{
  int64_t k;
  int num_classes, anchors_per_cell;
} RnTopkArgs;

typedef struct
{
  int group; /* of the hyper vector */
  double weight_decay;
  float dampening;
  gboolean nesterov;
} RnSgdArgs;

typedef struct
{
  int group; /* of the hyper vector */
  double weight_decay, beta2, eps;
  gboolean decoupled;
} RnAdamArgs;

typedef union
{
  RnConvArgs conv;
  RnNormArgs norm;
  RnAddArgs add;
  RnPoolArgs pool;
  RnFocalArgs focal;
  RnBoxArgs box;
  RnTopkArgs topk;
  RnSgdArgs sgd;
  RnAdamArgs adam;
} RnOpArgs;

/* The factor of the weights in AdamW's decay. */
static inline float
rn_adam_shrink (const RnAdamArgs *args, const float *group)
{
  return args->decoupled ? (float) (1 - (double) group[RN_GROUP_LR] * args->weight_decay) : 1;
}

/* ---- calls ---- */

typedef enum
{
#define RN_OP(ID, name, args, n_in, n_out) RN_OP_##ID,
#include "kernels/ops.def"
#undef RN_OP
  RN_OP_COUNT
} RnOp;

#define RN_OP_MAX_IN 8
#define RN_OP_MAX_OUT 5

typedef struct
{
  RnOp op;
  RnOpArgs args;
  guint in_present, out_present; /* bit per slot */
  RnTensorDesc in[RN_OP_MAX_IN];
  RnTensorDesc out[RN_OP_MAX_OUT];
} RnOpCall;

#define RN_HAS_IN(call, slot) (((call)->in_present >> (slot)) & 1)
#define RN_HAS_OUT(call, slot) (((call)->out_present >> (slot)) & 1)

/* Of CONV2D_BWD_WEIGHTS: whether an output is made of the sums of diff_dst. */
static inline gboolean
rn_conv_needs_sums (const RnOpCall *call)
{
  return RN_HAS_OUT (call, RN_CONV_BW_DIFF_BIAS) || RN_HAS_OUT (call, RN_CONV_BW_DIFF_GAMMA)
         || RN_HAS_OUT (call, RN_CONV_BW_DIFF_BETA);
}

/* Likewise: whether the kernel has to take them itself. */
static inline gboolean
rn_conv_adds_up (const RnOpCall *call)
{
  return rn_conv_needs_sums (call) && !RN_HAS_IN (call, RN_CONV_BW_SUMS);
}

const char *rn_dtype_name (RnDType dtype); /* "f16" */
const char *rn_op_name (RnOp op);
gboolean rn_op_is_loss (RnOp op);
int rn_op_n_in (RnOp op);
int rn_op_n_out (RnOp op);
const char *rn_op_in_name (RnOp op, int slot); /* "src", "diff_dst", ... */
const char *rn_op_out_name (RnOp op, int slot);
guint rn_op_optional_in (RnOp op); /* bit masks of slots */
guint rn_op_optional_out (RnOp op);
/* Bit mask of the inputs that may share storage with output @slot. */
guint rn_op_alias_mask (RnOp op, int slot);
/* Bit mask of outputs that are read and written: acc outputs, running statistics, parameters, momentum. */
guint rn_op_update_mask (RnOp op);

/* Checks ranks, dtypes, sizes and presence of all slots. NULL, or the static reason why the call is wrong. */
const char *rn_op_check (const RnOpCall *call);
/* Output size of a window: floor ((in + 2 pad - dilation (kernel - 1) - 1) / stride) + 1, with ceil mode as
 * PyTorch. 0 when it does not fit. */
int64_t rn_window_size (int64_t in, int kernel, int stride, int pad, int dilation, gboolean ceil_mode);

typedef struct
{
  int64_t macs;  /* convolution multiply-adds */
  int64_t bytes; /* read and written at least once */
} RnOpCost;

RnOpCost rn_op_cost (const RnOpCall *call);
/* "conv2d_fwd 2x256x76x128 -> 2x256x76x128 k3 s1 +bias +relu", for messages; a shape in half precision ends
 * in ":f16" or ":bf16". (transfer full) */
char *rn_op_describe (const RnOpCall *call);

G_END_DECLS

#endif
