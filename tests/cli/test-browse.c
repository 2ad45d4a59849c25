/* `runner browse` as users run it: pictures, the table, and images that cannot be read. */
#include "config.h"

#include "tests/cli/program.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct
{
  char *dir, *config, *root, *out, *work_dir;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("rn-browse-XXXXXX", &error);
  g_assert_no_error (error);
  f->config = config_file ("retinanet_shapes.yaml");
  f->root = g_strdup_printf ("data_root=%s/data/", f->dir);
  f->out = g_build_filename (f->dir, "out", NULL);
  f->work_dir = g_build_filename (f->dir, "work", NULL);
  g_autofree char *folder = g_build_filename (f->dir, "data", NULL);
  g_auto (Result) synth = run_program ("synth", folder, "--train", "6", "--val", "2", "--test", "1", NULL);
  g_assert_cmpint (synth.code, ==, 0);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->config);
  g_free (f->root);
  g_free (f->out);
  g_free (f->work_dir);
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* The PNG files of the folder, checksums after their names. (transfer full) */
static GPtrArray *
read_pictures (const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &error);
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);

  g_assert_no_error (error);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    if (g_str_has_suffix (name, ".png"))
      {
        g_autofree char *path = g_build_filename (folder, name, NULL), *contents = NULL;
        gsize size;

        g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
        g_assert_true (size > 8 && memcmp (contents, "\x89PNG", 4) == 0);
        g_autofree char *sum =
            g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) contents, size);
        g_ptr_array_add (names, g_strconcat (name, " ", sum, NULL));
      }
  g_ptr_array_sort (names, compare_names);
  return names;
}

static void
test_pictures (Fixture *f, gconstpointer data)
{
  g_auto (Result) first = run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir,
                                       "--out", f->out, "--n", "4", "--anchors", NULL);
  g_assert_cmpint (first.code, ==, 0);
  assert_contains (first.out, "anchors/box");
  assert_contains (first.out, "triangle");
  assert_contains (first.out, "4 pictures");
  g_autoptr (GPtrArray) pictures = read_pictures (f->out);
  g_assert_cmpuint (pictures->len, ==, 4);
  g_autofree char *page = g_build_filename (f->out, "index.html", NULL), *html = NULL;
  g_assert_true (g_file_get_contents (page, &html, NULL, NULL));
  for (guint i = 0; i < pictures->len; i++)
    {
      g_auto (GStrv) words = g_strsplit (g_ptr_array_index (pictures, i), " ", 2);
      assert_contains (html, words[0]);
    }

  /* The same again is the same; another seed is not. */
  g_autofree char *again = g_build_filename (f->dir, "again", NULL);
  g_auto (Result) second = run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir,
                                        "--out", again, "--n", "4", "--anchors", NULL);
  g_autoptr (GPtrArray) same = read_pictures (again);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpstr (g_ptr_array_index (pictures, i), ==, g_ptr_array_index (same, i));
  g_autofree char *other = g_build_filename (f->dir, "other", NULL);
  g_auto (Result) third = run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir,
                                       "--out", other, "--n", "4", "--seed", "77", NULL);
  g_assert_cmpstr (first.out, !=, third.out);
}

static void
test_ids (Fixture *f, gconstpointer data)
{
  g_auto (Result) two = run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir,
                                     "--out", f->out, "--ids", "000002, 000001", NULL);
  g_assert_cmpint (two.code, ==, 0);
  assert_contains (two.out, "2 pictures");
  g_autofree char *path = g_build_filename (f->out, "0001-000002.png", NULL);
  g_assert_true (g_file_test (path, G_FILE_TEST_EXISTS));

  g_auto (Result) unknown = run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir,
                                         "--out", f->out, "--ids", "999", NULL);
  g_assert_cmpint (unknown.code, ==, 2);
  assert_contains (unknown.err, "no image \"999\" in this split");
  g_auto (Result) split = run_program ("browse", f->config, "--set", f->root, "--split", "trian", NULL);
  g_assert_cmpint (split.code, ==, 2);
  assert_contains (split.err, "not train, val or test");
}

/* One image is cut off: it is named, the others are shown, although a training would stop at it. */
static void
test_damaged (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->dir, "data", "JPEGImages", "000003.jpg", NULL),
                  *contents = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
  g_assert_true (g_file_set_contents (path, contents, (gssize) (size / 2), NULL));
  g_auto (Result) result =
      run_program ("browse", f->config, "--set", f->root, "--work-dir", f->work_dir, "--out", f->out, NULL);
  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.err, "000003.jpg");
  assert_contains (result.out, "pictures: ");
  g_autoptr (GPtrArray) pictures = read_pictures (f->out);
  g_assert_cmpuint (pictures->len, >=, 5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/cli/browse/pictures", Fixture, NULL, set_up, test_pictures, tear_down);
  g_test_add ("/cli/browse/ids", Fixture, NULL, set_up, test_ids, tear_down);
  g_test_add ("/cli/browse/damaged", Fixture, NULL, set_up, test_damaged, tear_down);
  return g_test_run ();
}
