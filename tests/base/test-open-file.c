/* test-open-file.c: what opens, and that nothing else is waited for. */
#include "config.h"

#include "runner/base/open-file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char *folder;

static char *
path_of (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static void
expect_refused (const char *path, int code, const char *problem)
{
  guint64 size = 7;

  errno = 0;
  g_assert_cmpint (rn_open_regular (path, &size), ==, -1);
  g_assert_cmpint (errno, ==, code);
  g_assert_cmpstr (rn_open_problem (code), ==, problem);
  g_assert_cmpuint (size, ==, 7);
}

static void
test_regular (void)
{
  g_autofree char *path = path_of ("file"), *link = path_of ("link");
  guint64 size = 0;
  char text[8] = "";

  g_assert_true (g_file_set_contents (path, "12345", 5, NULL));
  g_assert_cmpint (symlink ("file", link), ==, 0);
  int fd = rn_open_regular (link, &size);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpuint (size, ==, 5);
  g_assert_cmpint (read (fd, text, sizeof text), ==, 5);
  g_assert_cmpstr (text, ==, "12345");
  g_assert_cmpint (fcntl (fd, F_GETFD) & FD_CLOEXEC, !=, 0);
  close (fd);
  fd = rn_open_regular (path, NULL);
  g_assert_cmpint (fd, >=, 0);
  close (fd);
  g_remove (link);
  g_remove (path);
}

static void
test_read (void)
{
  const struct
  {
    gsize asked;
    const char *text;
  } cases[] = { { 5, "12345" }, { 3, "123" }, { 9, "12345" }, { 0, "" } };
  g_autofree char *path = path_of ("file");
  gsize size = 0;

  g_assert_true (g_file_set_contents (path, "12345", 5, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      int fd = rn_open_regular (path, NULL);
      g_autofree char *text = rn_read_all (fd, cases[i].asked, &size);
      g_assert_cmpstr (text, ==, cases[i].text);
      g_assert_cmpuint (size, ==, strlen (cases[i].text));
      close (fd);
    }
  errno = 0;
  g_assert_null (rn_read_all (-1, 5, &size));
  g_assert_cmpint (errno, ==, EBADF);
  g_remove (path);
}

static void
test_refused (void)
{
  g_autofree char *missing = path_of ("missing"), *fifo = path_of ("fifo"), *socket_path = path_of ("socket");
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  expect_refused (missing, ENOENT, g_strerror (ENOENT));
  expect_refused (folder, EISDIR, "not a regular file");
  expect_refused ("/dev/null", EINVAL, "not a regular file");

  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  expect_refused (fifo, EINVAL, "not a regular file"); /* there is no writer */
  g_remove (fifo);

  int fd = socket (AF_UNIX, SOCK_STREAM, 0);
  g_assert_cmpuint (g_strlcpy (address.sun_path, socket_path, sizeof address.sun_path), <,
                    sizeof address.sun_path);
  g_assert_cmpint (bind (fd, (struct sockaddr *) &address, sizeof address), ==, 0);
  expect_refused (socket_path, EINVAL, "not a regular file");
  close (fd);
  g_remove (socket_path);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  folder = g_dir_make_tmp ("rn-open-XXXXXX", NULL);
  g_assert_nonnull (folder);
  g_test_add_func ("/open-file/regular", test_regular);
  g_test_add_func ("/open-file/read", test_read);
  g_test_add_func ("/open-file/refused", test_refused);
  int result = g_test_run ();
  g_rmdir (folder);
  g_free (folder);
  return result;
}
