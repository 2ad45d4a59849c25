/* test-yaml.c: from text to a tree and back: types of scalars, what is refused, limits, dump. */
#include "config.h"
#include "tests/config/config-fixture.h"

#include <math.h>

static const RnNode *
load_value (const char *text, RnNode **root)
{
  g_autofree char *document = g_strdup_printf ("a: %s\n", text);
  g_autoptr (GError) error = NULL;

  *root = rn_config_load_text (document, "x.yaml", NULL, &error);
  g_assert_no_error (error);
  return rn_node_get (*root, "a");
}

static void
test_floats (void)
{
  static const struct
  {
    const char *text;
    double value;
  } cases[] = {
    { "1e-4", 1e-4 },     { "1.", 1 },          { ".5", 0.5 },          { "0.001", 0.001 },
    { "-1.5E+3", -1500 }, { "+2.5", 2.5 },      { "1e3", 1000 },        { "1.e5", 1e5 },
    { ".5e1", 5 },        { ".inf", INFINITY }, { "-.Inf", -INFINITY }, { "007.5", 7.5 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) root = NULL;
      const RnNode *node = load_value (cases[i].text, &root);
      g_assert_cmpint (rn_node_kind (node), ==, RN_NODE_FLOAT);
      g_assert_cmpfloat (rn_node_as_float (node), ==, cases[i].value);
    }

  g_autoptr (RnNode) root = NULL;
  g_assert_true (isnan (rn_node_as_float (load_value (".nan", &root))));
}

static void
test_ints_and_others (void)
{
  static const struct
  {
    const char *text;
    gint64 value;
  } cases[] = {
    { "0", 0 },
    { "-7", -7 },
    { "+5", 5 },
    { "9223372036854775807", G_MAXINT64 },
    { "-9223372036854775808", G_MININT64 },
  };
  static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) root = NULL;
      const RnNode *node = load_value (cases[i].text, &root);
      g_assert_cmpint (rn_node_kind (node), ==, RN_NODE_INT);
      g_assert_cmpint (rn_node_as_int (node), ==, cases[i].value);
      g_assert_cmpfloat (rn_node_as_float (node), ==, (double) cases[i].value);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (nulls); i++)
    {
      g_autoptr (RnNode) root = NULL;
      g_assert_cmpint (rn_node_kind (load_value (nulls[i], &root)), ==, RN_NODE_NULL);
    }

  g_autoptr (RnNode) yes = NULL;
  g_autoptr (RnNode) no = NULL;
  g_assert_true (rn_node_as_bool (load_value ("True", &yes)));
  g_assert_false (rn_node_as_bool (load_value ("false", &no)));
}

static void
test_strings (void)
{
  static const struct
  {
    const char *text, *value;
  } cases[] = {
    { "on", "on" },         { "off", "off" },
    { "yes", "yes" },       { "No", "No" },
    { "0x10", "0x10" },     { "007", "007" },
    { "1_000", "1_000" },   { "000005", "000005" },
    { "1e", "1e" },         { ".", "." },
    { "-x", "-x" },         { "e5", "e5" },
    { "1.2.3", "1.2.3" },   { "None", "None" },
    { "nan", "nan" },       { "'1'", "1" },
    { "\"true\"", "true" }, { "!!str 1e-4", "1e-4" },
    { "12:30", "12:30" },   { "2007-01-01", "2007-01-01" },
    { "''", "" },           { "11points", "11points" },
    { "\"\\u00e9\"", "é" }, { "1e-4x", "1e-4x" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) root = NULL;
      const RnNode *node = load_value (cases[i].text, &root);
      g_assert_cmpint (rn_node_kind (node), ==, RN_NODE_STRING);
      g_assert_cmpstr (rn_node_as_string (node), ==, cases[i].value);
    }
}

