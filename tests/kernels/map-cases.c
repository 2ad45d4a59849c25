/* map-cases.c: calls on feature maps. */
#include "config.h"

#include "tests/kernels/case-list.h"
#include "tests/kernels/harness.h"

#include <math.h>

/* ---- convolutions -------------------------------------------------------------------------------------- */

typedef struct
{
  int64_t n, ic, oc, h, w;
  int kernel[2], stride, pad, dilation, groups;
} Shape;

static const Shape shapes[] = {
  { 1, 1, 1, 1, 1, { 1, 1 }, 1, 0, 1, 1 },    { 2, 3, 64, 17, 23, { 7, 7 }, 2, 3, 1, 1 }, /* the stem */
  { 1, 64, 16, 5, 7, { 1, 1 }, 1, 0, 1, 1 },  { 3, 16, 32, 9, 11, { 1, 1 }, 2, 0, 1, 1 }, /* the downsample */
  { 2, 32, 36, 6, 5, { 3, 3 }, 1, 1, 1, 1 }, /* 36 and 27: tails of both blocks */
  { 2, 27, 20, 7, 8, { 3, 3 }, 2, 1, 1, 1 },  { 1, 180, 48, 5, 4, { 3, 3 }, 1, 1, 1, 1 },
  { 1, 16, 180, 4, 6, { 3, 3 }, 1, 1, 1, 1 }, { 1, 32, 32, 13, 12, { 3, 3 }, 1, 2, 2, 1 }, /* dilated */
  { 2, 32, 64, 8, 9, { 3, 3 }, 1, 1, 1, 2 },  /* two groups of whole blocks */
  { 1, 12, 24, 6, 6, { 3, 3 }, 2, 1, 1, 4 },  /* groups inside a block */
  { 1, 24, 24, 7, 5, { 3, 3 }, 1, 1, 1, 24 }, /* depthwise */
  { 1, 16, 16, 9, 4, { 5, 1 }, 1, 0, 1, 1 },  { 2, 64, 32, 3, 2, { 3, 3 }, 2, 1, 1, 1 },
};

/* Large enough for Winograd's algorithm; 68 leaves a tail, 23 cuts tiles of 4. */
static const Shape winograd_shape = { 2, 64, 68, 23, 23, { 3, 3 }, 1, 1, 1, 1 };

static RnOpCall
conv_call (RnOp op, const Shape *s, int64_t ib, int64_t ob, RnTensorDesc *src, RnTensorDesc *weights,
           RnTensorDesc *dst)
{
  RnOpCall call = {
    .op = op,
    .args.conv = {
      .kernel = { s->kernel[0], s->kernel[1] },
      .stride = { s->stride, s->stride },
      .pad = { s->pad, s->pad },
      .dilation = { s->dilation, s->dilation },
      .groups = s->groups,
      .eps = 1e-5f,
    },
  };
  int64_t oh = rn_window_size (s->h, s->kernel[0], s->stride, s->pad, s->dilation, FALSE);
  int64_t ow = rn_window_size (s->w, s->kernel[1], s->stride, s->pad, s->dilation, FALSE);

  *src = rn_desc_nchw (RN_F32, s->n, s->ic, s->h, s->w, ib);
  *dst = rn_desc_nchw (RN_F32, s->n, s->oc, oh, ow, ob);
  *weights = rn_desc_nchw (RN_F32, s->oc, s->ic / s->groups, s->kernel[0], s->kernel[1], 1);
  return call;
}

/*
 * Rounding errors of a sum of L products of random signs grow like a random walk: about sqrt (L / 2) eps of a
 * typical result, which is well below the largest one. 8 more for the scale, the shift, the residual and the
 * last rounding.
 */
static double
sum_tolerance (double length)
{
  return 8 + sqrt (length);
}

