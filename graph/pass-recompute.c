/* pass-recompute.c: forward ops once more in the backward part, instead of outputs that are kept. */
#include "config.h"

#include "graph/passes.h"

void
rn_pass_recompute (RnGraph *graph, const RnRecomputeOptions *options)
{
  rn_graph_set_fault (graph, "the pass recompute is not there yet");
}
