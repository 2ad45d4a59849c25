/*
 * override.c: `--set TEXT`.
 *
 *   a.b=VALUE    replaces, or creates with the maps on the way; VALUE is YAML in flow form: 3, 1e-4, text,
 * [1, {x: 2}]
 *   a.0=VALUE    list item; a.-1 is the last
 *   a+=VALUE     adds to a list: a list's items one by one, anything else as one item
 *   ~a.b         deletes
 *   +a.b=VALUE   the same as without the plus, for fingers used to it
 *
 * Whether a key means something is for the component's table to say.
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <string.h>

#define ORIGIN "--set"

/* The node that @dotted names. What is missing is created as a null if @create is set. */
static RnNode *
locate (RnNode *root, const char *dotted, gboolean create, const char *origin, GError **error)
{
  g_auto (GStrv) names = g_strsplit (dotted, ".", RN_NODE_MAX_DEPTH + 1);
  g_autoptr (RnNode) like = rn_node_new (origin, 0, 0);
  RnNode *node = *dotted ? root : NULL;

  if (!node)
    g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "%s: a key is missing", origin);
  for (guint i = 0; node && names[i]; i++)
    {
      const char *name = names[i];
      gboolean is_too_deep = i == RN_NODE_MAX_DEPTH;

      if (*name == '\0' || strlen (name) > RN_NODE_MAX_KEY || is_too_deep || rn_is_directive (name)
          || !g_utf8_validate (name, -1, NULL))
        {
          g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "%s: \"%s\" is not a key", origin,
                       dotted);
          return NULL;
        }

      RnNode *child = rn_node_child (node, name);
      if (!child && node->kind == RN_NODE_NULL && create)
        rn_node_become_map (node);
      if (!child && node->kind == RN_NODE_MAP && create)
        child = rn_node_insert (node, name, like);
      if (!child)
        {
          g_autofree char *hint = rn_node_hint (node, name);
          const char *parent = *rn_node_dotted (node) ? rn_node_dotted (node) : "the configuration";
          gboolean is_said = g_str_has_suffix (origin, dotted); /* "--set a.b" */
          g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "%s: %s%s%s is %s and has no \"%s\"%s",
                       origin, is_said ? "" : dotted, is_said ? "" : ": ", parent,
                       rn_node_kind_name (node->kind), name, hint);
          return NULL;
        }
      node = child;
    }
  return node;
}

/* Where the value of @dotted comes from, for messages: "--set optimizer.lr". (transfer full) */
static char *
origin_of (const char *dotted)
{
  gboolean is_fit = *dotted && strlen (dotted) <= RN_NODE_MAX_KEY && g_utf8_validate (dotted, -1, NULL);

  return is_fit ? g_strconcat (ORIGIN " ", dotted, NULL) : g_strdup (ORIGIN);
}

static gboolean
append (RnNode *list, RnNode *value, GError **error)
{
  if (list->kind == RN_NODE_NULL)
    rn_node_become_list (list);
  if (list->kind != RN_NODE_LIST)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, ORIGIN " %s+=...: %s is %s, not a list",
                   rn_node_dotted (list), rn_node_dotted (list), rn_node_kind_name (list->kind));
      return FALSE;
    }
  if (value->kind != RN_NODE_LIST)
    return rn_merge (rn_node_append (list, value), value, error);
  for (guint i = 0; i < rn_node_size (value); i++)
    {
      RnNode *item = g_ptr_array_index (value->value.items, i);
      if (!rn_merge (rn_node_append (list, item), item, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_override_apply (RnNode *root, const char *text, gint64 *budget, GError **error)
{
  const char *equals = strchr (text, '=');

  if (*text == '~' && !equals)
    {
      g_autofree char *origin = origin_of (text + 1);
      RnNode *node = locate (root, text + 1, FALSE, origin, error);
      if (node)
        rn_node_remove (node);
      return node != NULL;
    }
  if (!equals || *text == '~')
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   ORIGIN ": \"%s\" is not key=value, key+=value or ~key (no spaces around \"=\")", text);
      return FALSE;
    }

  const char *start = text + (*text == '+');
  gboolean is_append = equals > start && equals[-1] == '+';
  g_autofree char *dotted = g_strndup (start, (gsize) (equals - start - is_append));
  g_autofree char *origin = origin_of (dotted);
  g_autoptr (RnNode) value = rn_yaml_parse (equals + 1, strlen (equals + 1), origin, TRUE, budget, error);
  if (!value)
    return FALSE;

  RnNode *node = locate (root, dotted, TRUE, origin, error);
  if (!node)
    return FALSE;
  if (is_append)
    return append (node, value, error);
  rn_node_reset (node);
  return rn_merge (node, value, error);
}

gboolean
rn_config_override (RnNode *root, const char *text, GError **error)
{
  gint64 budget = RN_NODE_BUDGET;
  return rn_override_apply (root, text, &budget, error);
}

gboolean
rn_config_set (RnNode *root, const char *dotted, RnNode *value, GError **error)
{
  g_autoptr (RnNode) owned = value;
  RnNode *node = locate (root, dotted, TRUE, value->file, error);

  if (node)
    rn_node_move (node, owned, TRUE);
  return node != NULL;
}
