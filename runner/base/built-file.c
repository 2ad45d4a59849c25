#include "config.h"

#include "runner/base/built-file.h"

char *
rn_built_file (const char *name)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = program != NULL ? g_path_get_dirname (program) : g_strdup ("");

  if (!g_str_has_suffix (folder, G_DIR_SEPARATOR_S ".libs"))
    return NULL;
  g_autofree char *built = g_build_filename (folder, "..", "..", name, NULL);
  return g_file_test (built, G_FILE_TEST_EXISTS) ? g_canonicalize_filename (built, NULL) : NULL;
}
