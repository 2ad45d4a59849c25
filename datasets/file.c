#include "config.h"

#include "datasets/file.h"

#include "runner/base/error.h"
#include "runner/base/open-file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_LIST (64 << 20) /* bytes of a split list or class file */

gboolean
rn_file_read (const char *path, gsize limit, char **text, gsize *size, GError **error)
{
  guint64 bytes = 0;
  int fd = rn_open_regular (path, &bytes);
  gboolean is_other = fd < 0 && (errno == EISDIR || errno == EINVAL);

  *text = NULL;
  if (fd >= 0 && bytes > limit)
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                 "%s: the file is too large: %" G_GUINT64_FORMAT " bytes, at most %" G_GSIZE_FORMAT, path,
                 bytes, limit);
  else if (fd < 0 || (*text = rn_read_all (fd, (gsize) bytes, size)) == NULL)
    g_set_error (error, RN_DATA_ERROR, is_other ? RN_DATA_ERROR_FORMAT : RN_DATA_ERROR_MISSING, "%s: %s",
                 path, rn_open_problem (errno));
  if (fd >= 0)
    close (fd);
  return *text != NULL;
}

/* Windows saves text as UTF-16 with a mark; other text is passed on as it is. (transfer full) */
static char *
without_mark (const char *path, char *text, gsize size, gsize *n_bytes, GError **error)
{
  gboolean little = size >= 2 && memcmp (text, "\xFF\xFE", 2) == 0;
  gboolean big = size >= 2 && memcmp (text, "\xFE\xFF", 2) == 0;
  gsize mark = size >= 3 && memcmp (text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  char *utf8;

  if (!little && !big)
    {
      *n_bytes = size - mark;
      return g_memdup2 (text + mark, size - mark + 1);
    }
  utf8 =
      g_convert (text + 2, (gssize) size - 2, "UTF-8", little ? "UTF-16LE" : "UTF-16BE", NULL, n_bytes, NULL);
  if (utf8 == NULL)
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: damaged UTF-16 text", path);
  return utf8;
}

char *
rn_file_read_text (const char *path, GError **error)
{
  g_autofree char *bytes = NULL;
  g_autofree char *text = NULL;
  gsize size;

  if (!rn_file_read (path, MAX_LIST, &bytes, &size, error))
    return NULL;
  text = without_mark (path, bytes, size, &size, error);
  if (text != NULL && memchr (text, '\0', size) != NULL)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s: not a text file", path);
      return NULL;
    }
  return g_steal_pointer (&text);
}

char *
rn_file_next_line (char **cursor)
{
  char *line = *cursor, *end;

  if (line == NULL)
    return NULL;
  end = line + strcspn (line, "\r\n");
  *cursor = *end == '\0' ? NULL : end + 1 + (end[0] == '\r' && end[1] == '\n');
  *end = '\0';
  return g_strstrip (line);
}

char **
rn_file_read_lines (const char *path, GError **error)
{
  g_autoptr (GStrvBuilder) lines = g_strv_builder_new ();
  g_autofree char *text = rn_file_read_text (path, error);
  char *cursor = text, *line;

  if (text == NULL)
    return NULL;
  while ((line = rn_file_next_line (&cursor)) != NULL)
    if (*line != '\0')
      g_strv_builder_add (lines, line);
  return g_strv_builder_end (lines);
}
