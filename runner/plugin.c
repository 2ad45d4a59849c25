#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/plugin.h"

#include <runner/engine.h>
#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/crc32c.h"
#include "runner/hook-class.h"
#include "runner/install-dirs.h"

#include <gmodule.h>
#include <string.h>

#define QUERY "rn_plugin_query_"
#define CLOSURE "rn_closure_"
#define MAX_HOOKS 256
#define SUFFIX "." G_MODULE_SUFFIX

typedef const RnHookDesc *const *(*QueryFunc) (void);

/* A plugin that is there to stay. */
typedef struct
{
  char *path; /* without links and dots: tells whether it is loaded already */
  GModule *module;
  const RnHookDesc *const *hooks; /* NULL-ended; the plugin's own */
  guint32 checksum;               /* of the file */
} Plugin;

static GPtrArray *loaded;    /* of Plugin, or NULL */
static char **extra_folders; /* of --plugin-path, or NULL */

static gboolean fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  rn_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE, "%s", text);
  return FALSE;
}

/* ---- Loading ---- */

/* Its query function; the number in its name is the major one of the ABI. */
static QueryFunc
find_query (GModule *module, GError **error)
{
  gpointer symbol;
  G_STATIC_ASSERT (RN_HOOK_ABI_MAJOR == 1);

  if (g_module_symbol (module, QUERY "1", &symbol) && symbol != NULL)
    return (QueryFunc) symbol;
  for (guint major = 2; major < 10; major++)
    {
      g_autofree char *name = g_strdup_printf (QUERY "%u", major);
      if (g_module_symbol (module, name, &symbol))
        {
          fail (error, "made for hook ABI %u, this program has %u.%u", major, RN_HOOK_ABI_MAJOR,
                RN_HOOK_ABI_MINOR);
          return NULL;
        }
    }
  fail (error,
        "no plugin: it has no " QUERY "1; RN_HOOK_DEFINE makes it, or RN_PLUGIN_HOOKS for several hooks");
  return NULL;
}

static gboolean
check_hooks (const RnHookDesc *const *hooks, GError **error)
{
  if (hooks == NULL)
    return fail (error, QUERY "1 gives no list");
  for (guint i = 0; hooks[i] != NULL; i++)
    {
      if (i == MAX_HOOKS)
        return fail (error, "its list of hooks has no end");
      if (!rn_hook_desc_check (hooks[i], error))
        return FALSE;
      for (guint k = 0; k < i; k++)
        if (strcmp (hooks[k]->name, hooks[i]->name) == 0)
          return fail (error, "it has two hooks named %s", hooks[i]->name);
    }
  return TRUE;
}

/* "MyHook 1.0, OtherHook" (transfer full) */
static char *
list_hooks (const Plugin *plugin)
{
  GString *text = g_string_new (NULL);

  for (const RnHookDesc *const *hook = plugin->hooks; *hook != NULL; hook++)
    g_string_append_printf (text, "%s%s%s%s", text->len > 0 ? ", " : "", (*hook)->name,
                            (*hook)->version != NULL ? " " : "",
                            (*hook)->version != NULL ? (*hook)->version : "");
  return g_string_free (text->len > 0 ? text : g_string_append (text, "functions for ClosureHook"), FALSE);
}

static gboolean
read_checksum (const char *path, guint32 *checksum, GError **error)
{
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, error);

  if (file == NULL)
    return FALSE;
  *checksum = rn_crc32c (0, g_mapped_file_get_contents (file), g_mapped_file_get_length (file));
  return TRUE;
}

static void
keep (Plugin *plugin)
{
  g_module_make_resident (plugin->module);
  if (loaded == NULL)
    loaded = g_ptr_array_new ();
  g_ptr_array_add (loaded, plugin);

  g_autofree char *hooks = list_hooks (plugin);
  g_message ("plugin %s: %s", plugin->path, hooks);
}

