#include "config.h"

#include "tests/fuzz/bad-files.h"

#include <glib/gstdio.h>
#include <string.h>
#include <zip.h>

static GByteArray *
from_bytes (gconstpointer bytes, gsize size)
{
  return g_byte_array_append (g_byte_array_new (), bytes, (guint) size);
}

static GByteArray *
from_text (const char *text)
{
  return from_bytes (text, strlen (text));
}

static void
append (GByteArray *array, const char *text)
{
  g_byte_array_append (array, (const guint8 *) text, (guint) strlen (text));
}

static void
append_times (GByteArray *array, const char *text, int n)
{
  for (int i = 0; i < n; i++)
    append (array, text);
}

/* ---- XML ---- */

GByteArray *
bad_entity_bomb (void)
{
  GByteArray *xml = from_text ("<!DOCTYPE annotation [<!ENTITY a0 \"aaaaaaaaaa\">");

  for (int i = 1; i < 20; i++)
    {
      g_autofree char *once = g_strdup_printf ("&a%d;", i - 1);
      g_autofree char *open = g_strdup_printf ("<!ENTITY a%d \"", i);

      append (xml, open);
      append_times (xml, once, 10);
      append (xml, "\">");
    }
  append (xml, "]><annotation><object><name>&a19;</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
               "<ymax>9</ymax></bndbox></object></annotation>");
  return xml;
}

GByteArray *
bad_external_entity (void)
{
  return from_text ("<!DOCTYPE annotation [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>\n"
                    "<annotation><object><name>&e;</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
                    "<xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>");
}

GByteArray *
bad_deep_xml (void)
{
  GByteArray *xml = from_text ("<annotation>");

  append_times (xml, "<a>", 100000);
  return xml;
}

/* ---- YAML ---- */

GByteArray *
bad_alias_bomb (void)
{
  GByteArray *yaml = from_text ("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");

  for (int i = 1; i < 12; i++)
    {
      g_autofree char *once = g_strdup_printf ("*a%d, ", i - 1);
      g_autofree char *open = g_strdup_printf ("a%d: &a%d [", i, i);

      append (yaml, open);
      append_times (yaml, once, 10);
      append (yaml, "]\n");
    }
  return yaml;
}

GByteArray *
bad_deep_yaml (void)
{
  GByteArray *yaml = from_text ("a: ");

  append_times (yaml, "[", 100000);
  return yaml;
}

GByteArray *
bad_large_yaml (void)
{
  GByteArray *yaml = from_text ("");

  append_times (yaml, "# nine million bytes of nothing\n", 9 << 15);
  return yaml;
}

GByteArray *
bad_own_base (void)
{
  return from_text ("_base_: bad\n");
}

GByteArray *
bad_nul (void)
{
  return from_bytes ("a\0b\0\0\n", 6);
}

/* ---- Images ---- */

GByteArray *
bad_jpeg_65535 (void)
{
  static const char head[] = "\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x11\0\x02\x11\0\x03\x11\0"
                             "\xff\xda\0\x0c\x03\x01\0\x02\0\x03\0\0\x3f\0";

  return from_bytes (head, sizeof head - 1);
}

GByteArray *
bad_png_2147483647 (void)
{
  /* The CRC of IHDR is right. */
  static const char head[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0"
                             "\x9b\xab\x9c\x31\0\0\0\0IDAT\x35\xaf\x06\x1e";

  return from_bytes (head, sizeof head - 1);
}

/* ---- Lists ---- */

GByteArray *
bad_list_up (void)
{
  return from_text ("x\n../../../../../../etc/passwd\n");
}

GByteArray *
bad_list_absolute (void)
{
  return from_text ("/etc/passwd\n");
}

GByteArray *
bad_list_long (void)
{
  GByteArray *list = from_text ("");

  append_times (list, "longlong", 1 << 17);
  return list;
}

GByteArray *
bad_list_many (void)
{
  GByteArray *list = from_text ("");

  append_times (list, "a\na\na\na\na\na\na\na\n", 1 << 20);
  return list;
}

/* ---- Safetensors ---- */

static GByteArray *
safetensors (guint64 header_bytes, const char *header)
{
  guint64 size = GUINT64_TO_LE (header_bytes);
  GByteArray *file = from_bytes (&size, sizeof size);

  append (file, header);
  return file;
}

GByteArray *
bad_header_2_63 (void)
{
  return safetensors (G_GUINT64_CONSTANT (1) << 63, "{}");
}

GByteArray *
bad_shape_overflow (void)
{
  static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],"
                               "\"data_offsets\":[0,0]}}";

  return safetensors (sizeof header - 1, header);
}

