#include "config.h"

#include "datasets/sampler.h"

#include "runner/base/rng.h"

#include <string.h>

#define N_GROUPS 2

struct _RnSampler
{
  RnSamplerKind kind;
  int batch_size;
  guint64 seed;
  int64_t n;
  guint8 *groups; /* [n]; all 0 where groups are ignored */
  int64_t group_size[N_GROUPS];
  int64_t n_batches;

  int64_t *order;   /* [n_batches * batch_size] of @epoch: batch after batch */
  gboolean ordered; /* whether @order is filled */
  guint64 epoch;
};

static int64_t
round_up (int64_t n, int64_t step)
{
  return (n + step - 1) / step * step;
}

RnSampler *
rn_sampler_new_from_groups (RnSamplerKind kind, const guint8 *groups, int64_t n, int batch_size, guint64 seed)
{
  RnSampler *sampler;
  int64_t rounded = 0;

  g_return_val_if_fail (n > 0 && batch_size > 0, NULL);
  sampler = g_new0 (RnSampler, 1);
  sampler->kind = kind;
  sampler->batch_size = batch_size;
  sampler->seed = seed;
  sampler->n = n;
  sampler->groups = g_new0 (guint8, n);
  for (int64_t i = 0; i < n; i++)
    {
      sampler->groups[i] = kind == RN_SAMPLER_GROUP && groups[i] != 0;
      sampler->group_size[sampler->groups[i]]++;
    }
  for (int g = 0; g < N_GROUPS; g++)
    rounded += round_up (sampler->group_size[g], batch_size);
  sampler->n_batches = rounded / batch_size;
  sampler->order = g_new (int64_t, rounded);
  return sampler;
}

RnSampler *
rn_sampler_new (RnSamplerKind kind, const RnDataset *dataset, int batch_size, guint64 seed)
{
  int64_t n = rn_dataset_size (dataset);
  g_autofree guint8 *groups = g_new (guint8, n);

  for (int64_t i = 0; i < n; i++)
    groups[i] = (guint8) rn_dataset_group (dataset, i);
  return rn_sampler_new_from_groups (kind, groups, n, batch_size, seed);
}

void
rn_sampler_free (RnSampler *sampler)
{
  if (sampler == NULL)
    return;
  g_free (sampler->groups);
  g_free (sampler->order);
  g_free (sampler);
}

RnSamplerKind
rn_sampler_kind (const RnSampler *sampler)
{
  return sampler->kind;
}

int
rn_sampler_batch_size (const RnSampler *sampler)
{
  return sampler->batch_size;
}

int64_t
rn_sampler_n_batches (const RnSampler *sampler)
{
  return sampler->n_batches;
}

/* Shuffles the members of @group into @order and fills the last batch with random members; gives the end. */
static int64_t *
order_group (const RnSampler *sampler, guint8 group, RnRng *rng, int64_t *order)
{
  int64_t n = sampler->group_size[group];
  int64_t rounded = round_up (n, sampler->batch_size);
  int64_t filled = 0;

  for (int64_t i = 0; i < sampler->n; i++)
    if (sampler->groups[i] == group)
      order[filled++] = i;
  rn_rng_shuffle (rng, order, n);
  for (; filled < rounded; filled++)
    order[filled] = order[rn_rng_below (rng, n)];
  return order + rounded;
}

/* Whole batches change places, so that an epoch does not see one group before the other. */
static void
shuffle_batches (const RnSampler *sampler, RnRng *rng)
{
  gsize size = sizeof (int64_t) * sampler->batch_size;
  g_autofree int64_t *places = g_new (int64_t, sampler->n_batches);
  g_autofree int64_t *ordered = g_memdup2 (sampler->order, size * sampler->n_batches);

  for (int64_t i = 0; i < sampler->n_batches; i++)
    places[i] = i;
  rn_rng_shuffle (rng, places, sampler->n_batches);
  for (int64_t i = 0; i < sampler->n_batches; i++)
    memcpy (sampler->order + i * sampler->batch_size, ordered + places[i] * sampler->batch_size, size);
}

/* The steps of MMDetection's GroupSampler. */
static void
order_epoch (RnSampler *sampler, guint64 epoch)
{
  int64_t *end = sampler->order;
  RnRng rng;

  rn_rng_init (&rng, sampler->seed, RN_STREAM_SHUFFLE, (guint32) epoch, (guint32) (epoch >> 32));
  for (guint8 group = 0; group < N_GROUPS; group++)
    end = order_group (sampler, group, &rng, end);
  shuffle_batches (sampler, &rng);
  sampler->epoch = epoch;
  sampler->ordered = TRUE;
}

