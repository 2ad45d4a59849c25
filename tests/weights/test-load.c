/* Weights into parameters: which match, what the others come to, how elements are converted, and what is
 * said. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/safetensors.h"
#include "runner/weights/load.h"
#include "tests/cli/program.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define MAX_BYTES 4096

/* A tensor of a file; without @bytes its elements are F32: 1, 2, 3, ... */
typedef struct
{
  const char *name, *type;
  gsize element_bytes;
  int rank;
  int64_t dims[4];
  const void *bytes;
} Tensor;

#define F32(name, ...)                                                                     \
  {                                                                                        \
    name, "F32", 4, (int) (sizeof ((int64_t[]){ __VA_ARGS__ }) / 8), { __VA_ARGS__ }, NULL \
  }

typedef struct
{
  char *dir, *path;
  RnDevice *device;
  RnParamSet *params;
} Fixture;

static void
intern (RnParamSet *params, const char *name, RnParamKind kind, int rank, int64_t a, int64_t b)
{
  const RnTensorDesc desc = { RN_F32, rank, { a, b, 1, 1 }, 1 };
  rn_param_set_intern (params, name, kind, &desc, TRUE, (RnInit){ .kind = RN_INIT_CONSTANT, .a = 7 });
}

/* Two backbone tensors of a detector, its predictors for two anchors and two classes; all are 7 at first. */
static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  f->dir = g_dir_make_tmp ("runner-load-XXXXXX", &error);
  g_assert_no_error (error);
  f->path = g_build_filename (f->dir, "a.safetensors", NULL);
  f->device = rn_device_new_cpu (1, &error);
  g_assert_no_error (error);
  f->params = rn_param_set_new ();
  intern (f->params, "backbone.conv1.weight", RN_PARAM_WEIGHT, 4, 2, 3);
  intern (f->params, "backbone.bn1.running_mean", RN_PARAM_BUFFER, 1, 2, 1);
  intern (f->params, "bbox_head.retina_cls.weight", RN_PARAM_WEIGHT, 4, 4, 2);
  intern (f->params, "bbox_head.retina_cls.bias", RN_PARAM_WEIGHT, 1, 4, 1);
  intern (f->params, "bbox_head.retina_reg.bias", RN_PARAM_WEIGHT, 1, 8, 1);
  g_assert_true (rn_param_set_allocate (f->params, f->device, FALSE, FALSE, &error));
  g_assert_true (rn_param_set_init (f->params, 0, &error));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  rn_param_set_free (f->params);
  rn_device_free (f->device);
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->path);
}

static gboolean
read_bytes (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const guint8 *) source + offset, size);
  return TRUE;
}

/* Writes @tensors, up to one without a name, and opens the file. */
static RnWeights *
make_file (const Fixture *f, const Tensor *tensors)
{
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  g_autoptr (GError) error = NULL;

  for (; tensors->name != NULL; tensors++)
    {
      guint8 *bytes = g_malloc0 (MAX_BYTES);
      gsize n = 1;
      for (int i = 0; i < tensors->rank; i++)
        n *= (gsize) tensors->dims[i];
      g_assert_cmpuint (n * tensors->element_bytes, <=, MAX_BYTES);
      if (tensors->bytes != NULL)
        memcpy (bytes, tensors->bytes, n * tensors->element_bytes);
      for (gsize i = 0; tensors->bytes == NULL && i < n; i++)
        {
          float value = (float) (i + 1);
          memcpy (bytes + i * sizeof value, &value, sizeof value);
        }
      rn_safetensors_writer_add_typed (writer, tensors->name, tensors->type, tensors->element_bytes,
                                       tensors->rank, tensors->dims, read_bytes, bytes, g_free);
    }
  g_assert_true (rn_safetensors_writer_save (writer, f->path, &error));
  RnWeights *weights = rn_weights_open (f->path, &error);
  g_assert_no_error (error);
  return weights;
}

