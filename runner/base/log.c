#include "config.h"
#include "runner/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLEAR_LINE "\r\033[K"

/* All under the lock, so that lines of several threads never mix. */
static GMutex lock;
static FILE *file;
static char *status; /* on the screen now, or NULL */

static const char *
level_name (GLogLevelFlags level)
{
  if (level & G_LOG_LEVEL_ERROR)
    return "ERROR";
  if (level & G_LOG_LEVEL_CRITICAL)
    return "CRITICAL";
  if (level & G_LOG_LEVEL_WARNING)
    return "WARNING";
  if (level & G_LOG_LEVEL_DEBUG)
    return "DEBUG";
  return "INFO"; /* g_message too: MMCV's loggers know no level between info and warning */
}

/* The text without characters that would act on a terminal, those of U+0080 to U+009F among them: names of
 * files and keys come from outside. Unlike rn_printable it keeps tabs and tables of any length. */
static char *
printable (const char *text, gssize length)
{
  g_autofree char *valid = g_utf8_make_valid (text, length);
  GString *clean = g_string_sized_new (strlen (valid));

  for (const char *c = valid; *c; c = g_utf8_next_char (c))
    {
      gunichar character = g_utf8_get_char (c);
      gboolean acts = g_unichar_iscntrl (character) && character != '\n' && character != '\t';

      g_string_append_unichar (clean, acts ? '?' : character);
    }
  return g_string_free (clean, FALSE);
}

static void
write_stderr (GLogLevelFlags level, const char *text)
{
  if (status)
    fputs (CLEAR_LINE, stderr);
  if (level & (G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO))
    {
      fprintf (stderr, "%s\n", text);
    }
  else
    {
      g_autofree char *name = g_ascii_strdown (level_name (level), -1);
      fprintf (stderr, "%s: %s\n", name, text);
    }
  if (status)
    fputs (status, stderr);
  fflush (stderr);
}

static void
write_file (GLogLevelFlags level, const char *text)
{
  g_autoptr (GDateTime) now = g_date_time_new_now_local ();
  g_autofree char *time = now ? g_date_time_format (now, "%Y-%m-%d %H:%M:%S") : NULL;

  fprintf (file, "%s,%03d - runner - %s - %s\n", time ? time : "-",
           now ? g_date_time_get_microsecond (now) / 1000 : 0, level_name (level), text);
  fflush (file); /* a run that is killed leaves its last line */
}

static GLogWriterOutput
writer (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  g_autofree char *text = NULL;
  const char *domain = NULL;

  for (gsize i = 0; i < n_fields; i++)
    {
      if (g_str_equal (fields[i].key, "MESSAGE") && !text)
        text = printable (fields[i].value, fields[i].length);
      else if (g_str_equal (fields[i].key, "GLIB_DOMAIN") && fields[i].length < 0)
        domain = fields[i].value;
    }
  if (!text || g_log_writer_default_would_drop (level, domain))
    return G_LOG_WRITER_HANDLED;

  g_mutex_lock (&lock);
  write_stderr (level, text);
  if (file)
    write_file (level, text);
  g_mutex_unlock (&lock);
  return G_LOG_WRITER_HANDLED;
}

void
rn_log_init (void)
{
  static gsize done;

  if (g_once_init_enter (&done))
    {
      g_log_set_writer_func (writer, NULL, NULL); /* GLib takes one writer a process, once */
      g_once_init_leave (&done, 1);
    }
}

gboolean
rn_log_set_file (const char *path, GError **error)
{
  FILE *next = path ? fopen (path, "ae") : NULL;

  if (path && !next)
    {
      int code = errno;
      g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
      return FALSE;
    }

  g_mutex_lock (&lock);
  FILE *old = file;
  file = next;
  g_mutex_unlock (&lock);

  if (old)
    fclose (old);
  return TRUE;
}

void
rn_log_set_status (const char *text)
{
  if (!isatty (STDERR_FILENO))
    return;

  g_mutex_lock (&lock);
  if (status || text)
    fprintf (stderr, "%s%s", CLEAR_LINE, text ? text : "");
  fflush (stderr);
  g_free (status);
  status = text ? printable (text, -1) : NULL;
  g_mutex_unlock (&lock);
}
