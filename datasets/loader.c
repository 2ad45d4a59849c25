#define G_LOG_DOMAIN "rn-data"
#include "config.h"

#include "datasets/loader.h"

#include "boxes/targets.h"
#include "datasets/dataset-private.h"
#include "runner/base/arena.h"
#include "runner/base/error.h"
#include "runner/base/trace.h"

#include <string.h>

#define ALIGNMENT 64 /* bytes; a cache line */

typedef enum
{
  SLOT_FREE,
  SLOT_FILLING,
  SLOT_READY, /* filled, or failed with an error, or lent */
} SlotState;

/* Batch number k of an epoch lives in slot k % n_slots. */
typedef struct
{
  SlotState state;
  GError *error;
  RnBatch batch;
  int64_t *indices;   /* [batch size] */
  float (*boxes)[4];  /* [batch size * max objects] */
  int32_t *gt_labels; /* the same */
} Slot;

/* Memory of one thread. */
typedef struct
{
  RnLoader *loader;
  GThread *thread;
  guint8 *pixels[2]; /* a decoded and a resized image */
  RnTargetScratch targets;
} Worker;

struct _RnLoader
{
  const RnDataset *dataset;
  RnSampler *sampler;
  RnLoaderOptions options;
  RnTargetSpec targets;
  RnTargetRule rule;

  /* Worst case over the whole data set. */
  RnBatchShape *shapes; /* of all batches, smallest first */
  guint n_shapes;
  gsize max_area;    /* of a batch's image */
  gsize max_anchors; /* per image */
  RnDatasetMaxima maxima;
  RnArena *arena;

  int n_slots, n_workers; /* at least one of each, though it may have no thread */
  Slot *slots;
  Worker *workers;

  int cancel; /* atomic: what is being filled will not be wanted */

  GMutex lock; /* guards the rest, the states and the sampler */
  GCond changed;
  gboolean quit;
  guint64 epoch;
  int64_t next;   /* batch to fill */
  int64_t wanted; /* batch to deliver */
  gboolean lent;
  int n_filling;
  int64_t n_skipped;
};

/* ---- Filling a slot ---- */

/* Sample @i of @slot before its pixels: key of the random choices, and room for the boxes. */
static RnSample
begin_sample (const RnLoader *loader, Slot *slot, int i, guint64 epoch)
{
  RnSample sample = { .meta = &slot->batch.metas[i], .seed = loader->options.seed, .epoch = epoch };

  sample.meta->gt_boxes = slot->boxes + (gsize) i * loader->maxima.objects;
  sample.meta->gt_labels = slot->gt_labels + (gsize) i * loader->maxima.objects;
  return sample;
}

/*
 * The padded size that the images of @slot share: the smallest that was planned for and holds them. FALSE if
 * there is none, which rn_sampler_batch_shapes excludes.
 */
static gboolean
size_batch (const RnLoader *loader, Slot *slot, guint64 epoch, GError **error)
{
  RnBatch *batch = &slot->batch;
  const RnBatchShape *shape;
  int height = 0, width = 0;

  for (int i = 0; i < batch->n; i++)
    {
      RnSample sample = begin_sample (loader, slot, i, epoch);

      rn_dataset_plan (loader->dataset, slot->indices[i], &sample);
      height = MAX (height, sample.meta->pad_height);
      width = MAX (width, sample.meta->pad_width);
    }
  shape = rn_batch_shape_find (loader->shapes, loader->n_shapes, height, width);
  if (shape == NULL)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                   "%s: its batch of %dx%d is larger than what was planned for", batch->metas[0].path, height,
                   width);
      return FALSE;
    }
  batch->height = shape->height;
  batch->width = shape->width;
  return TRUE;
}

static gboolean
load_sample (RnLoader *loader, Slot *slot, int i, guint64 epoch, Worker *worker, GError **error)
{
  RnBatch *batch = &slot->batch;
  RnSample sample = begin_sample (loader, slot, i, epoch);

  sample.pixels = worker->pixels[0];
  sample.spare = worker->pixels[1];
  rn_sample_set_output (&sample, batch, i);

  gint64 start = rn_trace_begin ();
  gboolean is_ok = rn_dataset_load (loader->dataset, slot->indices[i], &sample, error);
  rn_trace_end (start, RN_TRACE_LOADER, "sample", sample.meta->path);
  return is_ok;
}

