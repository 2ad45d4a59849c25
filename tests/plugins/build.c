#include "config.h"

#include "tests/plugins/build.h"

#include <glib/gstdio.h>
#include <string.h>

void
build_init (void)
{
  g_autofree char *built = g_test_build_filename (G_TEST_BUILT, "runner", NULL);
  g_autofree char *folder = g_canonicalize_filename (built, NULL);
  g_autofree char *path = g_strdup_printf ("%s:%s", folder, g_getenv ("PATH"));

  g_setenv ("PKG_CONFIG_PATH", folder, TRUE);
  g_setenv ("PATH", path, TRUE);
  g_unsetenv ("RN_PLUGIN_PATH");
  g_unsetenv ("MAKEFLAGS"); /* of the make that runs the tests */
  g_unsetenv ("MAKELEVEL");
}

char *
run_shell (int *code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *command = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *whole = g_strdup_printf ("(%s) 2>&1", command);
  const char *argv[] = { "/bin/sh", "-c", whole, NULL };
  g_autoptr (GError) error = NULL;
  char *out = NULL;
  int status = 0;

  g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, NULL, &status, &error);
  g_assert_no_error (error);
  *code = 0;
  if (!g_spawn_check_wait_status (status, &error))
    {
      g_assert_true (error->domain == G_SPAWN_EXIT_ERROR);
      *code = error->code;
    }
  return out;
}

void
build_plugin (const char *source, const char *so, const char *flags)
{
  const char *cc = g_getenv ("RN_TEST_CC");
  int code;
  g_autofree char *out =
      run_shell (&code,
                 "%s -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror %s -fPIC -shared "
                 "-o '%s' '%s' $(pkg-config --cflags --libs runner-1)",
                 cc != NULL ? cc : "cc", flags, so, source);
  if (code != 0)
    g_error ("%s: %s", source, out);
}

char *
build_text (const char *dir, const char *name, const char *text)
{
  g_autofree char *file = g_strconcat (name, ".c", NULL), *so_name = g_strconcat (name, ".so", NULL);
  g_autofree char *source = g_build_filename (dir, file, NULL);
  char *so = g_build_filename (dir, so_name, NULL);

  write_text (dir, file, text);
  build_plugin (source, so, "");
  return so;
}

void
write_text (const char *dir, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
}

void
copy_files (const char *from, const char *to)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (from, 0, &error);
  const char *name;

  g_assert_no_error (error);
  g_assert_cmpint (g_mkdir (to, 0777), ==, 0);
  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (from, name, NULL), *text = NULL;
      if (g_str_has_suffix (name, ".so")) /* of a build by hand */
        continue;
      g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
      write_text (to, name, text);
    }
}
