/*
 * sampler.h: which images form which batch.
 *
 * The order of an epoch is a function of (seed, epoch), so these two numbers are the whole state of a
 * sampler.
 */
#ifndef RUNNER_DATASETS_SAMPLER_H
#define RUNNER_DATASETS_SAMPLER_H

#include "datasets/dataset.h"

G_BEGIN_DECLS

typedef enum
{
  /*
   * Shuffled; every batch holds images of one aspect group, and random repeats fill the last batch of a group
   * (MMDetection's GroupSampler).
   */
  RN_SAMPLER_GROUP,
  RN_SAMPLER_RANDOM,     /* the same, groups ignored */
  RN_SAMPLER_SEQUENTIAL, /* in order; the last batch may be short */
} RnSamplerKind;

typedef struct _RnSampler RnSampler;

typedef struct
{
  int height, width;
} RnBatchShape;

RnSampler *rn_sampler_new (RnSamplerKind kind, const RnDataset *dataset, int batch_size, guint64 seed);
/* From the group (0 or 1) of each of @n indices; @groups is copied. */
RnSampler *rn_sampler_new_from_groups (RnSamplerKind kind, const guint8 *groups, int64_t n, int batch_size,
                                       guint64 seed);
void rn_sampler_free (RnSampler *sampler);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnSampler, rn_sampler_free)

RnSamplerKind rn_sampler_kind (const RnSampler *sampler);
int rn_sampler_batch_size (const RnSampler *sampler);
/* Batches of an epoch; the same for every epoch. */
int64_t rn_sampler_n_batches (const RnSampler *sampler);
/*
 * Indices of batch @i of @epoch into @indices [batch_size]; gives how many there are (batch_size but for the
 * last sequential one). Not thread-safe.
 */
int rn_sampler_batch (RnSampler *sampler, guint64 epoch, int64_t i, int64_t *indices);

/* The next index of the same group, going round; @index itself if it is the only one. Thread-safe. */
int64_t rn_sampler_next_in_group (const RnSampler *sampler, int64_t index);

/*
 * The padded shapes of all batches, sorted by area, then height. While every image comes to one size they are
 * exact: (max H, max W) over every combination that the sampler can form. Where sizes are drawn and that
 * would be many, a few shapes that hold every batch, and @is_rounded (nullable) becomes TRUE; see
 * docs/design/random-sizes.md. Every batch is rounded up to one of them by rn_batch_shape_find. (transfer
 * full, g_free)
 */
RnBatchShape *rn_sampler_batch_shapes (const RnSampler *sampler, const RnDataset *dataset, guint *n,
                                       gboolean *is_rounded);
/* The smallest of the sorted @shapes that holds @height x @width; NULL if none does. Lent. */
const RnBatchShape *rn_batch_shape_find (const RnBatchShape *shapes, guint n, int height, int width);

G_END_DECLS

#endif
