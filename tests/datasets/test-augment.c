/*
 * Random transforms: boxes follow the pixels, choices follow their key alone, sizes stay within the bounds
 * that are known before.
 */
#include "config.h"

#include "datasets/dataset-private.h"
#include "datasets/image.h"
#include "datasets/sample-view.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"

#include <math.h>
#include <string.h>

#define LOAD "{type: LoadImageFromFile}, {type: LoadAnnotations}, "
#define BUNDLE "{type: DefaultFormatBundle}, {type: Collect, keys: [img]}"

#define WIDTH 160
#define HEIGHT 120
#define SEED 5
#define N_EPOCHS 100

/* A white rectangle on black, its edges on those of JPEG's blocks, so that every pixel is exact. */
static const int rectangle[4] = { 32, 24, 96, 72 };

static void
write_rectangle (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "JPEGImages", "x.jpg", NULL);
  g_autofree guint8 *pixels = g_malloc0 (WIDTH * HEIGHT * 3);
  GError *error = NULL;

  for (int y = rectangle[1]; y < rectangle[3]; y++)
    memset (pixels + (y * WIDTH + rectangle[0]) * 3, 255, (gsize) (rectangle[2] - rectangle[0]) * 3);
  rn_image_write_jpeg (path, pixels, WIDTH, HEIGHT, 95, &error);
  g_assert_no_error (error);
}

/* A folder with that image, the rectangle as object of class "a" and inside it a difficult one of "b". */
static char *
make_rectangle (void)
{
  char *dir = test_dir_new ();

  write_rectangle (dir);
  test_write_xml (dir, "x", WIDTH, HEIGHT,
                  TEST_OBJECT ("a", "0", "33", "25", "97", "73")
                      TEST_OBJECT ("b", "1", "41", "33", "57", "49"));
  test_write (dir, "ImageSets/Main/train.txt", "x\n", -1);
  return dir;
}

static RnDataset *
open_set (const char *dir, const char *steps)
{
  RnDatasetOptions options = { .n_threads = 1 };
  GError *error = NULL;
  g_autofree char *yaml =
      g_strdup_printf ("{type: VOCDataset, ann_file: ImageSets/Main/train.txt, img_prefix: ., classes: [a, "
                       "b], pipeline: [" LOAD "%s" BUNDLE "]}",
                       steps);
  RnDataset *dataset = test_dataset (dir, yaml, &options, &error);

  g_assert_no_error (error);
  return dataset;
}

static RnSampleView *
open_view (const RnDataset *dataset)
{
  GError *error = NULL;
  RnSampleView *view = rn_sample_view_new (dataset, SEED, &error);

  g_assert_no_error (error);
  return view;
}

static const RnSample *
load (RnSampleView *view, guint64 epoch)
{
  GError *error = NULL;
  const RnSample *sample = rn_sample_view_load (view, 0, epoch, &error);

  g_assert_no_error (error);
  return sample;
}

/* Where the white pixels are: x1 y1 x2 y2, half-open; FALSE if there is none. */
static gboolean
find_white (const RnSample *sample, int found[4])
{
  found[0] = found[1] = G_MAXINT;
  found[2] = found[3] = 0;
  for (int y = 0; y < sample->height; y++)
    for (int x = 0; x < sample->width; x++)
      if (sample->pixels[(y * sample->width + x) * 3 + 1] > 127)
        {
          found[0] = MIN (found[0], x);
          found[1] = MIN (found[1], y);
          found[2] = MAX (found[2], x + 1);
          found[3] = MAX (found[3], y + 1);
        }
  return found[2] > 0;
}

static void
assert_box_on_white (const RnSample *sample, double tolerance)
{
  int white[4];
  gboolean seen = find_white (sample, white);

  g_assert_true (seen);
  g_assert_cmpint (sample->gt.n, ==, 1);
  g_assert_cmpint (sample->gt.labels[0], ==, 0);
  for (int c = 0; c < 4; c++)
    g_assert_cmpfloat_with_epsilon (sample->gt.boxes[0][c], white[c], tolerance);
}

/*
 * Pixels that only change places match exactly; after a Resize an edge lies where interpolation passes one
 * half, less than a pixel from the scaled edge.
 */
