/*
 * test-cudnn-cases.c: the table of cudnn-cases.h, put to the library that the program is linked with. With
 * RN_SIM that is the simulation, on a machine without a driver, as the real one needs none for any of this;
 * and the simulation has to report what the real one lets pass.
 */
#include "config.h"

#include "tests/gpu/cudnn-build.h"
#include "tests/gpu/cudnn-cases.h"

#ifdef RN_SIM
  #include "tests/gpu/sim/sim-cudnn.h"
  #include "tests/gpu/sim/sim.h"

static void
begin (void)
{
  const SimConfig config = { .model = "t4" };
  sim_reset (&config);
  sim_expect_faults (true);
}

static void
end (gboolean is_lax)
{
  g_assert_cmpint (sim_first_fault () != NULL, ==, is_lax);
  g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
}
#else
static void
begin (void)
{
}

static void
end (gboolean is_lax)
{
}
#endif

static void
test_skipped (void)
{
  g_autofree char *reason =
      g_strdup_printf ("the answers are those of cuDNN %d.%d, this is %d", CUDNN_CASES_VERSION / 100,
                       CUDNN_CASES_VERSION % 100, (int) cudnnGetVersion ());
  g_test_skip (reason);
}

int
main (int argc, char **argv)
{
  static const CudnnCaseHooks hooks = { begin, end };

  g_test_init (&argc, &argv, NULL);
  if (cudnnGetVersion () / 100 == CUDNN_CASES_VERSION)
    cudnn_cases_add (&hooks);
  else
    g_test_add_func ("/cudnn/cases", test_skipped);
  return g_test_run ();
}
