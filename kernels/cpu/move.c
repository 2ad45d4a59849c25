/* move.c: nearest upsampling with its gradient, a change of the channel block, copies and zeros. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/planes.h"
#include "kernels/kernel-table.h"

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

static RnStatus
upsample_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPlanes s = rn_planes (&call->in[RN_UPSAMPLE_SRC]), d = rn_planes (&call->out[0]);
  const float *src = in[RN_UPSAMPLE_SRC], *addend = in[RN_UPSAMPLE_ADDEND];
  float *dst = out[0];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t y = 0; y < d.h; y++)
      {
        const float *row = src + rn_planes_row (&s, plane, coarse_of (y, d.h, s.h));
        int64_t at = rn_planes_row (&d, plane, y);
        for (int64_t x = 0; x < d.w; x++, at += d.b)
          {
            const float *cell = row + coarse_of (x, d.w, s.w) * s.b;
#pragma omp simd
            for (int64_t c = 0; c < d.b; c++)
              dst[at + c] = cell[c] + (addend != NULL ? addend[at + c] : 0);
          }
      }
  return RN_STATUS_OK;
}

static RnStatus
upsample_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const RnPlanes f = rn_planes (&call->in[RN_UPSAMPLE_SRC]), d = rn_planes (&call->out[0]);
  const float *diff_fine = in[RN_UPSAMPLE_SRC], *addend = in[RN_UPSAMPLE_ADDEND];
  float *dst = out[0];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t y = 0; y < d.h; y++)
      {
        int64_t at = rn_planes_row (&d, plane, y);
        for (int64_t x = 0; x < d.w; x++, at += d.b)
          {
            for (int64_t c = 0; c < d.b; c++)
              dst[at + c] = addend != NULL ? addend[at + c] : 0;
            for (int64_t fy = first_fine (y, f.h, d.h); fy < first_fine (y + 1, f.h, d.h); fy++)
              for (int64_t fx = first_fine (x, f.w, d.w); fx < first_fine (x + 1, f.w, d.w); fx++)
                {
                  const float *cell = diff_fine + rn_planes_row (&f, plane, fy) + fx * f.b;
#pragma omp simd
                  for (int64_t c = 0; c < d.b; c++)
                    dst[at + c] += cell[c];
                }
          }
      }
  return RN_STATUS_OK;
}

static RnStatus
reorder (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
         void *workspace)
{
  const RnTensorDesc *sd = &call->in[0];
  const RnPlanes d = rn_planes (&call->out[0]);
  const float *src = in[0];
  float *dst = out[0];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t plane = 0; plane < d.n * d.blocks; plane++)
    for (int64_t y = 0; y < d.h; y++)
      for (int64_t c = 0; c < d.b; c++)
        {
          int64_t channel = plane % d.blocks * d.b + c;
          gboolean exists = channel < sd->dims[1]; /* else it only fills up the block */
          const float *from = exists ? src + rn_desc_index (sd, plane / d.blocks, channel, y, 0) : NULL;
          float *to = dst + rn_planes_row (&d, plane, y) + c;
          for (int64_t x = 0; x < d.w; x++)
            to[x * d.b] = exists ? from[x * sd->cblk] : 0;
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

#define ROW(OP, fn)                                                                           \
  {                                                                                           \
    .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .run = fn \
  }

const RnKernel rn_cpu_upsample_fwd = ROW (UPSAMPLE_FWD, upsample_fwd);
const RnKernel rn_cpu_upsample_bwd = ROW (UPSAMPLE_BWD, upsample_bwd);
const RnKernel rn_cpu_reorder = ROW (REORDER, reorder);
const RnKernel rn_cpu_copy = ROW (COPY, copy);
const RnKernel rn_cpu_zero = ROW (ZERO, zero);
