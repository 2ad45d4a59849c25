/*
 * pass-amp.c: which tensors are stored in half precision, and the casts between.
 *
 * The forward ops are visited in order, so that the types of what an op reads are known. Convolutions choose
 * their type by the level of their module; what is between them follows its inputs. A tensor is cast once,
 * however many ops read it in the other type. The gradient pass gives gradients the type of their value, and
 * the gradient of a cast is a cast back.
 */
#include "config.h"

#include "graph/passes.h"

#include <string.h>

typedef struct
{
  RnGraph *graph;
  const RnAmpOptions *options;
  guint n_values;       /* that were there before: a cast is only read as it is */
  int *writers;         /* [values]: positions of ops, or -1 */
  RnValueId *casts;     /* [values]: the value in the other type, or RN_NO_VALUE */
  gboolean *feeds_loss; /* [values]: a loss or a selection reads it */
  int i;                /* the current op */
} Amp;

/* ---- levels ---- */

/* Length of the longest of @modules that @scope is in; 0: none. */
static gsize
longest_match (const char *const *modules, const char *scope)
{
  gsize longest = 0;

  for (; modules != NULL && *modules != NULL; modules++)
    if (rn_scope_is_in (scope, *modules))
      longest = MAX (longest, strlen (*modules));
  return longest;
}

static RnAmpLevel
level_of (const Amp *amp, const RnGraphOp *op)
{
  gsize single = longest_match (amp->options->single_modules, op->scope),
        half = longest_match (amp->options->half_modules, op->scope);

  if (single == 0 && half == 0)
    return amp->options->level;
  return single > half ? RN_AMP_O0 : RN_AMP_O2;
}

static RnDType
type_of_level (const Amp *amp, RnAmpLevel level)
{
  return level == RN_AMP_O0 ? RN_F32 : amp->options->dtype;
}

/* ---- casts ---- */

static RnDType
type_of (const Amp *amp, RnValueId v)
{
  return rn_graph_value (amp->graph, v)->desc.dtype;
}

/*
 * In front of the reader, so that the copy lives no longer than it must. Groups of the head share a tensor of
 * the trunk, so its cast is in the trunk as well, behind the op that writes it: what one group computed would
 * not be there for the gradient of another.
 */
static RnGraphOp *
insert_cast (Amp *amp, RnValueId v)
{
  const RnGraphOp *reader = rn_graph_op (amp->graph, amp->i);
  int writer = amp->writers[v], group = writer >= 0 ? rn_graph_op (amp->graph, writer)->group : -1;
  gboolean is_shared = writer >= 0 && group != reader->group;
  int position = is_shared ? writer + 1 : amp->i;
  RnGraphOp *cast = rn_graph_insert_op (amp->graph, position, RN_OP_REORDER, reader->scope);

  cast->group = group;
  cast->stage = is_shared ? -1 : reader->stage;
  cast->block = is_shared ? -1 : reader->block;
  for (guint u = 0; u < amp->n_values; u++)
    if (amp->writers[u] >= position)
      amp->writers[u]++;
  amp->i++;
  return cast;
}

/* @v as @dtype. */
static RnValueId
as_type (Amp *amp, RnValueId v, RnDType dtype)
{
  const RnValue *value = rn_graph_value (amp->graph, v);

  if (value->desc.dtype == dtype)
    return v;
  if (amp->casts[v] != RN_NO_VALUE)
    return amp->casts[v];
  RnGraphOp *cast = insert_cast (amp, v);
  RnTensorDesc desc = value->desc;
  desc.dtype = dtype;
  g_autofree char *name = g_strdup_printf ("%s:%s", value->name, rn_dtype_name (dtype));
  RnValueId result = rn_graph_add_value (amp->graph, name, desc, RN_VALUE_ACTIVATION, -1);
  rn_graph_value (amp->graph, result)->requires_grad = value->requires_grad;
  cast->in[0] = v;
  cast->out[0] = result;
  return amp->casts[v] = result;
}

static void
cast_input (Amp *amp, RnGraphOp *op, int slot, RnDType dtype)
{
  if (op->in[slot] != RN_NO_VALUE)
    op->in[slot] = as_type (amp, op->in[slot], dtype);
}

static void
set_type (const Amp *amp, RnValueId v, RnDType dtype)
{
  if (v != RN_NO_VALUE)
    rn_graph_value (amp->graph, v)->desc.dtype = dtype;
}

/* ---- ops ---- */

/* A loss reads what the multiplications give before it is rounded, unless all is to be half. */
static void
visit_conv (Amp *amp, RnGraphOp *op)
{
  RnAmpLevel level = level_of (amp, op);
  RnDType compute = type_of_level (amp, level), dst = compute;

  if (level == RN_AMP_O1 && amp->feeds_loss[op->out[0]])
    dst = RN_F32;
  op->args.conv.compute = compute;
  cast_input (amp, op, RN_CONV_SRC, compute);
  cast_input (amp, op, RN_CONV_RESIDUAL, dst);
  set_type (amp, op->out[0], dst);
}

