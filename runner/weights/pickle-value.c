/* Values of pickles: all belong to their RnPickle, whatever refers to whatever. */
#include "config.h"

#include "runner/weights/pickle-private.h"

RnPickleValue *
rn_pickle_value_new (RnPickle *pickle, RnPickleKind kind)
{
  RnPickleValue *value = g_new0 (RnPickleValue, 1);
  value->kind = kind;
  g_ptr_array_add (pickle->values, value);
  return value;
}

static gboolean
is_container (const RnPickleValue *value)
{
  return value->kind == RN_PICKLE_LIST || value->kind == RN_PICKLE_TUPLE || value->kind == RN_PICKLE_DICT;
}

static void
value_free (gpointer data)
{
  RnPickleValue *value = data;
  if (is_container (value) && value->items != NULL)
    g_ptr_array_unref (value->items);
  else if (value->kind == RN_PICKLE_STRING || value->kind == RN_PICKLE_BYTES
           || value->kind == RN_PICKLE_BIG_INT)
    g_free (value->text.bytes);
  else if (value->kind == RN_PICKLE_TENSOR)
    g_free (value->tensor);
  g_free (value);
}

static void
storage_free (gpointer data)
{
  RnPickleStorage *storage = data;
  g_free (storage->key);
  g_free (storage);
}

RnPickle *
rn_pickle_new (void)
{
  RnPickle *pickle = g_new0 (RnPickle, 1);
  pickle->values = g_ptr_array_new_with_free_func (value_free);
  pickle->storages = g_ptr_array_new_with_free_func (storage_free);
  return pickle;
}

void
rn_pickle_free (RnPickle *pickle)
{
  if (pickle == NULL)
    return;
  g_ptr_array_unref (pickle->values);
  g_ptr_array_unref (pickle->storages);
  g_free (pickle);
}

void
rn_pickle_append (RnPickleValue *container, RnPickleValue *item)
{
  if (container->items == NULL)
    container->items = g_ptr_array_new ();
  g_ptr_array_add (container->items, item);
}

guint
rn_pickle_n_items (const RnPickleValue *value)
{
  return is_container (value) && value->items != NULL ? value->items->len : 0;
}

RnPickleValue *
rn_pickle_item (const RnPickleValue *value, guint i)
{
  g_return_val_if_fail (i < rn_pickle_n_items (value), NULL);
  return g_ptr_array_index (value->items, i);
}

const char *
rn_pickle_string (const RnPickleValue *value)
{
  return value->kind == RN_PICKLE_STRING && value->text.is_name ? value->text.bytes : NULL;
}

RnPickleValue *
rn_pickle_lookup (const RnPickleValue *dict, const char *key)
{
  if (dict->kind != RN_PICKLE_DICT)
    return NULL;
  for (guint i = rn_pickle_n_items (dict); i >= 2; i -= 2)
    if (g_strcmp0 (rn_pickle_string (rn_pickle_item (dict, i - 2)), key) == 0)
      return rn_pickle_item (dict, i - 1);
  return NULL;
}
