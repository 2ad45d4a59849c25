/*
 * conv-half.c: convolutions that multiply numbers of half precision (args.compute F16 or BF16), piece by
 * piece: some images, or a strip of rows of one. A piece of what is read is converted to a copy in the
 * workspace, a primitive of oneDNN works on copies, and a piece of what is written is converted back. So
 * there are never more than RN_CONV_HALF_COPIES bytes of copies, whatever the size of the tensors.
 *
 * Of both activations one is cut ("cut": the one that is written, or that with fewer rows) and the other
 * follows ("other"), with the rows around that the kernel reaches. Rows outside of the image are zeros in the
 * copies. So one primitive serves all strips; the last one may reach past the image, where its results are
 * dropped, and a gradient of weights adds zeros.
 *
 * Two ways to multiply. "half": in F32, where products of halves are exact, by the same primitives as
 * conv.c, Winograd's among them. "onednn-bf16": BF16 by the processor's matrix tiles (AMX), which want all
 * channels of a cell side by side. Without tiles oneDNN's BF16 is no faster than F32 by Winograd. Gradients
 * of weights never go to tiles: oneDNN 2.6 reads and writes in front of the buffer there.
 *
 * The gradient of a source, where stride is 1, is a forward convolution with turned weights. A 1x1
 * convolution with a larger stride is one of stride 1 on every so manieth pixel: only these are copied.
 */
#include "config.h"

#include "kernels/cpu/conv-half.h"

#include "kernels/cpu/conv-copy.h"
#include "kernels/cpu/conv-core.h"
#include "kernels/half.h"
#include "kernels/kernel-table.h"

#include <string.h>

typedef enum
{
  HALF_DIRECT,
  HALF_WINOGRAD,
  HALF_TILES,
} HalfWay;

/* What the three ops differ in. */
typedef struct
{
  const RnOpCall *call;
  const RnTensorDesc *src, *dst; /* as in the forward direction */
  RnTensorDesc read;             /* what the kernel reaches of src: all of it, or the pixels that it reads */
  int step[2], stride[2];        /* from such a pixel to the next; of a convolution of these */
  RnOnednnDirection direction;   /* of the primitive */
  gboolean turned;
  gboolean folded;
  HalfWay way;
} HalfCall;

typedef struct
{
  int64_t images, strips; /* per piece; per image, more than one only if images is 1 */
  int64_t cut_rows, other_rows;
  int64_t times, over, first; /* other row of cut row y: y * times / over + first */
  int pad[2], pad_end[2];     /* of a piece: above and left, below and right */
} Pieces;

typedef struct
{
  RnConvCore core;
  Pieces pieces;
  RnConvCopy cut, other;
  gsize cut_at, other_at; /* bytes in the workspace */
} HalfState;

