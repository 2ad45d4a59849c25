/*
 * strips.h: floats of any type as loops work on them: F32 where they lie, halves in a small buffer, converted
 * on the way in and on the way out. Long tensors are walked strip by strip, so that the buffers stay in the
 * nearest cache.
 */
#ifndef KERNELS_CPU_STRIPS_H
#define KERNELS_CPU_STRIPS_H

#include "kernels/half.h"

/* Elements of a buffer: 1 KiB of floats, so that all that an op needs share the nearest cache. */
#define RN_STRIP 256

/* Elements @at .. @at + @n - 1 of @data, for which @buffer has room unless they are F32. NULL for NULL. */
static inline const float *
rn_strip_read (RnDType dtype, const void *data, int64_t at, int64_t n, float *buffer)
{
  if (data == NULL)
    return NULL;
  if (dtype == RN_F32)
    return (const float *) data + at;
  rn_floats_from (dtype, (const guint16 *) data + at, n, buffer);
  return buffer;
}

/* The same of what is read and written: rn_strip_write () afterwards. */
static inline float *
rn_strip_update (RnDType dtype, void *data, int64_t at, int64_t n, float *buffer)
{
  return (float *) rn_strip_read (dtype, data, at, n, buffer);
}

/* Where to put what becomes the elements from @at on; rn_strip_write () afterwards. */
static inline float *
rn_strip_begin (RnDType dtype, void *data, int64_t at, float *buffer)
{
  return dtype == RN_F32 ? (float *) data + at : buffer;
}

static inline void
rn_strip_write (RnDType dtype, const float *strip, int64_t n, void *data, int64_t at)
{
  if (dtype != RN_F32 && data != NULL)
    rn_floats_to (dtype, strip, n, (guint16 *) data + at);
}

/* How many of @n cells of @b elements make a strip; where a cell does not fit into a buffer, one. */
static inline int64_t
rn_strip_cells (RnDType dtype, int64_t n, int64_t b)
{
  return dtype == RN_F32 ? n : MIN (MAX (RN_STRIP / b, 1), n);
}

/* How many elements of a cell are worked on together. */
static inline int64_t
rn_strip_lanes (RnDType dtype, int64_t b)
{
  return dtype == RN_F32 ? b : MIN (RN_STRIP, b);
}

#endif
