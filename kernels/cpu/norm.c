/*
 * norm.c: batch normalisation, two passes over memory in each direction. Own code instead of oneDNN's: the
 * sums are in double and in an order that depends on shapes only, so bits do not depend on the number of
 * threads. By itself oneDNN 2.6 takes 0.5 to 1 of the time on AVX-512; its forward pass owes that to stores
 * that bypass the caches, which the next op pays for: training and a pooling of the result together take 0.9
 * to 1.3 of the time with oneDNN.
 *
 * Workspace: double [planes][parts][2][b] of partial sums; double [2][stored channels]; float [4][stored
 * channels] of coefficients.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/cpu/strips.h"
#include "kernels/kernel-table.h"

#include <math.h>
#include <string.h>

/* Cells of a plane that one partial sum covers. */
#define PART 1024
/*
 * Channels of a block that fills a vector register: loops over so many are compiled apart, and keep sums and
 * coefficients in registers.
 */
#define LANES 16

typedef struct
{
  RnDType dtype; /* of the activations */
  RnPlanes p;
  int64_t cells, parts, stored; /* cells of a plane, parts of a plane, channels as stored */
  double *partial, *sum, *dot;  /* per channel: sum of v, and of the second quantity */
  float *mean, *scale, *shift, *slope;
} Norm;

static gsize
norm_bytes (const RnTensorDesc *d)
{
  const RnPlanes p = rn_planes (d);
  int64_t parts = (p.h * p.w + PART - 1) / PART, stored = p.blocks * p.b;
  return (gsize) (p.n * parts * stored * 2 + 2 * stored) * sizeof (double)
         + (gsize) (4 * stored) * sizeof (float);
}

static Norm
norm_init (const RnTensorDesc *d, void *workspace)
{
  Norm n = { .dtype = d->dtype, .p = rn_planes (d) };
  n.cells = n.p.h * n.p.w;
  n.parts = (n.cells + PART - 1) / PART;
  n.stored = n.p.blocks * n.p.b;
  n.partial = workspace;
  n.sum = n.partial + n.p.n * n.parts * n.stored * 2;
  n.dot = n.sum + n.stored;
  n.mean = (float *) (n.dot + n.stored);
  n.scale = n.mean + n.stored;
  n.shift = n.scale + n.stored;
  n.slope = n.shift + n.stored;
  memset (n.mean, 0, (gsize) (4 * n.stored) * sizeof (float)); /* padding channels come out as zero */
  return n;
}

static RnStatus
norm_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  prepared->workspace_bytes = norm_bytes (&call->in[0]);
  return RN_STATUS_OK;
}

/*
 * Adds v to @sum and v * (src - mean) to @dot, for @n cells of @b channels; v = diff or, where that is NULL,
 * src.
 */
static inline G_ALWAYS_INLINE void
reduce_part_of (const float *src, const float *diff, int64_t n, int64_t b, const float *restrict mean,
                double *restrict sum, double *restrict dot)
{
  const float *v = diff != NULL ? diff : src;

  for (int64_t at = 0; at < n * b; at += b)
#pragma omp simd
    for (int64_t c = 0; c < b; c++)
      {
        sum[c] += v[at + c];
        dot[c] += (double) v[at + c] * ((double) src[at + c] - mean[c]);
      }
}

RN_CLONES static void
reduce_part (const float *src, const float *diff, int64_t n, int64_t b, const float *mean, double *sum,
             double *dot)
{
  if (b == LANES && diff == NULL)
    reduce_part_of (src, NULL, n, LANES, mean, sum, dot);
  else if (b == LANES)
    reduce_part_of (src, diff, n, LANES, mean, sum, dot);
  else
    reduce_part_of (src, diff, n, b, mean, sum, dot);
}

/* The same for activations of any type. @sum holds @b sums, then @b of the second quantity. */
static void
reduce_cells (RnDType t, const void *src, const void *diff, int64_t at, int64_t n, int64_t b,
              const float *mean, double *sum)
{
  const int64_t cells = rn_strip_cells (t, n, b), lanes = rn_strip_lanes (t, b);
  float s[RN_STRIP], d[RN_STRIP];

  for (int64_t first = 0; first < n; first += cells)
    for (int64_t c = 0; c < b; c += lanes)
      {
        const int64_t here = MIN (cells, n - first), wide = MIN (lanes, b - c), start = at + first * b + c;
        reduce_part (rn_strip_read (t, src, start, here * wide, s),
                     rn_strip_read (t, diff, start, here * wide, d), here, wide, mean + c, sum + c,
                     sum + b + c);
      }
}

/*
 * n->sum[c] = sum of v, n->dot[c] = sum of v * (src - mean[c]). Products of two floats are exact in double;
 * so is, to 1e-8 of the variance for means up to 10^4 standard deviations, the difference of E v^2 and the
 * squared mean.
 */
