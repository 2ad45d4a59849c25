/*
 * test-sim-cudnn.c: what the simulated cuDNN computes, against the reference kernels; and that its engines
 * differ in the ways that they are there for.
 */
#include "config.h"

#include "kernels/kernel-table.h"
#include "tests/gpu/cudnn-setup.h"

#include <math.h>
#include <string.h>

/* The reference in F32 on @host's values, or on their sizes. (transfer full) */
static float *
reference (const Setup *s, gboolean of_sizes)
{
  const Problem *p = s->p;
  int output = setup_output (p);
  float *values[SUM] = { NULL }, *result = g_new0 (float, s->n_elements[output]);
  const RnTensorDesc x = rn_desc_nchw (RN_F32, p->n, p->c, p->h, p->w, s->nhwc ? p->c : 1);
  const RnTensorDesc y = rn_desc_nchw (RN_F32, p->n, p->k, s->oh, s->ow, s->nhwc ? p->k : 1);
  RnOpCall call = { .args.conv = { .kernel = { p->kernel[0], p->kernel[1] },
                                   .stride = { p->stride[0], p->stride[1] },
                                   .pad = { p->pad[0], p->pad[1] },
                                   .dilation = { p->dilation[0], p->dilation[1] },
                                   .groups = p->groups,
                                   .relu = p->relu && !of_sizes,
                                   .compute = RN_F32 } };
  const void *in[RN_OP_MAX_IN] = { NULL };
  void *out[RN_OP_MAX_OUT] = { result };

  for (int id = X; id <= Z; id++)
    if (s->host[id] != NULL)
      {
        values[id] = g_memdup2 (s->host[id], (gsize) s->n_elements[id] * sizeof (float));
        for (int64_t i = 0; of_sizes && i < s->n_elements[id]; i++)
          values[id][i] = fabsf (values[id][i]);
      }
  switch (p->direction)
    {
    case BUILD_FORWARD:
      call.in[RN_CONV_SRC] = x;
      call.out[RN_CONV_DST] = y;
      in[RN_CONV_SRC] = values[X];
      in[RN_CONV_WEIGHTS] = values[W];
      in[RN_CONV_BIAS] = values[BIAS];
      in[RN_CONV_RESIDUAL] = values[Z];
      g_assert_cmpint (rn_ref_conv2d_fwd.run (NULL, &call, NULL, in, out, NULL), ==, RN_STATUS_OK);
      break;
    case BUILD_DATA:
      call.in[RN_CONV_BD_DIFF_DST] = y;
      call.out[RN_CONV_BD_DIFF_SRC] = x;
      in[RN_CONV_BD_DIFF_DST] = values[Y];
      in[RN_CONV_BD_WEIGHTS] = values[W];
      g_assert_cmpint (rn_ref_conv2d_bwd_data.run (NULL, &call, NULL, in, out, NULL), ==, RN_STATUS_OK);
      break;
    case BUILD_FILTER:
      call.in[RN_CONV_BW_SRC] = x;
      call.in[RN_CONV_BW_DIFF_DST] = y;
      in[RN_CONV_BW_SRC] = values[X];
      in[RN_CONV_BW_DIFF_DST] = values[Y];
      g_assert_cmpint (rn_ref_conv2d_bwd_weights.run (NULL, &call, NULL, in, out, NULL), ==, RN_STATUS_OK);
      break;
    }
  for (int64_t i = 0; i < s->n_elements[output]; i++)
    result[i] = p->alpha * result[i] + (p->beta != 0 ? p->beta * values[output][i] : 0);
  for (int id = X; id <= Z; id++)
    g_free (values[id]);
  return result;
}

/* Most terms of a sum, with what is added to it. */
static int64_t
n_terms (const Setup *s)
{
  const Problem *p = s->p;
  int64_t area = p->kernel[0] * p->kernel[1];
  switch (p->direction)
    {
    case BUILD_FORWARD:
      return p->c / p->groups * area + 2;
    case BUILD_DATA:
      return p->k / p->groups * area + 1;
    default:
      return p->n * s->oh * s->ow + 1;
    }
}

/*
 * How far an element may be from the reference (in double, rounded to F32). A sum of n products, each
 * rounded, is off by at most n * 2^-24 of the sum of their sizes, whatever the order (Higham, Accuracy and
 * Stability of Numerical Algorithms, 3.1; the factor for higher orders is below 1.001 here); alpha, beta and
 * the reference's rounding are three roundings more. Then comes half a step of the output's type. @input:
 * what an engine's rounding of its inputs may change each product by.
 */
static double
tolerance (const Setup *s, double value, double size, double input)
{
  double sum = ((double) (n_terms (s) + 3) * 0x1p-24 * 1.001 + input) * size;
  double step = s->dtype == RN_F16 ? 0x1p-11 : s->dtype == RN_BF16 ? 0x1p-8 : 0x1p-24;
  return sum + step * (fabs (value) + sum) + (s->dtype == RN_F16 ? 0x1p-25 : 0);
}

/* Elements beyond the tolerance; NaN is. */
static int64_t
n_wrong (const Setup *s, const float *got, double input)
{
  g_autofree float *want = reference (s, FALSE), *size = reference (s, TRUE);
  int64_t n = 0;
  for (int64_t i = 0; i < s->n_elements[setup_output (s->p)]; i++)
    n += !(fabs ((double) got[i] - want[i]) <= tolerance (s, want[i], size[i], input));
  return n;
}

