/* Calls of the simulated runtime fail as planned, and as the configuration says. */
#include "config.h"
#include <glib.h>
#include <math.h>
#include "tests/gpu/sim-fixture.h"

#define TRY(call)               \
  do                            \
    {                           \
      error = (call);           \
      if (error != cudaSuccess) \
        goto done;              \
    }                           \
  while (0)

/* A program of the usual kind: gives everything back, whatever fails. Its result, or NaN. */
static cudaError_t
small_program (float *result)
{
  cudaError_t error;
  int count;
  cudaStream_t a = NULL, b = NULL;
  cudaEvent_t event = NULL;
  void *memory = NULL, *host = NULL;
  *result = NAN;
  TRY (cudaGetDeviceCount (&count));
  TRY (cudaSetDevice (0));
  TRY (cudaStreamCreateWithFlags (&a, cudaStreamNonBlocking));
  TRY (cudaStreamCreateWithFlags (&b, cudaStreamNonBlocking));
  TRY (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
  TRY (cudaMalloc (&memory, BYTES));
  TRY (cudaHostAlloc (&host, BYTES, cudaHostAllocDefault));
  TRY (cudaMemsetAsync (memory, 0, BYTES, a));
  TRY (queue_add (a, "op", memory, memory, 3));
  TRY (cudaEventRecord (event, a));
  TRY (cudaStreamWaitEvent (b, event, 0));
  TRY (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, b));
  TRY (cudaStreamSynchronize (b));
  *result = *(float *) host;
done:
  /* Work may still be queued when something failed. */
  if (a)
    cudaStreamSynchronize (a);
  if (b)
    cudaStreamSynchronize (b);
  cudaFree (memory);
  if (host)
    cudaFreeHost (host);
  if (event)
    cudaEventDestroy (event);
  if (b)
    cudaStreamDestroy (b);
  if (a)
    cudaStreamDestroy (a);
  return error;
}

static void
test_fail_every_call (void)
{
  static const cudaError_t errors[] = { cudaErrorMemoryAllocation, cudaErrorIllegalAddress,
                                        cudaErrorMisalignedAddress, cudaErrorLaunchFailure };
  float result;
  start (SIM_LATE, 0);
  OK (small_program (&result));
  g_assert_cmpfloat (result, ==, 3);
  unsigned long n_calls = sim_n_calls ();
  g_assert_cmpuint (n_calls, ==, 13 + 7);
  for (size_t e = 0; e < G_N_ELEMENTS (errors); e++)
    for (unsigned long n = 1; n <= n_calls + 1; n++)
      {
        start (schedules[n % 3], (unsigned) n);
        sim_fail_call (n, errors[e]);
        cudaError_t error = small_program (&result);
        NO_FAULT ();
        g_assert_cmpuint (sim_n_live (), ==, 0);
        g_assert_cmpuint (sim_bytes (), ==, 0);
        /* 13 of the calls are looked at. */
        g_assert_cmpint (error, ==, n <= 13 ? errors[e] : cudaSuccess);
        g_assert_true (n <= 13 ? isnan (result) : result == 3);
        cudaError_t last = cudaGetLastError ();
        g_assert_cmpint (last, ==, n <= n_calls ? errors[e] : cudaSuccess);
        bool stays = n <= n_calls && errors[e] != cudaErrorMemoryAllocation;
        g_assert_cmpint (cudaPeekAtLastError (), ==, stays ? errors[e] : cudaSuccess);
        void *memory;
        g_assert_cmpint (cudaMalloc (&memory, 1), ==, stays || n == n_calls + 1 ? errors[e] : cudaSuccess);
      }
}

/* A piece of work that fails shows at the next wait, and nothing runs after it. */
static void
test_dead_context (void)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  float *memory = device_memory (8192);
  int counter = 0;
  queue_touch (stream, memory, 8192, 8193, true);
  queue_note (stream, &counter);
  g_assert_cmpint (cudaDeviceSynchronize (), ==, cudaErrorIllegalAddress);
  g_assert_cmpint (counter, ==, 0);
  g_assert_cmpint (queue_add (stream, "op", memory, NULL, 1), ==, cudaErrorIllegalAddress);
  g_assert_cmpint (cudaGetLastError (), ==, cudaErrorIllegalAddress);
  g_assert_cmpint (cudaGetLastError (), ==, cudaErrorIllegalAddress);
}