/* All or nothing: the hooks are checked before the first is registered. */
static gboolean
open_plugin (const char *path, GError **error)
{
  guint32 checksum;

  if (!read_checksum (path, &checksum, error))
    return FALSE;
  /* Not lazily: a missing symbol is found now, with its name, not in the middle of a run. */
  GModule *module = g_module_open_full (path, G_MODULE_BIND_LOCAL, error);
  if (module == NULL)
    return FALSE;
  QueryFunc query = find_query (module, error);
  const RnHookDesc *const *hooks = query != NULL ? query () : NULL;
  if (query == NULL || !check_hooks (hooks, error))
    {
      g_module_close (module);
      return FALSE;
    }
  for (const RnHookDesc *const *hook = hooks; *hook != NULL; hook++)
    {
      gboolean is_ok = rn_hook_register_from (*hook, path, NULL);
      g_assert (is_ok); /* was checked */
    }
  Plugin *plugin = g_new (Plugin, 1);
  *plugin = (Plugin){ g_strdup (path), module, hooks, checksum };
  keep (plugin);
  return TRUE;
}

static gboolean
load (const char *path, GError **error)
{
  g_autofree char *real = realpath (path, NULL);
  GError *cause = NULL;

  for (guint i = 0; loaded != NULL && i < loaded->len; i++)
    if (g_strcmp0 (((const Plugin *) g_ptr_array_index (loaded, i))->path, real) == 0)
      return TRUE;
  rn_hooks_register (); /* names of built-in hooks are taken */
  if (open_plugin (real != NULL ? real : path, &cause))
    return TRUE;
  /* The dynamic loader names the file itself. */
  fail (error, "%s%s%s", strstr (cause->message, path) != NULL ? "" : path,
        strstr (cause->message, path) != NULL ? "" : ": ", cause->message);
  g_error_free (cause);
  return FALSE;
}

/* ---- Looking for the file ---- */

static gboolean
is_path (const char *name)
{
  return strchr (name, G_DIR_SEPARATOR) != NULL || g_str_has_suffix (name, SUFFIX);
}

/* @name, a path or not, from @folder. (transfer full) */
static char *
place_of (const char *folder, const char *name)
{
  gboolean is_whole = g_path_is_absolute (name) || (is_path (name) && strcmp (folder, ".") == 0);
  char *whole = is_whole ? g_strdup (name) : g_build_filename (folder, name, NULL);
  gsize n = strlen (whole);

  while (n > 1 && whole[n - 1] == G_DIR_SEPARATOR)
    whole[--n] = '\0';
  return whole;
}

/* The plugin @name (a path or not) that begins at @folder, or NULL: a file, NAME.so, or NAME/NAME.so as
 * `runner new-hook` makes it. (transfer full) */
static char *
find_at (const char *folder, const char *name)
{
  g_autofree char *whole = place_of (folder, name);
  g_autofree char *base = g_path_get_basename (whole), *file = g_strconcat (base, SUFFIX, NULL);
  char *candidates[] = { g_strdup (whole), g_strconcat (whole, SUFFIX, NULL),
                         g_build_filename (whole, file, NULL) };
  char *found = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (candidates); i++)
    if (found == NULL && g_file_test (candidates[i], G_FILE_TEST_IS_REGULAR)
        && (i > 0 || is_path (name))) /* a name alone is not that of a whole file */
      found = g_steal_pointer (&candidates[i]);
    else
      g_free (candidates[i]);
  return found;
}

static void
add_folders (GPtrArray *folders, const char *list)
{
  g_auto (GStrv) parts = g_strsplit (list != NULL ? list : "", G_SEARCHPATH_SEPARATOR_S, -1);

  for (char **part = parts; *part != NULL; part++)
    if (**part != '\0')
      g_ptr_array_add (folders, g_strdup (*part));
}

/* In which a plugin is looked for. @first (nullable): the folder of the file that names it. (transfer full)
 */
static GPtrArray *
search_path (const char *first, gboolean for_path)
{
  GPtrArray *folders = g_ptr_array_new_with_free_func (g_free);

  if (first != NULL)
    g_ptr_array_add (folders, g_strdup (first));
  if (for_path)
    {
      g_ptr_array_add (folders, g_strdup ("."));
      return folders;
    }
  for (char **list = extra_folders; list != NULL && *list != NULL; list++)
    add_folders (folders, *list);
  add_folders (folders, g_getenv ("RN_PLUGIN_PATH"));
  g_ptr_array_add (folders, g_strdup (RN_PLUGIN_DIR));
  return folders;
}

