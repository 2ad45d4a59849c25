/* test-load.c: bases, merging, references and overrides: a good and a bad case for each rule. */
#include "config.h"
#include "tests/config/config-fixture.h"

/* Bases */

static void
test_bases (Fixture *f, gconstpointer data)
{
  fixture_write (f, "_base_/model.yaml", "model: {depth: 50, neck: {num: 5}}\nshared: 1\n");
  fixture_write (f, "_base_/schedule.yaml", "optimizer: {lr: 0.02}\nmodel: {style: pytorch}\nshared: 1\n");
  fixture_write (f, "child.yaml",
                 "_base_: [_base_/model.yaml, ./_base_/schedule.yaml]\nmodel: {depth: 18}\n");
  fixture_write (f, "grandchild.yaml", "_base_: child.yaml\noptimizer: {lr: 0.01}\n");

  g_autoptr (RnNode) root = fixture_load (f, "grandchild.yaml", NULL);
  assert_tree (root,
               "{model: {depth: 18, neck: {num: 5}, style: pytorch}, shared: 1, optimizer: {lr: 0.01}}");
  g_assert_true (
      g_str_has_suffix (rn_node_origin (rn_node_path (root, "optimizer.lr")), "/grandchild.yaml:2:13"));
  g_assert_true (
      g_str_has_suffix (rn_node_origin (rn_node_path (root, "model.neck.num")), "/_base_/model.yaml:1:27"));
}

static void
test_base_conflict (Fixture *f, gconstpointer data)
{
  fixture_write (f, "a.yaml", "optimizer: {lr: 1}\n");
  fixture_write (f, "b.yaml", "x: 1\noptimizer: {lr: 2}\n");
  fixture_write (f, "bad.yaml", "_base_: [a.yaml, b.yaml]\n");
  fixture_write (f, "good.yaml", "_base_: {files: [a.yaml, b.yaml], later_wins: true}\n");
  fixture_write (f, "wrong.yaml", "_base_: {later_wins: true}\n");

  fixture_fails (f, "bad.yaml", RN_CONFIG_ERROR_VALUE, "b.yaml:2:13: optimizer.lr: ", "/a.yaml:1:13");
  g_autoptr (RnNode) root = fixture_load (f, "good.yaml", NULL);
  assert_tree (root, "{optimizer: {lr: 2}, x: 1}");
  fixture_fails (f, "wrong.yaml", RN_CONFIG_ERROR_VALUE, "wrong.yaml:1:1: _base_: ", "needs files");
}

static void
test_base_refused (Fixture *f, gconstpointer data)
{
  fixture_write (f, "self.yaml", "a: 1\n_base_: ./self.yaml\n");
  fixture_write (f, "ping.yaml", "_base_: pong.yaml\n");
  fixture_write (f, "pong.yaml", "_base_: ping.yaml\n");
  fixture_write (f, "missing.yaml", "a: 1\n_base_: nowhere.yaml\n");
  fixture_write (f, "folder.yaml", "_base_: .\n");
  fixture_write (f, "type.yaml", "_base_: [1]\n");
  fixture_write (f, "inner.yaml", "model:\n  _base_: x.yaml\n");
  fixture_write (f, "broken.yaml", "x: 1\nb: [\n");
  fixture_write (f, "on-broken.yaml", "_base_: broken.yaml\n");

  fixture_fails (f, "self.yaml", RN_CONFIG_ERROR_VALUE, "self.yaml:2:1: _base_: ", "its own _base_");
  fixture_fails (f, "ping.yaml", RN_CONFIG_ERROR_VALUE, "pong.yaml:1:1: _base_: ", "its own _base_");
  fixture_fails (f, "missing.yaml", RN_CONFIG_ERROR_VALUE,
                 "missing.yaml:2:1: _base_: ", "No such file or directory (looked for in the folder of ");
  fixture_fails (f, "folder.yaml", RN_CONFIG_ERROR_VALUE, "folder.yaml:1:1: _base_: ", "is a folder");
  fixture_fails (f, "type.yaml", RN_CONFIG_ERROR_VALUE, "type.yaml:1:10: _base_.0: ", "name of a file");
  fixture_fails (f, "inner.yaml", RN_CONFIG_ERROR_KEY, "inner.yaml:2:3: model._base_: ", "top of a file");
  fixture_fails (f, "on-broken.yaml", RN_CONFIG_ERROR_SYNTAX, "broken.yaml:", "");
  fixture_fails (f, "nothing.yaml", RN_CONFIG_ERROR_USAGE, "nothing.yaml: ", "No such file");
  fixture_fails (f, "brokn.yaml", RN_CONFIG_ERROR_USAGE, "brokn.yaml: ", "/broken.yaml\"?");
  fixture_fails (f, "broken.py", RN_CONFIG_ERROR_USAGE, "broken.py: ", "/broken.yaml\"?");
}