/* Ops without weights of two dimensions: @slots feature maps give one of their type. */
static void
visit_map_op (Amp *amp, RnGraphOp *op, int slots)
{
  RnAmpLevel level = level_of (amp, op);
  RnDType type = type_of_level (amp, level);
  gboolean any_half = FALSE;

  for (int s = 0; s < slots; s++)
    any_half |= op->in[s] != RN_NO_VALUE && type_of (amp, op->in[s]) != RN_F32;
  if (level == RN_AMP_O1 && !any_half)
    type = RN_F32;
  for (int s = 0; s < slots; s++)
    cast_input (amp, op, s, type);
  set_type (amp, op->out[0], type);
}

/* Predictions are read as they are, but what an op of level O1 that is no convolution gives is cast. */
static void
cast_prediction (Amp *amp, RnGraphOp *op, int slot)
{
  int writer = amp->writers[op->in[slot]];

  if (writer >= 0 && level_of (amp, rn_graph_op (amp->graph, writer)) == RN_AMP_O1)
    cast_input (amp, op, slot, RN_F32);
}

static void
visit_topk (Amp *amp, RnGraphOp *op)
{
  cast_prediction (amp, op, RN_TOPK_LOGITS);
  cast_prediction (amp, op, RN_TOPK_DELTAS);
  if (type_of (amp, op->in[RN_TOPK_LOGITS]) == type_of (amp, op->in[RN_TOPK_DELTAS]))
    return;
  cast_input (amp, op, RN_TOPK_LOGITS, RN_F32);
  cast_input (amp, op, RN_TOPK_DELTAS, RN_F32);
}

static void
visit (Amp *amp)
{
  RnGraphOp *op = rn_graph_op (amp->graph, amp->i);

  switch (op->op)
    {
    case RN_OP_CONV2D_FWD:
      visit_conv (amp, op);
      break;
    case RN_OP_BATCH_NORM_FWD:
    case RN_OP_RELU_FWD:
    case RN_OP_MAX_POOL_FWD:
    case RN_OP_AVG_POOL_FWD:
      visit_map_op (amp, op, 1);
      break;
    case RN_OP_ADD:
    case RN_OP_UPSAMPLE_FWD:
      visit_map_op (amp, op, 2);
      break;
    case RN_OP_FOCAL_LOSS:
    case RN_OP_BOX_LOSS:
      cast_prediction (amp, op, 0);
      set_type (amp, op->out[RN_LOSS_DIFF], type_of (amp, op->in[0]));
      break;
    case RN_OP_TOPK:
      visit_topk (amp, op);
      break;
    default:
      rn_graph_set_fault (amp->graph, "%s: %s has no rule of half precision", op->scope, rn_op_name (op->op));
      break;
    }
}

/* ---- the pass ---- */

/* Pixels are half where convolutions alone read them, in half: who writes them rounds them. */
static void
choose_inputs (const Amp *amp)
{
  g_autofree gboolean *is_half = g_new (gboolean, amp->graph->values->len);

  for (guint v = 0; v < amp->graph->values->len; v++)
    {
      const RnValue *value = rn_graph_value (amp->graph, (RnValueId) v);
      is_half[v] = value->kind == RN_VALUE_INPUT && value->desc.rank == 4 && value->desc.dtype == RN_F32;
    }
  for (guint i = 0; i < amp->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (amp->graph, (int) i);
      gboolean is_half_conv = op->op == RN_OP_CONV2D_FWD && level_of (amp, op) != RN_AMP_O0;
      for (int s = 0; s < RN_OP_MAX_IN; s++)
        if (op->in[s] != RN_NO_VALUE && !(is_half_conv && s == RN_CONV_SRC))
          is_half[op->in[s]] = FALSE;
    }
  for (guint v = 0; v < amp->graph->values->len; v++)
    if (is_half[v])
      set_type (amp, (RnValueId) v, amp->options->dtype);
}

static void
find_predictions (const Amp *amp)
{
  for (guint i = 0; i < amp->graph->ops->len; i++)
    {
      const RnGraphOp *op = rn_graph_op (amp->graph, (int) i);
      if (rn_op_is_loss (op->op) || op->op == RN_OP_TOPK)
        amp->feeds_loss[op->in[0]] = TRUE;
      if (op->op == RN_OP_TOPK)
        amp->feeds_loss[op->in[RN_TOPK_DELTAS]] = TRUE;
    }
}

void
rn_pass_amp (RnGraph *graph, const RnAmpOptions *options)
{
  guint n = graph->values->len;
  g_autofree int *writers = rn_graph_find_writers (graph);
  g_autofree RnValueId *casts = g_new (RnValueId, n);
  g_autofree gboolean *feeds_loss = g_new0 (gboolean, n);
  Amp amp = { .graph = graph,
              .options = options,
              .n_values = n,
              .writers = writers,
              .casts = casts,
              .feeds_loss = feeds_loss };

  for (guint v = 0; v < n; v++)
    casts[v] = RN_NO_VALUE;
  choose_inputs (&amp);
  find_predictions (&amp);
  for (; amp.i < (int) graph->ops->len; amp.i++)
    visit (&amp);
}
