/*
 * What torch.save writes since 1.6: a zip archive with PREFIX/data.pkl, and PREFIX/data/KEY for the bytes of
 * each storage, stored without compression. Names in the archive are only compared, never used as paths.
 */
#include "config.h"

#include "runner/weights/weights-private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#define PICKLE_NAME "data.pkl"
#define MAX_PICKLE (256 << 20)
#define CHUNK_BYTES 65536
/* Somebody may have packed a checkpoint again, with compression. Weights shrink little; zeros much. */
#define MAX_RATIO 64
#define FREE_BYTES (1 << 20) /* what any entry may expand to */

struct _RnTorchZip
{
  zip_t *archive;
  char *prefix; /* ends with a slash */
};

void
rn_torch_zip_free (RnTorchZip *zip)
{
  if (zip == NULL)
    return;
  if (zip->archive != NULL)
    zip_discard (zip->archive);
  g_free (zip->prefix);
  g_free (zip);
}

static gboolean
open_archive (RnWeights *weights, GError **error)
{
  int fd = dup (weights->fd);
  FILE *file = fd >= 0 ? fdopen (fd, "rb") : NULL;
  zip_error_t problem;
  zip_error_init (&problem);
  zip_source_t *source = file != NULL ? zip_source_filep_create (file, 0, -1, &problem) : NULL;

  if (source != NULL && (weights->zip->archive = zip_open_from_source (source, ZIP_RDONLY, &problem)) == NULL)
    {
      zip_source_free (source);
      rn_weights_damaged (weights, error, "a damaged zip archive (%s); a download that was cut short?",
                          zip_error_strerror (&problem));
    }
  else if (source == NULL)
    {
      if (file != NULL)
        fclose (file);
      else if (fd >= 0)
        close (fd);
      rn_weights_damaged (weights, error, "cannot open the zip archive");
    }
  zip_error_fini (&problem);
  return weights->zip->archive != NULL;
}

/* What stands before data.pkl; torch.save takes it from the file's name. */
static gboolean
find_prefix (RnWeights *weights, GError **error)
{
  zip_int64_t n = zip_get_num_entries (weights->zip->archive, 0);

  for (zip_int64_t i = 0; i < n; i++)
    {
      const char *name = zip_get_name (weights->zip->archive, (zip_uint64_t) i, ZIP_FL_ENC_RAW);
      const char *slash = name != NULL ? strchr (name, '/') : NULL;
      if (slash != NULL && strcmp (slash + 1, PICKLE_NAME) == 0)
        {
          weights->zip->prefix = g_strndup (name, (gsize) (slash + 1 - name));
          return TRUE;
        }
    }
  return rn_weights_damaged (weights, error,
                             "a zip archive without " PICKLE_NAME ": torch.save did not write it");
}

/* The entry PREFIX/@folder@name; -1 without an error if there is none. */
static zip_int64_t
locate (const RnWeights *weights, const char *folder, const char *name)
{
  g_autofree char *path = g_strconcat (weights->zip->prefix, folder, name, NULL);
  return zip_name_locate (weights->zip->archive, path, ZIP_FL_ENC_RAW);
}

