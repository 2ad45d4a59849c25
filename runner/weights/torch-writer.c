/*
 * A zip archive as torch.save writes it: PREFIX/data.pkl, PREFIX/byteorder, PREFIX/data/N, PREFIX/version;
 * every entry stored, its data on a 64-byte border, so that torch.load (mmap=True) can map them. The pickle
 * uses the few opcodes that torch.load (weights_only=True) knows.
 *
 * The zip format: APPNOTE.TXT 6.3.9, sections 4.3 and 4.5.3 (zip64, where a number does not fit).
 */
#include "config.h"

#include "runner/weights/torch-writer.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/weights/weights-types.h"
#include "runner/weights/weights.h"
#include "runner/weights/zip-writer.h"

#include <string.h>

#define PREFIX "archive/"
#define LAYOUT_VERSION "3\n" /* of the archive, as torch.save has it */

typedef struct
{
  char *name;
  const RnWeightType *type; /* NULL: none that torch has a storage for */
  int rank;
  int64_t dims[RN_WEIGHTS_MAX_DIMS];
  gsize n; /* elements */
  RnTorchRead read;
  gpointer source;
  GDestroyNotify free_source;
} Entry;

struct _RnTorchWriter
{
  GPtrArray *entries; /* of Entry */
  char **classes;     /* NULL: none */
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

RnTorchWriter *
rn_torch_writer_new (void)
{
  RnTorchWriter *writer = g_new0 (RnTorchWriter, 1);
  writer->entries = g_ptr_array_new_with_free_func (entry_free);
  return writer;
}

void
rn_torch_writer_free (RnTorchWriter *writer)
{
  if (writer == NULL)
    return;
  g_ptr_array_unref (writer->entries);
  g_strfreev (writer->classes);
  g_free (writer);
}

void
rn_torch_writer_add (RnTorchWriter *writer, const char *name, const char *type, int rank, const int64_t *dims,
                     RnTorchRead read, gpointer source, GDestroyNotify free_source)
{
  g_return_if_fail (rank >= 0 && rank <= RN_WEIGHTS_MAX_DIMS);

  Entry *entry = g_new0 (Entry, 1);
  entry->name = g_strdup (name);
  entry->type = rn_weight_type_by_name (type);
  entry->rank = rank;
  entry->n = 1;
  for (int i = 0; i < rank; i++)
    {
      entry->dims[i] = dims[i];
      entry->n *= (gsize) dims[i];
    }
  entry->read = read;
  entry->source = source;
  entry->free_source = free_source;
  g_ptr_array_add (writer->entries, entry);
}

void
rn_torch_writer_set_classes (RnTorchWriter *writer, const char *const *classes)
{
  g_strfreev (writer->classes);
  writer->classes = g_strdupv ((char **) classes);
}

/* ---- The pickle, of protocol 2 ---- */

static void
put_little (GString *pickle, guint64 number, int bytes)
{
  for (int i = 0; i < bytes; i++)
    g_string_append_c (pickle, (char) (number >> (8 * i) & 0xff));
}

static void
put_text (GString *pickle, const char *text)
{
  g_string_append_c (pickle, 'X');
  put_little (pickle, strlen (text), 4);
  g_string_append (pickle, text);
}

static void
put_int (GString *pickle, gint64 number)
{
  if (number >= 0 && number <= 0xff)
    {
      g_string_append_c (pickle, 'K');
      put_little (pickle, (guint64) number, 1);
    }
  else if (number >= G_MININT32 && number <= G_MAXINT32)
    {
      g_string_append_c (pickle, 'J');
      put_little (pickle, (guint64) number, 4);
    }
  else
    {
      g_string_append (pickle, "\x8a\x08"); /* LONG1 */
      put_little (pickle, (guint64) number, 8);
    }
}

static void
put_sizes (GString *pickle, const int64_t *sizes, int rank)
{
  g_string_append_c (pickle, '(');
  for (int i = 0; i < rank; i++)
    put_int (pickle, sizes[i]);
  g_string_append_c (pickle, 't');
}

#define EMPTY_ORDERED_DICT "ccollections\nOrderedDict\n)R"

/* _rebuild_tensor_v2 (storage, 0, sizes, strides, False, OrderedDict ()) */
static void
put_tensor (GString *pickle, const Entry *entry, guint key)
{
  g_autofree char *key_text = g_strdup_printf ("%u", key);
  int64_t strides[RN_WEIGHTS_MAX_DIMS], stride = 1;

  for (int i = entry->rank; i-- > 0;)
    {
      strides[i] = stride;
      stride *= MAX (entry->dims[i], 1);
    }
  g_string_append (pickle, "ctorch._utils\n_rebuild_tensor_v2\n((");
  put_text (pickle, "storage");
  g_string_append_printf (pickle, "ctorch\n%s\n", entry->type->storage);
  put_text (pickle, key_text);
  put_text (pickle, "cpu");
  put_int (pickle, (gint64) entry->n);
  g_string_append (pickle, "tQ");
  put_int (pickle, 0);
  put_sizes (pickle, entry->dims, entry->rank);
  put_sizes (pickle, strides, entry->rank);
  g_string_append (pickle, "\x89" EMPTY_ORDERED_DICT "tR");
}

static void
put_state_dict (GString *pickle, const RnTorchWriter *writer)
{
  g_string_append (pickle, EMPTY_ORDERED_DICT "(");
  for (guint i = 0; i < writer->entries->len; i++)
    {
      const Entry *entry = g_ptr_array_index (writer->entries, i);
      put_text (pickle, entry->name);
      put_tensor (pickle, entry, i);
    }
  g_string_append_c (pickle, 'u');
}

static GString *
make_pickle (const RnTorchWriter *writer, gboolean with_meta)
{
  GString *pickle = g_string_new ("\x80\x02");

  if (with_meta)
    {
      g_string_append (pickle, "}(");
      put_text (pickle, "meta");
      g_string_append_c (pickle, '}');
      if (writer->classes != NULL)
        {
          put_text (pickle, "CLASSES");
          g_string_append_c (pickle, '(');
          for (guint i = 0; writer->classes[i] != NULL; i++)
            put_text (pickle, writer->classes[i]);
          g_string_append (pickle, "ts");
        }
      put_text (pickle, "state_dict");
    }
  put_state_dict (pickle, writer);
  g_string_append (pickle, with_meta ? "u." : ".");
  return pickle;
}

/* ---- Saving ---- */

static gboolean
write_tensor (RnZipWriter *zip, const Entry *entry, guint key, GError **error)
{
  g_autofree char *name = g_strdup_printf (PREFIX "data/%u", key);
  gsize bytes = entry->n * entry->type->bytes;
  g_autofree void *data = g_try_malloc (MAX (bytes, 1));

  if (data == NULL)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE,
                   "no memory for the %" G_GSIZE_FORMAT " bytes of \"%s\"", bytes, entry->name);
      return FALSE;
    }
  return (bytes == 0 || entry->read (entry->source, data, bytes, error))
         && rn_zip_writer_add (zip, name, data, bytes, error);
}

