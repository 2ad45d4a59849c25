/* describe.c: a table of keys as documentation. */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/schema.h"

#include <math.h>

static const char *
type_name (RnKeyType type)
{
  static const char *const names[] = { "bool",   "int",     "float", "string", "enum",  "ints",
                                       "floats", "strings", "map",   "any",    "unused" };
  G_STATIC_ASSERT (G_N_ELEMENTS (names) == RN_KEY_UNUSED + 1);

  return names[type];
}

static void
add_range (GString *out, const RnKeySpec *spec)
{
  if (spec->type == RN_KEY_ENUM)
    {
      g_autofree char *names = g_strjoinv (" | ", (char **) spec->names);
      g_string_append_printf (out, ", %s", names);
    }
  else if (isinf (spec->max))
    g_string_append_printf (out, ", at least %g", spec->min);
  else if (spec->min != 0 || spec->max != 0)
    g_string_append_printf (out, ", %g to %g", spec->min, spec->max);
}

static void
add_table (GString *out, const RnKeySpec *keys, const char *prefix)
{
  for (; keys->name; keys++)
    {
      g_autofree char *name = g_strconcat (prefix, keys->name, NULL);

      g_string_append_printf (out, "%-28s %s", name, type_name (keys->type));
      add_range (out, keys);
      if (keys->flags & RN_KEY_NULLABLE)
        g_string_append (out, ", or null");
      if (keys->flags & RN_KEY_REQUIRED)
        g_string_append (out, ", required");
      else if (keys->deflt)
        g_string_append_printf (out, ", default %s", keys->deflt);
      g_string_append_printf (out, ": %s\n", keys->help ? keys->help : "");

      if (keys->type == RN_KEY_MAP)
        {
          g_autofree char *inner = g_strconcat (name, ".", NULL);
          add_table (out, keys->keys, inner);
        }
    }
}

char *
rn_keys_describe (const RnKeySpec *keys)
{
  GString *out = g_string_new (NULL);

  add_table (out, keys, "");
  return g_string_free (out, FALSE);
}
