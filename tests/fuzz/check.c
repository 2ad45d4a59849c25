/* check.c: what harnesses share. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char last_message[1024];

const char *
rn_fuzz_last_message (void)
{
  return last_message;
}

int
rn_fuzz_check (gboolean ok, const GError *error)
{
  if (ok)
    {
      g_assert_null (error);
      return 1;
    }
  g_assert_nonnull (error);
  g_strlcpy (last_message, error->message, sizeof last_message);
  g_assert_cmpuint (strlen (error->message), >, 0);
  if (!g_utf8_validate (error->message, -1, NULL))
    g_error ("a message that is not UTF-8: %s", g_strescape (error->message, NULL));
  for (const char *c = error->message; *c != '\0'; c = g_utf8_next_char (c))
    if (g_unichar_iscntrl (g_utf8_get_char (c)))
      g_error ("a message with a control character: %s", g_strescape (error->message, NULL));
  return 0;
}

const char *
rn_fuzz_file (const guint8 *data, gsize size)
{
  static int file = -1;
  static char *path;
  gsize done = 0;

  if (file < 0)
    {
      file = memfd_create ("input", MFD_CLOEXEC);
      g_assert_cmpint (file, >=, 0);
      path = g_strdup_printf ("/proc/self/fd/%d", file);
    }
  g_assert_cmpint (ftruncate (file, 0), ==, 0);
  while (done < size)
    {
      gssize n = pwrite (file, data + done, size - done, (off_t) done);

      g_assert_cmpint (n, >, 0);
      done += (gsize) n;
    }
  return path;
}

void
rn_fuzz_add_text (GPtrArray *seeds, const char *text)
{
  g_ptr_array_add (seeds, g_bytes_new (text, strlen (text)));
}

void
rn_fuzz_add_file (GPtrArray *seeds, const char *path)
{
  const char *root = g_getenv ("G_TEST_SRCDIR");
  g_autofree char *full = root != NULL ? g_build_filename (root, path, NULL) : NULL;
  g_autoptr (GError) error = NULL;
  char *bytes;
  gsize size;

  if (full == NULL)
    return;
  if (!g_file_get_contents (full, &bytes, &size, &error))
    g_error ("%s", error->message);
  g_ptr_array_add (seeds, g_bytes_new_take (bytes, size));
}
