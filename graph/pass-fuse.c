/*
 * pass-fuse.c: an add or a ReLU goes into the op in front of it, when nobody else reads the tensor between
 * them.
 *
 * The fused op stays at the place of the first one, so nothing is computed later than before. An add
 * therefore goes into the later one of its two writers: its other operand exists by then.
 */
#include "config.h"

#include "graph/passes.h"

typedef struct
{
  RnGraph *graph;
  int *reads, *writers; /* [values] */
} Fuse;

/* The op that writes @v for one reader only, or NULL. */
static RnGraphOp *
sole_source (const Fuse *fuse, RnValueId v)
{
  return fuse->writers[v] >= 0 && fuse->reads[v] == 1 ? rn_graph_op (fuse->graph, fuse->writers[v]) : NULL;
}

/* The ReLU flag of ops that have one. */
static gboolean *
relu_flag (RnGraphOp *op)
{
  switch (op->op)
    {
    case RN_OP_CONV2D_FWD:
      return &op->args.conv.relu;
    case RN_OP_BATCH_NORM_FWD:
      return &op->args.norm.relu;
    case RN_OP_ADD:
      return &op->args.add.relu;
    default:
      return NULL;
    }
}

/* Op @i goes into @into, which now writes the result of both. */
static void
merge (Fuse *fuse, RnGraphOp *into, int i)
{
  RnValueId result = rn_graph_op (fuse->graph, i)->out[0];
  fuse->writers[result] = fuse->writers[into->out[0]];
  into->out[0] = result;
  rn_graph_drop_op (fuse->graph, i);
}

static void
fuse_relu (Fuse *fuse, int i)
{
  RnGraphOp *source = sole_source (fuse, rn_graph_op (fuse->graph, i)->in[0]);
  gboolean *relu = source ? relu_flag (source) : NULL;
  if (!relu || *relu)
    return;
  *relu = TRUE;
  merge (fuse, source, i);
}

static void
fuse_add (Fuse *fuse, int i)
{
  const RnGraphOp *add = rn_graph_op (fuse->graph, i);
  RnValueId a = add->in[RN_ADD_A], b = add->in[RN_ADD_B];
  RnValueId later = fuse->writers[a] > fuse->writers[b] ? a : b, other = later == a ? b : a;
  RnGraphOp *conv = sole_source (fuse, later);
  if (!conv || conv->op != RN_OP_CONV2D_FWD || conv->args.conv.relu
      || conv->in[RN_CONV_RESIDUAL] != RN_NO_VALUE)
    return;
  conv->in[RN_CONV_RESIDUAL] = other;
  conv->args.conv.relu = add->args.add.relu;
  merge (fuse, conv, i);
}

void
rn_pass_fuse (RnGraph *graph)
{
  g_autofree int *reads = rn_graph_count_reads (graph);
  g_autofree int *writers = rn_graph_find_writers (graph);
  Fuse fuse = { graph, reads, writers };
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      RnOp op = rn_graph_op (graph, i)->op;
      if (op == RN_OP_RELU_FWD)
        fuse_relu (&fuse, i);
      else if (op == RN_OP_ADD)
        fuse_add (&fuse, i);
    }
  rn_graph_sweep (graph);
}
