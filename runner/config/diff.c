#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */

#include "runner/config/diff.h"

#include "runner/config/config.h"

#include <string.h>

#define MAX_TEXT 200 /* bytes of a value that is shown */

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

/* Are they about the same thing? Keys of two hooks have nothing to do with one another. */
static gboolean
have_one_type (const RnNode *was, const RnNode *is)
{
  const RnNode *a = rn_node_get (was, "type"), *b = rn_node_get (is, "type");
  return a == b || (a != NULL && b != NULL && rn_node_equal (a, b));
}

static void
diff_lists (const char *path, const RnNode *was, const RnNode *is, RnConfigDiffFunc func, gpointer user_data)
{
  guint n_was = rn_node_size (was), n_is = rn_node_size (is);

  for (guint i = 0; i < MAX (n_was, n_is); i++)
    {
      g_autofree char *inner = g_strdup_printf ("%s.%u", path, i);
      const RnNode *a = i < n_was ? rn_node_item (was, i) : NULL, *b = i < n_is ? rn_node_item (is, i) : NULL;
      if (a != NULL && b != NULL && have_one_type (a, b))
        rn_config_diff (inner, a, b, func, user_data);
      else if (a == NULL || b == NULL || !rn_node_equal (a, b))
        func (inner, a, b, user_data);
    }
}

static void
diff_maps (const char *path, const RnNode *was, const RnNode *is, RnConfigDiffFunc func, gpointer user_data)
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

/* Depth is bounded by the YAML reader. */
void
rn_config_diff (const char *path, const RnNode *was, const RnNode *is, RnConfigDiffFunc func,
                gpointer user_data)
{
  if (was == is || (was != NULL && is != NULL && rn_node_equal (was, is)))
    return;
  if (is_list_of_maps (was) && is_list_of_maps (is))
    diff_lists (path, was, is, func, user_data);
  else if (is_map (was) && is_map (is))
    diff_maps (path, was, is, func, user_data);
  else
    func (path, was, is, user_data);
}

char *
rn_config_diff_text (const RnNode *was, const RnNode *is)
{
  g_autofree char *old_text = was != NULL ? rn_config_dump_line (was) : g_strdup ("not set");
  g_autofree char *new_text = is != NULL ? rn_config_dump_line (is) : g_strdup ("not set");

  if (strlen (old_text) > MAX_TEXT || strlen (new_text) > MAX_TEXT)
    return g_strdup ("another one than in the checkpoint");
  return g_strdup_printf ("%s in the checkpoint, %s now", old_text, new_text);
}
