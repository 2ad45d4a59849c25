/* Lists of images as people have them: of any editor and any system, with paths, endings and mistakes. */
#include "config.h"

#include "datasets/split.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <glib/gstdio.h>

static void
expect_error (GError *error, int code, const char *text)
{
  g_assert_error (error, RN_DATA_ERROR, code);
  if (strstr (error->message, text) == NULL)
    g_error ("\"%s\" does not contain \"%s\"", error->message, text);
  g_error_free (error);
}

/* ---- The text ---- */

typedef struct
{
  const char *text;
  gssize size;       /* -1: NUL-ended */
  const char *names; /* what is read, with | between */
  guint last_line;
} List;

static void
test_lists (void)
{
  static const List cases[] = {
    { "a\nb\n", -1, "a|b", 2 },
    { "\xEF\xBB\xBF\r\n a  -1 \r\n\r\ntwo words\t\r\n", -1, "a  -1|two words", 4 },
    { "a\rb\r\rc", -1, "a|b|c", 4 }, /* an old Macintosh */
    { "\xFF\xFE"
      "a\0\r\0\n\0\xE9\0",
      10, "a|\xC3\xA9", 2 }, /* PowerShell: dir > list.txt */
    { "\xFE\xFF"
      "\0a\0\n\0b",
      8, "a|b", 2 },
    { "./a\nJPEGImages/b\n.\\JPEGImages\\sub\\c.jpg\nsub/d\n", -1, "a|b|sub/c.jpg|sub/d", 4 },
    { "a..b\n..c\n", -1, "a..b|..c", 2 },
    { "\n\n", -1, "", 0 },
    { "", -1, "", 0 },
  };
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, "list.txt", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnSplit) split = NULL;
      g_autofree char *names = NULL;
      g_autofree char *where = NULL;
      g_autofree char *expected = g_strdup_printf ("%s:%u", path, cases[i].last_line);
      GError *error = NULL;

      test_write (dir, "list.txt", cases[i].text, cases[i].size);
      split = rn_split_read (path, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (split->lines->len, ==, split->names->len);
      if (split->names->len > 0)
        {
          where = rn_split_where (split, split->names->len - 1);
          g_assert_cmpstr (where, ==, expected);
        }
      g_ptr_array_add (split->names, NULL);
      names = g_strjoinv ("|", (char **) split->names->pdata);
      g_assert_cmpstr (names, ==, cases[i].names);
    }
  test_dir_remove (dir);
}

static void
test_refusals (void)
{
  static const struct
  {
    const char *text;
    gssize size;
    const char *message;
  } cases[] = {
    { "a\n../../etc/passwd\n", -1, "list.txt:2: \"../../etc/passwd\" leads out of JPEGImages" },
    { "sub/../../x", -1, ":1: \"sub/../../x\" leads out" },
    { "..", -1, "leads out" },
    { "..\\x", -1, "leads out" },
    { "JPEGImages/../../x", -1, "leads out" },
    { "\n/home/me/a.jpg", -1, ":2: \"/home/me/a.jpg\" is an absolute path" },
    { "C:\\photos\\a.jpg", -1, "is an absolute path" },
    { "JPEGImages//etc/passwd", -1, "is an absolute path" },
    { "JPEGImages/", -1, ":1: \"\" names no image" },
    { "a\x1B[2J", -1, "\"a\\033[2J\" has a control character" },
    { "a\0b", 3, "list.txt: not a text file" },
    { "\xFF\xFE\x00\xD8", 4, "list.txt: damaged UTF-16" },
  };
  char *dir = test_dir_new ();
  g_autofree char *path = g_build_filename (dir, "list.txt", NULL);
  GError *error = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      error = NULL;
      test_write (dir, "list.txt", cases[i].text, cases[i].size);
      g_assert_null (rn_split_read (path, &error));
      expect_error (error, RN_DATA_ERROR_FORMAT, cases[i].message);
    }
  error = NULL;
  g_assert_cmpint (g_remove (path), ==, 0);
  g_assert_cmpint (mkfifo (path, 0600), ==, 0);
  g_assert_null (rn_split_read (path, &error));
  expect_error (error, RN_DATA_ERROR_FORMAT, "list.txt: not a regular file");
  test_dir_remove (dir);
}

