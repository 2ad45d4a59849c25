#include "config.h"

#include "tests/hooks/python.h"

#define NOT_INSTALLED 77

char *
run_python (const char *script, const char *const *args)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "tests", "hooks", script, NULL),
                  *messages = NULL;
  g_autofree char *out = NULL;
  const char *python = g_getenv ("RN_TEST_PYTHON");
  int status;

  g_ptr_array_add (argv, (gpointer) (python != NULL && *python != '\0' ? python : "python3"));
  g_ptr_array_add (argv, path);
  for (; *args != NULL; args++)
    g_ptr_array_add (argv, (gpointer) *args);
  g_ptr_array_add (argv, NULL);
  if (!g_spawn_sync (NULL, (char **) argv->pdata, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &messages,
                     &status, &error))
    {
      g_test_skip ("there is no Python here");
      return NULL;
    }
  if (g_spawn_check_wait_status (status, &error))
    return g_steal_pointer (&out);
  if (g_error_matches (error, G_SPAWN_EXIT_ERROR, NOT_INSTALLED))
    {
      g_autofree char *text = g_strdup_printf ("%s: its library is not installed", script);
      g_test_skip (text);
      return NULL;
    }
  g_error ("%s: %s", script, messages);
}
