#include "config.h"

#include "runner/weights/names-map.h"

#include "runner/base/error.h"

#include <string.h>

#define MODULE "module." /* of a model that was wrapped for training on several devices */
#define BOX_ROWS 4       /* of one anchor */

/* -100 in each type: a logit of which no float holds the sigmoid. */
static const struct
{
  const char *type;
  guint8 bytes[8]; /* little-endian */
} never[] = {
  { "F32", { 0x00, 0x00, 0xc8, 0xc2 } },
  { "F16", { 0x40, 0xd6 } },
  { "BF16", { 0xc8, 0xc2 } },
  { "F64", { 0, 0, 0, 0, 0, 0, 0x59, 0xc0 } },
};

/* ---- rules ---- */

/* The pair at @i. */
static gboolean
read_rule (const RnNode *rules, guint i, GRegex **regex, const char **replacement, GError **error)
{
  const RnNode *rule = rn_node_item (rules, i);
  g_autoptr (GError) cause = NULL;

  if (rn_node_kind (rule) != RN_NODE_LIST || rn_node_size (rule) != 2
      || rn_node_kind (rn_node_item (rule, 0)) != RN_NODE_STRING
      || rn_node_kind (rn_node_item (rule, 1)) != RN_NODE_STRING)
    return rn_node_error (rule, error, "needs [regular expression, replacement]");
  *replacement = rn_node_as_string (rn_node_item (rule, 1));
  /* Raw: names in a file may be any bytes. */
  *regex = g_regex_new (rn_node_as_string (rn_node_item (rule, 0)), G_REGEX_RAW, 0, &cause);
  if (*regex == NULL || !g_regex_check_replacement (*replacement, NULL, &cause))
    {
      g_clear_pointer (regex, g_regex_unref);
      return rn_node_error (rule, error, "%s", cause->message);
    }
  return TRUE;
}

