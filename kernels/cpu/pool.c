/*
 * pool.c: max and average pooling. Channels of a block lie side by side, so a window is a loop over vectors;
 * own code instead of oneDNN's because it is bound by memory either way, and the index of the maximum is our
 * format (U8, first maximum) whatever the library's version.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/kernel-table.h"

#include <string.h>

/* Part of a window that lies inside the source, along one axis. */
typedef struct
{
  int64_t first, end; /* source cells */
  int64_t start;      /* where the window begins, maybe in the padding */
} Span;

static Span
span_of (const RnPoolArgs *args, int axis, int64_t out, int64_t size)
{
  int64_t start = out * args->stride[axis] - args->pad[axis];
  Span s = { MAX (start, 0), MIN (start + args->kernel[axis], size), start };
  return s;
}

/* Channels that are worked on together: a vector register of the widest kind. */
#define LANES 16

/* Windows of one row of the output. @index may be NULL. */
RN_CLONES static void
max_of_row (const RnPoolArgs *args, const float *plane, const RnPlanes *s, Span ys, int64_t out_w, float *dst,
            guint8 *index)
{
  const int64_t b = s->b;

  for (int64_t ox = 0; ox < out_w; ox++)
    for (int64_t c0 = 0; c0 < b; c0 += LANES)
      {
        const Span xs = span_of (args, 1, ox, s->w);
        const int64_t lanes = MIN (LANES, b - c0), at = ox * b + c0;
        float best[LANES];
        int32_t where[LANES];
        for (int64_t c = 0; c < lanes; c++)
          {
            best[c] = plane[(ys.first * s->w + xs.first) * b + c0 + c];
            where[c] = (int32_t) ((ys.first - ys.start) * args->kernel[1] + xs.first - xs.start);
          }
        for (int64_t y = ys.first; y < ys.end; y++)
          for (int64_t x = xs.first; x < xs.end; x++)
            {
              const float *cell = plane + (y * s->w + x) * b + c0;
              const int32_t here = (int32_t) ((y - ys.start) * args->kernel[1] + x - xs.start);
#pragma omp simd
              for (int64_t c = 0; c < lanes; c++)
                {
                  float value = cell[c];
                  gboolean better = !(value <= best[c]); /* NaN wins, as in PyTorch */
                  best[c] = better ? value : best[c];
                  where[c] = better ? here : where[c];
                }
            }
        memcpy (dst + at, best, (gsize) lanes * sizeof *best);
        for (int64_t c = 0; index != NULL && c < lanes; c++)
          index[at + c] = (guint8) where[c];
      }
}

static RnStatus
max_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnPlanes s = rn_planes (&call->in[0]), d = rn_planes (&call->out[RN_POOL_DST]);
  const float *src = in[0];
  float *dst = out[RN_POOL_DST];
  guint8 *index = out[RN_POOL_INDEX];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t y = 0; y < d.h; y++)
      {
        const float *source = src + rn_planes_row (&s, plane, 0);
        const int64_t at = rn_planes_row (&d, plane, y);
        const Span ys = span_of (args, 0, y, s.h);
        max_of_row (args, source, &s, ys, d.w, dst + at, index != NULL ? index + at : NULL);
      }
  return RN_STATUS_OK;
}

static RnStatus
max_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnPlanes s = rn_planes (&call->out[0]), d = rn_planes (&call->in[RN_POOL_BWD_DIFF_DST]);
  const float *diff_dst = in[RN_POOL_BWD_DIFF_DST];
  const guint8 *index = in[RN_POOL_BWD_INDEX];
  float *diff_src = out[0];

  /* Windows overlap, so one thread has a whole plane. */
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    {
      float *target = diff_src + rn_planes_row (&s, plane, 0);
      int64_t at = rn_planes_row (&d, plane, 0);
      memset (target, 0, (gsize) (s.h * s.w * s.b) * sizeof *target);
      for (int64_t y = 0; y < d.h; y++)
        for (int64_t x = 0; x < d.w; x++)
          for (int64_t c = 0; c < d.b; c++, at++)
            {
              int64_t sy = y * args->stride[0] - args->pad[0] + index[at] / args->kernel[1];
              int64_t sx = x * args->stride[1] - args->pad[1] + index[at] % args->kernel[1];
              if (sy >= 0 && sy < s.h && sx >= 0 && sx < s.w)
                target[(sy * s.w + sx) * s.b + c] += diff_dst[at];
            }
    }
  return RN_STATUS_OK;
}

static RnStatus
avg_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnPlanes s = rn_planes (&call->in[0]), d = rn_planes (&call->out[0]);
  const float *src = in[0];
  float *dst = out[0];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t oy = 0; oy < d.h; oy++)
      {
        const float *source = src + rn_planes_row (&s, plane, 0);
        float *to = dst + rn_planes_row (&d, plane, oy);
        Span ys = span_of (args, 0, oy, s.h);
        for (int64_t ox = 0; ox < d.w; ox++, to += d.b)
          {
            Span xs = span_of (args, 1, ox, s.w);
            float cells = (float) ((ys.end - ys.first) * (xs.end - xs.first));
            memset (to, 0, (gsize) d.b * sizeof *to);
            for (int64_t y = ys.first; y < ys.end; y++)
              for (int64_t x = xs.first; x < xs.end; x++)
#pragma omp simd
                for (int64_t c = 0; c < d.b; c++)
                  to[c] += source[(y * s.w + x) * s.b + c];
            for (int64_t c = 0; c < d.b; c++)
              to[c] /= cells;
          }
      }
  return RN_STATUS_OK;
}

static RnStatus
avg_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPoolArgs *args = &call->args.pool;
  const RnPlanes s = rn_planes (&call->out[0]), d = rn_planes (&call->in[0]);
  const float *diff_dst = in[0];
  float *diff_src = out[0];

  /* Windows may overlap, so one thread has a whole plane. */
#pragma omp parallel for schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    {
      float *target = diff_src + rn_planes_row (&s, plane, 0);
      const float *from = diff_dst + rn_planes_row (&d, plane, 0);
      memset (target, 0, (gsize) (s.h * s.w * s.b) * sizeof *target);
      for (int64_t oy = 0; oy < d.h; oy++)
        for (int64_t ox = 0; ox < d.w; ox++, from += d.b)
          {
            Span ys = span_of (args, 0, oy, s.h), xs = span_of (args, 1, ox, s.w);
            float cells = (float) ((ys.end - ys.first) * (xs.end - xs.first));
            for (int64_t y = ys.first; y < ys.end; y++)
              for (int64_t x = xs.first; x < xs.end; x++)
#pragma omp simd
                for (int64_t c = 0; c < d.b; c++)
                  target[(y * s.w + x) * s.b + c] += from[c] / cells;
          }
    }
  return RN_STATUS_OK;
}

#define ROW(OP, fn)                                                                           \
  {                                                                                           \
    .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .run = fn \
  }

const RnKernel rn_cpu_max_pool_fwd = ROW (MAX_POOL_FWD, max_pool_fwd);
const RnKernel rn_cpu_max_pool_bwd = ROW (MAX_POOL_BWD, max_pool_bwd);
const RnKernel rn_cpu_avg_pool_fwd = ROW (AVG_POOL_FWD, avg_pool_fwd);
const RnKernel rn_cpu_avg_pool_bwd = ROW (AVG_POOL_BWD, avg_pool_bwd);
