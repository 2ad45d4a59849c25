#include "config.h"
#include "runner/base/atomic-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct
{
  char *folder;
  char *path;
  char *temporary;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->folder = g_dir_make_tmp ("rn-atomic-XXXXXX", &error);
  g_assert_no_error (error);
  f->path = g_build_filename (f->folder, "file", NULL);
  f->temporary = g_strconcat (f->path, ".tmp", NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_unlink (f->path);
  g_assert_cmpint (g_rmdir (f->folder), ==, 0); /* so nothing else was left in it */
  g_free (f->temporary);
  g_free (f->path);
  g_free (f->folder);
}

static void
assert_contents (const char *path, const char *expected)
{
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, expected);
}

static void
test_save (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_atomic_file_save (f->path, "old", 3, &error));
  g_assert_no_error (error);
  assert_contents (f->path, "old");
  g_assert_true (rn_atomic_file_save (f->path, "newer", 5, &error));
  assert_contents (f->path, "newer");
  g_assert_true (rn_atomic_file_save (f->path, NULL, 0, &error));
  assert_contents (f->path, "");
}

static void
test_abort (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_atomic_file_save (f->path, "old", 3, &error));
  RnAtomicFile *file = rn_atomic_file_new (f->path, &error);
  g_assert_true (rn_atomic_file_write (file, "new", 3, &error));
  rn_atomic_file_free (file);
  assert_contents (f->path, "old");
}

/* Sizes around the buffer's, so that bytes go through it, past it and over its edge. */
static void
test_large (Fixture *f, gconstpointer data)
{
  static const gsize pieces[] = { 1, 1000, (1 << 20) - 1001, 5, 1 << 20, (1 << 20) + 3, 1 };
  g_autoptr (GByteArray) expected = g_byte_array_new ();
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (f->path, NULL);
  g_autofree char *contents = NULL;
  gsize size = 0;

  for (gsize i = 0; i < G_N_ELEMENTS (pieces); i++)
    {
      g_autofree guint8 *bytes = g_malloc (pieces[i]);
      for (gsize j = 0; j < pieces[i]; j++)
        bytes[j] = (guint8) (j * 7 + i);
      g_assert_true (rn_atomic_file_write (file, bytes, pieces[i], NULL));
      g_byte_array_append (expected, bytes, (guint) pieces[i]);
    }
  g_assert_true (rn_atomic_file_commit (file, NULL));
  g_assert_true (g_file_get_contents (f->path, &contents, &size, NULL));
  g_assert_cmpuint (size, ==, expected->len);
  g_assert_cmpint (memcmp (contents, expected->data, size), ==, 0);
}

static int
fail_at (RnAtomicFileStep step, gpointer data)
{
  return step == (RnAtomicFileStep) GPOINTER_TO_INT (data) ? ENOSPC : 0;
}

/* Whatever fails before the rename, the old file is whole and no temporary file stays. */
static void
test_faults (Fixture *f, gconstpointer data)
{
  for (int step = RN_ATOMIC_FILE_OPEN; step <= RN_ATOMIC_FILE_FSYNC_FOLDER; step++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_true (rn_atomic_file_save (f->path, "old", 3, NULL));
      rn_atomic_file_set_fault (fail_at, GINT_TO_POINTER (step));
      g_assert_false (rn_atomic_file_save (f->path, "new", 3, &error));
      rn_atomic_file_set_fault (NULL, NULL);
      g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
      g_assert_true (g_str_has_prefix (error->message, f->path));
      assert_contents (f->path, step < RN_ATOMIC_FILE_FSYNC_FOLDER ? "old" : "new");
      g_assert_false (g_file_test (f->temporary, G_FILE_TEST_EXISTS));
    }
}

