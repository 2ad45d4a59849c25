#include "config.h"

#include "runner/safetensors.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/crc32c.h"
#include "runner/safetensors-format.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define CHUNK_BYTES (1 << 20)

typedef struct
{
  char *name;
  const char *type; /* as in the file, interned */
  gsize element_bytes, bytes;
  int rank;
  int64_t dims[RN_SAFETENSORS_MAX_DIMS];
  RnTensorRead read;
  gpointer source;
  GDestroyNotify free_source;
} Entry;

struct _RnSafetensorsWriter
{
  GPtrArray *entries;   /* of Entry */
  GPtrArray *keys;      /* of char *, in order of first use */
  GHashTable *metadata; /* key -> text */
};

static void
entry_free (gpointer data)
{
  Entry *entry = data;
  if (entry->free_source != NULL)
    entry->free_source (entry->source);
  g_free (entry->name);
  g_free (entry);
}

RnSafetensorsWriter *
rn_safetensors_writer_new (void)
{
  RnSafetensorsWriter *writer = g_new0 (RnSafetensorsWriter, 1);
  writer->entries = g_ptr_array_new_with_free_func (entry_free);
  writer->keys = g_ptr_array_new_with_free_func (g_free);
  writer->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return writer;
}

void
rn_safetensors_writer_free (RnSafetensorsWriter *writer)
{
  if (writer == NULL)
    return;
  g_ptr_array_unref (writer->entries);
  g_ptr_array_unref (writer->keys);
  g_hash_table_unref (writer->metadata);
  g_free (writer);
}

void
rn_safetensors_writer_set_metadata (RnSafetensorsWriter *writer, const char *key, const char *value)
{
  if (!g_hash_table_contains (writer->metadata, key))
    g_ptr_array_add (writer->keys, g_strdup (key));
  g_hash_table_insert (writer->metadata, g_strdup (key), g_utf8_make_valid (value, -1));
}

void
rn_safetensors_writer_add_typed (RnSafetensorsWriter *writer, const char *name, const char *type,
                                 gsize element_bytes, int rank, const int64_t *dims, RnTensorRead read,
                                 gpointer source, GDestroyNotify free_source)
{
  Entry *entry = g_new0 (Entry, 1);
  entry->name = g_strdup (name);
  entry->type = g_intern_string (type);
  entry->element_bytes = entry->bytes = element_bytes;
  entry->rank = rank;
  for (int i = 0; i < rank; i++)
    {
      entry->dims[i] = dims[i];
      entry->bytes *= (gsize) dims[i];
    }
  entry->read = read;
  entry->source = source;
  entry->free_source = free_source;
  g_ptr_array_add (writer->entries, entry);
}

void
rn_safetensors_writer_add (RnSafetensorsWriter *writer, const char *name, const RnTensorDesc *desc,
                           RnTensorRead read, gpointer source, GDestroyNotify free_source)
{
  rn_safetensors_writer_add_typed (writer, name, rn_safetensors_type_name (desc->dtype),
                                   rn_dtype_size (desc->dtype), desc->rank, desc->dims, read, source,
                                   free_source);
}

/* Large elements first, so that all are aligned; then by name. */
static int
compare_entries (gconstpointer a, gconstpointer b)
{
  const Entry *x = *(const Entry *const *) a, *y = *(const Entry *const *) b;

  if (x->element_bytes != y->element_bytes)
    return x->element_bytes > y->element_bytes ? -1 : 1;
  return strcmp (x->name, y->name);
}

static void
append_tensor (JsonBuilder *builder, const Entry *entry, gsize offset)
{
  json_builder_set_member_name (builder, entry->name);
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "dtype");
  json_builder_add_string_value (builder, entry->type);
  json_builder_set_member_name (builder, "shape");
  json_builder_begin_array (builder);
  for (int i = 0; i < entry->rank; i++)
    json_builder_add_int_value (builder, entry->dims[i]);
  json_builder_end_array (builder);
  json_builder_set_member_name (builder, "data_offsets");
  json_builder_begin_array (builder);
  json_builder_add_int_value (builder, (gint64) offset);
  json_builder_add_int_value (builder, (gint64) (offset + entry->bytes));
  json_builder_end_array (builder);
  json_builder_end_object (builder);
}

