/*
 * pass-layout.c: one layout for all feature maps and their gradients. Pixels stay NCHW, and gradients of
 * parameters lie as these do.
 *
 * With blocks of a few channels, convolutions read pixels in NCHW as they are. With all channels in one block
 * (NHWC) no op mixes layouts: pixels are written in it, or, where the host writes floats, brought into it
 * once, for all that read them; a cast does it on the way.
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

/* Does op @i read @v, and in its own layout? */
static gboolean
reads (const RnGraph *graph, int i, RnValueId v)
{
  const RnGraphOp *op = rn_graph_op (graph, i);

  for (int s = 0; s < RN_OP_MAX_IN; s++)
    if (op->in[s] == v)
      return op->op != RN_OP_REORDER;
  return FALSE;
}

/* All that reads the pixels @v from op @first on reads a copy in NHWC, which is made in front of it. */
static void
reorder_input (RnGraph *graph, RnValueId v, int first)
{
  const RnGraphOp *reader = rn_graph_op (graph, first);
  const RnPhase phase = graph->phase;
  RnTensorDesc desc = rn_graph_value (graph, v)->desc;
  g_autofree char *name = g_strconcat (rn_graph_value (graph, v)->name, ":nhwc", NULL);

  desc.cblk = desc.dims[1];
  RnValueId copy = rn_graph_add_value (graph, name, desc, RN_VALUE_ACTIVATION, -1);
  graph->phase = reader->phase;
  RnGraphOp *op = rn_graph_insert_op (graph, first, RN_OP_REORDER, reader->scope);
  graph->phase = phase;
  op->group = op->stage = op->block = -1;
  for (int i = first + 1; i < (int) graph->ops->len; i++)
    for (int s = 0; s < RN_OP_MAX_IN && reads (graph, i, v); s++)
      if (rn_graph_op (graph, i)->in[s] == v)
        rn_graph_op (graph, i)->in[s] = copy;
  op->in[0] = v;
  op->out[0] = copy;
}

static void
reorder_inputs (RnGraph *graph)
{
  int n_values = (int) graph->values->len;

  for (RnValueId v = 0; v < n_values; v++)
    {
      const RnValue *value = rn_graph_value (graph, v);
      if (value->kind != RN_VALUE_INPUT || !is_map (value) || value->desc.dims[1] == 1)
        continue;
      for (int i = 0; i < (int) graph->ops->len; i++)
        if (reads (graph, i, v))
          {
            reorder_input (graph, v, i);
            break;
          }
    }
}

void
rn_pass_layout (RnGraph *graph, int64_t cblk)
{
  set_blocks (graph, cblk);
  if (cblk == RN_CBLK_ALL)
    reorder_inputs (graph);
  else
    keep_pixels_plain (graph);
}
