/*
 * test-half-conv.c: convolutions in half precision: the reference against PyTorch; every kernel against the
 * reference, for all types in which activations may be stored, whole and in strips of all heights; and that
 * those of a RetinaNet find fast kernels whose copies stay small.
 */
#include "config.h"

#include "kernels/half.h"
#include "tests/kernels/compare.h"
#include "tests/kernels/golden-half-conv.h"

#ifdef HAVE_ONEDNN
  #include "kernels/cpu/conv-half.h"
#endif

#include <float.h>
#include <math.h>
#include <string.h>

static RnDevice *ref;

/* ---- the reference ------------------------------------------------------------------------------------- */

static void
fill (RnDType t, int slot, int64_t n, void *data)
{
  for (int64_t i = 0; i < n; i++)
    rn_float_set (t, data, i, value_at (60, slot, i));
}

/* Equal: sums are in double on both sides, and so exact to far below a step of the stored type. */
static void
assert_halves (RnDType t, const void *got, const float *want, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    g_assert_cmpfloat (rn_float_get (t, got, i), ==, want[i]);
}

/* Gradients of parameters come as F32: one rounding here, one in the golden numbers. */
static void
assert_floats (const float *got, const float *want, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    g_assert_cmpfloat (fabs ((double) got[i] - want[i]), <=, FLT_EPSILON * fabs ((double) want[i]));
}

typedef struct
{
  RnDType type;
  const float *dst, *diff_src, *diff_weights, *diff_gamma, *diff_beta;
} Golden;

static const Golden goldens[] = {
  { RN_F16, golden_f16_dst, golden_f16_diff_src, golden_f16_diff_weights, golden_f16_diff_gamma,
    golden_f16_diff_beta },
  { RN_BF16, golden_bf16_dst, golden_bf16_diff_src, golden_bf16_diff_weights, golden_bf16_diff_gamma,
    golden_bf16_diff_beta },
};

static void
test_torch (gconstpointer data)
{
  enum
  {
    SRC = 2 * 4 * 7 * 6,
    WEIGHTS = 6 * 2 * 3 * 2,
    DST = 2 * 6 * 4 * 4
  };
  const Golden *g = data;
  guint16 src[SRC], dst[DST], residual[DST], diff_dst[DST], diff_src[SRC];
  float weights[WEIGHTS], gamma[6], beta[6], mean[6], var[6], diff_weights[WEIGHTS] = { 0 },
                                                              diff_gamma[6] = { 0 }, diff_beta[6] = { 0 };
  const RnTensorDesc sd = rn_desc_nchw (g->type, 2, 4, 7, 6, 1), dd = rn_desc_nchw (g->type, 2, 6, 4, 4, 1);
  const RnTensorDesc wd = rn_desc_nchw (RN_F32, 6, 2, 3, 2, 1), v = rn_desc_vector (RN_F32, 6);
  const RnConvArgs args = { .kernel = { 3, 2 },
                            .stride = { 2, 1 },
                            .pad = { 1, 0 },
                            .dilation = { 1, 2 },
                            .groups = 2,
                            .relu = TRUE,
                            .eps = 1e-5f,
                            .compute = g->type };
  RnOpCall fwd = { .op = RN_OP_CONV2D_FWD, .args.conv = args };
  RnOpCall back = { .op = RN_OP_CONV2D_BWD_DATA, .args.conv = args };
  RnOpCall grad = { .op = RN_OP_CONV2D_BWD_WEIGHTS, .args.conv = args };

  fill (g->type, 0, SRC, src);
  fill (RN_F32, 1, WEIGHTS, weights);
  fill (RN_F32, 2, 6, gamma);
  fill (RN_F32, 3, 6, beta);
  fill (RN_F32, 4, 6, mean);
  fill (RN_F32, 5, 6, var);
  for (int i = 0; i < 6; i++)
    var[i] = 1.25f + 0.75f * var[i];
  fill (g->type, 6, DST, residual);
  fill (g->type, 7, DST, diff_dst);

  Buffers f = { .call = &fwd,
                .in = { src, weights, NULL, gamma, beta, mean, var, residual },
                .out = { dst } };
  set_in (&fwd, RN_CONV_SRC, sd);
  set_in (&fwd, RN_CONV_WEIGHTS, wd);
  for (int slot = RN_CONV_GAMMA; slot <= RN_CONV_VAR; slot++)
    set_in (&fwd, slot, v);
  set_in (&fwd, RN_CONV_RESIDUAL, dd);
  set_out (&fwd, RN_CONV_DST, dd);
  run_call (ref, &fwd, &f);
  assert_halves (g->type, dst, g->dst, DST);

  Buffers b = { .call = &back, .in = { diff_dst, weights, gamma, var }, .out = { diff_src } };
  set_in (&back, RN_CONV_BD_DIFF_DST, dd);
  set_in (&back, RN_CONV_BD_WEIGHTS, wd);
  set_in (&back, RN_CONV_BD_GAMMA, v);
  set_in (&back, RN_CONV_BD_VAR, v);
  set_out (&back, RN_CONV_BD_DIFF_SRC, sd);
  run_call (ref, &back, &b);
  assert_halves (g->type, diff_src, g->diff_src, SRC);

  Buffers w = { .call = &grad,
                .in = { src, diff_dst, weights, gamma, mean, var },
                .out = { diff_weights, NULL, diff_gamma, diff_beta } };
  set_in (&grad, RN_CONV_BW_SRC, sd);
  set_in (&grad, RN_CONV_BW_DIFF_DST, dd);
  set_in (&grad, RN_CONV_BW_WEIGHTS, wd);
  for (int slot = RN_CONV_BW_GAMMA; slot <= RN_CONV_BW_VAR; slot++)
    set_in (&grad, slot, v);
  set_out (&grad, RN_CONV_BW_DIFF_WEIGHTS, wd);
  set_out (&grad, RN_CONV_BW_DIFF_GAMMA, v);
  set_out (&grad, RN_CONV_BW_DIFF_BETA, v);
  run_call (ref, &grad, &w);
  assert_floats (diff_weights, g->diff_weights, WEIGHTS);
  assert_floats (diff_gamma, g->diff_gamma, 6);
  assert_floats (diff_beta, g->diff_beta, 6);
}