static void
test_structure (void)
{
  g_autoptr (RnNode) root = rn_config_load_text ("model:\n  backbone: {depth: 50, out: [0, 1, x]}\n"
                                                 "list:\n- a\n- b: 1\n",
                                                 "x.yaml", NULL, NULL);
  const RnNode *depth = rn_node_path (root, "model.backbone.depth");

  g_assert_cmpint (rn_node_as_int (depth), ==, 50);
  g_assert_cmpstr (rn_node_origin (depth), ==, "x.yaml:2:14");
  g_assert_cmpstr (rn_node_dotted (depth), ==, "model.backbone.depth");
  g_assert_cmpstr (rn_node_dotted (rn_node_path (root, "list.1.b")), ==, "list.1.b");
  g_assert_cmpstr (rn_node_as_string (rn_node_path (root, "model.backbone.out.-1")), ==, "x");
  g_assert_cmpuint (rn_node_size (rn_node_get (root, "list")), ==, 2);
  g_assert_cmpstr (rn_node_key (root, 1), ==, "list");
  g_assert_null (rn_node_path (root, "model.neck"));
  g_assert_null (rn_node_path (root, "model.backbone.depth.x"));
  g_assert_null (rn_node_path (root, "list.2"));
  g_assert_null (rn_node_path (root, "list.-3"));
  g_assert_null (rn_node_get (depth, "x"));
  g_assert_cmpuint (rn_node_size (depth), ==, 0);
}

static void
test_aliases (void)
{
  g_autoptr (RnNode) root = rn_config_load_text ("base: &b {lr: 0.1, steps: [8, 11]}\n"
                                                 "other: &o {lr: 9, warmup: 5}\n"
                                                 "copy: *b\n"
                                                 "one: {<<: *b, lr: 0.2}\n"
                                                 "two: {lr: 0.3, <<: [*b, *o]}\n"
                                                 "inline: {<<: &i {q: 1}, r: 2}\n"
                                                 "again: *i\n"
                                                 "quoted: {'<<': 1}\n",
                                                 "x.yaml", NULL, NULL);

  assert_tree (root, "base: {lr: 0.1, steps: [8, 11]}\n"
                     "other: {lr: 9, warmup: 5}\n"
                     "copy: {lr: 0.1, steps: [8, 11]}\n"
                     "one: {lr: 0.2, steps: [8, 11]}\n"
                     "two: {lr: 0.3, steps: [8, 11], warmup: 5}\n"
                     "inline: {q: 1, r: 2}\n"
                     "again: {q: 1}\n"
                     "quoted: {\"<<\": 1}\n");
}

