/*
 * elementwise.c: ReLU and addition. Padding channels are zero on the way in and so on the way out: storage is
 * walked as a vector.
 */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strips.h"
#include "kernels/kernel-table.h"

RN_CLONES static void
relu_strip (const float *src, int64_t n, float *dst)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    dst[i] = src[i] < 0 ? 0 : src[i];
}

/* The same for halves: the bits tell. @infinity: of their type; larger are NaN. */
RN_CLONES static void
relu_halves (const guint16 *src, int64_t n, guint16 infinity, guint16 *dst)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    {
      guint16 negative = src[i] > 0x8000 && src[i] <= (guint16) (0x8000 | infinity);
      dst[i] = negative ? 0 : src[i];
    }
}

static guint16
infinity_of (RnDType half)
{
  return half == RN_F16 ? 0x7c00 : 0x7f80;
}

static RnStatus
relu_fwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnDType t = call->out[0].dtype;
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      const int64_t size = MIN (RN_STRIP, n - at);
      if (t == RN_F32)
        relu_strip ((const float *) in[0] + at, size, (float *) out[0] + at);
      else
        relu_halves ((const guint16 *) in[0] + at, size, infinity_of (t), (guint16 *) out[0] + at);
    }
  return RN_STATUS_OK;
}

/* @b may be NULL. */
RN_CLONES static void
mask_strip (const float *y, const float *a, const float *b, int64_t n, float *dst)
{
  if (b == NULL)
    {
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        {
          float diff = a[i]; /* loaded in any case: then the loop has no branch */
          dst[i] = y[i] > 0 ? diff : 0;
        }
    }
  else
    {
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        {
          float diff = a[i] + b[i];
          dst[i] = y[i] > 0 ? diff : 0;
        }
    }
}

/* The same for halves and without @b: the bits tell. */
RN_CLONES static void
mask_halves (const guint16 *y, const guint16 *a, int64_t n, guint16 infinity, guint16 *dst)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    {
      guint16 diff = a[i], positive = (guint16) (y[i] - 1) < infinity;
      dst[i] = positive ? diff : 0;
    }
}

/* Convolutions here add up the gradient while they have it at hand. */
static RnStatus
relu_bwd_prepare (RnDevice *device, const RnOpCall *call, RnPrepared *prepared, const char **reason)
{
  if (!RN_HAS_OUT (call, RN_RELU_BWD_SUMS))
    return RN_STATUS_OK;
  *reason = "adds up no channels";
  return RN_STATUS_UNSUPPORTED;
}

static RnStatus
relu_bwd (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
          void *const *out, void *workspace)
{
  const RnDType t = call->out[0].dtype;
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      float y[RN_STRIP], a[RN_STRIP], b[RN_STRIP], dst[RN_STRIP];
      const int64_t size = MIN (RN_STRIP, n - at);
      if (t != RN_F32 && in[RN_RELU_BWD_B] == NULL)
        {
          mask_halves ((const guint16 *) in[RN_RELU_BWD_Y] + at, (const guint16 *) in[RN_RELU_BWD_A] + at,
                       size, infinity_of (t), (guint16 *) out[0] + at);
          continue;
        }
      float *to = rn_strip_begin (t, out[0], at, dst);
      mask_strip (rn_strip_read (t, in[RN_RELU_BWD_Y], at, size, y),
                  rn_strip_read (t, in[RN_RELU_BWD_A], at, size, a),
                  rn_strip_read (t, in[RN_RELU_BWD_B], at, size, b), size, to);
      rn_strip_write (t, to, size, out[0], at);
    }
  return RN_STATUS_OK;
}

RN_CLONES static void
add_strip (const float *a, const float *b, int64_t n, gboolean relu, float *dst)
{
  if (relu)
    {
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i] < 0 ? 0 : a[i] + b[i];
    }
  else
    {
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        dst[i] = a[i] + b[i];
    }
}

static RnStatus
add (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in, void *const *out,
     void *workspace)
{
  const RnDType t = call->out[0].dtype;
  const int64_t n = rn_desc_stored_elements (&call->out[0]);

#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < n; at += RN_STRIP)
    {
      float a[RN_STRIP], b[RN_STRIP], dst[RN_STRIP];
      const int64_t size = MIN (RN_STRIP, n - at);
      float *to = rn_strip_begin (t, out[0], at, dst);
      add_strip (rn_strip_read (t, in[RN_ADD_A], at, size, a), rn_strip_read (t, in[RN_ADD_B], at, size, b),
                 size, call->args.add.relu, to);
      rn_strip_write (t, to, size, out[0], at);
    }
  return RN_STATUS_OK;
}

#define ROW(OP, fn)                                                                           \
  {                                                                                           \
    .op = RN_OP_##OP, .name = "cpu:" #fn ":openmp", .priority = RN_PRIORITY_OPENMP, .run = fn \
  }

const RnKernel rn_cpu_relu_fwd = ROW (RELU_FWD, relu_fwd);
const RnKernel rn_cpu_relu_bwd = { .op = RN_OP_RELU_BWD,
                                   .name = "cpu:relu_bwd:openmp",
                                   .priority = RN_PRIORITY_OPENMP,
                                   .prepare = relu_bwd_prepare,
                                   .run = relu_bwd };
const RnKernel rn_cpu_add = ROW (ADD, add);
