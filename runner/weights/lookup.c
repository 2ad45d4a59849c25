#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/weights/lookup.h"

#include <string.h>

#define TORCHVISION "torchvision://"
#define FOLDERS "RN_WEIGHTS"

static const char *const suffixes[] = { ".safetensors", ".pth" };

/* What torch.hub has in $TORCH_HOME/hub/checkpoints. (transfer full) */
static char *
torch_cache (void)
{
  const char *home = g_getenv ("TORCH_HOME"), *cache = g_getenv ("XDG_CACHE_HOME");
  g_autofree char *torch = NULL;

  if (home != NULL && g_str_has_prefix (home, "~/"))
    torch = g_build_filename (g_get_home_dir (), home + 2, NULL);
  else if (home != NULL && *home != '\0')
    torch = g_strdup (home);
  else if (cache != NULL && *cache != '\0')
    torch = g_build_filename (cache, "torch", NULL);
  else
    torch = g_build_filename (g_get_home_dir (), ".cache", "torch", NULL);
  return g_build_filename (torch, "hub", "checkpoints", NULL);
}

/* The folders that are searched, whether they are there or not; NULL-ended. (transfer full) */
static char **
search_folders (void)
{
  g_autoptr (GStrvBuilder) folders = g_strv_builder_new ();
  g_auto (GStrv) own =
      g_strsplit (g_getenv (FOLDERS) != NULL ? g_getenv (FOLDERS) : "", G_SEARCHPATH_SEPARATOR_S, -1);
  g_autofree char *cache = torch_cache ();

  for (char **folder = own; *folder != NULL; folder++)
    if (**folder != '\0')
      g_strv_builder_add (folders, *folder);
  g_strv_builder_add (folders, "weights");
  g_strv_builder_add (folders, cache);
  return g_strv_builder_end (folders);
}

/* 0: NAME and a suffix; 1: NAME-HASH and a suffix; -1: another file. */
static int
match_name (const char *entry, const char *name)
{
  if (!g_str_has_prefix (entry, name))
    return -1;
  const char *rest = entry + strlen (name);
  for (gsize i = 0; i < G_N_ELEMENTS (suffixes); i++)
    {
      if (strcmp (rest, suffixes[i]) == 0)
        return 0;
      if (*rest == '-' && g_str_has_suffix (rest, suffixes[i]))
        return 1;
    }
  return -1;
}

typedef struct
{
  char *name;
  int rank;
} Candidate;

static void
candidate_free (gpointer data)
{
  g_free (((Candidate *) data)->name);
  g_free (data);
}

/* Whole names before those with a hash, then by name: among torchvision's hashes that is the older recipe,
 * the one that MMDetection starts from. */
static int
compare_candidates (gconstpointer a, gconstpointer b)
{
  const Candidate *x = *(const Candidate *const *) a, *y = *(const Candidate *const *) b;
  return x->rank != y->rank ? x->rank - y->rank : strcmp (x->name, y->name);
}

/* (transfer full) of Candidate, the best first */
static GPtrArray *
list_candidates (const char *folder, const char *name)
{
  GPtrArray *found = g_ptr_array_new_with_free_func (candidate_free);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);

  for (const char *entry = dir != NULL ? g_dir_read_name (dir) : NULL; entry != NULL;
       entry = g_dir_read_name (dir))
    {
      int rank = match_name (entry, name);
      if (rank < 0)
        continue;
      Candidate *candidate = g_new (Candidate, 1);
      *candidate = (Candidate){ g_strdup (entry), rank };
      g_ptr_array_add (found, candidate);
    }
  g_ptr_array_sort (found, compare_candidates);
  return found;
}

/* @says: which file it is, where that was a choice. */
static char *
find_torchvision (const char *name, const char *const *folders, gboolean says)
{
  for (; *folders != NULL; folders++)
    {
      g_autoptr (GPtrArray) found = list_candidates (*folders, name);
      if (found->len == 0)
        continue;
      char *path =
          g_build_filename (*folders, ((const Candidate *) g_ptr_array_index (found, 0))->name, NULL);
      g_autoptr (GString) others = g_string_new (NULL);
      for (guint i = 1; i < found->len; i++)
        g_string_append_printf (others, "%s%s", i == 1 ? " (also there: " : ", ",
                                ((const Candidate *) g_ptr_array_index (found, i))->name);
      if (says)
        g_message (TORCHVISION "%s is %s%s%s", name, path, others->str, others->len > 0 ? ")" : "");
      return path;
    }
  return NULL;
}

static gboolean
is_plain_name (const char *name)
{
  for (const char *p = name; *p != '\0'; p++)
    if (!g_ascii_isalnum (*p) && *p != '_')
      return FALSE;
  return *name != '\0';
}

/* (transfer full) */
static char *
list_folders (const char *const *folders)
{
  g_autofree char *list = g_strjoinv (", ", (char **) folders);
  return g_strconcat (list, g_getenv (FOLDERS) == NULL ? " ($" FOLDERS " could name more)" : "", NULL);
}

static char *
find_path (const RnNode *node, const char *path, const char *const *folders, const char *instead,
           gboolean says, GError **error)
{
  if (g_file_test (path, G_FILE_TEST_EXISTS))
    return g_strdup (path);
  for (const char *const *folder = folders; *path != '\0' && !g_path_is_absolute (path) && *folder != NULL;
       folder++)
    {
      g_autofree char *there = g_build_filename (*folder, path, NULL);
      if (!g_file_test (there, G_FILE_TEST_EXISTS))
        continue;
      if (says)
        g_message ("%s is %s", path, there);
      return g_steal_pointer (&there);
    }
  g_autofree char *places = list_folders (folders);
  if (g_path_is_absolute (path))
    rn_node_error (node, error, "there is no file %s; %s", path, instead);
  else
    rn_node_error (node, error, "there is no file %s here, nor in %s; %s", path, places, instead);
  return NULL;
}

static char *
find (const RnNode *node, const char *instead, gboolean says, GError **error)
{
  g_auto (GStrv) own = search_folders ();
  const char *const *folders = (const char *const *) own;

  if (node == NULL || rn_node_kind (node) != RN_NODE_STRING)
    {
      rn_node_error (node, error, "needs a file, or " TORCHVISION "NAME");
      return NULL;
    }
  const char *text = rn_node_as_string (node);
  if (strstr (text, "://") == NULL)
    return find_path (node, text, folders, instead, says, error);
  if (!g_str_has_prefix (text, TORCHVISION) || !is_plain_name (text + strlen (TORCHVISION)))
    {
      rn_node_error (
          node, error,
          "\"%s\" is not looked up, because this program downloads nothing; what works: the path of "
          "a .pth or .safetensors file, or " TORCHVISION "NAME for one in torch's cache; %s",
          text, instead);
      return NULL;
    }

  const char *name = text + strlen (TORCHVISION);
  char *path = find_torchvision (name, folders, says);
  if (path != NULL)
    return path;
  g_autofree char *places = list_folders (folders);
  rn_node_error (node, error,
                 "no %s.safetensors, %s.pth or %s-*.pth in %s; what puts it into the last one: python3 -c "
                 "\"import torchvision; torchvision.models.%s(weights='IMAGENET1K_V1')\"; %s",
                 name, name, name, places, name, instead);
  return NULL;
}

char *
rn_weights_find (const RnNode *node, const char *instead, GError **error)
{
  return find (node, instead, TRUE, error);
}

gboolean
rn_weights_exist (const RnNode *node, const char *instead, GError **error)
{
  g_autofree char *path = find (node, instead, FALSE, error);
  return path != NULL;
}
