#include "config.h"

#include "datasets/dataset-private.h"
#include "datasets/sampler.h"
#include "tests/datasets/util.h"

#include <string.h>

/* @n_wide of group 1 among @n indices, spread by a fixed rule. */
static guint8 *
groups_new (int64_t n, int64_t n_wide)
{
  guint8 *groups = g_new0 (guint8, n);

  for (int64_t i = 0; i < n_wide; i++)
    groups[i * n / n_wide] = 1;
  return groups;
}

/*
 * VOC 2007 and 2012 three times over: 49,653 images are odd, so exactly one of the two groups is odd and an
 * epoch has 24,827 batches of two, whatever the split between the groups.
 */
static void
test_voc_length (void)
{
  static const int64_t n_wide[] = { 1, 2, 12345, 35000, 49652 };

  for (gsize i = 0; i < G_N_ELEMENTS (n_wide); i++)
    {
      g_autofree guint8 *groups = groups_new (49653, n_wide[i]);
      g_autoptr (RnSampler) sampler = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 49653, 2, 0);

      g_assert_cmpint (rn_sampler_n_batches (sampler), ==, 24827);
    }
}

/* Every index comes once, but for the repeats that fill a group; no batch mixes groups. */
static void
test_group (void)
{
  g_autofree guint8 *groups = groups_new (103, 41);
  g_autoptr (RnSampler) sampler = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 103, 4, 5);
  int seen[103] = { 0 }, switches = 0, last = -1;

  g_assert_cmpint (rn_sampler_n_batches (sampler), ==, 11 + 16); /* 41 and 62 by fours, rounded up */
  for (int64_t i = 0; i < 27; i++)
    {
      int64_t indices[4];

      g_assert_cmpint (rn_sampler_batch (sampler, 0, i, indices), ==, 4);
      for (int k = 0; k < 4; k++)
        {
          g_assert_cmpint (groups[indices[k]], ==, groups[indices[0]]);
          seen[indices[k]]++;
        }
      switches += last >= 0 && groups[indices[0]] != last;
      last = groups[indices[0]];
    }
  for (int g = 0; g < 2; g++)
    {
      int repeats = 0;

      for (int i = 0; i < 103; i++)
        if (groups[i] == g)
          {
            g_assert_cmpint (seen[i], >=, 1);
            repeats += seen[i] - 1;
          }
      g_assert_cmpint (repeats, ==, g == 1 ? 3 : 2);
    }
  g_assert_cmpint (switches, >, 1); /* the batches are mixed, not one group after the other */
}

/* The order depends on seed and epoch and on nothing else: not on what was asked before. */
static void
test_state (void)
{
  g_autofree guint8 *groups = groups_new (50, 20);
  g_autoptr (RnSampler) a = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 50, 2, 9);
  g_autoptr (RnSampler) b = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 50, 2, 9);
  g_autoptr (RnSampler) other = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 50, 2, 10);
  int same_epoch = 0, same_seed = 0;

  for (int64_t i = 0; i < 25; i++)
    {
      int64_t x[2], y[2], next[2], seed[2];

      rn_sampler_batch (a, 3, i, x);
      rn_sampler_batch (b, 4, 24 - i, next);
      rn_sampler_batch (b, 3, i, y);
      rn_sampler_batch (b, 4, i, next);
      rn_sampler_batch (other, 3, i, seed);
      g_assert_cmpmem (x, sizeof x, y, sizeof y);
      same_epoch += memcmp (x, next, sizeof x) == 0;
      same_seed += memcmp (x, seed, sizeof x) == 0;
    }
  g_assert_cmpint (same_epoch, <, 5);
  g_assert_cmpint (same_seed, <, 5);
}

static void
test_sequential (void)
{
  g_autofree guint8 *groups = groups_new (7, 3);
  g_autoptr (RnSampler) sampler = rn_sampler_new_from_groups (RN_SAMPLER_SEQUENTIAL, groups, 7, 3, 0);
  int64_t indices[3];

  g_assert_cmpint (rn_sampler_n_batches (sampler), ==, 3);
  g_assert_cmpint (rn_sampler_batch (sampler, 0, 1, indices), ==, 3);
  g_assert_cmpint (indices[0], ==, 3);
  g_assert_cmpint (rn_sampler_batch (sampler, 0, 2, indices), ==, 1);
  g_assert_cmpint (indices[0], ==, 6);
}

static void
test_next_in_group (void)
{
  static const guint8 groups[] = { 0, 1, 0, 0, 0 };
  g_autoptr (RnSampler) sampler = rn_sampler_new_from_groups (RN_SAMPLER_GROUP, groups, 5, 2, 0);

  g_assert_cmpint (rn_sampler_next_in_group (sampler, 0), ==, 2);
  g_assert_cmpint (rn_sampler_next_in_group (sampler, 4), ==, 0);
  g_assert_cmpint (rn_sampler_next_in_group (sampler, 1), ==, 1);
}

