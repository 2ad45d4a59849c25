/* test-base.c: the small parts: errors, JSON, registry, suggestions, sizes, arena. */
#include "config.h"
#include "runner/base/arena.h"
#include "runner/base/error.h"
#include "runner/base/json.h"
#include "runner/base/registry.h"
#include "runner/base/size.h"

#include <string.h>

static void
test_exit_codes (void)
{
  const struct
  {
    GQuark domain;
    int code, exit_code;
  } cases[] = {
    { RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY, 2 },
    { G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, 2 },
    { RN_DATA_ERROR, RN_DATA_ERROR_MISSING, 2 },
    { RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, 1 },
    { RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING, 2 },
    { RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED, 1 },
    { RN_DEVICE_ERROR, RN_DEVICE_ERROR_MISSING, 3 },
    { RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, 3 },
    { RN_DEVICE_ERROR, RN_DEVICE_ERROR_KERNEL, 1 },
    { RN_RUN_ERROR, RN_RUN_ERROR_FAILED, 1 },
    { G_FILE_ERROR, G_FILE_ERROR_NOSPC, 1 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = g_error_new_literal (cases[i].domain, cases[i].code, "text");
      g_assert_cmpint (rn_error_exit_code (error), ==, cases[i].exit_code);
    }
}

/* Messages quote files, and what is in them must not act on a terminal. */
static void
test_printable (void)
{
  static const char text[] = "a\nb\x1b[2J\xc2\x9b c\xff \xc3\xa9\x7f";
  g_autofree char *line = rn_printable (text, FALSE);
  g_autofree char *lines = rn_printable (text, TRUE);
  g_autoptr (GError) error = NULL;

  g_assert_cmpstr (line, ==, "a?b?[2J? c\xef\xbf\xbd \xc3\xa9?");
  g_assert_cmpstr (lines, ==, "a\nb?[2J? c\xef\xbf\xbd \xc3\xa9?");
  rn_set_error (&error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT, "%d: \"%s\"", 3, "x\ty");
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_assert_cmpstr (error->message, ==, "3: \"x?y\"");

  g_autofree char *long_text = g_strnfill (1 << 20, 'x');
  g_autofree char *cut = rn_printable (long_text, FALSE);
  g_assert_cmpuint (strlen (cut), ==, 4096 + 3);
  g_assert_true (g_str_has_suffix (cut, "xx..."));
}

static void
test_status_names (void)
{
  for (int i = RN_STATUS_OK; i <= RN_STATUS_DEVICE; i++)
    for (int j = RN_STATUS_OK; j < i; j++)
      g_assert_cmpstr (rn_status_name ((RnStatus) i), !=, rn_status_name ((RnStatus) j));
}

static void
test_registry (void)
{
  static const RnComponent b = { .name = "B" }, a = { .name = "A_1" }, twin = { .name = "B" };
  static const RnComponent invalid[] = { { .name = "" }, { .name = "1a" }, { .name = "a-b" }, { 0 } };
  RnRegistry *registry = rn_registry_family ("test-part");
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_registry_family ("test-part") == registry);
  g_assert_cmpstr (rn_registry_family_name (registry), ==, "test-part");
  g_assert_true (rn_registry_add (registry, &b, &error));
  g_assert_true (rn_registry_add (registry, &a, &error));
  g_assert_no_error (error);
  g_assert_false (rn_registry_add (registry, &twin, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY);
  g_assert_nonnull (strstr (error->message, "test-part named \"B\""));
  for (gsize i = 0; i < G_N_ELEMENTS (invalid); i++)
    g_assert_false (rn_registry_add (registry, &invalid[i], NULL));

  g_assert_true (rn_registry_lookup (registry, "B") == &b);
  g_assert_null (rn_registry_lookup (registry, "C"));

  g_autoptr (GPtrArray) list = rn_registry_list (registry);
  g_assert_cmpuint (list->len, ==, 2);
  g_assert_true (list->pdata[0] == &a && list->pdata[1] == &b);

  RnRegistry *other = rn_registry_family ("another-part");
  g_autoptr (GPtrArray) families = rn_registry_families ();
  g_assert_cmpuint (families->len, ==, 2);
  g_assert_true (families->pdata[0] == other && families->pdata[1] == registry);
}

static void
test_suggest (void)
{
  static const char *const names[] = { "depth", "num_stages", "with_cp", "lr", NULL };
  g_autofree char *long_word = g_strnfill (100000, 'a');

  g_assert_cmpstr (rn_suggest ("dept", names), ==, "depth");
  g_assert_cmpstr (rn_suggest ("detph", names), ==, "depth"); /* swapped neighbours are one change */
  g_assert_cmpstr (rn_suggest ("with-cp", names), ==, "with_cp");
  g_assert_cmpstr (rn_suggest ("NUM_STAGES", names), ==, "num_stages");
  g_assert_cmpstr (rn_suggest ("rl", names), ==, "lr");
  g_assert_null (rn_suggest ("momentum", names));
  g_assert_null (rn_suggest ("", names));
  g_assert_null (rn_suggest (long_word, names));
}

static void
test_sizes (void)
{
  static const struct
  {
    const char *text;
    guint64 bytes;
  } good[] = {
    { "0", 0 },
    { "4096", 4096 },
    { "700MiB", 700u << 20 },
    { "1.5 GiB", 3u << 29 },
    { "2GB", 2000000000 },
    { "1kB", 1000 },
    { "3K", 3072 },
    { "7 B", 7 },
    { "1TiB", 1ull << 40 },
    { "2TB", 2000000000000 },
    { "0.5MB", 500000 },
  };
  static const char *const bad[] = { "",       "MiB",  "-1",  "1e3",         "0x10",
                                     "1 MiBs", "7mib", "nan", "99999999TiB", " 1" };

  for (gsize i = 0; i < G_N_ELEMENTS (good); i++)
    {
      guint64 bytes = 1;
      g_assert_true (rn_size_parse (good[i].text, &bytes, NULL));
      g_assert_cmpuint (bytes, ==, good[i].bytes);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      guint64 bytes = 1;
      g_autoptr (GError) error = NULL;
      g_assert_false (rn_size_parse (bad[i], &bytes, &error));
      g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
      g_assert_cmpuint (bytes, ==, 1);
    }
}

static void
test_size_format (void)
{
  static const struct
  {
    guint64 bytes;
    const char *text;
  } cases[] = {
    { 0, "0 B" },
    { 1023, "1023 B" },
    { 1024, "1.0 KiB" },
    { 727081779, "693.4 MiB" }, /* 693.4 * 2^20 */
    { 3206ull << 20, "3.1 GiB" },
    { G_MAXUINT64, "16.0 EiB" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *text = rn_size_format (cases[i].bytes);
      g_assert_cmpstr (text, ==, cases[i].text);
    }
}

static void
test_arena (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnArena) arena = rn_arena_new ("plan", 100001, &error);
  g_autoptr (RnArena) empty = rn_arena_new ("empty", 0, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (rn_arena_size (arena), ==, 100001);
  g_assert_cmpuint (rn_arena_size (empty), ==, 0);
  g_assert_nonnull (rn_arena_data (empty));

  char *bytes = rn_arena_data (arena);
  g_assert_cmpuint ((guintptr) bytes % 64, ==, 0);
  bytes[0] = 1;
  bytes[100000] = 2;
  rn_arena_touch (arena);
  g_assert_cmpint (bytes[0], ==, 1);
  g_assert_cmpint (bytes[50000], ==, 0);
  g_assert_cmpint (bytes[100000], ==, 2);
}

static void
test_arena_too_large (void)
{
  static const gsize sizes[] = { G_MAXSIZE, G_MAXSIZE / 2 }; /* the sum overflows; no address space has it */

  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_null (rn_arena_new ("plan", sizes[i], &error));
      g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
      g_assert_nonnull (strstr (error->message, "plan arena"));
    }
}

/* An object of texts and integers, and nothing else. */
static void
test_json_flat (void)
{
  static const char *const refused[] = {
    "",
    "[]",
    "12",
    "{\"a\": [1]}",
    "{\"a\": {}}",
    "{\"a\": 1.5}",
    "{\"a\": null}",
    "{\"a\": true}",
    "{\"a\": 1",
    "{\"a\": \"\xff\"}",
    "{/* */\"a\": 1}",
  };
  const char *text = "{\"name\": \"a \\\"b\\\" {c}\", \"n\": -7}";
  g_autoptr (GError) error = NULL;
  g_autoptr (GHashTable) members = rn_json_read_flat (text, strlen (text), &error);
  g_autofree char *deep = g_strnfill (100000, '[');

  g_assert_no_error (error);
  g_assert_cmpuint (g_hash_table_size (members), ==, 2);
  g_assert_cmpstr (g_hash_table_lookup (members, "name"), ==, "a \"b\" {c}");
  g_assert_cmpstr (g_hash_table_lookup (members, "n"), ==, "-7");
  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++)
    {
      g_assert_null (rn_json_read_flat (refused[i], strlen (refused[i]), &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
      g_clear_error (&error);
    }
  g_assert_null (rn_json_read_flat (deep, 100000, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/base/exit-codes", test_exit_codes);
  g_test_add_func ("/base/printable", test_printable);
  g_test_add_func ("/base/status-names", test_status_names);
  g_test_add_func ("/base/json-flat", test_json_flat);
  g_test_add_func ("/base/registry", test_registry);
  g_test_add_func ("/base/suggest", test_suggest);
  g_test_add_func ("/base/sizes", test_sizes);
  g_test_add_func ("/base/size-format", test_size_format);
  g_test_add_func ("/base/arena", test_arena);
  g_test_add_func ("/base/arena-too-large", test_arena_too_large);
  return g_test_run ();
}
