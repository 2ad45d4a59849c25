/* test-conv-measure.c: convolutions on the simulated device: what they compute, and which engines are chosen
 * by rank and by measurement. */
#include "config.h"

#include "tests/gpu/conv-case.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/sim/sim.h"

#include <string.h>

/* Every form of every kind, in both layouts: chosen by rank, run twice. */
static void
test_computes (void)
{
  static const RnDType dtypes[] = { RN_F32, RN_F16, RN_BF16 };

  start ("a100");
  for (int kind = RN_CONV_FORWARD; kind <= RN_CONV_BACKWARD_WEIGHTS; kind++)
    for (gsize d = 0; d < G_N_ELEMENTS (dtypes); d++)
      for (int nhwc = 0; nhwc < 2; nhwc++)
        for (int form = 0; form < 5; form++)
          {
            RnConvProblem p = problem_of ((RnConvKind) kind, dtypes[d], nhwc);
            p.accumulate = form == 1;
            if (form > 1 && kind != RN_CONV_FORWARD)
              break;
            p.bias = form > 1;
            p.residual = form > 2;
            p.relu = form > 2;
            g_auto (Case) c;
            case_init (&c, &p, form == 4);
            g_autoptr (RnConvLibrary) library = library_new (&c, TRUE, NULL, NULL);
            g_autoptr (RnConvPlan) plan = plan_new (library, &p);
            check_result (&c, library, plan);
            check_result (&c, library, plan);
          }
  g_assert_cmpstr (sim_first_fault (), ==, NULL);
}

static void
test_rank (void)
{
  const struct
  {
    RnDType dtype;
    gboolean tf32;
    const char *detail;
  } cases[] = {
    { RN_F32, FALSE, "engine 11" },
    { RN_F32, TRUE, "engine 23, tensor cores" },
    { RN_F16, FALSE, "engine 23, tensor cores" },
  };

  start ("t4");
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      RnConvProblem p = problem_of (RN_CONV_FORWARD, cases[i].dtype, TRUE);
      p.tf32 = cases[i].tf32;
      g_auto (Case) c;
      case_init (&c, &p, FALSE);
      for (int deterministic = 0; deterministic < 2; deterministic++)
        {
          g_autoptr (RnConvLibrary) library = library_new (&c, deterministic, NULL, NULL);
          g_autoptr (RnConvPlan) plan = plan_new (library, &p);
          g_assert_cmpstr (rn_conv_plan_detail (plan), ==, cases[i].detail);
        }
    }
}

/* A convolution that would overwrite what it reads, or has no workspace. */
static void
test_addresses (void)
{
  RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);

  start ("t4");
  g_auto (Case) c;
  case_init (&c, &p, FALSE);
  g_autoptr (RnConvLibrary) library = library_new (&c, TRUE, NULL, NULL);
  g_autoptr (RnConvPlan) plan = plan_new (library, &p);
  RnConvPointers wrong = c.pointers;
  wrong.x = wrong.y;
  g_assert_cmpint (rn_conv_plan_run (plan, &wrong), ==, RN_STATUS_DEVICE);
  g_assert_cmpstr (rn_conv_library_fault (library), ==, "a convolution would overwrite what it reads");
  wrong = c.pointers;
  wrong.workspace = NULL;
  g_assert_cmpuint (rn_conv_plan_workspace (plan), >, 0);
  g_assert_cmpint (rn_conv_plan_run (plan, &wrong), ==, RN_STATUS_DEVICE);
  g_assert_nonnull (strstr (rn_conv_library_fault (library), "has no workspace"));
  /* The right ones afterwards. */
  check_result (&c, library, plan);
}

/* ---- measuring ---- */

/*
 * The fastest that is right: the wrong one and the one that gives NaN are faster, and said to be left out;
 * those that the notes condemn are never run.
 */
static void
test_measures (void)
{
  static const RnDType dtypes[] = { RN_F32, RN_F16 };
  static const int64_t condemned[] = { SIM_ENGINE_REDUCED, SIM_ENGINE_DOWN_CONVERT, SIM_ENGINE_RANDOM_ORDER };

  for (int kind = RN_CONV_FORWARD; kind <= RN_CONV_BACKWARD_WEIGHTS; kind++)
    for (gsize d = 0; d < G_N_ELEMENTS (dtypes); d++)
      {
        RnConvProblem p = problem_of ((RnConvKind) kind, dtypes[d], TRUE);
        start ("t4");
        g_auto (Case) c;
        case_init (&c, &p, FALSE);
        g_autoptr (RnConvLibrary) library = library_new (&c, FALSE, NULL, NULL);
        g_autoptr (RnConvPlan) plan = plan_new (library, &p);
        g_autofree char *log = measure (&c, library, plan);
        g_assert_nonnull (strstr (log, "engine 36 does not compute what the generic engine does"));
        g_assert_cmpint (strstr (log, "engine 39 does not") != NULL, ==, dtypes[d] == RN_F16);
        g_assert_cmpstr (rn_conv_plan_detail (plan), ==,
                         dtypes[d] == RN_F32 ? "engine 11" : "engine 23, tensor cores");
        for (gsize i = 0; i < G_N_ELEMENTS (condemned); i++)
          g_assert_cmpuint (sim_cudnn_n_executions (condemned[i]), ==, 0);
        check_result (&c, library, plan);

        /* An equal problem takes the choice over, and runs nothing for it. */
        unsigned long before = sim_cudnn_n_executions (SIM_ENGINE_GENERIC);
        g_autoptr (RnConvPlan) equal = plan_new (library, &p);
        g_assert_cmpstr (rn_conv_plan_detail (equal), ==, rn_conv_plan_detail (plan));
        g_autofree char *nothing = measure (&c, library, equal);
        g_assert_cmpstr (nothing, ==, "");
        g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_GENERIC), ==, before);
        g_assert_cmpstr (sim_first_fault (), ==, NULL);
      }
}