static void
half_release (gpointer data)
{
  HalfState *s = data;

  rn_conv_core_clear (&s->core);
  g_free (s);
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

/* Rows that the kernel reaches over, beside the first. */
static int64_t
reach (const RnConvArgs *args, int axis)
{
  return (int64_t) args->dilation[axis] * (args->kernel[axis] - 1);
}

static int64_t
ceil_div (int64_t a, int64_t b) /* b > 0 */
{
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* Padding of the convolution that the primitive does. */
static int64_t
padding (const HalfCall *h, int axis)
{
  const RnConvArgs *args = &h->call->args.conv;
  return h->turned ? reach (args, axis) - args->pad[axis] : args->pad[axis];
}

static const RnTensorDesc *
cut_tensor (const HalfCall *h)
{
  return h->turned || h->direction == RN_ONEDNN_BWD_DATA ? &h->read : h->dst;
}

static const RnTensorDesc *
other_tensor (const HalfCall *h)
{
  return cut_tensor (h) == h->dst ? &h->read : h->dst;
}

static Pieces
whole_images (const HalfCall *h, int64_t images)
{
  Pieces p = { .images = images,
               .strips = 1,
               .cut_rows = cut_tensor (h)->dims[2],
               .other_rows = other_tensor (h)->dims[2],
               .times = 1,
               .over = 1 };
  for (int i = 0; i < 2; i++)
    p.pad[i] = p.pad_end[i] = (int) padding (h, i);
  return p;
}

static Pieces
strips_of_rows (const HalfCall *h, int64_t rows)
{
  const RnConvArgs *args = &h->call->args.conv;
  const int64_t stride = h->stride[0];
  Pieces p = whole_images (h, 1);

  p.strips = ceil_div (cut_tensor (h)->dims[2], rows);
  p.cut_rows = rows;
  if (h->direction != RN_ONEDNN_BWD_DATA)
    {
      p.times = stride;
      p.first = -p.pad[0];
      /* Not less than a stride for each row: the library has no 1x1 convolutions for what an image ends with.
       */
      p.other_rows = MAX ((rows - 1) * stride + reach (args, 0) + 1, rows * stride);
      p.pad[0] = p.pad_end[0] = 0;
      return p;
    }
  /*
   * Row y of the source comes from the outputs o with o * stride - pad + u * dilation = y. Strips start at
   * multiples of stride, so that the first of these lies equally in each.
   */
  p.over = stride;
  p.first = ceil_div (args->pad[0] - reach (args, 0), stride);
  p.pad[0] = (int) (args->pad[0] - stride * p.first);
  p.other_rows = (rows - 1 + p.pad[0]) / stride + 1;
  p.pad_end[0] = (int) MAX ((p.other_rows - 1) * stride + reach (args, 0) + 1 - rows - p.pad[0], 0);
  return p;
}

/*
 * The largest pieces after @last (NULL: at all) in the order in which they are tried: fewer images, then
 * lower strips, each of at most three quarters of the one before. FALSE when there are none.
 */
static gboolean
next_pieces (const HalfCall *h, const Pieces *last, Pieces *pieces)
{
  const int64_t n = h->src->dims[0], rows = cut_tensor (h)->dims[2];
  /* Winograd's tiles are 4 rows high. */
  const int64_t step = h->way == HALF_WINOGRAD ? 4 : h->direction == RN_ONEDNN_BWD_DATA ? h->stride[0] : 1;

  if (last == NULL || last->images > 1)
    {
      int64_t images = last == NULL ? n : last->images - 1;
      while (n % images != 0)
        images--;
      *pieces = whole_images (h, images);
      return TRUE;
    }
  for (int64_t strips = last->strips + 1; strips <= ceil_div (rows, step); strips++)
    {
      int64_t height = ceil_div (ceil_div (rows, strips), step) * step;
      if (height < last->cut_rows && (height * 4 <= last->cut_rows * 3 || height == step))
        {
          *pieces = strips_of_rows (h, height);
          return TRUE;
        }
    }
  return FALSE;
}

/* ---- prepare ------------------------------------------------------------------------------------------- */

static RnConvCopy
copy_of (const HalfCall *h, const RnTensorDesc *tensor, int64_t images, int64_t rows, gboolean is_read)
{
  RnDType compute = h->call->args.conv.compute;
  RnConvCopy c = { *tensor, *tensor, is_read ? compute : tensor->dtype, { 1, 1 } };

  if (tensor == &h->read)
    {
      c.tensor = *h->src;
      memcpy (c.step, h->step, sizeof c.step);
    }
  c.piece.dims[0] = images;
  c.piece.dims[2] = rows;
  if (h->way == HALF_TILES)
    {
      c.piece.cblk = tensor->dims[1];
      c.piece.dtype = is_read ? RN_BF16 : tensor->dtype;
    }
  else
    c.piece.dtype = RN_F32;
  return c;
}

/* Describes the primitive for pieces of this size, and books the workspace. */
static RnStatus
describe (RnDevice *device, const HalfCall *h, const Pieces *pieces, RnPrepared *prepared,
          const char **reason)
{
  const RnOpCall *call = h->call;
  const RnConvArgs *args = &call->args.conv;
  const gboolean forward = call->op == RN_OP_CONV2D_FWD, gradient = h->direction == RN_ONEDNN_BWD_WEIGHTS;
  HalfState *s = g_new0 (HalfState, 1);

  s->pieces = *pieces;
  s->cut = copy_of (h, cut_tensor (h), pieces->images, pieces->cut_rows, gradient);
  s->other = copy_of (h, other_tensor (h), pieces->images, pieces->other_rows, TRUE);
  const RnTensorDesc *src = h->direction == RN_ONEDNN_BWD_DATA ? &s->cut.piece : &s->other.piece;
  const RnTensorDesc *dst = h->direction == RN_ONEDNN_BWD_DATA ? &s->other.piece : &s->cut.piece;
  RnOnednnConv conv = {
    .direction = h->direction,
    .groups = args->groups,
    .operands = h->way == HALF_TILES ? RN_BF16 : RN_F32,
    .bias = forward ? h->folded || RN_HAS_IN (call, RN_CONV_BIAS) : gradient && rn_conv_adds_up (call),
    .sum = forward && RN_HAS_IN (call, RN_CONV_RESIDUAL),
    .relu = forward && args->relu,
    .winograd = h->way == HALF_WINOGRAD,
  };
  memcpy (conv.kernel, args->kernel, sizeof conv.kernel);
  memcpy (conv.stride, h->stride, sizeof conv.stride);
  memcpy (conv.dilation, args->dilation, sizeof conv.dilation);
  memcpy (conv.pad, pieces->pad, sizeof conv.pad);
  memcpy (conv.pad_end, pieces->pad_end, sizeof conv.pad_end);

  RnStatus status = RN_STATUS_UNSUPPORTED;
  if (!rn_onednn_map_init (&conv.src, src) || !rn_onednn_map_init (&conv.dst, dst))
    *reason = "oneDNN does not know the layout";
  else
    status =
        rn_conv_core_init (&s->core, device, &conv, h->turned, h->folded, h->dst->dims[1], prepared, reason);
  if (status != RN_STATUS_OK)
    {
      g_free (s);
      return status;
    }
  s->cut_at = rn_conv_book (prepared, rn_desc_bytes (&s->cut.piece));
  s->other_at = rn_conv_book (prepared, rn_desc_bytes (&s->other.piece));
  prepared->state = s;
  return RN_STATUS_OK;
}

static gsize
copy_bytes (const HalfCall *h, const Pieces *p)
{
  const gboolean gradient = h->direction == RN_ONEDNN_BWD_WEIGHTS;
  RnConvCopy cut = copy_of (h, cut_tensor (h), p->images, p->cut_rows, gradient);
  RnConvCopy other = copy_of (h, other_tensor (h), p->images, p->other_rows, TRUE);

  return rn_desc_bytes (&cut.piece) + rn_desc_bytes (&other.piece);
}

/*
 * Bytes of copies that pay: small enough for the caches, but many times what each piece costs beside, which
 * is to read the weights or to add to their gradients, or to transform them (measured, AVX-512, 2 MiB of
 * second cache per core).
 */
static gsize
copies_wanted (const HalfCall *h)
{
  const RnConvArgs *args = &h->call->args.conv;
  gsize weights = (gsize) (h->src->dims[1] / args->groups * h->dst->dims[1]) * sizeof (float)
                  * (gsize) (args->kernel[0] * args->kernel[1]);

  if (h->way == HALF_WINOGRAD)
    return RN_CONV_HALF_COPIES;
  return CLAMP (weights * (h->direction == RN_ONEDNN_BWD_WEIGHTS ? 16 : 8), (gsize) 4 << 20,
                RN_CONV_HALF_COPIES);
}

static const char *
half_refusal (const HalfCall *h)
{
  const RnConvArgs *args = &h->call->args.conv;

  if (!rn_dtype_is_half (args->compute))
    return "computes in half precision";
  if (h->way == HALF_WINOGRAD)
    return rn_conv_winograd_refusal (args, h->src, h->dst);
  if (h->way != HALF_TILES)
    return NULL;
  if (args->compute != RN_BF16 || !rn_onednn_has_tiles ())
    return "for BF16 on a processor with matrix tiles";
  if (!rn_conv_copy_can_gather (h->src) || !rn_conv_copy_can_gather (h->dst))
    return "the channel blocks are too large";
  return NULL;
}

/* Fills in what follows from the call. */
static void
find_read (HalfCall *h)
{
  const RnConvArgs *args = &h->call->args.conv;
  const gboolean pixels =
      reach (args, 0) == 0 && reach (args, 1) == 0 && args->pad[0] == 0 && args->pad[1] == 0;

  h->read = *h->src;
  for (int i = 0; i < 2; i++)
    {
      h->step[i] = pixels ? args->stride[i] : 1;
      h->stride[i] = pixels ? 1 : args->stride[i];
      if (pixels)
        h->read.dims[2 + i] = h->dst->dims[2 + i];
    }
}

/* The largest pieces whose copies and whose workspace stay below their limits. */
static RnStatus
half_prepare (RnDevice *device, HalfCall *h, RnPrepared *prepared, const char **reason)
{
  gsize limit = device->workspace_limit > 0 ? device->workspace_limit : G_MAXSIZE;
  gsize copies = copies_wanted (h);
  Pieces pieces, *last = NULL;

  find_read (h);
  if (h->direction == RN_ONEDNN_BWD_DATA && h->stride[0] == 1 && h->stride[1] == 1
      && h->call->args.conv.pad[0] <= reach (&h->call->args.conv, 0)
      && h->call->args.conv.pad[1] <= reach (&h->call->args.conv, 1))
    {
      h->turned = TRUE;
      h->direction = RN_ONEDNN_FWD;
    }

  *reason = half_refusal (h);
  if (*reason != NULL)
    return RN_STATUS_UNSUPPORTED;
  if (h->way == HALF_WINOGRAD)
    limit = MIN (limit, RN_WINOGRAD_WORKSPACE);
  *reason = "a strip of one row is too large";
  for (; next_pieces (h, last, &pieces); last = &pieces)
    {
      if (copy_bytes (h, &pieces) > MIN (copies, limit))
        continue;
      RnStatus status = describe (device, h, &pieces, prepared, reason);
      if (status != RN_STATUS_OK)
        return status;
      gboolean is_slow = h->way == HALF_TILES && strstr (prepared->detail, "amx") == NULL;
      if (prepared->workspace_bytes <= limit && !is_slow)
        return RN_STATUS_OK;
      half_release (prepared->state);
      prepared->state = NULL;
      *reason = is_slow ? "oneDNN would do without the tiles" : "needs too much workspace";
      if (is_slow)
        break;
    }
  return RN_STATUS_UNSUPPORTED;
}

static RnStatus
fwd_prepare (RnDevice *device, const RnOpCall *call, HalfWay way, RnPrepared *prepared, const char **reason)
{
  HalfCall h = { .call = call,
                 .src = &call->in[RN_CONV_SRC],
                 .dst = &call->out[RN_CONV_DST],
                 .direction = RN_ONEDNN_FWD,
                 .folded = RN_HAS_IN (call, RN_CONV_GAMMA),
                 .way = way };
  return half_prepare (device, &h, prepared, reason);
}

static RnStatus
bwd_data_prepare (RnDevice *device, const RnOpCall *call, HalfWay way, RnPrepared *prepared,
                  const char **reason)
{
  HalfCall h = { .call = call,
                 .src = &call->out[RN_CONV_BD_DIFF_SRC],
                 .dst = &call->in[RN_CONV_BD_DIFF_DST],
                 .direction = RN_ONEDNN_BWD_DATA,
                 .folded = RN_HAS_IN (call, RN_CONV_BD_GAMMA),
                 .way = way };
  return half_prepare (device, &h, prepared, reason);
}

static RnStatus
bwd_weights_prepare (RnDevice *device, const RnOpCall *call, HalfWay way, RnPrepared *prepared,
                     const char **reason)
{
  HalfCall h = { .call = call,
                 .src = &call->in[RN_CONV_BW_SRC],
                 .dst = &call->in[RN_CONV_BW_DIFF_DST],
                 .direction = RN_ONEDNN_BWD_WEIGHTS,
                 .folded = RN_HAS_IN (call, RN_CONV_BW_GAMMA),
                 .way = way };
  return half_prepare (device, &h, prepared, reason);
}

gsize
rn_conv_half_copies (const RnPrepared *prepared)
{
  const HalfState *s = prepared->state;

  if (prepared->kernel->release != half_release)
    return 0;
  return rn_desc_bytes (&s->cut.piece) + rn_desc_bytes (&s->other.piece);
}

/* ---- run ----------------------------------------------------------------------------------------------- */

static RnStatus
half_finalize (RnDevice *device, const RnOpCall *call, RnPrepared *prepared)
{
  return rn_conv_core_finalize (&((HalfState *) prepared->state)->core, device);
}

/* One piece, from image @image and row @row of the cut tensor on. Tensors that are only written are not in
 * @cut_in; @cut_out is NULL for gradients of weights. */
static RnStatus
run_piece (RnDevice *device, const HalfState *s, int64_t image, int64_t row, const void *other,
           const void *cut_in, void *cut_out, const float *bias, void *workspace)
{
  guint8 *cut_piece = (guint8 *) workspace + s->cut_at, *other_piece = (guint8 *) workspace + s->other_at;
  const gboolean backward = s->core.direction == RN_ONEDNN_BWD_DATA;

  rn_conv_copy_in (&s->other, other, image, row * s->pieces.times / s->pieces.over + s->pieces.first,
                   other_piece);
  if (cut_in != NULL)
    rn_conv_copy_in (&s->cut, cut_in, image, row, cut_piece);
  RnStatus status = rn_conv_core_execute (&s->core, device, backward ? cut_piece : other_piece, bias,
                                          backward ? other_piece : cut_piece, workspace);
  if (status == RN_STATUS_OK && cut_out != NULL)
    rn_conv_copy_out (&s->cut, cut_piece, image, row, cut_out);
  return status;
}

/* Of the pieces in order: number @index starts at *image and *row. FALSE after the last. */
static gboolean
piece_at (const HalfState *s, int64_t index, int64_t *image, int64_t *row)
{
  *image = index / s->pieces.strips * s->pieces.images;
  *row = index % s->pieces.strips * s->pieces.cut_rows;
  return *image < s->cut.tensor.dims[0];
}

static RnStatus
half_fwd_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
              void *const *out, void *workspace)
{
  const HalfState *s = state;
  const float *bias = rn_conv_core_load_fwd (&s->core, call, in, workspace);
  RnStatus status = RN_STATUS_OK;
  int64_t image, row;

  for (int64_t i = 0; status == RN_STATUS_OK && piece_at (s, i, &image, &row); i++)
    status = run_piece (device, s, image, row, in[RN_CONV_SRC], in[RN_CONV_RESIDUAL], out[RN_CONV_DST], bias,
                        workspace);
  return status;
}

static RnStatus
half_bwd_data_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                   void *const *out, void *workspace)
{
  const HalfState *s = state;
  RnStatus status = RN_STATUS_OK;
  int64_t image, row;

  rn_conv_core_load_bwd_data (&s->core, call, in, workspace);
  for (int64_t i = 0; status == RN_STATUS_OK && piece_at (s, i, &image, &row); i++)
    status = run_piece (device, s, image, row, in[RN_CONV_BD_DIFF_DST], NULL, out[RN_CONV_BD_DIFF_SRC], NULL,
                        workspace);
  return status;
}