/* ---- Shapes: what is listed against every batch that can be put together ---- */

static RnDataset *
shapes_dataset (const char *dir)
{
  /* Wide, tall and square, of several padded shapes each. */
  static const int sizes[][2] = { { 128, 96 }, { 90, 80 },  { 128, 50 }, { 128, 50 },
                                  { 80, 128 }, { 50, 128 }, { 64, 64 } };
  g_autoptr (GString) list = g_string_new (NULL);
  GError *error = NULL;
  RnDataset *dataset;

  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autofree char *id = g_strdup_printf ("%d", (int) i);

      test_write_image (dir, id, sizes[i][0], sizes[i][1]);
      test_write_xml (dir, id, sizes[i][0], sizes[i][1], TEST_OBJECT ("a", "0", "1", "1", "20", "20"));
      g_string_append_printf (list, "%s\n", id);
    }
  test_write (dir, "ImageSets/Main/train.txt", list->str, -1);
  dataset = test_voc (dir, FALSE, RN_ON_ERROR_FAIL, &error);
  g_assert_no_error (error);
  return dataset;
}

/* Of an image in no batch, from the bounds: there is one exact size. */
static void
padded_size (const RnDataset *dataset, int64_t index, int *height, int *width)
{
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));

  rn_dataset_bound (dataset, index, ranges);
  g_assert_cmpuint (ranges->len, ==, 1);
  *height = g_array_index (ranges, RnSizeRange, 0).max_height;
  *width = g_array_index (ranges, RnSizeRange, 0).max_width;
}

static int
by_area (gconstpointer a, gconstpointer b)
{
  const RnBatchShape *x = a, *y = b;
  int areas = x->height * x->width - y->height * y->width;

  return areas != 0 ? areas : x->height - y->height;
}

/* All batches of two images of the sampler's epochs 0 to 199: with seven images every pair turns up. */
static GArray *
shapes_seen (RnSampler *sampler, const RnDataset *dataset, int batch_size)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnBatchShape));
  guint kept = 0;

  for (guint64 epoch = 0; epoch < 200; epoch++)
    for (int64_t i = 0; i < rn_sampler_n_batches (sampler); i++)
      {
        int64_t indices[4];
        int n = rn_sampler_batch (sampler, epoch, i, indices);
        RnBatchShape shape = { 0, 0 };

        g_assert_cmpint (n, <=, batch_size);
        for (int k = 0; k < n; k++)
          {
            int height, width;

            padded_size (dataset, indices[k], &height, &width);
            shape.height = MAX (shape.height, height);
            shape.width = MAX (shape.width, width);
          }
        g_array_append_val (shapes, shape);
      }
  g_array_sort (shapes, by_area);
  for (guint i = 0; i < shapes->len; i++)
    if (kept == 0
        || by_area (&g_array_index (shapes, RnBatchShape, kept - 1), &g_array_index (shapes, RnBatchShape, i))
               != 0)
      g_array_index (shapes, RnBatchShape, kept++) = g_array_index (shapes, RnBatchShape, i);
  g_array_set_size (shapes, kept);
  return shapes;
}

static void
test_shapes (void)
{
  char *dir = test_dir_new ();
  g_autoptr (RnDataset) dataset = shapes_dataset (dir);

  for (int kind = RN_SAMPLER_GROUP; kind <= RN_SAMPLER_SEQUENTIAL; kind++)
    for (int batch_size = 1; batch_size <= 4; batch_size++)
      {
        g_autoptr (RnSampler) sampler = rn_sampler_new ((RnSamplerKind) kind, dataset, batch_size, 3);
        g_autoptr (GArray) seen = shapes_seen (sampler, dataset, batch_size);
        guint n;
        gboolean is_rounded = TRUE;
        g_autofree RnBatchShape *listed = rn_sampler_batch_shapes (sampler, dataset, &n, &is_rounded);
        gsize at = 0;

        g_assert_false (is_rounded);
        /* Nothing is missed. Repeats are drawn at random, so a rare one may be listed and not seen. */
        for (guint i = 0; i < seen->len; i++)
          {
            while (at < n && by_area (&listed[at], &g_array_index (seen, RnBatchShape, i)) != 0)
              at++;
            g_assert_cmpint (at, <, n);
          }
        if (batch_size <= 2)
          g_assert_cmpint (n, ==, seen->len);
      }
  test_dir_remove (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/datasets/sampler/voc-length", test_voc_length);
  g_test_add_func ("/datasets/sampler/group", test_group);
  g_test_add_func ("/datasets/sampler/state", test_state);
  g_test_add_func ("/datasets/sampler/sequential", test_sequential);
  g_test_add_func ("/datasets/sampler/next-in-group", test_next_in_group);
  g_test_add_func ("/datasets/sampler/shapes", test_shapes);
  return g_test_run ();
}
