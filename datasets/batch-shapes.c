/*
 * batch-shapes.c: which padded shapes the batches of a run can have, known before its first batch. See
 * docs/design/random-sizes.md.
 */
#include "config.h"

#include "datasets/batch-shapes.h"
#include "datasets/dataset-private.h"

#define MAX_RANDOM_SIZES 512 /* of a group, above which their shapes are not worth listing */
#define MAX_COVERS 3         /* of a group, where batches are single images */

/* Images of one group that have one padded size. */
typedef struct
{
  RnBatchShape shape;
  int64_t count;
} SizeCount;

static int
compare_shapes (gconstpointer a, gconstpointer b)
{
  const RnBatchShape *x = a, *y = b;
  gint64 difference = (gint64) x->height * x->width - (gint64) y->height * y->width;

  if (difference == 0)
    difference = x->height - y->height;
  return difference < 0 ? -1 : difference > 0;
}

/* Merges equal neighbours of the sorted @sizes. */
static void
merge_sizes (GArray *sizes)
{
  SizeCount *items = (SizeCount *) (gpointer) sizes->data;
  guint kept = 0;

  for (guint i = 0; i < sizes->len; i++)
    if (kept > 0 && compare_shapes (&items[kept - 1], &items[i]) == 0)
      items[kept - 1].count += items[i].count;
    else
      items[kept++] = items[i];
  g_array_set_size (sizes, kept);
}

/*
 * The sizes that images of @group can come to. @exact becomes FALSE when one is not known exactly, @random
 * when an image has several.
 */
static GArray *
sizes_of_group (const RnSampler *sampler, const RnDataset *dataset, guint8 group, gboolean *exact,
                gboolean *random)
{
  GArray *sizes = g_array_new (FALSE, FALSE, sizeof (SizeCount));
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));

  for (int64_t i = 0; i < sampler->n; i++)
    if (sampler->groups[i] == group)
      {
        g_array_set_size (ranges, 0);
        rn_dataset_bound (dataset, i, ranges);
        *random |= ranges->len > 1;
        for (guint k = 0; k < ranges->len; k++)
          {
            const RnSizeRange *range = &g_array_index (ranges, RnSizeRange, k);
            SizeCount item = { { range->max_height, range->max_width }, 1 };

            *exact &= range->min_height == range->max_height && range->min_width == range->max_width;
            g_array_append_val (sizes, item);
          }
      }
  g_array_sort (sizes, compare_shapes);
  merge_sizes (sizes);
  return sizes;
}

/*
 * Whether a batch can have exactly @shape: some image has its height, some its width, none exceeds it, and
 * there are enough of these for a batch, unless repeats may fill it.
 */
static gboolean
can_form (const GArray *sizes, RnBatchShape shape, int batch_size, gboolean repeats)
{
  gboolean height = FALSE, width = FALSE, both = FALSE;
  int64_t fitting = 0;

  for (guint i = 0; i < sizes->len; i++)
    {
      const SizeCount *item = &g_array_index (sizes, SizeCount, i);

      if (item->shape.height > shape.height || item->shape.width > shape.width)
        continue;
      fitting += item->count;
      height |= item->shape.height == shape.height;
      width |= item->shape.width == shape.width;
      both |= item->shape.height == shape.height && item->shape.width == shape.width;
    }
  return (batch_size == 1 ? both : height && width) && (fitting >= batch_size || repeats);
}

static int
compare_ints (gconstpointer a, gconstpointer b)
{
  return *(const int *) a - *(const int *) b;
}

void
rn_sides_make_distinct (GArray *sides)
{
  guint kept = 0;

  g_array_sort (sides, compare_ints);
  for (guint i = 0; i < sides->len; i++)
    if (kept == 0 || g_array_index (sides, int, kept - 1) != g_array_index (sides, int, i))
      g_array_index (sides, int, kept++) = g_array_index (sides, int, i);
  g_array_set_size (sides, kept);
}

/* The distinct heights or widths in @sizes, ascending. (transfer full) */
static GArray *
distinct_sides (const GArray *sizes, gboolean of_height)
{
  GArray *sides = g_array_new (FALSE, FALSE, sizeof (int));

  for (guint i = 0; i < sizes->len; i++)
    {
      const RnBatchShape *shape = &g_array_index (sizes, SizeCount, i).shape;

      g_array_append_val (sides, *(of_height ? &shape->height : &shape->width));
    }
  rn_sides_make_distinct (sides);
  return sides;
}

static void
add_exact_shapes (const RnSampler *sampler, guint8 group, const GArray *sizes, GArray *shapes)
{
  g_autoptr (GArray) heights = distinct_sides (sizes, TRUE);
  g_autoptr (GArray) widths = distinct_sides (sizes, FALSE);
  gboolean repeats = sampler->group_size[group] % sampler->batch_size != 0;

  for (guint h = 0; h < heights->len; h++)
    for (guint w = 0; w < widths->len; w++)
      {
        RnBatchShape shape = { g_array_index (heights, int, h), g_array_index (widths, int, w) };

        if (can_form (sizes, shape, sampler->batch_size, repeats))
          g_array_append_val (shapes, shape);
      }
}