static gboolean
build_targets (RnLoader *loader, Slot *slot, Worker *worker, GError **error)
{
  RnBatch *batch = &slot->batch;
  int sizes[RN_MAX_LEVELS][2];

  loader->targets.feature_sizes (loader->targets.model, batch->height, batch->width, sizes);
  batch->n_anchors = rn_anchors_count (&loader->targets.anchors, sizes);
  g_assert (batch->n_anchors >= 0 && (gsize) batch->n_anchors <= loader->max_anchors);
  batch->n_positives = 0;
  batch->avg_factor = 0;
  for (int i = 0; i < batch->n; i++)
    {
      RnSampleMeta *meta = &batch->metas[i];
      RnTargetImage image = {
        .index = i,
        .pad_height = meta->pad_height,
        .pad_width = meta->pad_width,
        .gts = (const RnBox *) meta->gt_boxes, /* the same bytes, see boxes/box.h */
        .labels = meta->gt_labels,
        .n_gt = meta->n_gt,
      };
      int64_t capacity = (int64_t) loader->max_anchors * batch->n - batch->n_positives;
      int64_t n = 0;
      RnStatus status = rn_targets_build (&loader->rule, &image, sizes, &worker->targets,
                                          batch->labels + i * batch->n_anchors,
                                          batch->positives + batch->n_positives, capacity, &n);

      if (status != RN_STATUS_OK)
        {
          g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                       "%s: no targets for %d objects at %d x %d: %s", meta->path, meta->n_gt, batch->width,
                       batch->height, rn_status_name (status));
          return FALSE;
        }
      meta->n_positives = (int) n;
      batch->n_positives += n;
      batch->avg_factor += (float) MAX (n, 1);
    }
  return TRUE;
}

/* Puts another sample in the place of the unreadable one at @i, or none if the order is fixed. */
static void
skip_sample (RnLoader *loader, Slot *slot, int i, const GError *error)
{
  int64_t n_skipped;

  if (rn_sampler_kind (loader->sampler) == RN_SAMPLER_SEQUENTIAL)
    {
      slot->batch.n--;
      memmove (slot->indices + i, slot->indices + i + 1, sizeof (int64_t) * (slot->batch.n - i));
    }
  else
    slot->indices[i] = rn_sampler_next_in_group (loader->sampler, slot->indices[i]);
  g_mutex_lock (&loader->lock);
  n_skipped = ++loader->n_skipped;
  g_mutex_unlock (&loader->lock);
  g_warning ("%s; skipped (%" G_GINT64_FORMAT " so far)", error->message, (gint64) n_skipped);
}

/*
 * Fills @slot from its indices. A skipped sample may change the padded size of its batch, so the batch begins
 * again; the samples that were done come out the same. Gives up when as many samples failed as there are.
 */
static gboolean
fill_slot (RnLoader *loader, Slot *slot, guint64 epoch, Worker *worker, GError **error)
{
  int64_t attempts = rn_dataset_size (loader->dataset);
  int i = 0;

  if (!size_batch (loader, slot, epoch, error))
    return FALSE;
  while (i < slot->batch.n && !g_atomic_int_get (&loader->cancel))
    {
      g_autoptr (GError) local = NULL;

      if (load_sample (loader, slot, i, epoch, worker, &local))
        {
          i++;
          continue;
        }
      if (loader->options.on_error == RN_ON_ERROR_FAIL)
        {
          g_set_error (error, local->domain, local->code, "%s; data.on_error: skip would replace it",
                       local->message);
          return FALSE;
        }
      if (--attempts <= 0)
        {
          g_propagate_error (error, g_steal_pointer (&local));
          return FALSE;
        }
      skip_sample (loader, slot, i, local);
      if (!size_batch (loader, slot, epoch, error))
        return FALSE;
      i = 0;
    }
  if (g_atomic_int_get (&loader->cancel) || loader->options.targets == NULL)
    return TRUE;

  gint64 start = rn_trace_begin ();
  gboolean is_ok = build_targets (loader, slot, worker, error);
  rn_trace_end (start, RN_TRACE_LOADER, "targets", NULL);
  return is_ok;
}

