#include "config.h"

#include "datasets/file.h"

#include "runner/base/error.h"

#include <errno.h>
#include <string.h>
#include <glib/gstdio.h>

#define MAX_LIST (64 << 20) /* bytes of a split list or class file */

gboolean
rn_file_read (const char *path, gsize limit, char **text, gsize *size, GError **error)
{
  g_autoptr (GError) local = NULL;
  GStatBuf info;

  if (g_stat (path, &info) != 0)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", path, g_strerror (errno));
      return FALSE;
    }
  if (!S_ISREG (info.st_mode) || (guint64) info.st_size > limit)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: %s", path,
                   S_ISREG (info.st_mode) ? "the file is too large" : "not a regular file");
      return FALSE;
    }
  if (!g_file_get_contents (path, text, size, &local))
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", path, local->message);
      return FALSE;
    }
  return TRUE;
}

/* "000012  1" -> "000012"; other blanks belong to the name. */
static void
cut_flag (char *line)
{
  static const char *const flags[] = { "-1", "0", "1" };
  char *last = line + strlen (line);

  while (last > line && last[-1] != ' ' && last[-1] != '\t')
    last--;
  for (gsize i = 0; last > line && i < G_N_ELEMENTS (flags); i++)
    if (strcmp (last, flags[i]) == 0)
      {
        *last = '\0';
        g_strchomp (line);
        return;
      }
}

char **
rn_file_read_lines (const char *path, gboolean drop_flag, GError **error)
{
  g_autoptr (GStrvBuilder) lines = g_strv_builder_new ();
  g_autofree char *text = NULL;
  char *line, *next;
  gsize size;

  if (!rn_file_read (path, MAX_LIST, &text, &size, error))
    return NULL;
  if (memchr (text, '\0', size) != NULL)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: not a text file", path);
      return NULL;
    }
  for (line = g_str_has_prefix (text, "\xEF\xBB\xBF") ? text + 3 : text; line != NULL; line = next)
    {
      next = strchr (line, '\n');
      if (next != NULL)
        *next++ = '\0';
      g_strstrip (line);
      if (drop_flag)
        cut_flag (line);
      if (*line != '\0')
        g_strv_builder_add (lines, line);
    }
  return g_strv_builder_end (lines);
}
