/*
 * topk.c: test-time selection: all anchors get a key in parallel, then a heap of the k best is run through.
 * Workspace: keys, heap.
 */
#include "config.h"

#include "kernels/cpu/planes.h"
#include "kernels/half.h"
#include "kernels/kernel-table.h"
#include "kernels/topk-key.h"

typedef struct
{
  const RnTopkArgs *args;
  const RnTensorDesc *logits_desc, *deltas_desc;
  const void *logits, *deltas;
  int64_t n_cells, n_anchors; /* of one image */
} Level;

static inline G_ALWAYS_INLINE void
score_cell_of (RnDType t, const Level *l, int64_t n, int64_t cell, guint64 *keys)
{
  const RnPlanes p = rn_planes (l->logits_desc);
  const int64_t anchors = l->args->anchors_per_cell, classes = l->args->num_classes;
  int64_t block = (n * p.blocks * l->n_cells + cell) * p.b; /* of the channel */
  int64_t in_block = 0;

  for (int64_t a = 0; a < anchors; a++)
    {
      float best = rn_float_get (t, l->logits, block + in_block);
      for (int64_t k = 0; k < classes; k++)
        {
          float value = rn_float_get (t, l->logits, block + in_block);
          best = value > best || best != best ? value : best; /* NaN only when all are */
          if (++in_block == p.b)
            {
              in_block = 0;
              block += l->n_cells * p.b;
            }
        }
      keys[cell * anchors + a] = rn_topk_key (best, cell * anchors + a);
    }
}

/* Keys of the anchors of one cell. */
static void
score_cell (const Level *l, int64_t n, int64_t cell, guint64 *keys)
{
  if (l->logits_desc->dtype == RN_F16)
    score_cell_of (RN_F16, l, n, cell, keys);
  else if (l->logits_desc->dtype == RN_BF16)
    score_cell_of (RN_BF16, l, n, cell, keys);
  else
    score_cell_of (RN_F32, l, n, cell, keys);
}

/* Restores the heap below @at: each key is the smallest of its part. */
static void
sift_down (guint64 *heap, int64_t at, int64_t size)
{
  for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1)
    {
      if (child + 1 < size && heap[child + 1] < heap[child])
        child++;
      if (heap[at] <= heap[child])
        return;
      guint64 key = heap[at];
      heap[at] = heap[child];
      heap[child] = key;
      at = child;
    }
}

/* heap[0 .. k-1] = the k largest keys, largest first. */
static void
select_largest (const guint64 *keys, int64_t n, guint64 *heap, int64_t k)
{
  memcpy (heap, keys, (gsize) k * sizeof *heap);
  for (int64_t i = k / 2 - 1; i >= 0; i--)
    sift_down (heap, i, k);
  for (int64_t i = k; i < n; i++)
    if (keys[i] > heap[0])
      {
        heap[0] = keys[i];
        sift_down (heap, 0, k);
      }
  for (int64_t size = k - 1; size > 0; size--) /* heap sort: the smallest goes to the end */
    {
      guint64 key = heap[0];
      heap[0] = heap[size];
      heap[size] = key;
      sift_down (heap, 0, size);
    }
}

static void
copy_row (const RnTensorDesc *d, const void *data, int64_t n, int64_t cell, int64_t first, int64_t count,
          float *row)
{
  for (int64_t i = 0; i < count; i++)
    row[i] =
        rn_float_get (d->dtype, data, rn_desc_index (d, n, first + i, cell / d->dims[3], cell % d->dims[3]));
}

static RnStatus
topk_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnTensorDesc *d = &call->in[RN_TOPK_LOGITS];
  int64_t n_anchors = d->dims[2] * d->dims[3] * call->args.topk.anchors_per_cell;
  prepared->workspace_bytes = (gsize) (n_anchors + call->args.topk.k) * sizeof (guint64);
  return RN_STATUS_OK;
}

static RnStatus
topk (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnTopkArgs *args = &call->args.topk;
  const RnTensorDesc *ld = &call->in[RN_TOPK_LOGITS];
  const int64_t n_cells = ld->dims[2] * ld->dims[3];
  const Level l = {
    .args = args,
    .logits_desc = ld,
    .deltas_desc = &call->in[RN_TOPK_DELTAS],
    .logits = in[RN_TOPK_LOGITS],
    .deltas = in[RN_TOPK_DELTAS],
    .n_cells = n_cells,
    .n_anchors = n_cells * args->anchors_per_cell,
  };
  guint64 *keys = workspace, *heap = keys + l.n_anchors;
  int32_t *index = out[RN_TOPK_INDEX];
  float *row_logits = out[RN_TOPK_ROW_LOGITS], *row_deltas = out[RN_TOPK_ROW_DELTAS];

  for (int64_t n = 0; n < ld->dims[0]; n++)
    {
      const gboolean all = args->k == l.n_anchors; /* then in order of anchors */
      if (!all)
        {
#pragma omp parallel for schedule(static)
          for (int64_t cell = 0; cell < n_cells; cell++)
            score_cell (&l, n, cell, keys);
          select_largest (keys, l.n_anchors, heap, args->k);
        }
#pragma omp parallel for schedule(static)
      for (int64_t j = 0; j < args->k; j++)
        {
          int64_t row = n * args->k + j, anchor = all ? j : rn_topk_key_index (heap[j]);
          int64_t cell = anchor / args->anchors_per_cell, a = anchor % args->anchors_per_cell;
          index[row] = (int32_t) anchor;
          copy_row (ld, l.logits, n, cell, a * args->num_classes, args->num_classes,
                    row_logits + row * args->num_classes);
          copy_row (l.deltas_desc, l.deltas, n, cell, a * 4, 4, row_deltas + row * 4);
        }
    }
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_topk = {
  .op = RN_OP_TOPK,
  .name = "cpu:topk:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = topk_prepare,
  .run = topk,
};
