/*
 * box-loss.c: L1 or smooth L1 over the matched anchors of one level, and its gradient, in one pass and in
 * place. Rows of cells are walked together with the list of positives, which has the same order.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>
#include <runner/batch.h>

typedef struct
{
  const RnBoxArgs *args;
  RnPlanes p;
  const RnPositive *positives;
  int64_t n_positives;
  float scale; /* of the gradient */
} Box;

/* First positive that does not come before (image, anchor). */
static int64_t
lower_bound (const Box *b, int64_t image, int64_t anchor)
{
  int64_t lo = 0, hi = b->n_positives;
  while (lo < hi)
    {
      int64_t mid = lo + (hi - lo) / 2;
      const RnPositive *p = &b->positives[mid];
      if (p->image < image || (p->image == image && p->anchor < anchor))
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo;
}

/*
 * L1 (beta 0) or smooth L1: e^2 / (2 beta) below beta, |e| - beta / 2 from there on. The slope goes to
 * @slope.
 */
static float
smooth_l1 (float e, float beta, float *slope)
{
  if (fabsf (e) < beta)
    {
      *slope = e / beta;
      return e * e / (2 * beta);
    }
  *slope = e > 0 ? 1 : e < 0 ? -1 : e; /* 0 at equality, NaN for NaN */
  return fabsf (e) - beta / 2;
}

/* @t: type of predictions and gradient */
static inline G_ALWAYS_INLINE double
row_loss_of (RnDType t, const Box *b, const void *pred, int64_t n, int64_t y, void *diff)
{
  const int64_t a_per_cell = b->args->anchors_per_cell, plane_size = b->p.h * b->p.w * b->p.b;
  int64_t anchor = b->args->anchor_offset + y * b->p.w * a_per_cell;
  int64_t next = lower_bound (b, n, anchor);
  double sum = 0;

  for (int64_t x = 0; x < b->p.w; x++)
    {
      const int64_t cell = rn_planes_row (&b->p, n * b->p.blocks, y) + x * b->p.b; /* its channel 0 */
      for (int64_t a = 0; a < a_per_cell; a++, anchor++)
        {
          const RnPositive *positive = next < b->n_positives ? &b->positives[next] : NULL;
          gboolean matched = positive != NULL && positive->image == n && positive->anchor == anchor;
          for (int d = 0; d < 4 && (matched || diff != NULL); d++)
            {
              int64_t c = a * 4 + d, at = cell + c / b->p.b * plane_size + c % b->p.b;
              float slope = 0;
              if (matched)
                sum += smooth_l1 (rn_float_get (t, pred, at) - positive->target[d], b->args->beta, &slope);
              if (diff != NULL)
                rn_float_set (t, diff, at, slope * b->scale);
            }
          next += matched;
        }
      /* Channels that only fill up the last block. */
      for (int64_t c = a_per_cell * 4; c < b->p.blocks * b->p.b && diff != NULL; c++)
        rn_float_set (t, diff, cell + c / b->p.b * plane_size + c % b->p.b, 0);
    }
  return sum;
}

static double
row_loss (RnDType t, const Box *b, const void *pred, int64_t n, int64_t y, void *diff)
{
  if (t == RN_F16)
    return row_loss_of (RN_F16, b, pred, n, y, diff);
  if (t == RN_BF16)
    return row_loss_of (RN_BF16, b, pred, n, y, diff);
  return row_loss_of (RN_F32, b, pred, n, y, diff);
}

static RnStatus
box_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnTensorDesc *d = &call->in[RN_BOX_PRED];
  prepared->workspace_bytes = (gsize) (d->dims[0] * d->dims[2]) * sizeof (double);
  return RN_STATUS_OK;
}

static RnStatus
box_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnBoxArgs *args = &call->args.box;
  const double factor = args->weight / (double) *(const float *) in[RN_BOX_AVG];
  const int64_t capacity = call->in[RN_BOX_POSITIVES].dims[0] / (int64_t) sizeof (RnPositive);
  const Box b = {
    .args = args,
    .p = rn_planes (&call->in[RN_BOX_PRED]),
    .positives = in[RN_BOX_POSITIVES],
    .n_positives = CLAMP (*(const int64_t *) in[RN_BOX_COUNT], 0, capacity),
    .scale = (float) (factor * *(const float *) in[RN_BOX_GRAD_SCALE]),
  };
  const RnDType t = call->in[RN_BOX_PRED].dtype;
  const int64_t n_rows = b.p.n * b.p.h;
  double *partial = workspace; /* [n_rows] */

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < n_rows; row++)
    partial[row] = row_loss (t, &b, in[RN_BOX_PRED], row / b.p.h, row % b.p.h, out[RN_LOSS_DIFF]);
  *(float *) out[RN_LOSS_VALUE] = (float) (rn_tree_sum (partial, n_rows) * factor);
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_box_loss = {
  .op = RN_OP_BOX_LOSS,
  .name = "cpu:box_loss:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = box_prepare,
  .run = box_loss,
};
