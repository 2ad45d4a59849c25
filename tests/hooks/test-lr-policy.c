/* Rates against MMCV 1.7.1's formulas: the linear warm-up's values at 49 and 99 are those of published logs.
 */
#include "config.h"

#include "hooks/lr-policy.h"

#include <math.h>

/* Relative, to what the table below gives: it is written with as many digits as the value needs, or computed
 * by the formula. */
#define TOLERANCE 1e-9

static void
assert_close (double value, double expected)
{
  if (!(fabs (value - expected) <= TOLERANCE * fabs (expected)))
    g_error ("%.17g is not %.17g", value, expected);
}

static void
test_linear (void)
{
  const RnWarmupRule rule = { RN_WARMUP_LINEAR, 0.001, 500 };
  static const struct
  {
    gint64 iter;
    double lr;
  } rows[] = { { 0, 1e-5 },         { 49, 9.8902e-4 }, { 99, 1.98802e-3 }, { 250, 5.005e-3 },
               { 499, 9.98002e-3 }, { 500, 0.01 },     { 501, 0.01 } };

  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++)
    assert_close (rn_warmup_lr (&rule, rows[i].iter, 0.01), rows[i].lr);
}

static void
test_exp (void)
{
  const RnWarmupRule rule = { RN_WARMUP_EXP, 0.001, 500 };

  assert_close (rn_warmup_lr (&rule, 0, 0.01), 1e-5);
  /* 0.01 * 0.001^(451/500) = 10^(-2 - 3 * 0.902) = 10^-4.706; 0.01 * 0.001^(1/2) = 10^-3.5 */
  assert_close (rn_warmup_lr (&rule, 49, 0.01), 1.9678862897068438e-05);
  assert_close (rn_warmup_lr (&rule, 250, 0.01), 3.1622776601683795e-04);
  assert_close (rn_warmup_lr (&rule, 500, 0.01), 0.01);
}

static void
test_constant (void)
{
  const RnWarmupRule rule = { RN_WARMUP_CONSTANT, 0.1, 10 }, none = { RN_WARMUP_NONE, 0.1, 10 };

  assert_close (rn_warmup_lr (&rule, 0, 0.02), 0.002);
  assert_close (rn_warmup_lr (&rule, 9, 0.02), 0.002);
  assert_close (rn_warmup_lr (&rule, 10, 0.02), 0.02);
  assert_close (rn_warmup_lr (&none, 0, 0.02), 0.02);
}

static void
test_milestones (void)
{
  const gint64 milestones[] = { 8, 11 };
  const RnStepRule rule = {
    .milestones = milestones, .n_milestones = 2, .gamma = 0.1, .min_lr = (double) NAN
  };

  assert_close (rn_step_lr (&rule, 0, 0.01), 0.01);
  assert_close (rn_step_lr (&rule, 7, 0.01), 0.01);
  assert_close (rn_step_lr (&rule, 8, 0.01), 1e-3); /* a milestone counts from itself on */
  assert_close (rn_step_lr (&rule, 10, 0.01), 1e-3);
  assert_close (rn_step_lr (&rule, 11, 0.01), 1e-4);
  assert_close (rn_step_lr (&rule, G_MAXINT64, 0.01), 1e-4); /* past the end */
}

static void
test_every (void)
{
  const RnStepRule rule = { .every = 3, .gamma = 0.5, .min_lr = 0.002 };

  assert_close (rn_step_lr (&rule, 2, 0.01), 0.01);
  assert_close (rn_step_lr (&rule, 3, 0.01), 0.005);
  assert_close (rn_step_lr (&rule, 5, 0.01), 0.005);
  assert_close (rn_step_lr (&rule, 6, 0.01), 0.0025);
  assert_close (rn_step_lr (&rule, 9, 0.01), 0.002); /* not below min_lr */
  assert_close (rn_step_lr (&rule, 1000000, 0.01), 0.002);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hooks/lr-policy/warmup-linear", test_linear);
  g_test_add_func ("/hooks/lr-policy/warmup-exp", test_exp);
  g_test_add_func ("/hooks/lr-policy/warmup-constant", test_constant);
  g_test_add_func ("/hooks/lr-policy/step-milestones", test_milestones);
  g_test_add_func ("/hooks/lr-policy/step-every", test_every);
  return g_test_run ();
}
