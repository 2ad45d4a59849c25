/*
 * move.c: nearest upsampling with its gradient, a change of the channel block or the element type, copies and
 * zeros.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel-table.h"

#include <omp.h>

/* Nearest: cell @fine of @n_fine lies in cell floor (fine * n_coarse / n_fine), which is below n_coarse. */
static int64_t
coarse_of (int64_t fine, int64_t n_fine, int64_t n_coarse)
{
  return fine * n_coarse / n_fine;
}

/* First fine cell that lies in @coarse or behind it: ceil (coarse * n_fine / n_coarse). */
static int64_t
first_fine (int64_t coarse, int64_t n_fine, int64_t n_coarse)
{
  return (coarse * n_fine + n_coarse - 1) / n_coarse;
}

/* Rows of the output that are worked on together. */
#define BAND 16

/* dst = row @src, spread over @d->w cells, + @addend, which may be NULL. */
RN_CLONES static void
spread_row (const float *src, int64_t src_w, const float *addend, float *dst, const RnPlanes *d)
{
  const int64_t b = d->b;

  for (int64_t x = 0, at = 0; x < d->w; x++, at += b)
    {
      const float *cell = src + coarse_of (x, d->w, src_w) * b;
#pragma omp simd
      for (int64_t c = 0; c < b; c++)
        dst[at + c] = cell[c] + (addend != NULL ? addend[at + c] : 0);
    }
}

/* A thread converts a row of the source and one of the output. */
static RnStatus
upsample_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  const RnPlanes s = rn_planes (&call->in[RN_UPSAMPLE_SRC]), d = rn_planes (&call->out[0]);
  prepared->workspace_bytes = rn_rows_workspace (device, call->out[0].dtype, (s.w + d.w) * d.b);
  return RN_STATUS_OK;
}

static RnStatus
upsample_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPlanes s = rn_planes (&call->in[RN_UPSAMPLE_SRC]), d = rn_planes (&call->out[0]);
  const RnDType t = call->out[0].dtype;
  const int64_t size = d.w * d.b;

#pragma omp parallel num_threads(device->n_threads)
  {
    float *scratch = rn_rows_scratch (t, workspace, omp_get_thread_num (), (s.w + d.w) * d.b);
#pragma omp for collapse(2) schedule(static)
    for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
      for (int64_t band = 0; band < d.h; band += BAND)
        {
          RnRows rows = rn_rows (t, in[RN_UPSAMPLE_SRC], rn_planes_row (&s, plane, 0), s.w * s.b,
                                 scratch != NULL ? scratch + size : NULL);
          for (int64_t y = band; y < MIN (band + BAND, d.h); y++)
            {
              const int64_t at = rn_planes_row (&d, plane, y), from = coarse_of (y, d.h, s.h);
              float *to = rn_strip_begin (t, out[0], at, scratch);
              spread_row (rn_rows_read (&rows, from, from + 1), s.w,
                          rn_strip_read (t, in[RN_UPSAMPLE_ADDEND], at, size, scratch), to, &d);
              rn_strip_write (t, to, size, out[0], at);
            }
        }
  }
  return RN_STATUS_OK;
}

static inline G_ALWAYS_INLINE void
collect_row_of (const float *fine, int64_t fine_w, float *sum, int64_t w, int64_t b)
{
  for (int64_t x = 0, fx = 0; x < w; x++)
    for (const int64_t end = first_fine (x + 1, fine_w, w); fx < end; fx++)
#pragma omp simd
      for (int64_t c = 0; c < b; c++)
        sum[x * b + c] += fine[fx * b + c];
}

/* Adds the cells of row @fine, of @fine_w, to the cells of @sum in which they lie. */
RN_CLONES static void
collect_row (const float *fine, int64_t fine_w, float *sum, int64_t w, int64_t b)
{
  if (b == 16) /* a vector register: compiled apart */
    collect_row_of (fine, fine_w, sum, w, 16);
  else
    collect_row_of (fine, fine_w, sum, w, b);
}

static RnStatus
upsample_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPlanes f = rn_planes (&call->in[RN_UPSAMPLE_SRC]), d = rn_planes (&call->out[0]);
  const RnDType t = call->out[0].dtype;
  const int64_t size = d.w * d.b;