static void
add_conv_fwd (GArray *cases, const Shape *s, int64_t ib, int64_t ob)
{
  RnTensorDesc src, weights, dst;
  double tolerance = sum_tolerance ((double) (s->ic / s->groups) * s->kernel[0] * s->kernel[1]);

  for (int variant = 0; variant < 6; variant++)
    {
      RnOpCall call = conv_call (RN_OP_CONV2D_FWD, s, ib, ob, &src, &weights, &dst);
      set_in (&call, RN_CONV_SRC, src);
      set_in (&call, RN_CONV_WEIGHTS, weights);
      set_out (&call, RN_CONV_DST, dst);
      if (variant == 1 || variant == 2)
        set_in (&call, RN_CONV_BIAS, vec (s->oc));
      if (variant == 3 || variant == 4)
        for (int slot = RN_CONV_GAMMA; slot <= RN_CONV_VAR; slot++)
          set_in (&call, slot, vec (s->oc));
      if (variant == 4 || variant == 5)
        set_in (&call, RN_CONV_RESIDUAL, dst);
      call.args.conv.relu = variant == 2 || variant == 4;
      add_case (cases, &call, tolerance);
    }
}

static void
add_conv_bwd_data (GArray *cases, const Shape *s, int64_t ib, int64_t ob)
{
  RnTensorDesc src, weights, dst;
  double tolerance = sum_tolerance ((double) (s->oc / s->groups) * s->kernel[0] * s->kernel[1]);

  for (int folded = 0; folded < 2; folded++)
    {
      RnOpCall call = conv_call (RN_OP_CONV2D_BWD_DATA, s, ib, ob, &src, &weights, &dst);
      set_in (&call, RN_CONV_BD_DIFF_DST, dst);
      set_in (&call, RN_CONV_BD_WEIGHTS, weights);
      set_out (&call, RN_CONV_BD_DIFF_SRC, src);
      for (int slot = RN_CONV_BD_GAMMA; folded && slot <= RN_CONV_BD_VAR; slot++)
        set_in (&call, slot, vec (s->oc));
      add_case (cases, &call, tolerance);
    }
}

static void
add_conv_bwd_weights (GArray *cases, const Shape *s, int64_t ib, int64_t ob)
{
  RnTensorDesc src, weights, dst;

  for (int variant = 0; variant < 8; variant++)
    {
      RnOpCall call = conv_call (RN_OP_CONV2D_BWD_WEIGHTS, s, ib, ob, &src, &weights, &dst);
      gboolean folded = variant == 3 || variant == 4 || variant == 7;
      double length = (double) (dst.dims[0] * dst.dims[2] * dst.dims[3]);
      set_in (&call, RN_CONV_BW_SRC, src);
      set_in (&call, RN_CONV_BW_DIFF_DST, dst);
      if (folded)
        {
          set_in (&call, RN_CONV_BW_WEIGHTS, weights);
          for (int slot = RN_CONV_BW_GAMMA; slot <= RN_CONV_BW_VAR; slot++)
            set_in (&call, slot, vec (s->oc));
          length += (double) (weights.dims[1] * weights.dims[2] * weights.dims[3]); /* <weights, dw'> */
        }
      if (variant != 1 && variant != 5)
        set_out (&call, RN_CONV_BW_DIFF_WEIGHTS, weights);
      if (variant > 0 && !folded)
        set_out (&call, RN_CONV_BW_DIFF_BIAS, vec (s->oc));
      if (folded)
        set_out (&call, RN_CONV_BW_DIFF_BETA, vec (s->oc));
      if (variant == 4 || variant == 7)
        set_out (&call, RN_CONV_BW_DIFF_GAMMA, vec (s->oc));
      if (variant >= 5) /* not those of diff_dst, so that it shows which ones are taken */
        set_in (&call, RN_CONV_BW_SUMS, vec (s->oc));
      add_case (cases, &call, sum_tolerance (length));
    }
}

void
add_conv_cases (GArray *cases)
{
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint b = 0; b < G_N_ELEMENTS (case_blocks); b++)
      {
        int64_t ib = shapes[i].ic == 3 ? 1 : case_blocks[b]; /* an image is NCHW */
        add_conv_fwd (cases, &shapes[i], ib, case_blocks[b]);
        add_conv_bwd_data (cases, &shapes[i], ib, case_blocks[b]);
        add_conv_bwd_weights (cases, &shapes[i], ib, case_blocks[b]);
      }
  add_conv_fwd (cases, &winograd_shape, 16, 16);
  add_conv_bwd_data (cases, &winograd_shape, 16, 16);
  add_conv_bwd_weights (cases, &winograd_shape, 16, 16);
  add_conv_fwd (cases, &shapes[4], shapes[4].ic, shapes[4].oc); /* NHWC */
  add_conv_bwd_data (cases, &shapes[4], shapes[4].ic, shapes[4].oc);
  add_conv_bwd_weights (cases, &shapes[4], shapes[4].ic, shapes[4].oc);
}

