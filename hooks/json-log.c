#include "config.h"

#include "hooks/json-log.h"

#include <errno.h>
#include <stdio.h>

#define DIGITS 9 /* significant ones: a float comes back with all its bits */

struct _RnJsonLog
{
  FILE *file;
  char *path;
};

static gboolean
ends_inside_line (const char *path)
{
  FILE *file = fopen (path, "re");
  gboolean is_inside = file != NULL && fseek (file, -1, SEEK_END) == 0 && getc (file) != '\n';

  if (file != NULL)
    fclose (file);
  return is_inside;
}

RnJsonLog *
rn_json_log_open (const char *path, GError **error)
{
  gboolean is_inside = ends_inside_line (path);
  FILE *file = fopen (path, "ae");

  if (file == NULL)
    {
      rn_hook_error (error, "%s: %s", path, g_strerror (errno));
      return NULL;
    }
  RnJsonLog *log = g_new0 (RnJsonLog, 1);
  log->file = file;
  log->path = g_strdup (path);
  if (is_inside && putc ('\n', file) == EOF)
    {
      rn_hook_error (error, "%s: %s", path, g_strerror (errno));
      g_clear_pointer (&log, rn_json_log_close);
    }
  return log;
}

void
rn_json_log_close (RnJsonLog *log)
{
  if (log == NULL)
    return;
  fclose (log->file);
  g_free (log->path);
  g_free (log);
}

gboolean
rn_json_log_write (RnJsonLog *log, const RnRecord *record, GError **error)
{
  g_autofree char *line = rn_record_to_json (record, DIGITS);

  if (fprintf (log->file, "%s\n", line) < 0 || fflush (log->file) != 0)
    return rn_hook_error (error, "writing %s: %s", log->path, g_strerror (errno));
  return TRUE;
}
