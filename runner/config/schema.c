#define G_LOG_DOMAIN "rn-config"
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/schema.h"

#include "runner/base/size.h"
#include "runner/config/node-private.h"

#include <math.h>
#include <string.h>

#define DEFAULT_ORIGIN "default"

/* The node of a default's text. Made once for each text and never freed: RN_KEY_NODE lends it. */
static const RnNode *
default_node (const char *text, GError **error)
{
  static GMutex lock;
  static GHashTable *nodes;
  gint64 budget = RN_NODE_BUDGET;

  g_mutex_lock (&lock);
  if (!nodes)
    nodes = g_hash_table_new (g_str_hash, g_str_equal);
  RnNode *node = g_hash_table_lookup (nodes, text);
  if (!node && (node = rn_yaml_parse (text, strlen (text), DEFAULT_ORIGIN, TRUE, &budget, error)))
    g_hash_table_insert (nodes, g_strdup (text), node);
  g_mutex_unlock (&lock);
  return node;
}

/* Checks of single values */

/* What is to be done about a text in the place of a number. */
static const char *
number_hint (const RnNode *node)
{
  if (rn_node_kind (node) != RN_NODE_STRING)
    return "";
  const char *text = rn_node_as_string (node);
  gsize digits = strspn (text, G_CSET_DIGITS);
  g_autoptr (RnNode) plain = rn_node_new (DEFAULT_ORIGIN, 0, 0);

  if (digits > 0 && text[digits] == ',' && strspn (text + digits + 1, G_CSET_DIGITS "eE-") > 0)
    return "; decimals have a point, not a comma";
  if (rn_node_become_plain (plain, text) == NULL
      && (rn_node_kind (plain) == RN_NODE_INT || rn_node_kind (plain) == RN_NODE_FLOAT))
    return "; leave out the quotes";
  return "";
}

static gboolean
wrong_kind (const RnNode *node, const char *wanted, GError **error)
{
  g_autofree char *text = rn_node_size (node) == 0 ? rn_config_dump (node, FALSE) : NULL;
  const char *kind = rn_node_kind_name (rn_node_kind (node));
  gboolean is_number = strcmp (wanted, "a number") == 0 || strcmp (wanted, "an integer") == 0;

  if (text)
    return rn_node_error (node, error, "needs %s, not %s (%s)%s", wanted, kind, g_strchomp (text),
                          is_number ? number_hint (node) : "");
  return rn_node_error (node, error, "needs %s, not %s", wanted, kind);
}

static gboolean
check_bounds (const RnKeySpec *spec, const RnNode *node, double x, GError **error)
{
  gboolean is_bounded = spec->min != 0 || spec->max != 0;

  if (isnan (x)) /* NAN stands for null */
    return rn_node_error (node, error, "must be a number, not .nan");
  if (!is_bounded || (x >= spec->min && x <= spec->max))
    return TRUE;
  if (isinf (spec->max))
    return rn_node_error (node, error, "must be at least %.15g, not %.15g", spec->min, x);
  return rn_node_error (node, error, "must be between %.15g and %.15g, not %.15g", spec->min, spec->max, x);
}

static gboolean
get_int (const RnKeySpec *spec, const RnNode *node, gint64 *value, GError **error)
{
  if (rn_node_kind (node) != RN_NODE_INT)
    return wrong_kind (node, "an integer", error);
  *value = rn_node_as_int (node);
  if (*value == RN_NULL_INT)
    return rn_node_error (node, error, "is out of range");
  return check_bounds (spec, node, (double) *value, error);
}

static gboolean
get_float (const RnKeySpec *spec, const RnNode *node, double *value, GError **error)
{
  if (rn_node_kind (node) != RN_NODE_INT && rn_node_kind (node) != RN_NODE_FLOAT)
    return wrong_kind (node, "a number", error);
  *value = rn_node_as_float (node);
  return check_bounds (spec, node, *value, error);
}

