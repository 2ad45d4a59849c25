#include "config.h"

#include "runner/base/json.h"

#include "runner/base/error.h"

#include <json-glib/json-glib.h>

void
rn_json_append_string (GString *json, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);

  g_string_append_c (json, '"');
  for (const char *p = valid; *p != '\0'; p++)
    {
      guchar c = (guchar) *p;
      if (c == '"' || c == '\\')
        g_string_append_printf (json, "\\%c", c);
      else if (c == '\n')
        g_string_append (json, "\\n");
      else if (c == '\t')
        g_string_append (json, "\\t");
      else if (c < 0x20 || c == 0x7f)
        g_string_append_printf (json, "\\u%04x", c);
      else
        g_string_append_c (json, (char) c);
    }
  g_string_append_c (json, '"');
}

/* json-glib parses nested values by recursion without a bound of its own, and keeps all of them. */
gboolean
rn_json_check (const char *text, gsize size, int max_depth, GError **error)
{
  int depth = 0, n_values = 1;
  gboolean in_string = FALSE;

  if (!g_utf8_validate_len (text, size, NULL))
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "not JSON: not UTF-8");
      return FALSE;
    }
  for (gsize i = 0; i < size; i++)
    {
      char c = text[i];
      if (in_string && c == '\\')
        i++;
      else if (c == '"')
        in_string = !in_string;
      else if (in_string)
        continue;
      else if (c == ',')
        n_values++;
      else if (c == '{' || c == '[')
        depth++;
      else if (c == '}' || c == ']')
        depth--;
      else if (c == '/') /* json-glib takes comments, in which brackets would count for nothing; JSON has none
                          */
        depth = max_depth + 1;
      if (n_values > RN_JSON_MAX_VALUES)
        {
          g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                       "not JSON of the expected kind: more than %d values", RN_JSON_MAX_VALUES);
          return FALSE;
        }
      if (depth > max_depth || depth < 0)
        {
          g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                       "not JSON of the expected kind, at byte %" G_GSIZE_FORMAT, i);
          return FALSE;
        }
    }
  return TRUE;
}

static void
add_flat (JsonObject *object, const char *name, JsonNode *node, gpointer data)
{
  GHashTable *texts = data;
  GType type = JSON_NODE_HOLDS_VALUE (node) ? json_node_get_value_type (node) : G_TYPE_INVALID;

  if (type == G_TYPE_STRING)
    g_hash_table_insert (texts, g_strdup (name), json_node_dup_string (node));
  else if (type == G_TYPE_INT64)
    g_hash_table_insert (texts, g_strdup (name),
                         g_strdup_printf ("%" G_GINT64_FORMAT, json_node_get_int (node)));
}

GHashTable *
rn_json_read_flat (const char *text, gsize size, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GError) cause = NULL;

  if (!rn_json_check (text, size, 1, error))
    return NULL;
  if (!json_parser_load_from_data (parser, text, (gssize) size, &cause))
    {
      rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "not JSON: %s", cause->message);
      return NULL;
    }
  JsonNode *root = json_parser_get_root (parser);
  JsonObject *object = root != NULL && JSON_NODE_HOLDS_OBJECT (root) ? json_node_get_object (root) : NULL;
  g_autoptr (GHashTable) texts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  if (object != NULL)
    json_object_foreach_member (object, add_flat, texts);
  if (object == NULL || g_hash_table_size (texts) != json_object_get_size (object))
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                   "not an object of strings and integers");
      return NULL;
    }
  return g_steal_pointer (&texts);
}
