#include "config.h"

#include "datasets/voc-find.h"

#include "datasets/split.h"
#include "runner/base/error.h"

#include <string.h>

static gboolean
is_image_ending (const char *ending)
{
  static const char *const endings[] = { ".jpg", ".jpeg", ".png" };

  for (gsize i = 0; i < G_N_ELEMENTS (endings); i++)
    if (g_ascii_strcasecmp (ending, endings[i]) == 0)
      return TRUE;
  return FALSE;
}

static char *
try_usual_endings (const char *stem)
{
  static const char *const endings[] = { "jpg", "JPG", "jpeg", "png", "JPEG", "PNG" };

  for (gsize i = 0; i < G_N_ELEMENTS (endings); i++)
    {
      g_autofree char *path = g_strconcat (stem, ".", endings[i], NULL);

      if (g_file_test (path, G_FILE_TEST_EXISTS))
        return g_steal_pointer (&path);
    }
  return NULL;
}

/* Reads the folder for other spellings (".Jpg"). @similar: "a.bmp" or "A.jpg" for "a". (transfer full) */
static char *
search_folder (const char *stem, char **similar)
{
  g_autofree char *folder = g_path_get_dirname (stem);
  g_autofree char *base = g_path_get_basename (stem);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  gsize n = strlen (base);
  const char *file;

  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL)
    {
      if (g_ascii_strncasecmp (file, base, n) != 0 || file[n] != '.')
        continue;
      if (strncmp (file, base, n) == 0 && is_image_ending (file + n))
        return g_build_filename (folder, file, NULL);
      if (*similar == NULL || strcmp (file, *similar) < 0)
        {
          g_free (*similar);
          *similar = g_strdup (file);
        }
    }
  return NULL;
}

/* The next shorter reading of @name, in place. */
static gboolean
shorten (char *name, gboolean exact)
{
  return !exact && (rn_split_cut_flag (name) || rn_split_cut_ending (name));
}

char *
rn_voc_find_image (const char *prefix, const char *name, gboolean exact, char **id, GError **error)
{
  g_autofree char *reading = g_strdup (name);
  g_autofree char *similar = NULL;
  g_autofree char *stem = NULL;
  char *path;

  do
    {
      g_free (stem);
      stem = g_build_filename (prefix, "JPEGImages", reading, NULL);
      path = try_usual_endings (stem);
    }
  while (path == NULL && shorten (reading, exact));
  if (path == NULL)
    path = search_folder (stem, &similar);
  if (path != NULL)
    *id = g_steal_pointer (&reading);
  else if (similar == NULL)
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING,
                 "%s: no image of this name (.jpg, .jpeg or .png)", stem);
  else
    g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING,
                 "%s: no image of this name (.jpg, .jpeg or .png); there is %s", stem, similar);
  return path;
}