/* ---- norm, elementwise, pool, move --------------------------------------------------------------------- */

typedef struct
{
  int64_t n, c, h, w;
} Map;

static const Map maps[] = { { 1, 1, 1, 1 },    { 2, 19, 5, 7 }, { 3, 16, 4, 1 },
                            { 1, 36, 33, 41 }, { 3, 1, 6, 9 },  { 2, 40, 5, 6 } };

/*
 * Batch norms and sums, for kernels that cut a channel into parts: several images to a part in NCHW; several
 * parts to a plane; and more rows of NHWC than there are parts of the least length. Whole packs of 4 and 8.
 */
static const Map norm_maps[] = { { 9, 4, 20, 25 }, { 1, 8, 67, 64 }, { 2, 16, 3, 8 }, { 1, 2, 182, 181 } };

static RnTensorDesc
map_desc (const Map *m, int64_t cblk)
{
  return rn_desc_nchw (RN_F32, m->n, m->c, m->h, m->w, cblk);
}

static void
add_norms (GArray *cases, const Map *m, int64_t cblk)
{
  RnTensorDesc d = map_desc (m, cblk), v = vec (m->c);

  for (int variant = 0; variant < 4; variant++)
    {
      gboolean training = variant != 0;
      RnOpCall fwd = {
        .op = RN_OP_BATCH_NORM_FWD,
        .args.norm = { .eps = 1e-3f,
                       .momentum = 0.1f,
                       .training = training,
                       .relu = variant == 1,
                       .recompute = variant == 3 },
      };
      set_in (&fwd, RN_NORM_SRC, d);
      set_in (&fwd, RN_NORM_GAMMA, v);
      set_in (&fwd, RN_NORM_BETA, v);
      set_out (&fwd, RN_NORM_DST, d);
      for (int slot = RN_NORM_MEAN; !training && slot <= RN_NORM_VAR; slot++)
        set_in (&fwd, slot, v);
      for (int slot = RN_NORM_SAVED_MEAN;
           training && slot <= (variant == 2 ? RN_NORM_SAVED_INVSTD : RN_NORM_RUNNING_VAR); slot++)
        set_out (&fwd, slot, v);
      add_case (cases, &fwd, FEW_OPERATIONS);

      RnOpCall bwd = { .op = RN_OP_BATCH_NORM_BWD, .args = fwd.args };
      set_in (&bwd, RN_NORM_BWD_SRC, d);
      set_in (&bwd, RN_NORM_BWD_DIFF_DST, d);
      for (int slot = RN_NORM_BWD_GAMMA; slot <= RN_NORM_BWD_VAR; slot++)
        set_in (&bwd, slot, v);
      set_out (&bwd, RN_NORM_BWD_DIFF_SRC, d);
      for (int slot = RN_NORM_BWD_DIFF_GAMMA; variant < 2 && slot <= RN_NORM_BWD_DIFF_BETA; slot++)
        set_out (&bwd, slot, v);
      add_case (cases, &bwd, FEW_OPERATIONS);
    }
}

static void
add_elementwise (GArray *cases, const Map *m, int64_t cblk)
{
  RnTensorDesc d = map_desc (m, cblk);

  for (int variant = 0; variant < 2; variant++)
    {
      RnOpCall sum = { .op = RN_OP_ADD, .args.add.relu = variant }, bwd = { .op = RN_OP_RELU_BWD };
      set_in (&sum, RN_ADD_A, d);
      set_in (&sum, RN_ADD_B, d);
      set_out (&sum, 0, d);
      add_case (cases, &sum, 0);

      set_in (&bwd, RN_RELU_BWD_Y, d);
      set_in (&bwd, RN_RELU_BWD_A, d);
      if (variant == 1)
        set_in (&bwd, RN_RELU_BWD_B, d);
      set_out (&bwd, 0, d);
      add_case (cases, &bwd, 0);
    }
  RnOpCall relu = { .op = RN_OP_RELU_FWD };
  set_in (&relu, 0, d);
  set_out (&relu, 0, d);
  add_case (cases, &relu, 0);
}