GByteArray *
bad_offsets_outside (void)
{
  static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[9223372036854775807],"
                               "\"data_offsets\":[0,9223372036854775807]}}";

  return safetensors (sizeof header - 1, header);
}

GByteArray *
bad_deep_header (void)
{
  g_autoptr (GByteArray) header = from_text ("");

  append_times (header, "{\"a\":", 100000);
  g_byte_array_append (header, (const guint8 *) "", 1);
  return safetensors (header->len - 1, (const char *) header->data);
}

GByteArray *
bad_many_values (void)
{
  g_autoptr (GByteArray) header = from_text ("{\"a\":{\"dtype\":\"U8\",\"shape\":[0");

  append_times (header, ",0,0,0,0,0,0,0,0", 1 << 20);
  append (header, "],\"data_offsets\":[0,0]}}");
  g_byte_array_append (header, (const guint8 *) "", 1);
  return safetensors (header->len - 1, (const char *) header->data);
}

/* ---- PyTorch ---- */

/* An archive of one entry, packed if @method says so. */
static GByteArray *
archive (const char *name, gconstpointer bytes, gsize size, zip_int32_t method)
{
  g_autofree char *path = NULL;
  g_autofree char *data = NULL;
  g_autoptr (GError) error = NULL;
  int file = g_file_open_tmp ("rn-bad-XXXXXX", &path, &error), problem = 0;
  gsize length;
  zip_t *zip;

  g_assert_no_error (error);
  g_close (file, NULL);
  zip = zip_open (path, ZIP_TRUNCATE, &problem);
  g_assert_nonnull (zip);
  g_assert_cmpint (zip_file_add (zip, name, zip_source_buffer (zip, bytes, size, 0), 0), ==, 0);
  g_assert_cmpint (zip_set_file_compression (zip, 0, method, 1), ==, 0);
  g_assert_cmpint (zip_close (zip), ==, 0);
  g_assert_true (g_file_get_contents (path, &data, &length, NULL));
  g_unlink (path);
  return from_bytes (data, length);
}

GByteArray *
bad_zip_bomb (void)
{
  const gsize size = 64 << 20;
  g_autofree char *zeros = g_malloc0 (size);

  return archive ("bomb/data.pkl", zeros, size, ZIP_CM_DEFLATE);
}

GByteArray *
bad_zip_up (void)
{
  static const char pickle[] = "\x80\x02}.";

  return archive ("../evil/data.pkl", pickle, sizeof pickle - 1, ZIP_CM_STORE);
}

GByteArray *
bad_zip_cut (void)
{
  static const char pickle[] = "\x80\x02}.";
  GByteArray *whole = archive ("model/data.pkl", pickle, sizeof pickle - 1, ZIP_CM_STORE);

  return g_byte_array_set_size (whole, whole->len / 2);
}

#define CALL_2 \
  "\x80\x02"   \
  "cos\nsystem\nX\x0e\0\0\0touch " BAD_TRACE "\x85R."
#define CALL_4 "\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0etouch " BAD_TRACE "\x85R."
G_STATIC_ASSERT (sizeof "touch " BAD_TRACE - 1 == 0x0e);

GByteArray *
bad_zip_system (void)
{
  return archive ("model/data.pkl", CALL_2, sizeof CALL_2 - 1, ZIP_CM_STORE);
}

GByteArray *
bad_zip_system_4 (void)
{
  return archive ("model/data.pkl", CALL_4, sizeof CALL_4 - 1, ZIP_CM_STORE);
}

GByteArray *
bad_old_system (void)
{
  static const char head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." /* magic number */
                             "\x80\x02M\xe9\x03."                                        /* 1001 */
                             "\x80\x02}.";                                               /* the machine */
  GByteArray *file = from_bytes (head, sizeof head - 1);

  return g_byte_array_append (file, (const guint8 *) CALL_2, sizeof CALL_2 - 1);
}
