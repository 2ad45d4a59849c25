/* `runner schedule` on the files that show the policies. */
#include "config.h"

#include "tests/cli/program.h"

#include <glib/gstdio.h>
#include <string.h>

static void
test_all (void)
{
  g_autofree char *folder = g_test_build_filename (G_TEST_DIST, "configs", "_base_", "schedules", NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  g_assert_nonnull (dir);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    {
      g_autofree char *path = g_build_filename (folder, name, NULL);
      g_auto (Result) result = run_program ("schedule", path, "--epoch-length", "60", NULL);
      g_assert_cmpint (result.code, ==, 0);
      assert_contains (result.out, " iterations, 60 in an epoch\n");
      n++;
    }
  g_assert_cmpuint (n, >=, 12); /* a policy each, some more often */
}

static void
test_picture (void)
{
  g_autofree char *step = config_file ("_base_/schedules/schedule_1x.yaml"),
                  *cycle = config_file ("_base_/schedules/one_cycle.yaml");
  g_autofree char *dir = g_dir_make_tmp ("rn-schedule-XXXXXX", NULL);
  g_autofree char *picture = g_build_filename (dir, "a.png", NULL), *bytes = NULL;
  gsize length;

  g_auto (Result) result = run_program ("schedule", step, cycle, "--epoch-length", "100", "-n", "3", "-o",
                                        picture, "--set", "optimizer.lr=0.5", NULL);
  g_assert_cmpint (result.code, ==, 0);
  /* The middle of 12 epochs of 100, and the end, of the first file; the last steps of the second. */
  assert_contains (result.out, "       600      5.99   5.0000e-01    0.9000\n");
  assert_contains (result.out, "      1200     11.99   5.0000e-03    0.9000\n");
  assert_contains (result.out, "      1200     11.99   4.0000e-08    0.9500\n");
  g_assert_true (g_file_get_contents (picture, &bytes, &length, NULL));
  g_assert_cmpuint (length, >, 8);
  g_assert_cmpmem (bytes, 8, "\x89PNG\r\n\x1a\n", 8);
  g_assert_cmpint (g_remove (picture), ==, 0);
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

static void
test_wrong (void)
{
  g_autofree char *step = config_file ("_base_/schedules/schedule_1x.yaml");
  g_auto (Result) rows = run_program ("schedule", step, "--epoch-length", "10", "-n", "0", NULL);
  g_auto (Result) no_data = run_program ("schedule", step, NULL);
  g_auto (Result) key =
      run_program ("schedule", step, "--epoch-length", "10", "--set", "lr_config.gama=0.5", NULL);

  g_assert_cmpint (rows.code, ==, 2);
  assert_contains (rows.err, "above 0");
  g_assert_cmpint (no_data.code, ==, 2);
  assert_contains (no_data.err, "--epoch-length N");
  g_assert_cmpint (key.code, ==, 2);
  assert_contains (key.err, "gamma");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/schedule/all", test_all);
  g_test_add_func ("/cli/schedule/picture", test_picture);
  g_test_add_func ("/cli/schedule/wrong", test_wrong);
  return g_test_run ();
}
