/*
 * vector-math.h: exp and log1p on the ranges that losses need, without branches and tables, so that compilers
 * turn loops over them into vectors (libm's functions are calls). Plain Taylor series: after range reduction
 * they are short, and their error bound is one line.
 */
#ifndef KERNELS_CPU_VECTOR_MATH_H
#define KERNELS_CPU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

/*
 * exp (x) for x <= 0 or NaN. Below -87, where results would leave the normal range, it is exp (-87), 1.6e-38.
 *
 * exp (x) = 2^n exp (r) with n = round (x / ln 2), so |r| <= ln (2) / 2 = 0.3466. ln 2 is split in two, so
 * that n times its upper part is exact. The series ends with r^7; what is cut off is 0.3466^8 / 8! = 5.2e-9
 * against exp (r) >= 0.707, an eighth of an ulp; with rounding below 2 ulp.
 */
static inline float
rn_exp_nonpositive (float x)
{
  const float log2e = 1.44269504f, ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
  const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves an integer in the low bits */

  x = x < -87.0f ? -87.0f : x;
  float shifted = x * log2e + round;
  float n = shifted - round;
  float r = x - n * ln2_hi - n * ln2_lo;
  float e = 1 / 720.f + r * (1 / 5040.f);
  e = 1 / 120.f + r * e;
  e = 1 / 24.f + r * e;
  e = 1 / 6.f + r * e;
  e = 1 / 2.f + r * e;
  e = 1 + r * (1 + r * e);

  uint32_t bits;
  float power;
  memcpy (&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u; /* n into the exponent */
  memcpy (&power, &bits, sizeof power);
  return e * power;
}

/*
 * log (1 + e) for e in 0..1.
 *
 * log (1 + e) = 2 artanh (s), s = e / (2 + e) in 0..1/3, artanh (s) = s + s^3 / 3 + s^5 / 5 + ... Truncation
 * after s^13: (1/9)^7 / 15 * 9/8 = 1.6e-8 of s at most, a quarter of an ulp; with rounding below 3 ulp, also
 * for tiny e.
 */
static inline float
rn_log1p_unit (float e)
{
  float s = e / (2 + e), q = s * s;
  float sum = 1 / 11.f + q * (1 / 13.f);
  sum = 1 / 9.f + q * sum;
  sum = 1 / 7.f + q * sum;
  sum = 1 / 5.f + q * sum;
  sum = 1 / 3.f + q * sum;
  return 2 * s * (1 + q * sum);
}

#endif