static const char *
get_string (const RnNode *node, GError **error)
{
  if (rn_node_kind (node) == RN_NODE_STRING)
    return rn_node_as_string (node);
  wrong_kind (node, "a string", error);
  return NULL;
}

static gboolean
get_enum (const RnKeySpec *spec, const RnNode *node, int *value, GError **error)
{
  const char *text = NULL;

  if (rn_node_kind (node) == RN_NODE_BOOL)
    text = rn_node_as_bool (node) ? "true" : "false";
  else if (rn_node_kind (node) == RN_NODE_STRING)
    text = rn_node_as_string (node);
  for (int i = 0; text && spec->names[i]; i++)
    if (strcmp (spec->names[i], text) == 0)
      {
        *value = i;
        return TRUE;
      }

  g_autofree char *names = g_strjoinv ("\", \"", (char **) spec->names);
  g_autofree char *wanted = g_strdup_printf ("one of \"%s\"", names);
  return wrong_kind (node, wanted, error);
}

/* Lists: a single value counts as a list of one. */

static guint
n_values (const RnNode *node)
{
  return rn_node_kind (node) == RN_NODE_LIST ? rn_node_size (node) : 1;
}

static const RnNode *
nth_value (const RnNode *node, guint i)
{
  return rn_node_kind (node) == RN_NODE_LIST ? rn_node_item (node, i) : node;
}

static gboolean
store_ints (const RnKeySpec *spec, const RnNode *node, GArray **field, GError **error)
{
  *field = g_array_new (FALSE, FALSE, sizeof (gint64));
  for (guint i = 0; i < n_values (node); i++)
    {
      gint64 value;
      if (!get_int (spec, nth_value (node, i), &value, error))
        return FALSE;
      g_array_append_val (*field, value);
    }
  return TRUE;
}

static gboolean
store_floats (const RnKeySpec *spec, const RnNode *node, GArray **field, GError **error)
{
  *field = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < n_values (node); i++)
    {
      double value;
      if (!get_float (spec, nth_value (node, i), &value, error))
        return FALSE;
      g_array_append_val (*field, value);
    }
  return TRUE;
}

static gboolean
store_strings (const RnNode *node, char ***field, GError **error)
{
  *field = g_new0 (char *, (gsize) n_values (node) + 1);
  for (guint i = 0; i < n_values (node); i++)
    {
      const char *value = get_string (nth_value (node, i), error);
      if (!value)
        return FALSE;
      (*field)[i] = g_strdup (value);
    }
  return TRUE;
}

/* Tables */

static gboolean parse_table (const RnKeySpec *keys, const RnNode *map, gpointer instance,
                             const char *const *skip, gboolean is_given, GError **error);

static gboolean
parse_map (const RnKeySpec *spec, const RnNode *node, gpointer instance, GError **error)
{
  gboolean is_given = node && rn_node_kind (node) != RN_NODE_NULL;

  if (is_given && rn_node_kind (node) != RN_NODE_MAP)
    return wrong_kind (node, "a map", error);
  if (spec->present != 0)
    G_STRUCT_MEMBER (gboolean, instance, spec->present) = is_given;
  return parse_table (spec->keys, is_given ? node : NULL, G_STRUCT_MEMBER_P (instance, spec->offset), NULL,
                      is_given, error);
}

static void
store_null (const RnKeySpec *spec, gpointer field)
{
  if (spec->type == RN_KEY_INT)
    *(gint64 *) field = RN_NULL_INT;
  else if (spec->type == RN_KEY_FLOAT)
    *(double *) field = NAN;
}

/* Once for each key: a file is parsed for its check and again for its use. */
static void
note_unused (const RnNode *node)
{
  static GMutex lock;
  static GHashTable *noted;
  g_autofree char *text =
      g_strdup_printf ("%s: %s is accepted and not used", rn_node_origin (node), rn_node_dotted (node));

  g_mutex_lock (&lock);
  if (!noted)
    noted = g_hash_table_new (g_str_hash, g_str_equal);
  gboolean is_new = g_hash_table_add (noted, (gpointer) g_intern_string (text));
  g_mutex_unlock (&lock);
  if (is_new)
    g_message ("%s", text);
}