static void
test_base_limits (Fixture *f, gconstpointer data)
{
  fixture_write (f, "f0.yaml", "a: 1\n");
  fixture_write (f, "w0.yaml", "a: 1\n");
  for (int i = 1; i <= 17; i++)
    {
      g_autofree char *deep = g_strdup_printf ("f%d.yaml", i);
      g_autofree char *deep_text = g_strdup_printf ("_base_: f%d.yaml\n", i - 1);
      g_autofree char *wide = g_strdup_printf ("w%d.yaml", i);
      g_autofree char *wide_text = g_strdup_printf ("_base_: [w%d.yaml, w%d.yaml]\n", i - 1, i - 1);
      fixture_write (f, deep, deep_text);
      fixture_write (f, wide, wide_text);
    }

  g_autoptr (RnNode) root = fixture_load (f, "f15.yaml", NULL);
  assert_tree (root, "a: 1");
  fixture_fails (f, "f17.yaml", RN_CONFIG_ERROR_VALUE, "f2.yaml:1:1: _base_: ", "more than 16 levels");
  fixture_fails (f, "w12.yaml", RN_CONFIG_ERROR_VALUE, "w", "256 files"); /* 2^12 readings of w0 */
}

/* Merging: each case has a base, a child, and the result or the error. */

typedef struct
{
  const char *base, *child, *result;
} MergeCase;

typedef struct
{
  const char *base, *child;
  int code;
  const char *place, *part; /* of the message */
} BadMerge;

static void
write_pair (const Fixture *f, const char *base, const char *child)
{
  g_autofree char *text = g_strconcat ("_base_: base.yaml\n", child, NULL);

  fixture_write (f, "base.yaml", base);
  fixture_write (f, "child.yaml", text);
}

static void
check_merges (const Fixture *f, const MergeCase *good, gsize n_good, const BadMerge *bad, gsize n_bad)
{
  for (gsize i = 0; i < n_good; i++)
    {
      write_pair (f, good[i].base, good[i].child);
      g_autoptr (RnNode) root = fixture_load (f, "child.yaml", NULL);
      assert_tree (root, good[i].result);
    }
  for (gsize i = 0; i < n_bad; i++)
    {
      write_pair (f, bad[i].base, bad[i].child);
      fixture_fails (f, "child.yaml", bad[i].code, bad[i].place, bad[i].part);
    }
}

static void
test_merge (Fixture *f, gconstpointer data)
{
  static const MergeCase good[] = {
    { "a: {x: 1, y: 2}", "a: {y: 3, z: 4}", "a: {x: 1, y: 3, z: 4}" },
    { "a: {x: 1}", "a: 5", "a: 5" },
    { "a: {x: 1}", "a: null", "a: null" },
    { "a: null", "a: {x: 1}", "a: {x: 1}" },
    { "a: [1, 2, 3]", "a: [4]", "a: [4]" }, /* lists are replaced whole */
    { "a: {x: {y: 1}}", "", "a: {x: {y: 1}}" },
  };
  static const BadMerge bad[] = {
    { "a: 5", "a: {x: 1}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: a: ", "add \"_delete_: true\"" },
    { "a: [1]", "a: {x: 1}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: a: ", "cannot go over a list" },
    { "a: 1", "_delete_: true\n_append_: [1]", RN_CONFIG_ERROR_VALUE,
      "child.yaml:1:1: ", "a map, not a list" },
    { "a: 1", "a: {_delte_: true}", RN_CONFIG_ERROR_KEY,
      "child.yaml:2:5: a._delte_: ", "did you mean \"_delete_\"?" },
  };

  check_merges (f, good, G_N_ELEMENTS (good), bad, G_N_ELEMENTS (bad));
}