static void
test_boxes_follow_pixels (void)
{
  static const struct
  {
    const char *steps;
    double tolerance;
  } cases[] = {
    { "{type: RandomFlip, flip_ratio: 0.9, direction: [horizontal, vertical, diagonal]}, ", 1e-6 },
    { "{type: RandomCrop, crop_size: [50, 70]}, ", 1e-6 },
    { "{type: RandomCrop, crop_type: absolute_range, crop_size: [30, 300]}, ", 1e-6 },
    { "{type: RandomCrop, crop_type: relative, crop_size: [0.5, 0.4]}, ", 1e-6 },
    { "{type: RandomCrop, crop_type: relative_range, crop_size: [0.3, 0.3]}, ", 1e-6 },
    { "{type: MinIoURandomCrop}, ", 1e-6 },
    { "{type: Expand, mean: [10, 20, 30]}, ", 1e-6 },
    { "{type: RandomShift, shift_ratio: 0.9, max_shift_px: 60}, ", 1e-6 },
    { "{type: Resize, img_scale: [[200, 100], [400, 300]]}, ", 1 },
    { "{type: Resize, img_scale: [[90, 60], [333, 111], [160, 160]], multiscale_mode: value}, ", 1 },
    { "{type: Resize, img_scale: [200, 100], ratio_range: [0.5, 2.0]}, ", 1 },
    { "{type: Resize, img_scale: [[200, 100], [300, 100]], keep_ratio: false}, ", 1 },
    { "{type: Expand, ratio_range: [1, 3]}, {type: MinIoURandomCrop, min_crop_size: 0.4}, {type: Resize, "
      "img_scale: [300, 300], keep_ratio: false}, {type: RandomFlip, flip_ratio: 0.5}, {type: RandomCrop, "
      "crop_size: [250, 250]}, ",
      1.5 },
  };
  char *dir = make_rectangle ();

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (RnDataset) dataset = open_set (dir, cases[i].steps);
      g_autoptr (RnSampleView) view = open_view (dataset);

      for (guint64 epoch = 0; epoch < N_EPOCHS; epoch++) /* none loses the only object */
        assert_box_on_white (load (view, epoch), cases[i].tolerance);
    }
  test_dir_remove (dir);
}

/* The ground is the colour that was asked for, and only there where the image is not. */
static void
test_expand_ground (void)
{
  char *dir = make_rectangle ();
  g_autoptr (RnDataset) dataset =
      open_set (dir, "{type: Expand, mean: [10.4, 20, 29.6], to_rgb: false, ratio_range: [2, 3], prob: 1}, ");
  g_autoptr (RnSampleView) view = open_view (dataset);

  for (guint64 epoch = 0; epoch < 20; epoch++)
    {
      const RnSample *sample = load (view, epoch);
      int left = (int) sample->gt.boxes[0][0] - rectangle[0],
          top = (int) sample->gt.boxes[0][1] - rectangle[1];

      g_assert_cmpint (sample->width, >=, 2 * WIDTH);
      g_assert_cmpint (sample->width, <=, 3 * WIDTH);
      g_assert_cmpint (abs (sample->width * HEIGHT - sample->height * WIDTH), <, WIDTH + HEIGHT);
      for (int y = 0; y < sample->height; y++)
        for (int x = 0; x < sample->width; x++)
          {
            const guint8 *pixel = sample->pixels + (y * sample->width + x) * 3;
            gboolean inside = x >= left && x < left + WIDTH && y >= top && y < top + HEIGHT;

            if (inside)
              g_assert_true (pixel[0] == pixel[1]); /* black or white */
            else
              g_assert_true (memcmp (pixel, (guint8[3]){ 30, 20, 10 }, 3) == 0);
          }
    }
  test_dir_remove (dir);
}

/* Difficult objects follow the image, but are no ground truth. */
static void
test_difficult (void)
{
  char *dir = make_rectangle ();
  g_autoptr (RnDataset) dataset = open_set (dir, "{type: RandomFlip, flip_ratio: 1, direction: diagonal}, ");
  g_autoptr (RnSampleView) view = open_view (dataset);
  const RnSample *sample = load (view, 0);

  g_assert_cmpint (sample->gt.n, ==, 1);
  g_assert_cmpint (sample->difficult.n, ==, 1);
  g_assert_cmpint (sample->difficult.labels[0], ==, 1);
  g_assert_true (memcmp (sample->difficult.boxes[0],
                         (float[4]){ WIDTH - 56, HEIGHT - 48, WIDTH - 40, HEIGHT - 32 }, sizeof (float[4]))
                 == 0);
  test_dir_remove (dir);
}