static gboolean
store (const RnKeySpec *spec, const RnNode *node, gpointer instance, GError **error)
{
  gpointer field = G_STRUCT_MEMBER_P (instance, spec->offset);

  if (rn_node_kind (node) == RN_NODE_NULL && spec->type != RN_KEY_UNUSED)
    {
      if (!(spec->flags & RN_KEY_NULLABLE))
        return rn_node_error (node, error, "must not be null");
      store_null (spec, field);
      return spec->type != RN_KEY_MAP || parse_map (spec, NULL, instance, error);
    }
  switch (spec->type)
    {
    case RN_KEY_BOOL:
      if (rn_node_kind (node) != RN_NODE_BOOL)
        return wrong_kind (node, "true or false", error);
      *(gboolean *) field = rn_node_as_bool (node);
      return TRUE;
    case RN_KEY_INT:
      return get_int (spec, node, field, error);
    case RN_KEY_FLOAT:
      return get_float (spec, node, field, error);
    case RN_KEY_STRING:
      *(char **) field = g_strdup (get_string (node, error));
      return *(char **) field != NULL;
    case RN_KEY_ENUM:
      return get_enum (spec, node, field, error);
    case RN_KEY_INT_LIST:
      return store_ints (spec, node, field, error);
    case RN_KEY_FLOAT_LIST:
      return store_floats (spec, node, field, error);
    case RN_KEY_STRING_LIST:
      return store_strings (node, field, error);
    case RN_KEY_MAP:
      return parse_map (spec, node, instance, error);
    case RN_KEY_NODE:
      *(const RnNode **) field = node;
      return TRUE;
    case RN_KEY_UNUSED:
      note_unused (node);
      return TRUE;
    }
  return FALSE;
}

static const RnKeySpec *
find_spec (const RnKeySpec *keys, const char *name)
{
  for (; keys->name; keys++)
    if (strcmp (keys->name, name) == 0)
      return keys;
  return NULL;
}

/* Of the key @item of @map, where a base has it for another type: what drops it. (transfer full) */
static char *
leftover_hint (const RnNode *map, const RnNode *item)
{
  const RnNode *type = rn_node_get (map, "policy"); /* the short form of a type */
  const char *file = rn_node_file (item);

  if (type == NULL)
    type = rn_node_get (map, "type");
  if (type == NULL || file == NULL || g_strcmp0 (file, rn_node_file (type)) == 0)
    return g_strdup ("");
  return g_strdup_printf (
      "; if it was for another type: `_delete_: true` beside %s (%s) drops what the bases say",
      rn_node_dotted (type), rn_node_origin (type));
}

/* The end of an unknown key's message: the nearest key, else all of them. (transfer full) */
static char *
key_hint (const RnKeySpec *keys, const char *const *skip, const RnNode *map, const RnNode *item)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  g_autofree char *leftover = leftover_hint (map, item);

  for (; keys->name; keys++)
    g_ptr_array_add (names, (gpointer) keys->name);
  for (; skip && *skip; skip++)
    g_ptr_array_add (names, (gpointer) *skip);
  g_ptr_array_add (names, NULL);

  g_autofree char *hint = rn_hint (item->key, (const char *const *) names->pdata);
  g_autofree char *all = g_strjoinv (", ", (char **) names->pdata);
  return *hint ? g_steal_pointer (&hint)
               : g_strdup_printf ("; there are: %s%s", *all ? all : "none", leftover);
}