static void
test_delete (Fixture *f, gconstpointer data)
{
  static const MergeCase good[] = {
    { "a: {x: 1, y: 2}", "a: {_delete_: true, z: 3}", "a: {z: 3}" },
    { "a: 5", "a: {_delete_: true, z: 3}", "a: {z: 3}" },
    { "a: {x: 1}", "a: {_delete_: false, z: 3}", "a: {x: 1, z: 3}" },
    { "{}", "a: {_delete_: true, z: {_delete_: true}}", "a: {z: {}}" }, /* new keys: stripped too */
    { "a: [1]", "a: [{_delete_: true, x: 1}, [{_delete_: [q], y: 2}]]", "a: [{x: 1}, [{y: 2}]]" },
    { "a: {b: {c: {x: 1}}}", "a: {b: {c: {_delete_: true, y: 1}}}", "a: {b: {c: {y: 1}}}" },
    { "a: {x: 1, y: 2, z: 3}", "a: {_delete_: [x, y], y: 5}", "a: {z: 3, y: 5}" },
    { "a: {x: 1, y: 2}", "a: {_delete_: x}", "a: {y: 2}" },
    { "a: 1\nb: 2", "_delete_: [a]", "b: 2" },
  };
  static const BadMerge bad[] = {
    { "a: {depth: 1}", "a: {_delete_: [dept]}", RN_CONFIG_ERROR_KEY,
      "child.yaml:2:16: a._delete_.0: ", "did you mean \"depth\"?" },
    { "a: {x: 1}", "a: {_delete_: 3}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:5: a._delete_: ", "needs true" },
  };

  check_merges (f, good, G_N_ELEMENTS (good), bad, G_N_ELEMENTS (bad));
}

static void
test_lists (Fixture *f, gconstpointer data)
{
  static const MergeCase good[] = {
    { "a: [2, 3]", "a: {_append_: [4], _prepend_: [0, 1]}", "a: [0, 1, 2, 3, 4]" },
    { "{}", "a: {_append_: [1]}", "a: [1]" },
    { "a: [1]", "a: {_delete_: true, _append_: [2]}", "a: [2]" },
    { "a: [{x: 1, y: 1}, {x: 2}, {x: 3}]", "a: {_merge_: {0: {y: 5}, -1: {_delete_: true, z: 1}}}",
      "a: [{x: 1, y: 5}, {x: 2}, {z: 1}]" },
    { "a: [1, 2]", "a: {_merge_: {0: 7}, _append_: [{_append_: [8]}]}", "a: [7, 2, [8]]" },
    { "a: [[1], 2]", "a: {_merge_: {0: {_append_: [5]}}}", "a: [[1, 5], 2]" },
  };
  static const BadMerge bad[] = {
    { "a: [1]", "a: {_append_: 2}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:5: a._append_: ", "needs a list" },
    { "a: {x: 1}", "a: {_append_: [2]}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: a: ", "no list to edit" },
    { "a: [1]", "a: {_append_: [2], x: 1}", RN_CONFIG_ERROR_KEY, "child.yaml:2:1: a: ", "no other keys" },
    { "a: [1]", "a: {_merge_: {1: 2}}", RN_CONFIG_ERROR_KEY, "child.yaml:2:15: a._merge_.1: ", "it has 1" },
    { "a: [1]", "a: {_merge_: {-2: 2}}", RN_CONFIG_ERROR_KEY, "child.yaml:2:15: ", "no such item" },
    { "a: [1]", "a: {_merge_: {x: 2}}", RN_CONFIG_ERROR_KEY, "child.yaml:2:15: ", "no such item" },
    { "a: [1]", "a: {_merge_: [2]}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:5: a._merge_: ", "a map of item" },
  };

  check_merges (f, good, G_N_ELEMENTS (good), bad, G_N_ELEMENTS (bad));
}

