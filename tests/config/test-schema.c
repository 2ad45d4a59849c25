/* test-schema.c: tables of keys and components. */
#include "config.h"
#include "tests/config/config-fixture.h"
#include "runner/config/schema.h"

#include <math.h>

typedef struct
{
  double max_norm;
  gint64 norm_type;
} Clip;

typedef struct
{
  gboolean nesterov;
  gint64 depth;
  gint64 frozen;
  double lr;
  double gamma;
  char *name;
  int style;
  GArray *stages;
  GArray *ratios;
  char **classes;
  Clip clip;
  gboolean has_clip;
  const RnNode *extra;
} Part;

static const char *const styles[] = { "pytorch", "caffe", "false", NULL };

static const RnKeySpec clip_keys[] = {
  RN_KEY (Clip, max_norm, RN_KEY_FLOAT, NULL, "largest norm", .flags = RN_KEY_REQUIRED, .max = INFINITY),
  RN_KEY (Clip, norm_type, RN_KEY_INT, "2", "order of the norm", .min = 1, .max = 2),
  RN_KEY_END,
};

static const RnKeySpec part_keys[] = {
  RN_KEY (Part, nesterov, RN_KEY_BOOL, "true", "look ahead"),
  RN_KEY (Part, depth, RN_KEY_INT, NULL, "layers", .min = 18, .max = 152, .flags = RN_KEY_REQUIRED),
  RN_KEY (Part, frozen, RN_KEY_INT, "null", "stages", .flags = RN_KEY_NULLABLE),
  RN_KEY (Part, lr, RN_KEY_FLOAT, "1e-2", "learning rate", .min = 0, .max = 10),
  RN_KEY (Part, gamma, RN_KEY_FLOAT, "null", "decay", .flags = RN_KEY_NULLABLE),
  RN_KEY (Part, name, RN_KEY_STRING, "null", "text", .flags = RN_KEY_NULLABLE),
  RN_KEY (Part, style, RN_KEY_ENUM, "caffe", "where the stride is", .names = styles),
  RN_KEY (Part, stages, RN_KEY_INT_LIST, "[0, 1, 2, 3]", "outputs", .min = 0, .max = 3),
  RN_KEY (Part, ratios, RN_KEY_FLOAT_LIST, "0.5", "height over width"),
  RN_KEY (Part, classes, RN_KEY_STRING_LIST, "[a, b]", "names"),
  RN_KEY (Part, clip, RN_KEY_MAP, "null", "gradient clipping", .keys = clip_keys,
          .present = G_STRUCT_OFFSET (Part, has_clip), .flags = RN_KEY_NULLABLE),
  RN_KEY (Part, extra, RN_KEY_NODE, NULL, "anything", .flags = RN_KEY_NULLABLE),
  { .name = "dist_params", .type = RN_KEY_UNUSED, .help = "of other programs" },
  RN_KEY_END,
};