static RnStatus
half_bwd_weights_run (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                      void *const *out, void *workspace)
{
  const HalfState *s = state;
  RnStatus status = RN_STATUS_OK;
  int64_t image, row;

  for (int64_t i = 0; status == RN_STATUS_OK && piece_at (s, i, &image, &row); i++)
    {
      status = run_piece (device, s, image, row, in[RN_CONV_BW_SRC], in[RN_CONV_BW_DIFF_DST], NULL, NULL,
                          workspace);
      if (status == RN_STATUS_OK)
        rn_conv_core_add_gradients (&s->core, call, in, out, workspace);
    }
  return status;
}

#define HALF_KERNELS(op_, OP, direction)                                                                    \
  RN_CONV_KERNEL (rn_half_##op_, OP, #op_, half, direction, "half", RN_PRIORITY_ONEDNN, HALF_DIRECT)        \
  RN_CONV_KERNEL (rn_half_winograd_##op_, OP, #op_, half, direction, "half:winograd", RN_PRIORITY_WINOGRAD, \
                  HALF_WINOGRAD)

HALF_KERNELS (conv2d_fwd, CONV2D_FWD, fwd)
HALF_KERNELS (conv2d_bwd_data, CONV2D_BWD_DATA, bwd_data)
HALF_KERNELS (conv2d_bwd_weights, CONV2D_BWD_WEIGHTS, bwd_weights)
RN_CONV_KERNEL (rn_bf16_conv2d_fwd, CONV2D_FWD, "conv2d_fwd", half, fwd, "onednn-bf16", RN_PRIORITY_TILES,
                HALF_TILES)
RN_CONV_KERNEL (rn_bf16_conv2d_bwd_data, CONV2D_BWD_DATA, "conv2d_bwd_data", half, bwd_data, "onednn-bf16",
                RN_PRIORITY_TILES, HALF_TILES)
