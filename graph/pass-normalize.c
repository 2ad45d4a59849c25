/*
 * pass-normalize.c: the host writes bytes. It comes behind all that sees the model's input as an input: there
 * is no gradient of it, and nothing is gained by computing it again. Its type is known by then, and is
 * written at once.
 */
#include "config.h"

#include "graph/passes.h"

static int
first_reader (const RnGraph *graph, RnValueId v)
{
  for (int i = 0; i < (int) graph->ops->len; i++)
    for (int s = 0; s < RN_OP_MAX_IN; s++)
      if (rn_graph_op (graph, i)->in[s] == v)
        return i;
  return -1;
}

void
rn_pass_normalize (RnGraph *graph)
{
  const RnValueId image = rn_graph_find_value (graph, "image");
  const int first = image != RN_NO_VALUE ? first_reader (graph, image) : -1;

  if (first < 0 || rn_graph_value (graph, image)->kind != RN_VALUE_INPUT)
    {
      rn_graph_set_fault (graph, "no op reads an input \"image\"");
      return;
    }
  const RnTensorDesc desc = rn_graph_value (graph, image)->desc;
  const int64_t n = desc.dims[0];
  const RnValueId in[RN_NORMALIZE_IN_COUNT] = {
    [RN_NORMALIZE_PIXELS] = rn_graph_input (
        graph, "pixels", (RnTensorDesc){ RN_U8, 3, { n, desc.dims[2], 3 * desc.dims[3], 1 }, 1 }),
    [RN_NORMALIZE_SIZES] = rn_graph_input (graph, "sizes", (RnTensorDesc){ RN_I32, 2, { n, 2, 1, 1 }, 1 }),
    [RN_NORMALIZE_TABLE] = rn_graph_input (graph, "table", (RnTensorDesc){ RN_F32, 3, { n, 3, 256, 1 }, 1 }),
  };

  RnGraphOp *op = rn_graph_insert_op (graph, first, RN_OP_NORMALIZE, rn_graph_op (graph, first)->scope);
  op->phase = RN_PHASE_FORWARD;
  op->group = op->stage = op->block = -1;
  for (int s = 0; s < RN_NORMALIZE_IN_COUNT; s++)
    op->in[s] = in[s];
  op->out[0] = image;
  rn_graph_value (graph, image)->kind = RN_VALUE_ACTIVATION;
}