gboolean
rn_name_rules_check (const RnNode *revise_keys, GError **error)
{
  if (revise_keys == NULL)
    return TRUE;
  if (rn_node_kind (revise_keys) != RN_NODE_LIST)
    return rn_node_error (revise_keys, error, "needs a list of [regular expression, replacement]");
  for (guint i = 0; i < rn_node_size (revise_keys); i++)
    {
      g_autoptr (GRegex) regex = NULL;
      const char *replacement = NULL;
      if (!read_rule (revise_keys, i, &regex, &replacement, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
apply_rules (const RnNode *revise_keys, GPtrArray *names, GError **error)
{
  for (guint i = 0; revise_keys != NULL && i < rn_node_size (revise_keys); i++)
    {
      g_autoptr (GRegex) regex = NULL;
      const char *replacement = NULL;
      if (!read_rule (revise_keys, i, &regex, &replacement, error))
        return FALSE;
      for (guint k = 0; k < names->len; k++)
        {
          char *old = g_ptr_array_index (names, k);
          char *new = g_regex_replace (regex, old, -1, 0, replacement, 0, error);
          if (new == NULL)
            return FALSE;
          g_free (old);
          g_ptr_array_index (names, k) = new;
        }
    }
  return TRUE;
}

/* ---- the map ---- */

static void
mapped_free (gpointer data)
{
  RnMappedWeight *tensor = data;
  g_free (tensor->name);
  g_free (tensor);
}

void
rn_name_map_free (RnNameMap *map)
{
  if (map == NULL)
    return;
  g_ptr_array_unref (map->tensors);
  g_free (map);
}

static gboolean mismatch (const RnNameMap *map, GError **error, const char *format, ...) G_GNUC_PRINTF (3, 4);

static gboolean
mismatch (const RnNameMap *map, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH, "%s: %s",
               rn_weights_path (map->weights), text);
  return FALSE;
}

static gboolean
all_have (GPtrArray *names, const char *prefix)
{
  for (guint i = 0; i < names->len; i++)
    if (!g_str_has_prefix (g_ptr_array_index (names, i), prefix))
      return FALSE;
  return names->len > 0;
}

static void
cut_prefix (char *name, gsize size)
{
  memmove (name, name + size, strlen (name + size) + 1);
}

/* The tensors of a model: names by @rules, and their places in the file. */
static gboolean
list_names (RnNameMap *map, const RnNameRules *rules, GPtrArray *names, GArray *indices, GError **error)
{
  for (guint i = 0; i < rn_weights_size (map->weights); i++)
    {
      g_ptr_array_add (names, g_strdup (rn_weights_get (map->weights, i)->name));
      g_array_append_val (indices, i);
    }
  if (rules != NULL && !apply_rules (rules->revise_keys, names, error))
    return FALSE;
  gboolean is_wrapped = all_have (names, MODULE);
  for (guint i = 0; is_wrapped && i < names->len; i++)
    cut_prefix (g_ptr_array_index (names, i), strlen (MODULE));
  if (rules == NULL || rules->prefix == NULL || *rules->prefix == '\0')
    return TRUE;

  g_autofree char *wanted = g_str_has_suffix (rules->prefix, ".") ? g_strdup (rules->prefix)
                                                                  : g_strconcat (rules->prefix, ".", NULL);
  for (guint i = names->len; i > 0; i--)
    {
      char *name = g_ptr_array_index (names, i - 1);
      if (g_str_has_prefix (name, wanted))
        cut_prefix (name, strlen (wanted));
      else
        {
          g_ptr_array_remove_index (names, i - 1);
          g_array_remove_index (indices, i - 1);
        }
    }
  return names->len > 0 || mismatch (map, error, "no tensor's name begins with \"%s\"", wanted);
}

static RnMappedWeight *
add (RnNameMap *map, char *name, guint index)
{
  const RnWeight *weight = rn_weights_get (map->weights, index);
  RnMappedWeight *tensor = g_new0 (RnMappedWeight, 1);
  tensor->name = name;
  tensor->index = index;
  memcpy (tensor->dims, weight->dims, sizeof tensor->dims);
  tensor->n = weight->n;
  g_ptr_array_add (map->tensors, tensor);
  return tensor;
}

static gboolean
check_unique (const RnNameMap *map, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (map, i), *other;
      other = g_hash_table_lookup (seen, tensor->name);
      if (other != NULL)
        return mismatch (map, error, "both \"%s\" and \"%s\" are %s",
                         rn_weights_get (map->weights, other->index)->name,
                         rn_weights_get (map->weights, tensor->index)->name, tensor->name);
      g_hash_table_insert (seen, tensor->name, (gpointer) tensor);
    }
  return TRUE;
}

/* Anchors of a cell, by the box predictor; 0 if there is none. */
static int64_t
count_anchors (const RnNameMap *map, const char *prefix)
{
  for (guint i = 0; i < map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (map, i);
      if (g_str_has_prefix (tensor->name, prefix) && rn_weights_get (map->weights, tensor->index)->rank > 0)
        return tensor->dims[0] / BOX_ROWS;
    }
  return 0;
}

/* Takes the background away from the class predictor, or adds it. @prefix and @box_prefix: new names. */
static void
change_classes (RnNameMap *map, const char *prefix, const char *box_prefix, RnRowsChange change)
{
  int64_t n_anchors = count_anchors (map, box_prefix);

  for (guint i = 0; n_anchors > 0 && i < map->tensors->len; i++)
    {
      RnMappedWeight *tensor = g_ptr_array_index (map->tensors, i);
      int64_t rows = tensor->dims[0];
      if (!g_str_has_prefix (tensor->name, prefix) || rn_weights_get (map->weights, tensor->index)->rank == 0
          || rows == 0 || rows % n_anchors != 0)
        continue;
      tensor->rows = change;
      tensor->n_groups = n_anchors;
      tensor->dims[0] += change == RN_ROWS_WITH_FIRST ? n_anchors : -n_anchors;
      tensor->n = tensor->n / rows * tensor->dims[0];
    }
}

static gboolean
is_backbone_alone (const RnNameMap *map)
{
  for (guint i = 0; i < map->tensors->len; i++)
    {
      const char *name = rn_name_map_get (map, i)->name;
      if (g_str_has_prefix (name, "neck.") || g_str_has_prefix (name, "bbox_head."))
        return FALSE;
    }
  return TRUE;
}

/* From MMDetection's names. */
static gboolean
rename_to_torchvision (RnNameMap *map, GError **error)
{
  RnNamesStyle style = is_backbone_alone (map) ? RN_NAMES_RESNET : RN_NAMES_TORCHVISION;

  for (guint i = 0; i < map->tensors->len; i++)
    {
      RnMappedWeight *tensor = g_ptr_array_index (map->tensors, i);
      char *name = rn_names_to_torchvision (&map->names, style, tensor->name);
      if (name == NULL && !rn_names_is_dispensable (tensor->name))
        return mismatch (map, error, "torchvision has no name for %s", tensor->name);
      if (name == NULL)
        continue;
      g_free (tensor->name);
      tensor->name = name;
    }
  if (map->names.style == RN_NAMES_MMDET)
    change_classes (map, RN_TORCHVISION_CLASS_PREDICTOR, RN_TORCHVISION_BOX_PREDICTOR, RN_ROWS_WITH_FIRST);
  return TRUE;
}

RnNameMap *
rn_name_map_new (RnWeights *weights, const RnNameRules *rules, RnNamesTarget target, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) indices = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (RnNameMap) map = g_new0 (RnNameMap, 1);

  map->weights = weights;
  map->tensors = g_ptr_array_new_with_free_func (mapped_free);
  if (!list_names (map, rules, names, indices, error))
    return NULL;
  g_ptr_array_add (names, NULL);
  map->names = rn_names_detect ((const char *const *) names->pdata);
  for (guint i = 0; i < indices->len; i++)
    {
      const char *name = g_ptr_array_index (names, i);
      add (map, target == RN_NAMES_TO_SAME ? g_strdup (name) : rn_names_to_mmdet (&map->names, name),
           g_array_index (indices, guint, i));
    }
  if (target == RN_NAMES_TO_MMDET && map->names.style == RN_NAMES_TORCHVISION)
    change_classes (map, RN_MMDET_CLASS_PREDICTOR, RN_MMDET_BOX_PREDICTOR, RN_ROWS_WITHOUT_FIRST);
  if (!check_unique (map, error)
      || (target == RN_NAMES_TO_TORCHVISION && !rename_to_torchvision (map, error)))
    return NULL;
  return g_steal_pointer (&map);
}

const RnMappedWeight *
rn_name_map_get (const RnNameMap *map, guint i)
{
  return g_ptr_array_index (map->tensors, i);
}

/* ---- reading ---- */

static gboolean
find_never (const RnNameMap *map, const RnMappedWeight *tensor, const guint8 **value, GError **error)
{
  const RnWeight *weight = rn_weights_get (map->weights, tensor->index);

  for (gsize i = 0; i < G_N_ELEMENTS (never); i++)
    if (strcmp (weight->type, never[i].type) == 0)
      {
        *value = never[i].bytes;
        return TRUE;
      }
  return mismatch (map, error, "%s: weights of type %s cannot be given a background class", weight->name,
                   weight->type);
}

/* The first row of a group: no weights, and a bias that keeps the class from ever firing. */
static void
fill_row (guint8 *dst, gsize row_bytes, gsize element_bytes, const guint8 *value)
{
  if (row_bytes == element_bytes)
    memcpy (dst, value, element_bytes);
  else
    memset (dst, 0, row_bytes);
}

/* @src has the rows of the file, @dst those of @tensor; @value is for rows that are added. */
static void
copy_rows (const RnMappedWeight *tensor, const guint8 *src, guint8 *dst, gsize element_bytes,
           const guint8 *value)
{
  gsize row_bytes = (gsize) (tensor->n / MAX (tensor->dims[0], 1)) * element_bytes;
  int64_t n_rows = tensor->dims[0] / tensor->n_groups; /* of a group, in dst */

  for (int64_t group = 0; group < tensor->n_groups; group++)
    {
      int64_t n_copied = n_rows;
      if (tensor->rows == RN_ROWS_WITHOUT_FIRST)
        src += row_bytes;
      else
        {
          fill_row (dst, row_bytes, element_bytes, value);
          dst += row_bytes;
          n_copied--;
        }
      memcpy (dst, src, (gsize) n_copied * row_bytes);
      dst += (gsize) n_copied * row_bytes;
      src += (gsize) n_copied * row_bytes;
    }
}

static void *
allocate (const RnNameMap *map, int64_t n, gsize element_bytes, GError **error)
{
  void *memory = g_try_malloc_n (MAX ((gsize) n, 1), element_bytes);
  if (memory == NULL)
    g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                 "%s: no memory for a tensor of %" G_GINT64_FORMAT " elements",
                 rn_weights_path (map->weights), n);
  return memory;
}