/* ---- types --------------------------------------------------------------------------------------------- */

static RnOpCall
small_call (RnDType src, RnDType dst, RnDType compute)
{
  RnOpCall call = { .op = RN_OP_CONV2D_FWD,
                    .args.conv = { .kernel = { 1, 1 },
                                   .stride = { 1, 1 },
                                   .dilation = { 1, 1 },
                                   .groups = 1,
                                   .compute = compute } };
  set_in (&call, RN_CONV_SRC, rn_desc_nchw (src, 1, 2, 3, 3, 1));
  set_in (&call, RN_CONV_WEIGHTS, rn_desc_nchw (RN_F32, 2, 2, 1, 1, 1));
  set_out (&call, RN_CONV_DST, rn_desc_nchw (dst, 1, 2, 3, 3, 1));
  return call;
}

static void
test_types (void)
{
  static const RnDType types[] = { RN_F32, RN_F16, RN_BF16 };

  for (guint s = 0; s < 3; s++)
    for (guint d = 0; d < 3; d++)
      for (guint c = 0; c < 3; c++)
        {
          RnOpCall call = small_call (types[s], types[d], types[c]);
          gboolean right = (s == 0 || s == c) && (d == 0 || d == c);
          g_assert_true ((rn_op_check (&call) == NULL) == right);
        }
  RnOpCall call = small_call (RN_F16, RN_F16, RN_F16);
  set_in (&call, RN_CONV_RESIDUAL, rn_desc_nchw (RN_F32, 1, 2, 3, 3, 1));
  g_assert_nonnull (rn_op_check (&call));
  call.in[RN_CONV_RESIDUAL].dtype = RN_F16;
  g_assert_null (rn_op_check (&call));
  call.in[RN_CONV_WEIGHTS].dtype = RN_F16;
  g_assert_nonnull (rn_op_check (&call));
  call = small_call (RN_F32, RN_F32, RN_I32);
  g_assert_nonnull (rn_op_check (&call));
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

#ifdef HAVE_ONEDNN

typedef struct
{
  int64_t n, ic, oc, h, w;
  int kernel[2], stride, pad, dilation, groups;
} Shape;

static const Shape shapes[] = {
  { 2, 3, 32, 21, 18, { 7, 7 }, 2, 3, 1, 1 }, /* the stem */
  { 2, 32, 48, 9, 7, { 1, 1 }, 1, 0, 1, 1 },
  { 1, 32, 64, 11, 10, { 1, 1 }, 2, 0, 1, 1 }, /* the downsample */
  { 1, 32, 64, 12, 10, { 1, 1 }, 2, 0, 1, 1 },
  { 2, 32, 36, 13, 6, { 3, 3 }, 1, 1, 1, 1 }, /* 36: a tail of the block */
  { 2, 20, 32, 14, 9, { 3, 3 }, 2, 1, 1, 1 },
  { 1, 32, 32, 13, 8, { 3, 3 }, 2, 1, 1, 1 },
  { 1, 32, 32, 13, 12, { 3, 3 }, 1, 2, 2, 1 }, /* dilated */
  { 1, 16, 16, 15, 9, { 3, 3 }, 2, 2, 2, 1 },
  { 1, 16, 32, 12, 7, { 5, 3 }, 3, 0, 1, 1 },  /* rows and columns that no window reaches */
  { 1, 16, 16, 8, 7, { 1, 1 }, 1, 1, 1, 1 },   /* more padding than the kernel reaches */
  { 2, 32, 64, 8, 9, { 3, 3 }, 1, 1, 1, 2 },   /* two groups of whole blocks */
  { 1, 24, 24, 9, 5, { 3, 3 }, 1, 1, 1, 24 },  /* depthwise */
  { 2, 64, 68, 23, 23, { 3, 3 }, 1, 1, 1, 1 }, /* large enough for Winograd's algorithm */
};

/* @variant & 1: src is F32, & 2: dst is F32, & 4: folded, a residual or a bias, ReLU. */
static RnOpCall
conv_call (RnOp op, const Shape *s, RnDType compute, int variant)
{
  int64_t oh = rn_window_size (s->h, s->kernel[0], s->stride, s->pad, s->dilation, FALSE);
  int64_t ow = rn_window_size (s->w, s->kernel[1], s->stride, s->pad, s->dilation, FALSE);
  const gboolean folded = (variant & 4) != 0;
  RnTensorDesc src =
      rn_desc_nchw (variant & 1 ? RN_F32 : compute, s->n, s->ic, s->h, s->w, s->ic == 3 ? 1 : 16);
  RnTensorDesc dst = rn_desc_nchw (variant & 2 ? RN_F32 : compute, s->n, s->oc, oh, ow, 16);
  RnTensorDesc weights = rn_desc_nchw (RN_F32, s->oc, s->ic / s->groups, s->kernel[0], s->kernel[1], 1);
  RnTensorDesc v = rn_desc_vector (RN_F32, s->oc);
  RnOpCall call = { .op = op,
                    .args.conv = { .kernel = { s->kernel[0], s->kernel[1] },
                                   .stride = { s->stride, s->stride },
                                   .pad = { s->pad, s->pad },
                                   .dilation = { s->dilation, s->dilation },
                                   .groups = s->groups,
                                   .eps = 1e-5f,
                                   .compute = compute } };

  if (op == RN_OP_CONV2D_FWD)
    {
      set_in (&call, RN_CONV_SRC, src);
      set_in (&call, RN_CONV_WEIGHTS, weights);
      for (int slot = RN_CONV_GAMMA; folded && slot <= RN_CONV_VAR; slot++)
        set_in (&call, slot, v);
      if (folded)
        set_in (&call, RN_CONV_RESIDUAL, dst);
      else
        set_in (&call, RN_CONV_BIAS, v);
      set_out (&call, RN_CONV_DST, dst);
      call.args.conv.relu = folded;
    }
  else if (op == RN_OP_CONV2D_BWD_DATA)
    {
      set_in (&call, RN_CONV_BD_DIFF_DST, dst);
      set_in (&call, RN_CONV_BD_WEIGHTS, weights);
      for (int slot = RN_CONV_BD_GAMMA; folded && slot <= RN_CONV_BD_VAR; slot++)
        set_in (&call, slot, v);
      set_out (&call, RN_CONV_BD_DIFF_SRC, src);
    }
  else
    {
      set_in (&call, RN_CONV_BW_SRC, src);
      set_in (&call, RN_CONV_BW_DIFF_DST, dst);
      if (folded)
        set_in (&call, RN_CONV_BW_WEIGHTS, weights);
      for (int slot = RN_CONV_BW_GAMMA; folded && slot <= RN_CONV_BW_VAR; slot++)
        set_in (&call, slot, v);
      set_out (&call, RN_CONV_BW_DIFF_WEIGHTS, weights);
      for (int slot = RN_CONV_BW_DIFF_GAMMA; folded && slot <= RN_CONV_BW_DIFF_BETA; slot++)
        set_out (&call, slot, v);
      if (!folded)
        set_out (&call, RN_CONV_BW_DIFF_BIAS, v);
    }
  g_assert_null (rn_op_check (&call));
  return call;
}

/*
 * Products of halves are exact in F32. Rounding errors of a sum of L of them grow like a random walk: about
 * sqrt (L / 2) eps of a typical result; 8 more for the bias and the residual. Winograd's algorithm works on
 * numbers that are up to 100 times the inputs (see test-kernels.c).
 */
static double
tolerance_of (const RnOpCall *call, const char *kernel)
{
  const RnConvArgs *args = &call->args.conv;
  double area = args->kernel[0] * args->kernel[1], length;

  if (call->op == RN_OP_CONV2D_FWD)
    length = area * (double) call->in[RN_CONV_SRC].dims[1];
  else if (call->op == RN_OP_CONV2D_BWD_DATA)
    length = area * (double) call->in[RN_CONV_BD_DIFF_DST].dims[1];
  else
    {
      const RnTensorDesc *d = &call->in[RN_CONV_BW_DIFF_DST];
      length = (double) (d->dims[0] * d->dims[2] * d->dims[3]); /* and in diff_gamma: */
      length += area * (double) call->in[RN_CONV_BW_SRC].dims[1];
    }
  return (8 + sqrt (length)) * (g_str_has_suffix (kernel, ":winograd") ? 100 : 1);
}

/* Runs with all the workspace that the kernel likes, then with ever less of it. Returns how often. */
static int
check_strips (RnDevice *device, const RnKernel *kernel, const RnOpCall *call)
{
  RnOpCall wide = widened (*call);
  const char *reason;
  Buffers want = { NULL };
  int n = 0;

  for (device->workspace_limit = 0;; n++)
    {
      RnPrepared prepared = { .kernel = kernel };
      if (kernel->prepare (device, call, &prepared, &reason) != RN_STATUS_OK)
        break;
      gsize used = prepared.workspace_bytes, copies = rn_conv_half_copies (&prepared);
      g_assert_cmpuint (rn_conv_half_copies (&prepared), >, 0);
      g_assert_cmpuint (rn_conv_half_copies (&prepared), <=, RN_CONV_HALF_COPIES);
      g_assert_true (device->workspace_limit == 0 || used <= device->workspace_limit);
      rn_prepared_release (&prepared);

      if (n == 0)
        run_reference (ref, call, &wide, 3, &want);
      Buffers got;
      gboolean residual = call->op == RN_OP_CONV2D_FWD && RN_HAS_IN (call, RN_CONV_RESIDUAL);
      gboolean shared = residual && n % 2 == 1; /* dst in the place of the residual */
      buffers_init (&got, call, 3, shared ? RN_CONV_DST : -1, shared ? RN_CONV_RESIDUAL : -1);
      g_assert_true (run_kernel (device, kernel, call, &got));
      compare_outputs (call, kernel->name, &got, &want, tolerance_of (call, kernel->name));
      buffers_clear (&got);
      device->workspace_limit = used - MAX (copies / 3, 1);
    }
  device->workspace_limit = 0;
  if (n > 0)
    buffers_clear (&want);
  return n;
}

static void
test_kernel (gconstpointer data)
{
  static const RnDType types[] = { RN_F16, RN_BF16 };
  const RnKernel *kernel = data;
  g_autoptr (RnDevice) device = rn_device_new_cpu (2, NULL);
  /* Some of the eight variants of a shape, others for the next; the last one takes the reference long. */
  const int step = g_getenv ("RN_TEST_LONG") != NULL ? 1 : 5;
  int n_cases = 0, n_taken = 0, n_cut = 0;

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint t = 0; t < G_N_ELEMENTS (types); t++)
      for (int variant = (int) (i + 2 * t) % MIN (step, 4); variant < 8; variant += step)
        {
          RnOpCall call = conv_call (kernel->op, &shapes[i], types[t], variant);
          int n = check_strips (device, kernel, &call);
          n_cases++;
          n_taken += n > 0;
          n_cut += n > 1;
          if (i + 1 == G_N_ELEMENTS (shapes) && step > 1)
            break;
        }
  g_test_message ("%s takes %d cases, %d of them cut", kernel->name, n_taken, n_cut);
  if (n_taken == 0 && !g_str_has_suffix (kernel->name, ":half"))
    {
      g_test_skip ("this oneDNN has no such convolutions for this processor");
      return;
    }
  g_assert_cmpint (n_cut, >, 0);
  if (g_str_has_suffix (kernel->name, ":half")) /* takes everything, and cuts it */
    g_assert_cmpint (n_cut, ==, n_cases);
}

