/* Names of tensors: torchvision's to MMDetection's and back, and what else changes on the way. */
#include "config.h"

#include "runner/weights/names.h"

#include <glib.h>
#include <string.h>

/* The pairs of names-torchvision.txt, in two NULL-ended lists. */
static void
read_pairs (GPtrArray *torchvision, GPtrArray *mmdet)
{
  g_autofree char *path =
      g_test_build_filename (G_TEST_DIST, "tests", "weights", "names-torchvision.txt", NULL);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  g_auto (GStrv) lines = g_strsplit (g_strstrip (text), "\n", -1);
  for (char **line = lines; *line != NULL; line++)
    {
      g_auto (GStrv) words = g_strsplit (*line, " ", 2);
      g_assert_cmpuint (g_strv_length (words), ==, 2);
      g_ptr_array_add (torchvision, g_strdup (words[0]));
      g_ptr_array_add (mmdet, g_strdup (words[1]));
    }
  g_assert_cmpuint (torchvision->len, >, 100);
  g_ptr_array_add (torchvision, NULL);
  g_ptr_array_add (mmdet, NULL);
}

static void
test_detector (void)
{
  g_autoptr (GPtrArray) torchvision = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) mmdet = g_ptr_array_new_with_free_func (g_free);

  read_pairs (torchvision, mmdet);
  RnNames theirs = rn_names_detect ((const char *const *) torchvision->pdata),
          ours = rn_names_detect ((const char *const *) mmdet->pdata);
  g_assert_cmpint (theirs.style, ==, RN_NAMES_TORCHVISION);
  g_assert_cmpint (theirs.n_laterals, ==, 3);
  g_assert_cmpint (ours.style, ==, RN_NAMES_MMDET);
  g_assert_cmpint (ours.n_laterals, ==, 3);
  for (guint i = 0; i + 1 < torchvision->len; i++)
    {
      const char *their = g_ptr_array_index (torchvision, i), *our = g_ptr_array_index (mmdet, i);
      g_autofree char *there = rn_names_to_mmdet (&theirs, their);
      g_autofree char *back = rn_names_to_torchvision (&ours, RN_NAMES_TORCHVISION, our);
      g_autofree char *same = rn_names_to_mmdet (&ours, our);
      g_assert_cmpstr (there, ==, our);
      g_assert_cmpstr (back, ==, their);
      g_assert_cmpstr (same, ==, our);
    }
}

/* Before torchvision 0.13 the pyramid's convolutions stood alone, and the towers' between their ReLUs. */
static void
test_old_detector (void)
{
  static const char *const names[][2] = {
    { "backbone.body.layer1.0.conv1.weight", "backbone.layer1.0.conv1.weight" },
    { "backbone.fpn.inner_blocks.2.weight", "neck.lateral_convs.2.conv.weight" },
    { "backbone.fpn.layer_blocks.0.bias", "neck.fpn_convs.0.conv.bias" },
    { "backbone.fpn.extra_blocks.p7.weight", "neck.fpn_convs.4.conv.weight" },
    { "head.classification_head.conv.0.weight", "bbox_head.cls_convs.0.conv.weight" },
    { "head.classification_head.conv.6.bias", "bbox_head.cls_convs.3.conv.bias" },
    { "head.regression_head.conv.4.weight", "bbox_head.reg_convs.2.conv.weight" },
    /* no convolution of the towers: left as they are */
    { "head.regression_head.conv.1.weight", "head.regression_head.conv.1.weight" },
    { "head.classification_head.conv.0.1.weight", "head.classification_head.conv.0.1.weight" },
    { "head.classification_head.conv.x.weight", "head.classification_head.conv.x.weight" },
    { "head.classification_head.conv.99999999999.weight",
      "head.classification_head.conv.99999999999.weight" },
    { "something.else", "something.else" },
  };
  const char *list[G_N_ELEMENTS (names) + 1] = { NULL };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    list[i] = names[i][0];
  RnNames found = rn_names_detect (list);
  g_assert_cmpint (found.style, ==, RN_NAMES_TORCHVISION);
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *name = rn_names_to_mmdet (&found, names[i][0]);
      g_assert_cmpstr (name, ==, names[i][1]);
    }
}

static void
test_backbone (void)
{
  static const char *const names[] = { "conv1.weight",        "bn1.running_mean", "bn1.num_batches_tracked",
                                       "layer4.1.bn2.weight", "fc.weight",        NULL };
  static const char *const ours[] = { "backbone.conv1.weight",
                                      "backbone.bn1.running_mean",
                                      "backbone.bn1.num_batches_tracked",
                                      "backbone.layer4.1.bn2.weight",
                                      "fc.weight",
                                      NULL };
  RnNames found = rn_names_detect (names);

  g_assert_cmpint (found.style, ==, RN_NAMES_RESNET);
  for (int i = 0; names[i] != NULL; i++)
    {
      g_autofree char *name = rn_names_to_mmdet (&found, names[i]);
      g_autofree char *back = rn_names_to_torchvision (&found, RN_NAMES_RESNET, ours[i]);
      g_assert_cmpstr (name, ==, ours[i]);
      g_assert_cmpstr (back, ==, strcmp (names[i], "fc.weight") == 0 ? NULL : names[i]);
    }
  g_assert_true (rn_names_is_dispensable ("fc.weight"));
  g_assert_true (rn_names_is_dispensable ("backbone.bn1.num_batches_tracked"));
  g_assert_false (rn_names_is_dispensable ("backbone.conv1.weight"));
}

/* A classifier on a backbone (MMClassification) is no backbone alone. */
static void
test_detect (void)
{
  static const char *const classifier[] = { "backbone.conv1.weight", "head.fc.weight", NULL };
  static const char *const other[] = { "encoder.weight", NULL };
  static const char *const none[] = { NULL };

  g_assert_cmpint (rn_names_detect (classifier).style, ==, RN_NAMES_MMDET);
  g_assert_cmpint (rn_names_detect (other).style, ==, RN_NAMES_MMDET);
  g_assert_cmpint (rn_names_detect (none).style, ==, RN_NAMES_MMDET);
}

static void
test_no_counterpart (void)
{
  static const char *const names[] = { "neck.lateral_convs.0.conv.weight", "neck.lateral_convs.1.conv.weight",
                                       NULL };
  static const char *const without[] = {
    "backbone.stem.0.weight",          /* a deep stem */
    "neck.fpn_convs.4.conv.weight",    /* a third extra level: P6 and P7 are 2 and 3 here */
    "bbox_head.cls_convs.0.bn.weight", /* a norm in a tower */
    "ema.weight",
  };
  RnNames found = rn_names_detect (names);

  for (gsize i = 0; i < G_N_ELEMENTS (without); i++)
    g_assert_null (rn_names_to_torchvision (&found, RN_NAMES_TORCHVISION, without[i]));
  g_autofree char *p7 = rn_names_to_torchvision (&found, RN_NAMES_TORCHVISION, "neck.fpn_convs.3.conv.bias");
  g_assert_cmpstr (p7, ==, "backbone.fpn.extra_blocks.p7.bias");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/names/detector", test_detector);
  g_test_add_func ("/names/old-detector", test_old_detector);
  g_test_add_func ("/names/backbone", test_backbone);
  g_test_add_func ("/names/detect", test_detect);
  g_test_add_func ("/names/no-counterpart", test_no_counterpart);
  return g_test_run ();
}
