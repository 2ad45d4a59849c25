/*
 * Batches of images whose sizes are drawn: every batch has one of the few shapes that were announced, on
 * every path to it.
 */
#include "config.h"

#include "datasets/batch-shapes.h"
#include "datasets/dataset-private.h"
#include "tests/datasets/util.h"

#include <string.h>

#define N_IMAGES 12
#define BATCH 3
#define SEED 4

#define PIPELINE(steps)                                                                                   \
  "[{type: LoadImageFromFile}, {type: LoadAnnotations}, " steps                                           \
  "{type: RandomFlip, flip_ratio: 0.5}, {type: Normalize, mean: [0, 0, 0], std: [1, 1, 1]}, {type: Pad, " \
  "size_divisor: 32}, {type: DefaultFormatBundle}, {type: Collect, keys: [img, gt_bboxes, gt_labels]}]"

static const char *const random_pipelines[] = {
  PIPELINE ("{type: Resize, img_scale: [[200, 80], [200, 160]]}, "),
  PIPELINE ("{type: Resize, img_scale: [200, 100], ratio_range: [0.5, 1.5]}, {type: RandomCrop, crop_size: "
            "[128, 128]}, "),
  PIPELINE ("{type: PhotoMetricDistortion}, {type: Expand}, {type: MinIoURandomCrop}, {type: Resize, "
            "img_scale: [160, 120]}, "),
  PIPELINE (
      "{type: Resize, img_scale: [[200, 64], [200, 96], [200, 128], [200, 160], [200, 192], [230, 192]], "
      "multiscale_mode: value}, "),
};

/* Images of several ratios, landscape and portrait; or all of one size. */
static char *
make_tree (gboolean one_size)
{
  static const int sizes[][2] = { { 120, 90 }, { 90, 120 }, { 160, 64 }, { 100, 100 }, { 64, 150 } };
  char *dir = test_dir_new ();
  g_autoptr (GString) list = g_string_new (NULL);

  for (int i = 0; i < N_IMAGES; i++)
    {
      const int *size = sizes[one_size ? 0 : i % (int) G_N_ELEMENTS (sizes)];
      g_autofree char *id = g_strdup_printf ("im%d", i);

      test_write_image (dir, id, size[0], size[1]);
      test_write_xml (dir, id, size[0], size[1],
                      TEST_OBJECT ("a", "0", "5", "5", "40", "45")
                          TEST_OBJECT ("b", "0", "30", "20", "60", "60"));
      g_string_append_printf (list, "%s\n", id);
    }
  test_write (dir, "ImageSets/Main/train.txt", list->str, -1);
  return dir;
}

static RnDataset *
open_set (const char *dir, const char *pipeline)
{
  RnDatasetOptions options = { .n_threads = 1 };
  GError *error = NULL;
  g_autofree char *yaml =
      g_strdup_printf ("{type: RepeatDataset, times: 2, dataset: {type: VOCDataset, ann_file: "
                       "ImageSets/Main/train.txt, img_prefix: ., classes: [a, b], pipeline: "
                       "%s}}",
                       pipeline);
  RnDataset *dataset = test_dataset (dir, yaml, &options, &error);

  g_assert_no_error (error);
  return dataset;
}

static guint64
hash_batch (const RnBatch *batch)
{
  guint64 hash = test_hash (TEST_HASH_START, &batch->height, sizeof batch->height);

  hash = test_hash (hash, &batch->width, sizeof batch->width);
  hash = test_hash (hash, batch->pixels, (gsize) 3 * batch->n * batch->height * batch->width);
  hash = test_hash (hash, batch->sizes, sizeof *batch->sizes * batch->n);
  hash = test_hash (hash, batch->labels, sizeof (int16_t) * batch->n * batch->n_anchors);
  for (int i = 0; i < batch->n; i++)
    hash = test_hash (hash, batch->metas[i].gt_boxes, sizeof (float[4]) * batch->metas[i].n_gt);
  return hash;
}

