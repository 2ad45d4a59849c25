/*
 * pass-depth-first.c: each group of the head forward and backward in turn, so that what one level and branch
 * keeps is gone before the next one begins.
 *
 * A group needs nothing of another one: its loss is a sum of its own, and the trunk's gradient is collected
 * in the order of the groups in any case. So every contribution is added in the order that the plain list
 * has, and the bits stay the same. Until the turn the gradients of the head's weights wait for the backward
 * program.
 */
#include "config.h"

#include "graph/passes.h"

/* Adds the ops of @group in [first, end) to @order. */
static void
take (const RnGraph *graph, int first, int end, int group, GArray *order)
{
  for (int i = first; i < end; i++)
    if (rn_graph_op (graph, i)->group == group)
      g_array_append_val (order, i);
}

int *
rn_depth_first_order (const RnGraph *graph, int *turn)
{
  GArray *order = g_array_new (FALSE, FALSE, sizeof (int));
  int n = (int) graph->ops->len, last_group = -1;

  for (int i = 0; i < n; i++)
    last_group = MAX (last_group, rn_graph_op (graph, i)->group);
  take (graph, 0, graph->turn, -1, order);
  for (int group = 0; group <= last_group; group++)
    take (graph, 0, n, group, order);
  *turn = (int) order->len;
  take (graph, graph->turn, n, -1, order);
  return (int *) (gpointer) g_array_free (order, last_group < 0);
}

void
rn_pass_depth_first (RnGraph *graph)
{
  int turn;
  g_autofree int *order = rn_depth_first_order (graph, &turn);

  if (order == NULL)
    {
      rn_graph_set_option_fault (graph, RN_OPTION_HEAD,
                                 "depth_first has no effect: the model has no head of levels and branches; "
                                 "what works: all_levels");
      return;
    }
  g_autofree gpointer *ops = g_memdup2 (graph->ops->pdata, graph->ops->len * sizeof *ops);
  for (guint i = 0; i < graph->ops->len; i++) /* the same ops, which stay the list's own */
    graph->ops->pdata[i] = ops[order[i]];
  graph->turn = turn;
}
