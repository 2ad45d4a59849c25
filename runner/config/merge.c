/*
 * merge.c: a file over its bases.
 *
 * A map over a map goes key by key; a scalar or a list replaces what was there; a map over null or over
 * nothing is taken as it is; a map over something else is an error (MMCV's rules). Directives are keys of a
 * map that say otherwise, at any depth and inside list items too:
 *
 *   _delete_: true      drop the base's value first
 *   _delete_: [a, b]    drop these keys of the base's map first
 *   _append_: [...]     the base's list with items at its end, _prepend_ at its start
 *   _merge_: {0: {...}} merge over single items of the base's list; -1 is the last
 */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <string.h>

#define DELETE "_delete_"
#define APPEND "_append_"
#define PREPEND "_prepend_"
#define MERGE "_merge_"

gboolean
rn_is_directive (const char *key)
{
  return *key == '_' && key[1] && g_str_has_suffix (key, "_");
}

/* Only the known directives, and those of lists only without company. */
static gboolean
check_directives (const RnNode *map, GError **error)
{
  static const char *const known[] = { DELETE, APPEND, PREPEND, MERGE, NULL };
  guint n_plain = 0, n_list = 0;

  for (guint i = 0; i < rn_node_size (map); i++)
    {
      const char *key = rn_node_key (map, i);
      if (!rn_is_directive (key))
        {
          n_plain++;
          continue;
        }
      if (strcmp (key, "_base_") == 0)
        return rn_node_fail (rn_node_item (map, i), RN_CONFIG_ERROR_KEY, error,
                             "belongs at the top of a file");
      if (!g_strv_contains (known, key))
        {
          g_autofree char *hint = rn_hint (key, known);
          return rn_node_fail (rn_node_item (map, i), RN_CONFIG_ERROR_KEY, error,
                               "unknown directive, names like _x_ are reserved%s", hint);
        }
      n_list += strcmp (key, DELETE) != 0;
    }
  if (n_list > 0 && n_plain > 0)
    return rn_node_fail (map, RN_CONFIG_ERROR_KEY, error,
                         APPEND ", " PREPEND " and " MERGE " stand for a list; no other keys may be here");
  return TRUE;
}

static gboolean
delete_key (RnNode *base, const RnNode *name, GError **error)
{
  if (rn_node_kind (name) != RN_NODE_STRING)
    return rn_node_error (name, error, "needs true, false or a list of keys");
  if (base->kind != RN_NODE_MAP)
    return TRUE;

  RnNode *child = rn_node_child (base, rn_node_as_string (name));
  if (!child)
    {
      g_autofree char *hint = rn_node_hint (base, rn_node_as_string (name));
      return rn_node_fail (name, RN_CONFIG_ERROR_KEY, error, "the base has no key \"%s\"%s",
                           rn_node_as_string (name), hint);
    }
  rn_node_remove (child);
  return TRUE;
}

static gboolean
apply_delete (RnNode *base, RnNode *over, GError **error)
{
  const RnNode *what = rn_node_get (over, DELETE);

  if (!what)
    return TRUE;
  if (what->kind == RN_NODE_BOOL)
    {
      if (what->value.truth)
        rn_node_reset (base);
      return TRUE;
    }
  if (what->kind != RN_NODE_LIST)
    return delete_key (base, what, error);
  for (guint i = 0; i < rn_node_size (what); i++)
    if (!delete_key (base, rn_node_item (what, i), error))
      return FALSE;
  return TRUE;
}

