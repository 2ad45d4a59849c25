/*
 * Sizes, flips, normalisation and the order of transforms, against the numbers of MMDetection 2.17 and MMCV
 * 1.3.
 */
#include "config.h"

#include "datasets/dataset-private.h"
#include "datasets/pipeline.h"
#include "datasets/image.h"
#include "runner/base/error.h"
#include "tests/batch-image.h"
#include "tests/datasets/util.h"

#include <math.h>
#include <string.h>

static RnPipeline *
pipeline_new (const char *yaml, gboolean test_mode, GError **error)
{
  g_autofree char *text = g_strdup_printf ("{pipeline: %s}", yaml);
  g_autoptr (RnNode) node = NULL;

  rn_datasets_register ();
  node = rn_config_load_text (text, "test.yaml", NULL, error);
  return node != NULL ? rn_pipeline_new (rn_node_get (node, "pipeline"), test_mode, error) : NULL;
}

#define LOAD "{type: LoadImageFromFile}, {type: LoadAnnotations}, "
#define BUNDLE "{type: DefaultFormatBundle}, {type: Collect, keys: [img]}"

/* The table of VOC's usual sizes for img_scale [1000, 600] and divisor 32. */
static void
test_sizes (void)
{
  static const struct
  {
    int width, height, img_width, img_height;
    double scale_w, scale_h;
    int pad_width, pad_height;
  } rows[] = {
    { 500, 375, 800, 600, 1.6, 1.6, 800, 608 },         { 375, 500, 600, 800, 1.6, 1.6, 608, 800 },
    { 500, 333, 901, 600, 1.802, 1.8018018, 928, 608 }, { 353, 500, 600, 850, 1.6997167, 1.7, 608, 864 },
    { 335, 500, 600, 896, 1.7910448, 1.792, 608, 896 }, { 500, 281, 1000, 562, 2, 2, 1024, 576 },
    { 640, 480, 800, 600, 1.25, 1.25, 800, 608 },       { 500, 112, 1000, 224, 2, 2, 1024, 224 },
  };
  GError *error = NULL;
  g_autoptr (RnPipeline) pipeline = pipeline_new (
      "[" LOAD
      "{type: Resize, img_scale: [1000, 600], keep_ratio: true}, {type: Pad, size_divisor: 32}, " BUNDLE "]",
      FALSE, &error);

  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    {
      RnSampleMeta meta = { .ori_width = rows[i].width, .ori_height = rows[i].height };
      RnSample sample = { .meta = &meta };

      rn_pipeline_plan (pipeline, &sample);
      g_assert_cmpint (meta.img_width, ==, rows[i].img_width);
      g_assert_cmpint (meta.img_height, ==, rows[i].img_height);
      g_assert_cmpint (meta.pad_width, ==, rows[i].pad_width);
      g_assert_cmpint (meta.pad_height, ==, rows[i].pad_height);
      g_assert_cmpfloat_with_epsilon (meta.scale_w, rows[i].scale_w,
                                      5e-7); /* the table's digits and float32's */
      g_assert_cmpfloat_with_epsilon (meta.scale_h, rows[i].scale_h, 5e-7);
    }
}

static void
test_size_edges (void)
{
  GError *error = NULL;
  g_autoptr (RnPipeline) ratio =
      pipeline_new ("[" LOAD "{type: Resize, img_scale: [100, 60]}, " BUNDLE "]", FALSE, &error);
  g_autoptr (RnPipeline) stretch = pipeline_new (
      "[" LOAD "{type: Resize, img_scale: [100, 60], keep_ratio: false}, " BUNDLE "]", FALSE, NULL);
  RnSampleMeta meta = { .ori_width = 10000, .ori_height = 1 };
  RnSample sample = { .meta = &meta };

  g_assert_no_error (error);
  rn_pipeline_plan (ratio, &sample);
  g_assert_cmpint (meta.img_width, ==, 100);
  g_assert_cmpint (meta.img_height, ==, 1); /* never 0 */
  meta = (RnSampleMeta){ .ori_width = 50, .ori_height = 80 };
  rn_pipeline_plan (stretch, &sample);
  g_assert_cmpint (meta.img_width, ==, 100);
  g_assert_cmpint (meta.img_height, ==, 60);
  g_assert_cmpfloat (meta.scale_h, ==, 0.75f);
}