#pragma omp parallel num_threads(device->n_threads)
  {
    float *scratch = rn_rows_scratch (t, workspace, omp_get_thread_num (), (f.w + d.w) * d.b);
#pragma omp for collapse(2) schedule(static)
    for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
      for (int64_t y = 0; y < d.h; y++)
        {
          const int64_t at = rn_planes_row (&d, plane, y);
          float *sum = rn_strip_begin (t, out[0], at, scratch);
          const float *addend = rn_strip_read (t, in[RN_UPSAMPLE_ADDEND], at, size, scratch);
          RnRows rows = rn_rows (t, in[RN_UPSAMPLE_SRC], rn_planes_row (&f, plane, 0), f.w * f.b,
                                 scratch != NULL ? scratch + size : NULL);
          if (addend == NULL)
            memset (sum, 0, (gsize) size * sizeof *sum);
          else if (addend != sum)
            memcpy (sum, addend, (gsize) size * sizeof *sum);
          for (int64_t fy = first_fine (y, f.h, d.h); fy < first_fine (y + 1, f.h, d.h); fy++)
            collect_row (rn_rows_read (&rows, fy, fy + 1), f.w, sum, d.w, d.b);
          rn_strip_write (t, sum, size, out[0], at);
        }
  }
  return RN_STATUS_OK;
}

/* Only the element type changes. */
static void
convert (RnDType from, const void *src, RnDType to, void *dst, int64_t n)
{
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      float buffer[RN_STRIP];
      const int64_t size = MIN (RN_STRIP, n - at);
      rn_floats_to (to, rn_strip_read (from, src, at, size, buffer), size,
                    (guint8 *) dst + (gsize) at * rn_dtype_size (to));
    }
}

/* One channel of a row of @w cells; @step, @d_step: elements from cell to cell. @exists: else it only fills
 * up the block. */
static inline G_ALWAYS_INLINE void
move_channel (RnDType from, const void *src, int64_t at, int64_t step, RnDType to, void *dst, int64_t d_at,
              int64_t d_step, int64_t w, gboolean exists)
{
  for (int64_t x = 0; x < w; x++)
    rn_float_set (to, dst, d_at + x * d_step, exists ? rn_float_get (from, src, at + x * step) : 0);
}

static RnStatus
reorder (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
         void *workspace)
{
  const RnTensorDesc *sd = &call->in[0], *dd = &call->out[0];
  const RnPlanes d = rn_planes (dd);
  const gboolean plain = sd->dtype == RN_F32 && dd->dtype == RN_F32;

  if (sd->cblk == dd->cblk)
    {
      convert (sd->dtype, in[0], dd->dtype, out[0], rn_desc_stored_elements (dd));
      return RN_STATUS_OK;
    }
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t y = 0; y < d.h; y++)
      for (int64_t c = 0; c < d.b; c++)
        {
          const int64_t channel = plane % d.blocks * d.b + c, to = rn_planes_row (&d, plane, y) + c;
          const gboolean exists = channel < sd->dims[1];
          const int64_t at = exists ? rn_desc_index (sd, plane / d.blocks, channel, y, 0) : 0;
          if (plain)
            move_channel (RN_F32, in[0], at, sd->cblk, RN_F32, out[0], to, d.b, d.w, exists);
          else
            move_channel (sd->dtype, in[0], at, sd->cblk, dd->dtype, out[0], to, d.b, d.w, exists);
        }
  return RN_STATUS_OK;
}

static RnStatus
copy (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  rn_parallel_copy (out[0], in[0], rn_desc_bytes (&call->out[0]));
  return RN_STATUS_OK;
}

static RnStatus
zero (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
      void *workspace)
{
  rn_parallel_zero (out[0], rn_desc_bytes (&call->out[0]));
  return RN_STATUS_OK;
}

#define ROW(OP, fn, prep)                                                                            \
  {                                                                                                  \
    .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .prepare = prep, \
    .run = fn                                                                                        \
  }

const RnKernel rn_cpu_upsample_fwd = ROW (UPSAMPLE_FWD, upsample_fwd, upsample_prepare);
const RnKernel rn_cpu_upsample_bwd = ROW (UPSAMPLE_BWD, upsample_bwd, upsample_prepare);
const RnKernel rn_cpu_reorder = ROW (REORDER, reorder, NULL);
const RnKernel rn_cpu_copy = ROW (COPY, copy, NULL);
const RnKernel rn_cpu_zero = ROW (ZERO, zero, NULL);
