#include "config.h"

#include "hooks/event-file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MASK_DELTA 0xa282ead8u
#define FILE_VERSION "brain.Event:2"
#define MAX_NAMES 1000 /* tries to find a file name that nobody has */

struct _RnEventFile
{
  FILE *file;
  char *path;
  GByteArray *summary; /* of the points that are not yet written */
};

/* ---- Protocol buffers ---- */

/* The kinds of a field on the wire, and the numbers of the fields that are used here. */
enum
{
  WIRE_VARINT = 0,
  WIRE_DOUBLE = 1,
  WIRE_BYTES = 2,
  WIRE_FLOAT = 5,
};

enum
{
  EVENT_WALL_TIME = 1,
  EVENT_STEP = 2,
  EVENT_FILE_VERSION = 3,
  EVENT_SUMMARY = 5,
  EVENT_SESSION_LOG = 7,
  SUMMARY_VALUE = 1,
  VALUE_TAG = 1,
  VALUE_SIMPLE = 2,
  VALUE_TENSOR = 8,
  VALUE_METADATA = 9,
  METADATA_PLUGIN = 1,
  PLUGIN_NAME = 1,
  TENSOR_DTYPE = 1,
  TENSOR_SHAPE = 2,
  TENSOR_STRING = 8,
  SHAPE_DIM = 2,
  DIM_SIZE = 1,
  SESSION_STATUS = 1,
};

#define DT_STRING 7
#define STATUS_START 1

static void
put_varint (GByteArray *out, guint64 value)
{
  do
    {
      guint8 byte = (guint8) (value & 0x7f);
      value >>= 7;
      byte |= value != 0 ? 0x80 : 0;
      g_byte_array_append (out, &byte, 1);
    }
  while (value != 0);
}

static void
put_key (GByteArray *out, int field, int wire)
{
  put_varint (out, (guint64) (field << 3 | wire));
}

static void
put_int (GByteArray *out, int field, guint64 value)
{
  put_key (out, field, WIRE_VARINT);
  put_varint (out, value);
}

static void
put_double (GByteArray *out, int field, double value)
{
  guint64 bits;
  memcpy (&bits, &value, sizeof bits);
  bits = GUINT64_TO_LE (bits);
  put_key (out, field, WIRE_DOUBLE);
  g_byte_array_append (out, (const guint8 *) &bits, sizeof bits);
}

static void
put_float (GByteArray *out, int field, float value)
{
  guint32 bits;
  memcpy (&bits, &value, sizeof bits);
  bits = GUINT32_TO_LE (bits);
  put_key (out, field, WIRE_FLOAT);
  g_byte_array_append (out, (const guint8 *) &bits, sizeof bits);
}

static void
put_bytes (GByteArray *out, int field, const void *data, gsize size)
{
  put_key (out, field, WIRE_BYTES);
  put_varint (out, size);
  g_byte_array_append (out, data, (guint) size);
}

static void
put_string (GByteArray *out, int field, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1); /* a reader refuses anything else */
  put_bytes (out, field, valid, strlen (valid));
}

static void
put_message (GByteArray *out, int field, const GByteArray *message)
{
  put_bytes (out, field, message->data, message->len);
}

/* ---- Records ---- */

static guint32
masked_checksum (gconstpointer data, gsize size)
{
  guint32 crc = rn_checksum (data, size);
  return GUINT32_TO_LE ((crc >> 15 | crc << 17) + MASK_DELTA);
}

static gboolean
write_error (const RnEventFile *file, GError **error)
{
  return rn_hook_error (error, "writing %s: %s", file->path, g_strerror (errno));
}

static gboolean
write_record (RnEventFile *file, const GByteArray *event, GError **error)
{
  guint64 length = GUINT64_TO_LE ((guint64) event->len);
  guint32 length_crc = masked_checksum (&length, sizeof length),
          crc = masked_checksum (event->data, event->len);

  if (fwrite (&length, sizeof length, 1, file->file) != 1
      || fwrite (&length_crc, sizeof length_crc, 1, file->file) != 1
      || fwrite (event->data, 1, event->len, file->file) != event->len
      || fwrite (&crc, sizeof crc, 1, file->file) != 1 || fflush (file->file) != 0)
    return write_error (file, error);
  return TRUE;
}