/*
 * Sums of a masked gradient. Values are small multiples of 1/8, so they are exact in any order, and a missing
 * element shows.
 */
static const Map summed_maps[] = {
  { 1, 180, 9, 8 }, { 2, 36, 6, 5 }, { 3, 3, 16, 12 }, { 1, 300, 2, 3 }, { 2, 64, 19, 17 }
};

static void
add_masked_sums (GArray *cases, const Map *m, int64_t cblk)
{
  const RnTensorDesc d = map_desc (m, cblk);

  for (int variant = 0; variant < 2; variant++)
    {
      RnOpCall call = { .op = RN_OP_RELU_BWD };
      set_in (&call, RN_RELU_BWD_Y, d);
      set_in (&call, RN_RELU_BWD_A, d);
      if (variant == 1)
        set_in (&call, RN_RELU_BWD_B, d);
      set_out (&call, RN_RELU_BWD_DST, d);
      set_out (&call, RN_RELU_BWD_SUMS, vec (m->c));
      add_case (cases, &call, 0);
    }
}

static const RnPoolArgs pools[] = {
  { .kernel = { 3, 3 }, .stride = { 2, 2 }, .pad = { 1, 1 } },
  { .kernel = { 1, 1 }, .stride = { 2, 2 } },
  { .kernel = { 2, 2 }, .stride = { 2, 2 }, .ceil_mode = TRUE },
  { .kernel = { 3, 2 }, .stride = { 1, 2 }, .pad = { 1, 0 }, .ceil_mode = TRUE },
};

static void
add_pools (GArray *cases, const Map *m, int64_t cblk, const RnPoolArgs *args)
{
  RnTensorDesc src = map_desc (m, cblk), dst = src, index;
  for (int i = 0; i < 2; i++)
    dst.dims[2 + i] =
        rn_window_size (src.dims[2 + i], args->kernel[i], args->stride[i], args->pad[i], 1, args->ceil_mode);
  if (dst.dims[2] < 1 || dst.dims[3] < 1) /* the window is larger than the map */
    return;
  index = dst;
  index.dtype = RN_U8;

  for (int variant = 0; variant < 2; variant++)
    {
      RnOpCall fwd = { .op = RN_OP_MAX_POOL_FWD, .args.pool = *args };
      set_in (&fwd, 0, src);
      set_out (&fwd, RN_POOL_DST, dst);
      if (variant == 1)
        set_out (&fwd, RN_POOL_INDEX, index);
      add_case (cases, &fwd, 0);
    }
  RnOpCall bwd = { .op = RN_OP_MAX_POOL_BWD, .args.pool = *args };
  set_in (&bwd, RN_POOL_BWD_DIFF_DST, dst);
  set_in (&bwd, RN_POOL_BWD_INDEX, index);
  set_out (&bwd, 0, src);
  add_case (cases, &bwd, 0);

  RnOpCall avg = { .op = RN_OP_AVG_POOL_FWD, .args.pool = *args },
           avg_bwd = { .op = RN_OP_AVG_POOL_BWD, .args.pool = *args };
  set_in (&avg, 0, src);
  set_out (&avg, 0, dst);
  add_case (cases, &avg, FEW_OPERATIONS);
  set_in (&avg_bwd, 0, dst);
  set_out (&avg_bwd, 0, src);
  add_case (cases, &avg_bwd, FEW_OPERATIONS);
}