static const RnDType dtypes[] = { RN_F32, RN_F16, RN_BF16 };

static void
test_numbers (gconstpointer data)
{
  static const struct
  {
    int64_t engine;
    int nth;
    double input; /* for F32: both factors are rounded to 11 bits */
  } engines[] = {
    { SIM_ENGINE_GENERIC, 0, 0 },
    { SIM_ENGINE_NORMAL, 0, 0 },
    { SIM_ENGINE_NORMAL, 1, 0 },
    { SIM_ENGINE_RANDOM_ORDER, 0, 0 },
    { SIM_ENGINE_TENSOR_CORE, 0, 2.01 * 0x1p-11 },
  };
  for (gsize t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (int nhwc = 0; nhwc < 2; nhwc++)
      {
        Setup s;
        setup_init (&s, data, dtypes[t], nhwc);
        for (gsize e = 0; e < G_N_ELEMENTS (engines); e++)
          {
            g_autofree float *got = setup_execute (&s, engines[e].engine, engines[e].nth);
            g_assert_cmpint (n_wrong (&s, got, dtypes[t] == RN_F32 ? engines[e].input : 0), ==, 0);
          }
        setup_clear (&s);
      }
}

/* What sets the engines apart, on sums of 144 terms and more. */
static void
test_engines (gconstpointer data)
{
  const Problem *p = data;
  Setup s;

  setup_init (&s, p, RN_F32, TRUE);
  int64_t n = s.n_elements[setup_output (p)];
  g_autofree float *normal = setup_execute (&s, SIM_ENGINE_NORMAL, 0),
                   *again = setup_execute (&s, SIM_ENGINE_NORMAL, 0);
  g_autofree float *random = setup_execute (&s, SIM_ENGINE_RANDOM_ORDER, 0);
  g_autofree float *other = setup_execute (&s, SIM_ENGINE_RANDOM_ORDER, 0);
  g_autofree float *cores = setup_execute (&s, SIM_ENGINE_TENSOR_CORE, 0);
  g_autofree float *halves = setup_execute (&s, SIM_ENGINE_DOWN_CONVERT, 0);
  g_autofree float *wrong = setup_execute (&s, SIM_ENGINE_WRONG, 0);
  assert_same (normal, again, n, TRUE);
  assert_same (random, other, n, FALSE);
  g_assert_cmpint (n_wrong (&s, cores, 0), >, 0);
  g_assert_cmpint (n_wrong (&s, halves, 0), >, 0);
  g_assert_cmpint (n_wrong (&s, wrong, 2 * 0x1p-11), >, n / 2);
  for (int64_t i = 0; i < n; i++)
    g_assert_true (isfinite (wrong[i]));
  g_assert_null (setup_config (&s, SIM_ENGINE_NAN, 0));
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_NORMAL), ==, 2);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_WRONG), ==, 1);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_GENERIC), ==, 0);
  setup_clear (&s);

  setup_init (&s, p, RN_F16, TRUE);
  g_autofree float *nan = setup_execute (&s, SIM_ENGINE_NAN, 0),
                   *reduced = setup_execute (&s, SIM_ENGINE_REDUCED, 0);
  g_autofree float *half = setup_execute (&s, SIM_ENGINE_NORMAL, 0);
  g_assert_true (isnan (nan[n - 1]));
  assert_same (nan, half, n - 1, TRUE);
  g_assert_cmpint (n_wrong (&s, nan, 0), ==, 1);
  g_assert_cmpint (n_wrong (&s, reduced, 0), >, 0);
  g_assert_null (setup_config (&s, SIM_ENGINE_DOWN_CONVERT, 0));
  setup_clear (&s);
}

/* A sum may overwrite its residual, and gives the same bits. */
static void
test_in_place (void)
{
  const Problem *p = setup_problem ("3x3-fused");
  Setup s;

  for (gsize t = 0; t < G_N_ELEMENTS (dtypes); t++)
    {
      setup_init (&s, p, dtypes[t], TRUE);
      g_autofree float *apart = setup_execute (&s, SIM_ENGINE_NORMAL, 0);
      void *y = s.device[Y];
      s.device[Y] = s.device[Z];
      Descriptor plan = build_plan (setup_config (&s, SIM_ENGINE_NORMAL, 0));
      CUDNN_OK (cudnnBackendExecute (s.handle, plan, setup_pack (&s)));
      OK (cudaStreamSynchronize (s.stream));
      NO_FAULT ();
      g_autofree float *in_place = setup_download (&s, Y);
      assert_same (apart, in_place, s.n_elements[Y], TRUE);
      s.device[Y] = y;
      setup_clear (&s);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  for (const Problem *p = setup_problems; p->name != NULL; p++)
    {
      g_autofree char *path = g_strdup_printf ("/sim-cudnn/numbers/%s", p->name);
      g_test_add_data_func (path, p, test_numbers);
    }
  g_test_add_data_func ("/sim-cudnn/engines/forward", setup_problem ("3x3"), test_engines);
  g_test_add_data_func ("/sim-cudnn/engines/data", setup_problem ("data-3x3"), test_engines);
  g_test_add_data_func ("/sim-cudnn/engines/filter", setup_problem ("filter-3x3"), test_engines);
  g_test_add_func ("/sim-cudnn/in-place", test_in_place);
  return g_test_run ();
}
