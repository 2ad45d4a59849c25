/*
 * test-training-waits.c: where the host waits for the device in a training: not between the batch and the end
 * of the step, unless a hook asks for something that is still being computed.
 */
#include "config.h"

#include "runner/hook-class.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <string.h>

/* ---- hooks that count ---- */

/* Calls in which the host waited, so far: in front of the forward pass, and behind the step. */
static unsigned long begun[MAX_ITERS], stepped[MAX_ITERS];
static unsigned long ended[MAX_ITERS]; /* with what the iteration logs */
static unsigned long before_asking[MAX_ITERS], after_asking[MAX_ITERS];
static double asked[MAX_ITERS]; /* the loss, in front of the backward pass */

static gboolean
begin (RnHook *hook, RnRunner *runner, GError **error)
{
  begun[rn_runner_iter (runner)] = sim_n_waits ();
  return TRUE;
}

static gboolean
step (RnHook *hook, RnRunner *runner, GError **error)
{
  stepped[rn_runner_iter (runner)] = sim_n_waits ();
  return TRUE;
}

static gboolean
ask (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 iter = rn_runner_iter (runner);

  before_asking[iter] = sim_n_waits ();
  asked[iter] = rn_runner_loss (runner, "loss");
  after_asking[iter] = sim_n_waits ();
  return TRUE;
}

static gboolean
end (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_log (runner, "mine", 1);
  ended[rn_runner_iter (runner)] = sim_n_waits ();
  return TRUE;
}

typedef struct
{
  RnHook hook;
} CountHook;

RN_HOOK_DEFINE (begin, CountHook, .name = "BeginHook", .summary = "for tests",
                .priority = RN_PRIORITY_VERY_LOW, .before_train_iter = begin);
RN_HOOK_DEFINE (step, CountHook, .name = "StepHook", .summary = "for tests", .priority = RN_PRIORITY_NORMAL,
                .after_train_iter = step);
RN_HOOK_DEFINE (end, CountHook, .name = "EndHook", .summary = "for tests", .priority = RN_PRIORITY_LOWEST,
                .after_train_iter = end);
RN_HOOK_DEFINE (ask, CountHook, .name = "AskHook", .summary = "for tests", .priority = RN_PRIORITY_HIGH,
                .needs = RN_NEEDS_LOSS, .after_train_iter = ask);

/* ---- tests ---- */

/* The first iteration makes what later ones use. */
#define N_ITERS 4
#define FIRST 1

/* @n_results: what the host waits for at the end of an iteration, or ahead of the next one: losses, and what
 * became of a guarded step. @lines: for --set, or NULL */
static void
check_nothing_waits (int strategy, RnDType dtype, unsigned long n_results, const char *const lines[2])
{
  Run run = {
    .sim = t4,
    .strategy = strategy,
    .dtype = dtype,
    .n_iters = N_ITERS,
    .more = { "custom_hooks=[{type: BeginHook}, {type: StepHook}, {type: WatchHook}, {type: EndHook}]" }
  };
  g_auto (Outcome) outcome = { 0 };

  run.more[1] = "log_config={hooks: []}"; /* they read the log */
  for (int i = 0; i < 2 && lines != NULL && lines[i] != NULL; i++)
    run.more[i + 2] = lines[i];
  run_training (&run, &outcome);
  for (int i = FIRST; i < N_ITERS; i++)
    {
      g_assert_cmpuint (stepped[i], ==, begun[i]);
      g_assert_cmpuint (ended[i], ==, stepped[i] + 1); /* for the losses, for the log */
      if (i > FIRST)
        g_assert_cmpuint (begun[i], ==, stepped[i - 1] + n_results);
    }
}

static void
test_nothing_waits (void)
{
  check_nothing_waits (-1, RN_F32, 1, NULL);
  check_nothing_waits (RN_STRATEGY_OFFLOAD_IDLE, RN_F32, 1, NULL);
  check_nothing_waits (RN_STRATEGY_IN_BACKWARD, RN_F32, 1, NULL);
}

/* What the device decides on: the outcome is waited for ahead of the next iteration, and its batch. */
static void
test_guarded_steps (void)
{
  static const char *const clip[2] = { "optimizer_config.grad_clip={max_norm: 1}" }, *const both[2] = {
    "optimizer_config.grad_clip={max_norm: 1}", "fp16={loss_scale: dynamic, opt_level: O2}"
  };

  check_nothing_waits (-1, RN_F32, 2, clip);
  check_nothing_waits (RN_STRATEGY_OFFLOAD_IDLE, RN_F32, 2, clip);
  check_nothing_waits (-1, RN_F16, 2, NULL); /* with a loss scale that is dynamic */
  check_nothing_waits (-1, RN_F16, 2, both);
}

/* The right value, once, in each schedule; the run is the same as without the question. */
static void
test_asking (void)
{
  static const SimSchedule schedules[] = { SIM_LATE, SIM_EARLY, SIM_RANDOM };
  Run run = { .sim = t4, .strategy = -1, .n_iters = N_ITERS };
  g_auto (Outcome) plain = { 0 }, cpu = { 0 };

  run_training (&run, &plain);
  run.more[0] = "custom_hooks=[{type: AskHook}, {type: WatchHook}]";
  for (gsize k = 0; k < G_N_ELEMENTS (schedules); k++)
    {
      g_auto (Outcome) outcome = { 0 };
      run.sim.schedule = schedules[k];
      run_training (&run, &outcome);
      assert_same (&outcome, &plain);
      g_assert_cmpint (memcmp (asked, plain.losses, N_ITERS * sizeof *asked), ==, 0);
      for (int i = 0; i < N_ITERS; i++)
        g_assert_cmpuint (after_asking[i], ==, before_asking[i] + 1);
    }
  run.on_cpu = TRUE;
  run_training (&run, &cpu);
  assert_close (&plain, &cpu, 1e-4);
}

