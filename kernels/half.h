/*
 * half.h: floats of 16 bits: IEEE binary16 (RN_F16) and bfloat16 (RN_BF16). Conversions from F32 round to
 * nearest even; what is too large becomes infinite; a NaN stays one.
 */
#ifndef KERNELS_HALF_H
#define KERNELS_HALF_H

#include <glib.h>
#include <runner/tensor.h>
#include <string.h>

G_BEGIN_DECLS

#define RN_F16_MAX 65504.0f

static inline gboolean
rn_dtype_is_half (RnDType dtype)
{
  return dtype == RN_F16 || dtype == RN_BF16;
}

/* F32 and the two halves: what activations can be. */
static inline gboolean
rn_dtype_is_float (RnDType dtype)
{
  return dtype == RN_F32 || rn_dtype_is_half (dtype);
}

/* The conversions of one number have no branch, so that compilers turn loops over them into vectors. */
static inline float
rn_float_from_bf16 (guint16 bits)
{
  guint32 word = (guint32) bits << 16;
  float value;
  memcpy (&value, &word, sizeof value);
  return value;
}

static inline guint16
rn_bf16_from_float (float value)
{
  guint32 word;
  memcpy (&word, &value, sizeof word);
  guint32 result = (word + 0x7fff + (word >> 16 & 1)) >> 16;
  /* NaN: keep it quiet, whatever its low bits are */
  return (guint16) ((word & 0x7fffffff) > 0x7f800000 ? word >> 16 | 0x40 : result);
}

static inline float
rn_float_from_f16 (guint16 bits)
{
  guint32 sign = (guint32) (bits & 0x8000) << 16, size = bits & 0x7fff, word, small;
  float least = (float) (gint32) size * 0x1p-24f; /* below 2^-14 a number is so many of these: exact */
  guint32 is_small = -(guint32) (size < 0x400);   /* masks instead of "?": it would become a branch */

  memcpy (&small, &least, sizeof small);
  word = (size << 13) + (112u << 23);
  word += size >= 0x7c00 ? 112u << 23 : 0; /* infinite and NaN */
  word |= size > 0x7c00 ? 0x400000 : 0;    /* NaN becomes quiet */
  word = (small & is_small) | (word & ~is_small) | sign;

  float value;
  memcpy (&value, &word, sizeof value);
  return value;
}

static inline guint16
rn_f16_from_float (float value)
{
  guint32 word, size, sum;
  memcpy (&word, &value, sizeof word);
  size = word & 0x7fffffff;

  /* Below 2^-14 the steps are 2^-24, as those of floats in 0.5 .. 1: the addition rounds. */
  guint32 least = MIN (size, 0x38800000u);
  float shifted;
  memcpy (&shifted, &least, sizeof shifted);
  shifted += 0.5f;
  memcpy (&sum, &shifted, sizeof sum);

  guint32 result = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
  result = size < 0x38800000 ? sum - 0x3f000000 : result;
  result = size >= 0x477ff000 ? 0x7c00 : result; /* 65520 and more round to infinity */
  result = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : result;
  return (guint16) (result | (word >> 16 & 0x8000));
}

/* @n elements of @dtype (F32, F16 or BF16) to F32 and back. @src and @dst do not overlap. */
void rn_floats_from (RnDType dtype, const void *src, gint64 n, float *dst);
void rn_floats_to (RnDType dtype, const float *src, gint64 n, void *dst);
/* Rounds @n floats to what @dtype can hold. */
void rn_floats_round (RnDType dtype, float *values, gint64 n);

/* Element @i of an array of floats of type @dtype. */
static inline float
rn_float_get (RnDType dtype, const void *array, gint64 i)
{
  switch (dtype)
    {
    case RN_F16:
      return rn_float_from_f16 (((const guint16 *) array)[i]);
    case RN_BF16:
      return rn_float_from_bf16 (((const guint16 *) array)[i]);
    default:
      return ((const float *) array)[i];
    }
}

static inline void
rn_float_set (RnDType dtype, void *array, gint64 i, float value)
{
  switch (dtype)
    {
    case RN_F16:
      ((guint16 *) array)[i] = rn_f16_from_float (value);
      break;
    case RN_BF16:
      ((guint16 *) array)[i] = rn_bf16_from_float (value);
      break;
    default:
      ((float *) array)[i] = value;
      break;
    }
}

G_END_DECLS

#endif