/* (transfer full) */
static GByteArray *
new_event (gint64 step)
{
  GByteArray *event = g_byte_array_new ();

  put_double (event, EVENT_WALL_TIME, (double) g_get_real_time () / 1e6);
  if (step != 0) /* the default is left out */
    put_int (event, EVENT_STEP, (guint64) step);
  return event;
}

/* ---- The file ---- */

static FILE *
open_new (const char *dir, char **path)
{
  for (int i = 0; i < MAX_NAMES; i++)
    {
      g_autofree char *name =
          g_strdup_printf ("events.out.tfevents.%010" G_GINT64_FORMAT ".%s.%d.%d",
                           g_get_real_time () / G_USEC_PER_SEC, g_get_host_name (), (int) getpid (), i);
      *path = g_build_filename (dir, name, NULL);
      FILE *file = fopen (*path, "wxe");
      if (file != NULL || errno != EEXIST)
        return file;
      g_clear_pointer (path, g_free);
    }
  return NULL;
}

RnEventFile *
rn_event_file_new (const char *dir, GError **error)
{
  g_autofree char *path = NULL;

  if (g_mkdir_with_parents (dir, 0777) != 0)
    {
      rn_hook_error (error, "%s: %s", dir, g_strerror (errno));
      return NULL;
    }
  FILE *stream = open_new (dir, &path);
  if (stream == NULL)
    {
      rn_hook_error (error, "%s: %s", path != NULL ? path : dir, g_strerror (errno));
      return NULL;
    }

  g_autoptr (GByteArray) event = new_event (0);
  RnEventFile *file = g_new0 (RnEventFile, 1);
  file->file = stream;
  file->path = g_steal_pointer (&path);
  file->summary = g_byte_array_new ();
  put_string (event, EVENT_FILE_VERSION, FILE_VERSION);
  if (!write_record (file, event, error))
    g_clear_pointer (&file, rn_event_file_free);
  return file;
}

void
rn_event_file_free (RnEventFile *file)
{
  if (file == NULL)
    return;
  fclose (file->file);
  g_free (file->path);
  g_byte_array_unref (file->summary);
  g_free (file);
}

void
rn_event_file_add_scalar (RnEventFile *file, const char *tag, double value)
{
  g_autoptr (GByteArray) message = g_byte_array_new ();

  put_string (message, VALUE_TAG, tag);
  put_float (message, VALUE_SIMPLE, (float) value);
  put_message (file->summary, SUMMARY_VALUE, message);
}

void
rn_event_file_add_text (RnEventFile *file, const char *tag, const char *text)
{
  g_autoptr (GByteArray) message = g_byte_array_new (), plugin = g_byte_array_new (),
                         metadata = g_byte_array_new (), dim = g_byte_array_new (),
                         shape = g_byte_array_new (), tensor = g_byte_array_new ();

  put_string (plugin, PLUGIN_NAME, "text");
  put_message (metadata, METADATA_PLUGIN, plugin);
  put_int (dim, DIM_SIZE, 1);
  put_message (shape, SHAPE_DIM, dim);
  put_int (tensor, TENSOR_DTYPE, DT_STRING);
  put_message (tensor, TENSOR_SHAPE, shape);
  put_string (tensor, TENSOR_STRING, text);
  put_string (message, VALUE_TAG, tag);
  put_message (message, VALUE_METADATA, metadata);
  put_message (message, VALUE_TENSOR, tensor);
  put_message (file->summary, SUMMARY_VALUE, message);
}

gboolean
rn_event_file_write (RnEventFile *file, gint64 step, GError **error)
{
  if (file->summary->len == 0)
    return TRUE;
  g_autoptr (GByteArray) event = new_event (step);
  put_message (event, EVENT_SUMMARY, file->summary);
  g_byte_array_set_size (file->summary, 0);
  return write_record (file, event, error);
}

gboolean
rn_event_file_restart (RnEventFile *file, gint64 step, GError **error)
{
  g_autoptr (GByteArray) event = new_event (step), session = g_byte_array_new ();

  put_int (session, SESSION_STATUS, STATUS_START);
  put_message (event, EVENT_SESSION_LOG, session);
  return write_record (file, event, error);
}
