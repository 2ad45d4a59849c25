#include "config.h"

#include "runner/safetensors.h"

#include "runner/base/error.h"
#include "runner/base/json.h"
#include "runner/base/open-file.h"
#include "runner/crc32c.h"
#include "runner/safetensors-format.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECKSUM_STEP ((gsize) 4 << 20) /* bytes that are resident at once */
#define MAX_DEPTH 3

struct _RnSafetensors
{
  char *path;
  GMappedFile *map; /* NULL when the bytes are lent */
  const guint8 *bytes;
  gsize size;
  const char *header; /* in bytes */
  gsize header_bytes;
  GPtrArray *tensors;   /* of RnStoredTensor, by data */
  GHashTable *by_name;  /* lent names and tensors */
  GHashTable *metadata; /* key -> text */
};

static const struct
{
  const char *name;
  gsize bytes;
  RnDType dtype; /* RN_DTYPE_COUNT: none of ours */
} types[] = {
  { "F32", 4, RN_F32 },
  { "F16", 2, RN_F16 },
  { "BF16", 2, RN_BF16 },
  { "I64", 8, RN_I64 },
  { "I32", 4, RN_I32 },
  { "I16", 2, RN_I16 },
  { "U8", 1, RN_U8 },
  { "F64", 8, RN_DTYPE_COUNT },
  { "I8", 1, RN_DTYPE_COUNT },
  { "BOOL", 1, RN_DTYPE_COUNT },
  { "U16", 2, RN_DTYPE_COUNT },
  { "U32", 4, RN_DTYPE_COUNT },
  { "U64", 8, RN_DTYPE_COUNT },
  { "F8_E4M3", 1, RN_DTYPE_COUNT },
  { "F8_E5M2", 1, RN_DTYPE_COUNT },
};

const char *
rn_safetensors_type_name (RnDType dtype)
{
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if (types[i].dtype == dtype)
      return types[i].name;
  return NULL;
}

static gboolean G_GNUC_PRINTF (3, 4)
    damaged (const RnSafetensors *file, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED,
                "%s: not a whole safetensors file: %s", file->path, text);
  return FALSE;
}

static void
stored_tensor_free (gpointer data)
{
  RnStoredTensor *tensor = data;
  g_free (tensor->name);
  g_free (tensor);
}

void
rn_safetensors_free (RnSafetensors *file)
{
  if (file == NULL)
    return;
  g_hash_table_unref (file->by_name);
  g_hash_table_unref (file->metadata);
  g_ptr_array_unref (file->tensors);
  g_clear_pointer (&file->map, g_mapped_file_unref);
  g_free (file->path);
  g_free (file);
}

static gboolean
read_size (JsonArray *array, guint i, gint64 *value)
{
  JsonNode *node = json_array_get_element (array, i);
  if (!JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) != G_TYPE_INT64)
    return FALSE;
  *value = json_node_get_int (node);
  return *value >= 0;
}

static JsonArray *
get_array (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);
  return node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
}

