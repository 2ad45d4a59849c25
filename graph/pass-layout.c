/* pass-layout.c: one channel block for all feature maps and their gradients. What the host writes stays NCHW,
 * and gradients of parameters lie as these do. */
#include "config.h"

#include "graph/passes.h"

void
rn_pass_layout (RnGraph *graph, int64_t cblk)
{
  for (RnValueId v = 0; v < (int) graph->values->len; v++)
    {
      RnValue *value = rn_graph_value (graph, v);
      gboolean is_internal = value->kind == RN_VALUE_ACTIVATION || value->kind == RN_VALUE_GRADIENT;
      if (is_internal && value->param < 0 && value->desc.rank == 4)
        value->desc.cblk = cblk;
    }
}
