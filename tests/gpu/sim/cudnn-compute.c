/*
 * cudnn-compute.c: the numbers of the simulated cuDNN: a convolution as a product of matrices (im2col), image
 * by image and group by group, with sums in single precision and one rounding at the end. In each direction
 *
 *   forward:    y[m, p]  = sum over k of w[m, k] * columns[k, p],
 *   data:       columns[k, p] = sum over m of w[m, k] * dy[m, p], added up where windows overlap,
 *   filter:     dw[m, k] = sum over images and p of dy[m, p] * columns[k, p],
 *
 * with m an output channel, k an input channel and a place in the window, p a place in the output. What
 * engines do differently is in the order of the sums, in how terms are rounded, or wrong on purpose.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/gpu/sim/cudnn-internal.h"

#include <math.h>
#include <string.h>

/* ---- product of matrices ---- */

#define TILE_M 6
#define TILE_N 8
#define BLOCK_N 256
#define MAX_BLOCK_K 256

typedef float Vector __attribute__ ((vector_size (16)));

/* Element (row, column) at data[row * row_stride + column * column_stride]. */
typedef struct
{
  const float *data;
  int64_t row_stride, column_stride;
} Matrix;

typedef struct
{
  int64_t m, n, k;
  Matrix a, b;          /* m x k, k x n */
  float *c;             /* m x n, row by row: += a b */
  const int64_t *order; /* in which the k are added */
  int64_t block_k;      /* so many before the sum is added to c */
  RnDType sum;          /* F32, or what c is rounded to after each block */
} Product;

/* [n / TILE_N][k][TILE_N], zeros beyond the edge. */
static void
pack_b (const Product *p, int64_t k0, int64_t nk, int64_t n0, int64_t nn, float *packed)
{
  for (int64_t j0 = 0; j0 < nn; j0 += TILE_N)
    for (int64_t k = 0; k < nk; k++)
      {
        const float *row = p->b.data + p->order[k0 + k] * p->b.row_stride;
        for (int64_t j = j0; j < j0 + TILE_N; j++)
          *packed++ = j < nn ? row[(n0 + j) * p->b.column_stride] : 0;
      }
}

/* [k][TILE_M] */
static void
pack_a (const Product *p, int64_t k0, int64_t nk, int64_t m0, float *packed)
{
  for (int64_t k = 0; k < nk; k++)
    {
      const float *column = p->a.data + p->order[k0 + k] * p->a.column_stride;
      for (int64_t i = m0; i < m0 + TILE_M; i++)
        *packed++ = i < p->m ? column[i * p->a.row_stride] : 0;
    }
}

static void
multiply_tile (const float *a, const float *b, int64_t nk, float tile[TILE_M][TILE_N])
{
  Vector sums[TILE_M][2] = { 0 };

  for (int64_t k = 0; k < nk; k++, a += TILE_M, b += TILE_N)
    {
      Vector b0, b1;
      memcpy (&b0, b, sizeof b0);
      memcpy (&b1, b + 4, sizeof b1);
      for (int i = 0; i < TILE_M; i++)
        {
          sums[i][0] += a[i] * b0;
          sums[i][1] += a[i] * b1;
        }
    }
  memcpy (tile, sums, sizeof sums);
}

static void
multiply (const Product *p)
{
  static float packed_a[MAX_BLOCK_K * TILE_M], packed_b[MAX_BLOCK_K * BLOCK_N];
  float tile[TILE_M][TILE_N];

  for (int64_t n0 = 0; n0 < p->n; n0 += BLOCK_N)
    for (int64_t k0 = 0; k0 < p->k; k0 += p->block_k)
      {
        int64_t nn = MIN (BLOCK_N, p->n - n0), nk = MIN (p->block_k, p->k - k0);
        pack_b (p, k0, nk, n0, nn, packed_b);
        for (int64_t m0 = 0; m0 < p->m; m0 += TILE_M)
          {
            pack_a (p, k0, nk, m0, packed_a);
            for (int64_t j0 = 0; j0 < nn; j0 += TILE_N)
              {
                multiply_tile (packed_a, packed_b + j0 * nk, nk, tile);
                for (int64_t i = 0; i < TILE_M && m0 + i < p->m; i++)
                  for (int64_t j = 0; j < TILE_N && j0 + j < nn; j++)
                    {
                      float *sum = &p->c[(m0 + i) * p->n + n0 + j0 + j];
                      *sum += tile[i][j];
                      if (p->sum != RN_F32)
                        rn_float_set (p->sum, sum, 0, *sum), *sum = rn_float_get (p->sum, sum, 0);
                    }
              }
          }
      }
}

