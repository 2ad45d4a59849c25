#include "config.h"

#include "runner/weights/weights-types.h"

#include <math.h>
#include <string.h>

static const RnWeightType types[] = {
  { "F32", 4, "FloatStorage", "float32" },
  { "F16", 2, "HalfStorage", "float16" },
  { "BF16", 2, "BFloat16Storage", "bfloat16" },
  { "F64", 8, "DoubleStorage", "float64" },
  { "I64", 8, "LongStorage", "int64" },
  { "I32", 4, "IntStorage", "int32" },
  { "I16", 2, "ShortStorage", "int16" },
  { "I8", 1, "CharStorage", "int8" },
  { "U8", 1, "ByteStorage", "uint8" },
  { "BOOL", 1, "BoolStorage", "bool" },
  { "U16", 2, NULL, "uint16" },
  { "U32", 4, NULL, "uint32" },
  { "U64", 8, NULL, "uint64" },
  { "F8_E4M3", 1, NULL, "float8_e4m3fn" },
  { "F8_E5M2", 1, NULL, "float8_e5m2" },
};

const RnWeightType *
rn_weight_type_by_name (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if (strcmp (types[i].name, name) == 0)
      return &types[i];
  return NULL;
}

const RnWeightType *
rn_weight_type_by_storage (const char *storage)
{
  if (strcmp (storage, "UntypedStorage") == 0)
    return rn_weight_type_by_name ("U8");
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if (g_strcmp0 (types[i].storage, storage) == 0)
      return &types[i];
  return NULL;
}

const RnWeightType *
rn_weight_type_by_dtype (const char *dtype)
{
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if (strcmp (types[i].dtype, dtype) == 0)
      return &types[i];
  return NULL;
}

static float
from_bits (guint32 bits)
{
  float value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

/* IEEE 754 binary16; every value is a float exactly. */
static float
from_half (guint16 half)
{
  guint32 sign = (guint32) (half & 0x8000) << 16, exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;

  if (exponent == 0x1f) /* infinity, or a NaN with its payload */
    return from_bits (sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0)
    return from_bits (sign | (exponent + 127 - 15) << 23 | mantissa << 13);
  float value = ldexpf ((float) mantissa, -24);
  return sign != 0 ? -value : value;
}

/* Little-endian, whatever the machine. */
static guint64
load (const guint8 *src, gsize bytes)
{
  guint64 bits = 0;
  for (gsize i = 0; i < bytes; i++)
    bits |= (guint64) src[i] << (8 * i);
  return bits;
}

static float
from_double (guint64 bits)
{
  double value;
  memcpy (&value, &bits, sizeof value);
  return (float) value;
}

/* One loop per type, so that the choice stays outside. */
#define CONVERT(TYPE, EXPRESSION)                                     \
  if (strcmp (type->name, TYPE) == 0)                                 \
    {                                                                 \
      for (gsize i = 0; i < n; i++)                                   \
        {                                                             \
          guint64 bits = load (bytes + i * type->bytes, type->bytes); \
          dst[i] = (EXPRESSION);                                      \
        }                                                             \
      return TRUE;                                                    \
    }

gboolean
rn_weight_type_to_f32 (const RnWeightType *type, const void *src, gsize n, float *dst)
{
  const guint8 *bytes = src;

  CONVERT ("F32", from_bits ((guint32) bits))
  CONVERT ("F16", from_half ((guint16) bits))
  CONVERT ("BF16", from_bits ((guint32) bits << 16))
  CONVERT ("F64", from_double (bits))
  CONVERT ("I64", (float) (gint64) bits)
  CONVERT ("I32", (float) (gint32) bits)
  CONVERT ("I16", (float) (gint16) bits)
  CONVERT ("I8", (float) (gint8) bits)
  CONVERT ("U8", (float) bits)
  CONVERT ("U16", (float) bits)
  CONVERT ("U32", (float) bits)
  CONVERT ("U64", (float) bits)
  CONVERT ("BOOL", bits != 0 ? 1.0f : 0.0f)
  return FALSE;
}