static const float *
value (const Fixture *f, const char *name)
{
  return rn_param_set_value (f->params, rn_param_set_find (f->params, name));
}

static gboolean
load_with (const Fixture *f, const Tensor *tensors, const RnNameRules *rules, const RnLoadOptions *options,
           RnLoadReport *report, GError **error)
{
  g_autoptr (RnWeights) weights = make_file (f, tensors);
  g_autoptr (RnNameMap) map = rn_name_map_new (weights, rules, RN_NAMES_TO_MMDET, error);
  return map != NULL && rn_load_params (map, f->params, f->device, options, report, error);
}

static gboolean
load (const Fixture *f, const Tensor *tensors, const RnNameRules *rules, const char *prefix,
      gboolean is_strict, RnLoadReport *report, GError **error)
{
  const RnLoadOptions options = { .what = "the model", .prefix = prefix, .is_strict = is_strict };
  return load_with (f, tensors, rules, &options, report, error);
}

static void
expect (GLogLevelFlags level, const char *pattern)
{
  g_test_expect_message ("rn-runner", level, pattern);
}

/* ---- what matches ---- */

static const Tensor whole[] = {
  F32 ("backbone.conv1.weight", 2, 3, 1, 1),
  F32 ("backbone.bn1.running_mean", 2),
  F32 ("bbox_head.retina_cls.weight", 4, 2, 1, 1),
  F32 ("bbox_head.retina_cls.bias", 4),
  F32 ("bbox_head.retina_reg.bias", 8),
  { NULL },
};

