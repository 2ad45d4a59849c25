#include "config.h"

#include "kernels/cuda/conv-verify.h"

#include "kernels/half.h"

#include <math.h>

/* The finalizer of MurmurHash3 (Appleby, public domain): every bit of the result depends on every bit. */
static inline guint32
hash (guint32 x)
{
  x ^= x >> 16;
  x *= 0x85ebca6b;
  x ^= x >> 13;
  x *= 0xc2b2ae35;
  return x ^ x >> 16;
}

/* Element @i, a multiple of 2^-23. */
static inline float
number (gsize i, guint32 seed)
{
  guint32 bits = hash ((guint32) i ^ hash (seed ^ (guint32) (i >> 32)));
  return (float) (gint32) (bits >> 8) * 0x1p-23f - 1;
}

void
rn_conv_fill_random (RnDType dtype, void *data, gsize first, gsize n, guint32 seed)
{
  float *singles = data;
  guint16 *halves = data;

  switch (dtype)
    {
    case RN_F16:
      for (gsize i = 0; i < n; i++)
        halves[i] = rn_f16_from_float (number (first + i, seed));
      break;
    case RN_BF16:
      for (gsize i = 0; i < n; i++)
        halves[i] = rn_bf16_from_float (number (first + i, seed));
      break;
    default:
      for (gsize i = 0; i < n; i++)
        singles[i] = number (first + i, seed);
    }
}

/* Products in one sum. */
static double
sum_length (const RnConvProblem *p)
{
  double window = (double) (p->kernel[0] * p->kernel[1]);

  switch (p->kind)
    {
    case RN_CONV_BACKWARD_DATA:
      return window * (double) (p->k / p->groups);
    case RN_CONV_BACKWARD_WEIGHTS:
      return (double) p->n * (double) p->oh * (double) p->ow;
    default:
      return window * (double) (p->c / p->groups);
    }
}

/*
 * A product of two numbers that are uniform in [-1, 1) has the deviation 1/3, a sum of L of them R = sqrt (L)
 * / 3, and no partial sum is expected to be much larger.
 *
 * Sums in single precision: tensor cores cut off what they add, so errors of the steps have one sign. With 16
 * products in a step there are L/16 steps of at most 2^-22 of the partial sum, whose mean is below R: L/4 *
 * 2^-24 R; four times that, for the two that are compared and for what Winograd's transforms lose. 16 units
 * more for short sums.
 *
 * TF32 keeps 10 bits: each of two operands is off by up to 2^-10 where a device cuts off, so the sum's
 * deviation is below sqrt (2) * 2^-10 R, and of 10^8 results none is further out than six deviations: 8.5.
 *
 * At the end results are rounded once: two that are as good as equal may be neighbours, 2^-10 apart for F16,
 * 2^-7 for BF16, 2^-23 for F32. An engine that adds to the output by way of its workspace rounds twice, what
 * it adds (which is not larger than the result by more than 1) and the result.
 */
RnConvTolerance
rn_conv_tolerance (const RnConvProblem *p)
{
  double length = sum_length (p), deviation = sqrt (length) / 3;
  double absolute = deviation * (length / 4 + 16) * 0x1p-22;
  double unit = p->dtype == RN_F16 ? 0x1p-10 : p->dtype == RN_BF16 ? 0x1p-7 : 0x1p-23;

  if (p->tf32)
    absolute += 8.5 * 0x1p-10 * deviation;
  if (p->accumulate)
    absolute += unit;
  return (RnConvTolerance){ (float) absolute, (float) (p->accumulate ? 2 * unit : unit) };
}

static inline gboolean
is_near (float result, float wanted, RnConvTolerance tolerance)
{
  /* FALSE for a NaN; where both are infinite the difference is one. */
  return fabsf (result - wanted) <= tolerance.absolute + tolerance.relative * fabsf (wanted);
}

gboolean
rn_conv_agrees (RnDType dtype, const void *results, const void *wanted, gsize n, RnConvTolerance tolerance)
{
  const float *a = results, *b = wanted;
  const guint16 *half_a = results, *half_b = wanted;
  gsize n_far = 0;

  switch (dtype)
    {
    case RN_F16:
      for (gsize i = 0; i < n; i++)
        n_far += !is_near (rn_float_from_f16 (half_a[i]), rn_float_from_f16 (half_b[i]), tolerance);
      break;
    case RN_BF16:
      for (gsize i = 0; i < n; i++)
        n_far += !is_near (rn_float_from_bf16 (half_a[i]), rn_float_from_bf16 (half_b[i]), tolerance);
      break;
    default:
      for (gsize i = 0; i < n; i++)
        n_far += !is_near (a[i], b[i], tolerance);
    }
  return n_far == 0;
}
