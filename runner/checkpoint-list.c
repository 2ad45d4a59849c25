#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/checkpoint-list.h"

#include "runner/base/atomic-file.h"
#include "runner/base/error.h"
#include "runner/base/open-file.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#define LIST_NAME "last_checkpoint"
#define LINK_NAME "latest.safetensors"
#define MAX_LIST_BYTES (16 << 20)

/* epoch_N.safetensors or iter_N.safetensors, in this folder or under an absolute path. */
static gboolean
is_entry (const char *text)
{
  if (!g_utf8_validate (text, -1, NULL) || (strchr (text, '/') != NULL && !g_path_is_absolute (text)))
    return FALSE;
  g_autofree char *name = g_path_get_basename (text);
  return g_regex_match_simple ("^(epoch|iter)_[0-9]+\\.safetensors$", name, G_REGEX_DOLLAR_ENDONLY, 0);
}

gboolean
rn_checkpoint_list_owns (const char *name)
{
  return is_entry (name) || strcmp (name, LINK_NAME) == 0;
}

GPtrArray *
rn_checkpoint_list_read (const char *work_dir, GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *path = g_build_filename (work_dir, LIST_NAME, NULL);
  g_autoptr (GError) cause = NULL;

  int fd = rn_open_regular (path, NULL);
  if (fd < 0 && errno == ENOENT)
    return g_steal_pointer (&list);
  if (fd < 0)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "%s: %s", path,
                   rn_open_problem (errno));
      return NULL;
    }
  g_autoptr (GMappedFile) map = g_mapped_file_new_from_fd (fd, FALSE, &cause);
  close (fd);
  if (map == NULL || g_mapped_file_get_length (map) > MAX_LIST_BYTES)
    {
      g_set_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, "%s: %s", path,
                   map == NULL ? cause->message : "too large");
      return NULL;
    }
  g_autofree char *text = g_strndup (g_mapped_file_get_contents (map), g_mapped_file_get_length (map));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line != NULL; line++)
    if (is_entry (g_strstrip (*line)))
      g_ptr_array_add (list, g_strdup (*line));
    else if (**line != '\0')
      g_warning ("%s: \"%s\" is not the name of a checkpoint: left out", path, *line);
  return g_steal_pointer (&list);
}

char *
rn_checkpoint_list_path (const char *work_dir, const char *entry)
{
  return g_path_is_absolute (entry) ? g_strdup (entry) : g_build_filename (work_dir, entry, NULL);
}

static gboolean
write_list (const GPtrArray *list, const char *work_dir, GError **error)
{
  g_autofree char *path = g_build_filename (work_dir, LIST_NAME, NULL);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GError) cause = NULL;

  for (guint i = 0; i < list->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (list, i));
  if (rn_atomic_file_save (path, text->str, text->len, &cause))
    return TRUE;
  g_set_error_literal (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE, cause->message);
  return FALSE;
}

/* The link is for people and tools; some file systems have none. */
static void
update_link (const char *work_dir, const char *entry)
{
  g_autofree char *path = g_build_filename (work_dir, LINK_NAME, NULL);
  g_autofree char *temporary = g_strconcat (path, ".new", NULL);

  if (g_file_test (path, G_FILE_TEST_EXISTS) && !g_file_test (path, G_FILE_TEST_IS_SYMLINK))
    {
      g_warning ("%s is a file, not our link: left as it is", path);
      return;
    }
  g_unlink (temporary);
  if (symlink (entry, temporary) != 0 || g_rename (temporary, path) != 0)
    {
      g_warning ("%s: no link to the newest checkpoint: %s", path, g_strerror (errno));
      g_unlink (temporary);
    }
}

/* Adding a name that is there already (a resumed run writes the file anew) moves it to the front. */
static void
push_front (GPtrArray *list, const char *entry)
{
  for (guint i = list->len; i-- > 0;)
    if (strcmp (g_ptr_array_index (list, i), entry) == 0)
      g_ptr_array_remove_index (list, i);
  g_ptr_array_insert (list, 0, g_strdup (entry));
}

gboolean
rn_checkpoint_list_add (GPtrArray *list, const char *work_dir, const char *entry, gint64 max_keep,
                        GError **error)
{
  push_front (list, entry);
  return write_list (list, work_dir, error) && rn_checkpoint_list_settle (list, work_dir, max_keep, error);
}

gboolean
rn_checkpoint_list_settle (GPtrArray *list, const char *work_dir, gint64 max_keep, GError **error)
{
  if (list->len == 0)
    return TRUE;
  update_link (work_dir, g_ptr_array_index (list, 0));
  if (max_keep <= 0 || list->len <= (guint64) max_keep)
    return TRUE;
  while (list->len > (guint64) max_keep)
    {
      g_autofree char *path = rn_checkpoint_list_path (work_dir, g_ptr_array_index (list, list->len - 1));
      if (g_unlink (path) != 0 && errno != ENOENT)
        g_warning ("%s: not deleted: %s", path, g_strerror (errno));
      g_ptr_array_remove_index (list, list->len - 1);
    }
  return write_list (list, work_dir, error);
}