static gboolean
check_unknown (const RnKeySpec *keys, const RnNode *map, const char *const *skip, GError **error)
{
  g_autoptr (GHashTable) skipped = g_hash_table_new (g_str_hash, g_str_equal); /* a map may skip thousands */

  for (const char *const *name = skip; name && *name; name++)
    g_hash_table_add (skipped, (gpointer) *name);
  for (guint i = 0; i < rn_node_size (map); i++)
    {
      const char *name = rn_node_key (map, i);
      if (strcmp (name, "type") == 0 || g_hash_table_contains (skipped, name) || find_spec (keys, name))
        continue;
      const RnNode *item = rn_node_item (map, i);
      gboolean is_decimals = name[strspn (name, G_CSET_DIGITS)] == '\0' && item->kind == RN_NODE_NULL;
      g_autofree char *hint =
          is_decimals ? g_strdup ("; decimals have a point, not a comma") : key_hint (keys, skip, map, item);
      return rn_node_fail (item, RN_CONFIG_ERROR_KEY, error, "unknown key%s", hint);
    }
  return TRUE;
}

static gboolean
parse_missing (const RnKeySpec *spec, const RnNode *map, gpointer instance, gboolean is_given, GError **error)
{
  if (spec->flags & RN_KEY_REQUIRED)
    {
      if (!is_given) /* nobody wants the map, so its fields do not matter */
        return TRUE;
      if (map)
        return rn_node_fail (map, RN_CONFIG_ERROR_KEY, error, "the key \"%s\" is missing", spec->name);
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "the key \"%s\" is missing", spec->name);
      return FALSE;
    }
  if (spec->deflt)
    {
      const RnNode *node = default_node (spec->deflt, error);
      if (node && store (spec, node, instance, error))
        return TRUE;
      g_prefix_error (error, "%s: ", spec->name);
      return FALSE;
    }
  return spec->type != RN_KEY_MAP || parse_map (spec, NULL, instance, error);
}

/*
 * @is_given is FALSE for an inner map that the file leaves out: it gets its defaults and may lack required
 * keys.
 */
static gboolean
parse_table (const RnKeySpec *keys, const RnNode *map, gpointer instance, const char *const *skip,
             gboolean is_given, GError **error)
{
  if (map && rn_node_kind (map) != RN_NODE_MAP)
    return wrong_kind (map, "a map", error);
  if (map && !check_unknown (keys, map, skip, error))
    return FALSE;
  for (const RnKeySpec *spec = keys; spec->name; spec++)
    {
      const RnNode *node = map ? rn_node_get (map, spec->name) : NULL;
      if (skip && g_strv_contains (skip, spec->name))
        continue;
      if (node ? !store (spec, node, instance, error) : !parse_missing (spec, map, instance, is_given, error))
        return FALSE;
    }
  return TRUE;
}

/* Sets all fields of the table to zero bytes, and before that frees them if @is_filled. */
static void
zero_fields (const RnKeySpec *keys, gpointer instance, gboolean is_filled)
{
  for (; keys->name; keys++)
    {
      gpointer field = G_STRUCT_MEMBER_P (instance, keys->offset);
      switch (keys->type)
        {
        case RN_KEY_BOOL:
          *(gboolean *) field = FALSE;
          break;
        case RN_KEY_INT:
          *(gint64 *) field = 0;
          break;
        case RN_KEY_FLOAT:
          *(double *) field = 0;
          break;
        case RN_KEY_ENUM:
          *(int *) field = 0;
          break;
        case RN_KEY_STRING:
          if (is_filled)
            g_free (*(char **) field);
          *(char **) field = NULL;
          break;
        case RN_KEY_INT_LIST:
        case RN_KEY_FLOAT_LIST:
          if (is_filled && *(GArray **) field)
            g_array_unref (*(GArray **) field);
          *(GArray **) field = NULL;
          break;
        case RN_KEY_STRING_LIST:
          if (is_filled)
            g_strfreev (*(char ***) field);
          *(char ***) field = NULL;
          break;
        case RN_KEY_MAP:
          if (keys->present != 0)
            G_STRUCT_MEMBER (gboolean, instance, keys->present) = FALSE;
          zero_fields (keys->keys, field, is_filled);
          break;
        case RN_KEY_NODE:
          *(const RnNode **) field = NULL;
          break;
        case RN_KEY_UNUSED:
          break;
        }
    }
}