static const char *
get_string (JsonNode *node)
{
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

static gboolean
read_type (JsonObject *object, RnStoredTensor *tensor)
{
  const char *name = get_string (json_object_get_member (object, "dtype"));
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if (g_strcmp0 (name, types[i].name) == 0)
      {
        tensor->type = types[i].name;
        tensor->element_bytes = types[i].bytes;
        return TRUE;
      }
  return FALSE;
}

/* Fills bytes with what shape and type ask for. */
static gboolean
read_shape (JsonObject *object, RnStoredTensor *tensor)
{
  JsonArray *shape = get_array (object, "shape");
  if (shape == NULL || json_array_get_length (shape) > RN_SAFETENSORS_MAX_DIMS)
    return FALSE;
  tensor->rank = (int) json_array_get_length (shape);
  tensor->bytes = tensor->element_bytes;
  for (int i = 0; i < tensor->rank; i++)
    if (!read_size (shape, (guint) i, &tensor->dims[i])
        || !g_size_checked_mul (&tensor->bytes, tensor->bytes, (gsize) tensor->dims[i]))
      return FALSE;
  return TRUE;
}

static gboolean
read_tensor (RnSafetensors *file, const char *name, JsonNode *node, GError **error)
{
  const guint8 *data = (const guint8 *) file->header + file->header_bytes;
  gsize data_bytes = file->size - 8 - file->header_bytes;
  RnStoredTensor *tensor = g_new0 (RnStoredTensor, 1);
  tensor->name = g_strdup (name);
  g_ptr_array_add (file->tensors, tensor);

  if (!JSON_NODE_HOLDS_OBJECT (node))
    return damaged (file, error, "tensor \"%s\" is not described by an object", name);
  JsonObject *object = json_node_get_object (node);
  if (!read_type (object, tensor))
    return damaged (file, error, "tensor \"%s\" has an unknown dtype", name);
  if (!read_shape (object, tensor))
    return damaged (file, error, "tensor \"%s\" has no sound shape", name);

  JsonArray *offsets = get_array (object, "data_offsets");
  gint64 begin, end;
  if (offsets == NULL || json_array_get_length (offsets) != 2 || !read_size (offsets, 0, &begin)
      || !read_size (offsets, 1, &end) || begin > end || (guint64) end > data_bytes)
    return damaged (file, error, "tensor \"%s\" does not lie inside the file", name);
  if ((guint64) (end - begin) != tensor->bytes)
    return damaged (file, error, "tensor \"%s\" takes %" G_GINT64_FORMAT " bytes, its shape %" G_GSIZE_FORMAT,
                    name, end - begin, tensor->bytes);
  tensor->data = data + begin;
  g_hash_table_insert (file->by_name, tensor->name, tensor);
  return TRUE;
}

static gboolean
read_metadata (RnSafetensors *file, JsonNode *node, GError **error)
{
  if (!JSON_NODE_HOLDS_OBJECT (node))
    return damaged (file, error, "__metadata__ is not an object");

  JsonObjectIter iter;
  const char *key;
  JsonNode *value;
  json_object_iter_init (&iter, json_node_get_object (node));
  while (json_object_iter_next (&iter, &key, &value))
    {
      const char *text = get_string (value);
      if (text == NULL)
        return damaged (file, error, "metadata \"%s\" is not a text", key);
      g_hash_table_insert (file->metadata, g_strdup (key), g_strdup (text));
    }
  return TRUE;
}

static int
compare_data (gconstpointer a, gconstpointer b)
{
  const RnStoredTensor *x = *(const RnStoredTensor *const *) a, *y = *(const RnStoredTensor *const *) b;
  if (x->data != y->data)
    return x->data < y->data ? -1 : 1;
  /* An empty tensor lies before the one that starts at its place. */
  return x->bytes == y->bytes ? strcmp (x->name, y->name) : x->bytes < y->bytes ? -1 : 1;
}

/* Every byte of the data belongs to one tensor. */
static gboolean
check_coverage (RnSafetensors *file, GError **error)
{
  const guint8 *next = (const guint8 *) file->header + file->header_bytes;

  g_ptr_array_sort (file->tensors, compare_data);
  for (guint i = 0; i < file->tensors->len; i++)
    {
      const RnStoredTensor *tensor = g_ptr_array_index (file->tensors, i);
      if (tensor->data != next)
        return damaged (file, error, "%s tensor \"%s\"",
                        tensor->data < next ? "another one overlaps" : "a gap before", tensor->name);
      next += tensor->bytes;
    }
  if (next != file->bytes + file->size)
    return damaged (file, error, "%" G_GSIZE_FORMAT " bytes at the end belong to no tensor",
                    (gsize) (file->bytes + file->size - next));
  return TRUE;
}

static gboolean
read_header (RnSafetensors *file, GError **error)
{
  guint64 header_bytes;

  if (file->size < 8)
    return damaged (file, error, "%" G_GSIZE_FORMAT " bytes", file->size);
  memcpy (&header_bytes, file->bytes, 8);
  header_bytes = GUINT64_FROM_LE (header_bytes);
  if (header_bytes > RN_SAFETENSORS_MAX_HEADER || header_bytes > file->size - 8)
    return damaged (file, error, "a header of %" G_GUINT64_FORMAT " bytes", header_bytes);
  file->header = (const char *) file->bytes + 8;
  file->header_bytes = (gsize) header_bytes;

  g_autoptr (GError) cause = NULL;
  g_autoptr (JsonParser) parser = json_parser_new ();
  if (!rn_json_check (file->header, file->header_bytes, MAX_DEPTH, &cause)
      || !json_parser_load_from_data (parser, file->header, (gssize) file->header_bytes, &cause))
    return damaged (file, error, "header: %s", cause->message);
  JsonNode *root = json_parser_get_root (parser);
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root))
    return damaged (file, error, "the header is not an object");

  JsonObjectIter iter;
  const char *name;
  JsonNode *node;
  json_object_iter_init (&iter, json_node_get_object (root));
  while (json_object_iter_next (&iter, &name, &node))
    if (!(strcmp (name, "__metadata__") == 0 ? read_metadata (file, node, error)
                                             : read_tensor (file, name, node, error)))
      return FALSE;
  return check_coverage (file, error);
}

static RnSafetensors *
safetensors_new (const char *path, const void *bytes, gsize size)
{
  RnSafetensors *file = g_new0 (RnSafetensors, 1);
  file->path = g_strdup (path);
  file->bytes = bytes;
  file->size = size;
  file->tensors = g_ptr_array_new_with_free_func (stored_tensor_free);
  file->by_name = g_hash_table_new (g_str_hash, g_str_equal);
  file->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return file;
}

