/*
 * pass-layout.c: one layout for all feature maps and their gradients. Gradients of parameters lie as these
 * do.
 *
 * With blocks of a few channels pixels stay NCHW, and convolutions read them as they are. With all channels
 * in one block (NHWC) no op mixes layouts, and NORMALIZE writes pixels in it, too.
 */
#include "config.h"

#include "graph/passes.h"

static gboolean
is_map (const RnValue *value)
{
  return value->desc.rank == 4 && value->param < 0;
}

/* A block of many channels would be empty but for three. */
static void
keep_pixels_plain (RnGraph *graph)
{
  for (int i = 0; i < (int) graph->ops->len; i++)
    if (rn_graph_op (graph, i)->op == RN_OP_NORMALIZE)
      rn_graph_value (graph, rn_graph_op (graph, i)->out[0])->desc.cblk = 1;
}

static void
set_blocks (RnGraph *graph, int64_t cblk)
{
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      RnValue *value = rn_graph_value (graph, v);
      gboolean is_internal = value->kind == RN_VALUE_ACTIVATION || value->kind == RN_VALUE_GRADIENT;
      if (is_internal && is_map (value))
        value->desc.cblk = cblk == RN_CBLK_ALL ? value->desc.dims[1] : cblk;
    }
}

void
rn_pass_layout (RnGraph *graph, int64_t cblk)
{
  set_blocks (graph, cblk);
  if (cblk != RN_CBLK_ALL)
    keep_pixels_plain (graph);
}