/*
 * 2000 draws: a count with probability p has deviation sqrt (2000 p (1 - p)), at most 22.4; 112 is five of
 * them.
 */
static void
test_flip_directions (void)
{
  char *dir = make_rectangle ();
  g_autoptr (RnDataset) even =
      open_set (dir, "{type: RandomFlip, flip_ratio: 0.6, direction: [horizontal, vertical, diagonal]}, ");
  g_autoptr (RnDataset) uneven =
      open_set (dir, "{type: RandomFlip, flip_ratio: [0.1, 0.5], direction: [vertical, horizontal]}, ");
  static const int expected[2][4] = { { 800, 400, 400, 400 }, { 800, 1000, 200, 0 } };
  const RnDataset *sets[2] = { even, uneven };
  float boxes[2][4];
  int32_t labels[2];

  for (int s = 0; s < 2; s++)
    {
      int counts[4] = { 0 };

      for (guint64 epoch = 0; epoch < 2000; epoch++)
        {
          RnSampleMeta meta = { .gt_boxes = boxes, .gt_labels = labels };
          RnSample sample = { .meta = &meta, .seed = SEED, .epoch = epoch };

          rn_dataset_plan (sets[s], 0, &sample);
          counts[meta.flip]++;
        }
      for (int flip = 0; flip < 4; flip++)
        g_assert_cmpint (abs (counts[flip] - expected[s][flip]), <, expected[s][flip] == 0 ? 1 : 112);
    }
  test_dir_remove (dir);
}

/* No step changes what another one draws. */
static void
test_steps_are_independent (void)
{
  char *dir = make_rectangle ();
  g_autoptr (RnDataset) alone = open_set (dir, "{type: RandomFlip, flip_ratio: 0.5}, ");
  g_autoptr (RnDataset) together = open_set (
      dir, "{type: PhotoMetricDistortion}, {type: Expand}, {type: MinIoURandomCrop}, {type: RandomFlip, "
           "flip_ratio: 0.5}, ");
  float boxes[2][4];
  int32_t labels[2];

  for (guint64 epoch = 0; epoch < N_EPOCHS; epoch++)
    {
      RnSampleMeta metas[2] = { { .gt_boxes = boxes, .gt_labels = labels },
                                { .gt_boxes = boxes, .gt_labels = labels } };
      RnSample samples[2] = { { .meta = &metas[0], .seed = SEED, .epoch = epoch },
                              { .meta = &metas[1], .seed = SEED, .epoch = epoch } };

      rn_dataset_plan (alone, 0, &samples[0]);
      rn_dataset_plan (together, 0, &samples[1]);
      g_assert_cmpint (metas[0].flip, ==, metas[1].flip);
    }
  test_dir_remove (dir);
}

/* The same key, the same bits; another epoch, others. */
static void
test_deterministic (void)
{
  char *dir = make_rectangle ();
  g_autoptr (RnDataset) dataset = open_set (dir, "{type: PhotoMetricDistortion}, {type: Expand}, "
                                                 "{type: MinIoURandomCrop}, {type: Resize, img_scale: [[100, "
                                                 "80], [200, 150]]}, {type: RandomFlip, flip_ratio: 0.5}, ");
  g_autoptr (RnSampleView) view = open_view (dataset);
  g_autofree guint64 *first = g_new (guint64, N_EPOCHS);
  int n_different = 0;

  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < N_EPOCHS; i++)
      {
        guint64 epoch = (guint64) (pass == 0 ? i : N_EPOCHS - 1 - i);
        const RnSample *sample = load (view, epoch);
        guint64 hash =
            test_hash (TEST_HASH_START, sample->pixels, (gsize) sample->width * sample->height * 3);

        hash = test_hash (hash, sample->gt.boxes, sizeof (float[4]) * sample->gt.n);
        if (pass == 0)
          first[epoch] = hash;
        else
          g_assert_cmphex (first[epoch], ==, hash);
        n_different += pass == 0 && epoch > 0 && hash != first[epoch - 1];
      }
  g_assert_cmpint (n_different, ==, N_EPOCHS - 1);
  test_dir_remove (dir);
}

