/* Where plugins are found, what is checked before one is taken, and what is said of it. */
#include "config.h"

#include "tests/cli/program.h"
#include "tests/plugins/build.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static char *tmp; /* the current folder */

static void
assert_refused (const Result *result, const char *words)
{
  if (result->code != 2)
    g_error ("exit status %d: %s", result->code, result->err);
  assert_contains (result->err, words);
}

/* ---- Checks ---- */

/* The hook of odd-plugin.c, with RN_ODD. */
static void
test_checks (void)
{
  static const struct
  {
    const char *how, *words;
  } cases[] = {
    { "major", "made for hook ABI 2.0, this program has 1.0" },
    { "minor", "made for hook ABI 1.1, this program has 1.0" },
    { "short", "its descriptor has" },
    { "long", "its descriptor has" },
    { "nameless", "without a valid .name" },
    { "name", "without a valid .name" },
    { "taken", "there is a hook named EvalHook already" },
    { "version", "OddHook: a .version" },
    { "summary", "OddHook has no .summary" },
    { "small", "OddHook: a struct of" },
    { "huge", "OddHook: a struct of 1099511627776 bytes" },
    { "priority", "a priority of 101" },
    { "state", "only one of save_state and load_state" },
    { "outside", "its key \"number\" lies outside" },
    { "head", "its key \"number\" lies outside of the struct, or in its first member" },
    { "align", "its key \"number\" lies outside" },
    { "type", "its key \"number\" has a type" },
    { "reserved", "its key \"priority\" is a name that every hook has" },
    { "help", "its key \"number\" has no help" },
    { "enum", "its key \"number\" has no list of names" },
    { "map", "its key \"inner\" lies outside" },
    { "present", "its key \"number\" has .present outside" },
    { "cycle", "nested more than" },
    { "endless", "two hooks named OddHook" },
    { "twice", "two hooks named OddHook" },
    { "second", "without a valid .name" },
    { "null", "gives no list" },
  };
  g_autofree char *source = g_test_build_filename (G_TEST_DIST, "tests", "plugins", "odd-plugin.c", NULL);

  build_plugin (source, "odd.so", "");
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_setenv ("RN_ODD", cases[i].how, TRUE);
      g_test_message ("%s", cases[i].how);
      g_auto (Result) result = run_program ("hooks", "--plugin", "./odd.so", NULL);
      assert_refused (&result, "odd.so: ");
      assert_contains (result.err, cases[i].words);
    }
  g_setenv ("RN_ODD", "good", TRUE);
  g_auto (Result) good = run_program ("hooks", "OddHook", "--plugin", "./odd.so", NULL);
  g_assert_cmpint (good.code, ==, 0);
  assert_contains (good.out, "OddHook (hook): for tests\nplugin: ");
  assert_contains (good.out,
                   "odd.so, version 2.5, licence not said, hook ABI 1.0\nstages: none; priority 50");
  assert_contains (good.err, "odd.so: OddHook 2.5");
}

