/*
 * pool.c: max and average pooling. Channels of a block lie side by side, so a window is a loop over vectors; own code instead of oneDNN's
 * because it is bound by memory either way, and the index of the maximum is our format (U8, first maximum) whatever the library's version.
 */
#include "config.h"

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

static void
max_of_window (const float *plane, const RnPlanes *s, Span ys, Span xs, float *dst)
{
  memcpy (dst, plane + (ys.first * s->w + xs.first) * s->b, (gsize) s->b * sizeof *dst);
  for (int64_t y = ys.first; y < ys.end; y++)
    for (int64_t x = xs.first; x < xs.end; x++)
      {
        const float *cell = plane + (y * s->w + x) * s->b;
#pragma omp simd
        for (int64_t c = 0; c < s->b; c++)
          dst[c] = cell[c] > dst[c] || cell[c] != cell[c] ? cell[c] : dst[c];
      }
}

static void
index_of_window (const float *plane, const RnPlanes *s, Span ys, Span xs, int kernel_w, float *dst, guint8 *index)
{
  for (int64_t c = 0; c < s->b; c++)
    {
      const float *channel = plane + c;
      float best = channel[(ys.first * s->w + xs.first) * s->b];
      int64_t at = (ys.first - ys.start) * kernel_w + xs.first - xs.start;
      for (int64_t y = ys.first; y < ys.end; y++)
        for (int64_t x = xs.first; x < xs.end; x++)
          {
            float value = channel[(y * s->w + x) * s->b];
            gboolean better = value > best || value != value; /* NaN wins, as in PyTorch */
            best = better ? value : best;
            at = better ? (y - ys.start) * kernel_w + x - xs.start : at;
          }
      dst[c] = best;
      index[c] = (guint8) at;
    }
}

static RnStatus
max_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
              void *workspace)
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
        int64_t at = rn_planes_row (&d, plane, y);
        Span ys = span_of (args, 0, y, s.h);
        for (int64_t x = 0; x < d.w; x++, at += d.b)
          {
            Span xs = span_of (args, 1, x, s.w);
            if (index == NULL)
              max_of_window (source, &s, ys, xs, dst + at);
            else
              index_of_window (source, &s, ys, xs, args->kernel[1], dst + at, index + at);
          }
      }
  return RN_STATUS_OK;
}

static RnStatus
max_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
              void *workspace)
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
avg_pool_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
              void *workspace)
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
avg_pool_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
              void *workspace)
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

#define ROW(OP, fn) { .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .run = fn }

const RnKernel rn_cpu_max_pool_fwd = ROW (MAX_POOL_FWD, max_pool_fwd);
const RnKernel rn_cpu_max_pool_bwd = ROW (MAX_POOL_BWD, max_pool_bwd);
const RnKernel rn_cpu_avg_pool_fwd = ROW (AVG_POOL_FWD, avg_pool_fwd);
const RnKernel rn_cpu_avg_pool_bwd = ROW (AVG_POOL_BWD, avg_pool_bwd);
