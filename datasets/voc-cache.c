#define G_LOG_DOMAIN "rn-data"
#include "config.h"

#include "datasets/voc-cache.h"

#include "datasets/file.h"
#include "datasets/image.h"
#include "runner/base/atomic-file.h"

#include <string.h>
#include <sys/stat.h>

#define MAX_CACHE ((gsize) 1 << 30) /* bytes */

/*
 * The file: this header, then stamps, images, boxes, labels, difficult flags, names and strings without gaps,
 * in the machine's byte order, which is part of the magic number.
 */
typedef struct
{
  guint32 magic, version;
  guint64 checksum; /* of all that follows it */
  RnFileStamp list;
  int64_t findings[RN_VOC_N_FINDINGS];
  guint32 n_images, n_objects, n_names;
  guint32 names_size, strings_size; /* bytes of NUL-ended texts */
  guint32 key_size;                 /* the two paths, at the start of the strings' place */
} Header;

#define MAGIC 0x784E5231 /* "1RNx" */
#define CACHE_VERSION 3

RnFileStamp
rn_file_stamp (const char *path)
{
  struct stat info;

  if (stat (path, &info) != 0)
    return (RnFileStamp){ 0, -1 };
  return (RnFileStamp){ (int64_t) info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec, info.st_size };
}

char *
rn_voc_annotation_path (const char *prefix, const char *id)
{
  g_autofree char *name = g_strconcat (id, ".xml", NULL);

  return g_build_filename (prefix, "Annotations", name, NULL);
}

