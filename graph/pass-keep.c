/*
 * pass-keep.c: outputs of modules that somebody reads between the forward and the backward part.
 *
 * It comes after fusion, so that nothing is computed in another way than without it: the output of a module
 * is that of the last op of the module that is left, with the addition and the ReLU that went into it.
 */
#include "config.h"

#include "graph/passes.h"

#include <string.h>

RnValueId
rn_graph_module_output (const RnGraph *graph, const char *module)
{
  if (*module == '\0')
    return RN_NO_VALUE;
  for (int i = graph->turn - 1; i >= 0; i--)
    {
      const RnGraphOp *op = rn_graph_op (graph, i);
      if (op->phase == RN_PHASE_FORWARD && rn_scope_is_in (op->scope, module))
        return op->out[0];
    }
  return RN_NO_VALUE;
}

char **
rn_graph_module_names (const RnGraph *graph)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  GPtrArray *names = g_ptr_array_new ();

  for (int i = 0; i < graph->turn; i++)
    {
      const char *scope = rn_graph_op (graph, i)->scope, *end = scope;
      if (*scope == '\0' || rn_graph_op (graph, i)->phase != RN_PHASE_FORWARD)
        continue;
      do
        {
          end += 1 + strcspn (end + 1, ".");
          g_autofree char *name = g_strndup (scope, (gsize) (end - scope));
          if (!g_hash_table_contains (seen, name))
            {
              g_ptr_array_add (names, g_steal_pointer (&name));
              g_hash_table_add (seen, g_ptr_array_index (names, names->len - 1));
            }
        }
      while (*end != '\0');
    }
  g_ptr_array_add (names, NULL);
  return (char **) g_ptr_array_free (names, FALSE);
}

void
rn_pass_keep (RnGraph *graph, const char *const *modules)
{
  for (; *modules != NULL; modules++)
    {
      RnValueId output = rn_graph_module_output (graph, *modules);
      if (output != RN_NO_VALUE)
        rn_graph_value (graph, output)->is_kept = TRUE;
    }
}