static gboolean
save (RnTorchWriter *writer, const char *path, gboolean with_meta, GError **error)
{
  for (guint i = 0; i < writer->entries->len; i++)
    {
      const Entry *entry = g_ptr_array_index (writer->entries, i);
      if (entry->type == NULL || entry->type->storage == NULL)
        {
          g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE,
                       "%s: \"%s\" has a type that PyTorch has no storage for", path, entry->name);
          return FALSE;
        }
    }

  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);
  if (file == NULL)
    return FALSE;
  g_autoptr (RnZipWriter) zip = rn_zip_writer_new (file);
  GString *pickle = make_pickle (writer, with_meta);
  gboolean ok = rn_zip_writer_add (zip, PREFIX "data.pkl", pickle->str, pickle->len, error);
  g_string_free (pickle, TRUE);
  ok = ok && rn_zip_writer_add (zip, PREFIX "byteorder", "little", strlen ("little"), error);
  for (guint i = 0; ok && i < writer->entries->len; i++)
    ok = write_tensor (zip, g_ptr_array_index (writer->entries, i), i, error);
  return ok && rn_zip_writer_add (zip, PREFIX "version", LAYOUT_VERSION, strlen (LAYOUT_VERSION), error)
         && rn_zip_writer_finish (zip, error) && rn_atomic_file_commit (file, error);
}

gboolean
rn_torch_writer_save (RnTorchWriter *writer, const char *path, gboolean with_meta, GError **error)
{
  g_autoptr (GError) cause = NULL;

  if (save (writer, path, with_meta, &cause))
    return TRUE;
  g_set_error_literal (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE, cause->message);
  return FALSE;
}
