/*
 * pass-gradient.c: appends the backward ops, by reverse accumulation.
 *
 * Every value that requires a gradient collects contributions from its readers; a second one is added as soon
 * as it comes, so that at most one partial sum is alive. A contribution may be shared (the two operands of an
 * add get the same tensor), so ops here never write into one: whether storage can be reused is for the
 * planner to see.
 *
 * Order: head groups first, ascending, then the trunk, each from its last op to its first. Within a
 * convolution the weights' gradient comes first: it is the last reader of the input where no ReLU mask needs
 * it, and its large workspace then meets no gradient of the input.
 */
#include "config.h"

#include "graph/passes.h"

typedef struct
{
  RnGraph *graph;
  gboolean *closed; /* [values]: the backward of its writer is there, further contributions would be lost */
  RnGraphOp *op;    /* the forward op whose rule is at work */
} Backward;

/* ---- tools of the rules ---- */

static gboolean
needs_gradient (const Backward *b, RnValueId v)
{
  return v != RN_NO_VALUE && rn_graph_value (b->graph, v)->requires_grad;
}

static RnGraphOp *
append (Backward *b, RnOp kind)
{
  b->graph->group = b->op->group;
  b->graph->stage = b->op->stage;
  b->graph->block = b->op->block;
  return rn_graph_append_op (b->graph, kind, b->op->scope);
}

/* A tensor for a gradient, or a part of it, of @v. */
static RnValueId
new_gradient (Backward *b, RnValueId v)
{
  const RnValue *value = rn_graph_value (b->graph, v);
  g_autofree char *name = g_strconcat ("d:", value->name, NULL);
  return rn_graph_add_value (b->graph, name, value->desc, RN_VALUE_GRADIENT, -1);
}

/* Where the gradient of parameter @v is accumulated; RN_NO_VALUE when it is frozen or absent. */
static RnValueId
param_gradient (Backward *b, RnValueId v)
{
  if (!needs_gradient (b, v))
    return RN_NO_VALUE;
  RnValue *value = rn_graph_value (b->graph, v);
  if (value->gradient == RN_NO_VALUE)
    {
      g_autofree char *name = g_strconcat ("d:", value->name, NULL);
      value->gradient = rn_graph_add_value (b->graph, name, value->desc, RN_VALUE_PARAM_GRAD, value->param);
    }
  return value->gradient;
}

/* Adds @part to the gradient of @v. */
static void
contribute (Backward *b, RnValueId v, RnValueId part)
{
  RnValue *value = rn_graph_value (b->graph, v);
  if (b->closed[v])
    rn_graph_set_fault (b->graph,
                        "%s reads %s, whose gradient is finished before: it belongs to another group",
                        b->op->scope, value->name);
  if (value->gradient == RN_NO_VALUE)
    {
      value->gradient = part;
      return;
    }
  RnGraphOp *add = append (b, RN_OP_ADD);
  add->in[RN_ADD_A] = value->gradient;
  add->in[RN_ADD_B] = part;
  add->out[0] = value->gradient = new_gradient (b, v);
}

/* Appends an op whose output is a contribution to @v. */
static RnGraphOp *
append_contribution (Backward *b, RnOp kind, RnValueId v)
{
  RnGraphOp *op = append (b, kind);
  op->out[0] = new_gradient (b, v);
  return op;
}

/* @dy where the result of the current op, a ReLU's, is positive. */
static RnValueId
mask (Backward *b, RnValueId dy)
{
  RnValueId y = b->op->out[0];
  RnGraphOp *op = append_contribution (b, RN_OP_RELU_BWD, y);
  op->in[RN_RELU_BWD_Y] = y;
  op->in[RN_RELU_BWD_A] = dy;
  return op->out[0];
}

/* ---- one rule for each op. @dy is the gradient of its result ---- */

