#include "config.h"

#include "tests/datasets/util.h"

#include "datasets/image.h"
#include "runner/base/rng.h"
#include "tests/tree.h"

const char test_train_pipeline[] = "[{type: LoadImageFromFile}, {type: LoadAnnotations, with_bbox: true}, "
                                   "{type: Resize, img_scale: [128, 96]}, "
                                   "{type: RandomFlip, flip_ratio: 0.5}, {type: Normalize, mean: [123.675, "
                                   "116.28, 103.53], std: [58.395, 57.12, 57.375]}, "
                                   "{type: Pad, size_divisor: 32}, {type: DefaultFormatBundle}, {type: "
                                   "Collect, keys: [img, gt_bboxes, gt_labels]}]";

const char test_test_pipeline[] =
    "[{type: LoadImageFromFile}, {type: MultiScaleFlipAug, img_scale: [128, 96], flip: false, transforms: "
    "[{type: Resize, keep_ratio: true}, {type: RandomFlip}, {type: Normalize, mean: [0, 0, 0], std: [1, 1, "
    "1]}, "
    "{type: Pad, size_divisor: 32}, {type: ImageToTensor, keys: [img]}, {type: Collect, keys: [img]}]}]";

char *
test_dir_new (void)
{
  GError *error = NULL;
  char *dir = g_dir_make_tmp ("runner-data-XXXXXX", &error);

  g_assert_no_error (error);
  for (int i = 0; i < 3; i++)
    {
      static const char *const names[] = { "Annotations", "JPEGImages", "ImageSets/Main" };
      g_autofree char *path = g_build_filename (dir, names[i], NULL);

      g_assert_cmpint (g_mkdir_with_parents (path, 0777), ==, 0);
    }
  return dir;
}

void
test_dir_remove (char *dir)
{
  remove_tree (dir);
  g_free (dir);
}

void
test_write (const char *dir, const char *name, const void *data, gssize size)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  GError *error = NULL;

  g_file_set_contents (path, data, size, &error);
  g_assert_no_error (error);
}

void
test_write_image (const char *dir, const char *id, int width, int height)
{
  g_autofree char *path = g_strdup_printf ("%s/JPEGImages/%s.jpg", dir, id);
  g_autofree guint8 *pixels = g_malloc ((gsize) width * height * 3);
  GError *error = NULL;
  RnRng rng;

  rn_rng_init (&rng, 1, RN_STREAM_SYNTH, (guint32) width, (guint32) height);
  for (int i = 0; i < width * height * 3; i++)
    pixels[i] = (guint8) rn_rng_u32 (&rng);
  rn_image_write_jpeg (path, pixels, width, height, 90, &error);
  g_assert_no_error (error);
}

void
test_write_xml (const char *dir, const char *id, int width, int height, const char *objects)
{
  g_autofree char *name = g_strdup_printf ("Annotations/%s.xml", id);
  g_autofree char *text = g_strdup_printf (
      "<annotation><size><width>%d</width><height>%d</height></size>%s</annotation>", width, height, objects);

  test_write (dir, name, text, -1);
}

RnDataset *
test_dataset (const char *dir, const char *yaml, const RnDatasetOptions *options, GError **error)
{
  RnDatasetOptions with_root = *options;
  g_autoptr (RnNode) node = NULL;

  rn_datasets_register ();
  node = rn_config_load_text (yaml, "test.yaml", NULL, error);
  if (node == NULL)
    return NULL;
  with_root.data_root = dir;
  return rn_dataset_new (node, &with_root, error);
}

RnDataset *
test_voc (const char *dir, gboolean test_mode, RnOnError on_error, GError **error)
{
  RnDatasetOptions options = { .test_mode = test_mode, .on_error = on_error };
  g_autofree char *yaml = g_strdup_printf ("{type: VOCDataset, ann_file: ImageSets/Main/train.txt, "
                                           "img_prefix: ., classes: [a, b, c], pipeline: %s}",
                                           test_mode ? test_test_pipeline : test_train_pipeline);

  return test_dataset (dir, yaml, &options, error);
}

static int
feature_sizes (gpointer model, int height, int width, int (*sizes)[2])
{
  for (int level = 0; level < 5; level++)
    {
      int stride = 8 << level;

      sizes[level][0] = (height + stride - 1) / stride;
      sizes[level][1] = (width + stride - 1) / stride;
    }
  return 5;
}

RnTargetSpec
test_targets (int num_classes)
{
  const RnAnchorSpec anchors = {
    .n_levels = 5,
    .strides = { 8, 16, 32, 64, 128 },
    .octave_base_scale = 4,
    .scales_per_octave = 3,
    .n_ratios = 3,
    .ratios = { 0.5, 1, 2 },
    .scale_major = TRUE,
  };
  RnTargetSpec spec = {
    .assigner = RN_MAX_IOU_ASSIGNER_INIT,
    .coder = RN_BOX_CODER_INIT,
    .num_classes = num_classes,
    .feature_sizes = feature_sizes,
  };
  GError *error = NULL;

  rn_anchors_init (&spec.anchors, &anchors, &error);
  g_assert_no_error (error);
  return spec;
}

guint64
test_hash (guint64 hash, gconstpointer data, gsize size)
{
  const guint8 *bytes = data;

  for (gsize i = 0; i < size; i++)
    hash = (hash ^ bytes[i]) * G_GUINT64_CONSTANT (0x100000001b3);
  return hash;
}