static void
reduce (const Norm *n, const void *src, const void *diff)
{
  const int64_t b = n->p.b, planes = n->p.n * n->p.blocks;

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t part = 0; part < n->parts; part++)
      {
        double *sum = n->partial + (plane * n->parts + part) * 2 * b;
        const int64_t first = part * PART;
        memset (sum, 0, (gsize) (2 * b) * sizeof *sum);
        reduce_cells (n->dtype, src, diff, (plane * n->cells + first) * b, MIN (PART, n->cells - first), b,
                      n->mean + plane % n->p.blocks * b, sum);
      }

  memset (n->sum, 0, (gsize) (2 * n->stored) * sizeof *n->sum);
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t part = 0; part < n->parts; part++)
      for (int64_t c = 0; c < b; c++)
        {
          const double *sum = n->partial + (plane * n->parts + part) * 2 * b;
          n->sum[plane % n->p.blocks * b + c] += sum[c];
          n->dot[plane % n->p.blocks * b + c] += sum[b + c];
        }
}

/* dst = relu? ((src - mean) * scale + shift), for @n cells of @b channels. */
static inline G_ALWAYS_INLINE void
normalise_row_of (const float *src, int64_t n, int64_t b, const float *restrict mean,
                  const float *restrict scale, const float *restrict shift, gboolean relu, float *dst)
{
  const float least = relu ? 0 : -INFINITY;

  for (int64_t at = 0; at < n * b; at += b)
#pragma omp simd
    for (int64_t c = 0; c < b; c++)
      {
        float value = (src[at + c] - mean[c]) * scale[c] + shift[c];
        dst[at + c] = value < least ? least : value;
      }
}

RN_CLONES static void
normalise_row (const float *src, int64_t n, int64_t b, const float *mean, const float *scale,
               const float *shift, gboolean relu, float *dst)
{
  if (b == LANES)
    normalise_row_of (src, n, LANES, mean, scale, shift, relu, dst);
  else
    normalise_row_of (src, n, b, mean, scale, shift, relu, dst);
}

static void
normalise (const Norm *n, const void *src, gboolean relu, void *dst)
{
  const int64_t planes = n->p.n * n->p.blocks, b = n->p.b;
  const int64_t cells = rn_strip_cells (n->dtype, n->p.w, b), lanes = rn_strip_lanes (n->dtype, b);

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t y = 0; y < n->p.h; y++)
      for (int64_t x = 0; x < n->p.w; x += cells)
        for (int64_t c = 0; c < b; c += lanes)
          {
            float s[RN_STRIP], d[RN_STRIP];
            const int64_t here = MIN (cells, n->p.w - x), wide = MIN (lanes, b - c), size = here * wide;
            const int64_t at = rn_planes_row (&n->p, plane, y) + x * b + c;
            const int64_t first = plane % n->p.blocks * b + c;
            float *to = rn_strip_begin (n->dtype, dst, at, d);
            normalise_row (rn_strip_read (n->dtype, src, at, size, s), here, wide, n->mean + first,
                           n->scale + first, n->shift + first, relu, to);
            rn_strip_write (n->dtype, to, size, dst, at);
          }
}

static RnStatus
batch_norm_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                void *const *out, void *workspace)
{
  const RnNormArgs *args = &call->args.norm;
  const RnTensorDesc *d = &call->in[RN_NORM_SRC];
  const float *gamma = in[RN_NORM_GAMMA], *beta = in[RN_NORM_BETA];
  float *saved_mean = out[RN_NORM_SAVED_MEAN], *saved_invstd = out[RN_NORM_SAVED_INVSTD];
  float *running_mean = out[RN_NORM_RUNNING_MEAN], *running_var = out[RN_NORM_RUNNING_VAR];
  const double count = (double) (d->dims[0] * d->dims[2] * d->dims[3]);
  Norm n = norm_init (d, workspace);

  if (args->training)
    reduce (&n, in[RN_NORM_SRC], NULL);
  for (int64_t c = 0; c < d->dims[1]; c++)
    {
      double mean, var;
      if (args->training)
        {
          mean = n.sum[c] / count;
          var = MAX (n.dot[c] / count - mean * mean, 0);
          saved_mean[c] = (float) mean;
          saved_invstd[c] = (float) (1 / sqrt (var + args->eps));
          if (running_mean != NULL && !args->recompute)
            {
              double unbiased = count > 1 ? var * count / (count - 1) : var;
              running_mean[c] =
                  (float) ((1 - args->momentum) * (double) running_mean[c] + args->momentum * mean);
              running_var[c] =
                  (float) ((1 - args->momentum) * (double) running_var[c] + args->momentum * unbiased);
            }
        }
      else
        {
          mean = ((const float *) in[RN_NORM_MEAN])[c];
          var = ((const float *) in[RN_NORM_VAR])[c];
        }
      n.mean[c] = (float) mean;
      n.scale[c] = (float) (gamma[c] / sqrt (var + args->eps));
      n.shift[c] = beta[c];
    }
  normalise (&n, in[RN_NORM_SRC], args->relu, out[RN_NORM_DST]);
  return RN_STATUS_OK;
}