/* An object of 4 x 4 pixels in a corner, hit by one random part of 40 x 40 in some 5000. */
static void
test_crop_keeps_an_object (void)
{
  char *dir = test_dir_new ();

  test_write_image (dir, "x", 400, 300);
  test_write_xml (dir, "x", 400, 300, TEST_OBJECT ("a", "0", "395", "295", "399", "299"));
  test_write (dir, "ImageSets/Main/train.txt", "x\n", -1);
  g_autoptr (RnDataset) positive = open_set (dir, "{type: RandomCrop, crop_size: [40, 40]}, ");
  g_autoptr (RnDataset) any =
      open_set (dir, "{type: RandomCrop, crop_size: [40, 40], allow_negative_crop: true}, ");
  const RnDataset *sets[2] = { positive, any };
  int n_with[2] = { 0 };
  float boxes[1][4];
  int32_t labels[1];

  for (int s = 0; s < 2; s++)
    for (guint64 epoch = 0; epoch < N_EPOCHS; epoch++)
      {
        RnSampleMeta meta = { .gt_boxes = boxes, .gt_labels = labels };
        RnSample sample = { .meta = &meta, .seed = SEED, .epoch = epoch };

        rn_dataset_plan (sets[s], 0, &sample);
        g_assert_cmpint (meta.img_width, ==, 40);
        n_with[s] += meta.n_gt;
      }
  g_assert_cmpint (n_with[0], ==, N_EPOCHS);
  g_assert_cmpint (n_with[1], <, N_EPOCHS / 2);
  test_dir_remove (dir);
}

/*
 * The object is the whole image, so its overlap with a part is the part's share of the area. Where the first
 * number that is drawn asks for 0.5 (of 50 tries one comes out but for 1 case in 10^4), the part has it.
 */
static void
test_min_iou (void)
{
  char *dir = test_dir_new ();
  int n_asked = 0, n_below = 0;

  test_write_image (dir, "x", 200, 150);
  test_write_xml (dir, "x", 200, 150, TEST_OBJECT ("a", "0", "1", "1", "201", "151"));
  test_write (dir, "ImageSets/Main/train.txt", "x\n", -1);
  g_autoptr (RnDataset) dataset = open_set (dir, "{type: MinIoURandomCrop, min_ious: [0.5]}, ");
  float boxes[1][4];
  int32_t labels[1];

  for (guint64 epoch = 0; epoch < 300; epoch++)
    {
      RnSampleMeta meta = { .gt_boxes = boxes, .gt_labels = labels };
      RnSample sample = { .meta = &meta, .seed = SEED, .epoch = epoch };
      RnRng rng;

      rn_dataset_plan (dataset, 0, &sample);
      double share = (double) meta.img_width * meta.img_height / (200 * 150);
      double ratio = (double) meta.img_height / meta.img_width;
      rn_rng_init (&rng, SEED, RN_STREAM_AUGMENT, (guint32) epoch, 0);
      rn_rng_skip_to (&rng, RN_DRAWS_MIN_IOU_CROP);
      guint64 mode = rn_rng_below (&rng, 3); /* 0.5; 0; the whole image */
      g_assert_cmpint (meta.n_gt, ==, 1);
      g_assert_cmpfloat (meta.img_width, >=, 0.3 * 200 - 1);
      g_assert_true (ratio > 0.48 && ratio < 2.08); /* sides are truncated */
      if (mode == 0)
        g_assert_cmpfloat (share, >=, 0.5);
      if (mode == 2)
        g_assert_cmpfloat (share, ==, 1);
      n_asked += mode == 0;
      n_below += share < 0.5;
    }
  g_assert_cmpint (n_asked, >, 50);
  g_assert_cmpint (n_below, >, 20); /* those of 0 */
  test_dir_remove (dir);
}

static gboolean
is_within (const GArray *ranges, int width, int height)
{
  for (guint i = 0; i < ranges->len; i++)
    {
      const RnSizeRange *range = &g_array_index (ranges, RnSizeRange, i);

      if (width >= range->min_width && width <= range->max_width && height >= range->min_height
          && height <= range->max_height)
        return TRUE;
    }
  return FALSE;
}

