/* sniff.c: what somebody gave in place of a configuration. */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/sniff.h"

#include <string.h>
#include "runner/base/file-kind.h"
#include "runner/base/registry.h"

#define MAX_ENTRIES 4096 /* of a folder, in the search for a similar name */

const char *
rn_sniff_content (const char *data, gsize length)
{
  const char *what;
  RnFileKind kind = rn_file_kind ((const guint8 *) data, length, &what);

  return kind == RN_FILE_IMAGE || kind == RN_FILE_OTHER ? what : NULL;
}

static gboolean
is_statement (const char *line, gsize length)
{
  static const char *const words[] = { "import ", "from ", "def ", "class ", "\"\"\"" };
  gsize n = 0;

  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    if (length >= strlen (words[i]) && memcmp (line, words[i], strlen (words[i])) == 0)
      return memchr (line, ':', length) == NULL || *line == 'd' || *line == 'c';
  while (n < length && (g_ascii_isalnum (line[n]) || line[n] == '_'))
    n++;
  gboolean is_name = n > 0 && !g_ascii_isdigit (line[0]);
  while (n < length && line[n] == ' ')
    n++;
  return is_name && n + 1 < length && line[n] == '=' && line[n + 1] != '=';
}

int
rn_sniff_python (const char *text, gsize length)
{
  int line = 1;

  for (gsize i = 0; i < length; line++)
    {
      const char *end = memchr (text + i, '\n', length - i);
      gsize n = end != NULL ? (gsize) (end - text) - i : length - i;
      gsize start = 0;
      while (start < n && g_ascii_isspace (text[i + start]))
        start++;
      if (start < n && text[i + start] != '#')
        return start == 0 && is_statement (text + i, n) ? line : 0;
      i += n + 1;
    }
  return 0;
}

/* @name up to its last dot. (transfer full) */
static char *
stem_of (const char *name)
{
  const char *dot = strrchr (name, '.');

  return dot != NULL && dot != name ? g_strndup (name, (gsize) (dot - name)) : g_strdup (name);
}

/* Stems are compared: that two names end in ".yaml" makes them no more alike. */
char *
rn_sniff_nearest_file (const char *path)
{
  g_autofree char *folder = g_path_get_dirname (path), *base = g_path_get_basename (path);
  g_autofree char *wanted = stem_of (base);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free),
                        stems = g_ptr_array_new_with_free_func (g_free);
  const char *entry;

  while (dir != NULL && names->len < MAX_ENTRIES && (entry = g_dir_read_name (dir)) != NULL)
    if (g_utf8_validate (entry, -1, NULL))
      {
        g_ptr_array_add (names, g_strdup (entry));
        g_ptr_array_add (stems, stem_of (entry));
      }
  g_ptr_array_add (stems, NULL);

  const char *nearest = rn_suggest (wanted, (const char *const *) stems->pdata);
  for (guint i = 0; nearest != NULL && i < names->len; i++)
    if (stems->pdata[i] == nearest)
      return strcmp (folder, ".") == 0 ? g_strdup (names->pdata[i])
                                       : g_build_filename (folder, names->pdata[i], NULL);
  return NULL;
}