/* ---- results that come later, by themselves ---- */

/* As many as do not fit at once, one that is larger than all of the place, and one of no bytes. */
static void
test_results (void)
{
  enum
  {
    N = 2000,
    N_LARGE = 5000
  };
  g_autoptr (RnDevice) device = test_device_open (&t4, &(RnCudaOptions){ .deterministic = TRUE });
  const RnDeviceVtbl *vtbl = device->vtbl;
  g_autofree float *values = g_new (float, N_LARGE), *found = g_new0 (float, N),
                   *large = g_new0 (float, N_LARGE);
  void *memory;

  for (int i = 0; i < N_LARGE; i++)
    values[i] = (float) i;
  g_assert_cmpint (vtbl->alloc (device, N_LARGE * sizeof (float), &memory), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_in (device, memory, values, N_LARGE * sizeof (float)), ==, RN_STATUS_OK);
  for (int i = 0; i < N; i++)
    g_assert_cmpint (
        vtbl->copy_out_later (device, RN_RESULTS_FORWARD, &found[i], (float *) memory + i, sizeof (float)),
        ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_out_later (device, RN_RESULTS_FORWARD, large, memory, N_LARGE * sizeof (float)),
                   ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_out_later (device, RN_RESULTS_FORWARD, large, memory, 0), ==, RN_STATUS_OK);
  /* What was queued before is what is seen, whatever is queued behind it. */
  g_assert_cmpint (vtbl->fill (device, memory, 0xff, N_LARGE * sizeof (float)), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_FORWARD), ==, RN_STATUS_OK);
  g_assert_cmpint (memcmp (found, values, N * sizeof (float)), ==, 0);
  g_assert_cmpint (memcmp (large, values, N_LARGE * sizeof (float)), ==, 0);
  unsigned long n = sim_n_waits ();
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_FORWARD), ==, RN_STATUS_OK);
  g_assert_cmpuint (sim_n_waits (), ==, n);
  vtbl->free (device, memory, N_LARGE * sizeof (float));
}

/* Those of one program are waited for without those of another, which are still to come. */
static void
test_results_of_programs (void)
{
  g_autoptr (RnDevice) device = test_device_open (&t4, &(RnCudaOptions){ .deterministic = TRUE });
  const RnDeviceVtbl *vtbl = device->vtbl;
  const float values[] = { 5, 7, 9 };
  float loss = 1, stats[2] = { 1, 1 };
  void *memory;

  g_assert_cmpint (vtbl->alloc (device, sizeof values, &memory), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_in (device, memory, values, sizeof values), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_out_later (device, RN_RESULTS_FORWARD, &loss, memory, sizeof loss), ==,
                   RN_STATUS_OK);
  g_assert_cmpint (
      vtbl->copy_out_later (device, RN_RESULTS_UPDATE, stats, (float *) memory + 1, sizeof stats), ==,
      RN_STATUS_OK);
  unsigned long n = sim_n_waits ();
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_FORWARD), ==, RN_STATUS_OK);
  g_assert_cmpfloat (loss, ==, 5);
  g_assert_cmpfloat (stats[0] + stats[1], ==, 2);
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_UPDATE), ==, RN_STATUS_OK);
  g_assert_cmpfloat (stats[0], ==, 7);
  g_assert_cmpfloat (stats[1], ==, 9);
  g_assert_cmpuint (sim_n_waits (), ==, n + 2);
  vtbl->free (device, memory, sizeof values);
}

/* They are lost when the wait fails, and the next ones are not. */
static void
test_lost_results (void)
{
  g_autoptr (RnDevice) device = test_device_open (&t4, &(RnCudaOptions){ .deterministic = TRUE });
  const RnDeviceVtbl *vtbl = device->vtbl;
  const float value = 5;
  float lost = 1, found = 1;
  void *memory;

  g_assert_cmpint (vtbl->alloc (device, sizeof value, &memory), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_in (device, memory, &value, sizeof value), ==, RN_STATUS_OK);
  g_assert_cmpint (vtbl->copy_out_later (device, RN_RESULTS_FORWARD, &lost, memory, sizeof lost), ==,
                   RN_STATUS_OK);
  sim_fail_call (1, cudaErrorInvalidValue);
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_FORWARD), ==, RN_STATUS_DEVICE);
  g_assert_nonnull (strstr (rn_device_fault (device, RN_STATUS_DEVICE), "cudaErrorInvalidValue (1)"));
  g_assert_cmpint (vtbl->copy_out_later (device, RN_RESULTS_FORWARD, &found, memory, sizeof found), ==,
                   RN_STATUS_OK);
  g_assert_cmpint (vtbl->settle (device, RN_RESULTS_FORWARD), ==, RN_STATUS_OK);
  g_assert_cmpfloat (lost, ==, 1);
  g_assert_cmpfloat (found, ==, value);
  vtbl->free (device, memory, sizeof value);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  training_runs_begin ();
  g_assert_true (rn_hook_register (&rn_hook_desc_begin, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_step, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_end, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_ask, NULL));
  g_test_add_func ("/waits/nothing", test_nothing_waits);
  g_test_add_func ("/waits/guarded-steps", test_guarded_steps);
  g_test_add_func ("/waits/asking", test_asking);
  g_test_add_func ("/waits/results", test_results);
  g_test_add_func ("/waits/results-of-programs", test_results_of_programs);
  g_test_add_func ("/waits/lost-results", test_lost_results);
  int result = g_test_run ();
  training_runs_end ();
  return result;
}
