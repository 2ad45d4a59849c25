#include "config.h"

#include "runner/base/folder.h"

#include <errno.h>

gboolean
rn_folder_make (const char *path, GError **error)
{
  if (g_mkdir_with_parents (path, 0777) == 0)
    return TRUE;
  int code = errno;
  g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
  return FALSE;
}
