#include "config.h"

#include "runner/new-hook.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/folder.h"
#include "runner/hook-class.h"
#include "runner/install-dirs.h"

#include <string.h>

#define MAX_NAME 60
#define SUFFIX "Hook"
#define UNINSTALLED "runner-1-uninstalled.pc"

/* Each file, with @name@ and the like. */
static const struct
{
  const char *file, *text;
} templates[] = {
#include "runner/new-hook-text.h"
};

/* ---- Names ---- */

/* "MyHook", "my-hook" -> "my_hook" */
static char *
to_snake (const char *word)
{
  GString *text = g_string_new (NULL);

  for (const char *c = word; *c != '\0'; c++)
    {
      gboolean is_upper = g_ascii_isupper (*c);
      gboolean is_start = is_upper && c > word
                          && (g_ascii_islower (c[-1]) || g_ascii_isdigit (c[-1])
                              || (g_ascii_isupper (c[-1]) && g_ascii_islower (c[1])));
      if (is_start)
        g_string_append_c (text, '_');
      g_string_append_c (text, *c == '-' ? '_' : g_ascii_tolower (*c));
    }
  return g_string_free (text, FALSE);
}

/* "my_hook" -> "MyHook", "my" -> "MyHook"; a word that has capitals keeps them. */
static char *
to_type (const char *word)
{
  GString *text = g_string_new (NULL);
  gboolean is_start = TRUE;

  for (const char *c = word; *c != '\0'; c++)
    {
      if (*c != '_' && *c != '-')
        g_string_append_c (text, is_start ? g_ascii_toupper (*c) : *c);
      is_start = *c == '_' || *c == '-';
    }
  if (!g_str_has_suffix (text->str, SUFFIX))
    g_string_append (text, SUFFIX);
  return g_string_free (text, FALSE);
}

gboolean
rn_new_hook_names (const char *word, RnNewHookNames *names, GError **error)
{
  gsize n = strspn (word, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-");

  memset (names, 0, sizeof *names);
  if (!g_ascii_isalpha (*word) || word[n] != '\0' || n > MAX_NAME)
    {
      rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                    "\"%s\" cannot be the name of a hook: a letter, then letters, digits and _, at most %d",
                    word, MAX_NAME);
      return FALSE;
    }
  g_autofree char *type = to_type (word);
  rn_hooks_register ();
  if (rn_registry_lookup (rn_registry_family ("hook"), type) != NULL)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                   "there is a hook named %s already (`runner hooks %s`)", type, type);
      return FALSE;
    }
  names->name = to_snake (word);
  names->type = g_steal_pointer (&type);
  return TRUE;
}

void
rn_new_hook_names_clear (RnNewHookNames *names)
{
  g_clear_pointer (&names->name, g_free);
  g_clear_pointer (&names->type, g_free);
}

/* ---- This program, as the Makefile will call it ---- */

/* Would make and the shell take @path as one word? */
static gboolean
is_plain (const char *path)
{
  return path[strspn (path, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-+.,/@~")] == '\0';
}

/* The program and the folder of its .pc file, installed or as it was built. */
static void
find_program (char **runner, char **pkgconfig)
{
  g_autofree char *path = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = path != NULL ? g_path_get_dirname (path) : g_strdup ("");
  g_autofree char *above = g_path_get_dirname (folder);
  g_autofree char *pc = g_build_filename (above, UNINSTALLED, NULL);

  *runner = g_strdup (path != NULL && is_plain (path) ? path : "runner");
  *pkgconfig = g_strdup (RN_PKGCONFIG_DIR);
  /* Libtool keeps the program in .libs, below the script that finds its library. */
  if (!g_str_has_suffix (folder, G_DIR_SEPARATOR_S ".libs") || !g_file_test (pc, G_FILE_TEST_EXISTS)
      || !is_plain (above))
    return;
  g_free (*runner);
  g_free (*pkgconfig);
  *runner = g_build_filename (above, "runner", NULL);
  *pkgconfig = g_strdup (above);
}

/* ---- Files ---- */

static char *
fill_in (const char *text, const RnNewHookNames *names)
{
  g_autofree char *runner = NULL, *pkgconfig = NULL;
  GString *filled = g_string_new (text);

  find_program (&runner, &pkgconfig);
  g_string_replace (filled, "@name@", names->name, 0);
  g_string_replace (filled, "@Type@", names->type, 0);
  g_string_replace (filled, "@runner@", runner, 0);
  g_string_replace (filled, "@pkgconfigdir@", pkgconfig, 0);
  return g_string_free (filled, FALSE);
}

static gboolean
check_empty (const char *dir, GError **error)
{
  g_autoptr (GDir) folder = g_dir_open (dir, 0, NULL);

  if (folder == NULL || g_dir_read_name (folder) == NULL)
    return TRUE;
  rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                "%s is not empty; a second argument names another folder", dir);
  return FALSE;
}

gboolean
rn_new_hook_write (const RnNewHookNames *names, const char *dir, GError **error)
{
  if (!check_empty (dir, error) || !rn_folder_make (dir, error))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (templates); i++)
    {
      g_autofree char *source = g_strconcat (names->name, ".c", NULL);
      const char *file = strcmp (templates[i].file, "hook.c") == 0 ? source : templates[i].file;
      g_autofree char *path = g_build_filename (dir, file, NULL), *text = fill_in (templates[i].text, names);
      if (!rn_atomic_file_save (path, text, strlen (text), error))
        return FALSE;
    }
  return TRUE;
}