static void
conv_weights (Backward *b, RnValueId dy)
{
  const RnGraphOp *conv = b->op;
  RnValueId diffs[RN_CONV_BWD_WEIGHTS_OUT_COUNT] = {
    [RN_CONV_BW_DIFF_WEIGHTS] = param_gradient (b, conv->in[RN_CONV_WEIGHTS]),
    [RN_CONV_BW_DIFF_BIAS] = param_gradient (b, conv->in[RN_CONV_BIAS]),
    [RN_CONV_BW_DIFF_GAMMA] = param_gradient (b, conv->in[RN_CONV_GAMMA]),
    [RN_CONV_BW_DIFF_BETA] = param_gradient (b, conv->in[RN_CONV_BETA]),
  };
  gboolean any = FALSE;
  for (int s = 0; s < RN_CONV_BWD_WEIGHTS_OUT_COUNT; s++)
    any |= diffs[s] != RN_NO_VALUE;
  if (!any)
    return;

  RnGraphOp *op = append (b, RN_OP_CONV2D_BWD_WEIGHTS);
  op->args.conv = conv->args.conv;
  op->args.conv.relu = FALSE;
  op->in[RN_CONV_BW_SRC] = conv->in[RN_CONV_SRC];
  op->in[RN_CONV_BW_DIFF_DST] = dy;
  if (conv->in[RN_CONV_GAMMA] != RN_NO_VALUE)
    {
      op->in[RN_CONV_BW_WEIGHTS] = conv->in[RN_CONV_WEIGHTS];
      op->in[RN_CONV_BW_GAMMA] = conv->in[RN_CONV_GAMMA];
      op->in[RN_CONV_BW_MEAN] = conv->in[RN_CONV_MEAN];
      op->in[RN_CONV_BW_VAR] = conv->in[RN_CONV_VAR];
    }
  for (int s = 0; s < RN_CONV_BWD_WEIGHTS_OUT_COUNT; s++)
    op->out[s] = diffs[s];
}

static void
conv_data (Backward *b, RnValueId dy)
{
  const RnGraphOp *conv = b->op;
  RnValueId x = conv->in[RN_CONV_SRC];
  if (!needs_gradient (b, x))
    return;
  RnGraphOp *op = append_contribution (b, RN_OP_CONV2D_BWD_DATA, x);
  op->args.conv = conv->args.conv;
  op->args.conv.relu = FALSE;
  op->in[RN_CONV_BD_DIFF_DST] = dy;
  op->in[RN_CONV_BD_WEIGHTS] = conv->in[RN_CONV_WEIGHTS];
  op->in[RN_CONV_BD_GAMMA] = conv->in[RN_CONV_GAMMA];
  op->in[RN_CONV_BD_VAR] = conv->in[RN_CONV_VAR];
  contribute (b, x, op->out[0]);
}

static void
conv_backward (Backward *b, RnValueId dy)
{
  RnValueId residual = b->op->in[RN_CONV_RESIDUAL];
  if (b->op->args.conv.relu)
    dy = mask (b, dy);
  if (needs_gradient (b, residual))
    contribute (b, residual, dy);
  conv_weights (b, dy);
  conv_data (b, dy);
}

static void
norm_backward (Backward *b, RnValueId dy)
{
  const RnGraphOp *norm = b->op;
  RnValueId x = norm->in[RN_NORM_SRC];
  gboolean training = norm->args.norm.training;
  if (norm->args.norm.relu)
    dy = mask (b, dy);
  RnGraphOp *op = append_contribution (b, RN_OP_BATCH_NORM_BWD, x);
  op->args.norm = norm->args.norm;
  op->args.norm.relu = FALSE;
  op->in[RN_NORM_BWD_SRC] = x;
  op->in[RN_NORM_BWD_DIFF_DST] = dy;
  op->in[RN_NORM_BWD_GAMMA] = norm->in[RN_NORM_GAMMA];
  op->in[RN_NORM_BWD_MEAN] = training ? norm->out[RN_NORM_SAVED_MEAN] : norm->in[RN_NORM_MEAN];
  op->in[RN_NORM_BWD_VAR] = training ? norm->out[RN_NORM_SAVED_INVSTD] : norm->in[RN_NORM_VAR];
  op->out[RN_NORM_BWD_DIFF_GAMMA] = param_gradient (b, norm->in[RN_NORM_GAMMA]);
  op->out[RN_NORM_BWD_DIFF_BETA] = param_gradient (b, norm->in[RN_NORM_BETA]);
  if (needs_gradient (b, x))
    contribute (b, x, op->out[RN_NORM_BWD_DIFF_SRC]);
}

static void
relu_backward (Backward *b, RnValueId dy)
{
  contribute (b, b->op->in[0], mask (b, dy));
}

static void
add_backward (Backward *b, RnValueId dy)
{
  if (b->op->args.add.relu)
    dy = mask (b, dy);
  for (int s = 0; s < RN_ADD_IN_COUNT; s++)
    if (needs_gradient (b, b->op->in[s]))
      contribute (b, b->op->in[s], dy);
}

/* The forward op must say where the maxima were; it need not while nobody asks. */
static RnValueId
pool_index (Backward *b)
{
  RnGraphOp *pool = b->op;
  RnTensorDesc desc = rn_graph_value (b->graph, pool->out[RN_POOL_DST])->desc;
  g_autofree char *name =
      g_strconcat (rn_graph_value (b->graph, pool->out[RN_POOL_DST])->name, ".index", NULL);
  desc.dtype = RN_U8;
  pool->out[RN_POOL_INDEX] = rn_graph_add_value (b->graph, name, desc, RN_VALUE_ACTIVATION, -1);
  return pool->out[RN_POOL_INDEX];
}