/* What to do where the path @place has no plugin, as the end of a message: its folder may have one of another
 * name, or one that is not built yet. (transfer full) */
static char *
advice_on_path (const char *place)
{
  gboolean is_folder = g_file_test (place, G_FILE_TEST_IS_DIR);
  g_autofree char *folder = is_folder ? g_strdup (place) : g_path_get_dirname (place);
  g_autofree char *makefile = g_build_filename (folder, "Makefile", NULL);
  g_autoptr (GDir) files = g_dir_open (folder, 0, NULL);
  const char *file;

  while (is_folder && files != NULL && (file = g_dir_read_name (files)) != NULL)
    if (g_str_has_suffix (file, SUFFIX))
      return g_strdup_printf ("; what works: %s" G_DIR_SEPARATOR_S "%s", place, file);
  g_autofree char *base = g_path_get_basename (place), *text = NULL;
  if (g_file_test (makefile, G_FILE_TEST_IS_REGULAR) && g_file_get_contents (makefile, &text, NULL, NULL)
      && strstr (text, is_folder ? SUFFIX : base) != NULL)
    return g_strdup_printf ("; is it built? make -C %s", folder);
  return NULL;
}

static gboolean
not_found (const char *name, GPtrArray *folders, GError **error)
{
  g_autofree char *here = is_path (name) ? NULL : find_at (".", name);

  g_ptr_array_add (folders, NULL);
  g_autofree char *places = g_strjoinv (", ", (char **) folders->pdata);
  if (here != NULL)
    return fail (error, "no plugin \"%s\" in %s; what works: the path %s, or --plugin-path .", name, places,
                 here);
  if (is_path (name))
    {
      g_autofree char *advice = NULL;
      for (guint i = 0; i + 1 < folders->len && advice == NULL; i++)
        {
          g_autofree char *place = place_of (g_ptr_array_index (folders, i), name);
          advice = advice_on_path (place);
        }
      gboolean is_file = g_str_has_suffix (name, SUFFIX);
      return fail (error, "no file %s%s, from %s%s", name, is_file ? "" : SUFFIX, places,
                   advice != NULL ? advice : "");
    }
  return fail (error,
               "no plugin \"%s\" (%s" SUFFIX
               ") in %s; --plugin-path DIR adds a folder; the `type:` of a hook "
               "goes into custom_hooks",
               name, name, places);
}

static gboolean
find_and_load (const char *name, const char *first, char **found, GError **error)
{
  g_autoptr (GPtrArray) folders = search_path (first, is_path (name));

  if (*name == '\0')
    return fail (error, "the name of a plugin is empty");
  rn_hooks_register ();
  if (rn_registry_lookup (rn_registry_family ("hook"), name) != NULL)
    return TRUE;
  for (guint i = 0; i < folders->len; i++)
    {
      g_autofree char *path = find_at (g_ptr_array_index (folders, i), name);
      if (path == NULL)
        continue;
      if (!load (path, error))
        return FALSE;
      if (found != NULL)
        *found = g_canonicalize_filename (path, NULL);
      return TRUE;
    }
  return not_found (name, folders, error);
}

/* The entry @key of the configuration. What was found takes the place of the name, so that the configuration
 * that is written to a work dir loads from there. */
static gboolean
load_entry (RnNode *root, const char *key, const RnNode *node, GError **error)
{
  const char *file = rn_node_file (node);
  g_autofree char *folder = file != NULL ? g_path_get_dirname (file) : NULL;
  g_autofree char *path = NULL;
  g_autoptr (GError) cause = NULL;

  if (rn_node_kind (node) != RN_NODE_STRING)
    return rn_node_error (node, error, "must be the name of a plugin, or the path of its file");
  if (!find_and_load (rn_node_as_string (node), folder, &path, &cause))
    return rn_node_error (node, error, "%s", cause->message);
  return path == NULL || rn_config_set (root, key, rn_node_new_string (path, rn_node_origin (node)), error);
}

void
rn_plugins_set_path (const char *const *folders)
{
  g_strfreev (extra_folders);
  extra_folders = g_strdupv ((char **) folders);
}

