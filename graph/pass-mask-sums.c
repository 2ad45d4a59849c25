/*
 * pass-mask-sums.c: the sums of a masked gradient over its channels are taken where it is written.
 *
 * A convolution's weight gradient needs them, for the bias or for the batch norm that is folded into it, and
 * would read the whole gradient once more. They are a value of their own: what is added to the gradients of
 * the parameters, and in which order, stays with the convolutions. The last convolution of a residual block
 * and the one on its shortcut have one masked gradient, and so one of these.
 */
#include "config.h"

#include "graph/passes.h"

static gboolean
needs_sums (const RnGraphOp *op)
{
  return op->op == RN_OP_CONV2D_BWD_WEIGHTS
         && (op->out[RN_CONV_BW_DIFF_BIAS] != RN_NO_VALUE || op->out[RN_CONV_BW_DIFF_GAMMA] != RN_NO_VALUE
             || op->out[RN_CONV_BW_DIFF_BETA] != RN_NO_VALUE);
}

/* The sums of the mask @op, which writes them from now on. */
static RnValueId
sums_of (RnGraph *graph, RnGraphOp *op)
{
  const RnValue *masked = rn_graph_value (graph, op->out[RN_RELU_BWD_DST]);

  if (op->out[RN_RELU_BWD_SUMS] == RN_NO_VALUE)
    {
      g_autofree char *name = g_strconcat ("sums:", masked->name, NULL);
      op->out[RN_RELU_BWD_SUMS] = rn_graph_add_value (
          graph, name, rn_desc_vector (RN_F32, masked->desc.dims[1]), RN_VALUE_GRADIENT, -1);
    }
  return op->out[RN_RELU_BWD_SUMS];
}

void
rn_pass_mask_sums (RnGraph *graph)
{
  g_autofree int *writers = rn_graph_find_writers (graph);

  for (int i = graph->turn; i < (int) graph->ops->len; i++)
    {
      RnGraphOp *op = rn_graph_op (graph, i);
      if (!needs_sums (op))
        continue;
      RnValueId gradient = op->in[RN_CONV_BW_DIFF_DST];
      if (writers[gradient] < graph->turn) /* of a loss */
        continue;
      RnGraphOp *mask = rn_graph_op (graph, writers[gradient]);
      /* A convolution that rounds what it reads adds up rounded values. */
      if (mask->op == RN_OP_RELU_BWD && rn_graph_value (graph, gradient)->desc.dtype == op->args.conv.compute)
        op->in[RN_CONV_BW_SUMS] = sums_of (graph, mask);
    }
}
