/*
 * loader.h: threads that turn indices into batches: decode, transform, pad, assign targets.
 *
 * Batches arrive in the sampler's order whatever the number of threads, and every random choice is keyed by
 * (seed, epoch, index), so a batch has the same bits on every path to it. All memory is allocated once, for
 * the worst shape.
 */
#ifndef RUNNER_DATASETS_LOADER_H
#define RUNNER_DATASETS_LOADER_H

#include <runner/batch.h>
#include "boxes/anchors.h"
#include "boxes/assign.h"
#include "boxes/coder.h"
#include "datasets/dataset.h"
#include "datasets/sampler.h"

G_BEGIN_DECLS

typedef struct _RnLoader RnLoader;

/* How the model wants its targets; copied, but for @model, which is lent for the life of the loader. */
typedef struct
{
  RnAnchorGenerator anchors;
  RnMaxIoUAssigner assigner;
  RnBoxCoder coder;
  int num_classes;
  /*
   * Feature sizes {height, width} of each anchor level for an input of @height x @width, into @sizes
   * [anchors' levels]; gives the number of levels. Called from several threads.
   */
  int (*feature_sizes) (gpointer model, int height, int width, int (*sizes)[2]);
  gpointer model;
} RnTargetSpec;

typedef struct
{
  int n_workers; /* threads; 0: rn_loader_next works in the caller's thread */
  int prefetch;  /* batches that may wait, beside the lent one; 0: two, or one per worker if that is more */
  guint64 seed;  /* of augmentations */
  /*
   * SKIP: an unreadable sample is named, counted and replaced by the next index of its group. A sequential
   * sampler's is left out: its batch is shorter, and a batch of none is passed over.
   */
  RnOnError on_error;
  const RnTargetSpec *targets; /* NULL: test mode, no targets */
} RnLoaderOptions;

/* @dataset and @sampler are lent for the life of the loader. */
RnLoader *rn_loader_new (const RnDataset *dataset, RnSampler *sampler, const RnLoaderOptions *options,
                         GError **error);
/* Stops and joins the threads, at any moment. */
void rn_loader_free (RnLoader *loader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnLoader, rn_loader_free)

int64_t rn_loader_n_batches (const RnLoader *loader);
/* Bytes of all slots and scratch buffers. */
gsize rn_loader_bytes (const RnLoader *loader);
/* Samples replaced since the loader was made (on_error: skip). */
int64_t rn_loader_n_skipped (RnLoader *loader);

/*
 * Begins @epoch at @first_batch, without working through the batches before it; what was under way is
 * dropped.
 */
void rn_loader_start (RnLoader *loader, guint64 epoch, int64_t first_batch);
/*
 * The next batch, lent until rn_loader_release; one batch is lent at a time. NULL without error after the
 * last batch, NULL with @error if a sample cannot be read (the message names its file).
 */
const RnBatch *rn_loader_next (RnLoader *loader, GError **error);
void rn_loader_release (RnLoader *loader, const RnBatch *batch);

G_END_DECLS

#endif
