/* half.c: conversions of 16-bit floats, by the processor (F16C) where it can, else by integer arithmetic. The
 * bits are the same. */
#include "config.h"

#include "kernels/half.h"

#if defined __x86_64__ && defined __GNUC__
  #include <immintrin.h>
  #define HAVE_F16C_CODE 1
#endif

float
rn_float_from_f16 (guint16 bits)
{
  guint32 sign = (guint32) (bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  guint32 word;
  float value;

  if (exponent == 0x1f) /* infinite or NaN, which becomes quiet */
    word = sign | 0x7f800000 | mantissa << 13 | (mantissa != 0 ? 0x400000 : 0);
  else if (exponent != 0)
    word = sign | (exponent + 112) << 23 | mantissa << 13;
  else
    {
      value = (float) mantissa * 0x1p-24f; /* exact */
      return sign != 0 ? -value : value;
    }
  memcpy (&value, &word, sizeof value);
  return value;
}

/* @mantissa shifted right by @shift, 1 to 31, to nearest even. */
static guint32
round_shift (guint32 mantissa, guint32 shift)
{
  guint32 half = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1), result = mantissa >> shift;
  return result + (rest > half || (rest == half && (result & 1) != 0));
}

guint16
rn_f16_from_float (float value)
{
  guint32 word;
  memcpy (&word, &value, sizeof word);
  guint32 sign = word >> 16 & 0x8000, size = word & 0x7fffffff;

  if (size > 0x7f800000)
    return (guint16) (sign | 0x7e00 | (size >> 13 & 0x3ff));
  if (size >= 0x477ff000) /* 65520 and more round to infinity */
    return (guint16) (sign | 0x7c00);
  if (size >= 0x38800000) /* 2^-14: the least normal number */
    return (guint16) (sign | (round_shift (size, 13) - (112u << 10)));
  if (size < 0x33000000) /* below 2^-25 */
    return (guint16) sign;
  return (guint16) (sign | round_shift ((size & 0x7fffff) | 0x800000, 126 - (size >> 23)));
}

static void
scalar_from_f16 (const guint16 *src, gint64 n, float *dst)
{
  for (gint64 i = 0; i < n; i++)
    dst[i] = rn_float_from_f16 (src[i]);
}

static void
scalar_to_f16 (const float *src, gint64 n, guint16 *dst)
{
  for (gint64 i = 0; i < n; i++)
    dst[i] = rn_f16_from_float (src[i]);
}

#ifdef HAVE_F16C_CODE

static gboolean
has_f16c (void)
{
  return __builtin_cpu_supports ("avx2") && __builtin_cpu_supports ("f16c");
}

__attribute__ ((target ("avx2,f16c"))) static void
from_f16 (const guint16 *src, gint64 n, float *dst)
{
  gint64 i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps (dst + i,
                      _mm256_cvtph_ps (_mm_loadu_si128 ((const __m128i *) (const void *) (src + i))));
  scalar_from_f16 (src + i, n - i, dst + i);
}

__attribute__ ((target ("avx2,f16c"))) static void
to_f16 (const float *src, gint64 n, guint16 *dst)
{
  gint64 i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128 ((__m128i *) (void *) (dst + i),
                      _mm256_cvtps_ph (_mm256_loadu_ps (src + i), _MM_FROUND_TO_NEAREST_INT));
  scalar_to_f16 (src + i, n - i, dst + i);
}

#else

static gboolean
has_f16c (void)
{
  return FALSE;
}

  #define from_f16 scalar_from_f16
  #define to_f16 scalar_to_f16

#endif

void
rn_floats_from (RnDType dtype, const void *src, gint64 n, float *dst)
{
  const guint16 *half = src;

  if (dtype == RN_F16)
    {
      if (has_f16c ())
        from_f16 (half, n, dst);
      else
        scalar_from_f16 (half, n, dst);
    }
  else if (dtype == RN_BF16)
    for (gint64 i = 0; i < n; i++)
      dst[i] = rn_float_from_bf16 (half[i]);
  else
    memcpy (dst, src, (gsize) n * sizeof *dst);
}

void
rn_floats_to (RnDType dtype, const float *src, gint64 n, void *dst)
{
  guint16 *half = dst;

  if (dtype == RN_F16)
    {
      if (has_f16c ())
        to_f16 (src, n, half);
      else
        scalar_to_f16 (src, n, half);
    }
  else if (dtype == RN_BF16)
    for (gint64 i = 0; i < n; i++)
      half[i] = rn_bf16_from_float (src[i]);
  else
    memcpy (dst, src, (gsize) n * sizeof *src);
}

void
rn_floats_round (RnDType dtype, float *values, gint64 n)
{
  guint16 half[256];

  if (!rn_dtype_is_half (dtype))
    return;
  for (gint64 i = 0; i < n; i += (gint64) G_N_ELEMENTS (half))
    {
      gint64 count = MIN ((gint64) G_N_ELEMENTS (half), n - i);
      rn_floats_to (dtype, values + i, count, half);
      rn_floats_from (dtype, half, count, values + i);
    }
}
