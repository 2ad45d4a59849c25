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
    assert_close (0.01 * rn_warmup_factor (&rule, rows[i].iter), rows[i].lr);
}

static void
test_exp (void)
{
  const RnWarmupRule rule = { RN_WARMUP_EXP, 0.001, 500 };

  assert_close (0.01 * rn_warmup_factor (&rule, 0), 1e-5);
  /* 0.01 * 0.001^(451/500) = 10^(-2 - 3 * 0.902) = 10^-4.706; 0.01 * 0.001^(1/2) = 10^-3.5 */
  assert_close (0.01 * rn_warmup_factor (&rule, 49), 1.9678862897068438e-05);
  assert_close (0.01 * rn_warmup_factor (&rule, 250), 3.1622776601683795e-04);
  g_assert_cmpfloat (rn_warmup_factor (&rule, 500), ==, 1);
}

static void
test_constant (void)
{
  const RnWarmupRule rule = { RN_WARMUP_CONSTANT, 0.1, 10 }, none = { RN_WARMUP_NONE, 0.1, 10 };

  assert_close (rn_warmup_factor (&rule, 0), 0.1);
  assert_close (rn_warmup_factor (&rule, 9), 0.1);
  g_assert_cmpfloat (rn_warmup_factor (&rule, 10), ==, 1);
  g_assert_cmpfloat (rn_warmup_factor (&none, 0), ==, 1);
}

static RnProgress
at (gint64 now, gint64 end)
{
  return (RnProgress){ now, end };
}

static void
test_milestones (void)
{
  const gint64 milestones[] = { 8, 11 };
  const RnStepRule rule = { .milestones = milestones, .n_milestones = 2, .gamma = 0.1, .min = (double) NAN };

  assert_close (rn_step_policy (&rule, at (0, 12), 0.01), 0.01);
  assert_close (rn_step_policy (&rule, at (7, 12), 0.01), 0.01);
  assert_close (rn_step_policy (&rule, at (8, 12), 0.01), 1e-3); /* a milestone counts from itself on */
  assert_close (rn_step_policy (&rule, at (10, 12), 0.01), 1e-3);
  assert_close (rn_step_policy (&rule, at (11, 12), 0.01), 1e-4);
  assert_close (rn_step_policy (&rule, at (G_MAXINT64, 12), 0.01), 1e-4); /* past the end */
}

static void
test_every (void)
{
  const RnStepRule rule = { .every = 3, .gamma = 0.5, .min = 0.002 };

  assert_close (rn_step_policy (&rule, at (2, 12), 0.01), 0.01);
  assert_close (rn_step_policy (&rule, at (3, 12), 0.01), 0.005);
  assert_close (rn_step_policy (&rule, at (5, 12), 0.01), 0.005);
  assert_close (rn_step_policy (&rule, at (6, 12), 0.01), 0.0025);
  assert_close (rn_step_policy (&rule, at (9, 12), 0.01), 0.002); /* not below the bound */
  assert_close (rn_step_policy (&rule, at (1000000, 12), 0.01), 0.002);
}

/* The vectors of the runner's specification, by hand from the formulas; those of cyclic and OneCycle also
 * from torch.optim.lr_scheduler (make-golden-schedules.py). */
static void
test_vectors (void)
{
  const RnOneCycleRule one = {
    .pct_start = 0.3, .anneal = RN_ANNEAL_COS, .first = 0.004, .peak = 0.1, .last = 4e-7
  };
  const RnCyclicRule cyclic = {
    .ratios = { 10, 1e-4 }, .n_cycles = 1, .up_part = 0.4, .gamma = 1, .anneal = RN_ANNEAL_COS
  };

  /* cos (pi / 2) = 0; 0.005 * (1 + cos (pi * 11 / 12)) */
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0, 0, at (6, 12), 0.01), 5e-3);
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0, 0, at (11, 12), 0.01), 1.7037086855465900e-4);
  /* 9 of 12 are flat; then cos (pi / 3) = 1 / 2, cos (2 pi / 3) = -1 / 2 */
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0.75, 0, at (8, 12), 0.01), 0.01);
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0.75, 0, at (9, 12), 0.01), 0.01);
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0.75, 0, at (10, 12), 0.01), 0.0075);
  assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0.75, 0, at (11, 12), 0.01), 0.0025);
  /* 0.0099 * 0.5 ^ 0.9 + 0.0001 */
  assert_close (rn_poly_policy (0.9, 1e-4, at (50, 100), 0.01), 5.405278639554652e-3);
  /* 0.1 - 0.048 * (1 + cos (pi * 10 / 29)); 4e-7 + 0.0499998 * (1 + cos (pi * 35 / 70)) */
  assert_close (rn_one_cycle_policy (&one, at (0, 100)), 0.004);
  assert_close (rn_one_cycle_policy (&one, at (10, 100)), 0.029516394846410082);
  assert_close (rn_one_cycle_policy (&one, at (29, 100)), 0.1);
  assert_close (rn_one_cycle_policy (&one, at (64, 100)), 0.0500002);
  assert_close (rn_one_cycle_policy (&one, at (99, 100)), 4e-7);
  /* half-way up, at the peak, half-way down */
  assert_close (rn_cyclic_policy (&cyclic, at (20, 100), 0.001), 0.0055);
  assert_close (rn_cyclic_policy (&cyclic, at (40, 100), 0.001), 0.01);
  assert_close (rn_cyclic_policy (&cyclic, at (70, 100), 0.001), 0.00500005);
}

