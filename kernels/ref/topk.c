/* topk.c: the k anchors of a level with the largest class logit, image by image, with their rows. */
#include "config.h"

#include "kernels/half.h"
#include "kernels/kernel-table.h"
#include "kernels/topk-key.h"

#include <math.h>

typedef struct
{
  const RnTopkArgs *args;
  const RnTensorDesc *logits_desc, *deltas_desc;
  const void *logits, *deltas;
} Level;

static float
value_of (const RnTensorDesc *d, const void *data, int64_t n, int64_t anchor, int per_anchor,
          int anchors_per_cell, int i)
{
  int64_t cell = anchor / anchors_per_cell, c = anchor % anchors_per_cell * per_anchor + i;
  return rn_float_get (d->dtype, data, rn_desc_index (d, n, c, cell / d->dims[3], cell % d->dims[3]));
}

static float
logit_of (const Level *l, int64_t n, int64_t anchor, int k)
{
  return value_of (l->logits_desc, l->logits, n, anchor, l->args->num_classes, l->args->anchors_per_cell, k);
}

static float
best_logit (const Level *l, int64_t n, int64_t anchor)
{
  float best = logit_of (l, n, anchor, 0);
  for (int k = 1; k < l->args->num_classes; k++)
    best = fmaxf (best, logit_of (l, n, anchor, k));
  return best;
}

/* The selected anchor after the one with key @last: keys differ, so the next is the largest key below it. */
static guint64
next_key (const Level *l, int64_t n, int64_t n_anchors, guint64 last)
{
  guint64 next = 0;
  for (int64_t i = 0; i < n_anchors; i++)
    {
      guint64 key = rn_topk_key (best_logit (l, n, i), i);
      if (key < last && key > next)
        next = key;
    }
  return next;
}

static RnStatus
topk (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  const RnTopkArgs *args = &call->args.topk;
  const Level l = { args, &call->in[RN_TOPK_LOGITS], &call->in[RN_TOPK_DELTAS], in[RN_TOPK_LOGITS],
                    in[RN_TOPK_DELTAS] };
  int32_t *index = out[RN_TOPK_INDEX];
  float *row_logits = out[RN_TOPK_ROW_LOGITS], *row_deltas = out[RN_TOPK_ROW_DELTAS];
  int64_t n_anchors = l.logits_desc->dims[2] * l.logits_desc->dims[3] * args->anchors_per_cell;

  for (int64_t n = 0; n < l.logits_desc->dims[0]; n++)
    {
      guint64 key = G_MAXUINT64;
      for (int64_t j = 0; j < args->k; j++)
        {
          int64_t anchor = j;
          if (args->k < n_anchors)
            {
              key = next_key (&l, n, n_anchors, key);
              anchor = rn_topk_key_index (key);
            }
          int64_t row = n * args->k + j;
          index[row] = (int32_t) anchor;
          for (int k = 0; k < args->num_classes; k++)
            row_logits[row * args->num_classes + k] = logit_of (&l, n, anchor, k);
          for (int i = 0; i < 4; i++)
            row_deltas[row * 4 + i] =
                value_of (l.deltas_desc, l.deltas, n, anchor, 4, args->anchors_per_cell, i);
        }
    }
  return RN_STATUS_OK;
}

const RnKernel rn_ref_topk = { .op = RN_OP_TOPK, .name = "ref:topk", .run = topk };
