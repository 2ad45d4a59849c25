#include "config.h"

#include <runner/engine.h>

char *
rn_format_duration (double seconds)
{
  gint64 s = (gint64) CLAMP (seconds, 0, 1e15), days = s / 86400;
  g_autofree char *clock =
      g_strdup_printf ("%d:%02d:%02d", (int) (s / 3600 % 24), (int) (s / 60 % 60), (int) (s % 60));

  if (days == 0)
    return g_steal_pointer (&clock);
  return g_strdup_printf ("%" G_GINT64_FORMAT " day%s, %s", days, days == 1 ? "" : "s", clock);
}
