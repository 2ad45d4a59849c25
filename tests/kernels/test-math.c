/*
 * test-math.c: numbers of known origin: exp and log1p against libm in double, the focal loss against values
 * worked out from its formula with 50 digits, SGD and smooth L1 against PyTorch.
 */
#include "config.h"

#include "kernels/cpu/vector-math.h"
#include "tests/kernels/harness.h"

#include <float.h>
#include <math.h>
#include <runner/batch.h>
#include <string.h>

/* Error in units of the last place of the exact value. */
static double
ulps (float got, double exact)
{
  return fabs (got - exact) / (ldexp (1, ilogb (exact)) * FLT_EPSILON);
}

static void
test_exp (void)
{
  double worst = 0;
  for (float x = 0; x > -87; x = x == 0 ? -1e-20f : x * 1.00003f - 1e-7f)
    worst = fmax (worst, ulps (rn_exp_nonpositive (x), exp ((double) x)));
  g_test_message ("exp: %.2f ulp", worst);
  g_assert_cmpfloat (worst, <, 2);
  g_assert_cmpfloat (rn_exp_nonpositive (0), ==, 1);
  g_assert_cmpfloat (rn_exp_nonpositive (-1e30f), <, 1e-37f);
  g_assert_cmpfloat (rn_exp_nonpositive (-INFINITY), <, 1e-37f);
  g_assert_true (isnan (rn_exp_nonpositive (NAN)));
}

static void
test_log1p (void)
{
  double worst = 0;
  for (float e = 1e-37f; e <= 1; e *= 1.00003f)
    worst = fmax (worst, ulps (rn_log1p_unit (e), log1p ((double) e)));
  worst = fmax (worst, ulps (rn_log1p_unit (1), log (2)));
  g_test_message ("log1p: %.2f ulp", worst);
  g_assert_cmpfloat (worst, <, 3);
  g_assert_cmpfloat (rn_log1p_unit (0), ==, 0);
  g_assert_true (isnan (rn_log1p_unit (NAN)));
}

/* One logit, one class: label 0 is a match, 1 is the background. */
static void
focal_of_one (RnDevice *device, float x, int16_t label, float *loss, float *slope)
{
  float one = 1;
  RnOpCall call = {
    .op = RN_OP_FOCAL_LOSS,
    .args.focal = { .alpha = 0.25f, .gamma = 2, .weight = 1, .num_classes = 1, .anchors_per_cell = 1 },
    .in_present = 15,
    .out_present = 3,
  };
  call.in[RN_FOCAL_LOGITS] = call.out[RN_LOSS_DIFF] = rn_desc_nchw (RN_F32, 1, 1, 1, 1, 1);
  call.in[RN_FOCAL_LABELS] = (RnTensorDesc){ RN_I16, 2, { 1, 1 }, 1 };
  call.in[RN_FOCAL_AVG] = call.in[RN_FOCAL_GRAD_SCALE] = call.out[RN_LOSS_VALUE] = rn_desc_vector (RN_F32, 1);
  Buffers b = { .call = &call, .in = { &x, &label, &one, &one }, .out = { loss, slope } };
  run_call (device, &call, &b);
}

static void
assert_close (float got, double want, double tolerance)
{
  g_assert_cmpfloat (fabs (got - want), <=, fabs (want) * tolerance);
}

/* Both kernels: the table has 8 digits, p^2 softplus has some 8 roundings after exp and log1p. */
static void
test_focal (void)
{
  static const struct
  {
    float x;
    double match[2], background[2]; /* loss, slope */
  } table[] = {
    { -4.59511985f, { 1.1283818, -0.26514239 }, { 7.5377519e-07, 2.2424749e-06 } },
    { -2, { 0.41251954, -0.26917843 }, { 0.0013526721, 0.0036532051 } },
    { 0, { 0.043321699, -0.074571699 }, { 0.1299651, 0.2237151 } },
    { 2, { 0.00045089071, -0.001217735 }, { 1.2375586, 0.8075353 } },
    { 5, { 7.5202256e-08, -2.2434819e-07 }, { 3.7049409, 0.78463488 } },
  };
  g_autoptr (RnDevice) cpu = rn_device_new_cpu (1, NULL);
  g_autoptr (RnDevice) ref = rn_device_new_ref ();
  RnDevice *devices[] = { cpu, ref };

  for (guint d = 0; d < G_N_ELEMENTS (devices); d++)
    for (guint i = 0; i < G_N_ELEMENTS (table); i++)
      for (int16_t label = 0; label < 2; label++)
        {
          const double *want = label == 0 ? table[i].match : table[i].background;
          float loss, slope;
          focal_of_one (devices[d], table[i].x, label, &loss, &slope);
          assert_close (loss, want[0], 5e-8 + 16 * FLT_EPSILON);
          assert_close (slope, want[1], 5e-8 + 16 * FLT_EPSILON);
        }
}

/* Logits far out: finite, with the right limits; NaN is not hidden. */
static void
test_focal_extremes (void)
{
  g_autoptr (RnDevice) cpu = rn_device_new_cpu (1, NULL);
  float loss, slope;

  focal_of_one (cpu, 1e4f, 1, &loss, &slope);
  assert_close (loss, 0.75 * 1e4, 4 * FLT_EPSILON);
  assert_close (slope, 0.75, 4 * FLT_EPSILON);
  focal_of_one (cpu, -1e4f, 0, &loss, &slope);
  assert_close (loss, 0.25 * 1e4, 4 * FLT_EPSILON);
  assert_close (slope, -0.25, 4 * FLT_EPSILON);
  focal_of_one (cpu, -1e4f, 1, &loss, &slope);
  g_assert_cmpfloat (loss, ==, 0);
  g_assert_cmpfloat (slope, ==, 0);
  focal_of_one (cpu, NAN, 1, &loss, &slope);
  g_assert_true (isnan (loss) && isnan (slope));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/math/exp", test_exp);
  g_test_add_func ("/math/log1p", test_log1p);
  g_test_add_func ("/math/focal", test_focal);
  g_test_add_func ("/math/focal-extremes", test_focal_extremes);
  return g_test_run ();
}
