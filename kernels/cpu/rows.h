/*
 * rows.h: rows of a plane as loops over windows work on them: F32 where they lie, halves as floats in scratch
 * of the thread, as many at a time as a window is high. Windows come in order, from the first row to the
 * last.
 */
#ifndef KERNELS_CPU_ROWS_H
#define KERNELS_CPU_ROWS_H

#include "kernels/cpu/strips.h"
#include "kernels/device.h"

typedef struct
{
  RnDType dtype;
  void *plane;
  int64_t size;       /* elements of a row */
  float *window;      /* rows first .. end - 1, unless they are F32 */
  int64_t first, end; /* nothing is known of rows from end on */
} RnRows;

/* The plane that begins with element @at of @data. @window: room for the rows of one window, or NULL. */
static inline RnRows
rn_rows (RnDType dtype, const void *data, int64_t at, int64_t size, float *window)
{
  RnRows rows = { dtype, (guint8 *) data + (gsize) at * rn_dtype_size (dtype), size, window, 0, 0 };
  return rows;
}

static inline guint8 *
rn_rows_stored (const RnRows *rows, int64_t y)
{
  return (guint8 *) rows->plane + (gsize) (y * rows->size) * rn_dtype_size (rows->dtype);
}

/* Forgets the rows before @first. */
static inline void
rn_rows_advance (RnRows *rows, int64_t first)
{
  if (rows->end > first && first > rows->first)
    memmove (rows->window, rows->window + (first - rows->first) * rows->size,
             (gsize) ((rows->end - first) * rows->size) * sizeof (float));
  rows->first = first;
  rows->end = MAX (rows->end, first);
}

/* Rows @first .. @end - 1, to be read. */
static inline const float *
rn_rows_read (RnRows *rows, int64_t first, int64_t end)
{
  if (rows->dtype == RN_F32)
    return (const float *) rows->plane + first * rows->size;
  rn_rows_advance (rows, first);
  if (end > rows->end)
    {
      rn_floats_from (rows->dtype, rn_rows_stored (rows, rows->end), (end - rows->end) * rows->size,
                      rows->window + (rows->end - first) * rows->size);
      rows->end = end;
    }
  return rows->window;
}

/*
 * Rows @first .. @end - 1, to be added to: they start out as zero, just before, so that they are in the
 * cache. Those before @first are complete and only now rounded.
 */
static inline float *
rn_rows_add (RnRows *rows, int64_t first, int64_t end)
{
  gsize element = rn_dtype_size (rows->dtype);

  if (rows->dtype == RN_F32)
    {
      if (end > rows->end)
        memset (rn_rows_stored (rows, rows->end), 0, (gsize) ((end - rows->end) * rows->size) * element);
      rows->end = MAX (rows->end, end);
      return (float *) rows->plane + first * rows->size;
    }
  int64_t done = MIN (first, rows->end);
  if (done > rows->first)
    rn_floats_to (rows->dtype, rows->window, (done - rows->first) * rows->size,
                  rn_rows_stored (rows, rows->first));
  if (first > rows->end) /* no window had these */
    memset (rn_rows_stored (rows, rows->end), 0, (gsize) ((first - rows->end) * rows->size) * element);
  rn_rows_advance (rows, first);
  if (end > rows->end)
    {
      memset (rows->window + (rows->end - first) * rows->size, 0,
              (gsize) ((end - rows->end) * rows->size) * sizeof (float));
      rows->end = end;
    }
  return rows->window;
}

/* All is added to the plane, which has @h rows. */
static inline void
rn_rows_finish (RnRows *rows, int64_t h)
{
  rn_rows_add (rows, h, h);
}

/* Workspace for @elements floats of each thread, where @dtype needs it; a cache line between two threads. */
static inline gsize
rn_rows_workspace (const RnDevice *device, RnDType dtype, int64_t elements)
{
  return dtype == RN_F32 ? 0 : (gsize) device->n_threads * (gsize) (elements + 16) * sizeof (float);
}

static inline float *
rn_rows_scratch (RnDType dtype, void *workspace, int thread, int64_t elements)
{
  return dtype == RN_F32 ? NULL : (float *) workspace + thread * (elements + 16);
}

#endif