/* With the lock held: takes the next batch, fills it without the lock, hands it over. */
static void
work (RnLoader *loader, Worker *worker)
{
  Slot *slot = &loader->slots[loader->next % loader->n_slots];
  guint64 epoch = loader->epoch;

  slot->batch.n = rn_sampler_batch (loader->sampler, epoch, loader->next++, slot->indices);
  slot->state = SLOT_FILLING;
  loader->n_filling++;
  g_mutex_unlock (&loader->lock);
  gint64 start = rn_trace_begin ();
  fill_slot (loader, slot, epoch, worker, &slot->error);
  rn_trace_end (start, RN_TRACE_LOADER, "batch", NULL);
  g_mutex_lock (&loader->lock);
  slot->state = SLOT_READY;
  loader->n_filling--;
  g_cond_broadcast (&loader->changed);
}

static gboolean
has_work (const RnLoader *loader)
{
  return loader->next < rn_sampler_n_batches (loader->sampler)
         && loader->slots[loader->next % loader->n_slots].state == SLOT_FREE
         && !g_atomic_int_get (&loader->cancel);
}

/* With the lock held. */
static void
wait_for_work (RnLoader *loader)
{
  gint64 start = rn_trace_begin ();
  g_cond_wait (&loader->changed, &loader->lock);
  rn_trace_end (start, RN_TRACE_LOADER, "wait for a free slot", NULL);
}

static gpointer
worker_thread (gpointer data)
{
  Worker *worker = data;
  RnLoader *loader = worker->loader;

  rn_trace_set_thread_name ("loader");
  g_mutex_lock (&loader->lock);
  while (!loader->quit)
    if (has_work (loader))
      work (loader, worker);
    else
      wait_for_work (loader);
  g_mutex_unlock (&loader->lock);
  return NULL;
}

/* ---- Memory ---- */

/* Deals out pieces of one block: first from no block, to learn its size. */
typedef struct
{
  guint8 *base;
  gsize used;
  gboolean overflow;
} Dealer;

static gpointer
deal (Dealer *dealer, gsize n, gsize size)
{
  gsize at = dealer->used, bytes;

  if (!g_size_checked_mul (&bytes, n, size) || !g_size_checked_add (&bytes, bytes, ALIGNMENT - 1)
      || !g_size_checked_add (&dealer->used, at, bytes / ALIGNMENT * ALIGNMENT))
    dealer->overflow = TRUE;
  return dealer->base != NULL ? dealer->base + at : NULL;
}

static void
lay_out (RnLoader *loader, Dealer *dealer)
{
  gsize n = rn_sampler_batch_size (loader->sampler);

  for (int i = 0; i < loader->n_slots; i++)
    {
      Slot *slot = &loader->slots[i];

      slot->indices = deal (dealer, n, sizeof (int64_t));
      slot->boxes = deal (dealer, n, loader->maxima.objects * sizeof (float[4]));
      slot->gt_labels = deal (dealer, n, loader->maxima.objects * sizeof (int32_t));
      slot->batch.metas = deal (dealer, n, sizeof (RnSampleMeta));
      slot->batch.pixels = deal (dealer, n, loader->max_area * 3);
      slot->batch.sizes = deal (dealer, n, sizeof *slot->batch.sizes);
      slot->batch.table = deal (dealer, n, sizeof *slot->batch.table);
      if (loader->options.targets != NULL)
        {
          slot->batch.labels = deal (dealer, n, loader->max_anchors * sizeof (int16_t));
          slot->batch.positives = deal (dealer, n, loader->max_anchors * sizeof (RnPositive));
        }
    }
  for (int i = 0; i < loader->n_workers; i++)
    for (int k = 0; k < 2; k++)
      loader->workers[i].pixels[k] = deal (dealer, loader->maxima.pixels, 3);
}