int
rn_sampler_batch (RnSampler *sampler, guint64 epoch, int64_t i, int64_t *indices)
{
  int64_t first = i * sampler->batch_size;

  g_return_val_if_fail (i >= 0 && i < sampler->n_batches, 0);
  if (sampler->kind == RN_SAMPLER_SEQUENTIAL)
    {
      int n = (int) MIN (sampler->n - first, sampler->batch_size);

      for (int k = 0; k < n; k++)
        indices[k] = first + k;
      return n;
    }
  if (!sampler->ordered || sampler->epoch != epoch)
    order_epoch (sampler, epoch);
  memcpy (indices, sampler->order + first, sizeof (int64_t) * sampler->batch_size);
  return sampler->batch_size;
}

int64_t
rn_sampler_next_in_group (const RnSampler *sampler, int64_t index)
{
  int64_t next = index;

  do
    next = (next + 1) % sampler->n;
  while (sampler->groups[next] != sampler->groups[index]);
  return next;
}

/* ---- Shapes of batches ---- */

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

static GArray *
sizes_of_group (const RnSampler *sampler, const RnDataset *dataset, guint8 group)
{
  GArray *sizes = g_array_new (FALSE, FALSE, sizeof (SizeCount));

  for (int64_t i = 0; i < sampler->n; i++)
    if (sampler->groups[i] == group)
      {
        SizeCount item = { .count = 1 };

        rn_dataset_padded_size (dataset, i, &item.shape.height, &item.shape.width);
        g_array_append_val (sizes, item);
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

/* The distinct heights (offset of height) or widths in @sizes, ascending. (transfer full) */
static GArray *
distinct_sides (const GArray *sizes, gboolean of_height)
{
  GArray *sides = g_array_new (FALSE, FALSE, sizeof (int));
  guint kept = 0;

  for (guint i = 0; i < sizes->len; i++)
    {
      const RnBatchShape *shape = &g_array_index (sizes, SizeCount, i).shape;

      g_array_append_val (sides, *(of_height ? &shape->height : &shape->width));
    }
  g_array_sort (sides, compare_ints);
  for (guint i = 0; i < sides->len; i++)
    if (kept == 0 || g_array_index (sides, int, kept - 1) != g_array_index (sides, int, i))
      g_array_index (sides, int, kept++) = g_array_index (sides, int, i);
  g_array_set_size (sides, kept);
  return sides;
}

static void
shuffled_shapes (const RnSampler *sampler, const RnDataset *dataset, guint8 group, GArray *shapes)
{
  g_autoptr (GArray) sizes = sizes_of_group (sampler, dataset, group);
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

static void
sequential_shapes (const RnSampler *sampler, const RnDataset *dataset, GArray *shapes)
{
  for (int64_t first = 0; first < sampler->n; first += sampler->batch_size)
    {
      RnBatchShape shape = { 0, 0 };

      for (int64_t i = first; i < MIN (first + sampler->batch_size, sampler->n); i++)
        {
          int height, width;

          rn_dataset_padded_size (dataset, i, &height, &width);
          shape.height = MAX (shape.height, height);
          shape.width = MAX (shape.width, width);
        }
      g_array_append_val (shapes, shape);
    }
}

RnBatchShape *
rn_sampler_batch_shapes (const RnSampler *sampler, const RnDataset *dataset, guint *n)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnBatchShape));
  RnBatchShape *items;
  guint kept = 0;

  g_return_val_if_fail (rn_dataset_size (dataset) == sampler->n, NULL);
  if (sampler->kind == RN_SAMPLER_SEQUENTIAL)
    sequential_shapes (sampler, dataset, shapes);
  else
    for (guint8 group = 0; group < N_GROUPS; group++)
      shuffled_shapes (sampler, dataset, group, shapes);

  g_array_sort (shapes, compare_shapes);
  items = (RnBatchShape *) (gpointer) shapes->data;
  for (guint i = 0; i < shapes->len; i++)
    if (kept == 0 || compare_shapes (&items[kept - 1], &items[i]) != 0)
      items[kept++] = items[i];
  *n = kept;
  return (RnBatchShape *) (gpointer) g_array_free (shapes, FALSE);
}
