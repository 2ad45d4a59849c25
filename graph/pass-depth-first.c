/* pass-depth-first.c: each group of the head forward and backward in turn. */
#include "config.h"

#include "graph/passes.h"

void
rn_pass_depth_first (RnGraph *graph)
{
  rn_graph_set_fault (graph, "the pass depth_first is not there yet");
}