static void
max_pool_backward (Backward *b, RnValueId dy)
{
  RnValueId index = pool_index (b), x = b->op->in[0];
  RnGraphOp *op = append_contribution (b, RN_OP_MAX_POOL_BWD, x);
  op->args.pool = b->op->args.pool;
  op->in[RN_POOL_BWD_DIFF_DST] = dy;
  op->in[RN_POOL_BWD_INDEX] = index;
  contribute (b, x, op->out[0]);
}

static void
avg_pool_backward (Backward *b, RnValueId dy)
{
  RnValueId x = b->op->in[0];
  RnGraphOp *op = append_contribution (b, RN_OP_AVG_POOL_BWD, x);
  op->args.pool = b->op->args.pool;
  op->in[0] = dy;
  contribute (b, x, op->out[0]);
}

static void
upsample_backward (Backward *b, RnValueId dy)
{
  RnValueId x = b->op->in[RN_UPSAMPLE_SRC], addend = b->op->in[RN_UPSAMPLE_ADDEND];
  if (needs_gradient (b, addend))
    contribute (b, addend, dy);
  if (!needs_gradient (b, x))
    return;
  RnGraphOp *op = append_contribution (b, RN_OP_UPSAMPLE_BWD, x);
  op->in[RN_UPSAMPLE_SRC] = dy;
  contribute (b, x, op->out[0]);
}

/* A cast: the gradient goes back to the type of the source. */
static void
reorder_backward (Backward *b, RnValueId dy)
{
  RnValueId x = b->op->in[0];
  RnGraphOp *op = append_contribution (b, RN_OP_REORDER, x);
  op->in[0] = dy;
  contribute (b, x, op->out[0]);
}

static void
backward_of (Backward *b, RnValueId dy)
{
  switch (b->op->op)
    {
    case RN_OP_CONV2D_FWD:
      conv_backward (b, dy);
      break;
    case RN_OP_BATCH_NORM_FWD:
      norm_backward (b, dy);
      break;
    case RN_OP_RELU_FWD:
      relu_backward (b, dy);
      break;
    case RN_OP_ADD:
      add_backward (b, dy);
      break;
    case RN_OP_MAX_POOL_FWD:
      max_pool_backward (b, dy);
      break;
    case RN_OP_AVG_POOL_FWD:
      avg_pool_backward (b, dy);
      break;
    case RN_OP_UPSAMPLE_FWD:
      upsample_backward (b, dy);
      break;
    case RN_OP_REORDER:
      reorder_backward (b, dy);
      break;
    default:
      rn_graph_set_fault (b->graph, "%s: %s has no gradient", b->op->scope, rn_op_name (b->op->op));
      break;
    }
}

/* ---- the order ---- */

typedef struct
{
  int group, index;
} Place;

static int
compare_places (gconstpointer pa, gconstpointer pb)
{
  const Place *a = pa, *b = pb;
  if (a->group != b->group)
    return (guint) a->group < (guint) b->group ? -1 : 1; /* as unsigned, -1, the trunk, comes last */
  return a->index > b->index ? -1 : 1;
}

/* Positions of the forward ops in the order of their gradients. (transfer full) */
static GArray *
backward_order (const RnGraph *graph)
{
  GArray *order = g_array_new (FALSE, FALSE, sizeof (Place));
  for (int i = 0; i < graph->turn; i++)
    {
      Place place = { rn_graph_op (graph, i)->group, i };
      g_array_append_val (order, place);
    }
  g_array_sort (order, compare_places);
  return order;
}

static void
visit (Backward *b, int i)
{
  b->op = rn_graph_op (b->graph, i);
  RnValueId y = b->op->out[0];
  const RnValue *result = rn_graph_value (b->graph, y);
  gboolean is_loss = rn_op_is_loss (b->op->op);
  if (is_loss && b->op->out[RN_LOSS_DIFF] != RN_NO_VALUE)
    contribute (b, b->op->in[0], b->op->out[RN_LOSS_DIFF]);
  else if (result->requires_grad && result->gradient != RN_NO_VALUE)
    backward_of (b, result->gradient);
  b->closed[y] = TRUE;
}

void
rn_pass_gradient (RnGraph *graph)
{
  int group = graph->group, stage = graph->stage, block = graph->block;
  g_autoptr (GArray) order = backward_order (graph);
  g_autofree gboolean *closed =
      g_new0 (gboolean, graph->values->len); /* of the forward part: no other value gets contributions */
  Backward b = { .graph = graph, .closed = closed };
  graph->phase = RN_PHASE_BACKWARD;
  for (guint k = 0; k < order->len; k++)
    visit (&b, g_array_index (order, Place, k).index);
  graph->group = group;
  graph->stage = stage;
  graph->block = block;
  graph->phase = RN_PHASE_FORWARD;
}