/* What is no plugin at all. */
static void
test_files (void)
{
  g_autofree char *library = build_text (".", "library",
                                         "int unused_answer (void);\n"
                                         "int unused_answer (void) { return 42; }\n");
  g_autofree char *newer = build_text (".", "newer",
                                       "void *rn_plugin_query_2 (void);\n"
                                       "void *rn_plugin_query_2 (void) { return 0; }\n");
  /* Found at once, not when the run comes to it. */
  g_autofree char *missing = build_text (".", "missing",
                                         "#include <runner/hook.h>\n"
                                         "extern void nobody_has_this (void);\n"
                                         "RN_CLOSURE_DEFINE (call) (RnRunner *runner, GError **error)\n"
                                         "{ nobody_has_this (); return TRUE; }\n"
                                         "RN_PLUGIN_HOOKS (NULL);\n");
  write_text (".", "text.so", "no shared object\n");
  const struct
  {
    const char *path, *words;
  } cases[] = {
    { library, "no plugin: it has no rn_plugin_query_1" },
    { newer, "made for hook ABI 2, this program has 1.0" },
    { missing, "undefined symbol: nobody_has_this" },
    { "text.so", "text.so" },
    { "./absent.so", "no file ./absent.so, from .\n" },
    { "./absent", "no file ./absent.so, from .\n" },
    { "./raw", "no file ./raw.so, from .; is it built? make -C ./raw\n" },
    { "./raw/raw.so", "no file ./raw/raw.so, from .; is it built? make -C ./raw\n" },
    { "./raw/other.so", "no file ./raw/other.so, from .\n" },
    { "./built", "no file ./built.so, from .; what works: ./built/odd.so\n" },
  };

  g_mkdir ("raw", 0777);
  write_text ("raw", "Makefile", "raw.so: raw.c\n");
  g_mkdir ("built", 0777);
  write_text ("built", "odd.so", "");
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (Result) result = run_program ("hooks", "--plugin", cases[i].path, NULL);
      assert_refused (&result, cases[i].words);
    }
}

/* ---- The search ---- */

#define GREETER                                                                         \
  "#include <runner/hook.h>\n"                                                          \
  "typedef struct { RnHook hook; gint64 every; } Greeter;\n"                            \
  "static const RnKeySpec keys[] = {\n"                                                 \
  "  RN_KEY (Greeter, every, RN_KEY_INT, \"7\", \"iterations\", .min = 1, .max = 9),\n" \
  "  RN_KEY_END };\n"

/* The folder whose plugin was loaded is @place. */
static void
assert_found (const char *place, const char *option)
{
  g_autofree char *words = g_strdup_printf ("/%s: GreeterHook 1\n", place);
  g_auto (Result) result = option != NULL
                               ? run_program ("config", "conf/mine.yaml", "--plugin-path", option, NULL)
                               : run_program ("config", "conf/mine.yaml", NULL);
  if (result.code != 0)
    g_error ("%s", result.err);
  assert_contains (result.err, words);
}

static void
copy_so (const char *from, const char *to)
{
  int code;
  g_autofree char *out = run_shell (&code, "mkdir -p $(dirname '%s') && cp '%s' '%s'", to, from, to);
  g_assert_cmpint (code, ==, 0);
}

static void
test_search (void)
{
  g_autofree char *so = build_text (".", "greeter",
                                    GREETER "RN_HOOK_DEFINE (greeter, Greeter, .name = \"GreeterHook\", "
                                            ".version = \"1\", .summary = \"s\", .keys = keys);\n");

  g_mkdir ("conf", 0777);
  write_text ("conf", "mine.yaml", "plugins: [greeter]\ncustom_hooks: [{type: GreeterHook}]\n");
  /* The current folder is not searched, but said. */
  g_auto (Result) result = run_program ("config", "conf/mine.yaml", NULL);
  assert_refused (&result, "conf/mine.yaml:1:11: plugins.0: no plugin \"greeter\" in conf, ");
  assert_contains (result.err, "what works: the path ./greeter.so, or --plugin-path .");

  copy_so (so, "env/greeter.so");
  g_setenv ("RN_PLUGIN_PATH", "nowhere:env", TRUE);
  assert_found ("env/greeter.so", NULL);
  copy_so (so, "opt/greeter/greeter.so"); /* as new-hook lays it out */
  assert_found ("opt/greeter/greeter.so", "nowhere:opt");
  copy_so (so, "conf/greeter.so");
  assert_found ("conf/greeter.so", "opt");
  g_unsetenv ("RN_PLUGIN_PATH");

  /* Paths start beside the file, then here; twice is once. */
  write_text ("conf", "mine.yaml", "plugins: [./greeter, greeter.so, ../conf/greeter.so]\n");
  assert_found ("conf/greeter.so", NULL);
  write_text ("conf", "mine.yaml", "plugins: env/greeter.so\n");
  assert_found ("env/greeter.so", NULL);
  /* A second file with the same hook. */
  write_text ("conf", "mine.yaml", "plugins: [env/greeter.so, opt/greeter]\n");
  g_auto (Result) twice = run_program ("config", "conf/mine.yaml", NULL);
  assert_refused (&twice, "opt/greeter/greeter.so: there is a hook named GreeterHook already");
}

