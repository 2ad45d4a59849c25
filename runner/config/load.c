/* load.c: a file, its bases, the overrides and the references, in this order. */
#include <config.h> /* Autoconf's; with quotes it would be the one beside this file */
#include "runner/config/node-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runner/base/open-file.h"
#include "runner/config/sniff.h"

#define MAX_FILE (8 << 20) /* bytes */
#define MAX_FILES 256      /* read for one configuration, repetitions counted */
#define MAX_NESTING 16     /* bases of bases */

typedef struct
{
  gint64 budget;
  int n_files;
  GPtrArray *open; /* canonical paths of the files being loaded, outermost first */
} Loader;

static RnNode *load_file (Loader *loader, const char *path, GError **error);

/* Path of a file named in the file @from. */
static char *
beside (const char *from, const char *path)
{
  g_autofree char *folder = g_path_get_dirname (from);

  if (g_path_is_absolute (path) || g_str_equal (folder, "."))
    return g_strdup (path);
  return g_build_filename (folder, path, NULL);
}

static gboolean
load_base (Loader *loader, RnNode *bases, const char *from, const RnNode *name, gboolean later_wins,
           GError **error)
{
  if (rn_node_kind (name) != RN_NODE_STRING)
    return rn_node_error (name, error, "needs the name of a file, not %s", rn_node_kind_name (name->kind));

  g_autofree char *path = beside (from, rn_node_as_string (name));
  g_autoptr (RnNode) base = load_file (loader, path, error);
  if (!base)
    {
      /*
       * What is wrong in the file has its own line; that it cannot be read is said of the line that names it.
       */
      if (error && (*error)->domain == G_FILE_ERROR)
        {
          g_autoptr (GError) cause = g_steal_pointer (error);
          gboolean is_lost = g_error_matches (cause, G_FILE_ERROR, G_FILE_ERROR_NOENT)
                             && !g_path_is_absolute (rn_node_as_string (name));
          rn_node_error (name, error, "%s%s%s%s", cause->message,
                         is_lost ? " (looked for in the folder of " : "", is_lost ? from : "",
                         is_lost ? ")" : "");
        }
      return FALSE;
    }
  return rn_merge_bases (bases, base, later_wins, error);
}

/* `_base_: file`, `_base_: [file, file]` or `_base_: {files: [...], later_wins: true}`. */
static gboolean
load_bases (Loader *loader, RnNode *bases, const char *from, const RnNode *spec, GError **error)
{
  gboolean later_wins = FALSE;

  if (rn_node_kind (spec) == RN_NODE_MAP)
    {
      const RnNode *files = rn_node_get (spec, "files");
      const RnNode *later = rn_node_get (spec, "later_wins");
      if (!files || rn_node_size (spec) != (later ? 2 : 1) || (later && rn_node_kind (later) != RN_NODE_BOOL))
        return rn_node_error (spec, error, "as a map, needs files: [...] and may have later_wins: true");
      later_wins = later && rn_node_as_bool (later);
      spec = files;
    }
  if (rn_node_kind (spec) != RN_NODE_LIST)
    return load_base (loader, bases, from, spec, later_wins, error);
  for (guint i = 0; i < rn_node_size (spec); i++)
    if (!load_base (loader, bases, from, rn_node_item (spec, i), later_wins, error))
      return FALSE;
  return TRUE;
}

/* The tree of one file's text, merged over its bases. */
static RnNode *
load_text (Loader *loader, const char *text, gsize length, const char *path, GError **error)
{
  int python_line = rn_sniff_python (text, length);
  if (python_line > 0)
    {
      g_set_error (
          error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_SYNTAX,
          "%s:%d:1: this is Python, and a configuration is YAML (\"key: value\") or JSON. MMCV writes a "
          "file of MMDetection as JSON:\n  " RN_CONFIG_FROM_PYTHON "\n"
          "docs/guide/from-mmdetection.md says what differs",
          path, python_line);
      return NULL;
    }
  g_autoptr (RnNode) over = rn_yaml_parse (text, length, path, FALSE, &loader->budget, error);
  g_autoptr (RnNode) root = NULL;

  if (!over)
    return NULL;
  if (over->kind == RN_NODE_NULL)
    rn_node_become_map (over); /* an empty file */
  if (over->kind != RN_NODE_MAP)
    {
      rn_node_error (over, error, "a configuration is a map, not %s", rn_node_kind_name (over->kind));
      return NULL;
    }

  root = rn_node_new (path, 1, 1);
  rn_node_become_map (root);

  RnNode *spec = rn_node_child (over, "_base_");
  if (spec && !load_bases (loader, root, path, spec, error))
    return NULL;
  const RnNode *bases = spec ? root : NULL;
  if (spec)
    rn_node_remove (spec);
  if (!rn_reference_expand_file (over, bases, path, &loader->budget, error) || !rn_merge (root, over, error))
    return NULL;
  if (root->kind != RN_NODE_MAP) /* directives can make a list of it */
    {
      rn_node_error (over, error, "a configuration is a map, not %s", rn_node_kind_name (root->kind));
      return NULL;
    }
  return g_steal_pointer (&root);
}

