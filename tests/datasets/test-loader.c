#include "config.h"

#include "datasets/loader.h"
#include "runner/base/error.h"
#include "tests/datasets/util.h"
#include "tests/runner/chrome-trace.h"
#include "tests/tree.h"

#include <runner/engine.h>

#include <string.h>

#define N_IMAGES 11

/* Wide and tall images with a box or two each. */
static char *
make_tree (void)
{
  static const int sizes[][2] = { { 128, 96 }, { 64, 80 }, { 128, 50 }, { 60, 128 } };
  char *dir = test_dir_new ();
  g_autoptr (GString) list = g_string_new (NULL);

  for (int i = 0; i < N_IMAGES; i++)
    {
      g_autofree char *id = g_strdup_printf ("im%d", i);

      test_write_image (dir, id, sizes[i % 4][0], sizes[i % 4][1]);
      test_write_xml (dir, id, sizes[i % 4][0], sizes[i % 4][1],
                      i % 3 == 0 ? TEST_OBJECT ("b", "0", "5", "5", "40", "45")
                              TEST_OBJECT ("a", "0", "20", "10", "60", "50")
                                 : TEST_OBJECT ("c", "0", "10", "10", "45", "40"));
      g_string_append_printf (list, "%s\n", id);
    }
  test_write (dir, "ImageSets/Main/train.txt", list->str, -1);
  return dir;
}

/* Everything that a batch says, pointers aside. */
static guint64
hash_batch (const RnBatch *batch)
{
  guint64 hash = TEST_HASH_START;

  hash = test_hash (hash, &batch->n, sizeof batch->n);
  hash = test_hash (hash, &batch->height, sizeof batch->height);
  hash = test_hash (hash, &batch->width, sizeof batch->width);
  hash = test_hash (hash, batch->pixels, (gsize) 3 * batch->n * batch->height * batch->width);
  hash = test_hash (hash, batch->sizes, sizeof *batch->sizes * batch->n);
  hash = test_hash (hash, batch->table, sizeof *batch->table * batch->n);
  hash = test_hash (hash, &batch->avg_factor, sizeof batch->avg_factor);
  if (batch->labels != NULL)
    hash = test_hash (hash, batch->labels, sizeof (int16_t) * batch->n * batch->n_anchors);
  for (int64_t i = 0; i < batch->n_positives; i++)
    hash = test_hash (hash, &batch->positives[i], sizeof batch->positives[i]);
  for (int i = 0; i < batch->n; i++)
    {
      const RnSampleMeta *meta = &batch->metas[i];

      hash = test_hash (hash, &meta->index, sizeof meta->index);
      hash = test_hash (hash, &meta->flip, sizeof meta->flip);
      hash = test_hash (hash, meta->gt_boxes, sizeof (float[4]) * meta->n_gt);
      hash = test_hash (hash, meta->gt_labels, sizeof (int32_t) * meta->n_gt);
    }
  return hash;
}

static RnLoader *
loader_new (const RnDataset *dataset, RnSampler *sampler, int n_workers, const RnTargetSpec *targets,
            RnOnError on_error)
{
  RnLoaderOptions options = { .n_workers = n_workers, .seed = 4, .on_error = on_error, .targets = targets };
  GError *error = NULL;
  RnLoader *loader = rn_loader_new (dataset, sampler, &options, &error);

  g_assert_no_error (error);
  return loader;
}

/* Hashes of the batches of @epoch from @first on. */
static GArray *
pass (RnLoader *loader, guint64 epoch, int64_t first)
{
  GArray *hashes = g_array_new (FALSE, FALSE, sizeof (guint64));
  const RnBatch *batch;
  GError *error = NULL;

  rn_loader_start (loader, epoch, first);
  while ((batch = rn_loader_next (loader, &error)) != NULL)
    {
      guint64 hash = hash_batch (batch);

      g_array_append_val (hashes, hash);
      rn_loader_release (loader, batch);
    }
  g_assert_no_error (error);
  g_assert_null (rn_loader_next (loader, &error)); /* the end stays the end */
  g_assert_no_error (error);
  return hashes;
}

static void
assert_tail (const GArray *all, guint first, const GArray *tail)
{
  g_assert_cmpint (all->len - first, ==, tail->len);
  for (guint i = 0; i < tail->len; i++)
    g_assert_cmphex (g_array_index (all, guint64, first + i), ==, g_array_index (tail, guint64, i));
}