/* Keys are checked by the plugin's own table, and names have neighbours. */
static void
test_config (void)
{
  static const struct
  {
    const char *text, *words;
  } cases[] = {
    { "plugins: [./greeter.so]\ncustom_hooks: [{type: GreeterHook, evry: 3}]\n",
      "mine.yaml:2:36: custom_hooks.0.evry: unknown key; did you mean \"every\"?" },
    { "plugins: [./greeter.so]\ncustom_hooks: [{type: GreeterHook, every: 30}]\n",
      "mine.yaml:2:36: custom_hooks.0.every: must be between 1 and 9, not 30" },
    { "plugins: [./greeter.so]\ncustom_hooks: [{type: GreterHook}]\n", "did you mean \"GreeterHook\"" },
    { "plugins: [GreeterHook]\n", "goes into custom_hooks" },
    { "plugins: [3]\n", "must be the name of a plugin" },
    { "plugins: [\"\"]\n", "the name of a plugin is empty" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      write_text (".", "mine.yaml", cases[i].text);
      g_auto (Result) result = run_program ("config", "mine.yaml", NULL);
      assert_refused (&result, cases[i].words);
    }
  /* The name of a built-in hook is no file. */
  write_text (".", "mine.yaml", "plugins: [EvalHook]\n");
  g_auto (Result) builtin = run_program ("config", "mine.yaml", NULL);
  g_assert_cmpint (builtin.code, ==, 0);

  write_text (".", "mine.yaml", "plugins: [./greeter.so]\n");
  g_auto (Result) explained = run_program ("hooks", "GreeterHook", "--config", "mine.yaml", NULL);
  assert_contains (explained.out, "every                        int, 1 to 9, default 7: iterations\n");
  g_auto (Result) file = run_program ("hooks", "greeter.so", NULL);
  g_assert_cmpstr (file.out, ==, explained.out);
}

/* ---- Several hooks, and C++ ---- */

#define TWO                                                                                      \
  GREETER "RN_HOOK_DESC (a, Greeter, .name = \"AHook\", .summary = \"first\", .priority = 30,\n" \
          "  .keys = keys);\n"                                                                   \
          "RN_HOOK_DESC (b, Greeter, .name = \"BHook\", .summary = \"second\", .keys = keys);\n" \
          "RN_PLUGIN_HOOKS (&rn_hook_desc_a, &rn_hook_desc_b);\n"

static void
test_several (void)
{
  g_autofree char *so = build_text (".", "two", TWO);
  g_auto (Result) result = run_program ("hooks", so, NULL);

  assert_contains (result.err, "two.so: AHook, BHook\n");
  assert_contains (result.out, "AHook (hook): first\n");
  assert_contains (result.out, "stages: none; priority 30\n");
  assert_contains (result.out, "BHook (hook): second\n");
}

static void
test_cxx (void)
{
  int code;
  g_autofree char *version = run_shell (&code, "c++ --version");
  if (code != 0)
    {
      g_test_skip ("no C++ compiler");
      return;
    }
  write_text (".", "cxx.cc", TWO "RN_CLOSURE_DEFINE (hello) (RnRunner *, GError **) { return TRUE; }\n");
  g_autofree char *out = run_shell (
      &code,
      "c++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Werror -fPIC -shared -o cxx.so cxx.cc "
      "$(pkg-config --cflags --libs runner-1)");
  if (code != 0)
    g_error ("%s", out);
  g_auto (Result) result = run_program ("hooks", "cxx.so", NULL);
  assert_contains (result.err, "cxx.so: AHook, BHook\n");
}

/* ---- Built-in hooks are plugins too ---- */

/* Is it one hook, in one file? */
static gboolean
stands_alone (const char *text)
{
  const char *define = strstr (text, "\nRN_HOOK_DEFINE (");
  return define != NULL && strstr (define + 1, "\nRN_HOOK_DEFINE (") == NULL
         && strstr (text, "#include \"hooks/") == NULL;
}

/* Only the headers that are installed, and an empty config.h, are in its reach. Its name must be new. */
static char *
as_plugin (const char *text)
{
  static const char key[] = ".name = \"";
  const char *name = strstr (strstr (text, "\nRN_HOOK_DEFINE ("), key);

  g_assert_nonnull (name);
  g_autofree char *before = g_strndup (text, (gsize) (name - text) + strlen (key));
  return g_strconcat (before, "My", name + strlen (key), NULL);
}

static void
test_builtin (void)
{
  g_autofree char *folder = g_test_build_filename (G_TEST_DIST, "hooks", NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const char *name;
  guint n_all = 0, n_public = 0;

  g_mkdir ("builtin", 0777);
  write_text ("builtin", "config.h", "");
  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree char *path = g_build_filename (folder, name, NULL), *text = NULL;
      if (!g_str_has_suffix (name, ".c"))
        continue;
      g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
      if (!stands_alone (text))
        continue;
      g_autofree char *stem = g_strndup (name, strlen (name) - 2), *source = as_plugin (text);
      g_autofree char *so = build_text ("builtin", stem, source);
      g_auto (Result) result = run_program ("hooks", so, NULL);
      g_test_message ("%s", name);
      if (result.code != 0)
        g_error ("%s: %s", name, result.err);
      g_assert_true (g_str_has_prefix (result.out, "My"));
      n_all++;
      n_public += strstr (text, "<runner/engine.h>") == NULL;
    }
  g_assert_cmpuint (n_all, >=, 4);
  g_assert_cmpuint (n_public, >=, 2);
}

/* ---- Documentation ---- */

/* Whole files in docs/hooks.md compile, and load. */
static void
test_documentation (void)
{
  static const char start[] = "```c\n#include <runner/hook.h>", *const names[] = { "CounterHook",
                                                                                   "functions" };
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "docs", "hooks.md", NULL), *text = NULL;
  const char *block;
  guint n = 0;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  for (block = strstr (text, start); block != NULL; block = strstr (block + 1, start))
    {
      g_assert_cmpuint (n, <, G_N_ELEMENTS (names));
      const char *code = strchr (block, '\n') + 1;
      g_autofree char *source = g_strndup (code, (gsize) (strstr (code, "```") - code)),
                      *so = build_text (".", "documented", source);
      g_auto (Result) result = run_program ("hooks", so, NULL);
      g_assert_cmpint (result.code, ==, 0);
      assert_contains (result.err, names[n++]);
    }
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (names));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  build_init ();
  tmp = g_dir_make_tmp ("rn-plugins-XXXXXX", NULL);
  g_assert_cmpint (chdir (tmp), ==, 0);
  g_test_add_func ("/plugins/checks", test_checks);
  g_test_add_func ("/plugins/files", test_files);
  g_test_add_func ("/plugins/search", test_search);
  g_test_add_func ("/plugins/config", test_config);
  g_test_add_func ("/plugins/several", test_several);
  g_test_add_func ("/plugins/cxx", test_cxx);
  g_test_add_func ("/plugins/builtin", test_builtin);
  g_test_add_func ("/plugins/documentation", test_documentation);
  int status = g_test_run ();
  g_assert_cmpint (chdir ("/"), ==, 0);
  remove_tree (tmp);
  g_free (tmp);
  return status;
}
