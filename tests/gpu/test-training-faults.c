/*
 * test-training-faults.c: trainings on the simulated device in which something is wrong: faults that are put
 * in are found, and a call that fails ends the run with one line, whichever it is, and leaves the last
 * checkpoint whole.
 *
 * RN_TEST_LONG=1: every call of an iteration fails once.
 */
#include "config.h"

#include "runner/hook-class.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

/* ---- faults that are put in ---- */

static RnDeviceVtbl planted; /* that of the device, but for one function */

static void
plant (RnDevice *device)
{
  planted = *device->vtbl;
  device->vtbl = &planted;
}

static RnStatus
deaf_wait (RnDevice *device, guint event)
{
  return RN_STATUS_OK;
}

static void
plant_deaf_wait (RnDevice *device)
{
  sim_expect_faults (true);
  plant (device);
  planted.wait = deaf_wait;
}

static void
test_missing_wait (void)
{
  const Run run = { .sim = t4, .strategy = RN_STRATEGY_OFFLOAD_IDLE, .n_iters = 1, .plant = plant_deaf_wait };
  g_auto (Outcome) outcome = { 0 };

  run_training (&run, &outcome);
  g_assert_nonnull (sim_first_fault ());
  g_assert_true (g_str_has_prefix (sim_first_fault (), "race: "));
}

/* Memory of the device, read as if it were the host's. */
static RnStatus
direct_copy_out (RnDevice *device, void *host_dst, const void *src, gsize bytes)
{
  device->vtbl->synchronize (device);
  memcpy (host_dst, src, bytes);
  return RN_STATUS_OK;
}

static void
plant_direct_copy_out (RnDevice *device)
{
  sim_expect_faults (true);
  plant (device);
  planted.copy_out = direct_copy_out;
}

static void
test_host_access (void)
{
  const Run run = { .sim = t4, .strategy = -1, .n_iters = 1, .plant = plant_direct_copy_out };
  g_auto (Outcome) outcome = { 0 };

  run_training (&run, &outcome);
  g_assert_nonnull (sim_first_fault ());
  g_assert_true (g_str_has_prefix (sim_first_fault (), "the host reads what is not open to it"));
}

static const RnKernel *normalize;

/* Pixels in NCHW, which are then taken for NHWC. */
static RnStatus
normalize_in_planes (RnDevice *device, const RnOpCall *call, gconstpointer state, const void *const *in,
                     void *const *out, void *workspace)
{
  RnOpCall planes = *call;

  planes.out[0].cblk = 1;
  return normalize->run (device, &planes, state, in, out, workspace);
}

static void
plant_wrong_layout (RnDevice *device)
{
  static const RnKernel wrong = {
    .op = RN_OP_NORMALIZE, .name = "wrong:normalize", .priority = 100, .run = normalize_in_planes
  };
  static const RnKernel *kernels[RN_OP_COUNT + 1];

  for (int i = 0; i < RN_OP_COUNT; i++)
    {
      kernels[i] = device->kernels[i];
      if (kernels[i]->op != RN_OP_NORMALIZE)
        continue;
      normalize = kernels[i];
      kernels[i] = &wrong;
    }
  device->kernels = kernels;
}

static void
test_wrong_layout (void)
{
  Run run = { .sim = t4, .strategy = -1, .n_iters = 1, .layout = RN_CUDA_LAYOUT_NHWC };
  g_auto (Outcome) right = { 0 }, wrong = { 0 };

  run_training (&run, &right);
  run.plant = plant_wrong_layout;
  run_training (&run, &wrong);
  g_assert_cmpfloat (fabs (wrong.losses[0] - right.losses[0]), >, 1e-4 * right.losses[0]);
}

/* ---- calls that fail ---- */

#define SAVE_1 "checkpoint_config={interval: 1, by_epoch: false}"

static unsigned long n_calls_before; /* of the second iteration's end: the third is the one that fails */
static unsigned long failing;        /* 0: none */
static cudaError_t failure;

/* The third iteration fails, when all has been run once, and saved. */
static gboolean
fail_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) != 2)
    return TRUE;
  n_calls_before = sim_n_calls ();
  sim_fail_call (failing, failure);
  return TRUE;
}

typedef struct
{
  RnHook hook;
} FailHook;

RN_HOOK_DEFINE (fail, FailHook, .name = "FailHook", .summary = "for tests", .priority = RN_PRIORITY_VERY_HIGH,
                .before_train_iter = fail_iter);