/* One sample of a one-image set, run through @yaml. */
typedef struct
{
  RnSampleMeta meta;
  float boxes[4][4];
  int32_t labels[4];
  float *image;
  int width, height;
} Result;

static Result
run (const char *dir, const char *yaml, int out_width, int out_height, guint32 epoch)
{
  RnDatasetOptions options = { .n_threads = 1 };
  g_autofree char *text = g_strdup_printf (
      "{type: VOCDataset, ann_file: ImageSets/Main/train.txt, img_prefix: ., classes: [a, b], pipeline: %s}",
      yaml);
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_dataset (dir, text, &options, &error);
  Result result = { .width = out_width, .height = out_height };
  g_autofree guint8 *pixels = g_malloc (100000), *spare = g_malloc (100000), *bytes = g_malloc (100000);
  int32_t size[1][2];
  float table[1][3][256];
  RnBatch batch = {
    .n = 1, .height = out_height, .width = out_width, .pixels = bytes, .sizes = size, .table = table
  };
  RnSample sample = { .meta = &result.meta, .pixels = pixels, .spare = spare };

  g_assert_no_error (error);
  result.meta.gt_boxes = result.boxes;
  result.meta.gt_labels = result.labels;
  sample.seed = 7;
  sample.epoch = epoch;
  memset (bytes, 0xa5, 100000);
  rn_sample_set_output (&sample, &batch, 0);
  rn_dataset_load (dataset, 0, &sample, &error);
  g_assert_no_error (error);
  for (gsize i = (gsize) 3 * out_width * out_height; i < 100000; i++)
    g_assert_cmpint (bytes[i], ==, 0xa5);
  result.image = batch_image (&batch);
  result.meta.id = result.meta.path = NULL; /* went with the set */
  return result;
}

static char *
one_image (void)
{
  char *dir = test_dir_new ();

  test_write_image (dir, "x", 50, 40);
  test_write_xml (dir, "x", 50, 40,
                  TEST_OBJECT ("b", "0", "11", "6", "31", "26") TEST_OBJECT ("a", "1", "1", "1", "9", "9")
                      TEST_OBJECT ("a", "0", "41", "31", "50", "40"));
  test_write (dir, "ImageSets/Main/train.txt", "x\n", -1);
  return dir;
}

/*
 * Float32 of (byte - mean), times the float32 of 1 / std: within 1e-6 of the exact quotient for values up to
 * 3, as OpenCV.
 */
static void
test_normalize (void)
{
  static const double mean[] = { 123.675, 116.28, 103.53 }, std[] = { 58.395, 57.12, 57.375 };
  char *dir = one_image ();
  g_autofree char *path = g_build_filename (dir, "JPEGImages", "x.jpg", NULL);
  g_autofree guint8 *pixels = g_malloc (50 * 40 * 3);
  Result rgb = run (dir,
                    "[" LOAD "{type: Normalize, mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, "
                    "57.375], to_rgb: true}, " BUNDLE "]",
                    64, 45, 0);
  Result bgr = run (dir,
                    "[" LOAD "{type: Normalize, mean: [123.675, 116.28, 103.53], std: [58.395, 57.12, "
                    "57.375], to_rgb: false}, " BUNDLE "]",
                    50, 40, 0);
  Result raw = run (dir, "[" LOAD BUNDLE "]", 50, 40, 0);

  g_assert_true (rn_image_decode_path (path, pixels, 50, 40, NULL));
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < 45; y++)
      for (int x = 0; x < 64; x++)
        {
          float value = rgb.image[(c * 45 + y) * 64 + x];

          if (x >= 50 || y >= 40)
            {
              g_assert_cmpfloat (value, ==, 0); /* padding is the mean colour */
              continue;
            }
          g_assert_cmpfloat_with_epsilon (value, (pixels[(y * 50 + x) * 3 + c] - mean[c]) / std[c], 1e-6);
          g_assert_cmpfloat_with_epsilon (bgr.image[(c * 40 + y) * 50 + x],
                                          (pixels[(y * 50 + x) * 3 + 2 - c] - mean[c]) / std[c], 1e-6);
          g_assert_cmpfloat (raw.image[(c * 40 + y) * 50 + x], ==, pixels[(y * 50 + x) * 3 + 2 - c]);
        }
  g_free (rgb.image);
  g_free (bgr.image);
  g_free (raw.image);
  test_dir_remove (dir);
}