/* That the batch has one of @shapes, the smallest that holds its images. */
static void
check_shape (const RnBatch *batch, const RnBatchShape *shapes, guint n, guint *used)
{
  int height = 0, width = 0;

  for (int i = 0; i < batch->n; i++)
    {
      height = MAX (height, batch->metas[i].pad_height);
      width = MAX (width, batch->metas[i].pad_width);
    }
  const RnBatchShape *shape = rn_batch_shape_find (shapes, n, height, width);
  g_assert_nonnull (shape);
  g_assert_cmpint (batch->height, ==, shape->height);
  g_assert_cmpint (batch->width, ==, shape->width);
  used[shape - shapes]++;
}

/* Hashes of the batches of @epoch from @first on, added to @hashes. */
static void
pass (const RnDataset *dataset, RnSampler *sampler, int n_workers, guint64 epoch, int64_t first,
      GArray *hashes, guint *used)
{
  RnTargetSpec targets = test_targets (2);
  RnLoaderOptions options = { .n_workers = n_workers, .seed = SEED, .targets = &targets };
  GError *error = NULL;
  g_autoptr (RnLoader) loader = rn_loader_new (dataset, sampler, &options, &error);
  guint n;
  g_autofree RnBatchShape *shapes = rn_sampler_batch_shapes (sampler, dataset, &n, NULL);
  const RnBatch *batch;

  g_assert_no_error (error);
  rn_loader_start (loader, epoch, first);
  while ((batch = rn_loader_next (loader, &error)) != NULL)
    {
      guint64 hash = hash_batch (batch);

      check_shape (batch, shapes, n, used);
      g_array_append_val (hashes, hash);
      rn_loader_release (loader, batch);
    }
  g_assert_no_error (error);
}

static void
test_loader (gconstpointer data)
{
  char *dir = make_tree (FALSE);
  g_autoptr (RnDataset) dataset = open_set (dir, data);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, BATCH, SEED);
  guint used[RN_MAX_RANDOM_SHAPES] = { 0 }, n_used = 0, n;
  gboolean is_rounded = FALSE;
  g_autofree RnBatchShape *shapes = rn_sampler_batch_shapes (sampler, dataset, &n, &is_rounded);

  g_assert_true (is_rounded);
  g_assert_cmpuint (n, <=, RN_MAX_RANDOM_SHAPES);
  for (guint64 epoch = 0; epoch < 6; epoch++)
    {
      g_autoptr (GArray) straight = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_autoptr (GArray) threaded = g_array_new (FALSE, FALSE, sizeof (guint64));
      g_autoptr (GArray) tail = g_array_new (FALSE, FALSE, sizeof (guint64));

      pass (dataset, sampler, 0, epoch, 0, straight, used);
      pass (dataset, sampler, 3, epoch, 0, threaded, used);
      pass (dataset, sampler, 1, epoch, 4, tail, used);
      g_assert_cmpint (straight->len, ==, rn_sampler_n_batches (sampler));
      g_assert_cmpmem (straight->data, 8 * straight->len, threaded->data, 8 * threaded->len);
      g_assert_cmpmem (straight->data + 8 * 4, 8 * (straight->len - 4), tail->data, 8 * tail->len);
    }
  for (guint i = 0; i < n; i++)
    n_used += used[i] > 0;
  g_assert_cmpuint (n_used, >=, 3); /* and not always the largest */
  test_dir_remove (dir);
}