/* ---- orders of sums ---- */

static guint32
next_random (void)
{
  static guint32 state; /* never the same order twice in a program */
  if (state == 0)
    state = sim_config ()->seed * 2 + 1;
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

static int64_t *
order_new (const SimEngine *engine, int64_t n)
{
  int64_t *order = g_new (int64_t, n);

  for (int64_t i = 0; i < n; i++)
    order[i] = engine->order == SIM_ORDER_DESCENDING ? n - 1 - i : i;
  for (int64_t i = n - 1; engine->order == SIM_ORDER_RANDOM && i > 0; i--)
    {
      int64_t j = next_random () % (i + 1), swapped = order[i];
      order[i] = order[j];
      order[j] = swapped;
    }
  return order;
}

/* ---- tensors ---- */

typedef struct
{
  const SimConv *conv;
  SimChoice choice;
  RnDType dtype;
  int64_t n, c, h, w, k, r, s, oh, ow, groups; /* as cuDNN calls them */
  int64_t columns, places;                     /* of a group: c / groups * r * s, oh * ow */
  float *weights;                              /* [k][columns] */
  float *image;                                /* [c][h * w] */
  float *patches;                              /* [columns][places] */
  float *output;                               /* [k][places] */
} Run;

static float
round_input (const Run *run, float value)
{
  guint32 word;

  if (run->dtype != RN_F32)
    return value;
  switch (run->choice.engine->inputs)
    {
    case SIM_ROUND_HALF:
      return rn_float_from_f16 (rn_f16_from_float (value));
    case SIM_ROUND_TF32:
      /* to 10 bits of mantissa, to nearest even; infinite and NaN stay */
      memcpy (&word, &value, sizeof word);
      if ((word & 0x7f800000) != 0x7f800000)
        word = (word + 0xfff + (word >> 13 & 1)) & ~(guint32) 0x1fff;
      memcpy (&value, &word, sizeof value);
      return value;
    default:
      return value;
    }
}

static int64_t
index_of (const SimTensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
  return n * t->strides[0] + c * t->strides[1] + h * t->strides[2] + w * t->strides[3];
}

/* Image @n of a tensor, as factors: [c][h][w]. */
static void
load_image (const Run *run, const SimTensor *t, const void *data, int64_t n, float *image)
{
  for (int64_t c = 0; c < t->dims[1]; c++)
    for (int64_t h = 0; h < t->dims[2]; h++)
      for (int64_t w = 0; w < t->dims[3]; w++)
        *image++ = round_input (run, rn_float_get (run->dtype, data, index_of (t, n, c, h, w)));
}

static void
load_weights (const Run *run, const void *data)
{
  for (int64_t k = 0; k < run->k; k++)
    load_image (run, &run->conv->w, data, k, run->weights + k * run->columns);
}

/* data = alpha * values + beta * data, for image @n. */
static void
store_image (const Run *run, const SimTensor *t, void *data, int64_t n, const float *values)
{
  const SimConv *c = run->conv;

  for (int64_t i = 0; i < t->dims[1]; i++)
    for (int64_t h = 0; h < t->dims[2]; h++)
      for (int64_t w = 0; w < t->dims[3]; w++)
        {
          int64_t at = index_of (t, n, i, h, w);
          float value = c->alpha * *values++;
          if (c->beta != 0)
            value += c->beta * rn_float_get (run->dtype, data, at);
          rn_float_set (run->dtype, data, at, value);
        }
}

/* The source row or column of output @out at place @at of the window, or -1 in the padding. */
static int64_t
source_of (const Run *run, int axis, int64_t out, int64_t at)
{
  const SimWindow *window = &run->conv->window;
  int64_t source = out * window->stride[axis] - window->pad[axis] + at * window->dilation[axis];
  return source < (axis == 0 ? run->h : run->w) ? source : -1;
}

/* Calls @code with a patch's element and the image's that it is; image_row is NULL in the padding. */
#define FOR_EACH_PATCH_ROW(run, first_channel, code)                                                    \
  for (int64_t column = 0; column < (run)->columns; column++)                                           \
    {                                                                                                   \
      int64_t place[3] = { column / ((run)->r * (run)->s), column / (run)->s % (run)->r,                \
                           column % (run)->s };                                                         \
      for (int64_t y = 0; y < (run)->oh; y++)                                                           \
        {                                                                                               \
          int64_t sy = source_of (run, 0, y, place[1]);                                                 \
          float *patch = (run)->patches + column * (run)->places + y * (run)->ow;                       \
          float *row =                                                                                  \
              sy < 0 ? NULL : (run)->image + (((first_channel) + place[0]) * (run)->h + sy) * (run)->w; \
          code                                                                                          \
        }                                                                                               \
    }

static void
image_to_patches (Run *run, int64_t group)
{
  FOR_EACH_PATCH_ROW (run, group * (run->c / run->groups), {
    for (int64_t x = 0; x < run->ow; x++)
      {
        int64_t sx = source_of (run, 1, x, place[2]);
        patch[x] = row == NULL || sx < 0 ? 0 : row[sx];
      }
  })
}

static void
patches_to_image (Run *run, int64_t group)
{
  FOR_EACH_PATCH_ROW (run, group * (run->c / run->groups), {
    for (int64_t x = 0; row != NULL && x < run->ow; x++)
      {
        int64_t sx = source_of (run, 1, x, place[2]);
        if (sx >= 0)
          row[sx] += patch[x];
      }
  })
}

/* ---- directions ---- */

static void
multiply_as_engine (const Run *run, Product p)
{
  const SimEngine *engine = run->choice.engine;
  g_autofree int64_t *order = order_new (engine, p.k);

  p.order = order;
  if (engine->drops_terms)
    p.k -= MAX (1, p.k / 8);
  p.block_k = engine->rounds_sums ? 16 : run->choice.knob == 1 ? 64 : MAX_BLOCK_K;
  p.sum = engine->rounds_sums ? run->dtype : RN_F32;
  multiply (&p);
}

/* The sums of an image, with what is fused to them, rounded once. */
static void
store_output (const Run *run, const SimConvPointers *p, int64_t n)
{
  const SimConv *c = run->conv;
  const float *sum = run->output;

  if (!c->has_bias || run->choice.engine->writes_early)
    store_image (run, &c->y, p->y, n, sum);
  if (!c->has_bias)
    return;
  for (int64_t k = 0; k < run->k; k++)
    for (int64_t y = 0; y < run->oh; y++)
      for (int64_t x = 0; x < run->ow; x++)
        {
          float value = *sum++;
          if (c->has_residual)
            value += rn_float_get (run->dtype, p->residual, index_of (&c->residual, n, k, y, x));
          value += rn_float_get (run->dtype, p->bias, index_of (&c->bias, 0, k, 0, 0));
          if (c->has_relu && value < 0)
            value = 0;
          rn_float_set (run->dtype, p->y, index_of (&c->y, n, k, y, x), value);
        }
}

static void
forward (Run *run, const SimConvPointers *p)
{
  int64_t m = run->k / run->groups;

  load_weights (run, p->w);
  for (int64_t n = 0; n < run->n; n++)
    {
      load_image (run, &run->conv->x, p->x, n, run->image);
      memset (run->output, 0, (gsize) (run->k * run->places) * sizeof *run->output);
      for (int64_t g = 0; g < run->groups; g++)
        {
          image_to_patches (run, g);
          multiply_as_engine (run, (Product){ .m = m,
                                              .n = run->places,
                                              .k = run->columns,
                                              .a = { run->weights + g * m * run->columns, run->columns, 1 },
                                              .b = { run->patches, run->places, 1 },
                                              .c = run->output + g * m * run->places });
        }
      store_output (run, p, n);
    }
}

static void
backward_data (Run *run, const SimConvPointers *p)
{
  int64_t m = run->k / run->groups;

  load_weights (run, p->w);
  for (int64_t n = 0; n < run->n; n++)
    {
      load_image (run, &run->conv->y, p->y, n, run->output);
      memset (run->image, 0, (gsize) (run->c * run->h * run->w) * sizeof *run->image);
      for (int64_t g = 0; g < run->groups; g++)
        {
          memset (run->patches, 0, (gsize) (run->columns * run->places) * sizeof *run->patches);
          multiply_as_engine (run, (Product){ .m = run->columns,
                                              .n = run->places,
                                              .k = m,
                                              .a = { run->weights + g * m * run->columns, 1, run->columns },
                                              .b = { run->output + g * m * run->places, run->places, 1 },
                                              .c = run->patches });
          patches_to_image (run, g);
        }
      store_image (run, &run->conv->x, p->x, n, run->image);
    }
}

static void
backward_filter (Run *run, const SimConvPointers *p)
{
  int64_t m = run->k / run->groups;

  memset (run->weights, 0, (gsize) (run->k * run->columns) * sizeof *run->weights);
  for (int64_t n = 0; n < run->n; n++)
    {
      load_image (run, &run->conv->x, p->x, n, run->image);
      load_image (run, &run->conv->y, p->y, n, run->output);
      for (int64_t g = 0; g < run->groups; g++)
        {
          image_to_patches (run, g);
          multiply_as_engine (run, (Product){ .m = m,
                                              .n = run->columns,
                                              .k = run->places,
                                              .a = { run->output + g * m * run->places, run->places, 1 },
                                              .b = { run->patches, 1, run->places },
                                              .c = run->weights + g * m * run->columns });
        }
    }
  for (int64_t k = 0; k < run->k; k++)
    store_image (run, &run->conv->w, p->w, k, run->weights + k * run->columns);
}

static void
write_nan (const Run *run, const SimTensor *t, void *data)
{
  rn_float_set (run->dtype, data,
                index_of (t, t->dims[0] - 1, t->dims[1] - 1, t->dims[2] - 1, t->dims[3] - 1), NAN);
}

void
sim_conv_run (const SimConv *conv, SimChoice choice, const SimConvPointers *pointers)
{
  Run run = { .conv = conv,
              .choice = choice,
              .dtype = sim_type_dtype (conv->x.type),
              .n = conv->x.dims[0],
              .c = conv->x.dims[1],
              .h = conv->x.dims[2],
              .w = conv->x.dims[3],
              .k = conv->w.dims[0],
              .r = conv->w.dims[2],
              .s = conv->w.dims[3],
              .oh = conv->y.dims[2],
              .ow = conv->y.dims[3],
              .groups = conv->groups };
  run.columns = conv->w.dims[1] * run.r * run.s;
  run.places = run.oh * run.ow;
  /* An engine with workspace keeps the weights there. */
  g_autofree float *weights = pointers->workspace == NULL ? g_new (float, run.k *run.columns) : NULL;
  g_autofree float *image = g_new (float, run.c *run.h *run.w);
  g_autofree float *patches = g_new (float, run.columns *run.places);
  g_autofree float *output = g_new (float, run.k *run.places);
  run.weights = weights != NULL ? weights : pointers->workspace;
  run.image = image;
  run.patches = patches;
  run.output = output;

  switch ((int) conv->kind)
    {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      backward_data (&run, pointers);
      if (choice.engine->writes_nan)
        write_nan (&run, &conv->x, pointers->x);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      backward_filter (&run, pointers);
      if (choice.engine->writes_nan)
        write_nan (&run, &conv->w, pointers->w);
      break;
    default:
      forward (&run, pointers);
      if (choice.engine->writes_nan)
        write_nan (&run, &conv->y, pointers->y);
      break;
    }
}

double
sim_conv_work (const SimConv *conv)
{
  const int64_t *y = conv->y.dims, *w = conv->w.dims;
  return (double) (y[0] * y[2] * y[3]) * (double) (w[0] * w[1] * w[2] * w[3]);
}
