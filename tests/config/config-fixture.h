/* config-fixture.h: small files in a folder of their own, and short assertions on what they load to. */
#ifndef TESTS_CONFIG_FIXTURE_H
#define TESTS_CONFIG_FIXTURE_H

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include "runner/base/error.h"
#include "runner/config/config.h"

typedef struct
{
  char *folder;
} Fixture;

static inline char *
fixture_path (const Fixture *f, const char *name)
{
  return g_build_filename (f->folder, name, NULL);
}

static inline void
fixture_write (const Fixture *f, const char *name, const char *text)
{
  g_autofree char *path = fixture_path (f, name);
  g_autofree char *folder = g_path_get_dirname (path);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (folder, 0777), ==, 0);
  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
}

static inline void
fixture_set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->folder = g_dir_make_tmp ("rn-config-XXXXXX", &error);
  g_assert_no_error (error);
}

/* The folder and the files in it; one level of folders inside. */
static inline void
remove_files (const char *folder, int levels)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;

  while ((name = g_dir_read_name (dir)))
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      if (levels > 0 && g_file_test (path, G_FILE_TEST_IS_DIR))
        remove_files (path, levels - 1);
      else
        g_unlink (path);
    }
  g_rmdir (folder);
}

static inline void
fixture_tear_down (Fixture *f, gconstpointer data)
{
  remove_files (f->folder, 1);
  g_free (f->folder);
}

static inline RnNode *
fixture_load (const Fixture *f, const char *name, const char *const *overrides)
{
  g_autofree char *path = fixture_path (f, name);
  g_autoptr (GError) error = NULL;
  RnNode *root = rn_config_load (path, overrides, &error);

  g_assert_no_error (error);
  return root;
}

/* @expected: YAML. */
static inline void
assert_tree (const RnNode *root, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) wanted = rn_config_load_text (expected, "expected", NULL, &error);

  g_assert_no_error (error);
  if (!rn_node_equal (root, wanted))
    {
      g_autofree char *text = rn_config_dump (root, FALSE);
      g_error ("got:\n%s\nexpected:\n%s", text, expected);
    }
}

/* An error of @code whose text begins with @place and has @part in it. */
static inline void
assert_error (const GError *error, int code, const char *place, const char *part)
{
  g_assert_error (error, RN_CONFIG_ERROR, code);
  if (!g_str_has_prefix (error->message, place) || !strstr (error->message, part))
    g_error ("got \"%s\", expected \"%s...%s\"", error->message, place, part);
}

static inline void
assert_text_fails (const char *text, const char *const *overrides, int code, const char *place,
                   const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (text, "x.yaml", overrides, &error);

  g_assert_null (root);
  assert_error (error, code, place, part);
}

/* The error begins with the file's path and then @place. */
static inline void
fixture_fails (const Fixture *f, const char *name, int code, const char *place, const char *part)
{
  g_autofree char *path = fixture_path (f, name);
  g_autofree char *full = g_build_filename (f->folder, place, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load (path, NULL, &error);

  g_assert_null (root);
  assert_error (error, code, full, part);
}

#define ADD_FILE_TEST(path, func) g_test_add (path, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

#endif