/* Whatever is drawn in many epochs fits, with batches of one image too, whose shapes are held otherwise. */
static void
test_covers (void)
{
  char *dir = make_tree (FALSE);

  for (gsize p = 0; p < G_N_ELEMENTS (random_pipelines); p++)
    for (int batch_size = 1; batch_size <= 4; batch_size += 3)
      {
        g_autoptr (RnDataset) dataset = open_set (dir, random_pipelines[p]);
        g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, batch_size, SEED);
        guint n;
        g_autofree RnBatchShape *shapes = rn_sampler_batch_shapes (sampler, dataset, &n, NULL);

        g_assert_cmpuint (n, <=, RN_MAX_RANDOM_SHAPES);
        for (guint64 epoch = 0; epoch < 200; epoch++)
          for (int64_t i = 0; i < rn_sampler_n_batches (sampler); i++)
            {
              int64_t indices[4];
              int height = 0, width = 0, n_batch = rn_sampler_batch (sampler, epoch, i, indices);

              for (int k = 0; k < n_batch; k++)
                {
                  float boxes[2][4];
                  int32_t labels[2];
                  RnSampleMeta meta = { .gt_boxes = boxes, .gt_labels = labels };
                  RnSample sample = { .meta = &meta, .seed = SEED, .epoch = epoch };

                  rn_dataset_plan (dataset, indices[k], &sample);
                  height = MAX (height, meta.pad_height);
                  width = MAX (width, meta.pad_width);
                }
              g_assert_nonnull (rn_batch_shape_find (shapes, n, height, width));
            }
      }
  test_dir_remove (dir);
}

/* Few scales for images of one size: their shapes and no others. */
static void
test_few_values (void)
{
  char *dir = make_tree (TRUE);
  g_autoptr (RnDataset) dataset = open_set (
      dir,
      PIPELINE ("{type: Resize, img_scale: [[200, 96], [200, 128], [200, 90]], multiscale_mode: value}, "));
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, BATCH, SEED);
  guint n;
  gboolean is_rounded = TRUE;
  g_autofree RnBatchShape *shapes = rn_sampler_batch_shapes (sampler, dataset, &n, &is_rounded);

  g_assert_false (is_rounded);
  g_assert_cmpuint (n, ==, 2); /* 90 and 96 are padded to the same */
  g_assert_true (shapes[0].height == 96 && shapes[0].width == 128);
  g_assert_true (shapes[1].height == 128 && shapes[1].width == 192);

  /* In order, both images have both sizes, and the larger is planned. */
  g_autoptr (RnSampler) in_order = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, 1, SEED);
  g_autofree RnBatchShape *largest = rn_sampler_batch_shapes (in_order, dataset, &n, &is_rounded);
  g_assert_true (is_rounded);
  g_assert_cmpuint (n, ==, 1);
  g_assert_true (largest[0].height == 128 && largest[0].width == 192);
  test_dir_remove (dir);
}

/* The seed of the run has no say in its memory. */
static void
test_seed (void)
{
  char *dir = make_tree (FALSE);
  g_autoptr (RnDataset) dataset = open_set (dir, random_pipelines[0]);
  g_autoptr (RnSampler) a = rn_sampler_new (RN_SAMPLER_GROUP, dataset, BATCH, 1);
  g_autoptr (RnSampler) b = rn_sampler_new (RN_SAMPLER_GROUP, dataset, BATCH, 2);
  guint n_a, n_b;
  g_autofree RnBatchShape *shapes_a = rn_sampler_batch_shapes (a, dataset, &n_a, NULL);
  g_autofree RnBatchShape *shapes_b = rn_sampler_batch_shapes (b, dataset, &n_b, NULL);

  g_assert_cmpuint (n_a, ==, n_b);
  g_assert_true (memcmp (shapes_a, shapes_b, n_a * sizeof *shapes_a) == 0);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (random_pipelines); i++)
    {
      g_autofree char *name = g_strdup_printf ("/datasets/random-sizes/loader/%u", (guint) i);

      g_test_add_data_func (name, random_pipelines[i], test_loader);
    }
  g_test_add_func ("/datasets/random-sizes/covers", test_covers);
  g_test_add_func ("/datasets/random-sizes/few-values", test_few_values);
  g_test_add_func ("/datasets/random-sizes/seed", test_seed);
  return g_test_run ();
}
