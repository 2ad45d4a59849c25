/*
 * weight-kernels.c: what stands between a convolution of the library and the parameters: weights that are
 * folded, permuted and rounded, their gradients, and sums over channels, in both layouts and in every type.
 */
#include "config.h"

#include "tests/gpu/weight-kernels.h"

#include "kernels/cuda/device-cuda.h"
#include "kernels/cuda/launch-elementwise.h"
#include "kernels/cuda/launch-sums.h"
#include "kernels/cuda/launch-weights.h"
#include "kernels/cuda/workspace.h"
#include "kernels/half.h"
#include "tests/gpu/device-run.h"
#include "tests/gpu/test-device.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };

/* ---- memory ---- */

static void *
upload (RnDevice *device, gconstpointer values, gsize bytes)
{
  void *memory;
  expect_ok (device, device->vtbl->alloc (device, bytes, &memory));
  expect_ok (device, device->vtbl->copy_in (device, memory, values, bytes));
  return memory;
}

static void
download (RnDevice *device, void *memory, void *values, gsize bytes)
{
  expect_ok (device, device->vtbl->copy_out (device, values, memory, bytes));
  device->vtbl->free (device, memory, bytes);
}

static float *
new_floats (gint64 n, guint slot)
{
  float *values = g_new (float, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = value_at (1, (int) slot, i);
  return values;
}

/* ---- weights ---- */

typedef struct
{
  RnCudaFilter filter;
  gint64 n; /* weights */
  gboolean folded;
  float *weights, *gamma, *beta, *mean, *var, *bias; /* of the host */
  float *on_device[6];                               /* the same */
} Weights;

#define EPS 1e-3f

static void
weights_init (Weights *w, RnDevice *device, const RnCudaFilter *filter, gboolean folded)
{
  const gint64 k = filter->k;

  w->filter = *filter;
  w->n = k * filter->c * filter->r * filter->s;
  w->folded = folded;
  w->weights = new_floats (w->n, 1);
  w->gamma = new_floats (k, 2);
  w->beta = new_floats (k, 3);
  w->mean = new_floats (k, 4);
  w->var = new_floats (k, 5);
  w->bias = new_floats (k, 6);
  for (gint64 i = 0; i < k; i++)
    w->var[i] = 1.25f + 0.75f * w->var[i];
  float *const host[] = { w->weights, w->gamma, w->beta, w->mean, w->var, w->bias };
  for (int i = 0; i < 6; i++)
    w->on_device[i] = upload (device, host[i], (gsize) (i == 0 ? w->n : k) * sizeof (float));
}

static void
weights_clear (Weights *w, RnDevice *device)
{
  float *const host[] = { w->weights, w->gamma, w->beta, w->mean, w->var, w->bias };
  for (int i = 0; i < 6; i++)
    {
      device->vtbl->free (device, w->on_device[i], (gsize) (i == 0 ? w->n : w->filter.k) * sizeof (float));
      g_free (host[i]);
    }
}

static RnCudaFold
fold_of (const Weights *w)
{
  if (!w->folded)
    return (RnCudaFold){ NULL };
  return (RnCudaFold){ .gamma = w->on_device[1],
                       .beta = w->on_device[2],
                       .mean = w->on_device[3],
                       .var = w->on_device[4],
                       .eps = EPS };
}

/* Where weight @i of OIHW lies for the library. */
static gint64
place_of (const RnCudaFilter *f, gint64 i)
{
  const gint64 cells = (gint64) f->r * f->s, row = f->c * cells;
  const gint64 k = i / row, c = i % row / cells, cell = i % cells;
  return f->krsc ? (k * cells + cell) * f->c + c : i;
}

/* As the reference: in half precision it is one of single. */
static double
scale_of (const Weights *w, gint64 k, gboolean is_half)
{
  if (!w->folded)
    return 1;
  return is_half ? w->gamma[k] / sqrtf (w->var[k] + EPS) : w->gamma[k] / sqrt ((double) w->var[k] + EPS);
}

static void
assert_stored (RnDType t, gconstpointer got, gint64 at, float want)
{
  rn_floats_round (t, &want, 1);
  g_assert_cmpfloat (rn_float_get (t, got, at), ==, want);
}

/* @has_bias: the convolution has one, or a batch norm; @wants_bias: it is asked for. */
static void
check_weights_fwd (RnDevice *device, const RnCudaFilter *filter, gboolean folded, gboolean has_bias,
                   gboolean wants_bias)
{
  const gsize size = rn_dtype_size (filter->t);
  const gint64 row = (gint64) filter->c * filter->r * filter->s;
  Weights w;

  weights_init (&w, device, filter, folded);
  const gsize bytes = (gsize) w.n * size, bias_bytes = (gsize) filter->k * size;
  g_autofree guint8 *got = g_malloc (bytes), *bias = g_malloc (bias_bytes);
  memset (got, 0xff, bytes);
  memset (bias, 0xff, bias_bytes);
  void *dst = upload (device, got, bytes), *bias_dst = upload (device, bias, bias_bytes);
  const RnCudaFold fold = fold_of (&w);
  expect_ok (device, rn_cuda_check (device,
                                    rn_cuda_launch_weights_fwd (filter, w.on_device[0], &fold,
                                                                has_bias && !folded ? w.on_device[5] : NULL,
                                                                dst, wants_bias ? bias_dst : NULL,
                                                                rn_cuda_stream (device)),
                                    "weights_fwd"));
  download (device, dst, got, bytes);
  download (device, bias_dst, bias, bias_bytes);

  for (gint64 i = 0; i < w.n; i++)
    assert_stored (filter->t, got, place_of (filter, i),
                   (float) scale_of (&w, i / row, size == 2) * w.weights[i]);
  for (gint64 k = 0; k < filter->k; k++)
    {
      double shift = folded ? w.beta[k] - scale_of (&w, k, size == 2) * w.mean[k] : has_bias ? w.bias[k] : 0;
      if (wants_bias)
        assert_stored (filter->t, bias, k, (float) shift);
      else
        g_assert_true (isnan (rn_float_get (filter->t, bias, k))); /* as it was */
    }
  weights_clear (&w, device);
}

static void
check_weights_bwd (RnDevice *device, const RnCudaFilter *filter, gboolean folded, gboolean wants_weights,
                   gboolean wants_gamma)
{
  const gint64 row = (gint64) filter->c * filter->r * filter->s;
  Weights w;

  weights_init (&w, device, filter, folded);
  const gsize bytes = (gsize) w.n * sizeof (float), k_bytes = (gsize) filter->k * sizeof (float);
  g_autofree float *before = new_floats (w.n, 7), *gamma_before = new_floats (filter->k, 8),
                   *sums = new_floats (filter->k, 9), *dw = new_floats (w.n, 10);
  g_autofree float *got = g_memdup2 (before, bytes), *gamma_got = g_memdup2 (gamma_before, k_bytes);
  g_autofree guint8 *stored = g_malloc (bytes);
  rn_floats_round (filter->t, dw, w.n);
  rn_floats_to (filter->t, dw, w.n, stored);

  float *diff = upload (device, before, bytes), *diff_gamma = upload (device, gamma_before, k_bytes);
  float *sums_there = upload (device, sums, k_bytes);
  void *dw_there = upload (device, stored, bytes);
  const RnCudaFold fold = fold_of (&w);
  expect_ok (device, rn_cuda_check (device,
                                    rn_cuda_launch_weights_bwd (filter, dw_there, w.on_device[0], &fold,
                                                                sums_there, wants_weights ? diff : NULL,
                                                                wants_gamma ? diff_gamma : NULL,
                                                                rn_cuda_stream (device)),
                                    "weights_bwd"));
  download (device, diff, got, bytes);
  download (device, diff_gamma, gamma_got, k_bytes);
  device->vtbl->free (device, sums_there, k_bytes);
  device->vtbl->free (device, dw_there, bytes);

  for (gint64 i = 0; i < w.n; i++)
    {
      float more = (float) scale_of (&w, i / row, FALSE) * dw[place_of (filter, i)];
      g_assert_cmpfloat (got[i], ==, wants_weights ? before[i] + more : before[i]);
    }
  for (gint64 k = 0; k < filter->k; k++)
    {
      double dot = 0;
      for (gint64 i = k * row; i < (k + 1) * row; i++)
        dot += (double) w.weights[i] * dw[place_of (filter, i)];
      double more = (dot - (double) w.mean[k] * sums[k]) / sqrt ((double) w.var[k] + EPS);
      double want = gamma_before[k] + (wants_gamma ? more : 0);
      /* two roundings to F32: of what is added, and of the sum; those of doubles are far below */
      g_assert_cmpfloat (fabs (gamma_got[k] - want), <=, FLT_EPSILON * (fabs (more) + fabs (want)));
    }
  weights_clear (&w, device);
}

/* One weight; a stem; more channels than a block takes at once. */
static const int shapes[][4] = { { 1, 1, 1, 1 }, { 5, 3, 3, 3 }, { 3, 150, 2, 3 } };

static void
test_weights (gconstpointer data)
{
  g_autoptr (RnDevice) device = new_device (GPOINTER_TO_INT (data));

  for (guint s = 0; s < G_N_ELEMENTS (shapes); s++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      for (int krsc = 0; krsc < 2; krsc++)
        {
          const RnCudaFilter filter = {
            shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], krsc, types[t]
          };
          check_weights_fwd (device, &filter, FALSE, FALSE, TRUE);
          check_weights_fwd (device, &filter, FALSE, TRUE, TRUE);
          check_weights_fwd (device, &filter, TRUE, FALSE, TRUE);
          check_weights_fwd (device, &filter, TRUE, FALSE, FALSE);
          check_weights_bwd (device, &filter, FALSE, TRUE, FALSE);
          check_weights_bwd (device, &filter, TRUE, TRUE, FALSE);
          check_weights_bwd (device, &filter, TRUE, TRUE, TRUE);
          check_weights_bwd (device, &filter, TRUE, FALSE, TRUE);
        }
}

/* More output channels than a grid has blocks. */
static void
test_many_weights (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  const RnCudaFilter filter = { 4100, 2, 1, 1, TRUE, RN_F32 };

  check_weights_fwd (device, &filter, TRUE, FALSE, TRUE);
  check_weights_bwd (device, &filter, TRUE, TRUE, TRUE);
}

/* ---- sums over channels ---- */

/* Values are small integers, so that sums are exact in any order: a missing element shows. */
static void
check_sums (RnDevice *device, const RnCudaMap *map, RnDType t, gsize shift, gboolean wants_sums)
{
  const RnTensorDesc d = rn_desc_nchw (t, map->n, map->c, map->h, map->w, map->nhwc ? map->c : 1);
  const gsize bytes = rn_desc_bytes (&d), c_bytes = (gsize) map->c * sizeof (float);
  g_autofree guint8 *x = g_malloc0 (bytes + shift);
  g_autofree float *want = g_new0 (float, map->c), *sums = g_new (float, map->c),
                   *diff = g_new (float, map->c);

  for (int n = 0; n < map->n; n++)
    for (int c = 0; c < map->c; c++)
      for (int i = 0; i < map->h * map->w; i++)
        {
          gint64 at = rn_desc_index (&d, n, c, i / map->w, i % map->w);
          float value = (float) (int) (value_at (2, 1, at) * 9);
          rn_float_set (t, x + shift, at, value);
          want[c] += value;
        }
  for (int c = 0; c < map->c; c++)
    {
      sums[c] = NAN;
      diff[c] = (float) c;
    }
  const gsize workspace_bytes =
      rn_cuda_channel_sums_workspace (map->n, map->c, (int64_t) map->h * map->w, map->nhwc);
  g_autofree guint8 *scratch = g_malloc (workspace_bytes);
  memset (scratch, 0xff, workspace_bytes);
  guint8 *x_there = upload (device, x, bytes + shift);
  void *workspace = upload (device, scratch, workspace_bytes);
  float *sums_there = upload (device, sums, c_bytes), *diff_there = upload (device, diff, c_bytes);
  expect_ok (device, rn_cuda_check (device,
                                    rn_cuda_launch_channel_sums (
                                        map, t, x_there + shift, wants_sums ? sums_there : NULL,
                                        wants_sums ? NULL : diff_there, workspace, rn_cuda_stream (device)),
                                    "channel_sums"));
  download (device, sums_there, sums, c_bytes);
  download (device, diff_there, diff, c_bytes);
  device->vtbl->free (device, x_there, bytes + shift);
  device->vtbl->free (device, workspace, workspace_bytes);
  for (int c = 0; c < map->c; c++)
    {
      if (wants_sums)
        g_assert_cmpfloat (sums[c], ==, want[c]);
      else
        g_assert_true (isnan (sums[c]));
      g_assert_cmpfloat (diff[c], ==, (float) c + (wants_sums ? 0 : want[c]));
    }
}

/* N C H W: one number; tails; several parts of a plane; several images to a part; more channels than a block
 * takes. */
static const int maps[][4] = { { 1, 1, 1, 1 },    { 2, 36, 5, 7 },  { 3, 64, 9, 10 },
                               { 1, 8, 130, 66 }, { 40, 3, 16, 8 }, { 2, 300, 4, 4 } };

/* Calls @check for each of them, in both layouts, of all types, aligned and not. */
static void
for_each_map (gconstpointer descending,
              void (*check) (RnDevice *device, const RnCudaMap *map, RnDType t, gsize shift))
{
  g_autoptr (RnDevice) device = new_device (GPOINTER_TO_INT (descending));

  for (guint m = 0; m < G_N_ELEMENTS (maps); m++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      for (int nhwc = 0; nhwc < 2; nhwc++)
        for (gsize shift = 0; shift <= sizeof (float); shift += sizeof (float))
          {
            const RnCudaMap map = { maps[m][0], maps[m][1], maps[m][2], maps[m][3], nhwc && maps[m][1] > 1 };
            check (device, &map, types[t], shift);
          }
}

static void
check_all_sums (RnDevice *device, const RnCudaMap *map, RnDType t, gsize shift)
{
  check_sums (device, map, t, shift, TRUE);
  check_sums (device, map, t, shift, FALSE);
}

static void
test_sums (gconstpointer descending)
{
  for_each_map (descending, check_all_sums);
}

/* With a ReLU's mask: the map and the sums that two kernels give, bit by bit, also in the place of an
 * operand.
 */
static void
check_masked_sums (RnDevice *device, const RnCudaMap *map, RnDType t, gsize shift, gboolean has_b)
{
  const RnTensorDesc d = rn_desc_nchw (t, map->n, map->c, map->h, map->w, map->nhwc ? map->c : 1);
  const gint64 n = rn_desc_elements (&d);
  const gsize bytes = rn_desc_bytes (&d) + shift, c_bytes = (gsize) map->c * sizeof (float);
  const gsize workspace_bytes =
      rn_cuda_channel_sums_workspace (map->n, map->c, (int64_t) map->h * map->w, map->nhwc);
  g_autofree guint8 *host = g_malloc0 (bytes), *map_got = g_malloc (bytes), *map_want = g_malloc (bytes);
  g_autofree float *got = g_new0 (float, map->c), *want = g_new0 (float, map->c);
  guint8 *there[3]; /* y, a, b */

  for (guint k = 0; k < G_N_ELEMENTS (there); k++)
    {
      for (gint64 i = 0; i < n; i++)
        rn_float_set (t, host + shift, i, value_at (3, (int) k, i));
      there[k] = upload (device, host, bytes);
    }
  guint8 *dst = upload (device, host, bytes);
  void *workspace;
  expect_ok (device, device->vtbl->alloc (device, workspace_bytes, &workspace));
  float *sums = upload (device, got, c_bytes), *other_sums = upload (device, want, c_bytes);
  const void *y = there[0] + shift, *b = has_b ? there[2] + shift : NULL;
  cudaStream_t stream = rn_cuda_stream (device);
  expect_ok (device, rn_cuda_check (
                         device, rn_cuda_launch_relu_bwd (t, n, y, there[1] + shift, b, dst + shift, stream),
                         "relu_bwd"));
  expect_ok (device, rn_cuda_check (device,
                                    rn_cuda_launch_channel_sums (map, t, dst + shift, other_sums, NULL,
                                                                 workspace, stream),
                                    "channel_sums"));
  void *in_place = has_b ? there[2] : there[1];
  expect_ok (device, rn_cuda_check (device,
                                    rn_cuda_launch_relu_bwd_sums (map, t, y, there[1] + shift, b,
                                                                  (guint8 *) in_place + shift, sums,
                                                                  workspace, stream),
                                    "relu_bwd_sums"));
  expect_ok (device, device->vtbl->copy_out (device, map_got, in_place, bytes));
  download (device, dst, map_want, bytes);
  download (device, sums, got, c_bytes);
  download (device, other_sums, want, c_bytes);
  g_assert_true (memcmp (map_got + shift, map_want + shift, bytes - shift) == 0);
  g_assert_true (memcmp (got, want, c_bytes) == 0);
  for (guint k = 0; k < G_N_ELEMENTS (there); k++)
    device->vtbl->free (device, there[k], bytes);
  device->vtbl->free (device, workspace, workspace_bytes);
}

static void
check_both_masks (RnDevice *device, const RnCudaMap *map, RnDType t, gsize shift)
{
  check_masked_sums (device, map, t, shift, FALSE);
  check_masked_sums (device, map, t, shift, TRUE);
}

static void
test_masked_sums (gconstpointer descending)
{
  for_each_map (descending, check_both_masks);
}

/* More channels than a grid has blocks. */
static void
test_many_sums (void)
{
  g_autoptr (RnDevice) device = new_device (FALSE);
  check_sums (device, &(RnCudaMap){ 1, 4100, 1, 2, FALSE }, RN_F32, 0, TRUE);
}

void
add_weight_tests (void)
{
  g_test_add_data_func ("/gpu/weights/ascending", GINT_TO_POINTER (FALSE), test_weights);
  g_test_add_data_func ("/gpu/weights/descending", GINT_TO_POINTER (TRUE), test_weights);
  g_test_add_func ("/gpu/weights/rounds", test_many_weights);
  g_test_add_data_func ("/gpu/sums/ascending", GINT_TO_POINTER (FALSE), test_sums);
  g_test_add_data_func ("/gpu/sums/descending", GINT_TO_POINTER (TRUE), test_sums);
  g_test_add_data_func ("/gpu/sums/masked/ascending", GINT_TO_POINTER (FALSE), test_masked_sums);
  g_test_add_data_func ("/gpu/sums/masked/descending", GINT_TO_POINTER (TRUE), test_masked_sums);
  g_test_add_func ("/gpu/sums/rounds", test_many_sums);
}
