/* tensor.h: what a tensor is: sizes, element type, layout and an address. A tensor is a view and owns
 * nothing. */
#ifndef RUNNER_TENSOR_H
#define RUNNER_TENSOR_H

#include <glib.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef enum
{
  RN_F32,
  RN_F16,
  RN_BF16,
  RN_I64,
  RN_I32,
  RN_I16,
  RN_U8,
  RN_DTYPE_COUNT
} RnDType;

#define RN_MAX_DIMS 4

/**
 * RnTensorDesc:
 * @dtype: element type
 * @rank: number of dimensions, 0 (scalar) to RN_MAX_DIMS
 * @dims: sizes, outermost first: N C H W for activations, O I H W for convolution weights, C for vectors
 * @cblk: channel block of a rank-4 activation, 1 for everything else
 *
 * Layout. All activations are "blocked": channels are cut into blocks of @cblk, stored as
 * [N][ceil (C / cblk)][H][W][cblk]. So 1 is NCHW, C is NHWC, and 8 or 16 are oneDNN's nChw8c and nChw16c. The
 * channels that fill up the last block are zero in every tensor; each kernel that writes a tensor keeps them
 * so.
 */
typedef struct
{
  RnDType dtype;
  int rank;
  int64_t dims[RN_MAX_DIMS];
  int64_t cblk;
} RnTensorDesc;

typedef struct
{
  RnTensorDesc desc;
  void *data;
} RnTensor;

static inline gsize
rn_dtype_size (RnDType dtype)
{
  switch (dtype)
    {
    case RN_I64:
      return 8;
    case RN_F32:
    case RN_I32:
      return 4;
    case RN_F16:
    case RN_BF16:
    case RN_I16:
      return 2;
    case RN_U8:
      return 1;
    case RN_DTYPE_COUNT:
      break;
    }
  return 0;
}

static inline RnTensorDesc
rn_desc_nchw (RnDType dtype, int64_t n, int64_t c, int64_t h, int64_t w, int64_t cblk)
{
  RnTensorDesc d = { dtype, 4, { n, c, h, w }, cblk };
  return d;
}

static inline RnTensorDesc
rn_desc_vector (RnDType dtype, int64_t n)
{
  RnTensorDesc d = { dtype, 1, { n, 1, 1, 1 }, 1 };
  return d;
}

/* Channels as stored: rounded up to whole blocks. */
static inline int64_t
rn_desc_stored_channels (const RnTensorDesc *d)
{
  return d->rank == 4 ? (d->dims[1] + d->cblk - 1) / d->cblk * d->cblk : d->dims[1];
}

/* Elements as stored, padding channels included. Sizes were checked when the descriptor was made by the
 * graph. */
static inline int64_t
rn_desc_stored_elements (const RnTensorDesc *d)
{
  if (d->rank == 4)
    return d->dims[0] * rn_desc_stored_channels (d) * d->dims[2] * d->dims[3];
  int64_t n = 1;
  for (int i = 0; i < d->rank; i++)
    n *= d->dims[i];
  return n;
}

/* Elements without padding channels. */
static inline int64_t
rn_desc_elements (const RnTensorDesc *d)
{
  int64_t n = 1;
  for (int i = 0; i < d->rank; i++)
    n *= d->dims[i];
  return n;
}

static inline gsize
rn_desc_bytes (const RnTensorDesc *d)
{
  return (gsize) rn_desc_stored_elements (d) * rn_dtype_size (d->dtype);
}

/* Index, in elements, of (n, c, y, x) in a rank-4 activation. */
static inline int64_t
rn_desc_index (const RnTensorDesc *d, int64_t n, int64_t c, int64_t y, int64_t x)
{
  int64_t blocks = rn_desc_stored_channels (d) / d->cblk;
  return (((n * blocks + c / d->cblk) * d->dims[2] + y) * d->dims[3] + x) * d->cblk + c % d->cblk;
}

static inline gboolean
rn_desc_equal (const RnTensorDesc *a, const RnTensorDesc *b)
{
  if (a->dtype != b->dtype || a->rank != b->rank || a->cblk != b->cblk)
    return FALSE;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i])
      return FALSE;
  return TRUE;
}

G_END_DECLS

#endif
