/* Every file in configs/ loads, passes the checks of the top level, and survives being written out. */
#include "config.h"

#include "runner/config/config.h"
#include "runner/run-config.h"
#include "runner/runner.h"

#include <glib.h>
#include <string.h>

static void
add_files (GPtrArray *files, const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &error);
  g_assert_no_error (error);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      if (g_file_test (path, G_FILE_TEST_IS_DIR))
        add_files (files, path);
      else if (g_str_has_suffix (name, ".yaml"))
        g_ptr_array_add (files, g_steal_pointer (&path));
    }
}

static void
test_file (gconstpointer data)
{
  const char *path = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load (path, NULL, &error);
  g_assert_no_error (error);

  g_auto (RnRunConfig) config = { 0 };
  rn_run_config_parse (root, &config, &error);
  g_assert_no_error (error);
  if (config.runner != NULL) /* not a part of one */
    {
      gint64 log_interval;
      g_autoptr (RnHookList) hooks = rn_training_hooks_new (&config, &log_interval, &error);
      g_assert_no_error (error);
      g_assert_nonnull (hooks);
    }

  for (int origins = 0; origins <= 1; origins++)
    {
      g_autofree char *text = rn_config_dump (root, origins);
      g_autoptr (RnNode) again = rn_config_load_text (text, "dump", NULL, &error);
      g_assert_no_error (error);
      g_assert_true (rn_node_equal (root, again));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_autofree char *folder = g_test_build_filename (G_TEST_DIST, "configs", NULL);
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);
  add_files (files, folder);
  g_assert_cmpuint (files->len, >=, 8);
  for (guint i = 0; i < files->len; i++)
    {
      const char *path = g_ptr_array_index (files, i);
      g_autofree char *name = g_strconcat ("/configs", path + strlen (folder), NULL);
      g_test_add_data_func (name, path, test_file);
    }
  return g_test_run ();
}
