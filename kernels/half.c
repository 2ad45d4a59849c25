/* half.c: conversions of 16-bit floats, by the processor (F16C, AVX-512) where it can, else by integer
 * arithmetic. The bits are the same. */
#include "config.h"

#include "kernels/cpu/parallel.h"
#include "kernels/half.h"

#if defined __x86_64__ && defined __GNUC__
  #include <immintrin.h>
  #define HAVE_F16C_CODE 1
#endif

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
  _mm256_zeroupper (); /* a tail call comes without it: then code for SSE is slow */
  scalar_from_f16 (src + i, n - i, dst + i);
}

__attribute__ ((target ("avx2,f16c"))) static void
to_f16 (const float *src, gint64 n, guint16 *dst)
{
  gint64 i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128 ((__m128i *) (void *) (dst + i),
                      _mm256_cvtps_ph (_mm256_loadu_ps (src + i), _MM_FROUND_TO_NEAREST_INT));
  _mm256_zeroupper ();
  scalar_to_f16 (src + i, n - i, dst + i);
}

__attribute__ ((target ("avx512f"))) static void
wide_from_f16 (const guint16 *src, gint64 n, float *dst)
{
  gint64 i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps (dst + i,
                      _mm512_cvtph_ps (_mm256_loadu_si256 ((const __m256i *) (const void *) (src + i))));
  _mm256_zeroupper ();
  scalar_from_f16 (src + i, n - i, dst + i);
}

__attribute__ ((target ("avx512f"))) static void
wide_to_f16 (const float *src, gint64 n, guint16 *dst)
{
  gint64 i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256 ((__m256i *) (void *) (dst + i),
                         _mm512_cvtps_ph (_mm512_loadu_ps (src + i), _MM_FROUND_TO_NEAREST_INT));
  _mm256_zeroupper ();
  scalar_to_f16 (src + i, n - i, dst + i);
}

static void
fast_from_f16 (const guint16 *src, gint64 n, float *dst)
{
  if (__builtin_cpu_supports ("avx512f"))
    wide_from_f16 (src, n, dst);
  else if (has_f16c ())
    from_f16 (src, n, dst);
  else
    scalar_from_f16 (src, n, dst);
}

static void
fast_to_f16 (const float *src, gint64 n, guint16 *dst)
{
  if (__builtin_cpu_supports ("avx512f"))
    wide_to_f16 (src, n, dst);
  else if (has_f16c ())
    to_f16 (src, n, dst);
  else
    scalar_to_f16 (src, n, dst);
}

#else
  #define fast_from_f16 scalar_from_f16
  #define fast_to_f16 scalar_to_f16
#endif

RN_CLONES static void
from_bf16 (const guint16 *src, gint64 n, float *dst)
{
#pragma omp simd
  for (gint64 i = 0; i < n; i++)
    dst[i] = rn_float_from_bf16 (src[i]);
}

RN_CLONES static void
to_bf16 (const float *src, gint64 n, guint16 *dst)
{
#pragma omp simd
  for (gint64 i = 0; i < n; i++)
    dst[i] = rn_bf16_from_float (src[i]);
}

void
rn_floats_from (RnDType dtype, const void *src, gint64 n, float *dst)
{
  const guint16 *half = src;

  if (dtype == RN_F16)
    fast_from_f16 (half, n, dst);
  else if (dtype == RN_BF16)
    from_bf16 (half, n, dst);
  else
    memcpy (dst, src, (gsize) n * sizeof *dst);
}

void
rn_floats_to (RnDType dtype, const float *src, gint64 n, void *dst)
{
  guint16 *half = dst;

  if (dtype == RN_F16)
    fast_to_f16 (src, n, half);
  else if (dtype == RN_BF16)
    to_bf16 (src, n, half);
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
