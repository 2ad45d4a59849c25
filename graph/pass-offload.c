/* pass-offload.c: idle values wait in host memory. */
#include "config.h"

#include "graph/passes.h"

void
rn_pass_offload (RnGraph *graph, const RnOffloadOptions *options)
{
  rn_graph_set_fault (graph, "the pass offload is not there yet");
}