gboolean
rn_mapped_read (const RnNameMap *map, const RnMappedWeight *tensor, void *dst, GError **error)
{
  const RnWeight *weight = rn_weights_get (map->weights, tensor->index);
  const guint8 *value = NULL;

  if (tensor->rows == RN_ROWS_SAME)
    return rn_weights_read (map->weights, tensor->index, dst, error);
  if (tensor->rows == RN_ROWS_WITH_FIRST && !find_never (map, tensor, &value, error))
    return FALSE;
  g_autofree void *stored = allocate (map, weight->n, weight->element_bytes, error);
  if (stored == NULL || !rn_weights_read (map->weights, tensor->index, stored, error))
    return FALSE;
  copy_rows (tensor, stored, dst, weight->element_bytes, value);
  return TRUE;
}

gboolean
rn_mapped_read_f32 (const RnNameMap *map, const RnMappedWeight *tensor, float *dst, GError **error)
{
  const RnWeight *weight = rn_weights_get (map->weights, tensor->index);

  if (tensor->rows == RN_ROWS_SAME)
    return rn_weights_read_f32 (map->weights, tensor->index, dst, error);
  g_autofree float *stored = allocate (map, weight->n, sizeof *stored, error);
  if (stored == NULL || !rn_weights_read_f32 (map->weights, tensor->index, stored, error))
    return FALSE;
  const float never_f32 = -100;
  copy_rows (tensor, (const guint8 *) stored, (guint8 *) dst, sizeof *dst, (const guint8 *) &never_f32);
  return TRUE;
}