/* FNV-1a. */
static guint64
checksum_of (const guint8 *data, gsize size)
{
  guint64 hash = G_GUINT64_CONSTANT (0xcbf29ce484222325);

  for (gsize i = 0; i < size; i++)
    hash = (hash ^ data[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash;
}

/* The two paths, each with its NUL. (transfer full) */
static GString *
key_of (const RnVocSource *source)
{
  GString *key = g_string_new (source->ann_file);

  g_string_append_c (key, '\0');
  g_string_append_len (key, source->prefix, (gssize) strlen (source->prefix) + 1);
  return key;
}

static char *
path_of (const char *dir, const GString *key)
{
  g_autofree char *name = g_strdup_printf ("dataset-%016" G_GINT64_MODIFIER "x.index",
                                           checksum_of ((const guint8 *) key->str, key->len));

  return g_build_filename (dir, name, NULL);
}

/* ---- Saving ---- */

void
rn_voc_cache_save (const char *dir, const RnVocSource *source, const RnIndex *index)
{
  g_autoptr (GByteArray) file = g_byte_array_new ();
  g_autoptr (GString) names = g_string_new (NULL);
  g_autoptr (GString) key = key_of (source);
  g_autofree char *path = path_of (dir, key);
  g_autoptr (GError) error = NULL;
  Header header = { .magic = MAGIC, .version = CACHE_VERSION, .list = source->list };
  const gsize start = G_STRUCT_OFFSET (Header, list);

  if (!g_file_test (dir, G_FILE_TEST_IS_DIR))
    return;
  for (guint i = 0; i < index->names->len; i++)
    g_string_append_len (names, index->names->pdata[i], (gssize) strlen (index->names->pdata[i]) + 1);
  memcpy (header.findings, source->findings, sizeof header.findings);
  header.n_images = index->images->len;
  header.n_objects = index->labels->len;
  header.n_names = index->names->len;
  header.names_size = (guint32) names->len;
  header.strings_size = (guint32) index->strings->len;
  header.key_size = (guint32) key->len;

  const struct
  {
    gconstpointer data;
    gsize size;
  } parts[] = {
    { &header, sizeof header },
    { source->stamps, header.n_images * sizeof (RnVocStamps) },
    { index->images->data, header.n_images * sizeof (RnIndexImage) },
    { index->boxes->data, header.n_objects * sizeof (float[4]) },
    { index->labels->data, header.n_objects * sizeof (int16_t) },
    { index->difficult->data, header.n_objects },
    { names->str, names->len },
    { index->strings->str, index->strings->len },
    { key->str, key->len },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++)
    {
      if (parts[i].size > MAX_CACHE - file->len)
        return;
      if (parts[i].size > 0)
        g_byte_array_append (file, parts[i].data, (guint) parts[i].size);
    }
  header.checksum = checksum_of (file->data + start, file->len - start);
  memcpy (file->data, &header, sizeof header);
  if (!rn_atomic_file_save (path, file->data, file->len, &error))
    g_warning ("%s", error->message);
}

/* ---- Loading ---- */

/* What is left of the file. */
typedef struct
{
  const guint8 *data;
  gsize left;
} Reader;

/* Appends @n items to the empty @array; FALSE if the file ends before. */
static gboolean
take_array (Reader *reader, GArray *array, guint n)
{
  gsize bytes = (gsize) n * g_array_get_element_size (array);

  if (bytes > reader->left)
    return FALSE;
  if (n > 0)
    g_array_append_vals (array, reader->data, n);
  reader->data += bytes;
  reader->left -= bytes;
  return TRUE;
}

/* @size bytes that end in a NUL (or none at all). NULL if the file ends before. */
static const char *
take_texts (Reader *reader, gsize size)
{
  const char *texts = (const char *) reader->data;

  if (size > reader->left || (size > 0 && texts[size - 1] != '\0'))
    return NULL;
  reader->data += size;
  reader->left -= size;
  return texts;
}

static gboolean
take_names (Reader *reader, const Header *header, GPtrArray *names)
{
  const char *text = take_texts (reader, header->names_size);

  if (text == NULL || header->n_names > G_MAXINT16)
    return FALSE;
  for (const char *end = text + header->names_size; text < end; text += strlen (text) + 1)
    g_ptr_array_add (names, g_strdup (text));
  return names->len == header->n_names;
}

static gboolean
is_valid_image (const RnIndex *index, const RnIndexImage *image)
{
  const float (*boxes)[4] = (const float (*)[4]) (gpointer) index->boxes->data;

  if (image->id >= index->strings->len || image->path >= index->strings->len || image->width < 1
      || image->height < 1 || image->width > RN_IMAGE_MAX_SIDE || image->height > RN_IMAGE_MAX_SIDE
      || (int64_t) image->width * image->height > RN_IMAGE_MAX_PIXELS
      || (guint64) image->first + image->n > index->labels->len)
    return FALSE;
  for (guint i = image->first; i < image->first + image->n; i++)
    if (!(boxes[i][0] >= 0 && boxes[i][1] >= 0 && boxes[i][0] < boxes[i][2] && boxes[i][1] < boxes[i][3]
          && boxes[i][2] <= (float) image->width && boxes[i][3] <= (float) image->height))
      return FALSE;
  return TRUE;
}

static gboolean
is_valid_index (const RnIndex *index)
{
  for (guint i = 0; i < index->labels->len; i++)
    {
      int label = g_array_index (index->labels, int16_t, i);

      if (label < 0 || (guint) label >= index->names->len || index->difficult->data[i] > 1)
        return FALSE;
    }
  for (guint i = 0; i < index->images->len; i++)
    if (!is_valid_image (index, rn_index_image (index, i)))
      return FALSE;
  return TRUE;
}

static gboolean
is_same_file (const char *path, RnFileStamp stamp)
{
  RnFileStamp now = rn_file_stamp (path);

  return now.mtime == stamp.mtime && now.size == stamp.size && now.size >= 0;
}

/* Whether every file behind @index is still the one that it was read from. */
static gboolean
is_fresh (const RnIndex *index, const char *prefix, const GArray *stamps)
{
  for (guint i = 0; i < index->images->len; i++)
    {
      const RnIndexImage *image = rn_index_image (index, i);
      const RnVocStamps *pair = &g_array_index (stamps, RnVocStamps, i);
      g_autofree char *xml = rn_voc_annotation_path (prefix, rn_index_string (index, image->id));

      if (!is_same_file (rn_index_string (index, image->path), pair->image)
          || !is_same_file (xml, pair->annotation))
        return FALSE;
    }
  return TRUE;
}

/* Unpacks what follows @header into the empty @index and @stamps. */
static gboolean
unpack (Reader *reader, const Header *header, const GString *key, RnIndex *index, GArray *stamps)
{
  const char *texts;

  if (!take_array (reader, stamps, header->n_images) || !take_array (reader, index->images, header->n_images)
      || !take_array (reader, index->boxes, header->n_objects)
      || !take_array (reader, index->labels, header->n_objects) || reader->left < header->n_objects)
    return FALSE;
  g_byte_array_append (index->difficult, reader->data, header->n_objects);
  reader->data += header->n_objects;
  reader->left -= header->n_objects;
  if (!take_names (reader, header, index->names))
    return FALSE;
  texts = take_texts (reader, header->strings_size);
  if (texts == NULL)
    return FALSE;
  g_string_append_len (index->strings, texts, header->strings_size);
  texts = take_texts (reader, header->key_size);
  return texts != NULL && reader->left == 0 && header->key_size == key->len
         && memcmp (texts, key->str, key->len) == 0 && is_valid_index (index);
}

RnIndex *
rn_voc_cache_load (const char *dir, const RnVocSource *source)
{
  g_autoptr (GString) key = key_of (source);
  g_autofree char *path = path_of (dir, key);
  g_autofree char *text = NULL;
  g_autoptr (RnIndex) index = rn_index_new ();
  g_autoptr (GArray) stamps = g_array_new (FALSE, FALSE, sizeof (RnVocStamps));
  const gsize start = G_STRUCT_OFFSET (Header, list);
  Header header;
  Reader reader;
  gsize size;

  if (!rn_file_read (path, MAX_CACHE, &text, &size, NULL) || size < sizeof header)
    return NULL;
  memcpy (&header, text, sizeof header);
  reader = (Reader){ (const guint8 *) text + sizeof header, size - sizeof header };
  if (header.magic != MAGIC || header.version != CACHE_VERSION
      || header.checksum != checksum_of ((const guint8 *) text + start, size - start)
      || !is_same_file (source->ann_file, header.list) || !unpack (&reader, &header, key, index, stamps)
      || !is_fresh (index, source->prefix, stamps))
    return NULL;
  memcpy (source->findings, header.findings, sizeof header.findings);
  return g_steal_pointer (&index);
}