static void
test_defaults (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load_text ("depth: 50\n", "x.yaml", NULL, NULL);
  Part part;

  memset (&part, 0xff, sizeof part); /* the fields need no preparation */
  g_assert_true (rn_keys_parse (part_keys, root, &part, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (part.nesterov);
  g_assert_cmpint (part.depth, ==, 50);
  g_assert_cmpint (part.frozen, ==, RN_NULL_INT);
  g_assert_cmpfloat (part.lr, ==, 0.01);
  g_assert_true (isnan (part.gamma));
  g_assert_null (part.name);
  g_assert_cmpint (part.style, ==, 1);
  g_assert_cmpuint (part.stages->len, ==, 4);
  g_assert_cmpint (g_array_index (part.stages, gint64, 3), ==, 3);
  g_assert_cmpuint (part.ratios->len, ==, 1);
  g_assert_cmpfloat (g_array_index (part.ratios, double, 0), ==, 0.5);
  g_assert_cmpstrv (part.classes, ((const char *[]){ "a", "b", NULL }));
  g_assert_false (part.has_clip);
  g_assert_cmpint (part.clip.norm_type, ==, 2); /* defaults even where the map is left out */
  g_assert_null (part.extra);
  rn_keys_clear (part_keys, &part);
  g_assert_null (part.stages);
  g_assert_cmpint (part.depth, ==, 0);
}

static void
test_values (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (
      "{type: X, nesterov: false, depth: 18, frozen: 1, lr: 1, gamma: .5, name: n, style: false,"
      " stages: 2, ratios: [1, 2.5], classes: c, clip: {max_norm: 35}, extra: [1], other: 5}",
      "x.yaml", NULL, NULL);
  const char *const skip[] = { "other", NULL };
  Part part;

  g_assert_true (rn_keys_parse (part_keys, root, &part, skip, &error));
  g_assert_no_error (error);
  g_assert_false (part.nesterov);
  g_assert_cmpint (part.frozen, ==, 1);
  g_assert_cmpfloat (part.lr, ==, 1); /* an integer is a number */
  g_assert_cmpfloat (part.gamma, ==, 0.5);
  g_assert_cmpstr (part.name, ==, "n");
  g_assert_cmpint (part.style, ==, 2); /* false, by its name */
  g_assert_cmpuint (part.stages->len, ==, 1);
  g_assert_cmpint (g_array_index (part.stages, gint64, 0), ==, 2);
  g_assert_cmpfloat (g_array_index (part.ratios, double, 1), ==, 2.5);
  g_assert_cmpstrv (part.classes, ((const char *[]){ "c", NULL }));
  g_assert_true (part.has_clip);
  g_assert_cmpfloat (part.clip.max_norm, ==, 35);
  g_assert_true (part.extra == rn_node_get (root, "extra"));
  rn_keys_clear (part_keys, &part);
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
    { "depth: 50\ndept: 1", RN_CONFIG_ERROR_KEY,
      "x.yaml:2:1: dept: ", "unknown key; did you mean \"depth\"?" },
    { "depth: 50\nmomentum: 1", RN_CONFIG_ERROR_KEY, "x.yaml:2:1: ", "there are: nesterov, depth, frozen" },
    { "depth: 50\nfro-zen: 1", RN_CONFIG_ERROR_KEY, "x.yaml:2:1: ", "did you mean \"frozen\"?" },
    { "lr: 1", RN_CONFIG_ERROR_KEY, "x.yaml:1:1: ", "the key \"depth\" is missing" },
    { "depth: 17", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: depth: ", "between 18 and 152, not 17" },
    { "depth: 1234567", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: depth: ", "not 1234567" },
    { "depth: 50.0", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: depth: ", "needs an integer, not a number (50.0)" },
    { "depth: fifty", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: depth: ", "not a string (fifty)" },
    { "depth: null", RN_CONFIG_ERROR_VALUE, "x.yaml:1:1: depth: ", "must not be null" },
    { "{depth: 50, lr: .nan}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: lr: ", "not .nan" },
    { "{depth: 50, gamma: .nan}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: gamma: ", "not .nan" },
    { "{depth: 50, lr: '1'}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: lr: ", "needs a number, not a string" },
    { "{depth: 50, nesterov: on}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: nesterov: ", "true or false" },
    { "{depth: 50, style: x}", RN_CONFIG_ERROR_VALUE,
      "x.yaml:1:13: style: ", "\"pytorch\", \"caffe\", \"false\"" },
    { "{depth: 50, style: true}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: style: ", "one of" },
    { "{depth: 50, stages: [1, 4]}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:25: stages.1: ", "between 0 and 3" },
    { "{depth: 50, stages: {a: 1}}", RN_CONFIG_ERROR_VALUE,
      "x.yaml:1:13: stages: ", "an integer, not a map" },
    { "{depth: 50, ratios: [1, x]}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:25: ratios.1: ", "needs a number" },
    { "{depth: 50, classes: [1]}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:23: classes.0: ", "needs a string" },
    { "{depth: 50, name: 5}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: name: ", "needs a string" },
    { "{depth: 50, clip: 5}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:13: clip: ", "needs a map" },
    { "{depth: 50, clip: {}}", RN_CONFIG_ERROR_KEY, "x.yaml:1:13: clip: ", "\"max_norm\" is missing" },
    { "{depth: 50, clip: {max_norm: -1}}", RN_CONFIG_ERROR_VALUE,
      "x.yaml:1:20: clip.max_norm: ", "at least 0" },
    { "{depth: 50, clip: {max_nrom: 1}}", RN_CONFIG_ERROR_KEY,
      "x.yaml:1:20: clip.max_nrom: ", "\"max_norm\"" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = rn_config_load_text (cases[i].text, "x.yaml", NULL, NULL);
      Part part;
      g_assert_false (rn_keys_parse (part_keys, root, &part, NULL, &error));
      assert_error (error, cases[i].code, cases[i].place, cases[i].part);
      g_assert_null (part.classes); /* cleared */
    }

  g_autoptr (GError) error = NULL;
  Part part;
  g_assert_false (rn_keys_parse (part_keys, NULL, &part, NULL, &error));
  assert_error (error, RN_CONFIG_ERROR_KEY, "", "the key \"depth\" is missing");
}

static void
test_unused (void)
{
  g_autoptr (RnNode) root =
      rn_config_load_text ("depth: 50\ndist_params: {backend: nccl}\n", "x.yaml", NULL, NULL);
  Part part;

  g_test_expect_message ("rn-config", G_LOG_LEVEL_MESSAGE,
                         "x.yaml:2:1: dist_params is accepted and not used");
  g_assert_true (rn_keys_parse (part_keys, root, &part, NULL, NULL));
  g_test_assert_expected_messages ();
  rn_keys_clear (part_keys, &part);
}

/* A file may have thousands of keys of its own; looking through all of them for each took minutes. */
static void
test_many_skipped (void)
{
  const int n = 200000;
  g_autoptr (GString) text = g_string_new ("depth: 50\n");
  g_autoptr (GPtrArray) skip = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GError) error = NULL;
  Part part;

  for (int i = 0; i < n; i++)
    {
      g_ptr_array_add (skip, g_strdup_printf ("x_%d", i));
      g_string_append_printf (text, "x_%d: 1\n", i);
    }
  g_ptr_array_add (skip, NULL);
  g_autoptr (RnNode) root = rn_config_load_text (text->str, "x.yaml", NULL, &error);
  g_assert_no_error (error);
  g_assert_true (rn_keys_parse (part_keys, root, &part, (const char *const *) skip->pdata, &error));
  g_assert_no_error (error);
  g_assert_cmpint (part.depth, ==, 50);
  rn_keys_clear (part_keys, &part);
}

static void
test_components (void)
{
  static const RnComponent net = { "Net", "a net", sizeof (Part), part_keys };
  static const RnComponent bare = { "Bare", "no keys", 0, NULL };
  static const struct
  {
    const char *text;
    int code;
    const char *place, *part;
  } cases[] = {
    { "{type: Nett, depth: 50}", RN_CONFIG_ERROR_VALUE,
      "x.yaml:1:2: type: ", "unknown test-net \"Nett\"; did you mean \"Net\"? There are: Bare, Net" },
    { "{depth: 50}", RN_CONFIG_ERROR_KEY,
      "x.yaml:1:1: ", "the key \"type\" is missing; it names a test-net" },
    { "{type: 3}", RN_CONFIG_ERROR_VALUE, "x.yaml:1:2: type: ", "needs a string" },
    { "{type: Bare, depth: 50}", RN_CONFIG_ERROR_KEY,
      "x.yaml:1:14: depth: ", "unknown key; there are: none" },
    { "{type: Net}", RN_CONFIG_ERROR_KEY, "x.yaml:1:1: ", "the key \"depth\" is missing" },
  };
  RnRegistry *registry = rn_registry_family ("test-net");
  const RnComponent *component = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (rn_registry_add (registry, &net, NULL));
  g_assert_true (rn_registry_add (registry, &bare, NULL));

  g_autoptr (RnNode) typed = rn_config_load_text ("{type: Net, depth: 34}", "x.yaml", NULL, NULL);
  Part *part = rn_component_new (registry, typed, NULL, NULL, &component, &error);
  g_assert_no_error (error);
  g_assert_true (component == &net);
  g_assert_cmpint (part->depth, ==, 34);
  rn_component_free (component, part);

  g_autoptr (RnNode) untyped = rn_config_load_text ("{depth: 34}", "x.yaml", NULL, NULL);
  part = rn_component_new (registry, untyped, "Net", NULL, &component, &error);
  g_assert_no_error (error);
  g_assert_cmpint (part->depth, ==, 34);
  rn_component_free (component, part);

  gpointer nothing = rn_component_new (registry, NULL, "Bare", NULL, &component, &error);
  g_assert_nonnull (nothing);
  rn_component_free (component, nothing);

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) failure = NULL;
      g_autoptr (RnNode) root = rn_config_load_text (cases[i].text, "x.yaml", NULL, NULL);
      g_assert_null (rn_component_new (registry, root, NULL, NULL, &component, &failure));
      assert_error (failure, cases[i].code, cases[i].place, cases[i].part);
    }
  g_assert_null (rn_component_new (registry, NULL, NULL, NULL, &component, &error));
  assert_error (error, RN_CONFIG_ERROR_KEY, "", "there is no test-net");
}

static void
test_describe (void)
{
  g_autofree char *text = rn_keys_describe (part_keys);

  g_assert_true (g_str_has_prefix (text, "nesterov                     bool, default true: look ahead\n"
                                         "depth                        int, 18 to 152, required: layers\n"));
  g_assert_nonnull (
      strstr (text, "\nstyle                        enum, pytorch | caffe | false, default caffe: "));
  g_assert_nonnull (
      strstr (text, "\nclip.max_norm                float, at least 0, required: largest norm\n"));
  g_assert_nonnull (strstr (text, "\ngamma                        float, or null, default null: decay\n"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/schema/defaults", test_defaults);
  g_test_add_func ("/schema/values", test_values);
  g_test_add_func ("/schema/refused", test_refused);
  g_test_add_func ("/schema/unused", test_unused);
  g_test_add_func ("/schema/many-skipped", test_many_skipped);
  g_test_add_func ("/schema/components", test_components);
  g_test_add_func ("/schema/describe", test_describe);
  return g_test_run ();
}
