/* sampler-private.h: what a sampler consists of, for sampler.c and batch-shapes.c. */
#ifndef RUNNER_DATASETS_SAMPLER_PRIVATE_H
#define RUNNER_DATASETS_SAMPLER_PRIVATE_H

#include "datasets/sampler.h"

G_BEGIN_DECLS

#define RN_N_GROUPS 2

struct _RnSampler
{
  RnSamplerKind kind;
  int batch_size;
  guint64 seed;
  int64_t n;
  guint8 *groups; /* [n]; all 0 where groups are ignored */
  int64_t group_size[RN_N_GROUPS];
  int64_t n_batches;

  int64_t *order;   /* [n_batches * batch_size] of @epoch: batch after batch */
  gboolean ordered; /* whether @order is filled */
  guint64 epoch;
};

G_END_DECLS

#endif
