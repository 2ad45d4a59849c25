/*
 * pass-fuse-backward.c: sums of gradients go into the op before or behind them.
 *
 *   upsample gradient, added to another part      -> upsample gradient with addend
 *   add, read by the ReLU mask of an op only      -> ReLU mask with two operands
 *
 * The second one is the end of every residual block: its two gradients meet and go through the ReLU of the
 * block before.
 */
#include "config.h"

#include "graph/passes.h"

typedef struct
{
  RnGraph *graph;
  int *reads, *writers; /* [values] */
} Fuse;

/* The op that writes @v if it is a backward op, @kind, and nobody else reads @v; else NULL. */
static RnGraphOp *
sole_source (const Fuse *fuse, RnValueId v, RnOp kind)
{
  if (v == RN_NO_VALUE || fuse->writers[v] < fuse->graph->turn || fuse->reads[v] != 1)
    return NULL;
  RnGraphOp *op = rn_graph_op (fuse->graph, fuse->writers[v]);
  return op->op == kind ? op : NULL;
}

/* Puts the add @i into an upsample gradient that writes its operand @part. */
static gboolean
fuse_upsample (Fuse *fuse, int i, RnValueId part, RnValueId other)
{
  const RnGraphOp *add = rn_graph_op (fuse->graph, i);
  RnGraphOp *upsample = sole_source (fuse, part, RN_OP_UPSAMPLE_BWD);
  if (!upsample || upsample->in[RN_UPSAMPLE_ADDEND] != RN_NO_VALUE
      || fuse->writers[other] >= fuse->writers[part])
    return FALSE;
  upsample->in[RN_UPSAMPLE_ADDEND] = other;
  upsample->out[0] = add->out[0];
  fuse->writers[add->out[0]] = fuse->writers[part];
  rn_graph_drop_op (fuse->graph, i);
  return TRUE;
}

static void
fuse_add (Fuse *fuse, int i)
{
  const RnGraphOp *add = rn_graph_op (fuse->graph, i);
  RnValueId a = add->in[RN_ADD_A], b = add->in[RN_ADD_B];
  if (!fuse_upsample (fuse, i, b, a))
    fuse_upsample (fuse, i, a, b);
}

static void
fuse_mask (Fuse *fuse, int i)
{
  RnGraphOp *relu = rn_graph_op (fuse->graph, i);
  RnGraphOp *add = sole_source (fuse, relu->in[RN_RELU_BWD_A], RN_OP_ADD);
  if (!add || relu->in[RN_RELU_BWD_B] != RN_NO_VALUE)
    return;
  int dropped = fuse->writers[relu->in[RN_RELU_BWD_A]];
  relu->in[RN_RELU_BWD_A] = add->in[RN_ADD_A];
  relu->in[RN_RELU_BWD_B] = add->in[RN_ADD_B];
  rn_graph_drop_op (fuse->graph, dropped);
}

/* A gradient that is never written as such is not there for readers either. */
static void
forget_lost_gradients (RnGraph *graph)
{
  g_autofree int *writers = rn_graph_find_writers (graph);
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      RnValue *value = rn_graph_value (graph, v);
      if (value->gradient != RN_NO_VALUE && writers[value->gradient] < 0)
        value->gradient = RN_NO_VALUE;
    }
}

void
rn_pass_fuse_backward (RnGraph *graph)
{
  g_autofree int *reads = rn_graph_count_reads (graph);
  g_autofree int *writers = rn_graph_find_writers (graph);
  Fuse fuse = { graph, reads, writers };
  for (int i = graph->turn; i < (int) graph->ops->len; i++)
    {
      RnOp op = rn_graph_op (graph, i)->op;
      if (op == RN_OP_ADD)
        fuse_add (&fuse, i);
      else if (op == RN_OP_RELU_BWD)
        fuse_mask (&fuse, i);
    }
  rn_graph_sweep (graph);
  forget_lost_gradients (graph);
}