/* Finds the worst batch. Every shape must have anchors that can be counted. */
static gboolean
measure (RnLoader *loader, GError **error)
{
  const RnBatchShape *shapes;

  shapes = loader->shapes =
      rn_sampler_batch_shapes (loader->sampler, loader->dataset, &loader->n_shapes, NULL);
  loader->maxima = rn_dataset_maxima (loader->dataset);
  for (guint i = 0; i < loader->n_shapes; i++)
    {
      loader->max_area = MAX (loader->max_area, (gsize) shapes[i].height * shapes[i].width);
      if (loader->options.targets != NULL)
        {
          int sizes[RN_MAX_LEVELS][2];
          int n_levels =
              loader->targets.feature_sizes (loader->targets.model, shapes[i].height, shapes[i].width, sizes);
          int64_t n = n_levels == loader->targets.anchors.n_levels
                          ? rn_anchors_count (&loader->targets.anchors, sizes)
                          : -1;

          if (n < 0)
            {
              g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                           "anchors cannot be laid over a batch of %d x %d with %d feature maps",
                           shapes[i].width, shapes[i].height, n_levels);
              return FALSE;
            }
          loader->max_anchors = MAX (loader->max_anchors, (gsize) n);
        }
    }
  return TRUE;
}

static gboolean
allocate (RnLoader *loader, GError **error)
{
  Dealer dealer = { NULL, 0, FALSE };

  lay_out (loader, &dealer);
  if (dealer.overflow)
    {
      g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                           "the loader's batches do not fit into memory");
      return FALSE;
    }
  loader->arena = rn_arena_new ("loader", dealer.used, error);
  if (loader->arena == NULL)
    return FALSE;
  dealer = (Dealer){ rn_arena_data (loader->arena), 0, FALSE };
  lay_out (loader, &dealer);
  for (int i = 0; i < loader->n_workers && loader->options.targets != NULL; i++)
    if (rn_target_scratch_reserve (&loader->workers[i].targets, loader->max_anchors, loader->maxima.objects)
        != RN_STATUS_OK)
      {
        g_set_error_literal (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                             "no memory for the loader's anchors");
        return FALSE;
      }
  return TRUE;
}

static gboolean
start_threads (RnLoader *loader, GError **error)
{
  for (int i = 0; i < loader->options.n_workers; i++)
    {
      loader->workers[i].thread = g_thread_try_new ("loader", worker_thread, &loader->workers[i], error);
      if (loader->workers[i].thread == NULL)
        return FALSE;
    }
  return TRUE;
}

RnLoader *
rn_loader_new (const RnDataset *dataset, RnSampler *sampler, const RnLoaderOptions *options, GError **error)
{
  g_autoptr (RnLoader) loader = g_new0 (RnLoader, 1);

  g_mutex_init (&loader->lock);
  g_cond_init (&loader->changed);
  loader->dataset = dataset;
  loader->sampler = sampler;
  loader->options = *options;
  if (options->targets != NULL)
    {
      loader->targets = *options->targets;
      loader->rule = (RnTargetRule){ &loader->targets.anchors, &loader->targets.assigner,
                                     &loader->targets.coder, loader->targets.num_classes };
    }
  loader->n_workers = MAX (options->n_workers, 1);
  loader->workers = g_new0 (Worker, loader->n_workers);
  for (int i = 0; i < loader->n_workers; i++)
    loader->workers[i].loader = loader;
  if (options->n_workers == 0)
    loader->n_slots = 1;
  else
    loader->n_slots = 1 + (options->prefetch > 0 ? options->prefetch : MAX (2, options->n_workers));
  loader->slots = g_new0 (Slot, loader->n_slots);
  loader->next = loader->wanted = rn_sampler_n_batches (sampler); /* idle until rn_loader_start */
  if (!measure (loader, error) || !allocate (loader, error) || !start_threads (loader, error))
    return NULL;
  return g_steal_pointer (&loader);
}

/* ---- The caller's side ---- */

