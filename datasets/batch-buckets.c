#include "config.h"

#include "datasets/batch-shapes.h"

#include "datasets/dataset-private.h"
#include "runner/base/rng.h"

#define N_BATCHES 512   /* drawn to judge by; fewer when they are large */
#define N_SAMPLES 16384 /* in them */
#define MIN_GAIN 0.01   /* of the area of all batches: below it a shape is not worth a plan */

/* One drawn batch. */
typedef struct
{
  int height, width;
  double area; /* of the smallest shape so far that holds it */
} Drawn;

/* ---- Batches as the run will draw them ---- */

/* Members of each group, one after the other. (transfer full) */
static int64_t *
list_groups (const RnSampler *sampler)
{
  int64_t *members = g_new (int64_t, sampler->n), *end = members;

  for (guint8 group = 0; group < RN_N_GROUPS; group++)
    for (int64_t i = 0; i < sampler->n; i++)
      if (sampler->groups[i] == group)
        *end++ = i;
  return members;
}

static GArray *
draw_batches (const RnSampler *sampler, const RnDataset *dataset)
{
  guint n = CLAMP (N_SAMPLES / sampler->batch_size, 16, N_BATCHES);
  guint n_objects = MAX (rn_dataset_maxima (dataset).objects, 1);
  g_autofree float (*boxes)[4] = g_malloc_n (n_objects, sizeof *boxes);
  g_autofree int32_t *labels = g_new (int32_t, n_objects);
  g_autofree int64_t *members = list_groups (sampler);
  RnSampleMeta meta = { .gt_boxes = boxes, .gt_labels = labels };
  GArray *batches = g_array_new (FALSE, TRUE, sizeof (Drawn));
  RnRng rng;

  rn_rng_init (&rng, 0, RN_STREAM_SHUFFLE, 0, 0);
  g_array_set_size (batches, n);
  for (guint i = 0; i < n; i++)
    {
      Drawn *batch = &g_array_index (batches, Drawn, i);
      gboolean second = (int64_t) rn_rng_below (&rng, (guint64) sampler->n) >= sampler->group_size[0];
      int64_t first = second ? sampler->group_size[0] : 0;

      for (int k = 0; k < sampler->batch_size; k++)
        {
          RnSample sample = { .meta = &meta, .epoch = i };

          rn_dataset_plan (
              dataset, members[first + (int64_t) rn_rng_below (&rng, (guint64) sampler->group_size[second])],
              &sample);
          batch->height = MAX (batch->height, meta.pad_height);
          batch->width = MAX (batch->width, meta.pad_width);
        }
    }
  return batches;
}

/* ---- The choice ---- */

static double
saved_by (const GArray *batches, RnBatchShape shape)
{
  double area = (double) shape.height * shape.width, saved = 0;

  for (guint i = 0; i < batches->len; i++)
    {
      const Drawn *batch = &g_array_index (batches, Drawn, i);

      if (batch->height <= shape.height && batch->width <= shape.width && batch->area > area)
        saved += batch->area - area;
    }
  return saved;
}

static void
use_shape (GArray *batches, RnBatchShape shape)
{
  double area = (double) shape.height * shape.width;

  for (guint i = 0; i < batches->len; i++)
    {
      Drawn *batch = &g_array_index (batches, Drawn, i);

      if (batch->height <= shape.height && batch->width <= shape.width)
        batch->area = MIN (batch->area, area);
    }
}

/* Distinct sides of the drawn batches. (transfer full) */
static GArray *
sides_of (const GArray *batches, gboolean of_height)
{
  GArray *sides = g_array_new (FALSE, FALSE, sizeof (int));

  for (guint i = 0; i < batches->len; i++)
    {
      const Drawn *batch = &g_array_index (batches, Drawn, i);

      g_array_append_val (sides, *(of_height ? &batch->height : &batch->width));
    }
  rn_sides_make_distinct (sides);
  return sides;
}

/* The shape that saves most. FALSE if none saves enough. */
static gboolean
find_best (const GArray *batches, const GArray *heights, const GArray *widths, RnBatchShape *best)
{
  double most = 0, all = 0;

  for (guint i = 0; i < batches->len; i++)
    all += g_array_index (batches, Drawn, i).area;
  for (guint h = 0; h < heights->len; h++)
    for (guint w = 0; w < widths->len; w++)
      {
        RnBatchShape shape = { g_array_index (heights, int, h), g_array_index (widths, int, w) };
        double saved = saved_by (batches, shape);

        if (saved > most)
          {
            most = saved;
            *best = shape;
          }
      }
  return most > MIN_GAIN * all;
}

void
rn_add_buckets (const RnSampler *sampler, const RnDataset *dataset, GArray *shapes)
{
  g_autoptr (GArray) batches = draw_batches (sampler, dataset);
  g_autoptr (GArray) heights = sides_of (batches, TRUE);
  g_autoptr (GArray) widths = sides_of (batches, FALSE);
  RnBatchShape shape = { 0, 0 };

  for (guint i = 0; i < batches->len; i++)
    g_array_index (batches, Drawn, i).area = G_MAXDOUBLE;
  for (guint i = 0; i < shapes->len; i++)
    use_shape (batches, g_array_index (shapes, RnBatchShape, i));
  while (shapes->len < RN_MAX_RANDOM_SHAPES && find_best (batches, heights, widths, &shape))
    {
      g_array_append_val (shapes, shape);
      use_shape (batches, shape);
    }
}
