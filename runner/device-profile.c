#include "config.h"

#include "runner/device-profile.h"

#include "runner/base/built-file.h"
#include "runner/base/error.h"
#include "runner/base/json.h"
#include "runner/base/open-file.h"
#include "runner/base/registry.h"
#include "runner/install-dirs.h"

#include <errno.h>
#include <json-glib/json-glib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".json"
#define MAX_BYTES 65536
#define MAX_DEPTH 4

/* Where they were built or installed. (transfer full) */
static char *
profile_folder (void)
{
  char *built = rn_built_file ("cuda/profiles");
  return built != NULL ? built : g_strdup (RN_PROFILE_DIR);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* Of those that come with the program, sorted. NULL-ended, perhaps empty. (transfer full) */
static char **
profile_names (void)
{
  g_autofree char *folder = profile_folder ();
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  GPtrArray *names = g_ptr_array_new ();
  const char *file;

  while (dir != NULL && (file = g_dir_read_name (dir)) != NULL)
    if (g_str_has_suffix (file, SUFFIX))
      g_ptr_array_add (names, g_strndup (file, strlen (file) - strlen (SUFFIX)));
  g_ptr_array_sort (names, compare_names);
  g_ptr_array_add (names, NULL);
  return (char **) g_ptr_array_free (names, FALSE);
}

static gboolean
is_path (const char *name)
{
  return strchr (name, '/') != NULL || g_str_has_suffix (name, SUFFIX);
}

static void
fail (const char *name, const char *problem, GError **error)
{
  rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "device profile %s: %s", name, problem);
}

char *
rn_device_profile_load (const char *name, GError **error)
{
  g_autofree char *folder = profile_folder ();
  g_autofree char *file = g_strconcat (name, SUFFIX, NULL);
  g_autofree char *path = is_path (name) ? g_strdup (name) : g_build_filename (folder, file, NULL);
  g_autoptr (GError) cause = NULL;
  gsize size = 0;
  int fd = rn_open_regular (path, NULL);

  if (fd < 0 && !is_path (name))
    {
      g_auto (GStrv) names = profile_names ();
      g_autofree char *known = g_strjoinv (", ", names);
      const char *nearest = rn_suggest (name, (const char *const *) names);
      g_autofree char *question =
          nearest != NULL ? g_strdup_printf ("; did you mean \"%s\"?", nearest) : g_strdup ("");
      rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE,
                    "no device profile \"%s\" in %s%s There are: %s; or the path of a file", name, folder,
                    nearest != NULL ? question : ".", *known != '\0' ? known : "none");
      return NULL;
    }
  if (fd < 0)
    {
      fail (name, rn_open_problem (errno), error);
      return NULL;
    }
  g_autofree char *text = rn_read_all (fd, MAX_BYTES + 1, &size);
  int code = errno;
  close (fd);
  if (text == NULL || size > MAX_BYTES)
    {
      fail (name, text == NULL ? g_strerror (code) : "too large to be one", error);
      return NULL;
    }
  if (strlen (text) != size || !rn_json_check (text, size, MAX_DEPTH, &cause))
    {
      fail (name, cause != NULL ? cause->message : "not JSON", error);
      return NULL;
    }
  return g_steal_pointer (&text);
}

guint64
rn_device_profile_memory (const char *json)
{
  g_autoptr (JsonParser) parser = json_parser_new ();

  JsonNode *root = json_parser_load_from_data (parser, json, -1, NULL) ? json_parser_get_root (parser) : NULL;
  JsonNode *member = root != NULL && JSON_NODE_HOLDS_OBJECT (root)
                         ? json_object_get_member (json_node_get_object (root), "totalGlobalMem")
                         : NULL;
  if (member == NULL || json_node_get_value_type (member) != G_TYPE_INT64)
    return 0;
  return (guint64) MAX (json_node_get_int (member), 0);
}