/*
 * Shapes that hold whatever a batch of the group may have. A batch of several images can have the height of
 * one and the width of another; one image alone is held by the shape of its own largest size.
 */
static void
add_covers (const RnSampler *sampler, const GArray *sizes, GArray *shapes)
{
  RnBatchShape whole = { 0, 0 };
  guint n_before = shapes->len;

  for (guint i = 0; i < sizes->len; i++)
    {
      const RnBatchShape *shape = &g_array_index (sizes, SizeCount, i).shape;
      gboolean held = FALSE;

      whole.height = MAX (whole.height, shape->height);
      whole.width = MAX (whole.width, shape->width);
      for (guint k = 0; k < sizes->len && !held; k++)
        {
          const RnBatchShape *other = &g_array_index (sizes, SizeCount, k).shape;

          held = k != i && other->height >= shape->height && other->width >= shape->width;
        }
      if (!held)
        g_array_append_vals (shapes, shape, 1);
    }
  if (sizes->len == 0 || (sampler->batch_size == 1 && shapes->len - n_before <= MAX_COVERS))
    return;
  g_array_set_size (shapes, n_before);
  g_array_append_val (shapes, whole);
}

/* Gives whether batches are rounded up to the shapes. */
static gboolean
shuffled_shapes (const RnSampler *sampler, const RnDataset *dataset, GArray *shapes)
{
  gboolean exact = TRUE, random = FALSE;
  GArray *sizes[RN_N_GROUPS];

  for (guint8 group = 0; group < RN_N_GROUPS; group++)
    sizes[group] = sizes_of_group (sampler, dataset, group, &exact, &random);
  for (guint8 group = 0; group < RN_N_GROUPS; group++)
    exact &= !random || sizes[group]->len <= MAX_RANDOM_SIZES;
  for (guint8 group = 0; group < RN_N_GROUPS && exact; group++)
    add_exact_shapes (sampler, group, sizes[group], shapes);
  gboolean is_rounded = !exact || (random && shapes->len > RN_MAX_RANDOM_SHAPES);
  if (is_rounded)
    {
      g_array_set_size (shapes, 0);
      for (guint8 group = 0; group < RN_N_GROUPS; group++)
        add_covers (sampler, sizes[group], shapes);
      rn_add_buckets (sampler, dataset, shapes);
    }
  for (guint8 group = 0; group < RN_N_GROUPS; group++)
    g_array_unref (sizes[group]);
  return is_rounded;
}

/* The same, but each batch is rounded up to its own largest size. */
static gboolean
sequential_shapes (const RnSampler *sampler, const RnDataset *dataset, GArray *shapes)
{
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));
  gboolean is_rounded = FALSE;

  for (int64_t first = 0; first < sampler->n; first += sampler->batch_size)
    {
      RnBatchShape shape = { 0, 0 };

      g_array_set_size (ranges, 0);
      for (int64_t i = first; i < MIN (first + sampler->batch_size, sampler->n); i++)
        rn_dataset_bound (dataset, i, ranges);
      /* An image of one size has one range, of this size alone. */
      is_rounded |= (int64_t) ranges->len > MIN (sampler->batch_size, sampler->n - first);
      for (guint i = 0; i < ranges->len; i++)
        {
          const RnSizeRange *range = &g_array_index (ranges, RnSizeRange, i);

          is_rounded |= range->min_height != range->max_height || range->min_width != range->max_width;
          shape.height = MAX (shape.height, range->max_height);
          shape.width = MAX (shape.width, range->max_width);
        }
      g_array_append_val (shapes, shape);
    }
  return is_rounded;
}

RnBatchShape *
rn_sampler_batch_shapes (const RnSampler *sampler, const RnDataset *dataset, guint *n, gboolean *is_rounded)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnBatchShape));
  RnBatchShape *items;
  guint kept = 0;

  g_return_val_if_fail (rn_dataset_size (dataset) == sampler->n, NULL);
  gboolean rounds = sampler->kind == RN_SAMPLER_SEQUENTIAL ? sequential_shapes (sampler, dataset, shapes)
                                                           : shuffled_shapes (sampler, dataset, shapes);
  if (is_rounded != NULL)
    *is_rounded = rounds;

  g_array_sort (shapes, compare_shapes);
  items = (RnBatchShape *) (gpointer) shapes->data;
  for (guint i = 0; i < shapes->len; i++)
    if (kept == 0 || compare_shapes (&items[kept - 1], &items[i]) != 0)
      items[kept++] = items[i];
  *n = kept;
  return (RnBatchShape *) (gpointer) g_array_free (shapes, FALSE);
}

const RnBatchShape *
rn_batch_shape_find (const RnBatchShape *shapes, guint n, int height, int width)
{
  for (guint i = 0; i < n; i++)
    if (shapes[i].height >= height && shapes[i].width >= width)
      return &shapes[i];
  return NULL;
}
