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

static int
compare_ints (gconstpointer a, gconstpointer b)
{
  const int *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* The groups of the head, ascending, each once. (transfer full) */
static GArray *
find_groups (const RnGraph *graph)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  GArray *groups = g_array_new (FALSE, FALSE, sizeof (int));

  for (int i = 0; i < (int) graph->ops->len; i++)
    {
      int group = rn_graph_op (graph, i)->group;
      if (group >= 0 && g_hash_table_add (seen, GINT_TO_POINTER (group)))
        g_array_append_val (groups, group);
    }
  g_array_sort (groups, compare_ints);
  return groups;
}

/* Adds the ops of @group in [first, end) to @sorted, in their order. */
static void
take (const RnGraph *graph, int first, int end, int group, GPtrArray *sorted)
{
  for (int i = first; i < end; i++)
    if (rn_graph_op (graph, i)->group == group)
      g_ptr_array_add (sorted, rn_graph_op (graph, i));
}

void
rn_pass_depth_first (RnGraph *graph)
{
  g_autoptr (GArray) groups = find_groups (graph);
  g_autoptr (GPtrArray) sorted = g_ptr_array_new ();
  int turn = graph->turn, n = (int) graph->ops->len;

  if (groups->len == 0)
    {
      rn_graph_set_option_fault (graph, RN_OPTION_HEAD,
                                 "depth_first has no effect: the model has no head of levels and branches; "
                                 "what works: all_levels");
      return;
    }
  take (graph, 0, turn, -1, sorted);
  for (guint k = 0; k < groups->len; k++)
    {
      int group = g_array_index (groups, int, k);
      take (graph, 0, turn, group, sorted);
      take (graph, turn, n, group, sorted);
    }
  graph->turn = (int) sorted->len;
  take (graph, turn, n, -1, sorted);
  for (int i = 0; i < n; i++) /* the same ops, which stay the list's own */
    graph->ops->pdata[i] = sorted->pdata[i];
}