/* The bits of a batch depend on seed, epoch and number: not on threads, and not on what was loaded before. */
static void
test_deterministic (void)
{
  static const int workers[] = { 0, 1, 3 };
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, 2, 4);
  RnTargetSpec targets = test_targets (3);
  g_autoptr (RnLoader) reference = loader_new (dataset, sampler, 0, &targets, RN_ON_ERROR_FAIL);
  g_autoptr (GArray) first = pass (reference, 0, 0), second = pass (reference, 1, 0);

  g_assert_no_error (error);
  g_assert_cmpint (first->len, ==, rn_loader_n_batches (reference));
  g_assert_cmphex (g_array_index (first, guint64, 0), !=, g_array_index (second, guint64, 0));
  for (gsize w = 0; w < G_N_ELEMENTS (workers); w++)
    {
      g_autoptr (RnLoader) loader = loader_new (dataset, sampler, workers[w], &targets, RN_ON_ERROR_FAIL);

      for (guint k = first->len; k-- > 0;)
        {
          g_autoptr (GArray) tail = pass (loader, 0, k);

          assert_tail (first, k, tail);
        }
      g_autoptr (GArray) again = pass (loader, 1, 0);

      assert_tail (second, 0, again);
      g_assert_cmpint (rn_loader_bytes (loader), >, 0);
    }
  test_dir_remove (dir);
}

/* Labels, positives, their number and the padding fit together. */
static void
test_contents (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_RANDOM, dataset, 3, 4);
  RnTargetSpec targets = test_targets (3);
  g_autoptr (RnLoader) loader = loader_new (dataset, sampler, 2, &targets, RN_ON_ERROR_FAIL);
  const RnBatch *batch;

  g_assert_no_error (error);
  rn_loader_start (loader, 0, 0);
  while ((batch = rn_loader_next (loader, &error)) != NULL)
    {
      int64_t n_positives = 0;
      float avg_factor = 0;

      g_assert_cmpint (batch->n, ==, 3);
      for (int i = 0; i < batch->n; i++)
        {
          const RnSampleMeta *meta = &batch->metas[i];
          const guint8 *pixels = batch->pixels + (gsize) i * 3 * batch->height * batch->width;

          g_assert_cmpint (batch->sizes[i][0], ==, meta->img_height);
          g_assert_cmpint (batch->sizes[i][1], ==, meta->img_width);
          g_assert_cmpint (meta->pad_width, <=, batch->width);
          g_assert_cmpstr (meta->id, ==, rn_dataset_id (dataset, meta->index));
          g_assert_cmpint (meta->n_positives, >, 0); /* every box gets its best anchors at least */
          for (int y = 0; y < batch->height; y++)
            for (int x = y < meta->img_height ? 3 * meta->img_width : 0; x < 3 * batch->width; x++)
              g_assert_cmpint (pixels[y * 3 * batch->width + x], ==, 0);
          n_positives += meta->n_positives;
          avg_factor += (float) MAX (meta->n_positives, 1);
        }
      g_assert_cmpint (n_positives, ==, batch->n_positives);
      g_assert_cmpfloat (avg_factor, ==, batch->avg_factor);
      for (int64_t i = 0; i < batch->n_positives; i++)
        {
          const RnPositive *p = &batch->positives[i];
          int label = batch->labels[p->image * batch->n_anchors + p->anchor];

          g_assert_cmpint (label, >=, 0);
          g_assert_cmpint (label, <, 3);
        }
      rn_loader_release (loader, batch);
    }
  g_assert_no_error (error);
  test_dir_remove (dir);
}