/* What is planned lies within what was announced, for images of many ratios. */
static void
test_bounds (void)
{
  static const struct
  {
    const char *steps;
    gboolean exact;
  } cases[] = {
    { "{type: Resize, img_scale: [333, 200]}, {type: Pad, size_divisor: 32}, ", TRUE },
    { "{type: Resize, img_scale: [[333, 160], [333, 320], [100, 77]], multiscale_mode: value}, {type: Pad, "
      "size_divisor: 32}, ",
      TRUE },
    { "{type: Resize, img_scale: [[333, 160], [400, 320]]}, {type: Pad, size_divisor: 32}, ", FALSE },
    { "{type: Resize, img_scale: [333, 200], ratio_range: [0.3, 1.7]}, {type: RandomCrop, crop_size: [200, "
      "220]}, {type: Pad, size_divisor: 32}, ",
      FALSE },
    { "{type: Expand}, {type: MinIoURandomCrop}, {type: Resize, img_scale: [333, 200]}, {type: Pad, "
      "size_divisor: 32}, ",
      FALSE },
    { "{type: Expand}, {type: MinIoURandomCrop}, {type: Resize, img_scale: [300, 200], keep_ratio: false}, ",
      TRUE },
    { "{type: Resize, img_scale: [[100, 60], [300, 200]]}, {type: RandomCrop, crop_type: relative_range, "
      "crop_size: [0.2, 0.7]}, {type: Resize, img_scale: [[100, 100], [300, 200]], override: true}, ",
      FALSE },
    { "{type: RandomCrop, crop_type: absolute_range, crop_size: [20, 90]}, {type: RandomShift}, {type: Pad, "
      "size: [100, 100]}, ",
      TRUE },
    { "{type: MinIoURandomCrop}, {type: Resize, img_scale: [[80, 50], [90, 60], [100, 100]], "
      "multiscale_mode: "
      "value}, ",
      FALSE },
  };
  static const int sizes[][2] = { { 50, 37 }, { 37, 50 }, { 640, 480 }, { 99, 33 }, { 33, 400 }, { 64, 64 } };

  for (gsize c = 0; c < G_N_ELEMENTS (cases); c++)
    for (gsize s = 0; s < G_N_ELEMENTS (sizes); s++)
      {
        g_autofree char *yaml = g_strdup_printf ("{pipeline: [" LOAD "%s" BUNDLE "]}", cases[c].steps);
        GError *error = NULL;
        g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));

        rn_datasets_register ();
        g_autoptr (RnNode) node = rn_config_load_text (yaml, "test.yaml", NULL, &error);
        g_assert_no_error (error);
        g_autoptr (RnPipeline) pipeline = rn_pipeline_new (rn_node_get (node, "pipeline"), FALSE, &error);
        g_assert_no_error (error);
        gsize area = rn_pipeline_bound (pipeline, sizes[s][0], sizes[s][1], ranges);

        for (guint i = 0; i < ranges->len && cases[c].exact; i++)
          {
            const RnSizeRange *range = &g_array_index (ranges, RnSizeRange, i);

            g_assert_cmpint (range->min_width, ==, range->max_width);
            g_assert_cmpint (range->min_height, ==, range->max_height);
          }
        for (guint64 epoch = 0; epoch < 500; epoch++)
          {
            static const float truth_boxes[2][4] = { { 3, 4, 20, 25 }, { 10, 12, 30, 30 } };
            static const int16_t truth_labels[2] = { 0, 1 };
            static const guint8 truth_difficult[2] = { 0, 0 };
            float boxes[2][4];
            int32_t labels[2];
            RnSampleMeta meta = {
              .gt_boxes = boxes, .gt_labels = labels, .ori_width = sizes[s][0], .ori_height = sizes[s][1]
            };
            RnSample sample = { .meta = &meta,
                                .seed = SEED,
                                .epoch = epoch,
                                .truth = { (int) (epoch % 3), truth_boxes, truth_labels, truth_difficult } };

            rn_pipeline_plan (pipeline, &sample);
            g_assert_true (is_within (ranges, meta.pad_width, meta.pad_height));
            for (int i = 0; i < meta.n_gt; i++)
              {
                g_assert_cmpfloat (boxes[i][0], >=, 0);
                g_assert_cmpfloat (boxes[i][2], <=, meta.img_width);
                g_assert_cmpfloat (boxes[i][3], <=, meta.img_height);
              }
            for (int i = 0; i < 6; i++)
              g_assert_cmpuint ((gsize) sample.decisions[i].width * sample.decisions[i].height, <=, area);
          }
      }
}