static void
test_startup (void)
{
  int count, version;
  void *memory;
  static const struct
  {
    const char *device;
    cudaError_t count, malloc;
  } cases[] = {
    { "t4", cudaSuccess, cudaSuccess },
    { "t4,driver=0", cudaErrorInsufficientDriver, cudaErrorInsufficientDriver },
    { "t4,driver=11080", cudaErrorInsufficientDriver, cudaErrorInsufficientDriver },
    { "t4,error=34", cudaErrorStubLibrary, cudaErrorStubLibrary },
    { "t4,devices=0", cudaErrorNoDevice, cudaErrorNoDevice },
    { "t4,error=100", cudaErrorNoDevice, cudaErrorNoDevice },
    { "t4,error=46", cudaSuccess, cudaErrorDevicesUnavailable },
    { "t4,error=802", cudaErrorSystemNotReady, cudaErrorSystemNotReady },
    { "t4,error=803", cudaErrorSystemDriverMismatch, cudaErrorSystemDriverMismatch },
    { "t4,error=999", cudaErrorUnknown, cudaErrorUnknown },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_setenv ("RN_SIM_DEVICE", cases[i].device, TRUE);
      sim_reset (NULL);
      OK (cudaDriverGetVersion (&version));
      OK (cudaRuntimeGetVersion (&version));
      g_assert_cmpint (version, ==, CUDART_VERSION);
      g_assert_cmpint (cudaGetDeviceCount (&count), ==, cases[i].count);
      g_assert_cmpint (count, ==, cases[i].count == cudaSuccess ? 1 : 0);
      g_assert_cmpint (cudaMalloc (&memory, 10), ==, cases[i].malloc);
    }
  /* Of a driver that cannot be used one never hears the last. */
  g_setenv ("RN_SIM_DEVICE", "t4,error=34", TRUE);
  sim_reset (NULL);
  cudaGetDeviceCount (&count);
  cudaGetLastError ();
  g_assert_cmpint (cudaGetLastError (), ==, cudaErrorStubLibrary);

  g_setenv ("RN_SIM_DEVICE", "h200,driver=13010,devices=2,memory=1000000", TRUE);
  g_setenv ("RN_SIM_SCHEDULE", "random:12", TRUE);
  g_setenv ("RN_SIM_FAIL", "2:100", TRUE);
  sim_reset (NULL);
  g_assert_cmpint (sim_config ()->schedule, ==, SIM_RANDOM);
  g_assert_cmpint (sim_config ()->seed, ==, 12);
  OK (cudaDriverGetVersion (&version));
  g_assert_cmpint (version, ==, 13010);
  g_assert_cmpint (cudaGetDeviceCount (&count), ==, cudaErrorNoDevice);
  OK (cudaGetDeviceCount (&count));
  g_assert_cmpint (count, ==, 2);
  OK (cudaSetDevice (1));
  g_assert_cmpint (cudaSetDevice (2), ==, cudaErrorInvalidDevice);
  struct cudaDeviceProp properties;
  OK (cudaGetDeviceProperties (&properties, 1));
  g_assert_cmpstr (properties.name, ==, "NVIDIA H200");
  g_assert_cmpint (properties.major, ==, 9);
  g_assert_cmpuint (properties.totalGlobalMem, ==, 1000000);
  g_assert_cmpint (properties.multiProcessorCount, ==, 132);
  g_unsetenv ("RN_SIM_DEVICE");
  g_unsetenv ("RN_SIM_SCHEDULE");
  g_unsetenv ("RN_SIM_FAIL");

  /* A device that nothing was built for shows at the first launch. */
  const SimConfig config = { .model = "gtx1080",
                             .n_devices = 1,
                             .driver_version = CUDART_VERSION,
                             .startup_error = cudaErrorNoKernelImageForDevice };
  sim_reset (&config);
  cudaStream_t stream = new_stream ();
  g_assert_cmpint (queue_add (stream, "op", device_memory (BYTES), NULL, 1), ==,
                   cudaErrorNoKernelImageForDevice);
  g_assert_cmpstr (cudaGetErrorName (cudaGetLastError ()), ==, "cudaErrorNoKernelImageForDevice");
}

/* A fault that nobody expects ends the program, and says what it was. */
static void
test_fault_ends (void)
{
  if (g_test_subprocess ())
    {
      sim_reset (NULL);
      cudaMemsetAsync (NULL, 0, 1, NULL);
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr (
      "*simulated CUDA device\n*simulated CUDA device: cudaMemsetAsync: the default stream*");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gpu/sim/failures/fail-every-call", test_fail_every_call);
  g_test_add_func ("/gpu/sim/failures/dead-context", test_dead_context);
  g_test_add_func ("/gpu/sim/failures/startup", test_startup);
  g_test_add_func ("/gpu/sim/failures/fault-ends", test_fault_ends);
  return g_test_run ();
}