/* References */

static void
test_references (Fixture *f, gconstpointer data)
{
  static const MergeCase good[] = {
    { "lr: 0.1", "copy: ${lr}", "{lr: 0.1, copy: 0.1}" },
    { "m: {a: [1, {b: x}]}", "c: ${m}\nd: ${m.a.1.b}\ne: ${m.a.-1}",
      "{m: {a: [1, {b: x}]}, c: {a: [1, {b: x}]}, d: x, e: {b: x}}" },
    { "n: 3\nt: true\nz: null\nf: 1e-4", "s: \"n=${n} t=${t} z=${z} f=${f}.\"",
      "{n: 3, t: true, z: null, f: 1e-4, s: \"n=3 t=true z=null f=0.0001.\"}" },
    { "lr: 1\ncopy: ${lr}", "lr: 2", "{lr: 2, copy: 2}" }, /* to the merged tree */
    { "lr: 1", "lr: 2\nold: ${_base_.lr}", "{lr: 2, old: 1}" },
    { "a: {x: [1, 2]}", "a: {x: [3]}\nold: ${_base_.a.x}", "{a: {x: [3]}, old: [1, 2]}" },
    { "n: 5", "s: x${_base_.n}", "{n: 5, s: x5}" },
    { "a: ${b}\nb: ${c}\nc: [1]", "", "{a: [1], b: [1], c: [1]}" },
    { "a: ${b.x}\nb: ${c}\nc: {x: 7}", "", "{a: 7, b: {x: 7}, c: {x: 7}}" }, /* through a reference */
    { "a: {b: \"${a.c}\", c: 1}", "", "a: {b: 1, c: 1}" },
    { "a: $${b}\nc: x$$${d\ne: $5", "", "{a: \"$${b}\", c: \"x$$${d\", e: $5}" },
    { "a: [\"${a.1}\", 2]", "", "a: [2, 2]" },
    { "f: ${file.name}", "g: ${file.stem}", "{f: base.yaml, g: child}" },
  };
  static const BadMerge bad[] = {
    { "a: 1", "b: ${nope}", RN_CONFIG_ERROR_KEY, "child.yaml:2:1: b: ", "${nope}: there is no such value" },
    { "model: {depth: 1}", "b: ${model.dept}", RN_CONFIG_ERROR_KEY, "child.yaml:2:1: b: ", "\"depth\"" },
    { "a: 1", "b: ${_base_.x}", RN_CONFIG_ERROR_KEY, "child.yaml:2:1: b: ", "the bases have no such value" },
    { "a: 1", "x: ${y}\ny: ${x}", RN_CONFIG_ERROR_VALUE, "child.yaml:", "in a circle" },
    { "a: 1", "x: {y: \"${x}\"}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "in a circle" },
    { "a: 1", "x: 1${x}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "in a circle" },
    { "a: [1]", "x: y${a}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "a list and cannot stand" },
    { "a: [1]", "x: \"${a\"", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "is written ${name}" },
    { "a: [1]", "x: \"${}\"", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "is written ${name}" },
    { "a: [1]", "x: \"${a.${b}}\"", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "is written ${name}" },
    { "a: 1", "x: ${file.size}", RN_CONFIG_ERROR_VALUE, "child.yaml:2:1: x: ", "file.stem" },
  };

  check_merges (f, good, G_N_ELEMENTS (good), bad, G_N_ELEMENTS (bad));
}

static void
test_reference_folder (Fixture *f, gconstpointer data)
{
  g_autofree char *inner = fixture_path (f, "in${side}");
  g_autofree char *pictures = g_build_filename (inner, "pictures", NULL);

  fixture_write (f, "in${side}/base.yaml", "path: ${file.dir}/pictures\n");
  fixture_write (f, "child.yaml", "_base_: in$${side}/base.yaml\nwhere: ${file.dir}\n");

  /* `_base_` is no place for references: the name is taken as it stands. */
  fixture_fails (f, "child.yaml", RN_CONFIG_ERROR_VALUE, "child.yaml:1:1: _base_: ", "No such file");
  fixture_write (f, "child.yaml", "_base_: in${side}/base.yaml\nwhere: ${file.dir}\n");

  g_autoptr (RnNode) root = fixture_load (f, "child.yaml", NULL);
  g_assert_cmpstr (rn_node_as_string (rn_node_get (root, "path")), ==, pictures);
  g_assert_cmpstr (rn_node_as_string (rn_node_get (root, "where")), ==, f->folder);

  /* The result is final: it may look like a reference and still survives a dump. */
  g_autofree char *text = rn_config_dump (root, FALSE);
  g_autoptr (RnNode) again = rn_config_load_text (text, "dump.yaml", NULL, NULL);
  g_assert_true (rn_node_equal (root, again));
}

static void
test_environment (void)
{
  g_setenv ("RN_TEST_TEXT", "${lr} x", TRUE);
  g_setenv ("RN_TEST_NUMBER", "1e-3", TRUE);
  g_setenv ("RN_TEST_EMPTY", "", TRUE);
  g_unsetenv ("RN_TEST_UNSET");

  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (
      "a: ${env:RN_TEST_TEXT}\nb: ${env:RN_TEST_NUMBER}\nc: ${env:RN_TEST_UNSET:7}\n"
      "d: ${env:RN_TEST_UNSET:a:b}\ne: ${env:RN_TEST_EMPTY}\nf: <${env:RN_TEST_UNSET:}>\n",
      "x.yaml", NULL, &error);
  g_assert_no_error (error);
  assert_tree (root, "{a: \"$${lr} x\", b: 0.001, c: 7, d: \"a:b\", e: \"\", f: <>}");

  assert_text_fails ("a: ${env:RN_TEST_UNSET}\n", NULL, RN_CONFIG_ERROR_VALUE,
                     "x.yaml:1:1: a: ", "is not set");
  g_setenv ("RN_TEST_TEXT", "\xff", TRUE);
  assert_text_fails ("a: ${env:RN_TEST_TEXT}\n", NULL, RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: a: ", "UTF-8");
}

static void
test_reference_limits (void)
{
  g_autoptr (GString) doubling = g_string_new ("t0: xxxxxxxxxxxxxxxx\nl0: [1, 1]\n");
  g_autoptr (GString) lists = g_string_new ("l0: [1, 1]\n");
  g_autoptr (GString) chain = g_string_new ("c0: 1\n");
  g_autoptr (GString) deep = g_string_new ("d0: [1]\n");
  g_autoptr (GString) many = g_string_new ("a: 1\nb: ${a}\nmany: \"");

  for (int i = 1; i < 30; i++)
    {
      g_string_append_printf (doubling, "t%d: \"${t%d}${t%d}\"\n", i, i - 1, i - 1);
      g_string_append_printf (lists, "l%d: [\"${l%d}\", \"${l%d}\"]\n", i, i - 1, i - 1);
    }
  for (int i = 1; i < 100000; i++)
    g_string_append_printf (chain, "c%d: ${c%d}\n", i, i + 1);
  for (int i = 1; i < 150; i++)
    g_string_append_printf (deep, "d%d: [\"${d%d}\"]\n", i, i - 1);
  for (int i = 0; i < 3000; i++) /* breadth is no depth */
    g_string_append (many, "${b} ");
  g_string_append (many, "\"\n");

  assert_text_fails (doubling->str, NULL, RN_CONFIG_ERROR_VALUE, "x.yaml:", "more than 65536 bytes");
  assert_text_fails (lists->str, NULL, RN_CONFIG_ERROR_VALUE, "x.yaml:", "more than 1000000 values");
  assert_text_fails (chain->str, NULL, RN_CONFIG_ERROR_VALUE, "x.yaml:", "too many times");
  assert_text_fails (deep->str, NULL, RN_CONFIG_ERROR_VALUE, "x.yaml:", "100 levels");

  g_autoptr (RnNode) root = rn_config_load_text (many->str, "x.yaml", NULL, NULL);
  g_assert_cmpuint (strlen (rn_node_as_string (rn_node_get (root, "many"))), ==, 6000);
}

/* Overrides */

#define SET(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
test_overrides (void)
{
  static const char text[] =
      "model: {depth: 50, out: [0, 1, 2], neck: null}\nlr: 1\nhooks: [{type: A}]\ncopy: ${lr}\n";
  const struct
  {
    const char *const *sets;
    const char *dotted, *result; /* of the document "v: VALUE" */
  } cases[] = {
    { SET ("lr=1e-4"), "lr", "1e-4" },
    { SET ("lr=2"), "copy", "2" },
    { SET ("lr=2", "lr=3"), "lr", "3" }, /* later wins */
    { SET ("model.depth=text with spaces"), "model.depth", "text with spaces" },
    { SET ("model.depth='1'"), "model.depth", "'1'" },
    { SET ("model.depth=a=b"), "model.depth", "a=b" },
    { SET ("model.depth="), "model.depth", "null" },
    { SET ("model={x: [1, {y: 2}]}"), "model", "{x: [1, {y: 2}]}" }, /* replaces */
    { SET ("model.out=[1, {x: 2}]"), "model.out", "[1, {x: 2}]" },
    { SET ("model.out.0=3"), "model.out", "[3, 1, 2]" },
    { SET ("model.out.-1=7"), "model.out", "[0, 1, 7]" },
    { SET ("hooks.0.n=1"), "hooks", "[{type: A, n: 1}]" },
    { SET ("model.out+=3"), "model.out", "[0, 1, 2, 3]" },
    { SET ("model.out+=[3, 4]"), "model.out", "[0, 1, 2, 3, 4]" },
    { SET ("model.out+=[[3]]"), "model.out", "[0, 1, 2, [3]]" },
    { SET ("hooks+={type: B}"), "hooks", "[{type: A}, {type: B}]" },
    { SET ("fresh+=1"), "fresh", "[1]" },
    { SET ("~model.neck"), "model", "{depth: 50, out: [0, 1, 2]}" },
    { SET ("~model.out.1"), "model.out", "[0, 2]" },
    { SET ("+model.new.inner=1"), "model.new", "{inner: 1}" },
    { SET ("model.new=1"), "model.new", "1" },
    { SET ("model.neck.num=5"), "model.neck", "{num: 5}" }, /* null becomes a map */
    { SET ("a.b={_delete_: true, x: 1}"), "a.b", "{x: 1}" },
    { SET ("a=${model.out.1}"), "a", "1" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *wanted = g_strdup_printf ("v: %s\n", cases[i].result);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = rn_config_load_text (text, "x.yaml", cases[i].sets, &error);
      g_autoptr (RnNode) expected = rn_config_load_text (wanted, "wanted", NULL, NULL);
      g_assert_no_error (error);
      g_test_message ("%s", cases[i].sets[0]);
      g_assert_true (rn_node_equal (rn_node_path (root, cases[i].dotted), rn_node_get (expected, "v")));
    }

  g_autoptr (RnNode) root = rn_config_load_text (text, "x.yaml", SET ("lr=5"), NULL);
  g_assert_cmpstr (rn_node_origin (rn_node_get (root, "lr")), ==, "--set lr");
}

static void
test_overrides_refused (void)
{
  static const char text[] = "model: {depth: 50, out: [0, 1]}\n";
  const struct
  {
    const char *set;
    int code;
    const char *part;
  } cases[] = {
    { "lr", RN_CONFIG_ERROR_USAGE, "is not key=value" },
    { "", RN_CONFIG_ERROR_USAGE, "is not key=value" },
    { "~a=1", RN_CONFIG_ERROR_USAGE, "is not key=value" },
    { "=1", RN_CONFIG_ERROR_USAGE, "a key is missing" },
    { "~", RN_CONFIG_ERROR_USAGE, "a key is missing" },
    { "a..b=1", RN_CONFIG_ERROR_USAGE, "\"a..b\" is not a key" },
    { "a._delete_=1", RN_CONFIG_ERROR_USAGE, "is not a key" },
    { "_base_=x", RN_CONFIG_ERROR_USAGE, "is not a key" },
    { "\xff=x", RN_CONFIG_ERROR_USAGE, "is not a key" },
    { "model.out.2=1", RN_CONFIG_ERROR_KEY, "model.out is a list and has no \"2\"" },
    { "model.out.x=1", RN_CONFIG_ERROR_KEY, "has no \"x\"" },
    { "model.depth.x=1", RN_CONFIG_ERROR_KEY, "model.depth is an integer" },
    { "model.depth+=1", RN_CONFIG_ERROR_VALUE, "model.depth is an integer, not a list" },
    { "~model.dept", RN_CONFIG_ERROR_KEY, "did you mean \"depth\"?" },
    { "lr=[1", RN_CONFIG_ERROR_SYNTAX, "--set lr: " },
    { "lr=x: 1", RN_CONFIG_ERROR_SYNTAX, "write maps as {a: 1}" },
    { "lr=- 1", RN_CONFIG_ERROR_SYNTAX, "write maps as {a: 1}" },
    { "lr=\xff", RN_CONFIG_ERROR_SYNTAX, "UTF-8" },
    { "lr={a: 1, a: 2}", RN_CONFIG_ERROR_KEY, "duplicate key" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_text_fails (text, SET (cases[i].set), cases[i].code, "", cases[i].part);

  g_autoptr (GString) deep = g_string_new ("a");
  for (int i = 0; i < 100000; i++)
    g_string_append (deep, ".a");
  g_string_append (deep, "=1");
  assert_text_fails (text, SET (deep->str), RN_CONFIG_ERROR_USAGE, "--set: ", "is not a key");
}

static void
test_set (void)
{
  g_autoptr (RnNode) root = rn_config_load_text ("a: {b: 1}\n", "x.yaml", NULL, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_config_set (root, "work_dir", rn_node_new_string ("1.0", "--work-dir"), &error));
  g_assert_true (rn_config_set (root, "a.b", rn_node_new_int (3, "--seed"), &error));
  g_assert_no_error (error);
  assert_tree (root, "{a: {b: 3}, work_dir: '1.0'}");
  g_assert_cmpstr (rn_node_origin (rn_node_path (root, "a.b")), ==, "--seed");

  g_assert_false (rn_config_set (root, "a.b.c", rn_node_new_null ("--x"), &error));
  assert_error (error, RN_CONFIG_ERROR_KEY, "--x: a.b.c: ", "an integer");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD_FILE_TEST ("/load/bases", test_bases);
  ADD_FILE_TEST ("/load/base-conflict", test_base_conflict);
  ADD_FILE_TEST ("/load/base-refused", test_base_refused);
  ADD_FILE_TEST ("/load/base-limits", test_base_limits);
  ADD_FILE_TEST ("/load/merge", test_merge);
  ADD_FILE_TEST ("/load/delete", test_delete);
  ADD_FILE_TEST ("/load/lists", test_lists);
  ADD_FILE_TEST ("/load/references", test_references);
  ADD_FILE_TEST ("/load/reference-folder", test_reference_folder);
  g_test_add_func ("/load/environment", test_environment);
  g_test_add_func ("/load/reference-limits", test_reference_limits);
  g_test_add_func ("/load/overrides", test_overrides);
  g_test_add_func ("/load/overrides-refused", test_overrides_refused);
  g_test_add_func ("/load/set", test_set);
  return g_test_run ();
}