/* dx = scale * (dy - shift - (src - mean) * slope), for @n cells of @b channels. */
static inline G_ALWAYS_INLINE void
denormalise_row_of (const float *src, const float *diff_dst, int64_t n, int64_t b, const float *restrict mean,
                    const float *restrict scale, const float *restrict shift, const float *restrict slope,
                    float *diff_src)
{
  for (int64_t at = 0; at < n * b; at += b)
#pragma omp simd
    for (int64_t c = 0; c < b; c++)
      diff_src[at + c] = scale[c] * (diff_dst[at + c] - shift[c] - (src[at + c] - mean[c]) * slope[c]);
}

RN_CLONES static void
denormalise_row (const float *src, const float *diff_dst, int64_t n, int64_t b, const float *mean,
                 const float *scale, const float *shift, const float *slope, float *diff_src)
{
  if (b == LANES)
    denormalise_row_of (src, diff_dst, n, LANES, mean, scale, shift, slope, diff_src);
  else
    denormalise_row_of (src, diff_dst, n, b, mean, scale, shift, slope, diff_src);
}

static void
denormalise (const Norm *n, const void *src, const void *diff_dst, void *diff_src)
{
  const int64_t planes = n->p.n * n->p.blocks, b = n->p.b;
  const int64_t cells = rn_strip_cells (n->dtype, n->p.w, b), lanes = rn_strip_lanes (n->dtype, b);

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t y = 0; y < n->p.h; y++)
      for (int64_t x = 0; x < n->p.w; x += cells)
        for (int64_t c = 0; c < b; c += lanes)
          {
            float s[RN_STRIP], dy[RN_STRIP], dx[RN_STRIP];
            const int64_t here = MIN (cells, n->p.w - x), wide = MIN (lanes, b - c), size = here * wide;
            const int64_t at = rn_planes_row (&n->p, plane, y) + x * b + c;
            const int64_t first = plane % n->p.blocks * b + c;
            float *to = rn_strip_begin (n->dtype, diff_src, at, dx);
            denormalise_row (rn_strip_read (n->dtype, src, at, size, s),
                             rn_strip_read (n->dtype, diff_dst, at, size, dy), here, wide, n->mean + first,
                             n->scale + first, n->shift + first, n->slope + first, to);
            rn_strip_write (n->dtype, to, size, diff_src, at);
          }
}

/* The formulas are those of ref/norm.c. */
static RnStatus
batch_norm_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                void *const *out, void *workspace)
{
  const RnNormArgs *args = &call->args.norm;
  const RnTensorDesc *d = &call->in[RN_NORM_BWD_SRC];
  const float *gamma = in[RN_NORM_BWD_GAMMA];
  const float *mean = in[RN_NORM_BWD_MEAN], *var = in[RN_NORM_BWD_VAR];
  float *diff_gamma = out[RN_NORM_BWD_DIFF_GAMMA], *diff_beta = out[RN_NORM_BWD_DIFF_BETA];
  const double count = (double) (d->dims[0] * d->dims[2] * d->dims[3]);
  Norm n = norm_init (d, workspace);

  memcpy (n.mean, mean, (gsize) d->dims[1] * sizeof *mean);
  if (args->training || diff_gamma != NULL || diff_beta != NULL)
    reduce (&n, in[RN_NORM_BWD_SRC], in[RN_NORM_BWD_DIFF_DST]);
  for (int64_t c = 0; c < d->dims[1]; c++)
    {
      double invstd = args->training ? var[c] : 1 / sqrt ((double) var[c] + args->eps);
      if (diff_gamma != NULL)
        diff_gamma[c] += (float) (n.dot[c] * invstd);
      if (diff_beta != NULL)
        diff_beta[c] += (float) n.sum[c];
      n.scale[c] = (float) (gamma[c] * invstd);
      n.shift[c] = args->training ? (float) (n.sum[c] / count) : 0;
      n.slope[c] = args->training ? (float) (n.dot[c] * invstd * invstd / count) : 0;
    }
  denormalise (&n, in[RN_NORM_BWD_SRC], in[RN_NORM_BWD_DIFF_DST], out[RN_NORM_BWD_DIFF_SRC]);
  return RN_STATUS_OK;
}

const RnKernel rn_cpu_batch_norm_fwd = {
  .op = RN_OP_BATCH_NORM_FWD,
  .name = "cpu:batch_norm_fwd:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = norm_prepare,
  .run = batch_norm_fwd,
};

const RnKernel rn_cpu_batch_norm_bwd = {
  .op = RN_OP_BATCH_NORM_BWD,
  .name = "cpu:batch_norm_bwd:openmp",
  .priority = RN_PRIORITY_OPENMP,
  .prepare = norm_prepare,
  .run = batch_norm_bwd,
};