static void
add_moves (GArray *cases, const Map *m, int64_t cblk)
{
  static const int64_t sizes[][2] = { { 1, 1 }, { 10, 14 }, { 13, 9 }, { 3, 5 } };
  RnTensorDesc coarse = map_desc (m, cblk), fine = coarse;

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (int addend = 0; addend < 2; addend++)
      {
        RnOpCall fwd = { .op = RN_OP_UPSAMPLE_FWD }, bwd = { .op = RN_OP_UPSAMPLE_BWD };
        fine.dims[2] = sizes[i][0];
        fine.dims[3] = sizes[i][1];
        set_in (&fwd, RN_UPSAMPLE_SRC, coarse);
        set_out (&fwd, 0, fine);
        set_in (&bwd, RN_UPSAMPLE_SRC, fine);
        set_out (&bwd, 0, coarse);
        if (addend)
          {
            set_in (&fwd, RN_UPSAMPLE_ADDEND, fine);
            set_in (&bwd, RN_UPSAMPLE_ADDEND, coarse);
          }
        add_case (cases, &fwd, 0);
        add_case (cases, &bwd, 0);
      }
  for (guint i = 0; i < G_N_ELEMENTS (case_blocks); i++)
    {
      RnOpCall call = { .op = RN_OP_REORDER };
      set_in (&call, 0, coarse);
      set_out (&call, 0, map_desc (m, case_blocks[i]));
      add_case (cases, &call, 0);
    }
  RnOpCall copy = { .op = RN_OP_COPY }, zero = { .op = RN_OP_ZERO };
  set_in (&copy, 0, coarse);
  set_out (&copy, 0, coarse);
  add_case (cases, &copy, 0);
  set_out (&zero, 0, coarse);
  add_case (cases, &zero, 0);
}

/* ---- pixels -------------------------------------------------------------------------------------------- */

/* 1; rows of whole packs and others; more images; more pixels, and packs of 4 pixels, than one block of a
 * device takes in four rounds. */
static const int64_t pictures[][3] = { { 1, 1, 1 }, { 2, 13, 9 }, { 5, 3, 8 }, { 2, 31, 37 }, { 1, 67, 68 } };

static void
add_normalize (GArray *cases, const int64_t picture[3], int64_t cblk)
{
  const int64_t n = picture[0], h = picture[1], w = picture[2];
  RnOpCall call = { .op = RN_OP_NORMALIZE };

  set_in (&call, RN_NORMALIZE_PIXELS, (RnTensorDesc){ RN_U8, 3, { n, h, 3 * w, 1 }, 1 });
  set_in (&call, RN_NORMALIZE_SIZES, (RnTensorDesc){ RN_I32, 2, { n, 2, 1, 1 }, 1 });
  set_in (&call, RN_NORMALIZE_TABLE, (RnTensorDesc){ RN_F32, 3, { n, 3, 256, 1 }, 1 });
  set_out (&call, 0, rn_desc_nchw (RN_F32, n, 3, h, w, cblk));
  add_case (cases, &call, 0);
  add_case (cases, &call, 0); /* other sizes, by another seed */
}

static void
add_maps (GArray *cases, const Map *m, int64_t cblk)
{
  /* Sums of many numbers that cancel, as a mean near 0, are exact in double only; among several channels
   * there are larger ones, which tolerances are in units of. */
  if (m->c > 1 || m->n * m->h * m->w == 1)
    add_norms (cases, m, cblk);
  add_elementwise (cases, m, cblk);
  add_moves (cases, m, cblk);
  for (guint p = 0; p < G_N_ELEMENTS (pools); p++)
    add_pools (cases, m, cblk, &pools[p]);
}

void
add_map_cases (GArray *cases, guint round)
{
  for (guint i = 0; i < G_N_ELEMENTS (maps); i++)
    add_maps (cases, &maps[i], block_of_round (round, maps[i].c));
  for (guint i = 0; i < G_N_ELEMENTS (norm_maps); i++)
    if (round == 0 || round == N_CASE_ROUNDS - 1) /* NCHW and NHWC */
      {
        int64_t cblk = block_of_round (round, norm_maps[i].c);
        add_norms (cases, &norm_maps[i], cblk);
        add_masked_sums (cases, &norm_maps[i], cblk);
      }
  for (guint i = 0; i < G_N_ELEMENTS (summed_maps); i++)
    add_masked_sums (cases, &summed_maps[i], block_of_round (round, summed_maps[i].c));
  for (guint i = 0; i < G_N_ELEMENTS (pictures); i++)
    add_normalize (cases, pictures[i], block_of_round (round, 3));
}
