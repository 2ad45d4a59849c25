#include "config.h"

#include "datasets/split.h"

#include "datasets/file.h"
#include "runner/base/error.h"

#include <string.h>

#define MAX_NAMES (1 << 22)
#define MAX_NAME 1024 /* bytes; a longer one would only fill the screen */

void
rn_split_free (RnSplit *split)
{
  if (split == NULL)
    return;
  g_free (split->path);
  g_ptr_array_unref (split->names);
  g_array_unref (split->lines);
  g_free (split);
}

char *
rn_split_where (const RnSplit *split, int64_t i)
{
  if (split->lines->len == 0)
    return g_strdup (split->path);
  return g_strdup_printf ("%s:%u", split->path, g_array_index (split->lines, guint, i));
}

gboolean
rn_split_cut_flag (char *name)
{
  static const char *const flags[] = { "-1", "0", "1" };
  char *last = name + strlen (name);

  while (last > name && last[-1] != ' ' && last[-1] != '\t')
    last--;
  for (gsize i = 0; last > name && i < G_N_ELEMENTS (flags); i++)
    if (strcmp (last, flags[i]) == 0)
      {
        *last = '\0';
        g_strchomp (name);
        return TRUE;
      }
  return FALSE;
}

gboolean
rn_split_cut_ending (char *name)
{
  static const char *const endings[] = { ".jpg", ".jpeg", ".png", ".xml" };
  gsize n = strlen (name);

  for (gsize i = 0; i < G_N_ELEMENTS (endings); i++)
    {
      gsize size = strlen (endings[i]);

      if (n > size && name[n - size - 1] != '/' && g_ascii_strcasecmp (name + n - size, endings[i]) == 0)
        {
          name[n - size] = '\0';
          return TRUE;
        }
    }
  return FALSE;
}

/* ---- A list ---- */

/* What @name has to do with its folder, or NULL if all is well. */
static const char *
fault_of (const char *name)
{
  g_auto (GStrv) parts = strlen (name) <= MAX_NAME ? g_strsplit (name, "/", -1) : NULL;

  if (parts == NULL)
    return "is longer than names of files can be";
  for (const char *c = name; *c != '\0'; c++)
    if (g_ascii_iscntrl (*c) && *c != '\t')
      return "has a control character";
  if (*name == '\0')
    return "names no image";
  if (g_path_is_absolute (name) || (g_ascii_isalpha (name[0]) && name[1] == ':' && name[2] == '/'))
    return "is an absolute path; names are relative to JPEGImages";
  if (g_strv_contains ((const char *const *) parts, ".."))
    return "leads out of JPEGImages";
  return NULL;
}

static gboolean
add_line (RnSplit *split, char *line, guint number, GError **error)
{
  const char *name = g_strdelimit (line, "\\", '/'), *fault;

  while (g_str_has_prefix (name, "./"))
    name += 2;
  if (g_str_has_prefix (name, "JPEGImages/"))
    name += strlen ("JPEGImages/");
  while (g_ascii_isspace (*name))
    name++;
  fault = fault_of (name);
  if (fault != NULL)
    {
      g_autofree char *text = g_strescape (name, NULL);

      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s:%u: \"%.200s\" %s", split->path, number,
                   text, fault);
      return FALSE;
    }
  if (split->names->len >= MAX_NAMES)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%s:%u: more than %d names", split->path,
                   number, MAX_NAMES);
      return FALSE;
    }
  g_ptr_array_add (split->names, g_strdup (name));
  g_array_append_val (split->lines, number);
  return TRUE;
}

static gboolean
read_list (RnSplit *split, GError **error)
{
  g_autofree char *text = rn_file_read_text (split->path, error);
  char *cursor = text, *line;

  if (text == NULL)
    return FALSE;
  for (guint number = 1; (line = rn_file_next_line (&cursor)) != NULL; number++)
    if (*line != '\0' && !add_line (split, line, number, error))
      return FALSE;
  return TRUE;
}

/* ---- A folder ---- */

static int
by_text (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static gboolean
read_folder (RnSplit *split, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (GDir) dir = g_dir_open (split->path, 0, &local);
  const char *file;

  if (dir == NULL)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_MISSING, "%s: %s", split->path, local->message);
      return FALSE;
    }
  while ((file = g_dir_read_name (dir)) != NULL)
    {
      gsize n = strlen (file);

      /* The "._0001.xml" of a Macintosh are no annotations. */
      if (n > 4 && file[0] != '.' && strcmp (file + n - 4, ".xml") == 0)
        g_ptr_array_add (split->names, g_strndup (file, n - 4));
    }
  g_ptr_array_sort (split->names, by_text);
  if (split->names->len > 0)
    return TRUE;
  g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_EMPTY, "%s: no .xml file in this folder", split->path);
  return FALSE;
}

RnSplit *
rn_split_read (const char *path, GError **error)
{
  g_autoptr (RnSplit) split = g_new (RnSplit, 1);

  split->path = g_strdup (path);
  split->names = g_ptr_array_new_with_free_func (g_free);
  split->lines = g_array_new (FALSE, FALSE, sizeof (guint));
  if (!(g_file_test (path, G_FILE_TEST_IS_DIR) ? read_folder : read_list) (split, error))
    return NULL;
  return g_steal_pointer (&split);
}
