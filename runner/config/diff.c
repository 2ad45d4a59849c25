#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */

#include "runner/config/diff.h"

#include "runner/config/config.h"

#include <string.h>

/* A list of maps, such as a pipeline. */
static gboolean
is_list_of_maps (const RnNode *node)
{
  if (node == NULL || rn_node_kind (node) != RN_NODE_LIST)
    return FALSE;
  for (guint i = 0; i < rn_node_size (node); i++)
    if (rn_node_kind (rn_node_item (node, i)) != RN_NODE_MAP)
      return FALSE;
  return TRUE;
}

static gboolean
is_map (const RnNode *node)
{
  return node != NULL && rn_node_kind (node) == RN_NODE_MAP;
}

static char *
join (const char *path, const char *key)
{
  return *path != '\0' ? g_strconcat (path, ".", key, NULL) : g_strdup (key);
}

/* Depth is bounded by the YAML reader. */
void
rn_config_diff (const char *path, const RnNode *was, const RnNode *is, RnConfigDiffFunc func,
                gpointer user_data)
{
  if (was == is || (was != NULL && is != NULL && rn_node_equal (was, is)))
    return;
  if (is_list_of_maps (was) && is_list_of_maps (is) && rn_node_size (was) == rn_node_size (is))
    for (guint i = 0; i < rn_node_size (is); i++)
      {
        g_autofree char *inner = g_strdup_printf ("%s.%u", path, i);
        rn_config_diff (inner, rn_node_item (was, i), rn_node_item (is, i), func, user_data);
      }
  else if (!is_map (was) || !is_map (is))
    func (path, was, is, user_data);
  else
    {
      for (guint i = 0; i < rn_node_size (is); i++)
        {
          const char *key = rn_node_key (is, i);
          g_autofree char *inner = join (path, key);
          rn_config_diff (inner, rn_node_get (was, key), rn_node_item (is, i), func, user_data);
        }
      for (guint i = 0; i < rn_node_size (was); i++)
        {
          const char *key = rn_node_key (was, i);
          g_autofree char *inner = join (path, key);
          if (rn_node_get (is, key) == NULL)
            func (inner, rn_node_item (was, i), NULL, user_data);
        }
    }
}

char *
rn_config_diff_text (const RnNode *was, const RnNode *is)
{
  g_autofree char *old_text = was != NULL ? rn_config_dump (was, FALSE) : g_strdup ("not set");
  g_autofree char *new_text = is != NULL ? rn_config_dump (is, FALSE) : g_strdup ("not set");

  g_strstrip (old_text);
  g_strstrip (new_text);
  if (strchr (old_text, '\n') != NULL || strchr (new_text, '\n') != NULL)
    return g_strdup ("another one than in the checkpoint");
  return g_strdup_printf ("%s in the checkpoint, %s now", old_text, new_text);
}