/* ---- layers of RetinaNet ------------------------------------------------------------------------------- */

/* One of each kind in R18 and R50: sizes are those of an image of 608x1024 where @scale is 1. */
static const Shape layers[] = {
  { 2, 3, 64, 608, 1024, { 7, 7 }, 2, 3, 1, 1 },   { 2, 64, 64, 152, 256, { 3, 3 }, 1, 1, 1, 1 },
  { 2, 64, 256, 152, 256, { 1, 1 }, 1, 0, 1, 1 },  { 2, 256, 512, 152, 256, { 1, 1 }, 2, 0, 1, 1 },
  { 2, 128, 128, 152, 256, { 3, 3 }, 2, 1, 1, 1 }, { 2, 64, 128, 152, 256, { 3, 3 }, 2, 1, 1, 1 },
  { 2, 512, 1024, 76, 128, { 1, 1 }, 2, 0, 1, 1 }, { 2, 256, 256, 76, 128, { 3, 3 }, 1, 1, 1, 1 },
  { 2, 256, 180, 76, 128, { 3, 3 }, 1, 1, 1, 1 },  { 2, 256, 36, 76, 128, { 3, 3 }, 1, 1, 1, 1 },
  { 2, 256, 720, 100, 168, { 3, 3 }, 1, 1, 1, 1 }, { 2, 512, 512, 19, 32, { 3, 3 }, 1, 1, 1, 1 },
  { 2, 1024, 2048, 38, 64, { 1, 1 }, 2, 0, 1, 1 }, { 2, 2048, 256, 19, 32, { 3, 3 }, 2, 1, 1, 1 },
  { 2, 256, 256, 10, 16, { 3, 3 }, 2, 1, 1, 1 },   { 2, 256, 256, 3, 4, { 3, 3 }, 1, 1, 1, 1 },
  { 2, 16, 12, 4, 4, { 3, 3 }, 1, 1, 1, 1 },       { 2, 3, 16, 64, 64, { 3, 3 }, 16, 1, 1, 1 },
  { 2, 16, 16, 8, 8, { 3, 3 }, 2, 1, 1, 1 },       { 1, 16, 16, 2, 2, { 1, 1 }, 1, 0, 1, 1 },
};

