/* From what torch.save pickled to named tensors. */
#include "config.h"

#include "runner/weights/weights-private.h"

#include "runner/base/error.h"

#include <string.h>

#define MAX_DEPTH 16
#define MAX_NAME 512
#define MAX_TENSORS (1 << 18)
#define MAX_CLASSES 65536
#define MAX_IGNORED 65536

typedef struct
{
  RnWeights *weights;
  gboolean skips_states;      /* at the top level */
  guint n_visits, max_visits; /* of dict entries: shared dicts could make them endless */
} Walk;

/* Dicts beside weights whose tensors, if any, are none. */
static gboolean
is_state (const char *key)
{
  static const char *const prefixes[] = { "optim", "lr_scheduler", "scheduler", "scaler", "amp", "meta" };

  for (gsize i = 0; key != NULL && i < G_N_ELEMENTS (prefixes); i++)
    if (g_str_has_prefix (key, prefixes[i]))
      return TRUE;
  return FALSE;
}

static gboolean
add_tensor (Walk *walk, const char *name, const RnPickleTensor *tensor, GError **error)
{
  if (walk->weights->items->len >= MAX_TENSORS)
    return rn_weights_damaged (walk->weights, error, "more than %d tensors", MAX_TENSORS);
  return rn_weights_add (walk->weights, name, tensor, error);
}

static char *
key_text (const RnPickleValue *key)
{
  return key->kind == RN_PICKLE_INT ? g_strdup_printf ("%" G_GINT64_FORMAT, key->integer)
                                    : g_strdup (rn_pickle_string (key));
}

