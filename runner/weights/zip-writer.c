/*
 * libzip does not say where data will lie, so it cannot align them; the format itself is small.
 * APPNOTE.TXT 6.3.9: local headers (4.3.7), the directory (4.3.12), its end (4.3.16), and zip64
 * (4.3.14, 4.3.15, 4.5.3) where a number does not fit.
 */
#include "config.h"

#include "runner/weights/zip-writer.h"

#include <string.h>

#define LOCAL_MAGIC 0x04034b50
#define DIRECTORY_MAGIC 0x02014b50
#define END_MAGIC 0x06054b50
#define END64_MAGIC 0x06064b50
#define LOCATOR64_MAGIC 0x07064b50
#define LOCAL_BYTES 30
#define ZIP64_FIELD 1
#define PADDING_FIELD 0x4246 /* "FB", as torch.save has it */
#define VERSION_PLAIN 20
#define VERSION_ZIP64 45
#define FLAG_UTF8 0x800
#define DATE_1980 0x21 /* the first day that the format knows: same input, same file */

typedef struct
{
  char *name;
  guint32 crc;
  guint64 bytes, offset;
} Entry;

struct _RnZipWriter
{
  RnAtomicFile *file;
  guint64 offset;  /* of what comes next */
  GArray *entries; /* of Entry */
  guint32 crc_table[256];
};

static void
entry_clear (gpointer data)
{
  g_free (((Entry *) data)->name);
}

RnZipWriter *
rn_zip_writer_new (RnAtomicFile *file)
{
  RnZipWriter *writer = g_new0 (RnZipWriter, 1);
  writer->file = file;
  writer->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  g_array_set_clear_func (writer->entries, entry_clear);
  for (guint32 i = 0; i < 256; i++) /* CRC-32 of IEEE 802.3, reflected */
    {
      guint32 crc = i;
      for (int bit = 0; bit < 8; bit++)
        crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
      writer->crc_table[i] = crc;
    }
  return writer;
}

void
rn_zip_writer_free (RnZipWriter *writer)
{
  if (writer == NULL)
    return;
  g_array_unref (writer->entries);
  g_free (writer);
}

static guint32
checksum (const RnZipWriter *writer, const guint8 *data, gsize bytes)
{
  guint32 crc = 0xffffffff;
  for (gsize i = 0; i < bytes; i++)
    crc = crc >> 8 ^ writer->crc_table[(crc ^ data[i]) & 0xff];
  return ~crc;
}

static void
put (GByteArray *record, guint64 number, int bytes)
{
  for (int i = 0; i < bytes; i++)
    {
      guint8 byte = (guint8) (number >> (8 * i) & 0xff);
      g_byte_array_append (record, &byte, 1);
    }
}

/* What a field of @bytes holds when the number stands in a zip64 one instead. */
static guint64
clamp (guint64 number, int bytes)
{
  return MIN (number, (G_GUINT64_CONSTANT (1) << (8 * bytes)) - 1);
}

static gboolean
is_large (guint64 number)
{
  return number >= G_MAXUINT32;
}

static gboolean
write_record (RnZipWriter *writer, const GByteArray *record, GError **error)
{
  writer->offset += record->len;
  return rn_atomic_file_write (writer->file, record->data, record->len, error);
}

/* The part that a local header and an entry of the directory share. */
static void
put_header (GByteArray *record, const Entry *entry, guint extra_bytes)
{
  gboolean zip64 = is_large (entry->bytes) || is_large (entry->offset);

  put (record, zip64 ? VERSION_ZIP64 : VERSION_PLAIN, 2);
  put (record, FLAG_UTF8, 2);
  put (record, 0, 2); /* stored */
  put (record, 0, 2); /* time */
  put (record, DATE_1980, 2);
  put (record, entry->crc, 4);
  put (record, clamp (entry->bytes, 4), 4); /* packed */
  put (record, clamp (entry->bytes, 4), 4);
  put (record, strlen (entry->name), 2);
  put (record, extra_bytes, 2);
}