static void
test_refusals (void)
{
  static const struct
  {
    const char *steps;
    gboolean test_mode;
    const char *message;
  } cases[] = {
    { "{type: Expand}, ", TRUE, "leave it out of a test pipeline" },
    { "{type: PhotoMetricDistortion}, ", TRUE, "leave it out of a test pipeline" },
    { "{type: RandomCrop, crop_size: [10, 10]}, ", TRUE, "leave it out of a test pipeline" },
    { "{type: MinIoURandomCrop}, ", TRUE, "leave it out of a test pipeline" },
    { "{type: RandomShift}, ", TRUE, "leave it out of a test pipeline" },
    { "{type: Resize, img_scale: [[10, 10], [20, 20]]}, ", TRUE, "one img_scale" },
    { "{type: Resize, img_scale: [10, 10], ratio_range: [0.5, 1]}, ", TRUE, "one img_scale" },
    { "{type: Resize, img_scale: [[10, 10], [20, 20], [30, 30]]}, ", FALSE, "multiscale_mode: value" },
    { "{type: Resize, img_scale: [[10, 10], [20, 20]], ratio_range: [0.5, 1]}, ", FALSE, "one img_scale" },
    { "{type: Resize, img_scale: [10, 10], ratio_range: [2, 1]}, ", FALSE, "[low, high]" },
    { "{type: Resize, img_scale: [16000, 10], ratio_range: [1, 2]}, ", FALSE, "longer than" },
    { "{type: Resize, img_scale: [10, 10.5]}, ", FALSE, "whole number" },
    { "{type: RandomFlip, flip_ratio: 0.5, direction: horizntal}, ", FALSE, "is not horizontal" },
    { "{type: RandomFlip, flip_ratio: [0.5, 0.6], direction: [horizontal, vertical]}, ", FALSE,
      "more than 1" },
    { "{type: RandomFlip, flip_ratio: [0.5, 0.1], direction: [vertical]}, ", FALSE, "one for each" },
    { "{type: RandomCrop, crop_size: [0.5, 0.5]}, ", FALSE, "crop_type: relative" },
    { "{type: RandomCrop, crop_size: [50, 50], crop_type: relative}, ", FALSE, "crop_type: absolute" },
    { "{type: RandomCrop, crop_size: [50]}, ", FALSE, "two numbers" },
    { "{type: RandomCrop, crop_size: [60, 50], crop_type: absolute_range}, ", FALSE, "[shortest, longest]" },
    { "{type: Expand, ratio_range: [0.5, 2]}, ", FALSE, "ratio_range" },
    { "{type: Expand, mean: [1, 2]}, ", FALSE, "three numbers" },
    { "{type: Pad}, ", FALSE, "size_divisor or size" },
    { "{type: Pad, size_divisor: 32, size: [1, 1]}, ", FALSE, "one of them" },
    { "{type: Resize, img_scale: [10, 10]}, {type: Resize, img_scale: [20, 10]}, ", FALSE, "override" },
    { "{type: RandomFlip}, {type: RandomFlip}, ", FALSE, "there already" },
    { "{type: Normalize, mean: [0, 0, 0], std: [1, 1, 1]}, {type: Expand}, ", FALSE,
      "Expand cannot come after Normalize" },
    { "{type: PhotoMetricDistorsion}, ", FALSE, "PhotoMetricDistortion" },
  };

  rn_datasets_register ();
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *yaml = g_strdup_printf ("{pipeline: [" LOAD "%s" BUNDLE "]}", cases[i].steps);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) node = rn_config_load_text (yaml, "test.yaml", NULL, &error);

      g_assert_no_error (error);
      g_assert_null (rn_pipeline_new (rn_node_get (node, "pipeline"), cases[i].test_mode, &error));
      g_assert_true (error->domain == RN_CONFIG_ERROR);
      g_assert_true (g_str_has_prefix (error->message, "test.yaml:1:"));
      if (strstr (error->message, cases[i].message) == NULL)
        g_error ("\"%s\" does not contain \"%s\"", error->message, cases[i].message);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/augment/boxes-follow-pixels", test_boxes_follow_pixels);
  g_test_add_func ("/datasets/augment/expand-ground", test_expand_ground);
  g_test_add_func ("/datasets/augment/difficult", test_difficult);
  g_test_add_func ("/datasets/augment/flip-directions", test_flip_directions);
  g_test_add_func ("/datasets/augment/independent", test_steps_are_independent);
  g_test_add_func ("/datasets/augment/deterministic", test_deterministic);
  g_test_add_func ("/datasets/augment/crop-keeps-an-object", test_crop_keeps_an_object);
  g_test_add_func ("/datasets/augment/min-iou", test_min_iou);
  g_test_add_func ("/datasets/augment/bounds", test_bounds);
  g_test_add_func ("/datasets/augment/refusals", test_refusals);
  return g_test_run ();
}