/* The checkpoint of the iteration before is whole: a run goes on from it. */
static void
check_goes_on (const Run *run, const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "iter_2.safetensors", NULL);
  g_autoptr (GError) error = NULL;
  Outcome outcome = { 0 };
  g_autoptr (RnTraining) resumed = open_run (run, dir);

  watched = &outcome;
  rn_runner_resume (resumed->runner, path, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rn_runner_iter (resumed->runner), ==, 2);
  rn_runner_run (resumed->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
}

/*
 * One run of three iterations, in whose third call @n fails. Returns the calls of that iteration; *@message:
 * (transfer full) of the failure, NULL if there was none. @goes_on: another run takes it up.
 */
static unsigned long
run_failing (unsigned long n, cudaError_t error_code, void (*plant_fault) (RnDevice *device),
             gboolean goes_on, char **message)
{
  Run run = { .sim = t4,
              .strategy = RN_STRATEGY_OFFLOAD_IDLE,
              .n_iters = 3,
              .more = { SAVE_1, "custom_hooks=[{type: FailHook}]" },
              .plant = plant_fault };
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_autoptr (RnTraining) training = open_run (&run, dir);

  failing = n;
  failure = error_code;
  *message = NULL;
  if (!rn_runner_run (training->runner, &error))
    *message = g_strdup (error->message);
  unsigned long n_calls = sim_n_calls () - n_calls_before;
  sim_fail_call (0, cudaSuccess);
  g_clear_pointer (&training, rn_training_free);
  if (goes_on)
    {
      run.plant = NULL;
      run.more[1] = NULL;
      check_goes_on (&run, dir);
    }
  remove_tree (dir);
  return n_calls;
}

/* A status that is dropped: clearing the gradients is the first thing that the iteration asks for. */
static RnStatus
careless_fill (RnDevice *device, void *dst, int byte, gsize bytes)
{
  cudaMemsetAsync (dst, byte, bytes, rn_cuda_stream (device));
  cudaGetLastError ();
  return RN_STATUS_OK;
}

static void
plant_careless_fill (RnDevice *device)
{
  plant (device);
  planted.fill = careless_fill;
}

/* What test_failing_calls would report. */
static void
test_missing_check (void)
{
  g_autofree char *careful = NULL, *careless = NULL;

  run_failing (1, cudaErrorInvalidValue, NULL, FALSE, &careful);
  g_assert_nonnull (careful);
  run_failing (1, cudaErrorInvalidValue, plant_careless_fill, FALSE, &careless);
  g_assert_null (careless);
}

static void
check_failure (unsigned long n, cudaError_t error_code, gboolean goes_on, const char *name)
{
  g_autofree char *message = NULL;

  run_failing (n, error_code, NULL, goes_on, &message);
  if (message == NULL)
    g_error ("call %lu fails, and nobody says so", n);
  g_assert_null (strchr (message, '\n'));
  if (strstr (message, name) == NULL)
    g_error ("call %lu: the message does not name the failure: %s", n, message);
}

/* A sample of the calls of one iteration, saving included; in the long test all of them. */
static void
test_failing_calls (void)
{
  g_autofree char *message = NULL;
  unsigned long n_calls = run_failing (0, cudaSuccess, NULL, FALSE, &message);
  unsigned long step = is_long ? 1 : n_calls / 8 + 1;

  g_assert_null (message);
  g_assert_cmpuint (n_calls, >, 100);
  for (unsigned long n = 1; n <= n_calls; n += step)
    {
      gboolean stays = n / step % 2 == 1;
      gboolean is_end = n <= step || n + step > n_calls;
      check_failure (n, stays ? cudaErrorIllegalAddress : cudaErrorInvalidValue, is_end,
                     stays ? "cudaErrorIllegalAddress (700)" : "cudaErrorInvalidValue (1)");
    }
}

/* ---- cuDNN ---- */

#define N_BYTES 1024 /* of 4x8x8 in F32 */

