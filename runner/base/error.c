#include "config.h"
#include "runner/base/error.h"

#include <string.h>

#define MAX_PRINTED 4096 /* bytes */

G_DEFINE_QUARK (rn_config_error, rn_config_error)
G_DEFINE_QUARK (rn_data_error, rn_data_error)
G_DEFINE_QUARK (rn_checkpoint_error, rn_checkpoint_error)
G_DEFINE_QUARK (rn_device_error, rn_device_error)
G_DEFINE_QUARK (rn_run_error, rn_run_error)

int
rn_error_exit_code (const GError *error)
{
  g_return_val_if_fail (error != NULL, 1);

  if (error->domain == RN_CONFIG_ERROR || error->domain == G_OPTION_ERROR
      || g_error_matches (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING)
      || g_error_matches (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING))
    return 2;
  if (g_error_matches (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING)
      || g_error_matches (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY))
    return 3;
  return 1;
}

char *
rn_printable (const char *text, gboolean lines)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  GString *line = g_string_new (NULL);
  const char *c = valid;

  for (; *c != '\0' && line->len < MAX_PRINTED; c = g_utf8_next_char (c))
    {
      gunichar character = g_utf8_get_char (c);
      gboolean is_bad = g_unichar_iscntrl (character) && !(lines && character == '\n');

      g_string_append_unichar (line, is_bad ? '?' : character);
    }
  if (*c != '\0')
    g_string_append (line, "...");
  return g_string_free (line, FALSE);
}

void
rn_set_error (GError **error, GQuark domain, int code, const char *format, ...)
{
  g_autofree char *text = NULL;
  g_autofree char *line = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  line = rn_printable (text, FALSE);
  g_set_error_literal (error, domain, code, line);
}

const char *
rn_status_name (RnStatus status)
{
  switch (status)
    {
    case RN_STATUS_OK:
      return "ok";
    case RN_STATUS_SHAPE:
      return "sizes do not fit the op";
    case RN_STATUS_DTYPE:
      return "wrong element type";
    case RN_STATUS_UNSUPPORTED:
      return "no kernel takes the call";
    case RN_STATUS_MEMORY:
      return "out of memory";
    case RN_STATUS_DEVICE:
      return "the device failed";
    }
  return "unknown status";
}