/* A resumed run may stand behind the end that a changed configuration gives it. */
static void
test_past_the_end (void)
{
  static const gint64 periods[] = { 10, 20 };
  static const double weights[] = { 1, 0.5 };
  const RnRestartRule restart = { periods, weights, 2 };
  const RnCyclicRule cyclic = {
    .ratios = { 10, 1e-4 }, .n_cycles = 3, .up_part = 0.4, .gamma = 1, .anneal = RN_ANNEAL_LINEAR
  };
  static const gint64 ends[] = { 100, 101, G_MAXINT64 };

  for (gsize i = 0; i < G_N_ELEMENTS (ends); i++)
    {
      RnProgress end = at (ends[i], 100);
      assert_close (rn_poly_policy (0.9, 1e-4, end, 0.01), 1e-4);
      assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0, 1e-5, end, 0.01), 1e-5);
      assert_close (rn_annealing_policy (RN_ANNEAL_LINEAR, 0, 1e-5, end, 0.01), 1e-5);
      assert_close (rn_annealing_policy (RN_ANNEAL_COS, 0.75, 1e-5, end, 0.01), 1e-5);
      assert_close (rn_annealing_policy (RN_ANNEAL_COS, 1, 1e-5, end, 0.01), 0.01); /* flat to the end */
      assert_close (rn_restart_policy (&restart, 1e-5, end, 0.01), 1e-5);
      assert_close (rn_cyclic_policy (&cyclic, end, 0.01), 1e-6);
      for (int three_phase = 0; three_phase < 2; three_phase++)
        {
          const RnOneCycleRule one = { 0.3, three_phase, RN_ANNEAL_COS, 0.004, 0.1, 4e-7 };
          assert_close (rn_one_cycle_policy (&one, end), 4e-7);
        }
    }
  /* Three cycles of 33; what is left over is not a fourth. */
  assert_close (rn_cyclic_policy (&cyclic, at (99, 100), 0.01), 1e-6);
  assert_close (rn_cyclic_policy (&cyclic, at (66, 100), 0.01), 0.01);
  assert_close (rn_restart_policy (&restart, 1e-5, at (30, 100), 0.01), 1e-5);
}

/* Runs of few iterations, and parts of 0 and 1: nothing divides by zero. */
static void
test_short (void)
{
  for (gint64 length = 1; length <= 4; length++)
    for (gint64 now = 0; now < length; now++)
      for (int part = 0; part <= 4; part++)
        for (int three_phase = 0; three_phase < 2; three_phase++)
          {
            const RnOneCycleRule one = { part / 4.0, three_phase, RN_ANNEAL_LINEAR, 0.004, 0.1, 4e-7 };
            const RnCyclicRule cyclic = {
              { 10, 1e-4 }, 1 + part, MIN (part / 4.0, 0.99), 0.5, RN_ANNEAL_LINEAR
            };
            double lr = rn_one_cycle_policy (&one, at (now, length));
            g_assert_true (lr >= 4e-7 * (1 - TOLERANCE) && lr <= 0.1 * (1 + TOLERANCE));
            lr = rn_cyclic_policy (&cyclic, at (now, length), 0.01);
            g_assert_true (lr >= 1e-6 * (1 - TOLERANCE) && lr <= 0.1 * (1 + TOLERANCE));
            lr = rn_annealing_policy (RN_ANNEAL_COS, part / 4.0, 1e-5, at (now, length), 0.01);
            g_assert_true (lr > 1e-5 && lr <= 0.01);
          }
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
  g_test_add_func ("/hooks/lr-policy/vectors", test_vectors);
  g_test_add_func ("/hooks/lr-policy/past-the-end", test_past_the_end);
  g_test_add_func ("/hooks/lr-policy/short", test_short);
  return g_test_run ();
}
