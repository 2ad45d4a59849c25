/* compare.c: what a kernel gave against what the reference gives on F32 tensors. */
#include "config.h"

#include "tests/kernels/compare.h"

#include "kernels/half.h"

#include <float.h>
#include <math.h>
#include <string.h>

static double
largest (const float *data, int64_t n)
{
  double most = 0;
  for (int64_t i = 0; i < n; i++)
    most = fmax (most, fabs (data[i]));
  return most;
}

/* The most that rounding to @t moves a number of size @size: half a step of its 11 or 8 bits. */
static double
rounding (RnDType t, double size)
{
  if (t == RN_F16)
    return fmax (size * 0x1p-11, 0x1p-25);
  return t == RN_BF16 ? fmax (size * 0x1p-8, 0x1p-134) : 0;
}

static void
compare_floats (const RnOpCall *call, const char *kernel, int slot, const void *got, const float *want,
                double tolerance)
{
  const RnTensorDesc *d = &call->out[slot];
  int64_t n = rn_desc_stored_elements (d);
  double bound = tolerance * FLT_EPSILON * largest (want, n);

  for (int64_t i = 0; i < n; i++)
    {
      float value = rn_float_get (d->dtype, got, i), wanted = want[i];
      double limit = bound;
      if (tolerance == 0)
        rn_floats_round (d->dtype, &wanted, 1);
      else
        limit += rounding (d->dtype, fabs ((double) wanted) + bound);
      if (!(fabs ((double) value - wanted) <= limit))
        {
          g_autofree char *text = rn_op_describe (call);
          g_error ("%s: %s: %s[%" G_GINT64_FORMAT "] is %.9g, want %.9g +- %.3g", text, kernel,
                   rn_op_out_name (call->op, slot), i, value, wanted, limit);
        }
    }
}

static void
check_padding (const RnTensorDesc *d, const void *data)
{
  for (int64_t n = 0; d->rank == 4 && n < d->dims[0]; n++)
    for (int64_t c = d->dims[1]; c < rn_desc_stored_channels (d); c++)
      for (int64_t y = 0; y < d->dims[2]; y++)
        for (int64_t x = 0; x < d->dims[3]; x++)
          g_assert_cmpfloat (rn_float_get (d->dtype, data, rn_desc_index (d, n, c, y, x)), ==, 0);
}

void
compare_outputs (const RnOpCall *call, const char *kernel, const Buffers *got, const Buffers *want,
                 double tolerance)
{
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    {
      if (!RN_HAS_OUT (call, i))
        continue;
      if (!rn_dtype_is_float (call->out[i].dtype))
        g_assert_true (memcmp (got->out[i], want->out[i], rn_desc_bytes (&call->out[i])) == 0);
      else
        {
          compare_floats (call, kernel, i, got->out[i], want->out[i], tolerance);
          check_padding (&call->out[i], got->out[i]);
        }
    }
}

RnOpCall
widened (RnOpCall call)
{
  for (int i = 0; i < RN_OP_MAX_IN; i++)
    if (RN_HAS_IN (&call, i) && rn_dtype_is_half (call.in[i].dtype))
      call.in[i].dtype = RN_F32;
  for (int i = 0; i < RN_OP_MAX_OUT; i++)
    if (RN_HAS_OUT (&call, i) && rn_dtype_is_half (call.out[i].dtype))
      call.out[i].dtype = RN_F32;
  return call;
}

static void
widen (const RnTensorDesc *d, const void *src, void *dst)
{
  if (rn_dtype_is_half (d->dtype))
    rn_floats_from (d->dtype, src, rn_desc_stored_elements (d), dst);
}

void
run_reference (RnDevice *ref, const RnOpCall *call, const RnOpCall *wide, guint seed, Buffers *want)
{
  Buffers stored;

  buffers_init (&stored, call, seed, -1, -1);
  buffers_init (want, wide, seed, -1, -1);
  for (int i = 0; i < rn_op_n_in (call->op); i++)
    if (RN_HAS_IN (call, i))
      widen (&call->in[i], stored.in[i], want->in[i]);
  for (int i = 0; i < rn_op_n_out (call->op); i++)
    if (RN_HAS_OUT (call, i))
      widen (&call->out[i], stored.out[i], want->out[i]);
  buffers_clear (&stored);

  run_call (ref, wide, want);
  for (int i = 0; i < rn_op_n_out (call->op); i++) /* no output was left as it was */
    for (int64_t k = 0;
         RN_HAS_OUT (wide, i) && wide->out[i].dtype == RN_F32 && k < rn_desc_stored_elements (&wide->out[i]);
         k++)
      g_assert_true (isfinite (((const float *) want->out[i])[k]));
}

/* Rounding keeps the order: so it moves the ends of an interval of right results to those of another. */
void
compare_interval (const RnOpCall *call, int slot, const void *got, const float *want, double operations)
{
  const RnTensorDesc *d = &call->out[slot];
  const int64_t n = rn_desc_stored_elements (d);
  double most = 0;

  for (int64_t i = 0; i < n; i++)
    most = isfinite (want[i]) ? fmax (most, fabs ((double) want[i])) : most;
  for (int64_t i = 0; i < n; i++)
    {
      const float value = rn_float_get (d->dtype, got, i);
      const double bound = operations * FLT_EPSILON * most;
      float ends[] = { (float) (want[i] - bound), (float) (want[i] + bound) };
      rn_floats_round (d->dtype, ends, 2);
      if (isnan (want[i]) ? !isnan (value) : !(value >= ends[0] && value <= ends[1]))
        {
          g_autofree char *text = rn_op_describe (call);
          g_error ("%s: %s[%" G_GINT64_FORMAT "] is %.9g, want %.9g +- %.3g", text,
                   rn_op_out_name (call->op, slot), i, value, want[i], bound);
        }
    }
}

void
check_nan_of_max_pool (RnDevice *device, void (*run) (RnDevice *, const RnOpCall *, Buffers *))
{
  static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };

  for (guint t = 0; t < G_N_ELEMENTS (types); t++)
    for (int at = 0; at < 9; at++)
      {
        guint8 src[9 * 16 * 4], dst[16 * 4], index[16];
        RnOpCall call = {
          .op = RN_OP_MAX_POOL_FWD,
          .args.pool = { .kernel = { 3, 3 }, .stride = { 1, 1 } },
          .in = { rn_desc_nchw (types[t], 1, 16, 3, 3, 16) },
          .out = { rn_desc_nchw (types[t], 1, 16, 1, 1, 16), rn_desc_nchw (RN_U8, 1, 16, 1, 1, 16) },
          .in_present = 1,
          .out_present = 3,
        };
        Buffers b = { .call = &call, .in = { src }, .out = { dst, index } };
        for (int i = 0; i < 9 * 16; i++)
          rn_float_set (types[t], src, i, i / 16 == at ? NAN : (float) (i % 7));
        run (device, &call, &b);
        for (int c = 0; c < 16; c++)
          {
            g_assert_true (isnan (rn_float_get (types[t], dst, c)));
            g_assert_cmpint (index[c], ==, at);
          }
      }
}