/* Waits until no slot is being filled, and empties all. With the lock held. */
static void
drain (RnLoader *loader)
{
  g_atomic_int_set (&loader->cancel, 1);
  while (loader->n_filling > 0)
    g_cond_wait (&loader->changed, &loader->lock);
  for (int i = 0; i < loader->n_slots; i++)
    {
      loader->slots[i].state = SLOT_FREE;
      g_clear_error (&loader->slots[i].error);
    }
  loader->lent = FALSE;
  g_atomic_int_set (&loader->cancel, 0);
}

void
rn_loader_free (RnLoader *loader)
{
  if (loader == NULL)
    return;
  g_mutex_lock (&loader->lock);
  drain (loader);
  loader->quit = TRUE;
  g_cond_broadcast (&loader->changed);
  g_mutex_unlock (&loader->lock);
  for (int i = 0; i < loader->n_workers; i++)
    {
      if (loader->workers[i].thread != NULL)
        g_thread_join (loader->workers[i].thread);
      rn_target_scratch_clear (&loader->workers[i].targets);
    }
  g_clear_pointer (&loader->arena, rn_arena_free);
  g_mutex_clear (&loader->lock);
  g_cond_clear (&loader->changed);
  g_free (loader->shapes);
  g_free (loader->workers);
  g_free (loader->slots);
  g_free (loader);
}

int64_t
rn_loader_n_batches (const RnLoader *loader)
{
  return rn_sampler_n_batches (loader->sampler);
}

gsize
rn_loader_bytes (const RnLoader *loader)
{
  gsize per_worker =
      loader->max_anchors * (sizeof (float) + sizeof (int32_t)) + loader->maxima.objects * sizeof (float);

  return rn_arena_size (loader->arena) + per_worker * loader->n_workers;
}

int64_t
rn_loader_n_skipped (RnLoader *loader)
{
  int64_t n;

  g_mutex_lock (&loader->lock);
  n = loader->n_skipped;
  g_mutex_unlock (&loader->lock);
  return n;
}

void
rn_loader_start (RnLoader *loader, guint64 epoch, int64_t first_batch)
{
  g_return_if_fail (first_batch >= 0);
  g_mutex_lock (&loader->lock);
  drain (loader);
  loader->epoch = epoch;
  loader->next = loader->wanted = first_batch;
  g_cond_broadcast (&loader->changed);
  g_mutex_unlock (&loader->lock);
}

/* With the lock held: the wanted batch, filled. */
static Slot *
wait_for_slot (RnLoader *loader)
{
  Slot *slot = &loader->slots[loader->wanted % loader->n_slots];

  while (loader->next <= loader->wanted || slot->state != SLOT_READY)
    if (loader->options.n_workers == 0)
      work (loader, &loader->workers[0]);
    else
      g_cond_wait (&loader->changed, &loader->lock);
  return slot;
}

static void
free_slot (RnLoader *loader, Slot *slot)
{
  slot->state = SLOT_FREE;
  g_cond_broadcast (&loader->changed);
}

const RnBatch *
rn_loader_next (RnLoader *loader, GError **error)
{
  const RnBatch *batch = NULL;
  gint64 start = rn_trace_begin ();

  g_return_val_if_fail (!loader->lent, NULL);
  g_mutex_lock (&loader->lock);
  while (batch == NULL && loader->wanted < rn_sampler_n_batches (loader->sampler))
    {
      Slot *slot = wait_for_slot (loader);

      if (slot->error != NULL) /* it stays: there is no way past it but a new start */
        {
          g_propagate_error (error, g_error_copy (slot->error));
          break;
        }
      loader->wanted++;
      if (slot->batch.n > 0)
        batch = &slot->batch;
      else
        free_slot (loader, slot);
    }
  loader->lent = batch != NULL;
  g_mutex_unlock (&loader->lock);
  rn_trace_end (start, RN_TRACE_PHASE, "data", NULL);
  return batch;
}

void
rn_loader_release (RnLoader *loader, const RnBatch *batch)
{
  g_mutex_lock (&loader->lock);
  for (int i = 0; i < loader->n_slots; i++)
    if (&loader->slots[i].batch == batch && loader->lent)
      {
        loader->lent = FALSE;
        free_slot (loader, &loader->slots[i]);
      }
  g_mutex_unlock (&loader->lock);
}