/* Two data sets with a Normalize of their own, and one with none, may meet in a batch. */
static void
test_tables (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  const char *const normalize[] = { "{type: Normalize, mean: [100, 0, 50], std: [50, 2, 4]}, ",
                                    "{type: Normalize, mean: [0, 0, 0], std: [1, 1, 8], to_rgb: false}, ",
                                    "" };
  static const float values[3][3][2] = { { { 100, 0.02f }, { 0, 0.5f }, { 50, 0.25f } },
                                         { { 0, 1 }, { 0, 1 }, { 0, 0.125f } },
                                         { { 0, 1 }, { 0, 1 }, { 0, 1 } } };
  GString *yaml = g_string_new ("{type: ConcatDataset, datasets: [");
  RnDatasetOptions options = { .n_threads = 1, .test_mode = TRUE };

  for (int i = 0; i < 3; i++)
    g_string_append_printf (
        yaml,
        "%s{type: VOCDataset, ann_file: ImageSets/Main/train.txt, img_prefix: ., classes: [a, "
        "b, c], pipeline: [{type: LoadImageFromFile}, %s{type: ImageToTensor, keys: "
        "[img]}, {type: Collect, keys: [img]}]}",
        i > 0 ? ", " : "", normalize[i]);
  g_string_append (yaml, "]}");
  g_autoptr (RnDataset) dataset = test_dataset (dir, yaml->str, &options, &error);
  g_assert_no_error (error);
  /* A batch of all: nothing depends on where the sets meet. */
  g_autoptr (RnSampler) sampler =
      rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, (int) rn_dataset_size (dataset), 0);
  g_autoptr (RnLoader) loader = loader_new (dataset, sampler, 1, NULL, RN_ON_ERROR_FAIL);

  rn_loader_start (loader, 0, 0);
  const RnBatch *batch = rn_loader_next (loader, &error);
  g_assert_no_error (error);
  g_assert_cmpint (batch->n, ==, 3 * N_IMAGES);
  for (int i = 0; i < batch->n; i++)
    {
      const int set = i / N_IMAGES;
      const gsize size = (gsize) 3 * batch->height * batch->width;
      const guint8 *pixels = batch->pixels + (gsize) i * size,
                   *first = batch->pixels + (gsize) (i % N_IMAGES) * size;

      for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
          g_assert_cmpfloat (batch->table[i][c][v], ==, ((float) v - values[set][c][0]) * values[set][c][1]);
      for (gsize k = 0; k < size; k++) /* RGB, then twice BGR */
        g_assert_cmpint (pixels[k], ==, set == 0 ? first[k] : first[k / 3 * 3 + 2 - k % 3]);
    }
  rn_loader_release (loader, batch);
  g_string_free (yaml, TRUE);
  test_dir_remove (dir);
}

static void
test_test_mode (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, TRUE, RN_ON_ERROR_FAIL, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, 1, 0);
  g_autoptr (RnLoader) loader = loader_new (dataset, sampler, 1, NULL, RN_ON_ERROR_FAIL);
  const RnBatch *batch;
  int64_t index = 0;

  g_assert_no_error (error);
  rn_loader_start (loader, 0, 0);
  while ((batch = rn_loader_next (loader, &error)) != NULL)
    {
      g_assert_null (batch->labels);
      g_assert_null (batch->positives);
      g_assert_cmpint (batch->metas[0].index, ==, index++);
      g_assert_cmpint (batch->metas[0].n_gt, ==, 0);
      rn_loader_release (loader, batch);
    }
  g_assert_cmpint (index, ==, N_IMAGES);
  test_dir_remove (dir);
}

/* Cuts the pixels of an image short; its header stays whole, so the scan accepts it. */
static void
damage (const char *dir, const char *id)
{
  g_autofree char *name = g_strdup_printf ("JPEGImages/%s.jpg", id);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autofree char *contents = NULL;
  gsize size;

  g_assert_true (g_file_get_contents (path, &contents, &size, NULL));
  test_write (dir, name, contents, (gssize) (size / 2));
}

static void
test_fail (gconstpointer data)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, 2, 0);
  g_autoptr (RnLoader) loader = loader_new (dataset, sampler, GPOINTER_TO_INT (data), NULL, RN_ON_ERROR_FAIL);

  g_assert_no_error (error);
  damage (dir, "im5");
  rn_loader_start (loader, 0, 0);
  for (int i = 0; i < 2; i++) /* the batches before it arrive */
    {
      const RnBatch *batch = rn_loader_next (loader, &error);

      g_assert_no_error (error);
      rn_loader_release (loader, batch);
    }
  for (int i = 0; i < 2; i++) /* and there is no way past it */
    {
      g_assert_null (rn_loader_next (loader, &error));
      g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
      g_assert_nonnull (strstr (error->message, "im5.jpg: JPEG:"));
      g_clear_error (&error);
    }
  rn_loader_start (loader, 0, 3);
  g_assert_nonnull (rn_loader_next (loader, &error));
  g_assert_no_error (error);
  test_dir_remove (dir);
}

/* How many warnings there are depends on the random order. */
static void
ignore_message (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
}

