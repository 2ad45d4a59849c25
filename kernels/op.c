/*
 * op.c: the op schema as tables: names of ops and slots, which slots are optional, which outputs are updated
 * in place and which may share storage with an input. The rules that depend on sizes are in op-check.c, the
 * cost is in op-cost.c.
 */
#include "config.h"

#include "kernels/op.h"

#define BIT(slot) (1u << (slot))

typedef struct
{
  const char *name;
  int n_in, n_out;
} OpInfo;

static const OpInfo ops[] = {
#define RN_OP(ID, name, args, n_in, n_out) { #name, n_in, n_out },
#include "kernels/ops.def"
#undef RN_OP
};

typedef struct
{
  const char *in[RN_OP_MAX_IN], *out[RN_OP_MAX_OUT];
  guint optional_in, optional_out;
  guint update;               /* outputs that are read and written */
  guint alias[RN_OP_MAX_OUT]; /* per output: inputs that may share its storage */
} OpSlots;

static const OpSlots slots[] = {
  [RN_OP_CONV2D_FWD] = {
    .in = { "src", "weights", "bias", "gamma", "beta", "mean", "var", "residual" },
    .out = { "dst" },
    .optional_in = BIT (RN_CONV_BIAS) | BIT (RN_CONV_GAMMA) | BIT (RN_CONV_BETA) | BIT (RN_CONV_MEAN)
                   | BIT (RN_CONV_VAR) | BIT (RN_CONV_RESIDUAL),
    .alias = { [RN_CONV_DST] = BIT (RN_CONV_RESIDUAL) },
  },
  [RN_OP_CONV2D_BWD_DATA] = {
    .in = { "diff_dst", "weights", "gamma", "var" },
    .out = { "diff_src" },
    .optional_in = BIT (RN_CONV_BD_GAMMA) | BIT (RN_CONV_BD_VAR),
  },
  [RN_OP_CONV2D_BWD_WEIGHTS] = {
    .in = { "src", "diff_dst", "weights", "gamma", "mean", "var", "sums" },
    .out = { "diff_weights", "diff_bias", "diff_gamma", "diff_beta" },
    .optional_in = BIT (RN_CONV_BW_WEIGHTS) | BIT (RN_CONV_BW_GAMMA) | BIT (RN_CONV_BW_MEAN)
                   | BIT (RN_CONV_BW_VAR) | BIT (RN_CONV_BW_SUMS),
    .optional_out = BIT (RN_CONV_BWD_WEIGHTS_OUT_COUNT) - 1,
    .update = BIT (RN_CONV_BWD_WEIGHTS_OUT_COUNT) - 1,
  },
  [RN_OP_BATCH_NORM_FWD] = {
    .in = { "src", "gamma", "beta", "mean", "var" },
    .out = { "dst", "saved_mean", "saved_invstd", "running_mean", "running_var" },
    .optional_in = BIT (RN_NORM_MEAN) | BIT (RN_NORM_VAR),
    .optional_out = BIT (RN_NORM_SAVED_MEAN) | BIT (RN_NORM_SAVED_INVSTD) | BIT (RN_NORM_RUNNING_MEAN)
                    | BIT (RN_NORM_RUNNING_VAR),
    .update = BIT (RN_NORM_RUNNING_MEAN) | BIT (RN_NORM_RUNNING_VAR),
    .alias = { [RN_NORM_DST] = BIT (RN_NORM_SRC) },
  },
  [RN_OP_BATCH_NORM_BWD] = {
    .in = { "src", "diff_dst", "gamma", "mean", "var" },
    .out = { "diff_src", "diff_gamma", "diff_beta" },
    .optional_out = BIT (RN_NORM_BWD_DIFF_GAMMA) | BIT (RN_NORM_BWD_DIFF_BETA),
    .update = BIT (RN_NORM_BWD_DIFF_GAMMA) | BIT (RN_NORM_BWD_DIFF_BETA),
    .alias = { [RN_NORM_BWD_DIFF_SRC] = BIT (RN_NORM_BWD_DIFF_DST) },
  },
  [RN_OP_RELU_FWD] = { .in = { "src" }, .out = { "dst" }, .alias = { BIT (0) } },
  [RN_OP_RELU_BWD] = {
    .in = { "y", "a", "b" },
    .out = { "dst", "sums" },
    .optional_in = BIT (RN_RELU_BWD_B),
    .optional_out = BIT (RN_RELU_BWD_SUMS),
    .alias = { [RN_RELU_BWD_DST] = BIT (RN_RELU_BWD_A) | BIT (RN_RELU_BWD_B) },
  },
  [RN_OP_ADD] = {
    .in = { "a", "b" },
    .out = { "dst" },
    .alias = { BIT (RN_ADD_A) | BIT (RN_ADD_B) },
  },
  [RN_OP_MAX_POOL_FWD] = {
    .in = { "src" },
    .out = { "dst", "index" },
    .optional_out = BIT (RN_POOL_INDEX),
  },
  [RN_OP_MAX_POOL_BWD] = { .in = { "diff_dst", "index" }, .out = { "diff_src" } },
  [RN_OP_AVG_POOL_FWD] = { .in = { "src" }, .out = { "dst" } },
  [RN_OP_AVG_POOL_BWD] = { .in = { "diff_dst" }, .out = { "diff_src" } },
  [RN_OP_UPSAMPLE_FWD] = {
    .in = { "src", "addend" },
    .out = { "dst" },
    .optional_in = BIT (RN_UPSAMPLE_ADDEND),
    .alias = { BIT (RN_UPSAMPLE_ADDEND) },
  },
  [RN_OP_UPSAMPLE_BWD] = {
    .in = { "diff_dst", "addend" },
    .out = { "diff_src" },
    .optional_in = BIT (RN_UPSAMPLE_ADDEND),
    .alias = { BIT (RN_UPSAMPLE_ADDEND) },
  },
  [RN_OP_REORDER] = { .in = { "src" }, .out = { "dst" } },
  [RN_OP_COPY] = { .in = { "src" }, .out = { "dst" } },
  [RN_OP_ZERO] = { .out = { "dst" } },
  [RN_OP_NORMALIZE] = { .in = { "pixels", "sizes", "table" }, .out = { "dst" } },
  [RN_OP_FOCAL_LOSS] = {
    .in = { "logits", "labels", "avg", "grad_scale" },
    .out = { "loss", "diff" },
    .optional_out = BIT (RN_LOSS_DIFF),
    .alias = { [RN_LOSS_DIFF] = BIT (RN_FOCAL_LOGITS) },
  },
  [RN_OP_BOX_LOSS] = {
    .in = { "pred", "positives", "count", "avg", "grad_scale" },
    .out = { "loss", "diff" },
    .optional_out = BIT (RN_LOSS_DIFF),
    .alias = { [RN_LOSS_DIFF] = BIT (RN_BOX_PRED) },
  },
  [RN_OP_TOPK] = { .in = { "logits", "deltas" }, .out = { "index", "row_logits", "row_deltas" } },
  [RN_OP_GRAD_STATS] = { .in = { "grad", "norm_type" }, .out = { "stats" } },
  [RN_OP_STEP_GUARD] = { .in = { "stats" }, .out = { "hyper" }, .update = BIT (0) },
  [RN_OP_SGD] = {
    .in = { "grad", "hyper" },
    .out = { "param", "momentum" },
    .optional_out = BIT (RN_SGD_MOMENTUM),
    .update = BIT (RN_SGD_PARAM) | BIT (RN_SGD_MOMENTUM),
  },
  [RN_OP_ADAM] = {
    .in = { "grad", "hyper" },
    .out = { "param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq" },
    .optional_out = BIT (RN_ADAM_MAX_EXP_AVG_SQ),
    .update = BIT (RN_ADAM_PARAM) | BIT (RN_ADAM_EXP_AVG) | BIT (RN_ADAM_EXP_AVG_SQ)
              | BIT (RN_ADAM_MAX_EXP_AVG_SQ),
  },
  [RN_OP_EMA_UPDATE] = { .in = { "src", "momentum" }, .out = { "mean" }, .update = BIT (0) },
  [RN_OP_SWAP] = { .out = { "a", "b" }, .update = BIT (RN_SWAP_A) | BIT (RN_SWAP_B) },
};