/* Its size, after looking whether that can be true. */
static gboolean
check_entry (RnWeights *weights, zip_int64_t index, const char *name, gsize *bytes, gboolean *packed,
             GError **error)
{
  zip_stat_t info;
  *bytes = 0;
  *packed = FALSE;
  const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;

  if (zip_stat_index (weights->zip->archive, (zip_uint64_t) index, 0, &info) != 0
      || (info.valid & wanted) != wanted)
    return rn_weights_damaged (weights, error, "entry \"%s\" of the archive has no size", name);
  if (info.comp_size > weights->size || info.size > G_MAXINT64)
    return rn_weights_damaged (weights, error, "entry \"%s\" of the archive is larger than the file", name);
  if ((info.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && info.encryption_method != ZIP_EM_NONE)
    return rn_weights_damaged (weights, error, "entry \"%s\" of the archive is encrypted", name);
  if (info.comp_method == ZIP_CM_STORE)
    {
      if (info.size != info.comp_size)
        return rn_weights_damaged (weights, error, "entry \"%s\" of the archive has two sizes", name);
    }
  else if (info.comp_method != ZIP_CM_DEFLATE)
    return rn_weights_damaged (weights, error,
                               "entry \"%s\" of the archive is packed by method %u; expected 0", name,
                               info.comp_method);
  else if (info.size > FREE_BYTES && info.size / MAX_RATIO > info.comp_size)
    return rn_weights_damaged (weights, error,
                               "entry \"%s\" of the archive claims to expand from %" G_GUINT64_FORMAT
                               " to %" G_GUINT64_FORMAT " bytes: refused",
                               name, (guint64) info.comp_size, (guint64) info.size);
  *bytes = (gsize) info.size;
  *packed = info.comp_method != ZIP_CM_STORE;
  return TRUE;
}

static gboolean
entry_failed (RnWeights *weights, zip_file_t *entry, GError **error)
{
  zip_error_t *problem = zip_file_get_error (entry);

  if (zip_error_code_zip (problem) == ZIP_ER_CRC)
    return rn_weights_damaged (weights, error, "damaged: the checksum of a part of the archive does not fit");
  return rn_weights_damaged (weights, error, "cannot read the archive: %s", zip_error_strerror (problem));
}

static gboolean
read_some (RnWeights *weights, zip_file_t *entry, void *dst, gsize bytes, GError **error)
{
  for (gsize done = 0; done < bytes;)
    {
      zip_int64_t n = zip_fread (entry, (char *) dst + done, bytes - done);
      if (n < 0)
        return entry_failed (weights, entry, error);
      if (n == 0)
        return rn_weights_damaged (weights, error, "a part of the archive ends early");
      done += (gsize) n;
    }
  return TRUE;
}

static gboolean
skip (RnWeights *weights, zip_file_t *entry, gsize bytes, GError **error)
{
  guint8 chunk[CHUNK_BYTES];

  for (gsize n; bytes > 0; bytes -= n)
    {
      n = MIN (bytes, sizeof chunk);
      if (!read_some (weights, entry, chunk, n, error))
        return FALSE;
    }
  return TRUE;
}

/* Reading the end of an entry makes libzip compare size and checksum. */
static gboolean
expect_end (RnWeights *weights, zip_file_t *entry, GError **error)
{
  guint8 byte;
  zip_int64_t n = zip_fread (entry, &byte, 1);

  if (n < 0)
    return entry_failed (weights, entry, error);
  return n == 0 || rn_weights_damaged (weights, error, "a part of the archive is longer than it says");
}

static zip_file_t *
open_entry (RnWeights *weights, guint64 index, GError **error)
{
  zip_file_t *entry = zip_fopen_index (weights->zip->archive, index, 0);
  if (entry == NULL)
    rn_weights_damaged (weights, error, "cannot read the archive: %s", zip_strerror (weights->zip->archive));
  return entry;
}

/* The first time the whole entry is read, for its checksum. */
gboolean
rn_torch_zip_read (RnWeights *weights, RnWeightStorage *storage, gsize offset, void *dst, gsize bytes,
                   GError **error)
{
  zip_file_t *entry = open_entry (weights, storage->place, error);
  if (entry == NULL)
    return FALSE;

  gboolean ok;
  if (storage->checked && !storage->packed && zip_fseek (entry, (zip_int64_t) offset, SEEK_SET) == 0)
    ok = read_some (weights, entry, dst, bytes, error);
  else
    ok = skip (weights, entry, offset, error) && read_some (weights, entry, dst, bytes, error);
  if (ok && !storage->checked)
    ok = skip (weights, entry, storage->bytes - offset - bytes, error) && expect_end (weights, entry, error);
  storage->checked = storage->checked || ok;
  zip_fclose (entry);
  return ok;
}

/* A whole small entry. (transfer full) */
static char *
read_entry (RnWeights *weights, zip_int64_t index, const char *name, gsize max_bytes, gsize *bytes,
            GError **error)
{
  gboolean packed;

  if (!check_entry (weights, index, name, bytes, &packed, error))
    return NULL;
  g_autofree char *data = *bytes <= max_bytes ? g_try_malloc (*bytes + 1) : NULL;
  if (data == NULL)
    {
      rn_weights_damaged (weights, error,
                          "entry \"%s\" of the archive is too large, %" G_GSIZE_FORMAT " bytes", name,
                          *bytes);
      return NULL;
    }
  RnWeightStorage whole = { .place = (guint64) index, .bytes = *bytes };
  data[*bytes] = '\0';
  return rn_torch_zip_read (weights, &whole, 0, data, *bytes, error) ? g_steal_pointer (&data) : NULL;
}

static gboolean
check_byte_order (RnWeights *weights, GError **error)
{
  zip_int64_t index = locate (weights, "", "byteorder");
  gsize bytes;

  if (index < 0) /* older than 2.1 */
    return TRUE;
  g_autofree char *order = read_entry (weights, index, "byteorder", 64, &bytes, error);
  if (order == NULL)
    return FALSE;
  return strcmp (order, "little") == 0
         || rn_weights_damaged (weights, error, "written on a big-endian machine, which is not supported");
}

static gboolean
read_memory (gpointer source, void *dst, gsize bytes, G_GNUC_UNUSED GError **error)
{
  const char **at = source;
  memcpy (dst, *at, bytes);
  *at += bytes;
  return TRUE;
}

static RnPickle *
read_pickle (RnWeights *weights, GError **error)
{
  gsize bytes;
  g_autofree char *data =
      read_entry (weights, locate (weights, "", PICKLE_NAME), PICKLE_NAME, MAX_PICKLE, &bytes, error);
  if (data == NULL)
    return NULL;
  const char *at = data;
  RnPickleSource source = { read_memory, &at, bytes };
  return rn_pickle_read (&source, weights->path, error);
}

/* Every storage that the pickle describes must be in the archive, of that size. */
static gboolean
find_storages (RnWeights *weights, const RnPickle *pickle, GError **error)
{
  for (guint i = 0; i < pickle->storages->len; i++)
    {
      const RnPickleStorage *stored = g_ptr_array_index (pickle->storages, i);
      zip_int64_t index = locate (weights, "data/", stored->key);
      gsize bytes;
      gboolean packed;
      if (index < 0)
        return rn_weights_damaged (weights, error, "storage \"%s\" is not in the archive", stored->key);
      if (!check_entry (weights, index, stored->key, &bytes, &packed, error))
        return FALSE;
      if (bytes != stored->bytes)
        return rn_weights_damaged (weights, error,
                                   "storage \"%s\" has %" G_GSIZE_FORMAT
                                   " bytes, its tensors expect %" G_GSIZE_FORMAT,
                                   stored->key, bytes, stored->bytes);
      RnWeightStorage storage = { .place = (guint64) index, .bytes = bytes, .packed = packed };
      g_array_append_val (weights->storages, storage);
    }
  return TRUE;
}

/* Each of them would unpack it again from its start. */
static gboolean
refuse_shared_packed (RnWeights *weights, GError **error)
{
  g_autofree guint8 *n_users = g_new0 (guint8, weights->storages->len + 1);

  for (guint i = 0; i < weights->items->len; i++)
    {
      const RnWeightItem *item = g_ptr_array_index (weights->items, i);
      n_users[item->storage] = MIN (n_users[item->storage] + 1, 2);
      if (n_users[item->storage] > 1
          && g_array_index (weights->storages, RnWeightStorage, item->storage).packed)
        return rn_weights_damaged (
            weights, error,
            "\"%s\" shares a storage that is compressed; pack the archive anew without "
            "compression (zip -0)",
            item->weight.name);
    }
  return TRUE;
}

gboolean
rn_weights_open_torch_zip (RnWeights *weights, GError **error)
{
  weights->zip = g_new0 (RnTorchZip, 1);
  if (!open_archive (weights, error) || !find_prefix (weights, error))
    return FALSE;
  if (locate (weights, "", "constants.pkl") >= 0)
    return rn_weights_damaged (weights, error,
                               "a TorchScript program, not a checkpoint; save the model's "
                               "state_dict () instead");
  if (!check_byte_order (weights, error))
    return FALSE;
  g_autoptr (RnPickle) pickle = read_pickle (weights, error);
  return pickle != NULL && find_storages (weights, pickle, error)
         && rn_weights_take_pickle (weights, pickle, error) && refuse_shared_packed (weights, error);
}
