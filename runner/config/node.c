#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include "runner/base/registry.h"

#include <math.h>
#include <string.h>

/* Reading */

RnNodeKind
rn_node_kind (const RnNode *node)
{
  return node->kind;
}

gboolean
rn_node_as_bool (const RnNode *node)
{
  g_return_val_if_fail (node->kind == RN_NODE_BOOL, FALSE);
  return node->value.truth;
}

gint64
rn_node_as_int (const RnNode *node)
{
  g_return_val_if_fail (node->kind == RN_NODE_INT, 0);
  return node->value.integer;
}

double
rn_node_as_float (const RnNode *node)
{
  g_return_val_if_fail (node->kind == RN_NODE_INT || node->kind == RN_NODE_FLOAT, NAN);
  return node->kind == RN_NODE_INT ? (double) node->value.integer : node->value.real;
}

const char *
rn_node_as_string (const RnNode *node)
{
  g_return_val_if_fail (node->kind == RN_NODE_STRING, NULL);
  return node->value.string;
}

static gboolean
is_container (const RnNode *node)
{
  return node->kind == RN_NODE_LIST || node->kind == RN_NODE_MAP;
}

guint
rn_node_size (const RnNode *node)
{
  return is_container (node) ? node->value.items->len : 0;
}

const RnNode *
rn_node_item (const RnNode *list, guint i)
{
  g_return_val_if_fail (i < rn_node_size (list), NULL);
  return g_ptr_array_index (list->value.items, i);
}

const char *
rn_node_key (const RnNode *map, guint i)
{
  g_return_val_if_fail (map->kind == RN_NODE_MAP, NULL);
  return rn_node_item (map, i)->key;
}

const RnNode *
rn_node_get (const RnNode *map, const char *key)
{
  return map->kind == RN_NODE_MAP ? g_hash_table_lookup (map->index, key) : NULL;
}

RnNode *
rn_node_child (const RnNode *node, const char *name)
{
  gint64 i;

  if (node->kind == RN_NODE_MAP)
    return g_hash_table_lookup (node->index, name);
  if (node->kind != RN_NODE_LIST || !g_ascii_string_to_signed (name, 10, -G_MAXINT, G_MAXINT, &i, NULL))
    return NULL;
  if (i < 0)
    i += rn_node_size (node);
  return i >= 0 && i < rn_node_size (node) ? g_ptr_array_index (node->value.items, i) : NULL;
}

const RnNode *
rn_node_path (const RnNode *root, const char *dotted)
{
  g_auto (GStrv) names = g_strsplit (dotted, ".", -1);

  for (guint i = 0; names[i] && root; i++)
    root = rn_node_child (root, names[i]);
  return root;
}

const char *
rn_node_kind_name (RnNodeKind kind)
{
  static const char *const names[] = { "null",     "a boolean", "an integer", "a number",
                                       "a string", "a list",    "a map" };
  G_STATIC_ASSERT (G_N_ELEMENTS (names) == RN_NODE_MAP + 1);

  return names[kind];
}

/* Messages */

int
rn_node_depth (const RnNode *node)
{
  int depth = 0;

  for (node = node->parent; node; node = node->parent)
    depth++;
  return depth;
}

static char *
dup_dotted (const RnNode *node)
{
  GString *text = g_string_new (NULL);

  for (; node->parent; node = node->parent)
    {
      if (text->len > 0)
        g_string_prepend_c (text, '.');
      if (node->key)
        {
          g_string_prepend (text, node->key);
        }
      else
        {
          guint i = 0;
          g_ptr_array_find (node->parent->value.items, node, &i);
          g_autofree char *number = g_strdup_printf ("%u", i);
          g_string_prepend (text, number);
        }
    }
  return g_string_free (text, FALSE);
}

static char *
dup_origin (const RnNode *node)
{
  return node->line > 0 ? g_strdup_printf ("%s:%d:%d", node->file, node->line, node->column)
                        : g_strdup (node->file);
}

/*
 * Both are interned rather than kept in the node: they change with the tree, and callers may keep what they
 * got.
 */
const char *
rn_node_dotted (const RnNode *node)
{
  g_autofree char *text = dup_dotted (node);
  return g_intern_string (text);
}

const char *
rn_node_origin (const RnNode *node)
{
  g_autofree char *text = dup_origin (node);
  return g_intern_string (text);
}

const char *
rn_node_file (const RnNode *node)
{
  return node->line > 0 ? node->file : NULL;
}