G_STATIC_ASSERT (G_N_ELEMENTS (ops) == RN_OP_COUNT);
G_STATIC_ASSERT (G_N_ELEMENTS (slots) == RN_OP_COUNT);
G_STATIC_ASSERT (RN_CONV_IN_COUNT <= RN_OP_MAX_IN);
G_STATIC_ASSERT (RN_NORM_OUT_COUNT <= RN_OP_MAX_OUT);

const char *
rn_dtype_name (RnDType dtype)
{
  switch (dtype)
    {
    case RN_F32:
      return "f32";
    case RN_F16:
      return "f16";
    case RN_BF16:
      return "bf16";
    case RN_I64:
      return "i64";
    case RN_I32:
      return "i32";
    case RN_I16:
      return "i16";
    case RN_U8:
      return "u8";
    case RN_DTYPE_COUNT:
      break;
    }
  g_return_val_if_reached (NULL);
}

const char *
rn_op_name (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, NULL);
  return ops[op].name;
}

int
rn_op_n_in (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, 0);
  return ops[op].n_in;
}

int
rn_op_n_out (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, 0);
  return ops[op].n_out;
}

const char *
rn_op_in_name (RnOp op, int slot)
{
  g_return_val_if_fail (op < RN_OP_COUNT && slot >= 0 && slot < ops[op].n_in, NULL);
  return slots[op].in[slot];
}

const char *
rn_op_out_name (RnOp op, int slot)
{
  g_return_val_if_fail (op < RN_OP_COUNT && slot >= 0 && slot < ops[op].n_out, NULL);
  return slots[op].out[slot];
}

gboolean
rn_op_is_loss (RnOp op)
{
  return op == RN_OP_FOCAL_LOSS || op == RN_OP_BOX_LOSS;
}

guint
rn_op_optional_in (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, 0);
  return slots[op].optional_in;
}

guint
rn_op_optional_out (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, 0);
  return slots[op].optional_out;
}

guint
rn_op_alias_mask (RnOp op, int slot)
{
  g_return_val_if_fail (op < RN_OP_COUNT && slot >= 0 && slot < ops[op].n_out, 0);
  return slots[op].alias[slot];
}

guint
rn_op_update_mask (RnOp op)
{
  g_return_val_if_fail (op < RN_OP_COUNT, 0);
  return slots[op].update;
}
