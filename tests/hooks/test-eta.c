/* The time to go, on a clock of our own. */
#include "config.h"

#include "hooks/eta.h"

#include <math.h>

#define SECOND 1000000

static void
assert_near (double value, double expected)
{
  /* A few roundings of 2^-53 each. */
  g_assert_cmpfloat (fabs (value - expected), <=, 1e-12 * expected);
}

/* Epochs of 60 iterations of one second, a line every 50 and none for the rest, 6 s of evaluation after each
 * epoch: 66 s an epoch. MMCV counts 50 iterations' time for 60: 17 % less. */
static void
test_partial_windows (void)
{
  RnEta eta;
  gint64 now = 1234 * SECOND, iter = 0;

  rn_eta_start (&eta, iter, now);
  for (int epoch = 0; epoch < 40; epoch++)
    for (int i = 1; i <= 60; i++)
      {
        now += SECOND;
        iter++;
        if (i == 50)
          rn_eta_read (&eta, iter, now);
        if (i == 60)
          now += 6 * SECOND;
      }
  /* Between two lines lie 60 iterations and an evaluation; the first line, of 50 without one, has the weight
   * 0.7^39 = 1e-6 by now, and differs by a tenth. */
  g_assert_cmpfloat (fabs (rn_eta_seconds (&eta, 600, iter, now) - 660), <=, 660 * 1e-7);
}

static void
test_mean (void)
{
  RnEta eta;

  rn_eta_start (&eta, 100, 0);                                /* a resumed run */
  assert_near (rn_eta_seconds (&eta, 8, 104, 2 * SECOND), 4); /* no line yet: half a second each */
  rn_eta_read (&eta, 110, 10 * SECOND);
  assert_near (rn_eta_seconds (&eta, 7, 110, 99 * SECOND), 7);
  rn_eta_read (&eta, 120, 30 * SECOND);
  assert_near (rn_eta_seconds (&eta, 10, 120, 30 * SECOND), 10 * (0.7 * 1 + 0.3 * 2));
  assert_near (rn_eta_seconds (&eta, 0, 120, 30 * SECOND), 0);
  rn_eta_read (&eta, 120, 31 * SECOND); /* no iteration since: no division by zero */
  g_assert_true (isfinite (rn_eta_seconds (&eta, 10, 120, 31 * SECOND)));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/hooks/eta/partial-windows", test_partial_windows);
  g_test_add_func ("/hooks/eta/mean", test_mean);
  return g_test_run ();
}