static void
put_sizes64 (GByteArray *record, const Entry *entry, gboolean with_offset)
{
  gboolean sizes = is_large (entry->bytes), offset = with_offset && is_large (entry->offset);

  if (!sizes && !offset)
    return;
  put (record, ZIP64_FIELD, 2);
  put (record, (sizes ? 16u : 0u) + (offset ? 8u : 0u), 2);
  if (sizes)
    {
      put (record, entry->bytes, 8);
      put (record, entry->bytes, 8);
    }
  if (offset)
    put (record, entry->offset, 8);
}

static void
put_local (GByteArray *record, const Entry *entry)
{
  g_autoptr (GByteArray) extra = g_byte_array_new ();
  put_sizes64 (extra, entry, FALSE);

  guint64 data =
      entry->offset + LOCAL_BYTES + strlen (entry->name) + extra->len + 4; /* 4: head of the padding */
  guint padding = (guint) ((RN_ZIP_ALIGNMENT - data % RN_ZIP_ALIGNMENT) % RN_ZIP_ALIGNMENT);
  put (extra, PADDING_FIELD, 2);
  put (extra, padding, 2);
  for (guint i = 0; i < padding; i++)
    put (extra, 'Z', 1);

  put (record, LOCAL_MAGIC, 4);
  put_header (record, entry, extra->len);
  g_byte_array_append (record, (const guint8 *) entry->name, (guint) strlen (entry->name));
  g_byte_array_append (record, extra->data, extra->len);
}

gboolean
rn_zip_writer_add (RnZipWriter *writer, const char *name, const void *data, gsize bytes, GError **error)
{
  g_return_val_if_fail (strlen (name) <= G_MAXUINT16, FALSE);

  Entry entry = { g_strdup (name), checksum (writer, data, bytes), bytes, writer->offset };
  g_array_append_val (writer->entries, entry);
  g_autoptr (GByteArray) record = g_byte_array_new ();
  put_local (record, &entry);
  if (!write_record (writer, record, error))
    return FALSE;
  writer->offset += bytes;
  return rn_atomic_file_write (writer->file, data, bytes, error);
}

static gboolean
write_directory_entry (RnZipWriter *writer, const Entry *entry, GError **error)
{
  g_autoptr (GByteArray) record = g_byte_array_new (), extra = g_byte_array_new ();

  put_sizes64 (extra, entry, TRUE);
  put (record, DIRECTORY_MAGIC, 4);
  put (record, VERSION_ZIP64, 2); /* made by */
  put_header (record, entry, extra->len);
  put (record, 0, 2); /* comment */
  put (record, 0, 2); /* disk */
  put (record, 0, 2); /* attributes */
  put (record, 0, 4);
  put (record, clamp (entry->offset, 4), 4);
  g_byte_array_append (record, (const guint8 *) entry->name, (guint) strlen (entry->name));
  g_byte_array_append (record, extra->data, extra->len);
  return write_record (writer, record, error);
}

gboolean
rn_zip_writer_finish (RnZipWriter *writer, GError **error)
{
  guint64 start = writer->offset, n = writer->entries->len;

  for (guint i = 0; i < writer->entries->len; i++)
    if (!write_directory_entry (writer, &g_array_index (writer->entries, Entry, i), error))
      return FALSE;

  guint64 bytes = writer->offset - start, end64 = writer->offset;
  g_autoptr (GByteArray) record = g_byte_array_new ();
  if (is_large (start) || is_large (bytes) || n >= G_MAXUINT16)
    {
      put (record, END64_MAGIC, 4);
      put (record, 44, 8); /* what follows of this record */
      put (record, VERSION_ZIP64, 2);
      put (record, VERSION_ZIP64, 2);
      put (record, 0, 4); /* disks */
      put (record, 0, 4);
      put (record, n, 8);
      put (record, n, 8);
      put (record, bytes, 8);
      put (record, start, 8);
      put (record, LOCATOR64_MAGIC, 4);
      put (record, 0, 4);
      put (record, end64, 8);
      put (record, 1, 4);
    }
  put (record, END_MAGIC, 4);
  put (record, 0, 2); /* disks */
  put (record, 0, 2);
  put (record, clamp (n, 2), 2);
  put (record, clamp (n, 2), 2);
  put (record, clamp (bytes, 4), 4);
  put (record, clamp (start, 4), 4);
  put (record, 0, 2); /* comment */
  return write_record (writer, record, error);
}