static void
test_layers (gconstpointer data)
{
  static const RnOp ops[] = { RN_OP_CONV2D_FWD, RN_OP_CONV2D_BWD_DATA, RN_OP_CONV2D_BWD_WEIGHTS };
  const RnDType type = (RnDType) GPOINTER_TO_INT (data);
  g_autoptr (RnDevice) device = rn_device_new_cpu (2, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (layers); i++)
    for (guint o = 0; o < G_N_ELEMENTS (ops); o++)
      for (int variant = 0; variant < 8; variant++)
        {
          RnOpCall call = conv_call (ops[o], &layers[i], type, variant);
          RnPrepared prepared;
          g_autoptr (GError) error = NULL;
          rn_device_prepare (device, &call, &prepared, &error);
          g_assert_no_error (error);
          if (g_str_has_prefix (prepared.kernel->name, "ref:"))
            {
              g_autofree char *text = rn_op_describe (&call);
              g_error ("%s goes to the reference", text);
            }
          if (g_str_has_suffix (prepared.kernel->name, ":onednn-bf16")) /* without tiles it crawls */
            g_assert_nonnull (strstr (prepared.detail, "amx"));
          g_assert_cmpuint (rn_conv_half_copies (&prepared), <=, RN_CONV_HALF_COPIES);
          g_assert_cmpuint (prepared.workspace_bytes, <=, (gsize) 64 << 20);
          rn_prepared_release (&prepared);
        }
}

#endif

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ref = rn_device_new_ref ();
  g_test_add_data_func ("/half-conv/torch/f16", &goldens[0], test_torch);
  g_test_add_data_func ("/half-conv/torch/bf16", &goldens[1], test_torch);
  g_test_add_func ("/half-conv/types", test_types);
#ifdef HAVE_ONEDNN
  const RnKernel *const *kernels = rn_kernels_all ();
  for (int i = 0; kernels[i] != NULL; i++)
    if (strstr (kernels[i]->name, ":half") != NULL || strstr (kernels[i]->name, "bf16") != NULL)
      {
        g_autofree char *path = g_strconcat ("/half-conv/kernels/", kernels[i]->name, NULL);
        g_test_add_data_func (path, kernels[i], test_kernel);
      }
  g_test_add_data_func ("/half-conv/layers/f16", GINT_TO_POINTER (RN_F16), test_layers);
  g_test_add_data_func ("/half-conv/layers/bf16", GINT_TO_POINTER (RN_BF16), test_layers);
#endif
  int status = g_test_run ();
  rn_device_free (ref);
  return status;
}