void
rn_keys_clear (const RnKeySpec *keys, gpointer instance)
{
  zero_fields (keys, instance, TRUE);
}

gboolean
rn_keys_parse (const RnKeySpec *keys, const RnNode *map, gpointer instance, const char *const *skip,
               GError **error)
{
  zero_fields (keys, instance, FALSE);
  if (parse_table (keys, map, instance, skip, TRUE, error))
    return TRUE;
  rn_keys_clear (keys, instance);
  return FALSE;
}

/* Components */

static const RnKeySpec *
component_keys (const RnComponent *component)
{
  static const RnKeySpec none[] = { RN_KEY_END };

  return component->keys ? component->keys : none;
}

static gboolean
unknown_type (const RnRegistry *registry, const RnNode *type, const char *name, GError **error)
{
  g_autoptr (GPtrArray) list = rn_registry_list (registry);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();

  for (guint i = 0; i < list->len; i++)
    g_ptr_array_add (names, (gpointer) ((const RnComponent *) list->pdata[i])->name);
  g_ptr_array_add (names, NULL);

  g_autofree char *hint = rn_hint (name, (const char *const *) names->pdata);
  g_autofree char *all = g_strjoinv (", ", (char **) names->pdata);
  return rn_node_error (type, error, "unknown %s \"%s\"%s%s%s", rn_registry_family_name (registry), name,
                        hint, *hint ? " There are: " : "; there are: ", all);
}

/* The component that @map asks for, or NULL with error. */
static const RnComponent *
find_component (RnRegistry *registry, const RnNode *map, const char *deflt_type, GError **error)
{
  g_autoptr (RnNode) deflt = rn_node_new_string (deflt_type ? deflt_type : "", DEFAULT_ORIGIN);
  const RnNode *type = map ? rn_node_get (map, "type") : NULL;

  if (map && rn_node_kind (map) != RN_NODE_MAP)
    {
      wrong_kind (map, "a map", error);
      return NULL;
    }
  if (!type && !deflt_type)
    {
      if (map)
        rn_node_fail (map, RN_CONFIG_ERROR_KEY, error, "the key \"type\" is missing; it names a %s",
                      rn_registry_family_name (registry));
      else
        g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, "there is no %s",
                     rn_registry_family_name (registry));
      return NULL;
    }
  if (!type)
    type = deflt;

  const char *name = get_string (type, error);
  const RnComponent *component = name ? rn_registry_lookup (registry, name) : NULL;
  if (name && !component)
    unknown_type (registry, type, name, error);
  return component;
}

gpointer
rn_component_new (RnRegistry *registry, const RnNode *map, const char *deflt_type, const char *const *skip,
                  const RnComponent **component, GError **error)
{
  const RnComponent *found = find_component (registry, map, deflt_type, error);
  if (!found)
    return NULL;

  gpointer instance = g_malloc0 (MAX (found->instance_size, 1));
  if (!rn_keys_parse (component_keys (found), map, instance, skip, error))
    {
      g_free (instance);
      return NULL;
    }
  *component = found;
  return instance;
}

gboolean
rn_node_read_size (const RnNode *node, const char *example, guint64 *bytes, GError **error)
{
  g_autoptr (GError) local = NULL;

  if (rn_node_kind (node) == RN_NODE_INT && rn_node_as_int (node) > 0)
    {
      *bytes = (guint64) rn_node_as_int (node);
      return TRUE;
    }
  if (rn_node_kind (node) != RN_NODE_STRING)
    return rn_node_error (node, error, "needs a size, such as %s or a number of bytes above 0", example);
  return (rn_size_parse (rn_node_as_string (node), bytes, &local) && *bytes > 0)
         || rn_node_error (node, error, "%s", local != NULL ? local->message : "needs a size above 0");
}

void
rn_component_free (const RnComponent *component, gpointer instance)
{
  if (!instance)
    return;
  rn_keys_clear (component_keys (component), instance);
  g_free (instance);
}