static void
set_error (const RnNode *node, RnConfigError code, GError **error, const char *format, va_list args)
{
  g_autofree char *origin = dup_origin (node);
  g_autofree char *dotted = dup_dotted (node);
  g_autofree char *text = g_strdup_vprintf (format, args);

  gsize n = strlen (origin), n_dotted = strlen (dotted);
  /* "--set a.b" and "--seed" have said it already. */
  gboolean is_said = n_dotted == 0
                     || (n > n_dotted && strcmp (origin + n - n_dotted, dotted) == 0
                         && strchr (" -", origin[n - n_dotted - 1]) != NULL);

  rn_set_error (error, RN_CONFIG_ERROR, (int) code, "%s: %s%s%s", origin, is_said ? "" : dotted,
                is_said ? "" : ": ", text);
}

gboolean
rn_node_fail (const RnNode *node, RnConfigError code, GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  set_error (node, code, error, format, args);
  va_end (args);
  return FALSE;
}

gboolean
rn_node_error (const RnNode *node, GError **error, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  set_error (node, RN_CONFIG_ERROR_VALUE, error, format, args);
  va_end (args);
  return FALSE;
}

char *
rn_hint (const char *word, const char *const *names)
{
  const char *nearest = rn_suggest (word, names);

  return nearest ? g_strdup_printf ("; did you mean \"%s\"?", nearest) : g_strdup ("");
}

char *
rn_node_hint (const RnNode *map, const char *key)
{
  g_autofree const char **names = g_new0 (const char *, rn_node_size (map) + 1);

  for (guint i = 0; map->kind == RN_NODE_MAP && i < rn_node_size (map); i++)
    names[i] = rn_node_key (map, i);
  return rn_hint (key, names);
}

/* Building */

RnNode *
rn_node_new (const char *file, int line, int column)
{
  RnNode *node = g_new0 (RnNode, 1);

  node->file = g_ref_string_new_intern (file);
  node->line = line;
  node->column = column;
  return node;
}

static RnNode *
new_like (const RnNode *like)
{
  return rn_node_new (like->file, like->line, like->column);
}

RnNode *
rn_node_new_null (const char *origin)
{
  return rn_node_new (origin, 0, 0);
}

RnNode *
rn_node_new_bool (gboolean value, const char *origin)
{
  RnNode *node = rn_node_new (origin, 0, 0);
  node->kind = RN_NODE_BOOL;
  node->value.truth = value;
  return node;
}

RnNode *
rn_node_new_int (gint64 value, const char *origin)
{
  RnNode *node = rn_node_new (origin, 0, 0);
  node->kind = RN_NODE_INT;
  node->value.integer = value;
  return node;
}

RnNode *
rn_node_new_float (double value, const char *origin)
{
  RnNode *node = rn_node_new (origin, 0, 0);
  node->kind = RN_NODE_FLOAT;
  node->value.real = value;
  return node;
}

RnNode *
rn_node_new_string (const char *value, const char *origin)
{
  RnNode *node = rn_node_new (origin, 0, 0);
  rn_node_become_string (node, value);
  return node;
}

void
rn_node_reset (RnNode *node)
{
  if (node->kind == RN_NODE_STRING)
    g_free (node->value.string);
  g_clear_pointer (&node->index, g_hash_table_unref);
  if (is_container (node))
    g_ptr_array_unref (node->value.items);
  node->kind = RN_NODE_NULL;
  node->state = RN_NODE_RAW;
}

void
rn_node_free (RnNode *node)
{
  if (!node)
    return;
  rn_node_reset (node);
  g_ref_string_release (node->file);
  g_free (node->key);
  g_free (node);
}

void
rn_node_become_string (RnNode *node, const char *text)
{
  g_return_if_fail (node->kind == RN_NODE_NULL);
  node->value.string = g_strdup (text);
  node->kind = RN_NODE_STRING;
}

void
rn_node_become_list (RnNode *node)
{
  g_return_if_fail (node->kind == RN_NODE_NULL);
  node->value.items = g_ptr_array_new_with_free_func ((GDestroyNotify) rn_node_free);
  node->kind = RN_NODE_LIST;
}

void
rn_node_become_map (RnNode *node)
{
  rn_node_become_list (node);
  node->index = g_hash_table_new (g_str_hash, g_str_equal);
  node->kind = RN_NODE_MAP;
}