static void
test_cuts (void)
{
  static const struct
  {
    const char *name, *shorter;
    gboolean flag;
  } cases[] = {
    { "a 1", "a", TRUE },        { "a\t -1", "a", TRUE },
    { "a  0", "a", TRUE },       { "a 01", NULL, TRUE },
    { "1", NULL, TRUE },         { "a 2", NULL, TRUE },
    { "a.jpg", "a", FALSE },     { "a.JPEG", "a", FALSE },
    { "s/a.Png", "s/a", FALSE }, { "a.xml", "a", FALSE },
    { ".jpg", NULL, FALSE },     { "s/.jpg", NULL, FALSE },
    { "a.bmp", NULL, FALSE },    { "a.jpg.rf.12", NULL, FALSE },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *name = g_strdup (cases[i].name);
      gboolean cut = (cases[i].flag ? rn_split_cut_flag : rn_split_cut_ending) (name);

      g_assert_true (cut == (cases[i].shorter != NULL));
      g_assert_cmpstr (name, ==, cut ? cases[i].shorter : cases[i].name);
    }
}

/* ---- Over a folder ---- */

static void
write_pair (const char *dir, const char *id)
{
  test_write_image (dir, id, 64, 48);
  test_write_xml (dir, id, 64, 48, TEST_OBJECT ("a", "0", "1", "1", "20", "20"));
}

static RnDataset *
open_split (const char *dir, const char *ann_file, RnOnError on_error, GError **error)
{
  RnDatasetOptions options = { .n_threads = 1, .on_error = on_error };
  g_autofree char *yaml =
      g_strdup_printf ("{type: VOCDataset, ann_file: '%s', img_prefix: ., classes: [a], pipeline: %s}",
                       ann_file, test_train_pipeline);

  return test_dataset (dir, yaml, &options, error);
}

static void
check_ids (const RnDataset *dataset, const char *expected)
{
  g_autoptr (GString) ids = g_string_new (NULL);

  for (int64_t i = 0; i < rn_dataset_size (dataset); i++)
    g_string_append_printf (ids, "%s%s", i > 0 ? "|" : "", rn_dataset_id (dataset, i));
  g_assert_cmpstr (ids->str, ==, expected);
}

/* The whole line is a name if there is such an image; else its second column and its ending are not part of
 * it. */
static void
test_names (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) dataset = NULL;
  GError *error = NULL;

  for (int i = 0; i < 2; i++)
    {
      g_autofree char *sub = g_build_filename (dir, i == 0 ? "JPEGImages" : "Annotations", "sub", NULL);

      g_assert_cmpint (g_mkdir (sub, 0777), ==, 0);
    }
  write_pair (dir, "photo");
  write_pair (dir, "photo 1");
  write_pair (dir, "a");
  write_pair (dir, "a.png");
  write_pair (dir, "sub/b");
  write_pair (dir, "\xE7\x85\xA7\xE7\x89\x87");
  test_write (dir, "list.txt",
              "photo 1\nphoto  -1\na.JPG 1\na.png\nJPEGImages\\sub\\b.jpg\n\xE7\x85\xA7\xE7\x89\x87.xml\n",
              -1);
  dataset = open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  check_ids (dataset, "photo 1|photo|a|a.png|sub/b|\xE7\x85\xA7\xE7\x89\x87");
  test_dir_remove (dir);
}