/* What the device says of a convolution whose second call, the library's, fails. (transfer full) */
static char *
fail_convolution (cudaError_t error_code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnDevice) device = test_device_open (&t4, &(RnCudaOptions){ .deterministic = TRUE });
  const RnTensorDesc map = { .dtype = RN_F32, .rank = 4, .dims = { 1, 4, 8, 8 }, .cblk = 1 };
  const RnTensorDesc weights = { .dtype = RN_F32, .rank = 4, .dims = { 4, 4, 1, 1 }, .cblk = 1 };
  RnOpCall call = { .op = RN_OP_CONV2D_FWD,
                    .args.conv = { .kernel = { 1, 1 },
                                   .stride = { 1, 1 },
                                   .dilation = { 1, 1 },
                                   .groups = 1,
                                   .compute = RN_F32 },
                    .in_present = 1 << RN_CONV_SRC | 1 << RN_CONV_WEIGHTS,
                    .out_present = 1 << RN_CONV_DST,
                    .in = { map, weights },
                    .out = { map } };
  RnPrepared prepared;
  char *memory = NULL;

  rn_device_prepare (device, &call, &prepared, &error);
  g_assert_no_error (error);
  g_assert_cmpint (device->vtbl->alloc (device, 3 * N_BYTES + prepared.workspace_bytes, (void **) &memory),
                   ==, RN_STATUS_OK);
  device->vtbl->fill (device, memory, 0, 2 * N_BYTES);
  const void *in[RN_OP_MAX_IN] = { memory, memory + N_BYTES };
  void *out[RN_OP_MAX_OUT] = { memory + 2 * N_BYTES }, *workspace = memory + 3 * N_BYTES;
  device->vtbl->begin_op (device, "layer", &call, in, out, workspace, prepared.workspace_bytes);
  sim_fail_call (2, error_code);
  g_assert_cmpint (prepared.kernel->run (device, &call, prepared.state, in, out, workspace), ==,
                   RN_STATUS_DEVICE);
  device->vtbl->end_op (device);
  char *fault = g_strdup (device->vtbl->fault (device));
  if (error_code == cudaErrorInvalidValue)
    g_assert_cmpint (cudaPeekAtLastError (), ==, cudaSuccess); /* no later launch reports it */
  else
    {
      char byte;
      g_assert_cmpint (device->vtbl->copy_out (device, &byte, memory, 1), ==, RN_STATUS_DEVICE);
      g_assert_cmpstr (device->vtbl->fault (device), ==, fault);
    }
  device->vtbl->free (device, memory, 3 * N_BYTES + prepared.workspace_bytes);
  rn_prepared_release (&prepared);
  return fault;
}

/* The library says only that something has failed; what, the runtime says. */
static void
test_failing_convolution (void)
{
  g_autofree char *lost = fail_convolution (cudaErrorIllegalAddress);
  g_autofree char *refused = fail_convolution (cudaErrorInvalidValue);

  g_assert_nonnull (strstr (lost, "cudaErrorIllegalAddress (700) in running a plan: "));
  g_assert_nonnull (strstr (lost, "reported at layer; it may stem from an earlier op"));
  g_assert_nonnull (strstr (refused, "cudaErrorInvalidValue (1) in running a plan: "));
}

/* ---- RN_CUDA_SYNC ---- */

#define HINT "it may stem from an earlier op: RN_CUDA_SYNC=1 in the environment finds it"

/* The op itself is named where each is waited for, and where not, how to find it. No bit depends on it. */
static void
test_synchronous (void)
{
  const Run run = { .sim = t4, .strategy = RN_STRATEGY_OFFLOAD_IDLE, .n_iters = 2 };
  g_auto (Outcome) queued = { 0 }, waited = { 0 };
  g_autofree char *late = NULL, *exact = NULL, *nothing = NULL;

  unsigned long n_calls = run_failing (0, cudaSuccess, NULL, FALSE, &nothing);
  run_failing (n_calls / 2, cudaErrorIllegalAddress, NULL, FALSE, &late);
  run_training (&run, &queued);
  g_setenv ("RN_CUDA_SYNC", "1", TRUE);
  unsigned long n_waited = run_failing (0, cudaSuccess, NULL, FALSE, &nothing);
  run_failing (n_waited / 2, cudaErrorIllegalAddress, NULL, FALSE, &exact);
  run_training (&run, &waited);
  g_unsetenv ("RN_CUDA_SYNC");

  g_assert_null (nothing);
  g_assert_nonnull (strstr (late, HINT));
  g_assert_nonnull (strstr (exact, "cudaErrorIllegalAddress (700) in "));
  g_assert_null (strstr (exact, HINT));
  g_assert_cmpuint (n_waited, >, n_calls);
  assert_same (&waited, &queued);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  training_runs_begin ();
  g_assert_true (rn_hook_register (&rn_hook_desc_fail, NULL));
  g_test_add_func ("/planted/missing-wait", test_missing_wait);
  g_test_add_func ("/planted/host-access", test_host_access);
  g_test_add_func ("/planted/wrong-layout", test_wrong_layout);
  g_test_add_func ("/planted/missing-check", test_missing_check);
  g_test_add_func ("/failing-calls", test_failing_calls);
  g_test_add_func ("/failing-convolution", test_failing_convolution);
  g_test_add_func ("/synchronous", test_synchronous);
  int result = g_test_run ();
  training_runs_end ();
  return result;
}