/* Appends the items that directive @name has, if it is there. */
static gboolean
add_items (RnNode *list, const RnNode *over, const char *name, GError **error)
{
  const RnNode *items = rn_node_get (over, name);

  if (items && items->kind != RN_NODE_LIST)
    return rn_node_error (items, error, "needs a list");
  for (guint i = 0; items && i < rn_node_size (items); i++)
    {
      RnNode *item = g_ptr_array_index (items->value.items, i);
      if (!rn_merge (rn_node_append (list, item), item, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
merge_items (RnNode *list, const RnNode *changes, GError **error)
{
  if (changes->kind != RN_NODE_MAP)
    return rn_node_error (changes, error, "needs a map of item numbers");
  for (guint i = 0; i < rn_node_size (changes); i++)
    {
      RnNode *change = g_ptr_array_index (changes->value.items, i);
      RnNode *item = rn_node_child (list, change->key);
      if (!item)
        return rn_node_fail (change, RN_CONFIG_ERROR_KEY, error,
                             "the base's list has no such item, it has %u", rn_node_size (list));
      if (!rn_merge (item, change, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
edit_list (RnNode *base, RnNode *over, GError **error)
{
  const RnNode *changes = rn_node_get (over, MERGE);
  g_autoptr (RnNode) old = rn_node_new (base->file, base->line, base->column);

  if (base->kind == RN_NODE_NULL)
    rn_node_become_list (base);
  if (base->kind != RN_NODE_LIST)
    return rn_node_error (over, error, "the base has %s here (%s), which is no list to edit",
                          rn_node_kind_name (base->kind), rn_node_origin (base));
  if (changes && !merge_items (base, changes, error))
    return FALSE;

  rn_node_move (old, base, FALSE);
  rn_node_become_list (base);
  if (!add_items (base, over, PREPEND, error))
    return FALSE;
  for (guint i = 0; i < rn_node_size (old); i++)
    {
      RnNode *item = g_ptr_array_index (old->value.items, i);
      rn_node_move (rn_node_append (base, item), item, TRUE);
    }
  return add_items (base, over, APPEND, error);
}

static gboolean
merge_map (RnNode *base, RnNode *over, GError **error)
{
  if (!check_directives (over, error) || !apply_delete (base, over, error))
    return FALSE;
  if (rn_node_get (over, APPEND) || rn_node_get (over, PREPEND) || rn_node_get (over, MERGE))
    return edit_list (base, over, error);

  if (base->kind == RN_NODE_NULL)
    {
      rn_node_set_origin (base, over);
      rn_node_become_map (base);
    }
  if (base->kind != RN_NODE_MAP)
    return rn_node_error (over, error, "a map cannot go over %s (%s); add \"" DELETE ": true\" to replace it",
                          rn_node_kind_name (base->kind), rn_node_origin (base));
  for (guint i = 0; i < rn_node_size (over); i++)
    {
      RnNode *item = g_ptr_array_index (over->value.items, i);
      if (strcmp (item->key, DELETE) == 0)
        continue;
      RnNode *child = rn_node_child (base, item->key);
      if (!rn_merge (child ? child : rn_node_insert (base, item->key, item), item, error))
        return FALSE;
    }
  return TRUE;
}

/* Recurses no deeper than the two trees. */
gboolean
rn_merge (RnNode *base, RnNode *over, GError **error)
{
  if (over->kind == RN_NODE_MAP)
    return merge_map (base, over, error);
  if (over->kind != RN_NODE_LIST)
    {
      rn_node_move (base, over, TRUE);
      return TRUE;
    }

  rn_node_reset (base);
  rn_node_set_origin (base, over);
  rn_node_become_list (base);
  for (guint i = 0; i < rn_node_size (over); i++)
    {
      RnNode *item = g_ptr_array_index (over->value.items, i);
      if (!rn_merge (rn_node_append (base, item), item, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_merge_bases (RnNode *base, RnNode *next, gboolean later_wins, GError **error)
{
  if (base->kind != RN_NODE_MAP || next->kind != RN_NODE_MAP)
    {
      if (!later_wins && !rn_node_equal (base, next))
        return rn_node_error (next, error,
                              "another base has a different value (%s); remove one, or write "
                              "_base_: {files: [...], later_wins: true}",
                              rn_node_origin (base));
      rn_node_move (base, next, TRUE);
      return TRUE;
    }
  for (guint i = 0; i < rn_node_size (next); i++)
    {
      RnNode *item = g_ptr_array_index (next->value.items, i);
      RnNode *child = rn_node_child (base, item->key);
      if (!child)
        rn_node_move (rn_node_insert (base, item->key, item), item, TRUE);
      else if (!rn_merge_bases (child, item, later_wins, error))
        return FALSE;
    }
  return TRUE;
}
