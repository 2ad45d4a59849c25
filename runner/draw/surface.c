#include "config.h"

#include "runner/draw/surface.h"

#include "runner/base/atomic-file.h"

#define MAX_TEXT 1000
#define ELLIPSIS "\342\200\246" /* U+2026 */

char *
rn_text_clean (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *clean = g_string_new (NULL);
  int n = 0;

  for (const char *p = valid; *p != '\0' && n < MAX_TEXT; p = g_utf8_next_char (p), n++)
    g_string_append_unichar (clean, g_unichar_iscntrl (g_utf8_get_char (p)) ? ' ' : g_utf8_get_char (p));
  return g_string_free (clean, FALSE);
}

double
rn_text_width (cairo_t *cr, const char *text)
{
  cairo_text_extents_t extents;
  cairo_text_extents (cr, text, &extents);
  return extents.x_advance;
}

char *
rn_text_fit (cairo_t *cr, const char *text, double room)
{
  g_autofree char *fitted = g_strdup (text);

  for (glong n = g_utf8_strlen (text, -1); n > 0 && rn_text_width (cr, fitted) > room;)
    {
      g_autofree char *start = g_utf8_substring (text, 0, --n);
      g_free (fitted);
      fitted = n > 0 ? g_strconcat (start, ELLIPSIS, NULL) : g_strdup ("");
    }
  return g_steal_pointer (&fitted);
}

void
rn_set_grey (cairo_t *cr, double grey)
{
  cairo_set_source_rgb (cr, grey, grey, grey);
}

void
rn_draw_text (cairo_t *cr, double x, double y, double anchor, const char *text)
{
  cairo_move_to (cr, x - anchor * rn_text_width (cr, text), y);
  cairo_show_text (cr, text);
}

void
rn_draw_line (cairo_t *cr, double x1, double y1, double x2, double y2)
{
  cairo_move_to (cr, x1, y1);
  cairo_line_to (cr, x2, y2);
  cairo_stroke (cr);
}

typedef struct
{
  RnAtomicFile *file;
  GError *error;
} Output;

static cairo_status_t
write_some (void *closure, const unsigned char *data, unsigned int size)
{
  Output *output = closure;
  if (output->error != NULL || !rn_atomic_file_write (output->file, data, size, &output->error))
    return CAIRO_STATUS_WRITE_ERROR;
  return CAIRO_STATUS_SUCCESS;
}

gboolean
rn_surface_write_png (cairo_t *cr, const char *path, GError **error)
{
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);
  Output output = { file, NULL };

  if (file == NULL)
    return FALSE;
  cairo_surface_flush (cairo_get_target (cr));
  cairo_status_t status = cairo_status (cr);
  if (status == CAIRO_STATUS_SUCCESS)
    status = cairo_surface_write_to_png_stream (cairo_get_target (cr), write_some, &output);
  if (output.error != NULL)
    {
      g_propagate_error (error, output.error);
      return FALSE;
    }
  if (status != CAIRO_STATUS_SUCCESS)
    {
      g_set_error (error, G_FILE_ERROR,
                   status == CAIRO_STATUS_NO_MEMORY ? G_FILE_ERROR_NOMEM : G_FILE_ERROR_FAILED,
                   "%s: cannot be drawn: %s", path, cairo_status_to_string (status));
      return FALSE;
    }
  return rn_atomic_file_commit (file, error);
}

#ifdef __SANITIZE_ADDRESS__
  /* fontconfig keeps the last pattern that cairo asked it for, until the process ends. */
  #define HOOK __attribute__ ((visibility ("default")))
HOOK const char *__lsan_default_suppressions (void);
HOOK const char *__lsan_default_options (void);

const char *
__lsan_default_suppressions (void)
{
  return "leak:libfontconfig\n";
}

const char *
__lsan_default_options (void)
{
  return "print_suppressions=0";
}
#endif