static void
test_missing (void)
{
  char *dir = test_dir_new ();
  GError *error = NULL;

  write_pair (dir, "good");
  test_write (dir, "JPEGImages/scan.bmp", "BM", -1);
  test_write_image (dir, "Dsc1", 64, 48);
  test_write (dir, "list.txt", "good\n\nnothing 1\n", -1);
  g_assert_null (open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error));
  expect_error (g_steal_pointer (&error), RN_DATA_ERROR_MISSING, "list.txt:3: ");
  test_write (dir, "list.txt", "scan\n", -1);
  g_assert_null (open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error));
  expect_error (g_steal_pointer (&error), RN_DATA_ERROR_MISSING,
                "JPEGImages/scan: no image of this name (.jpg, .jpeg or .png); there is scan.bmp");
  test_write (dir, "list.txt", "dsc1\n", -1);
  g_assert_null (open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error));
  expect_error (g_steal_pointer (&error), RN_DATA_ERROR_MISSING, "there is Dsc1.jpg");
  test_write (dir, "list.txt", "good\nDsc1\n", -1);
  g_assert_null (open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error));
  expect_error (g_steal_pointer (&error), RN_DATA_ERROR_MISSING, "list.txt:2: ");
  test_dir_remove (dir);
}

static void
test_repeated (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) dataset = NULL;
  GError *error = NULL;

  write_pair (dir, "a");
  write_pair (dir, "b");
  test_write (dir, "list.txt", "a\nb\na.jpg\n", -1);
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*list.txt:3: a is listed above already*");
  g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*1 images listed more than once");
  dataset = open_split (dir, "list.txt", RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();
  check_ids (dataset, "a|b|a");
  test_dir_remove (dir);
}

/* A folder in the place of a list stands for all annotations in it; no list is needed to begin. */
static void
test_folder (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) dataset = NULL;
  GError *error = NULL;

  g_assert_null (open_split (dir, "Annotations", RN_ON_ERROR_FAIL, &error));
  expect_error (g_steal_pointer (&error), RN_DATA_ERROR_EMPTY, "Annotations: no .xml file");
  write_pair (dir, "c");
  write_pair (dir, "a 1");
  write_pair (dir, "B");
  test_write (dir, "Annotations/._B.xml", "", -1);
  test_write (dir, "Annotations/notes.txt", "", -1);
  dataset = open_split (dir, "Annotations", RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  check_ids (dataset, "B|a 1|c");

  test_write_xml (dir, "c 1", 64, 48, ""); /* there is no such image, and c is another one */
  g_assert_null (open_split (dir, "Annotations", RN_ON_ERROR_FAIL, &error));
  expect_error (error, RN_DATA_ERROR_MISSING, "JPEGImages/c 1: no image");
  test_dir_remove (dir);
}

/* Blanks and letters outside ASCII in the folder's name. */
static void
test_root (void)
{
  char *dir = test_dir_new ();
  g_autofree char *sub = g_build_filename (dir, "Meine Bilder \xC3\xA4\xC3\xB6", NULL);
  g_autoptr (RnDataset) dataset = NULL;
  GError *error = NULL;

  for (int i = 0; i < 2; i++)
    {
      g_autofree char *path = g_build_filename (sub, i == 0 ? "JPEGImages" : "Annotations", NULL);

      g_assert_cmpint (g_mkdir_with_parents (path, 0777), ==, 0);
    }
  write_pair (sub, "x");
  test_write (sub, "list.txt", "x", -1);
  dataset = open_split (sub, "list.txt", RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  check_ids (dataset, "x");
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/split/lists", test_lists);
  g_test_add_func ("/datasets/split/refusals", test_refusals);
  g_test_add_func ("/datasets/split/cuts", test_cuts);
  g_test_add_func ("/datasets/split/names", test_names);
  g_test_add_func ("/datasets/split/missing", test_missing);
  g_test_add_func ("/datasets/split/repeated", test_repeated);
  g_test_add_func ("/datasets/split/folder", test_folder);
  g_test_add_func ("/datasets/split/root", test_root);
  return g_test_run ();
}