/* What the system says of @path, and the name that may have been meant. */
static void
set_file_error (const char *path, int code, GError **error)
{
  g_autofree char *nearest = code == ENOENT ? rn_sniff_nearest_file (path) : NULL;

  g_autofree char *folder = g_path_get_dirname (path), *here = g_get_current_dir ();

  if (nearest)
    g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s; did you mean \"%s\"?", path,
                 g_strerror (code), nearest);
  else if (code == ENOENT && !g_path_is_absolute (path) && !g_file_test (folder, G_FILE_TEST_IS_DIR))
    g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code),
                 "%s: %s; there is no folder \"%s\" in %s", path, g_strerror (code), folder, here);
  else
    g_set_error (error, G_FILE_ERROR, g_file_error_from_errno (code), "%s: %s", path, g_strerror (code));
}

static char *
read_file (const char *path, gsize *length, GError **error)
{
  int fd = rn_open_regular (path, NULL);
  if (fd < 0 && (errno == EISDIR || errno == EINVAL))
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: %s", path,
                   errno == EISDIR ? "is a folder; name the .yaml file in it" : rn_open_problem (errno));
      return NULL;
    }
  FILE *file = fd >= 0 ? fdopen (fd, "rb") : NULL;
  g_autofree char *text = file ? g_try_malloc (MAX_FILE + 1) : NULL;
  int code = !file ? errno : !text ? ENOMEM : 0;

  if (code == 0)
    {
      *length = fread (text, 1, MAX_FILE + 1, file);
      code = ferror (file) ? errno : *length > MAX_FILE ? EFBIG : 0;
    }
  if (file)
    fclose (file);
  else if (fd >= 0)
    close (fd);
  if (code == 0)
    return g_steal_pointer (&text);
  const char *content = code == EFBIG ? rn_sniff_content (text, *length) : NULL;
  if (content)
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: not a configuration: it is %s", path, content);
  else
    set_file_error (path, code, error);
  return NULL;
}

static gboolean
enter_file (Loader *loader, const char *path, char **canonical, GError **error)
{
  *canonical = realpath (path, NULL);
  if (!*canonical) /* it does not exist, which reading it will say, or is a file that is open but has no name
                    */
    *canonical = g_strdup (path);
  if (g_ptr_array_find_with_equal_func (loader->open, *canonical, g_str_equal, NULL))
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_LOOP, "%s: a file cannot be its own _base_", path);
      return FALSE;
    }
  if (loader->open->len >= MAX_NESTING || ++loader->n_files > MAX_FILES)
    {
      g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_MFILE, "%s: more than %d levels or %d files of _base_",
                   path, MAX_NESTING, MAX_FILES);
      return FALSE;
    }
  return TRUE;
}

static RnNode *
load_file (Loader *loader, const char *path, GError **error)
{
  g_autofree char *canonical = NULL; /* from malloc, which g_free may free since GLib 2.46 */
  gsize length = 0;

  if (!enter_file (loader, path, &canonical, error))
    return NULL;
  g_autofree char *text = read_file (path, &length, error);
  if (!text)
    return NULL;

  g_ptr_array_add (loader->open, canonical);
  RnNode *root = load_text (loader, text, length, path, error);
  g_ptr_array_set_size (loader->open, (int) loader->open->len - 1);
  return root;
}

/* Takes @root, NULL after an error. */
static RnNode *
finish (Loader *loader, RnNode *root, const char *const *overrides, GError **error)
{
  g_autoptr (RnNode) owned = root;

  for (; owned && overrides && *overrides; overrides++)
    if (!rn_override_apply (owned, *overrides, &loader->budget, error))
      return NULL;
  if (owned && !rn_reference_resolve (owned, &loader->budget, error))
    return NULL;
  return g_steal_pointer (&owned);
}

RnNode *
rn_config_load (const char *path, const char *const *overrides, GError **error)
{
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  Loader loader = { .budget = RN_NODE_BUDGET, .open = open };
  g_autoptr (GError) cause = NULL;

  RnNode *root = finish (&loader, load_file (&loader, path, &cause), overrides, &cause);
  if (!root && cause->domain == G_FILE_ERROR)
    g_set_error_literal (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE, cause->message);
  else if (!root)
    g_propagate_error (error, g_steal_pointer (&cause));
  return root;
}

RnNode *
rn_config_load_text (const char *text, const char *name, const char *const *overrides, GError **error)
{
  g_autoptr (GPtrArray) open = g_ptr_array_new ();
  Loader loader = { .budget = RN_NODE_BUDGET, .open = open };
  gsize length = strlen (text);

  if (length > MAX_FILE)
    {
      g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_SYNTAX, "%s: more than %d bytes", name, MAX_FILE);
      return NULL;
    }
  return finish (&loader, load_text (&loader, text, length, name, error), overrides, error);
}
