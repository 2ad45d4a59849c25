#include "config.h"

#include "tests/tree.h"

#include <glib/gstdio.h>

/* As deep as the tests make folders. */
void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_file_test (path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open (path, 0, NULL);

  for (const char *name; dir != NULL && (name = g_dir_read_name (dir)) != NULL;)
    {
      g_autofree char *child = g_build_filename (path, name, NULL);
      remove_tree (child);
    }
  g_assert_cmpint (g_remove (path), ==, 0);
}
