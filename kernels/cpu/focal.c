/*
 * focal.c: the sigmoid focal loss of one level and its gradient in one pass, in place.
 *
 * With z = x and w = 1 - alpha for y = 0, z = -x and w = -alpha for y = 1, and p = sigmoid (z):
 *
 *   loss = |w| p^gamma softplus (z),
 *
 *   d/dx = w p^gamma (p + gamma (1 - p) softplus (z)).
 *
 * (ref/losses.c has both cases written out.) Nearly every logit is a negative, so a tile is set up as
 * negatives and the few others are patched.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/cpu/vector-math.h"
#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <math.h>

#define TILE 1024

typedef struct
{
  const RnFocalArgs *args;
  RnDType dtype; /* of logits and gradient */
  RnPlanes p;
  int64_t channels;
  const int16_t *labels; /* of the level: those of image n begin n * label_stride further */
  int64_t label_stride;
} Focal;

typedef struct
{
  float z[TILE], w[TILE];
} Tile;

/* Corrects channels @lo .. @hi - 1 of cell @x; channel @lo is element @at of the tile. */
static void
patch_cell (const Focal *f, int64_t n, int64_t y, int64_t x, int64_t lo, int64_t hi, Tile *tile, int64_t at)
{
  const int64_t k = f->args->num_classes, a_per_cell = f->args->anchors_per_cell;
  const int16_t *labels = f->labels + n * f->label_stride + (y * f->p.w + x) * a_per_cell;

  for (int64_t a = lo / k; a * k < hi && a < a_per_cell; a++)
    {
      int64_t match = a * k + labels[a];
      if (labels[a] < 0) /* ignored: no loss from this anchor */
        for (int64_t c = MAX (a * k, lo); c < MIN ((a + 1) * k, hi); c++)
          tile->w[at + c - lo] = 0;
      else if (labels[a] < k && match >= lo && match < hi)
        {
          tile->z[at + match - lo] = -tile->z[at + match - lo];
          tile->w[at + match - lo] = -f->args->alpha;
        }
    }
  for (int64_t c = MAX (f->channels, lo); c < hi; c++) /* these only fill up the block */
    tile->w[at + c - lo] = 0;
}

/* Elements @start .. @start + @size - 1 of row @y of an image's block whose channels begin at @first. @row:
 * its storage. */
static void
load_tile (const Focal *f, const void *row, int64_t n, int64_t first, int64_t y, int64_t start, int64_t size,
           Tile *tile)
{
  const float negative = 1 - f->args->alpha;
  const int64_t b = f->p.b;

  rn_floats_from (f->dtype, (const guint8 *) row + (gsize) start * rn_dtype_size (f->dtype), size, tile->z);
#pragma omp simd
  for (int64_t i = 0; i < size; i++)
    tile->w[i] = negative;
  for (int64_t x = start / b; x * b < start + size; x++)
    {
      int64_t lo = MAX (x * b, start), hi = MIN ((x + 1) * b, start + size);
      patch_cell (f, n, y, x, first + lo - x * b, first + hi - x * b, tile, lo - start);
    }
}

/*
 * The gradient goes to z; the return value is the loss. @square: gamma is 2, then p^gamma costs no second
 * exponential.
 */
static inline __attribute__ ((always_inline)) double
tile_loss (Tile *tile, int64_t size, float gamma, gboolean square, float scale)
{
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; i++)
    {
      float z = tile->z[i], e = rn_exp_nonpositive (-fabsf (z)), l = rn_log1p_unit (e);
      float larger = 1 / (1 + e), smaller = e * larger;
      float p = z >= 0 ? larger : smaller, q = z >= 0 ? smaller : larger; /* sigmoid (z), sigmoid (-z) */
      float softplus = l + (z < 0 ? 0 : z), minus_log_p = l + (z < 0 ? -z : 0);
      float power = square ? p * p : rn_exp_nonpositive (-gamma * minus_log_p);
      sum += fabsf (tile->w[i]) * power * softplus;
      tile->z[i] = tile->w[i] * power * (p + gamma * q * softplus) * scale;
    }
  return sum;
}

RN_CLONES static double
tile_loss_squared (Tile *tile, int64_t size, float scale)
{
  return tile_loss (tile, size, 2, TRUE, scale);
}

RN_CLONES static double
tile_loss_power (Tile *tile, int64_t size, float gamma, float scale)
{
  return tile_loss (tile, size, gamma, FALSE, scale);
}

static double
row_loss (const Focal *f, const void *logits, int64_t plane, int64_t y, float scale, void *diff)
{
  const gsize element = rn_dtype_size (f->dtype), at = (gsize) rn_planes_row (&f->p, plane, y) * element;
  const int64_t size = f->p.w * f->p.b, first = plane % f->p.blocks * f->p.b; /* channel */
  double sum = 0;
  Tile tile;

  for (int64_t start = 0; start < size; start += TILE)
    {
      int64_t n = MIN (TILE, size - start);
      load_tile (f, (const guint8 *) logits + at, plane / f->p.blocks, first, y, start, n, &tile);
      sum += f->args->gamma == 2 ? tile_loss_squared (&tile, n, scale)
                                 : tile_loss_power (&tile, n, f->args->gamma, scale);
      if (diff != NULL)
        rn_floats_to (f->dtype, tile.z, n, (guint8 *) diff + at + (gsize) start * element);
    }
  return sum;
}

static RnStatus
focal_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnPlanes p = rn_planes (&call->in[RN_FOCAL_LOGITS]);
  prepared->workspace_bytes = (gsize) (p.n * p.blocks * p.h) * sizeof (double);
  return RN_STATUS_OK;
}

static RnStatus
focal_loss (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
            void *const *out, void *workspace)
{
  const RnFocalArgs *args = &call->args.focal;
  const Focal f = {
    .args = args,
    .dtype = call->in[RN_FOCAL_LOGITS].dtype,
    .p = rn_planes (&call->in[RN_FOCAL_LOGITS]),
    .channels = call->in[RN_FOCAL_LOGITS].dims[1],
    .labels = (const int16_t *) in[RN_FOCAL_LABELS] + args->anchor_offset,
    .label_stride = call->in[RN_FOCAL_LABELS].dims[1],
  };
  const double factor = args->weight / (double) *(const float *) in[RN_FOCAL_AVG];
  const float scale = (float) (factor * *(const float *) in[RN_FOCAL_GRAD_SCALE]);
  const int64_t n_rows = f.p.n * f.p.blocks * f.p.h;
  double *partial = workspace; /* [n_rows] */

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < n_rows; row++)
    partial[row] = row_loss (&f, in[RN_FOCAL_LOGITS], row / f.p.h, row % f.p.h, scale, out[RN_LOSS_DIFF]);
  *(float *) out[RN_LOSS_VALUE] = (float) (rn_tree_sum (partial, n_rows) * factor);
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_focal_loss = {
  .op = RN_OP_FOCAL_LOSS,
  .name = "cpu:focal_loss:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = focal_prepare,
  .run = focal_loss,
};
