#include "config.h"

#include "tests/weights/weights-fixture.h"

#include "runner/base/error.h"

#include <glib/gstdio.h>
#include <string.h>
#include <zip.h>

void
fixture_set_up (Fixture *f, gconstpointer data)
{
  f->dir = g_dir_make_tmp ("rn-weights-XXXXXX", NULL);
  f->path = g_build_filename (f->dir, "file.pth", NULL);
}

void
fixture_tear_down (Fixture *f, gconstpointer data)
{
  g_remove (f->path);
  g_assert_cmpint (g_rmdir (f->dir), ==, 0); /* nothing else was left */
  g_free (f->dir);
  g_free (f->path);
}

void
fixture_write (const Fixture *f, const void *bytes, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_file_set_contents (f->path, bytes, (gssize) n, &error);
  g_assert_no_error (error);
}

void
fixture_refused (const Fixture *f, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnWeights) weights = rn_weights_open (f->path, &error);

  g_assert_null (weights);
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  if (strstr (error->message, f->path) == NULL || strstr (error->message, part) == NULL)
    g_error ("\"%s\" is not in: %s", part, error->message);
}

void
fixture_write_zip (const Fixture *f, const ZipEntry *entries, guint n)
{
  zip_t *archive = zip_open (f->path, ZIP_CREATE | ZIP_TRUNCATE, NULL);

  g_assert_nonnull (archive);
  for (guint i = 0; i < n; i++)
    {
      zip_source_t *source = zip_source_buffer (archive, entries[i].bytes, entries[i].n, 0);
      zip_int64_t index = zip_file_add (archive, entries[i].name, source, 0);
      g_assert_cmpint (index, >=, 0);
      g_assert_cmpint (zip_set_file_compression (archive, (zip_uint64_t) index,
                                                 entries[i].packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0),
                       ==, 0);
    }
  g_assert_cmpint (zip_close (archive), ==, 0);
}

static void
put_little (GString *pickle, guint64 number, int bytes)
{
  for (int i = 0; i < bytes; i++)
    g_string_append_c (pickle, (char) (number >> (8 * i) & 0xff));
}

void
pickle_text (GString *pickle, const char *text)
{
  g_string_append_c (pickle, 'X');
  put_little (pickle, strlen (text), 4);
  g_string_append (pickle, text);
}

void
pickle_long (GString *pickle, gint64 number)
{
  (g_string_append_len) (pickle, BYTES ("\x8a\x08"));
  put_little (pickle, (guint64) number, 8);
}

static void
put_numbers (GString *pickle, const gint64 *numbers, int n)
{
  g_string_append_c (pickle, '(');
  for (int i = 0; i < n; i++)
    pickle_long (pickle, numbers[i]);
  g_string_append_c (pickle, 't');
}

void
pickle_tensor (GString *pickle, const char *storage, const char *key, gint64 n, gint64 offset, int rank,
               const gint64 *sizes, const gint64 *strides)
{
  g_string_append (pickle, "ctorch._utils\n_rebuild_tensor_v2\n((");
  pickle_text (pickle, "storage");
  g_string_append_printf (pickle, "ctorch\n%s\n", storage);
  pickle_text (pickle, key);
  pickle_text (pickle, "cpu");
  pickle_long (pickle, n);
  g_string_append (pickle, "tQ");
  pickle_long (pickle, offset);
  put_numbers (pickle, sizes, rank);
  put_numbers (pickle, strides, rank);
  g_string_append (pickle, "\x89}tR");
}
