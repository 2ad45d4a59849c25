/*
 * What torch.save wrote before 1.6: five pickles one after the other (a magic number, the protocol's version,
 * facts about the machine, the object, the keys of the storages), then for each key the number of elements as
 * int64 and the elements. torch/serialization.py, _legacy_save.
 */
#include "config.h"

#include "runner/weights/weights-private.h"

#include <string.h>

#define PROTOCOL_VERSION 1001
#define BUFFER_BYTES 65536

/* 0x1950a86a20f9469cfc6c, pickled. */
static const guint8 magic[] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.' };

/* Buffered reading, because pickles are read byte by byte. */
typedef struct
{
  const RnWeights *weights;
  guint64 position; /* of the next byte to hand out */
  gsize used, n;    /* of buffer */
  guint8 buffer[BUFFER_BYTES];
} Reader;

static gboolean
reader_read (gpointer source, void *dst, gsize bytes, GError **error)
{
  Reader *reader = source;

  while (bytes > 0)
    {
      if (reader->used == reader->n)
        {
          reader->used = 0;
          reader->n = (gsize) MIN (BUFFER_BYTES, reader->weights->size - reader->position);
          if (reader->n == 0)
            return rn_weights_damaged (reader->weights, error, "it ends early");
          if (!rn_weights_read_at (reader->weights, reader->position, reader->buffer, reader->n, error))
            return FALSE;
        }
      gsize n = MIN (bytes, reader->n - reader->used);
      memcpy (dst, reader->buffer + reader->used, n);
      reader->used += n;
      reader->position += n;
      dst = (char *) dst + n;
      bytes -= n;
    }
  return TRUE;
}

gboolean
rn_weights_is_torch_legacy (const guint8 *head, gsize n)
{
  const gsize frame = 9; /* FRAME and a length, in protocols 4 and 5 */
  gsize start = n > 2 && head[2] == 0x95 ? 2 + frame : 2;

  return n >= start + sizeof magic && head[0] == 0x80 && memcmp (head + start, magic, sizeof magic) == 0;
}

/* The version and the facts about the machine that wrote the file. */
static gboolean
read_preamble (RnWeights *weights, RnPickleSource *source, GError **error)
{
  g_autoptr (RnPickle) number = rn_pickle_read (source, weights->path, error);
  g_autoptr (RnPickle) version = number != NULL ? rn_pickle_read (source, weights->path, error) : NULL;
  g_autoptr (RnPickle) machine = version != NULL ? rn_pickle_read (source, weights->path, error) : NULL;

  if (machine == NULL)
    return FALSE;
  if (version->root->kind != RN_PICKLE_INT || version->root->integer != PROTOCOL_VERSION)
    return rn_weights_damaged (weights, error, "not version %d of PyTorch's older format", PROTOCOL_VERSION);
  const RnPickleValue *little = rn_pickle_lookup (machine->root, "little_endian");
  if (little != NULL && (little->kind != RN_PICKLE_BOOL || !little->integer))
    return rn_weights_damaged (weights, error, "written on a big-endian machine, which is not supported");
  return TRUE;
}

static gboolean
place_storage (RnWeights *weights, const RnPickleStorage *stored, RnWeightStorage *storage, guint64 *position,
               GError **error)
{
  guint64 n;
  gsize bytes;

  if (storage->place != 0)
    return rn_weights_damaged (weights, error, "storage \"%s\" is listed twice", stored->key);
  if (weights->size - *position < sizeof n)
    return rn_weights_damaged (weights, error, "it ends before storage \"%s\"", stored->key);
  if (!rn_weights_read_at (weights, *position, &n, sizeof n, error))
    return FALSE;
  *position += sizeof n;
  n = GUINT64_FROM_LE (n);
  if (!g_size_checked_mul (&bytes, n, stored->type->bytes) || bytes != stored->bytes)
    return rn_weights_damaged (weights, error,
                               "storage \"%s\" has %" G_GUINT64_FORMAT " elements of %" G_GSIZE_FORMAT
                               " bytes, its tensors expect %" G_GSIZE_FORMAT " bytes",
                               stored->key, n, stored->type->bytes, stored->bytes);
  if (bytes > weights->size - *position)
    return rn_weights_damaged (weights, error,
                               "it ends inside storage \"%s\"; a download that was cut short?", stored->key);
  storage->place = *position;
  *position += bytes;
  return TRUE;
}

/* The storages follow in the order of @keys. */
static gboolean
place_storages (RnWeights *weights, const RnPickle *object, const RnPickle *keys, guint64 position,
                GError **error)
{
  g_autoptr (GHashTable) by_key = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < object->storages->len; i++)
    {
      RnPickleStorage *stored = g_ptr_array_index (object->storages, i);
      RnWeightStorage storage = { .bytes = stored->bytes };
      g_array_append_val (weights->storages, storage);
      g_hash_table_insert (by_key, stored->key, GUINT_TO_POINTER (i + 1));
    }
  if (keys->root->kind != RN_PICKLE_LIST)
    return rn_weights_damaged (weights, error, "the list of storages is missing");
  for (guint i = 0; i < rn_pickle_n_items (keys->root); i++)
    {
      const char *key = rn_pickle_string (rn_pickle_item (keys->root, i));
      guint found = key != NULL ? GPOINTER_TO_UINT (g_hash_table_lookup (by_key, key)) : 0;
      if (found == 0)
        return rn_weights_damaged (weights, error, "storage %u of the list belongs to no tensor", i);
      if (!place_storage (weights, g_ptr_array_index (object->storages, found - 1),
                          &g_array_index (weights->storages, RnWeightStorage, found - 1), &position, error))
        return FALSE;
    }
  for (guint i = 0; i < weights->storages->len; i++)
    if (g_array_index (weights->storages, RnWeightStorage, i).place == 0)
      return rn_weights_damaged (weights, error, "storage \"%s\" is not in the file",
                                 ((RnPickleStorage *) g_ptr_array_index (object->storages, i))->key);
  return TRUE;
}

gboolean
rn_weights_open_torch_legacy (RnWeights *weights, GError **error)
{
  g_autofree Reader *reader = g_new (Reader, 1);
  reader->weights = weights;
  reader->position = 0;
  reader->used = reader->n = 0;
  RnPickleSource source = { reader_read, reader, weights->size };

  if (!read_preamble (weights, &source, error))
    return FALSE;
  g_autoptr (RnPickle) object = rn_pickle_read (&source, weights->path, error);
  g_autoptr (RnPickle) keys = object != NULL ? rn_pickle_read (&source, weights->path, error) : NULL;
  return keys != NULL && place_storages (weights, object, keys, reader->position, error)
         && rn_weights_take_pickle (weights, object, error);
}
