#include "config.h"
#include "runner/base/size.h"

#include "runner/base/error.h"

#include <string.h>

static const struct
{
  const char *name;
  double bytes;
} units[] = {
  { "", 1 },         { "B", 1 },      { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
  { "TiB", 0x1p40 }, { "K", 0x1p10 }, { "M", 0x1p20 },   { "G", 0x1p30 },   { "T", 0x1p40 },
  { "kB", 1e3 },     { "KB", 1e3 },   { "MB", 1e6 },     { "GB", 1e9 },     { "TB", 1e12 },
};

gboolean
rn_size_parse (const char *text, guint64 *bytes, GError **error)
{
  if (g_ascii_isdigit (*text))
    {
      char *end;
      double number = g_ascii_strtod (text, &end);
      gboolean is_decimal = strspn (text, "0123456789.") == (gsize) (end - text); /* no hex, no exponent */

      while (*end == ' ')
        end++;
      for (gsize i = 0; is_decimal && i < G_N_ELEMENTS (units); i++)
        if (strcmp (end, units[i].name) == 0 && number * units[i].bytes < 0x1p63)
          {
            *bytes = (guint64) (number * units[i].bytes);
            return TRUE;
          }
    }
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
               "\"%s\" is not a size; write a number and a unit, like 700MiB or 2GB", text);
  return FALSE;
}

char *
rn_size_format (guint64 bytes)
{
  static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
  double number = (double) bytes / 1024;
  gsize i = 0;

  if (bytes < 1024)
    return g_strdup_printf ("%d B", (int) bytes);
  for (; number >= 1024 && i + 1 < G_N_ELEMENTS (names); i++)
    number /= 1024;
  return g_strdup_printf ("%.1f %s", number, names[i]);
}
