#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/image-files.h"

#include "runner/base/error.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

/* What one search needs. */
typedef struct
{
  gboolean recursive, has_out_dir;
  GStatBuf out_dir;
  GPtrArray *paths;  /* of char *, the result */
  GHashTable *known; /* of canonical paths */
  guint n_unreadable;
} Search;

static gboolean
missing (GError **error, const char *path, const char *why)
{
  g_autofree char *name = rn_printable (path, FALSE);
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", name, why);
  return FALSE;
}

static gboolean
is_out_dir (const Search *search, const GStatBuf *info)
{
  return search->has_out_dir && info->st_dev == search->out_dir.st_dev
         && info->st_ino == search->out_dir.st_ino;
}

static gboolean
has_image_name (const char *name)
{
  static const char *const endings[] = { ".jpg", ".jpeg", ".png" };
  gsize size = strlen (name);

  if (name[0] == '.')
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (endings); i++)
    {
      gsize n = strlen (endings[i]);
      if (size > n && g_ascii_strcasecmp (name + size - n, endings[i]) == 0)
        return TRUE;
    }
  return FALSE;
}

static void
add_path (Search *search, const char *path)
{
  if (g_hash_table_add (search->known, g_canonicalize_filename (path, NULL)))
    g_ptr_array_add (search->paths, g_strdup (path));
}

/* Sorts one entry of a folder into images and folders that are still to be listed. */
static void
look_at (const Search *search, const char *path, const char *name, GPtrArray *images, GPtrArray *folders)
{
  GStatBuf link, info;

  if (g_lstat (path, &link) != 0)
    return;
  gboolean is_folder = S_ISDIR (link.st_mode) || (g_stat (path, &info) == 0 && S_ISDIR (info.st_mode));
  if (!is_folder && has_image_name (name))
    g_ptr_array_add (images, g_strdup (path));
  if (S_ISDIR (link.st_mode) && search->recursive && name[0] != '.' && !is_out_dir (search, &link))
    g_ptr_array_add (folders, g_strdup (path));
}

static gboolean
list_folder (const Search *search, const char *folder, GPtrArray *images, GPtrArray *folders, GError **error)
{
  g_autoptr (GError) cause = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &cause);
  const char *name;

  if (dir == NULL)
    return missing (error, folder, cause->message);
  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      look_at (search, path, name, images, folders);
    }
  return TRUE;
}

static int
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static gboolean
search_folder (Search *search, const char *top, GError **error)
{
  g_autoptr (GPtrArray) images = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) folders = g_ptr_array_new_with_free_func (g_free);

  if (!list_folder (search, top, images, folders, error))
    return FALSE;
  for (guint i = 0; i < folders->len; i++) /* it grows meanwhile */
    {
      g_autoptr (GError) cause = NULL;
      if (list_folder (search, folders->pdata[i], images, folders, &cause))
        continue;
      g_warning ("%s; left out", cause->message);
      search->n_unreadable++;
    }
  if (images->len == 0)
    {
      g_autofree char *name = rn_printable (top, FALSE);
      g_warning ("%s: no .jpg, .jpeg or .png file in this folder%s", name,
                 search->recursive ? "" : "; --recursive looks into subfolders, too");
    }
  g_ptr_array_sort (images, compare_paths);
  for (guint i = 0; i < images->len; i++)
    add_path (search, images->pdata[i]);
  return TRUE;
}

static gboolean
search_input (Search *search, const char *input, GError **error)
{
  GStatBuf info;

  if (g_stat (input, &info) != 0)
    return missing (error, input, g_strerror (errno));
  if (!S_ISDIR (info.st_mode))
    {
      add_path (search, input);
      return TRUE;
    }
  if (is_out_dir (search, &info))
    return missing (
        error, input,
        "the pictures go to this folder, and would be taken for photographs next time; give another "
        "one to --out");
  return search_folder (search, input, error);
}

GPtrArray *
rn_image_files_find (const char *const *inputs, gboolean recursive, const char *out_dir, guint *n_unreadable,
                     GError **error)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) known = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Search search = { .recursive = recursive, .paths = paths, .known = known };

  search.has_out_dir = g_stat (out_dir, &search.out_dir) == 0;
  for (guint i = 0; inputs[i] != NULL; i++)
    if (!search_input (&search, inputs[i], error))
      return NULL;
  *n_unreadable = search.n_unreadable;
  if (paths->len == 0)
    {
      g_set_error_literal (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "no image to look at");
      return NULL;
    }
  return g_steal_pointer (&paths);
}