/* A skipped training sample becomes the next of its group, the same on every path to its batch. */
static void
test_skip_train (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_SKIP, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, 2, 4);
  RnTargetSpec targets = test_targets (3);
  g_autoptr (RnLoader) one = loader_new (dataset, sampler, 0, &targets, RN_ON_ERROR_SKIP);
  g_autoptr (RnLoader) three = loader_new (dataset, sampler, 3, &targets, RN_ON_ERROR_SKIP);
  g_autoptr (GArray) all = NULL, again = NULL;
  int64_t per_pass;
  GLogLevelFlags fatal;
  guint handler;

  g_assert_no_error (error);
  damage (dir, "im4");
  damage (dir, "im6"); /* the next of im4's group: two in a row */
  fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK);
  handler = g_log_set_handler ("rn-data", G_LOG_LEVEL_WARNING, ignore_message, NULL);
  all = pass (one, 0, 0);
  per_pass = rn_loader_n_skipped (one);
  g_assert_cmpint (per_pass, >=, 2);
  again = pass (three, 0, 0);
  assert_tail (all, 0, again);
  g_assert_cmpint (rn_loader_n_skipped (three), ==, per_pass);
  for (guint k = 0; k < all->len; k++)
    {
      g_autoptr (GArray) tail = pass (three, 0, k);

      assert_tail (all, k, tail);
    }
  g_log_remove_handler ("rn-data", handler);
  g_log_set_always_fatal (fatal);
  test_dir_remove (dir);
}

/* In a test run a skipped image is left out, and the others keep their places. */
static void
test_skip_test (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, TRUE, RN_ON_ERROR_SKIP, &error);
  const RnBatch *batch;

  g_assert_no_error (error);
  damage (dir, "im0");
  damage (dir, "im5");
  for (int batch_size = 1; batch_size <= 2; batch_size++)
    {
      g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, batch_size, 0);
      g_autoptr (RnLoader) loader = loader_new (dataset, sampler, 2, NULL, RN_ON_ERROR_SKIP);
      int n = 0;

      for (int i = 0; i < 2; i++)
        g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*skipped*");
      rn_loader_start (loader, 0, 0);
      while ((batch = rn_loader_next (loader, &error)) != NULL)
        {
          g_assert_cmpint (batch->n, >, 0);
          for (int i = 0; i < batch->n; i++)
            {
              g_assert_cmpint (batch->metas[i].index, !=, 0);
              g_assert_cmpint (batch->metas[i].index, !=, 5);
              n++;
            }
          rn_loader_release (loader, batch);
        }
      g_assert_no_error (error);
      g_assert_cmpint (n, ==, N_IMAGES - 2);
      g_test_assert_expected_messages ();
    }
  test_dir_remove (dir);
}

/* Nothing readable is left: an error, not an endless search. */
static void
test_skip_all (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_SKIP, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, 2, 4);
  g_autoptr (RnLoader) loader = loader_new (dataset, sampler, 0, NULL, RN_ON_ERROR_SKIP);

  g_assert_no_error (error);
  for (int i = 0; i < N_IMAGES; i++)
    {
      g_autofree char *id = g_strdup_printf ("im%d", i);

      damage (dir, id);
    }
  for (int i = 0; i < N_IMAGES - 1; i++)
    g_test_expect_message ("rn-data", G_LOG_LEVEL_WARNING, "*skipped*");
  rn_loader_start (loader, 0, 0);
  g_assert_null (rn_loader_next (loader, &error));
  g_assert_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT);
  g_test_assert_expected_messages ();
  g_error_free (error);
  test_dir_remove (dir);
}

/* Freed or restarted with batches under way, lent or waiting: no deadlock, no use after free. */
static void
test_stop_anywhere (void)
{
  char *dir = make_tree ();
  GError *error = NULL;
  g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_GROUP, dataset, 2, 4);
  RnTargetSpec targets = test_targets (3);

  g_assert_no_error (error);
  for (int n_workers = 0; n_workers <= 3; n_workers++)
    for (int n_taken = 0; n_taken < 6; n_taken++)
      {
        g_autoptr (RnLoader) loader = loader_new (dataset, sampler, n_workers, &targets, RN_ON_ERROR_FAIL);

        g_assert_null (rn_loader_next (loader, NULL)); /* not started */
        for (guint64 epoch = 0; epoch < 2; epoch++)
          {
            rn_loader_start (loader, epoch, 0);
            for (int i = 0; i < n_taken; i++)
              {
                const RnBatch *batch = rn_loader_next (loader, &error);

                g_assert_nonnull (batch);
                if (i < n_taken - 1)
                  rn_loader_release (loader, batch);
              }
          }
      }
  test_dir_remove (dir);
}

/* As free () does. */
static void
test_free_null (void)
{
  rn_loader_free (NULL);
  rn_sampler_free (NULL);
  rn_dataset_free (NULL);
}