static void
test_boxes (void)
{
  char *dir = one_image ();
  Result result = run (
      dir, "[" LOAD "{type: Resize, img_scale: [100, 80]}, {type: RandomFlip, flip_ratio: 1}, " BUNDLE "]",
      100, 80, 0);
  Result straight = run (
      dir, "[" LOAD "{type: Resize, img_scale: [100, 80]}, {type: RandomFlip, flip_ratio: 0}, " BUNDLE "]",
      100, 80, 0);

  /* Twice as large; the difficult one is left out; mirrored about width 100 with no -1. */
  g_assert_cmpint (straight.meta.n_gt, ==, 2);
  g_assert_true (memcmp (straight.boxes[0], (float[4]){ 20, 10, 60, 50 }, sizeof (float[4])) == 0);
  g_assert_true (memcmp (straight.boxes[1], (float[4]){ 80, 60, 98, 78 }, sizeof (float[4])) == 0);
  g_assert_cmpint (straight.labels[0], ==, 1);
  g_assert_false (straight.meta.flip);
  g_assert_true (result.meta.flip);
  g_assert_true (memcmp (result.boxes[0], (float[4]){ 40, 10, 80, 50 }, sizeof (float[4])) == 0);
  g_assert_true (memcmp (result.boxes[1], (float[4]){ 2, 60, 20, 78 }, sizeof (float[4])) == 0);
  for (int y = 0; y < 3 * 80; y++)
    for (int x = 0; x < 100; x++)
      g_assert_cmpfloat (result.image[y * 100 + x], ==, straight.image[y * 100 + 99 - x]);
  g_free (result.image);
  g_free (straight.image);
  test_dir_remove (dir);
}

/*
 * 2000 draws of probability 0.3: the standard deviation of the count is 20.5, and 100 is nearly five of it.
 */
static void
test_flip_ratio (void)
{
  char *dir = one_image ();
  int n = 0;

  for (guint32 key = 0; key < 2000; key++)
    {
      RnRng rng;

      rn_rng_init (&rng, 7, RN_STREAM_AUGMENT, 0, key);
      n += rn_rng_uniform (&rng) < 0.3;
    }
  g_assert_cmpint (ABS (n - 600), <, 100);
  for (guint32 epoch = 0; epoch < 8; epoch++)
    {
      Result result = run (dir, "[" LOAD "{type: RandomFlip, flip_ratio: 0.3}, " BUNDLE "]", 50, 40, epoch);
      RnRng rng;

      rn_rng_init (&rng, 7, RN_STREAM_AUGMENT, epoch, 0);
      g_assert_cmpint (result.meta.flip, ==, rn_rng_uniform (&rng) < 0.3);
      g_free (result.image);
    }
  test_dir_remove (dir);
}

