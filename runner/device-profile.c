#include "config.h"

#include "runner/device-profile.h"

#include "runner/base/error.h"
#include "runner/base/json.h"
#include "runner/base/open-file.h"
#include "runner/base/registry.h"
#include "runner/install-dirs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".json"
#define MAX_BYTES 65536
#define MAX_DEPTH 4

/* Where they are: with the program that was built and not installed, which libtool keeps in .libs of its
 * folder, or where they were installed. (transfer full) */
static char *
profile_folder (void)
{
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = program != NULL ? g_path_get_dirname (program) : g_strdup ("");

  if (g_str_has_suffix (folder, G_DIR_SEPARATOR_S ".libs"))
    {
      g_autofree char *built = g_build_filename (folder, "..", "..", "cuda", "profiles", NULL);
      if (g_file_test (built, G_FILE_TEST_IS_DIR))
        return g_canonicalize_filename (built, NULL);
    }
  return g_strdup (RN_PROFILE_DIR);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

char **
rn_device_profile_names (void)
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

static gboolean
fail (const char *name, const char *problem, GError **error)
{
  rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, "device profile %s: %s", name, problem);
  return FALSE;
}

/* The file's text, at most MAX_BYTES. */
static gboolean
read_text (const char *name, int fd, char **text, gsize *size, GError **error)
{
  g_autofree char *buffer = g_malloc (MAX_BYTES + 1);
  gsize n = 0;
  gssize got = 1;

  while (n <= MAX_BYTES && got != 0)
    {
      got = read (fd, buffer + n, MAX_BYTES + 1 - n);
      if (got < 0 && errno != EINTR)
        return fail (name, g_strerror (errno), error);
      n += (gsize) MAX (got, 0);
    }
  if (n > MAX_BYTES)
    return fail (name, "too large to be one", error);
  buffer[n] = '\0';
  *size = n;
  *text = g_steal_pointer (&buffer);
  return TRUE;
}

char *
rn_device_profile_load (const char *name, GError **error)
{
  g_autofree char *folder = profile_folder ();
  g_autofree char *file = g_strconcat (name, SUFFIX, NULL);
  g_autofree char *path = is_path (name) ? g_strdup (name) : g_build_filename (folder, file, NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) cause = NULL;
  gsize size = 0;
  int fd = rn_open_regular (path, NULL);

  if (fd < 0 && !is_path (name))
    {
      g_auto (GStrv) names = rn_device_profile_names ();
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
  gboolean is_read = read_text (name, fd, &text, &size, error);
  close (fd);
  if (!is_read)
    return NULL;
  if (strlen (text) != size || !rn_json_check (text, size, MAX_DEPTH, &cause))
    {
      fail (name, cause != NULL ? cause->message : "not JSON", error);
      return NULL;
    }
  return g_steal_pointer (&text);
}
