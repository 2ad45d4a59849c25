/* cudnn-json.c: members of JSON as the simulated cuDNN reads and writes them. */
#include "config.h"

#include "tests/gpu/sim/cudnn-json.h"

JsonNode *
sim_json_member (JsonObject *object, const char *name, GType type)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == type ? node
                                                                                                 : NULL;
}

gboolean
sim_json_integer (JsonObject *object, const char *name, int64_t *value)
{
  JsonNode *node = sim_json_member (object, name, G_TYPE_INT64);
  if (node != NULL)
    *value = json_node_get_int (node);
  return node != NULL;
}

const char *
sim_json_string (JsonObject *object, const char *name)
{
  JsonNode *node = sim_json_member (object, name, G_TYPE_STRING);
  return node != NULL ? json_node_get_string (node) : NULL;
}

JsonObject *
sim_json_object (JsonObject *object, const char *name)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;
  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

JsonArray *
sim_json_array (JsonObject *object, const char *name)
{
  JsonNode *node = object != NULL ? json_object_get_member (object, name) : NULL;
  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

JsonObject *
sim_json_element (JsonArray *array, guint i)
{
  JsonNode *node = json_array_get_element (array, i);
  return JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

int
sim_json_integers (JsonObject *object, const char *name, int64_t *values)
{
  JsonArray *array = sim_json_array (object, name);
  if (array == NULL || json_array_get_length (array) > CUDNN_DIM_MAX)
    return -1;
  for (guint i = 0; i < json_array_get_length (array); i++)
    {
      JsonNode *node = json_array_get_element (array, i);
      if (!JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != G_TYPE_INT64)
        return -1;
      values[i] = json_node_get_int (node);
    }
  return (int) json_array_get_length (array);
}

void
sim_json_append_integers (GString *json, const char *name, const int64_t *values, int n)
{
  g_string_append_printf (json, "\"%s\":[", name);
  for (int i = 0; i < n; i++)
    g_string_append_printf (json, "%s%" G_GINT64_FORMAT, i > 0 ? "," : "", values[i]);
  g_string_append (json, "]");
}

JsonNode *
sim_json_parse (const char *text, int64_t length)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  if (length == 0 || !json_parser_load_from_data (parser, text, length, NULL))
    return NULL;
  JsonNode *root = json_parser_steal_root (parser);
  if (root == NULL || JSON_NODE_HOLDS_OBJECT (root))
    return root;
  json_node_unref (root);
  return NULL;
}
