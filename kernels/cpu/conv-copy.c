/* conv-copy.c: row by row, on all threads. */
#include "config.h"

#include "kernels/cpu/conv-copy.h"
#include "kernels/cpu/parallel.h"
#include "kernels/half.h"

/* Elements that are converted together: 2 KiB of halves. */
#define CHUNK 1024

/* @n elements from type to type; floats that become floats are rounded to @compute. */
static void
convert (RnDType from, const void *src, RnDType compute, RnDType to, int64_t n, void *dst)
{
  if (from == to)
    {
      memcpy (dst, src, (gsize) n * rn_dtype_size (to));
      if (to == RN_F32)
        rn_floats_round (compute, dst, n);
    }
  else if (to == RN_F32)
    rn_floats_from (from, src, n, dst);
  else
    rn_floats_to (to, src, n, dst);
}

gboolean
rn_conv_copy_can_gather (const RnTensorDesc *tensor)
{
  return tensor->cblk <= CHUNK || tensor->cblk == tensor->dims[1];
}

/* @w cells of @b elements; they are @src_step and @dst_step cells apart. */
static void
convert_cells (RnDType from, const guint8 *src, int src_step, RnDType compute, RnDType to, guint8 *dst,
               int dst_step, int64_t b, int64_t w)
{
  if (src_step == 1 && dst_step == 1)
    {
      convert (from, src, compute, to, w * b, dst);
      return;
    }
  for (int64_t x = 0; x < w; x++)
    convert (from, src + (gsize) (x * src_step * b) * rn_dtype_size (from), compute, to, b,
             dst + (gsize) (x * dst_step * b) * rn_dtype_size (to));
}

/* Zeros in the rows of a plane of the tensor that follow row @y and that no piece has. */
static void
clear_between (const RnConvCopy *c, guint8 *plane, int64_t y)
{
  const gsize row = (gsize) (c->tensor.dims[3] * c->tensor.cblk) * rn_dtype_size (c->tensor.dtype);
  int64_t n = MIN (c->step[0], c->tensor.dims[2] - y) - 1;

  memset (plane + (gsize) (y + 1) * row, 0, (gsize) n * row);
}

/* The same block on both sides: a row of a block of channels is contiguous. */
static void
copy_blocks (const RnConvCopy *c, int64_t image, int64_t row, guint8 *tensor, guint8 *piece, gboolean out)
{
  const RnTensorDesc *t = &c->tensor, *p = &c->piece;
  const int64_t b = t->cblk, blocks = rn_desc_stored_channels (t) / b, rows = p->dims[2], w = p->dims[3];
  const gsize t_row = (gsize) (t->dims[3] * b) * rn_dtype_size (t->dtype);
  const gsize p_row = (gsize) (w * b) * rn_dtype_size (p->dtype);

#pragma omp parallel for schedule(static)
  for (int64_t unit = 0; unit < p->dims[0] * blocks * rows; unit++)
    {
      int64_t y = (row + unit % rows) * c->step[0];
      guint8 *plane = tensor + (gsize) ((image * blocks + unit / rows) * t->dims[2]) * t_row;
      guint8 *there = piece + (gsize) unit * p_row;
      if (y < 0 || y >= t->dims[2])
        {
          if (!out)
            memset (there, 0, p_row);
          continue;
        }
      guint8 *here = plane + (gsize) y * t_row;
      if (!out)
        {
          convert_cells (t->dtype, here, c->step[1], c->compute, p->dtype, there, 1, b, w);
          continue;
        }
      if (c->step[1] > 1)
        memset (here, 0, t_row);
      convert_cells (p->dtype, there, 1, RN_F32, t->dtype, here, c->step[1], b, w);
      clear_between (c, plane, y);
    }
}

/* @w cells of @bytes each, at distances @from_step and @to_step, in bytes. */
static void
copy_cells (const guint8 *from, gsize from_step, guint8 *to, gsize to_step, gsize bytes, int64_t w)
{
  if (bytes == 32) /* 16 channels of BF16: a constant size becomes one instruction */
    for (int64_t x = 0; x < w; x++)
      memcpy (to + (gsize) x * to_step, from + (gsize) x * from_step, 32);
  else
    for (int64_t x = 0; x < w; x++)
      memcpy (to + (gsize) x * to_step, from + (gsize) x * from_step, bytes);
}

