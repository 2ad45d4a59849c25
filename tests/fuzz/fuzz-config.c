/* Configurations in YAML, with bases, references and directives; and changes of them from a command line. */
#include "config.h"

#include "tests/fuzz/readers.h"

#include "runner/base/error.h"
#include "runner/config/config.h"

#include <string.h>

static const char everything[] =
    "# a bit of everything\n"
    "defaults: &defaults {lr: 1e-4, steps: [8, 11], on: yes}\n"
    "optimizer:\n"
    "  <<: *defaults\n"
    "  type: SGD\n"
    "  momentum: .9\n"
    "model:\n"
    "  backbone: {type: ResNet, depth: 50, out_indices: [0, 1, 2, 3], norm_eval: true}\n"
    "  neck:\n"
    "    - type: FPN\n"
    "      channels: \"${model.backbone.out_indices}\"\n"
    "    - {_delete_: true, type: 'x', text: \"a\\tb \\u00e9 ${optimizer.lr}\"}\n"
    "data: {root: \"${env:RN_TEST_ROOT:data/}\", list: {_append_: [1, ~]}}\n"
    "folded: >\n"
    "  some words\n"
    "  and more\n"
    "literal: |\n"
    "  kept\n"
    "list: [*defaults, '$${x}']\n";

/* What loads survives a dump. */
static void
check_dump (const RnNode *root, gboolean with_origins)
{
  g_autofree char *text = rn_config_dump (root, with_origins);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) again = rn_config_load_text (text, "dump.yaml", NULL, &error);

  g_assert_no_error (error);
  g_assert_true (rn_node_equal (root, again));
}

static int
fuzz_config (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load (rn_fuzz_file (data, size), NULL, &error);

  if (root != NULL)
    {
      check_dump (root, FALSE);
      check_dump (root, TRUE);
    }
  /* The one message of several lines: a command to copy. */
  if (error != NULL && strstr (error->message, ": this is Python, ") != NULL)
    return 0;
  return rn_fuzz_check (root != NULL, error);
}

static void
add_seeds (GPtrArray *seeds)
{
  rn_fuzz_add_text (seeds, everything);
  rn_fuzz_add_text (seeds, "a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b]\nd: {_append_: [1]}\n"
                           "e: ${c}\nf: ${file.stem}\n? g\n: !!str 5\n");
}

static const RnFuzzToken tokens[] = {
  RN_FUZZ_TOKEN ("${"),
  RN_FUZZ_TOKEN ("}"),
  RN_FUZZ_TOKEN ("${a}"),
  RN_FUZZ_TOKEN ("${file."),
  RN_FUZZ_TOKEN ("${env:"),
  RN_FUZZ_TOKEN ("${_base_."),
  RN_FUZZ_TOKEN ("*defaults"),
  RN_FUZZ_TOKEN ("*a"),
  RN_FUZZ_TOKEN ("&a "),
  RN_FUZZ_TOKEN ("<<: "),
  RN_FUZZ_TOKEN ("- "),
  RN_FUZZ_TOKEN (": "),
  RN_FUZZ_TOKEN ("["),
  RN_FUZZ_TOKEN ("]"),
  RN_FUZZ_TOKEN ("{"),
  RN_FUZZ_TOKEN ("\""),
  RN_FUZZ_TOKEN ("'"),
  RN_FUZZ_TOKEN ("\t"),
  RN_FUZZ_TOKEN ("\n"),
  RN_FUZZ_TOKEN ("\n  "),
  RN_FUZZ_TOKEN ("_merge_: "),
  RN_FUZZ_TOKEN ("_append_: "),
  RN_FUZZ_TOKEN ("_delete_: true"),
  RN_FUZZ_TOKEN ("_base_: "),
  RN_FUZZ_TOKEN ("!!str "),
  RN_FUZZ_TOKEN ("!!map "),
  RN_FUZZ_TOKEN ("1e999"),
  RN_FUZZ_TOKEN (".nan"),
  RN_FUZZ_TOKEN ("-.inf"),
  RN_FUZZ_TOKEN ("0x1F"),
  RN_FUZZ_TOKEN ("---\n"),
  RN_FUZZ_TOKEN ("...\n"),
  RN_FUZZ_TOKEN ("%YAML 1.1\n"),
  RN_FUZZ_TOKEN ("| "),
  RN_FUZZ_TOKEN ("> "),
  RN_FUZZ_TOKEN ("? "),
  RN_FUZZ_TOKEN ("#"),
  RN_FUZZ_TOKEN ("\\x1b"),
  RN_FUZZ_TOKEN ("\\0"),
  RN_FUZZ_TOKEN ("\xef\xbb\xbf"),
  RN_FUZZ_TOKEN ("\xff"),
  { NULL, 0 },
};

const RnFuzzReader rn_fuzz_reader_config = { "config", fuzz_config, add_seeds, tokens };

/* ---- Changes ---- */

/* No rn_fuzz_check: messages repeat the user's own words as they are; the program cleans what it prints. */
static int
fuzz_override (const guint8 *data, gsize size)
{
  g_autofree char *text = g_strndup ((const char *) data, size);
  const char *const overrides[] = { text, NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (everything, "m.yaml", overrides, &error);

  g_assert_true ((root == NULL) == (error != NULL));
  g_assert_true (root != NULL || error->domain == RN_CONFIG_ERROR);
  return root != NULL;
}

static void
add_overrides (GPtrArray *seeds)
{
  rn_fuzz_add_text (seeds, "model.neck.-1.type=[1, {x: 2}]");
  rn_fuzz_add_text (seeds, "data.list+={a: 1e-4}");
  rn_fuzz_add_text (seeds, "+model.new.key=1");
  rn_fuzz_add_text (seeds, "~model.backbone.depth");
}

const RnFuzzReader rn_fuzz_reader_override = { "override", fuzz_override, add_overrides, tokens };
