/* `runner strategies`, and the page that it writes a part of. */
#include "config.h"

#include "tests/cli/program.h"

#include <json-glib/json-glib.h>
#include <string.h>

static void
test_page (void)
{
  static const char begin[] = "<!-- begin of runner strategies --markdown -->\n", end[] = "<!-- end -->";
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "docs", "strategies.md", NULL), *page = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (Result) result = run_program ("strategies", "--markdown", NULL);

  g_assert_cmpint (result.code, ==, 0);
  g_file_get_contents (path, &page, NULL, &error);
  g_assert_no_error (error);
  char *from = strstr (page, begin), *to = strstr (page, end);
  g_assert_nonnull (from);
  g_assert_nonnull (to);
  *to = '\0';
  g_assert_cmpstr (from + strlen (begin), ==, result.out);
}

static void
test_list (void)
{
  g_auto (Result) all = run_program ("strategies", NULL);
  g_auto (Result) one = run_program ("strategies", "in_backward", NULL);
  g_auto (Result) none = run_program ("strategies", "in_backwards", NULL);

  g_assert_cmpint (all.code, ==, 0);
  assert_contains (all.out, "\nwith_cp ");
  assert_contains (all.out, "model: {backbone: {with_cp: true}}\n");
  assert_contains (all.out, "\n  depth_first and head_with_cp: ");
  g_assert_cmpint (one.code, ==, 0);
  assert_contains (one.out, "after --set: 'memory.update=in_backward'\n");
  assert_contains (one.out, "result: bit-equal\n");
  assert_contains (one.out, "in_backward does not go with optimizer_config.grad_clip.max_norm: ");
  g_assert_null (strstr (one.out, "depth_first"));
  g_assert_cmpint (none.code, ==, 2);
  assert_contains (none.err, "no strategy \"in_backwards\"; did you mean \"in_backward\"?");
}

static void
test_json (void)
{
  g_auto (Result) result = run_program ("strategies", "--json", NULL);
  g_autoptr (JsonParser) parser = json_parser_new_immutable ();
  g_autoptr (GError) error = NULL;
  guint n_refused = 0;

  g_assert_cmpint (result.code, ==, 0);
  json_parser_load_from_data (parser, result.out, -1, &error);
  g_assert_no_error (error);
  JsonObject *root = json_node_get_object (json_parser_get_root (parser));
  JsonArray *list = json_object_get_array_member (root, "strategies");
  JsonObject *first = json_array_get_object_element (list, 0);
  g_assert_cmpstr (json_object_get_string_member (first, "name"), ==, "fold_frozen_bn");
  g_assert_true (json_object_get_boolean_member (first, "default"));
  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (root, "rules")), >, 0);
  JsonArray *pairs = json_object_get_array_member (root, "refused_pairs");
  for (guint i = 0; i < json_array_get_length (pairs); i++)
    {
      JsonObject *pair = json_array_get_object_element (pairs, i);
      n_refused += g_str_equal (json_object_get_string_member (pair, "a"), "in_backward")
                   && g_str_equal (json_object_get_string_member (pair, "b"), "fp16");
    }
  g_assert_cmpuint (n_refused, ==, 1);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/cli/strategies/page", test_page);
  g_test_add_func ("/cli/strategies/list", test_list);
  g_test_add_func ("/cli/strategies/json", test_json);
  return g_test_run ();
}