/* Tensors of @dict and of the dicts in it; @prefix is "" or ends with a dot. */
static gboolean
walk_dict (Walk *walk, const RnPickleValue *dict, const char *prefix, int depth, GError **error)
{
  if (depth >= MAX_DEPTH)
    return rn_weights_damaged (walk->weights, error, "dicts in dicts, more than %d deep", MAX_DEPTH);
  for (guint i = 0; i + 1 < rn_pickle_n_items (dict); i += 2)
    {
      const RnPickleValue *value = rn_pickle_item (dict, i + 1);
      if (++walk->n_visits > walk->max_visits)
        return rn_weights_damaged (walk->weights, error, "dicts that contain each other over and over");
      if ((value->kind != RN_PICKLE_TENSOR && value->kind != RN_PICKLE_DICT)
          || (depth == 0 && walk->skips_states && value->kind == RN_PICKLE_DICT
              && is_state (rn_pickle_string (rn_pickle_item (dict, i)))))
        continue;

      g_autofree char *key = key_text (rn_pickle_item (dict, i));
      if (key == NULL || strlen (prefix) + strlen (key) > MAX_NAME)
        return rn_weights_damaged (walk->weights, error, "below \"%s\", a tensor has no usable name", prefix);
      if (value->kind == RN_PICKLE_TENSOR)
        {
          g_autofree char *name = g_strconcat (prefix, key, NULL);
          if (!add_tensor (walk, name, value->tensor, error))
            return FALSE;
          continue;
        }
      g_autofree char *below = g_strconcat (prefix, key, ".", NULL);
      if (!walk_dict (walk, value, below, depth + 1, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
has_tensor (const RnPickleValue *dict)
{
  for (guint i = 1; i < rn_pickle_n_items (dict); i += 2)
    if (rn_pickle_item (dict, i)->kind == RN_PICKLE_TENSOR)
      return TRUE;
  return FALSE;
}

/* Is the entry @key of the top-level dict no part of the weights in @state_dict? */
static gboolean
is_left_out (const RnPickleValue *key, const RnPickleValue *value, const RnPickleValue *top,
             const RnPickleValue *state_dict)
{
  if (state_dict != top)
    return value != state_dict;
  return value->kind != RN_PICKLE_TENSOR
         && (value->kind != RN_PICKLE_DICT || is_state (rn_pickle_string (key)));
}

/* The dict that has the weights, in the top-level dict or itself. */
static const RnPickleValue *
find_state_dict (const RnPickleValue *top)
{
  static const char *const keys[] = { "state_dict", "model" };

  for (gsize i = 0; i < G_N_ELEMENTS (keys); i++)
    {
      const RnPickleValue *value = rn_pickle_lookup (top, keys[i]);
      if (value != NULL && value->kind == RN_PICKLE_DICT && (has_tensor (value) || !has_tensor (top)))
        return value;
    }
  return top;
}

/* The class names in @meta under one of the keys that MMDetection has used. */
static const RnPickleValue *
find_classes (const RnPickleValue *top)
{
  static const char *const keys[] = { "CLASSES", "classes" };
  const RnPickleValue *meta = rn_pickle_lookup (top, "meta"), *found = NULL;

  if (meta == NULL)
    return NULL;
  const RnPickleValue *dataset = rn_pickle_lookup (meta, "dataset_meta");
  for (gsize i = 0; i < G_N_ELEMENTS (keys) && found == NULL; i++)
    {
      found = rn_pickle_lookup (meta, keys[i]);
      if (found == NULL && dataset != NULL)
        found = rn_pickle_lookup (dataset, keys[i]);
    }
  return found != NULL && (found->kind == RN_PICKLE_TUPLE || found->kind == RN_PICKLE_LIST) ? found : NULL;
}

static gboolean
take_classes (RnWeights *weights, const RnPickleValue *top, GError **error)
{
  const RnPickleValue *names = find_classes (top);
  guint n = names != NULL ? rn_pickle_n_items (names) : 0;

  if (n == 0)
    return TRUE;
  if (n > MAX_CLASSES)
    return rn_weights_damaged (weights, error, "meta.CLASSES has %u names", n);
  weights->classes = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < n; i++)
    {
      const char *name = rn_pickle_string (rn_pickle_item (names, i));
      if (name == NULL || strlen (name) > MAX_NAME)
        return rn_weights_damaged (weights, error, "meta.CLASSES[%u] is no name", i);
      g_ptr_array_add (weights->classes, g_strdup (name));
    }
  return TRUE;
}

static const char *
kind_text (const RnPickleValue *value)
{
  switch (value->kind)
    {
    case RN_PICKLE_TENSOR:
      return "a single tensor";
    case RN_PICKLE_LIST:
    case RN_PICKLE_TUPLE:
      return "a list";
    case RN_PICKLE_STRING:
    case RN_PICKLE_BYTES:
      return "a text";
    default:
      return "an object";
    }
}

gboolean
rn_weights_take_pickle (RnWeights *weights, const RnPickle *pickle, GError **error)
{
  const RnPickleValue *top = pickle->root;

  if (top->kind != RN_PICKLE_DICT)
    return rn_weights_damaged (weights, error, "it holds %s, not a dict of tensors", kind_text (top));
  const RnPickleValue *state_dict = find_state_dict (top);
  Walk walk = { weights, state_dict == top, 0, pickle->n_steps };
  for (guint i = 0; i + 1 < rn_pickle_n_items (top); i += 2)
    if (is_left_out (rn_pickle_item (top, i), rn_pickle_item (top, i + 1), top, state_dict))
      {
        g_autofree char *key = key_text (rn_pickle_item (top, i));
        if (weights->ignored->len >= MAX_IGNORED)
          return rn_weights_damaged (weights, error, "more than %d entries that are no tensors", MAX_IGNORED);
        if (key != NULL && strlen (key) <= MAX_NAME)
          g_ptr_array_add (weights->ignored, g_steal_pointer (&key));
      }
  if (!walk_dict (&walk, state_dict, "", 0, error) || !take_classes (weights, top, error))
    return FALSE;
  return weights->items->len > 0 || rn_weights_damaged (weights, error, "there is no tensor in it");
}
