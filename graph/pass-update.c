/* pass-update.c: the optimizer in the backward program. */
#include "config.h"

#include "graph/passes.h"

void
rn_pass_update (RnGraph *graph, const RnUpdateSpec *spec)
{
  rn_graph_set_fault (graph, "the pass update is not there yet");
}
