#include "config.h"

#include "tests/gpu/profile-library.h"

char *
profile_text (const char *name)
{
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "kernels", "cuda", "profiles", file, NULL);
  g_autoptr (GError) error = NULL;
  char *json = NULL;

  g_file_get_contents (path, &json, NULL, &error);
  g_assert_no_error (error);
  return json;
}

RnConvLibrary *
profile_library (const char *name, gboolean deterministic)
{
  const RnConvOptions options = { .deterministic = deterministic };
  g_autofree char *json = profile_text (name);
  g_autoptr (GError) error = NULL;
  RnConvLibrary *library = rn_conv_library_new_for_profile (json, &options, &error);

  g_assert_no_error (error);
  return library;
}