static void
test_refusals (void)
{
  static const struct
  {
    const char *yaml;
    gboolean test_mode;
    const char *message;
  } cases[] = {
    { "[{type: LoadImageFromFile}]", FALSE, "a pipeline has" },
    { "[{type: LoadImageFromFile}, " BUNDLE "]", FALSE, "LoadAnnotations" },
    { "[" LOAD "{type: Pad, size_divisor: 32}, {type: Normalize, mean: [0, 0, 0], std: [1, 1, 1]}, " BUNDLE
      "]",
      FALSE, "Normalize cannot come after Pad" },
    { "[" LOAD "{type: Resize}, " BUNDLE "]", FALSE, "img_scale" },
    { "[" LOAD "{type: Resize, img_scale: [[1000, 600], [1000]]}, " BUNDLE "]", FALSE, "two numbers" },
    { "[" LOAD "{type: Resize, img_scale: [1000, 600, 5]}, " BUNDLE "]", FALSE, "two numbers" },
    { "[" LOAD "{type: Resize, img_scale: [1000, 0]}, " BUNDLE "]", FALSE, "img_scale" },
    { "[" LOAD "{type: Normalise}, " BUNDLE "]", FALSE, "Normalize" },
    { "[" LOAD "{type: Normalize, mean: [0], std: [1]}, " BUNDLE "]", FALSE, "three numbers" },
    { "[" LOAD "{type: Normalize, mean: [0, 0, 0], std: [1, 0, 1]}, " BUNDLE "]", FALSE, "std" },
    { "[" LOAD "{type: RandomFlip, flip_ratio: 1.5}, " BUNDLE "]", FALSE, "flip_ratio" },
    { "[" LOAD "{type: RandomFlip, flip_ratio: 0.5}, " BUNDLE "]", TRUE, "at random" },
    { "[" LOAD "{type: DefaultFormatBundle}, {type: Collect, keys: [img, gt_masks]}]", FALSE, "gt_masks" },
    { "[{type: LoadImageFromFile}, {type: MultiScaleFlipAug, img_scale: [100, 60], flip: true, transforms: "
      "[" BUNDLE "]}]",
      TRUE, "flip" },
    { "[{type: MultiScaleFlipAug, img_scale: [100, 60], transforms: [{type: MultiScaleFlipAug, img_scale: "
      "[1, 1], transforms: []}]}]",
      TRUE, "inside itself" },
    { "{type: Pad}", FALSE, "expected a list" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      GError *error = NULL;

      g_assert_null (pipeline_new (cases[i].yaml, cases[i].test_mode, &error));
      g_assert_true (error->domain == RN_CONFIG_ERROR);
      g_assert_true (g_str_has_prefix (error->message, "test.yaml:1:"));
      if (strstr (error->message, cases[i].message) == NULL)
        g_error ("\"%s\" does not contain \"%s\"", error->message, cases[i].message);
      g_error_free (error);
    }
}

static void
test_of_test_pipeline (void)
{
  GError *error = NULL;
  g_autoptr (RnPipeline) pipeline = pipeline_new (test_test_pipeline, TRUE, &error);
  RnSampleMeta meta = { .ori_width = 500, .ori_height = 375 };
  RnSample sample = { .meta = &meta };

  g_assert_no_error (error);
  rn_pipeline_plan (pipeline, &sample);
  g_assert_cmpint (meta.img_width, ==, 128);
  g_assert_cmpint (meta.img_height, ==, 96);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/transforms/sizes", test_sizes);
  g_test_add_func ("/datasets/transforms/size-edges", test_size_edges);
  g_test_add_func ("/datasets/transforms/normalize", test_normalize);
  g_test_add_func ("/datasets/transforms/boxes", test_boxes);
  g_test_add_func ("/datasets/transforms/flip-ratio", test_flip_ratio);
  g_test_add_func ("/datasets/transforms/refusals", test_refusals);
  g_test_add_func ("/datasets/transforms/test-pipeline", test_of_test_pipeline);
  return g_test_run ();
}
