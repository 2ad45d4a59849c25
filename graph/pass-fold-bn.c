/*
 * pass-fold-bn.c: a convolution and the batch norm on fixed statistics behind it become one convolution with
 * scaled weights (see RN_CONV_GAMMA in op.h). The tensor between them is gone, and with it the copy of it
 * that the batch norm's gradient would need.
 */
#include "config.h"

#include "graph/passes.h"

static gboolean
can_fold (const RnGraphOp *conv, const RnGraphOp *norm)
{
  return conv->op == RN_OP_CONV2D_FWD && !conv->args.conv.relu && conv->in[RN_CONV_BIAS] == RN_NO_VALUE
         && conv->in[RN_CONV_GAMMA] == RN_NO_VALUE && conv->in[RN_CONV_RESIDUAL] == RN_NO_VALUE
         && !norm->args.norm.training;
}

static void
fold (RnGraphOp *conv, const RnGraphOp *norm)
{
  conv->in[RN_CONV_GAMMA] = norm->in[RN_NORM_GAMMA];
  conv->in[RN_CONV_BETA] = norm->in[RN_NORM_BETA];
  conv->in[RN_CONV_MEAN] = norm->in[RN_NORM_MEAN];
  conv->in[RN_CONV_VAR] = norm->in[RN_NORM_VAR];
  conv->out[RN_CONV_DST] = norm->out[RN_NORM_DST];
  conv->args.conv.eps = norm->args.norm.eps;
  conv->args.conv.relu = norm->args.norm.relu;
}

void
rn_pass_fold_bn (RnGraph *graph)
{
  g_autofree int *reads = rn_graph_count_reads (graph);
  g_autofree int *writers = rn_graph_find_writers (graph);
  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      const RnGraphOp *norm = rn_graph_op (graph, i);
      if (norm->op != RN_OP_BATCH_NORM_FWD)
        continue;
      RnValueId between = norm->in[RN_NORM_SRC];
      if (writers[between] < 0 || reads[between] != 1)
        continue;
      RnGraphOp *conv = rn_graph_op (graph, writers[between]);
      if (!can_fold (conv, norm))
        continue;
      fold (conv, norm);
      rn_graph_drop_op (graph, i);
    }
  rn_graph_sweep (graph);
}