static void
test_refused (void)
{
  static const struct
  {
    const char *text;
    int code;
    const char *place, *part;
  } cases[] = {
    { "a: 1\nb:\n  c: 1\n  c: 2\n", RN_CONFIG_ERROR_KEY,
      "x.yaml:4:3: b.c: ", "duplicate key, first at x.yaml:3:3" },
    { "a: {<<: {x: 1}, <<: {y: 1}}\n", RN_CONFIG_ERROR_KEY, "x.yaml:1:17: a.<<: ", "duplicate" },
    { "a:\n\tb: 1\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:1: ", "a tab in the indentation" },
    { "a:\n  \tb: 1\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:3: ", "a tab in the indentation" },
    { "a: [1, 2\nb: 3\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:4: ", "\"]\" is missing: [1, 2" },
    { "a: {b: 1\nc: 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:4: ", "\"}\" is missing: {b: 1" },
    { "a: 1\noptimizer\n  lr: 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:1: ", "\"optimizer\" has no colon" },
    { "a: 1\nseed:3\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:1: ", "space after the colon: \"seed: 3\"" },
    { "a: 1\nb = 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:1: ", "Python has \"=\"" },
    { "a:\n    b: 1\n  c: 2\n", RN_CONFIG_ERROR_SYNTAX,
      "x.yaml:3:3: ", "same column (this map begins in line 1" },
    { "a:\n  - 1\n  2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:3:3: ", "\"2\"" },
    { "a: \"x\nb: 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:4: ", "the quote that opens here has no end" },
    { "a: @x\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:4: ", "needs quotes: @x" },
    { "a: 1\nb: *.jpg\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:5: ", "needs quotes" },
    { "a: \"C:\\data\"\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:", "a backslash between double quotes" },
    { "a: [1,\t@]\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:", "needs quotes" },
    { "\xff\xd8\xff\xe0", RN_CONFIG_ERROR_SYNTAX, "x.yaml: ", "it is a JPEG image" },
    { "# mine\nmodel = dict(\n  type='RetinaNet')\n", RN_CONFIG_ERROR_SYNTAX,
      "x.yaml:2:1: ", "from-mmdetection.md" },
    { "from a import b\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: ", "this is Python" },
    { "a: 1\n b: 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:3: ", "indented like the one above" },
    { "a: *nowhere\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: a: ", "no finished anchor \"nowhere\"" },
    { "a: &a [*a]\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:8: a.0: ", "no finished anchor \"a\"" },
    { "a: !!python/object [1]\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: a: ", "is not supported" },
    { "a: !!int 1\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: a: ", "is not supported" },
    { "a: 9223372036854775808\n", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: a: ", "64 bits" },
    { "a: 1e999\n", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: a: ", "too large" },
    { "{[1]: 2}\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:2: ", "a key must be a text" },
    { "'': 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: ", "a key must have" },
    { "a: \"x\\0y\"\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: a: ", "NUL" },
    { "a: {<<: 1}\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:5: ", "\"<<\" needs a map" },
    { "a: 1\n---\nb: 2\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:1: ", "one document" },
    { "- 1\n", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: ", "a configuration is a map, not a list" },
    { "a: \xff\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:4: ", "not UTF-8" },
    { "ab: 1\nc: \x01\n", RN_CONFIG_ERROR_SYNTAX, "x.yaml:2:4: ", "control characters" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_text_fails (cases[i].text, NULL, cases[i].code, cases[i].place, cases[i].part);
}

/* A tab that does not indent is fine. */
static void
test_harmless_tabs (void)
{
  g_autoptr (RnNode) root = rn_config_load_text ("a:\t1\t# x\ty\nb: \"\t\"\n", "x.yaml", NULL, NULL);

  assert_tree (root, "{a: 1, b: \"\\t\"}");
}

/* What editors and PyYAML add. */
static void
test_foreign (void)
{
  g_autoptr (RnNode) bom = rn_config_load_text ("\xef\xbb\xbf"
                                                "a: 1\r\nb: 2\r\n",
                                                "x.yaml", NULL, NULL);
  g_autoptr (RnNode) tuple = rn_config_load_text ("a: !!python/tuple\n- 1\n- 2\n", "x.yaml", NULL, NULL);
  g_autoptr (RnNode) json =
      rn_config_load_text ("{\n \"a\": [1e-05, null, \"x\\u00e4\"]\n}\n", "x.json", NULL, NULL);

  assert_tree (bom, "{a: 1, b: 2}");
  assert_tree (tuple, "{a: [1, 2]}");
  assert_tree (json, "{a: [1e-5, null, \"x\\u00e4\"]}");
}

static void
test_empty (void)
{
  static const char *const texts[] = { "", "\n", "# only a comment\n", "---\n", "{}" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = rn_config_load_text (texts[i], "x.yaml", NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (rn_node_kind (root), ==, RN_NODE_MAP);
      g_assert_cmpuint (rn_node_size (root), ==, 0);
    }
}

/* "billion laughs": nine anchors, each ten times the one before; and a chain that only grows deeper. */
static void
test_limits (void)
{
  g_autoptr (GString) wide = g_string_new ("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
  g_autoptr (GString) deep = g_string_new ("a0: &a0 [1]\n");
  g_autoptr (GString) nested = g_string_new ("a: ");
  g_autoptr (GString) texts = g_string_new ("t: &t ");
  g_autofree char *filler = g_strnfill (60000, 'x');

  for (int i = 1; i < 9; i++)
    {
      g_string_append_printf (wide, "a%d: &a%d [", i, i);
      for (int j = 0; j < 10; j++)
        g_string_append_printf (wide, "*a%d, ", i - 1);
      g_string_append (wide, "]\n");
    }
  assert_text_fails (wide->str, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:", "more than 1000000 values");

  for (int i = 1; i < 200; i++)
    g_string_append_printf (deep, "a%d: &a%d [*a%d]\n", i, i, i - 1);
  assert_text_fails (deep->str, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:", "100 levels");

  for (int i = 0; i < 100000; i++)
    g_string_append_c (nested, '[');
  assert_text_fails (nested->str, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:", "100 levels");

  g_string_append_printf (texts, "%s\nl: [", filler); /* 60,000 bytes count as 938 values */
  for (int i = 0; i < 2000; i++)
    g_string_append (texts, "*t, ");
  g_string_append (texts, "]\n");
  assert_text_fails (texts->str, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:", "more than 1000000 values");

  g_autofree char *long_text = g_strnfill (70000, 'x');
  g_autofree char *long_value = g_strdup_printf ("a: %s\n", long_text);
  assert_text_fails (long_value, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: a: ", "65536 bytes");

  g_autofree char *long_key = g_strdup_printf ("%.300s: 1\n", long_text);
  assert_text_fails (long_key, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml:1:1: ", "1 to 200 bytes");

  g_autofree char *huge = g_strnfill ((8 << 20) + 1, ' ');
  assert_text_fails (huge, NULL, RN_CONFIG_ERROR_SYNTAX, "x.yaml: ", "more than 8388608 bytes");
}

/* Every value that dump could get wrong comes back equal. */
static void
test_dump_round_trip (void)
{
  static const char *const strings[] = { "",
                                         "plain",
                                         "two words",
                                         "trailing ",
                                         " leading",
                                         "true",
                                         "null",
                                         "~",
                                         "1",
                                         "1e-4",
                                         ".5",
                                         ".inf",
                                         "on",
                                         "a: b",
                                         "a #b",
                                         "- a",
                                         "[x]",
                                         "{x}",
                                         "\"q\"",
                                         "'q'",
                                         "back\\slash",
                                         "tab\t",
                                         "line\nend",
                                         "\r",
                                         "\x01\x1f\x7f",
                                         "é",
                                         "\xc2\x85",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "\xf0\x9f\x90\x88",
                                         "\xef\xbf\xbe",
                                         "${a}",
                                         "$${a}",
                                         "$$${",
                                         "a ${b.c} d",
                                         "${",
                                         "@x",
                                         "%x",
                                         "*x",
                                         "&x",
                                         "!x",
                                         "|",
                                         ">",
                                         "---",
                                         "...",
                                         "<<",
                                         "?",
                                         "007",
                                         "0x1F",
                                         "data/VOCdevkit/",
                                         "C:\\x",
                                         "x," };
  static const double floats[] = { 0.1,
                                   1e-4,
                                   1.0,
                                   1e300,
                                   5e-324,
                                   -0.0,
                                   1.0 / 3,
                                   123456789012345680.0,
                                   1e22,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   0.30000000000000004,
                                   1e5 };
  g_autoptr (RnNode) root = rn_config_load_text ("{}", "x", NULL, NULL);
  g_autofree char *long_key = g_strnfill (200, '\x01');

  for (gsize i = 0; i < G_N_ELEMENTS (strings); i++)
    {
      g_autofree char *name = g_strdup_printf ("strings.s%zu", i);
      g_assert_true (rn_config_set (root, name, rn_node_new_string (strings[i], "x"), NULL));
      if (*strings[i] && !strchr (strings[i], '.'))
        g_assert_true (rn_config_set (root, strings[i], rn_node_new_bool (TRUE, "x"), NULL));
    }
  for (gsize i = 0; i < G_N_ELEMENTS (floats); i++)
    {
      g_autofree char *name = g_strdup_printf ("floats.f%zu", i);
      g_assert_true (rn_config_set (root, name, rn_node_new_float (floats[i], "x"), NULL));
    }
  g_assert_true (rn_config_set (root, long_key, rn_node_new_int (G_MININT64, "x"), NULL));
  g_assert_true (rn_config_set (root, "deep.null", rn_node_new_null ("x"), NULL));

  for (int origins = 0; origins < 2; origins++)
    {
      g_autofree char *text = rn_config_dump (root, origins);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) again = rn_config_load_text (text, "dump.yaml", NULL, &error);
      g_assert_no_error (error);
      g_assert_true (rn_node_equal (root, again));
      g_assert_true (signbit (rn_node_as_float (rn_node_path (again, "floats.f5"))));
    }
}

static void
test_dump_layout (void)
{
  g_autoptr (RnNode) root =
      rn_config_load_text ("lr: 1e-4\nsteps: [8, 11]\nempty: {}\nnested: [[1, 2], [], x]\n"
                           "hooks:\n- type: A\n  on: yes\n- [{a: 1}, 2]\nmodel: {neck: {num: 5}}\n",
                           "dir/x.yaml", NULL, NULL);
  g_autofree char *plain = rn_config_dump (root, FALSE);
  g_autofree char *origins = rn_config_dump (root, TRUE);

  g_assert_cmpstr (plain, ==,
                   "lr: 0.0001\n"
                   "steps: [8, 11]\n"
                   "empty: {}\n"
                   "nested: [[1, 2], [], x]\n"
                   "hooks:\n"
                   "  - type: A\n"
                   "    on: yes\n"
                   "  - - a: 1\n"
                   "    - 2\n"
                   "model:\n"
                   "  neck:\n"
                   "    num: 5\n");
  g_assert_nonnull (strstr (origins, "lr: 0.0001  # dir/x.yaml:1:1\n"));
  g_assert_nonnull (strstr (origins, "    on: yes  # dir/x.yaml:7:3\n"));
}

static void
test_equal (void)
{
  static const struct
  {
    const char *a, *b;
    gboolean is_equal;
  } cases[] = {
    { "{x: 1, y: 2}", "{y: 2, x: 1}", TRUE }, { "{x: 1}", "{x: 1.0}", FALSE },
    { "{x: 1}", "{x: \"1\"}", FALSE },        { "{x: .nan}", "{x: .nan}", TRUE },
    { "{x: [1, 2]}", "{x: [2, 1]}", FALSE },  { "{x: {}}", "{x: []}", FALSE },
    { "{x: null}", "{y: null}", FALSE },      { "{x: true}", "{x: false}", FALSE },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnNode) a = rn_config_load_text (cases[i].a, "a", NULL, NULL);
      g_autoptr (RnNode) b = rn_config_load_text (cases[i].b, "b", NULL, NULL);
      g_autoptr (RnNode) copy = rn_node_copy (a);
      g_assert_cmpint (rn_node_equal (a, b), ==, cases[i].is_equal);
      g_assert_true (rn_node_equal (a, copy));
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/yaml/floats", test_floats);
  g_test_add_func ("/yaml/ints-and-others", test_ints_and_others);
  g_test_add_func ("/yaml/strings", test_strings);
  g_test_add_func ("/yaml/structure", test_structure);
  g_test_add_func ("/yaml/aliases", test_aliases);
  g_test_add_func ("/yaml/refused", test_refused);
  g_test_add_func ("/yaml/harmless-tabs", test_harmless_tabs);
  g_test_add_func ("/yaml/foreign", test_foreign);
  g_test_add_func ("/yaml/empty", test_empty);
  g_test_add_func ("/yaml/limits", test_limits);
  g_test_add_func ("/yaml/dump-round-trip", test_dump_round_trip);
  g_test_add_func ("/yaml/dump-layout", test_dump_layout);
  g_test_add_func ("/yaml/equal", test_equal);
  return g_test_run ();
}
