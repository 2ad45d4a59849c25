/* test-device-profile.c: profiles of devices, by name and by path, and files that are none. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/device-profile.h"
#include "tests/tree.h"

#include <string.h>
#include <sys/stat.h>

/* Those that come with the program: a program that was built finds its own. */
static void
test_paths (void)
{
  static const char *const names[] = { "a100",    "b200",    "gtx1660", "h200",
                                       "rtx3060", "rtx4090", "rtx5090", "t4" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *file = g_strconcat (names[i], ".json", NULL);
      g_autofree char *path = g_test_build_filename (G_TEST_DIST, "kernels", "cuda", "profiles", file, NULL);
      g_autoptr (GError) error = NULL;
      g_autofree char *json = rn_device_profile_load (path, &error);
      g_assert_no_error (error);
      g_assert_nonnull (strstr (json, "\"deviceVer\""));
    }
}

static void
test_memory (void)
{
  g_assert_cmpuint (rn_device_profile_memory ("{\"totalGlobalMem\": 17179869184}"), ==,
                    G_GUINT64_CONSTANT (17179869184));
  g_assert_cmpuint (rn_device_profile_memory ("{\"totalGlobalMem\": -1}"), ==, 0);
  g_assert_cmpuint (rn_device_profile_memory ("{\"totalGlobalMem\": \"much\"}"), ==, 0);
  g_assert_cmpuint (rn_device_profile_memory ("{\"totalGlobalMem\": [1]}"), ==, 0);
  g_assert_cmpuint (rn_device_profile_memory ("{}"), ==, 0);
  g_assert_cmpuint (rn_device_profile_memory ("[]"), ==, 0);
  g_assert_cmpuint (rn_device_profile_memory (""), ==, 0);
}

static void
assert_refused (const char *name, const char *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (rn_device_profile_load (name, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE);
  if (strstr (error->message, part) == NULL)
    g_error ("%s", error->message);
}

static void
test_refused (void)
{
  static const char *const texts[] = { "[[[[[[1]]]]]]", "\xff", "/* */ {}" };
  g_autoptr (GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp ("profile-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *path = g_build_filename (folder, "device.json", NULL);
  g_autofree char *pipe = g_build_filename (folder, "pipe.json", NULL);
  g_autofree char *large = g_strnfill (1 << 17, ' ');

  assert_refused ("no-such-device", "no device profile \"no-such-device\"");
  assert_refused ("no/such/device.json", "no/such/device.json: ");
  assert_refused (folder, folder);
  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  assert_refused (pipe, "pipe.json: ");
  g_assert_true (g_file_set_contents (path, large, -1, NULL));
  assert_refused (path, "too large");
  g_assert_true (g_file_set_contents (path, "{}\0{}", 5, NULL));
  assert_refused (path, "not JSON");
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_assert_true (g_file_set_contents (path, texts[i], -1, NULL));
      assert_refused (path, "not JSON");
    }
  remove_tree (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/device-profile/paths", test_paths);
  g_test_add_func ("/device-profile/memory", test_memory);
  g_test_add_func ("/device-profile/refused", test_refused);
  return g_test_run ();
}
