/* test-mutation.c: a thousand damaged configurations. None may crash; what loads must survive a dump. */
#include "config.h"
#include "tests/config/config-fixture.h"
#include "runner/base/rng.h"

#define N_MUTATIONS 1000

static const char seed_text[] =
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

/* Bytes that mean something, so that damage gets past the scanner more often than noise would. */
static const char *const tokens[] = { "${",    "}",    "*defaults", "&a ",      "<<: ",   "- ",
                                      ": ",    "[",    "]",         "{",        "\"",     "'",
                                      "\t",    "\n",   "_merge_: ", "_base_: ", "!!str ", "1e999",
                                      "---\n", "\xff", "| ",        "? ",       "#",      "%" };

static void
mutate (RnRng *rng, GString *text)
{
  guint n = 1 + (guint) rn_rng_below (rng, 2);

  for (guint i = 0; i < n && text->len > 0; i++)
    {
      gsize at = rn_rng_below (rng, text->len);
      gsize length = 1 + rn_rng_below (rng, 12);

      length = MIN (length, text->len - at);
      switch (rn_rng_below (rng, 5))
        {
        case 0:
          text->str[at] = (char) (text->str[at] ^ (1 << rn_rng_below (rng, 8)));
          break;
        case 1:
          g_string_erase (text, (gssize) at, (gssize) length);
          break;
        case 2:
          {
            g_autofree char *piece = g_strndup (text->str + at, length);
            g_string_insert (text, (gssize) rn_rng_below (rng, text->len), piece);
            break;
          }
        case 3:
          g_string_truncate (text, at);
          break;
        default:
          g_string_insert (text, (gssize) at, tokens[rn_rng_below (rng, G_N_ELEMENTS (tokens))]);
          break;
        }
    }
}

static void
test_files (void)
{
  int n_loaded = 0;

  for (guint32 i = 0; i < N_MUTATIONS; i++)
    {
      g_autoptr (GString) text = g_string_new (seed_text);
      g_autoptr (GError) error = NULL;
      RnRng rng;

      rn_rng_init (&rng, 1, RN_STREAM_SYNTH, i, 0);
      mutate (&rng, text);
      g_autoptr (RnNode) root = rn_config_load_text (text->str, "/nonexistent/m.yaml", NULL, &error);
      if (!root)
        {
          g_assert_nonnull (error);
          g_assert_true (error->domain == RN_CONFIG_ERROR);
          g_assert_true (g_str_has_prefix (error->message, "/nonexistent/m.yaml"));
          continue;
        }
      g_assert_no_error (error);

      g_autofree char *dump = rn_config_dump (root, i % 2);
      g_autoptr (RnNode) again = rn_config_load_text (dump, "dump.yaml", NULL, &error);
      g_assert_no_error (error);
      g_assert_true (rn_node_equal (root, again));
      n_loaded++;
    }
  g_test_message ("%d of %d loaded", n_loaded, N_MUTATIONS);
  g_assert_cmpint (n_loaded, >, N_MUTATIONS / 10); /* or dumps would not be tested */
  g_assert_cmpint (n_loaded, <, N_MUTATIONS * 9 / 10);
}

static void
test_overrides (void)
{
  static const char *const seeds[] = { "model.neck.-1.type=[1, {x: 2}]", "data.list+={a: 1e-4}",
                                       "~model.backbone.depth" };

  for (guint32 i = 0; i < N_MUTATIONS; i++)
    {
      g_autoptr (GString) text = g_string_new (seeds[i % G_N_ELEMENTS (seeds)]);
      g_autoptr (GError) error = NULL;
      RnRng rng;

      rn_rng_init (&rng, 2, RN_STREAM_SYNTH, i, 0);
      mutate (&rng, text);
      const char *const overrides[] = { text->str, NULL };
      g_autoptr (RnNode) root = rn_config_load_text (seed_text, "m.yaml", overrides, &error);
      g_assert_true ((root == NULL) == (error != NULL));
      g_assert_true (root || error->domain == RN_CONFIG_ERROR);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_unsetenv ("RN_TEST_ROOT");
  g_test_add_func ("/mutation/files", test_files);
  g_test_add_func ("/mutation/overrides", test_overrides);
  return g_test_run ();
}