/* Where the output may replace the residual, only engines whose bits stay the same pass. */
static void
test_measures_in_place (void)
{
  for (int in_place = 0; in_place < 2; in_place++)
    {
      RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);
      p.bias = p.residual = p.relu = TRUE;
      start ("t4");
      g_auto (Case) c;
      case_init (&c, &p, in_place);
      g_autoptr (RnConvLibrary) library = library_new (&c, FALSE, NULL, NULL);
      g_autoptr (RnConvPlan) plan = plan_new (library, &p);
      g_autofree char *log = measure (&c, library, plan);
      g_assert_nonnull (strstr (log, "engine 42 does not compute"));
      g_assert_cmpstr (rn_conv_plan_detail (plan), ==, "engine 11");
      check_result (&c, library, plan);
      g_assert_cmpstr (sim_first_fault (), ==, NULL);
    }
}

/* By rank alone: nothing runs. */
static void
test_deterministic (void)
{
  RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);

  start ("t4");
  g_auto (Case) c;
  case_init (&c, &p, FALSE);
  g_autoptr (RnConvLibrary) library = library_new (&c, TRUE, NULL, NULL);
  g_autoptr (RnConvPlan) plan = plan_new (library, &p);
  g_autofree char *log = measure (&c, library, plan);
  g_assert_cmpstr (log, ==, "");
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_GENERIC), ==, 0);
  g_assert_cmpstr (rn_conv_plan_detail (plan), ==, "engine 11");
}

/* Measures with the @n-th call of it failing (0: none). Returns the number of calls. */
static unsigned long
measure_failing (unsigned long n)
{
  RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F16, TRUE);
  g_autoptr (GString) log = g_string_new (NULL);
  Case c;

  p.bias = p.residual = TRUE;
  start ("t4");
  case_init (&c, &p, FALSE);
  RnConvLibrary *library = library_new (&c, FALSE, NULL, NULL);
  RnConvPlan *plan = plan_new (library, &p);
  gsize bytes = sim_bytes ();
  unsigned long before = sim_n_calls ();
  guint handler = log_begin (log);
  if (n > 0)
    sim_fail_call (n, cudaErrorInvalidValue);
  RnStatus status = rn_conv_plan_measure (plan, &c.pointers, LIMIT);
  log_end (handler);
  sim_fail_call (0, cudaSuccess);
  unsigned long n_calls = sim_n_calls () - before;
  if (status != RN_STATUS_OK)
    g_assert_nonnull (rn_conv_library_fault (library));
  OK (cudaPeekAtLastError ()); /* no launch that follows fails for it */
  g_assert_cmpuint (sim_bytes (), ==, bytes);
  check_result (&c, library, plan);
  rn_conv_plan_free (plan);
  rn_conv_library_free (library);
  g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
  case_clear (&c);
  return n_calls;
}

/* Every call of a measurement fails once: a text, no crash, nothing is left behind, and the plan still runs.
 */
static void
test_failures (void)
{
  unsigned long n_calls = measure_failing (0);

  g_assert_cmpuint (n_calls, >, 50);
  for (unsigned long n = 1; n <= n_calls; n++)
    measure_failing (n);
}

/* Likewise each question for engines, before anything is measured. */
static void
test_failing_heuristics (void)
{
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F16, FALSE);
  RnStatus status = RN_STATUS_DEVICE;
  unsigned n = 0;

  for (; status != RN_STATUS_OK; n++)
    {
      const char *reason = NULL;
      RnConvPlan *plan = NULL;
      Case c;

      start ("t4");
      case_init (&c, &p, FALSE);
      RnConvLibrary *library = library_new (&c, FALSE, NULL, NULL);
      sim_cudnn_fail_heuristics (n + 1);
      status = rn_conv_plan_new (library, &p, LIMIT, &plan, &reason);
      sim_cudnn_fail_heuristics (0);
      if (status != RN_STATUS_OK)
        {
          g_assert_cmpint (status, ==, RN_STATUS_DEVICE);
          g_assert_nonnull (strstr (reason, "the heuristics fail"));
          g_assert_null (plan);
        }
      rn_conv_plan_free (plan);
      rn_conv_library_free (library);
      g_assert_cmpuint (sim_cudnn_n_live (), ==, 0);
      case_clear (&c);
    }
  g_assert_cmpuint (n, >, 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/conv-measure/computes", test_computes);
  g_test_add_func ("/conv-measure/rank", test_rank);
  g_test_add_func ("/conv-measure/addresses", test_addresses);
  g_test_add_func ("/conv-measure/measures", test_measures);
  g_test_add_func ("/conv-measure/measures-in-place", test_measures_in_place);
  g_test_add_func ("/conv-measure/deterministic", test_deterministic);
  g_test_add_func ("/conv-measure/failures", test_failures);
  g_test_add_func ("/conv-measure/failing-heuristics", test_failing_heuristics);
  return g_test_run ();
}