/* A row of a block of channels into cells of all channels: @count of them, cells are @step bytes apart. */
static void
gather_row (const RnConvCopy *c, const guint8 *here, int64_t count, guint8 *there, gsize step)
{
  const int64_t w = c->piece.dims[3], b = c->tensor.cblk;
  const gsize t_cell = (gsize) b * rn_dtype_size (c->tensor.dtype) * (gsize) c->step[1];
  const gsize p_size = rn_dtype_size (c->piece.dtype);
  guint8 buffer[CHUNK * sizeof (float)];

  if (c->tensor.dtype == c->piece.dtype && c->compute == c->tensor.dtype)
    {
      copy_cells (here, t_cell, there, step, (gsize) count * p_size, w);
      return;
    }
  const int64_t cells = CHUNK / b;
  for (int64_t x = 0; x < w; x += cells)
    {
      int64_t n = MIN (cells, w - x);
      convert_cells (c->tensor.dtype, here + (gsize) x * t_cell, c->step[1], c->compute, c->piece.dtype,
                     buffer, 1, b, n);
      copy_cells (buffer, (gsize) b * p_size, there + (gsize) x * step, step, (gsize) count * p_size, n);
    }
}

/* Cells of all channels on the side of the copy. */
static void
copy_to_cells (const RnConvCopy *c, const guint8 *tensor, int64_t image, int64_t row, guint8 *piece)
{
  const RnTensorDesc *t = &c->tensor, *p = &c->piece;
  const int64_t b = t->cblk, blocks = rn_desc_stored_channels (t) / b, rows = p->dims[2], w = p->dims[3];
  const gsize t_row = (gsize) (t->dims[3] * b) * rn_dtype_size (t->dtype), p_size = rn_dtype_size (p->dtype);
  const gsize step = (gsize) t->dims[1] * p_size;

#pragma omp parallel for schedule(static)
  for (int64_t unit = 0; unit < p->dims[0] * rows; unit++)
    {
      int64_t y = (row + unit % rows) * c->step[0];
      guint8 *there = piece + (gsize) (unit * w) * step;
      if (y < 0 || y >= t->dims[2])
        memset (there, 0, (gsize) w * step);
      else
        for (int64_t k = 0; k < blocks; k++)
          {
            int64_t plane = (image + unit / rows) * blocks + k;
            gather_row (c, tensor + (gsize) (plane * t->dims[2] + y) * t_row, MIN (b, t->dims[1] - k * b),
                        there + (gsize) (k * b) * p_size, step);
          }
    }
}

static void
copy_from_cells (const RnConvCopy *c, const guint8 *piece, int64_t image, int64_t row, guint8 *tensor)
{
  const RnTensorDesc *t = &c->tensor, *p = &c->piece;
  const int64_t b = t->cblk, blocks = rn_desc_stored_channels (t) / b, rows = p->dims[2], w = p->dims[3];
  const gsize size = rn_dtype_size (t->dtype), step = (gsize) t->dims[1] * size;
  const gsize t_row = (gsize) (t->dims[3] * b) * size;

#pragma omp parallel for schedule(static)
  for (int64_t unit = 0; unit < p->dims[0] * rows; unit++)
    {
      int64_t y = (row + unit % rows) * c->step[0];
      for (int64_t k = 0; y >= 0 && y < t->dims[2] && k < blocks; k++)
        {
          int64_t count = MIN (b, t->dims[1] - k * b);
          guint8 *plane = tensor + (gsize) (((image + unit / rows) * blocks + k) * t->dims[2]) * t_row;
          guint8 *here = plane + (gsize) y * t_row;
          if (count < b || c->step[1] > 1)
            memset (here, 0, t_row);
          copy_cells (piece + (gsize) (unit * w) * step + (gsize) (k * b) * size, step, here,
                      (gsize) b * size * (gsize) c->step[1], (gsize) count * size, w);
          clear_between (c, plane, y);
        }
    }
}

void
rn_conv_copy_in (const RnConvCopy *copy, const void *tensor, int64_t image, int64_t row, void *piece)
{
  if (copy->piece.cblk == copy->tensor.cblk)
    copy_blocks (copy, image, row, (guint8 *) tensor, piece, FALSE);
  else
    copy_to_cells (copy, tensor, image, row, piece);
}

void
rn_conv_copy_out (const RnConvCopy *copy, const void *piece, int64_t image, int64_t row, void *tensor)
{
  if (copy->piece.cblk == copy->tensor.cblk)
    copy_blocks (copy, image, row, tensor, (guint8 *) piece, TRUE);
  else
    copy_from_cells (copy, piece, image, row, tensor);
}
