#include "config.h"

#include "datasets/sampler-private.h"

#include "runner/base/rng.h"

#include <string.h>

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
  for (int g = 0; g < RN_N_GROUPS; g++)
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
  for (guint8 group = 0; group < RN_N_GROUPS; group++)
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