/* Spans of @category and @name that lie inside one of @category and @around, in the same thread. */
static guint
count_inside (const ChromeTrace *trace, const char *category, const char *name, const char *around)
{
  guint n = 0;

  for (guint i = 0; i < trace->spans->len; i++)
    {
      const ChromeSpan *span = g_ptr_array_index (trace->spans, i);
      gboolean is_inside = FALSE;
      if (strcmp (span->category, category) != 0 || strcmp (span->name, name) != 0)
        continue;
      for (guint k = 0; k < trace->spans->len && !is_inside; k++)
        {
          const ChromeSpan *outer = g_ptr_array_index (trace->spans, k);
          is_inside = strcmp (outer->name, around) == 0 && outer->thread == span->thread
                      && outer->start <= span->start && outer->end >= span->end;
        }
      n += is_inside;
    }
  return n;
}

/* A pass in a trace: each sample with its file and its transforms, in its batch; in the thread that did it.
 */
static void
test_trace (gconstpointer data)
{
  int n_workers = GPOINTER_TO_INT (data);
  char *dir = make_tree ();
  g_autofree char *out = g_dir_make_tmp ("rn-loader-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (out, "trace.json", NULL);
  GError *error = NULL;
  RnTraceOptions options = { 100000, FALSE, FALSE };
  guint n_batches;

  {
    g_autoptr (RnDataset) dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
    g_autoptr (RnSampler) sampler = rn_sampler_new (RN_SAMPLER_SEQUENTIAL, dataset, 2, 4);
    RnTargetSpec targets = test_targets (3);
    g_assert_true (rn_trace_start (&options));
    g_autoptr (RnLoader) loader = loader_new (dataset, sampler, n_workers, &targets, RN_ON_ERROR_FAIL);
    g_autoptr (GArray) hashes = pass (loader, 0, 0);
    n_batches = hashes->len;
  }
  rn_trace_stop ();
  g_assert_true (rn_trace_write (path, &error));
  rn_trace_clear ();
  g_autoptr (ChromeTrace) trace = chrome_trace_read (path);

  g_assert_cmpuint (chrome_trace_count (trace, "loader", "sample"), ==, N_IMAGES);
  g_assert_cmpuint (count_inside (trace, "loader", "sample", "batch"), ==, N_IMAGES);
  g_assert_cmpuint (count_inside (trace, "loader", "LoadImageFromFile", "sample"), ==, N_IMAGES);
  g_assert_cmpuint (count_inside (trace, "loader", "Normalize", "sample"), ==, N_IMAGES);
  g_assert_cmpuint (count_inside (trace, "loader", "targets", "batch"), ==, n_batches);
  /* pass asks twice for what comes behind the last batch. */
  g_assert_cmpuint (chrome_trace_count (trace, "phase", "data"), ==, n_batches + 2);
  g_assert_cmpuint (count_inside (trace, "loader", "batch", "data"), ==, n_workers == 0 ? n_batches : 0);
  const ChromeSpan *sample = chrome_trace_find (trace, "loader", "sample");
  g_assert_true (g_str_has_prefix (sample->file, dir));
  g_assert_cmpstr (g_ptr_array_index (trace->thread_names, (guint) sample->thread), ==,
                   n_workers == 0 ? "main" : "loader");
  remove_tree (out);
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/loader/deterministic", test_deterministic);
  g_test_add_func ("/datasets/loader/contents", test_contents);
  g_test_add_func ("/datasets/loader/tables", test_tables);
  g_test_add_func ("/datasets/loader/test-mode", test_test_mode);
  g_test_add_data_func ("/datasets/loader/fail/0", GINT_TO_POINTER (0), test_fail);
  g_test_add_data_func ("/datasets/loader/fail/2", GINT_TO_POINTER (2), test_fail);
  g_test_add_func ("/datasets/loader/skip/test", test_skip_test);
  g_test_add_func ("/datasets/loader/skip/all", test_skip_all);
  g_test_add_func ("/datasets/loader/skip/train", test_skip_train);
  g_test_add_func ("/datasets/loader/stop-anywhere", test_stop_anywhere);
  g_test_add_data_func ("/datasets/loader/trace/0", GINT_TO_POINTER (0), test_trace);
  g_test_add_data_func ("/datasets/loader/trace/2", GINT_TO_POINTER (2), test_trace);
  g_test_add_func ("/datasets/loader/free-null", test_free_null);
  return g_test_run ();
}