static void
test_failure_sticks (Fixture *f, gconstpointer data)
{
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (f->path, NULL);
  g_autofree char *big = g_malloc0 (3 << 20);
  g_autoptr (GError) error = NULL;

  rn_atomic_file_set_fault (fail_at, GINT_TO_POINTER (RN_ATOMIC_FILE_WRITE));
  g_assert_false (rn_atomic_file_write (file, big, 3 << 20, NULL));
  rn_atomic_file_set_fault (NULL, NULL);
  g_assert_false (rn_atomic_file_write (file, "x", 1, NULL));
  g_assert_false (rn_atomic_file_commit (file, &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  g_assert_false (g_file_test (f->path, G_FILE_TEST_EXISTS));
}

static void
test_leftover_and_lock (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  /* What a killed process left is overwritten. */
  g_assert_true (g_file_set_contents (f->temporary, "half a longer file", -1, NULL));
  g_assert_true (rn_atomic_file_save (f->path, "whole", 5, &error));
  assert_contents (f->path, "whole");

  /* What a living one holds is not. */
  int fd = g_open (f->temporary, O_WRONLY | O_CREAT, 0666);
  g_assert_cmpint (flock (fd, LOCK_EX), ==, 0);
  g_assert_false (rn_atomic_file_save (f->path, "other", 5, &error));
  g_assert_nonnull (strstr (error->message, g_strerror (EBUSY)));
  g_assert_true (g_file_test (f->temporary, G_FILE_TEST_EXISTS));
  close (fd);
  g_unlink (f->temporary);
  assert_contents (f->path, "whole");
}

static void
test_no_folder (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (rn_atomic_file_new ("/nonexistent/folder/file", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

/* Found before anything is written. */
static void
test_folder (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (rn_atomic_file_new ("/dev", &error));
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_ISDIR);
}

/* What the rename would destroy: root can. */
static void
test_no_regular_file (Fixture *f, gconstpointer data)
{
  const char *const paths[] = { f->path, "/dev/null", "/dev/no-such-device" };

  g_assert_cmpint (mkfifo (f->path, 0600), ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (rn_atomic_file_new (paths[i], &error));
      g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
      g_assert_nonnull (strstr (error->message, "not a regular file"));
    }
  g_assert_false (g_file_test (f->temporary, G_FILE_TEST_EXISTS));
}

/* What has the temporary's name and is no file is neither waited for nor written to nor removed. */
static void
test_temporary_in_the_way (Fixture *f, gconstpointer data)
{
  enum
  {
    PIPE,
    READ_PIPE,
    LINK,
    FOLDER,
    N
  };

  for (int kind = PIPE; kind < N; kind++)
    {
      g_autoptr (GError) error = NULL;
      int made = kind == LINK     ? symlink ("elsewhere", f->temporary)
                 : kind == FOLDER ? g_mkdir (f->temporary, 0700)
                                  : mkfifo (f->temporary, 0600);
      g_assert_cmpint (made, ==, 0);
      int reader = kind == READ_PIPE ? g_open (f->temporary, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0) : -1;

      g_assert_null (rn_atomic_file_new (f->path, &error));
      g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_INVAL);
      g_assert_true (g_str_has_prefix (error->message, f->path));
      g_assert_nonnull (strstr (error->message, f->temporary));
      g_assert_nonnull (strstr (error->message, "not a regular file"));
      if (reader >= 0)
        close (reader);
      g_assert_cmpint (g_remove (f->temporary), ==, 0);
    }
  g_assert_true (rn_atomic_file_save (f->path, "whole", 5, NULL));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/atomic-file/save", Fixture, NULL, set_up, test_save, tear_down);
  g_test_add ("/atomic-file/abort", Fixture, NULL, set_up, test_abort, tear_down);
  g_test_add ("/atomic-file/large", Fixture, NULL, set_up, test_large, tear_down);
  g_test_add ("/atomic-file/faults", Fixture, NULL, set_up, test_faults, tear_down);
  g_test_add ("/atomic-file/failure-sticks", Fixture, NULL, set_up, test_failure_sticks, tear_down);
  g_test_add ("/atomic-file/leftover-and-lock", Fixture, NULL, set_up, test_leftover_and_lock, tear_down);
  g_test_add ("/atomic-file/no-regular-file", Fixture, NULL, set_up, test_no_regular_file, tear_down);
  g_test_add ("/atomic-file/in-the-way", Fixture, NULL, set_up, test_temporary_in_the_way, tear_down);
  g_test_add_func ("/atomic-file/no-folder", test_no_folder);
  g_test_add_func ("/atomic-file/folder", test_folder);
  return g_test_run ();
}
