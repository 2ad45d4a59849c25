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
  if ((word & 0x7fffffff) > 0x7f800000) /* NaN: keep it quiet, whatever its low bits are */
    return (guint16) (word >> 16 | 0x40);
  return (guint16) ((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

float rn_float_from_f16 (guint16 bits);
guint16 rn_f16_from_float (float value);

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