/* The header with a checksum of zeros, padded with spaces so that the data starts on an 8-byte border. */
static GString *
make_header (RnSafetensorsWriter *writer)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  gsize offset = 0;

  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "__metadata__");
  json_builder_begin_object (builder);
  json_builder_set_member_name (builder, "checksum");
  json_builder_add_string_value (builder, RN_SAFETENSORS_NO_CHECKSUM);
  for (guint i = 0; i < writer->keys->len; i++)
    {
      const char *key = g_ptr_array_index (writer->keys, i);
      json_builder_set_member_name (builder, key);
      json_builder_add_string_value (builder, g_hash_table_lookup (writer->metadata, key));
    }
  json_builder_end_object (builder);
  for (guint i = 0; i < writer->entries->len; i++)
    {
      const Entry *entry = g_ptr_array_index (writer->entries, i);
      append_tensor (builder, entry, offset);
      offset += entry->bytes;
    }
  json_builder_end_object (builder);

  g_autoptr (JsonGenerator) generator = json_generator_new ();
  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  json_generator_set_root (generator, root);
  GString *header = json_generator_to_gstring (generator, g_string_new (NULL));
  while (header->len % 8 != 0)
    g_string_append_c (header, ' ');
  return header;
}

typedef gboolean (*ChunkFunc) (gconstpointer chunk, gsize size, gpointer user_data, GError **error);

static gboolean
foreach_chunk (RnSafetensorsWriter *writer, void *buffer, ChunkFunc func, gpointer user_data, GError **error)
{
  for (guint i = 0; i < writer->entries->len; i++)
    {
      const Entry *entry = g_ptr_array_index (writer->entries, i);
      gsize bytes = entry->bytes;
      for (gsize done = 0; done < bytes;)
        {
          gsize n = MIN (bytes - done, (gsize) CHUNK_BYTES);
          if (!entry->read (entry->source, done, buffer, n, error) || !func (buffer, n, user_data, error))
            return FALSE;
          done += n;
        }
    }
  return TRUE;
}

static gboolean
add_to_checksum (gconstpointer chunk, gsize size, gpointer user_data, GError **error)
{
  guint32 *crc = user_data;
  *crc = rn_crc32c (*crc, chunk, size);
  return TRUE;
}

static gboolean
write_chunk (gconstpointer chunk, gsize size, gpointer user_data, GError **error)
{
  return rn_atomic_file_write (user_data, chunk, size, error);
}

static gboolean
save (RnSafetensorsWriter *writer, const char *path, GError **error)
{
  g_autofree void *buffer = g_malloc (CHUNK_BYTES);
  g_ptr_array_sort (writer->entries, compare_entries);

  GString *header = make_header (writer);
  g_autofree char *header_text = header->str;
  gsize header_bytes = header->len;
  g_string_free (header, FALSE);
  if (header_bytes > RN_SAFETENSORS_MAX_HEADER)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE,
                   "%s: not written: its names and texts take %" G_GSIZE_FORMAT
                   " bytes, and no more than %d can be read back",
                   path, header_bytes, RN_SAFETENSORS_MAX_HEADER);
      return FALSE;
    }

  guint32 crc = rn_crc32c (0, header_text, header_bytes);
  if (!foreach_chunk (writer, buffer, add_to_checksum, &crc, error))
    return FALSE;
  char checksum[sizeof RN_SAFETENSORS_NO_CHECKSUM];
  g_snprintf (checksum, sizeof checksum, RN_SAFETENSORS_CHECKSUM_FORMAT, crc);
  memcpy (header_text + strlen (RN_SAFETENSORS_PREFIX), checksum, strlen (checksum));

  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);
  if (file == NULL)
    return FALSE;
  guint64 size = GUINT64_TO_LE (header_bytes);
  return rn_atomic_file_write (file, &size, sizeof size, error)
         && rn_atomic_file_write (file, header_text, header_bytes, error)
         && foreach_chunk (writer, buffer, write_chunk, file, error) && rn_atomic_file_commit (file, error);
}

gboolean
rn_safetensors_writer_save (RnSafetensorsWriter *writer, const char *path, GError **error)
{
  g_autoptr (GError) cause = NULL;

  if (save (writer, path, &cause))
    return TRUE;
  if (cause->domain == RN_DEVICE_ERROR) /* that a tensor was read from: no fault of the file */
    g_propagate_error (error, g_steal_pointer (&cause));
  else
    g_set_error_literal (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE, cause->message);
  return FALSE;
}