gboolean
rn_plugins_load (RnNode *root, GError **error)
{
  const RnNode *list = rn_node_get (root, "plugins");

  if (rn_node_is_null (list))
    return TRUE;
  if (rn_node_kind (list) != RN_NODE_LIST)
    return load_entry (root, "plugins", list, error);
  for (guint i = 0; i < rn_node_size (list); i++)
    {
      g_autofree char *key = g_strdup_printf ("plugins.%u", i);
      if (!load_entry (root, key, rn_node_item (list, i), error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_plugins_load_name (const char *name, GError **error)
{
  return find_and_load (name, NULL, NULL, error);
}

RnClosureFunc
rn_find_closure (const char *name)
{
  g_autofree char *symbol_name = g_strconcat (CLOSURE, name, NULL);
  gpointer symbol;

  for (guint i = 0; loaded != NULL && i < loaded->len; i++)
    {
      const Plugin *plugin = g_ptr_array_index (loaded, i);
      if (g_module_symbol (plugin->module, symbol_name, &symbol) && symbol != NULL)
        return *(const RnClosureFunc *) symbol;
    }
  return NULL;
}

/* ---- Checkpoints ---- */

static void
append_line (GString *text, const Plugin *plugin, const RnHookDesc *hook)
{
  g_autofree char *path = g_strdelimit (g_strdup (plugin->path), "\t\n", '?');
  g_autofree char *base = g_path_get_basename (path);

  g_string_append_printf (text, "%s%s\t%s\t%08x\t%s", text->len > 0 ? "\n" : "",
                          hook != NULL ? hook->name : base,
                          hook != NULL && hook->version != NULL ? hook->version : "", plugin->checksum, path);
}

char *
rn_plugins_describe (void)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; loaded != NULL && i < loaded->len; i++)
    {
      const Plugin *plugin = g_ptr_array_index (loaded, i);
      if (plugin->hooks[0] == NULL)
        append_line (text, plugin, NULL);
      for (const RnHookDesc *const *hook = plugin->hooks; *hook != NULL; hook++)
        append_line (text, plugin, *hook);
    }
  return g_string_free (text, text->len == 0);
}

/* The four fields of the line of @name in @text, or NULL. (transfer full) */
static char **
find_line (const char *text, const char *name)
{
  g_auto (GStrv) lines = g_strsplit (text != NULL ? text : "", "\n", -1);

  for (char **line = lines; *line != NULL; line++)
    {
      g_auto (GStrv) fields = g_strsplit (*line, "\t", 4);
      if (g_strv_length (fields) == 4 && strcmp (fields[0], name) == 0)
        return g_steal_pointer (&fields);
    }
  return NULL;
}

static void
compare_line (char **was, const char *now_text)
{
  g_auto (GStrv) now = find_line (now_text, was[0]);

  if (now == NULL)
    g_warning ("resume: the checkpoint was made with the plugin %s (%s), which is not loaded now", was[0],
               was[3]);
  else if (strcmp (was[1], now[1]) != 0)
    g_warning ("resume: the plugin %s was version \"%s\" in the checkpoint and is \"%s\" now", was[0], was[1],
               now[1]);
  else if (strcmp (was[2], now[2]) != 0)
    g_warning ("resume: the plugin %s is the same version, but another file than in the checkpoint (%s)",
               was[0], now[3]);
}

void
rn_plugins_compare (const char *stored)
{
  g_autofree char *now = rn_plugins_describe ();
  g_auto (GStrv) was_lines = g_strsplit (stored != NULL ? stored : "", "\n", -1);
  g_auto (GStrv) now_lines = g_strsplit (now != NULL ? now : "", "\n", -1);

  for (char **line = was_lines; *line != NULL; line++)
    {
      g_auto (GStrv) fields = g_strsplit (*line, "\t", 4);
      if (g_strv_length (fields) == 4)
        compare_line (fields, now);
    }
  for (char **line = now_lines; *line != NULL; line++)
    {
      g_auto (GStrv) fields = g_strsplit (*line, "\t", 4);
      g_auto (GStrv) was = find_line (stored, fields[0]);
      if (was == NULL)
        g_warning ("resume: the plugin %s (%s) was not loaded when the checkpoint was made", fields[0],
                   fields[3]);
    }
}