RnSafetensors *
rn_safetensors_open_memory (const void *bytes, gsize size, const char *name, GError **error)
{
  g_autoptr (RnSafetensors) file = safetensors_new (name, bytes, size);
  return read_header (file, error) ? g_steal_pointer (&file) : NULL;
}

static GMappedFile *
map_file (const char *path, GError **error)
{
  g_autoptr (GError) cause = NULL;
  int fd = rn_open_regular (path, NULL);
  const char *problem = fd < 0 ? rn_open_problem (errno) : NULL;
  GMappedFile *map = fd >= 0 ? g_mapped_file_new_from_fd (fd, FALSE, &cause) : NULL;

  if (fd >= 0)
    close (fd);
  if (map == NULL)
    g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING, "%s: %s", path,
                 problem != NULL ? problem : cause->message);
  return map;
}

RnSafetensors *
rn_safetensors_open (const char *path, GError **error)
{
  g_autoptr (GMappedFile) map = map_file (path, error);

  if (map == NULL)
    return NULL;
  g_autoptr (RnSafetensors) file =
      safetensors_new (path, g_mapped_file_get_contents (map), g_mapped_file_get_length (map));
  file->map = g_steal_pointer (&map);
  return read_header (file, error) ? g_steal_pointer (&file) : NULL;
}

const char *
rn_safetensors_path (const RnSafetensors *file)
{
  return file->path;
}

guint
rn_safetensors_size (const RnSafetensors *file)
{
  return file->tensors->len;
}

const RnStoredTensor *
rn_safetensors_get (const RnSafetensors *file, guint i)
{
  g_return_val_if_fail (i < file->tensors->len, NULL);
  return g_ptr_array_index (file->tensors, i);
}

const RnStoredTensor *
rn_safetensors_find (const RnSafetensors *file, const char *name)
{
  return g_hash_table_lookup (file->by_name, name);
}

const char *
rn_safetensors_metadata (const RnSafetensors *file, const char *key)
{
  return g_hash_table_lookup (file->metadata, key);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

GPtrArray *
rn_safetensors_metadata_keys (const RnSafetensors *file, const char *prefix)
{
  GPtrArray *keys = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer key;

  g_hash_table_iter_init (&iter, file->metadata);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    if (g_str_has_prefix (key, prefix))
      g_ptr_array_add (keys, key);
  g_ptr_array_sort (keys, compare_names);
  return keys;
}

/*
 * Gives the pages of a range of the mapping back: the file is large, and what a run needs is known to the
 * byte and must not seem to be more. Reading them again is possible.
 */
static void
forget (const RnSafetensors *file, const guint8 *from, gsize size)
{
  gsize page = (gsize) sysconf (_SC_PAGESIZE), skip = (page - (gsize) from % page) % page;

  if (file->map != NULL && size > skip)
    (void) madvise ((gpointer) (from + skip), size - skip, MADV_DONTNEED); /* no harm if it does not */
}

void
rn_safetensors_forget (const RnSafetensors *file, const RnStoredTensor *tensor)
{
  forget (file, tensor->data, tensor->bytes);
}

/* crc32c over a long range, whose pages are given back on the way. */
static guint32
checksum_range (const RnSafetensors *file, guint32 crc, const guint8 *from, gsize size)
{
  for (gsize done = 0, n; done < size; done += n)
    {
      n = MIN (size - done, CHECKSUM_STEP);
      crc = rn_crc32c (crc, from + done, n);
      forget (file, from + done, n);
    }
  return crc;
}

gboolean
rn_safetensors_verify (const RnSafetensors *file, GError **error)
{
  const gsize place = strlen (RN_SAFETENSORS_PREFIX), length = strlen (RN_SAFETENSORS_NO_CHECKSUM);
  const char *stored = rn_safetensors_metadata (file, "checksum");

  if (stored == NULL)
    return TRUE;
  if (file->header_bytes < place + length || memcmp (file->header, RN_SAFETENSORS_PREFIX, place) != 0)
    return damaged (file, error, "the checksum is not in its place");

  guint32 crc = rn_crc32c (0, file->header, place);
  crc = rn_crc32c (crc, RN_SAFETENSORS_NO_CHECKSUM, length);
  const guint8 *rest = (const guint8 *) file->header + place + length;
  crc = checksum_range (file, crc, rest, (gsize) (file->bytes + file->size - rest));

  g_autofree char *computed = g_strdup_printf (RN_SAFETENSORS_CHECKSUM_FORMAT, crc);
  if (strcmp (computed, stored) != 0)
    return damaged (file, error, "its checksum is %s, its content gives %s", stored, computed);
  return TRUE;
}