void
rn_node_set_origin (RnNode *node, const RnNode *like)
{
  char *file = g_ref_string_acquire (like->file); /* first: it may be the same */

  g_ref_string_release (node->file);
  node->file = file;
  node->line = like->line;
  node->column = like->column;
}

void
rn_node_move (RnNode *node, RnNode *from, gboolean with_origin)
{
  rn_node_reset (node);
  node->kind = from->kind;
  node->state = from->state;
  node->value = from->value;
  node->index = g_steal_pointer (&from->index);
  from->kind = RN_NODE_NULL;
  from->state = RN_NODE_RAW;
  for (guint i = 0; i < rn_node_size (node); i++)
    ((RnNode *) g_ptr_array_index (node->value.items, i))->parent = node;
  if (with_origin)
    rn_node_set_origin (node, from);
}

RnNode *
rn_node_append (RnNode *list, const RnNode *like)
{
  RnNode *item = new_like (like);

  item->parent = list;
  g_ptr_array_add (list->value.items, item);
  return item;
}

RnNode *
rn_node_insert (RnNode *map, const char *key, const RnNode *like)
{
  RnNode *item = rn_node_append (map, like);

  item->key = g_strdup (key);
  g_hash_table_insert (map->index, item->key, item);
  return item;
}

void
rn_node_remove (RnNode *child)
{
  RnNode *parent = child->parent;

  if (parent->index)
    g_hash_table_remove (parent->index, child->key);
  g_ptr_array_remove (parent->value.items, child);
}

/* Copying and comparing */

gint64
rn_node_cost (const RnNode *node)
{
  gsize text =
      (node->kind == RN_NODE_STRING ? strlen (node->value.string) : 0) + (node->key ? strlen (node->key) : 0);

  return 1 + (gint64) (text / 64);
}

static gboolean
copy_into (RnNode *copy, const RnNode *node, int height, gint64 *budget)
{
  *budget -= rn_node_cost (node);
  if (*budget < 0 || height <= 0)
    return FALSE;

  copy->state = node->state;
  switch (node->kind)
    {
    case RN_NODE_STRING:
      rn_node_become_string (copy, node->value.string);
      return TRUE;
    case RN_NODE_LIST:
    case RN_NODE_MAP:
      (node->kind == RN_NODE_MAP ? rn_node_become_map : rn_node_become_list) (copy);
      for (guint i = 0; i < rn_node_size (node); i++)
        {
          const RnNode *item = rn_node_item (node, i);
          RnNode *child = item->key ? rn_node_insert (copy, item->key, item) : rn_node_append (copy, item);
          if (!copy_into (child, item, height - 1, budget))
            return FALSE;
        }
      return TRUE;
    case RN_NODE_NULL:
    case RN_NODE_BOOL:
    case RN_NODE_INT:
    case RN_NODE_FLOAT:
      copy->kind = node->kind;
      copy->value = node->value;
      return TRUE;
    }
  return FALSE;
}

RnNode *
rn_node_copy_within (const RnNode *node, int height, gint64 *budget)
{
  g_autoptr (RnNode) copy = new_like (node);

  return copy_into (copy, node, height, budget) ? g_steal_pointer (&copy) : NULL;
}

RnNode *
rn_node_copy (const RnNode *node)
{
  gint64 budget = G_MAXINT64; /* it exists, so it may exist twice */

  return rn_node_copy_within (node, G_MAXINT, &budget);
}

gboolean
rn_node_equal (const RnNode *a, const RnNode *b)
{
  if (a->kind != b->kind || rn_node_size (a) != rn_node_size (b))
    return FALSE;
  switch (a->kind)
    {
    case RN_NODE_NULL:
      return TRUE;
    case RN_NODE_BOOL:
      return !a->value.truth == !b->value.truth;
    case RN_NODE_INT:
      return a->value.integer == b->value.integer;
    case RN_NODE_FLOAT:
      return isnan (a->value.real) ? isnan (b->value.real) : a->value.real == b->value.real;
    case RN_NODE_STRING:
      return strcmp (a->value.string, b->value.string) == 0;
    case RN_NODE_LIST:
    case RN_NODE_MAP:
      break;
    }
  for (guint i = 0; i < rn_node_size (a); i++)
    {
      const RnNode *item = rn_node_item (a, i);
      const RnNode *other = item->key ? rn_node_get (b, item->key) : rn_node_item (b, i);
      if (!other || !rn_node_equal (item, other))
        return FALSE;
    }
  return TRUE;
}
