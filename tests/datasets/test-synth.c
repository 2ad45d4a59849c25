#include "config.h"

#include "datasets/synth.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <string.h>

static void
write_set (const char *dir, RnSynthLayout layout, guint64 seed, gboolean force)
{
  RnSynthOptions options = {
    .layout = layout,
    .n_train = 60,
    .n_val = 4,
    .n_test = 8,
    .width = 160,
    .height = 128,
    .seed = seed,
    .force = force,
  };
  GError *error = NULL;

  rn_synth_write (dir, &options, &error);
  g_assert_no_error (error);
}

static guint64
hash_file (guint64 hash, const char *dir, const char *name)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autofree char *contents = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
  return test_hash (hash, contents, size);
}

static guint64
hash_set (const char *dir)
{
  guint64 hash = hash_file (TEST_HASH_START, dir, "ImageSets/Main/trainval.txt");

  for (int i = 1; i <= 72; i++)
    {
      g_autofree char *image = g_strdup_printf ("JPEGImages/%06d.jpg", i);
      g_autofree char *annotation = g_strdup_printf ("Annotations/%06d.xml", i);

      hash = hash_file (hash_file (hash, dir, image), dir, annotation);
    }
  return hash;
}

static void
test_deterministic (void)
{
  char *a = test_dir_new (), *b = test_dir_new (), *c = test_dir_new ();

  write_set (a, RN_SYNTH_PLAIN, 1, TRUE);
  write_set (b, RN_SYNTH_PLAIN, 1, TRUE);
  write_set (c, RN_SYNTH_PLAIN, 2, TRUE);
  g_assert_cmphex (hash_set (a), ==, hash_set (b));
  g_assert_cmphex (hash_set (a), !=, hash_set (c));
  test_dir_remove (a);
  test_dir_remove (b);
  test_dir_remove (c);
}

static RnDataset *
open_set (const char *dir, const char *ann_file, const char *prefix, const char *classes)
{
  RnDatasetOptions options = { .test_mode = TRUE };
  g_autofree char *yaml =
      g_strdup_printf ("{type: VOCDataset, ann_file: %s, img_prefix: %s, classes: %s, pipeline: %s}",
                       ann_file, prefix, classes, test_test_pipeline);
  GError *error = NULL;
  RnDataset *dataset = test_dataset (dir, yaml, &options, &error);

  g_assert_no_error (error);
  return dataset;
}

typedef struct
{
  int n, n_difficult, n_empty, n_wide, n_tall, n_square;
  int of_class[20];
} Census;

static Census
count (const RnDataset *dataset)
{
  Census census = { 0 };

  for (int64_t i = 0; i < rn_dataset_size (dataset); i++)
    {
      RnGroundTruth truth;
      int width, height;

      rn_dataset_ground_truth (dataset, i, &truth);
      rn_dataset_image_size (dataset, i, &width, &height);
      census.n += truth.n;
      census.n_empty += truth.n == 0;
      census.n_wide += width > height;
      census.n_tall += width < height;
      census.n_square += width == height;
      for (int k = 0; k < truth.n; k++)
        {
          census.n_difficult += truth.difficult[k];
          census.of_class[truth.labels[k]]++;
          g_assert_cmpfloat (truth.boxes[k][0], >=, 0);
          g_assert_cmpfloat (truth.boxes[k][2], <, width); /* inclusive, 0-based */
          g_assert_cmpfloat (truth.boxes[k][3], <, height);
        }
    }
  return census;
}

/*
 * What is written reads back, and holds what it should: all classes, difficult objects, an image without any.
 */
static void
test_plain (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) dataset = NULL;
  Census census;

  write_set (dir, RN_SYNTH_PLAIN, 1, TRUE);
  dataset = open_set (dir, "ImageSets/Main/trainval.txt", ".", "classes.txt");
  census = count (dataset);
  g_assert_cmpint (rn_dataset_size (dataset), ==, 64);
  g_assert_cmpint (rn_dataset_n_classes (dataset), ==, 3);
  g_assert_cmpint (census.n_wide, ==, 64);
  g_assert_cmpint (census.n_empty, ==, 3);
  g_assert_cmpint (census.n, >, 100);
  g_assert_cmpint (census.n_difficult, >, 0);
  g_assert_cmpint (census.n_difficult, <, census.n / 4);
  for (int k = 0; k < 3; k++)
    g_assert_cmpint (census.of_class[k], >, 20);
  test_dir_remove (dir);
}

static void
test_voc0712 (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) train = NULL, test = NULL;
  Census census;

  write_set (dir, RN_SYNTH_VOC0712, 1, TRUE);
  train = open_set (
      dir, "[VOC2007/ImageSets/Main/trainval.txt, VOC2012/ImageSets/Main/trainval.txt]",
      "[VOC2007, VOC2012]", "null");
  test = open_set (dir, "VOC2007/ImageSets/Main/test.txt", "VOC2007", "null");
  census = count (train);
  g_assert_cmpint (rn_dataset_size (train), ==, 128);
  g_assert_cmpint (rn_dataset_size (test), ==, 8);
  g_assert_cmpint (rn_dataset_default_ap_mode (train), ==, RN_AP_11POINTS);
  g_assert_cmpint (census.n_wide, ==, 64);
  g_assert_cmpint (census.n_tall, ==, 32);
  g_assert_cmpint (census.n_square, ==, 32);
  for (int k = 0; k < 20; k++)
    g_assert_cmpint (census.of_class[k], >, 0);
  test_dir_remove (dir);
}

static void
test_refusals (void)
{
  char *dir = test_dir_new ();
  RnSynthOptions options = { .n_train = 1, .width = 160, .height = 128 };
  GError *error = NULL;

  g_assert_false (rn_synth_write (dir, &options, &error)); /* it holds three folders */
  g_assert_error (error, G_FILE_ERROR, G_FILE_ERROR_EXIST);
  g_clear_error (&error);
  options.force = TRUE;
  options.width = 63;
  g_assert_false (rn_synth_write (dir, &options, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE);
  g_clear_error (&error);
  options.width = 64;
  options.n_train = 0;
  g_assert_false (rn_synth_write (dir, &options, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_USAGE);
  g_clear_error (&error);
  g_assert_false (
      rn_synth_write ("/dev/null/x", &(RnSynthOptions){ .n_train = 1, .width = 64, .height = 64 }, &error));
  g_assert_true (error->domain == G_FILE_ERROR);
  g_clear_error (&error);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/synth/deterministic", test_deterministic);
  g_test_add_func ("/datasets/synth/plain", test_plain);
  g_test_add_func ("/datasets/synth/voc0712", test_voc0712);
  g_test_add_func ("/datasets/synth/refusals", test_refusals);
  return g_test_run ();
}