static void
test_whole (Fixture *f, gconstpointer data)
{
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*a.safetensors: 5 of 5 tensors of the model loaded");
  g_assert_true (load (f, whole, NULL, NULL, TRUE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpuint (report.n_matched, ==, 5);
  g_assert_cmpuint (report.missing->len + report.misshapen->len + report.unexpected->len, ==, 0);
  for (int i = 0; i < 8; i++)
    g_assert_cmpfloat (value (f, "bbox_head.retina_cls.weight")[i], ==, i + 1);
  g_assert_cmpfloat (value (f, "backbone.bn1.running_mean")[1], ==, 2);
}

static void
test_module (Fixture *f, gconstpointer data)
{
  static const Tensor all[] = { F32 ("module.backbone.conv1.weight", 2, 3, 1, 1),
                                F32 ("module.backbone.bn1.running_mean", 2),
                                { NULL } };
  static const Tensor some[] = { F32 ("module.backbone.conv1.weight", 2, 3, 1, 1),
                                 F32 ("backbone.bn1.running_mean", 2),
                                 { NULL } };
  g_auto (RnLoadReport) a = { 0 };
  g_auto (RnLoadReport) b = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*2 of 2*");
  g_assert_true (load (f, all, NULL, "backbone.", FALSE, &a, &error));
  expect (G_LOG_LEVEL_MESSAGE, "*1 of 2*");
  expect (G_LOG_LEVEL_MESSAGE, "*1 tensors are not used: module.backbone.conv1.weight");
  expect (G_LOG_LEVEL_WARNING, "*1 tensors of the model are not in the file*: backbone.conv1.weight");
  g_assert_true (load (f, some, NULL, "backbone.", FALSE, &b, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpuint (a.n_matched, ==, 2);
  g_assert_cmpuint (b.n_matched, ==, 1);
}

/* torchvision's ResNet: its classifier and counters are not worth a word. */
static void
test_backbone (Fixture *f, gconstpointer data)
{
  static const Tensor tensors[] = { F32 ("conv1.weight", 2, 3, 1, 1),
                                    F32 ("bn1.running_mean", 2),
                                    F32 ("bn1.num_batches_tracked", 1),
                                    F32 ("fc.weight", 3, 2),
                                    { NULL } };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*2 of 2*");
  g_assert_true (load (f, tensors, NULL, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpuint (report.unexpected->len, ==, 0);
  g_assert_cmpfloat (value (f, "backbone.conv1.weight")[5], ==, 6);
  g_assert_cmpfloat (value (f, "bbox_head.retina_cls.bias")[0], ==, 7);
  g_assert_true (report.is_loaded[rn_param_set_find (f->params, "backbone.conv1.weight")]);
  g_assert_false (report.is_loaded[rn_param_set_find (f->params, "bbox_head.retina_cls.bias")]);
}

/* Other classes: what fits is taken, what does not keeps its values and is named with both shapes. */
static const Tensor other_classes[] = {
  F32 ("backbone.conv1.weight", 2, 3, 1, 1),
  F32 ("bbox_head.retina_cls.weight", 6, 2, 1, 1),
  F32 ("bbox_head.retina_cls.bias", 6),
  F32 ("bbox_head.retina_reg.bias", 8),
  F32 ("ema.weight", 1),
  { NULL },
};

static void
test_partly (Fixture *f, gconstpointer data)
{
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*2 of 5*");
  expect (G_LOG_LEVEL_MESSAGE, "*1 tensors are not used: ema.weight");
  expect (G_LOG_LEVEL_WARNING, "*1 tensors*not in the file*: backbone.bn1.running_mean");
  expect (G_LOG_LEVEL_WARNING,
          "*2 tensors*another shape*bbox_head.retina_cls.weight (6x2x1x1 in the file, 4x2x1x1 "
          "in the model), bbox_head.retina_cls.bias (6 in the file, 4 in the model)");
  g_assert_true (load (f, other_classes, NULL, NULL, FALSE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpuint (report.n_wanted, ==, 5);
  g_assert_cmpuint (report.n_matched, ==, 2);
  g_assert_cmpuint (report.missing->len, ==, 1);
  g_assert_cmpuint (report.misshapen->len, ==, 2);
  g_assert_cmpuint (report.unexpected->len, ==, 1);
  g_assert_cmpfloat (value (f, "bbox_head.retina_cls.weight")[0], ==, 7);
  g_assert_cmpfloat (value (f, "bbox_head.retina_reg.bias")[7], ==, 8);
}

static void
test_strict (Fixture *f, gconstpointer data)
{
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_false (load (f, other_classes, NULL, NULL, TRUE, &report, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  assert_contains (error->message, "2 tensors match, 1 are missing, 2 have another shape, 1 are unexpected");
  assert_contains (error->message, "missing backbone.bn1.running_mean");
  g_assert_cmpfloat (value (f, "bbox_head.retina_reg.bias")[7], ==, 7);
}

static void
expect_report (gboolean is_complete)
{
  expect (G_LOG_LEVEL_MESSAGE, is_complete ? "*3 of 5*" : "*2 of 5*");
  if (!is_complete)
    expect (G_LOG_LEVEL_MESSAGE, "*not used*");
  if (!is_complete)
    expect (G_LOG_LEVEL_WARNING, "*not in the file*");
  expect (G_LOG_LEVEL_WARNING, "*2 tensors*another shape*");
}

/* Shapes may differ where it was said, and nowhere else. */
static void
test_may_misfit (Fixture *f, gconstpointer data)
{
  static const Tensor complete[] = { F32 ("backbone.conv1.weight", 2, 3, 1, 1),
                                     F32 ("backbone.bn1.running_mean", 2),
                                     F32 ("bbox_head.retina_cls.weight", 6, 2, 1, 1),
                                     F32 ("bbox_head.retina_cls.bias", 6),
                                     F32 ("bbox_head.retina_reg.bias", 8),
                                     { NULL } };
  static const struct
  {
    const char *pattern;
    gboolean is_strict;
    const Tensor *tensors;
    const char *words; /* of the error; NULL: it is loaded */
  } cases[] = {
    { "retina_cls", FALSE, other_classes, NULL },
    { "^bbox_head\\.retina_cls\\.weight$", FALSE, other_classes,
      "2 have another shape, 1 are unexpected (other shape of bbox_head.retina_cls.bias (6 in" },
    { "^nothing$", FALSE, complete, "(other shape of bbox_head.retina_cls.weight (6x2" },
    { "retina_cls", TRUE, complete, NULL },
    { "retina_cls", TRUE, other_classes, "(missing backbone.bn1.running_mean)" },
    { "weight$", TRUE, complete, "(other shape of bbox_head.retina_cls.bias (6 in" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto (RnLoadReport) report = { 0 };
      g_autoptr (GError) error = NULL;
      g_autoptr (GPtrArray) patterns = g_ptr_array_new_with_free_func ((GDestroyNotify) g_regex_unref);
      g_ptr_array_add (patterns, g_regex_new (cases[i].pattern, 0, 0, &error));
      const RnLoadOptions options = { .what = "the model",
                                      .is_strict = cases[i].is_strict,
                                      .may_misfit = patterns };
      if (cases[i].words == NULL)
        expect_report (cases[i].tensors == complete);
      gboolean is_ok = load_with (f, cases[i].tensors, NULL, &options, &report, &error);
      g_test_assert_expected_messages ();
      g_assert_cmpint (is_ok, ==, cases[i].words == NULL);
      if (cases[i].words != NULL)
        assert_contains (error->message, cases[i].words);
    }
}

/* However lenient: a file of another model must not pass for a start. */
static void
test_nothing (Fixture *f, gconstpointer data)
{
  static const Tensor tensors[] = { F32 ("encoder.a.weight", 2), F32 ("encoder.b.weight", 2), { NULL } };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  g_assert_false (load (f, tensors, NULL, NULL, FALSE, &report, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  assert_contains (error->message, "encoder.a.weight, encoder.b.weight");
  assert_contains (error->message, "backbone.conv1.weight");
}

static void
test_many_names (Fixture *f, gconstpointer data)
{
  static const Tensor tensors[] = { F32 ("backbone.bn1.running_mean", 2),
                                    F32 ("a", 1),
                                    F32 ("b", 1),
                                    F32 ("c", 1),
                                    F32 ("d", 1),
                                    F32 ("e", 1),
                                    F32 ("f", 1),
                                    F32 ("g", 1),
                                    { NULL } };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*1 of 2*");
  expect (G_LOG_LEVEL_MESSAGE, "*7 tensors are not used: a, b, c, d, e and 2 more");
  expect (G_LOG_LEVEL_WARNING, "*1 tensors*");
  g_assert_true (load (f, tensors, NULL, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
}

/* ---- elements ---- */

/* Bits of IEEE 754 half, bfloat and double, and the floats that they are or are next to. */
static void
test_types (Fixture *f, gconstpointer data)
{
  static const guint16 halves[] = { 0x3e00, 0x0001, 0x7bff, 0x8000 }; /* 1.5, 2^-24, 65504, -0 */
  static const guint16 brains[] = { 0x3f81, 0xc000 };                 /* 1 + 2^-7, -2 */
  static const double doubles[] = { 0.1, 1e-46, 1, 1, 1, 1 };
  static const Tensor tensors[] = {
    { "bbox_head.retina_cls.bias", "F16", 2, 1, { 4 }, halves },
    { "backbone.bn1.running_mean", "BF16", 2, 1, { 2 }, brains },
    { "backbone.conv1.weight", "F64", 8, 4, { 2, 3, 1, 1 }, doubles },
    F32 ("bbox_head.retina_cls.weight", 4, 2, 1, 1),
    F32 ("bbox_head.retina_reg.bias", 8),
    { NULL },
  };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*5 of 5*");
  g_assert_true (load (f, tensors, NULL, NULL, TRUE, &report, &error));
  g_test_assert_expected_messages ();
  const float *half = value (f, "bbox_head.retina_cls.bias"), *brain = value (f, "backbone.bn1.running_mean");
  g_assert_cmpfloat (half[0], ==, 1.5f);
  g_assert_cmpfloat (half[1], ==, 0x1p-24f);
  g_assert_cmpfloat (half[2], ==, 65504.0f);
  g_assert_true (half[3] == 0 && signbit (half[3]));
  g_assert_cmpfloat (brain[0], ==, 1.0078125f);
  g_assert_cmpfloat (brain[1], ==, -2.0f);
  g_assert_cmpfloat (value (f, "backbone.conv1.weight")[0], ==, 0.1f);
  g_assert_cmpfloat (value (f, "backbone.conv1.weight")[1], ==, 0.0f);
}

/* Integers have no scale: a quantised model is not this model. */
static void
test_integers (Fixture *f, gconstpointer data)
{
  static const gint8 bytes[] = { 1, 2 };
  static const Tensor tensors[] = { F32 ("backbone.conv1.weight", 2, 3, 1, 1),
                                    { "backbone.bn1.running_mean", "I8", 1, 1, { 2 }, bytes },
                                    { NULL } };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*1 of 2*");
  expect (G_LOG_LEVEL_WARNING, "*(I8 2 in the file, 2 in the model)");
  g_assert_true (load (f, tensors, NULL, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpfloat (value (f, "backbone.bn1.running_mean")[0], ==, 7);
}

static void
test_not_finite (Fixture *f, gconstpointer data)
{
  static const double too_large[] = { 1, 1e300 };
  static const float none[] = { 1, 2, NAN, 3, 4, 5 };
  static const Tensor tensors[] = { { "backbone.bn1.running_mean", "F64", 8, 1, { 2 }, too_large },
                                    { "backbone.conv1.weight", "F32", 4, 4, { 2, 3, 1, 1 }, none },
                                    { NULL } };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_WARNING,
          "*2 tensors hold infinities or no numbers (the first is backbone.conv1.weight)*");
  expect (G_LOG_LEVEL_MESSAGE, "*2 of 2*");
  g_assert_true (load (f, tensors, NULL, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
}

/* ---- rules for names ---- */

static const Tensor moco[] = { F32 ("encoder_q.conv1.weight", 2, 3, 1, 1),
                               F32 ("encoder_q.bn1.running_mean", 2),
                               F32 ("encoder_k.conv1.weight", 2, 3, 1, 1),
                               { NULL } };

static void
test_prefix (Fixture *f, gconstpointer data)
{
  g_auto (RnLoadReport) report = { 0 };
  g_auto (RnLoadReport) other = { 0 };
  g_autoptr (GError) error = NULL;
  const RnNameRules rules = { .prefix = "encoder_q" }, wrong = { .prefix = "encoder" };

  expect (G_LOG_LEVEL_MESSAGE, "*2 of 2*");
  g_assert_true (load (f, moco, &rules, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_false (load (f, moco, &wrong, "backbone.", FALSE, &other, &error));
  assert_contains (error->message, "no tensor's name begins with \"encoder.\"");
}

static void
test_revise_keys (Fixture *f, gconstpointer data)
{
  g_auto (RnLoadReport) report = { 0 };
  g_auto (RnLoadReport) other = { 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root =
      rn_config_load_text ("good: [['^encoder_q\\.(.*)', 'backbone.\\1'], ['^backbone', 'backbone']]\n"
                           "both: [['^encoder_.', 'backbone']]\n"
                           "bad: [['(', x]]\n"
                           "odd: [['x']]\n"
                           "none: x\n",
                           "r.yaml", NULL, &error);
  g_assert_no_error (error);
  const RnNameRules good = { .revise_keys = rn_node_get (root, "good") },
                    both = { .revise_keys = rn_node_get (root, "both") };

  g_assert_true (rn_name_rules_check (good.revise_keys, &error));
  expect (G_LOG_LEVEL_MESSAGE, "*2 of 2*");
  expect (G_LOG_LEVEL_MESSAGE, "*not used: encoder_k.conv1.weight");
  g_assert_true (load (f, moco, &good, "backbone.", FALSE, &report, &error));
  g_test_assert_expected_messages ();
  /* Which of the two? */
  g_assert_false (load (f, moco, &both, "backbone.", FALSE, &other, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  assert_contains (error->message, "are backbone.conv1.weight");
  static const char *const wrong[] = { "bad", "odd", "none" };
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) cause = NULL;
      g_assert_false (rn_name_rules_check (rn_node_get (root, wrong[i]), &cause));
      g_assert_true (g_str_has_prefix (cause->message, "r.yaml:"));
    }
}

/* ---- torchvision's detector ---- */

static const Tensor torchvision[] = {
  F32 ("backbone.body.conv1.weight", 2, 3, 1, 1),
  F32 ("backbone.body.bn1.running_mean", 2),
  F32 ("head.classification_head.cls_logits.weight", 6, 2, 1,
       1), /* two anchors; background and two classes */
  F32 ("head.classification_head.cls_logits.bias", 6),
  F32 ("head.regression_head.bbox_reg.bias", 8),
  { NULL },
};

static void
test_background (Fixture *f, gconstpointer data)
{
  static const float weight[] = { 3, 4, 5, 6, 9, 10, 11, 12 }, bias[] = { 2, 3, 5, 6 };
  g_auto (RnLoadReport) report = { 0 };
  g_autoptr (GError) error = NULL;

  expect (G_LOG_LEVEL_MESSAGE, "*5 of 5*");
  g_assert_true (load (f, torchvision, NULL, NULL, TRUE, &report, &error));
  g_test_assert_expected_messages ();
  g_assert_cmpmem (value (f, "bbox_head.retina_cls.weight"), sizeof weight, weight, sizeof weight);
  g_assert_cmpmem (value (f, "bbox_head.retina_cls.bias"), sizeof bias, bias, sizeof bias);
}

/* The way back gives the background a logit that never passes for a detection, in any type. */
static void
test_add_background (Fixture *f, gconstpointer data)
{
  static const guint16 halves[] = { 0x3c00, 0x4000, 0x4200, 0x4400 };
  static const guint16 wanted[] = { 0xd640, 0x3c00, 0x4000, 0xd640, 0x4200, 0x4400 };
  static const float weight[] = { 0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 7, 8 };
  static const Tensor tensors[] = {
    { "bbox_head.retina_cls.bias", "F16", 2, 1, { 4 }, halves },
    F32 ("bbox_head.retina_cls.weight", 4, 2, 1, 1),
    F32 ("bbox_head.retina_reg.bias", 8),
    { NULL },
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (RnWeights) weights = make_file (f, tensors);
  g_autoptr (RnNameMap) map = rn_name_map_new (weights, NULL, RN_NAMES_TO_TORCHVISION, &error);
  int n_seen = 0;

  g_assert_no_error (error);
  for (guint i = 0; i < map->tensors->len; i++)
    {
      const RnMappedWeight *tensor = rn_name_map_get (map, i);
      guint16 half[6];
      float single[12];
      if (strcmp (tensor->name, "head.classification_head.cls_logits.bias") == 0)
        {
          g_assert_cmpint (tensor->dims[0], ==, 6);
          g_assert_cmpint (tensor->n, ==, 6);
          g_assert_true (rn_mapped_read (map, tensor, half, &error));
          g_assert_cmpmem (half, sizeof half, wanted, sizeof wanted);
          g_assert_true (rn_mapped_read_f32 (map, tensor, single, &error));
          g_assert_cmpfloat (single[3], ==, -100);
          g_assert_cmpfloat (single[5], ==, 4);
          n_seen++;
        }
      if (strcmp (tensor->name, "head.classification_head.cls_logits.weight") == 0)
        {
          g_assert_true (rn_mapped_read (map, tensor, single, &error));
          g_assert_cmpmem (single, sizeof single, weight, sizeof weight);
          n_seen++;
        }
    }
  g_assert_cmpint (n_seen, ==, 2);
}

/* Names and shapes do not tell what the pyramid computes, the configuration does. */
static void
test_pyramid (Fixture *f, gconstpointer data)
{
  static const Tensor on_output[] = { F32 ("backbone.fpn.inner_blocks.0.0.weight", 4, 2, 1, 1),
                                      F32 ("backbone.fpn.extra_blocks.p6.weight", 4, 4, 1, 1),
                                      F32 ("backbone.body.conv1.weight", 1),
                                      { NULL } };
  static const Tensor on_input[] = { F32 ("backbone.fpn.inner_blocks.0.0.weight", 4, 2, 1, 1),
                                     F32 ("backbone.fpn.extra_blocks.p6.weight", 4, 2, 1, 1),
                                     F32 ("backbone.body.conv1.weight", 1),
                                     { NULL } };
  static const struct
  {
    const Tensor *tensors;
    const char *neck;
    const char *words; /* NULL: right */
  } cases[] = {
    { on_output, "{add_extra_convs: on_output, relu_before_extra_convs: true}", NULL },
    { on_output, "{add_extra_convs: on_output}", "relu_before_extra_convs=true" },
    { on_output, "{add_extra_convs: on_lateral, relu_before_extra_convs: true}",
      "add_extra_convs=on_output" },
    { on_input, "{add_extra_convs: on_input, relu_before_extra_convs: true}", NULL },
    { on_input, "{add_extra_convs: true, relu_before_extra_convs: true}", NULL },
    { on_input, "{add_extra_convs: on_output, relu_before_extra_convs: true}", "add_extra_convs=on_input" },
    { whole, "{}", NULL },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree char *text = g_strdup_printf ("model: {neck: %s}\n", cases[i].neck);
      g_autoptr (RnNode) root = rn_config_load_text (text, "t.yaml", NULL, &error);
      g_autoptr (RnWeights) weights = make_file (f, cases[i].tensors);
      g_autoptr (RnNameMap) map = rn_name_map_new (weights, NULL, RN_NAMES_TO_MMDET, &error);
      g_assert_no_error (error);
      if (cases[i].tensors != whole)
        expect (G_LOG_LEVEL_MESSAGE, "*torchvision's names*");
      g_assert_cmpint (rn_load_check_torchvision (map, root, TRUE, &error), ==, cases[i].words == NULL);
      g_test_assert_expected_messages ();
      if (cases[i].words == NULL)
        continue;
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
      assert_contains (error->message, cases[i].words);
      expect (G_LOG_LEVEL_MESSAGE, "*torchvision's names*");
      expect (G_LOG_LEVEL_WARNING, "*torchvision's pyramid is not that of the configuration*");
      g_assert_true (rn_load_check_torchvision (map, root, FALSE, NULL));
      g_test_assert_expected_messages ();
    }
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const char *name;
    void (*run) (Fixture *f, gconstpointer data);
  } tests[] = {
    { "/load/whole", test_whole },
    { "/load/module", test_module },
    { "/load/backbone", test_backbone },
    { "/load/partly", test_partly },
    { "/load/strict", test_strict },
    { "/load/nothing", test_nothing },
    { "/load/many-names", test_many_names },
    { "/load/types", test_types },
    { "/load/integers", test_integers },
    { "/load/not-finite", test_not_finite },
    { "/load/may-misfit", test_may_misfit },
    { "/load/prefix", test_prefix },
    { "/load/revise-keys", test_revise_keys },
    { "/load/background", test_background },
    { "/load/add-background", test_add_background },
    { "/load/pyramid", test_pyramid },
  };
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].name, Fixture, NULL, set_up, tests[i].run, tear_down);
  return g_test_run ();
}
