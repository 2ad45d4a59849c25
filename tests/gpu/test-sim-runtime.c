/*
 * The simulated runtime finds what is planted in the use of memory, copies and handles, and lets pass what is
 * right.
 */
#include "config.h"
#include <glib.h>
#include <math.h>
#include <string.h>
#include "tests/gpu/sim-fixture.h"

/* ---- memory ---- */

/* Fresh memory of the device is NaN, to the last byte, and a fill writes what it is told. */
static void
test_contents (void)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  char *memory = (char *) device_memory (1001);
  char *host = (char *) pinned_memory (1001);
  OK (cudaMemcpyAsync (host, memory, 1001, cudaMemcpyDeviceToHost, stream));
  OK (cudaStreamSynchronize (stream));
  for (int i = 0; i < 1001; i++)
    g_assert_cmphex ((guint8) host[i], ==, 0xff);
  OK (cudaMemsetAsync (memory + 1, 0x11, 999, stream));
  OK (cudaMemcpyAsync (host, memory, 1001, cudaMemcpyDeviceToHost, stream));
  OK (cudaStreamSynchronize (stream));
  for (int i = 0; i < 1001; i++)
    g_assert_cmphex ((guint8) host[i], ==, i == 0 || i == 1000 ? 0xff : 0x11);
  NO_FAULT ();
}

static void
test_dereference (void)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  volatile float *memory = device_memory (BYTES);
  OK (queue_add (stream, "op", (float *) memory, NULL, 5));
  OK (cudaStreamSynchronize (stream));
  NO_FAULT ();
  g_assert_cmpfloat (memory[7], ==, 5);
#ifdef __x86_64__
  FAULT ("the host reads what is not open to it: allocation 1 (4096 bytes) at offset 28");
#else
  FAULT ("the host * what is not open to it: allocation 1 (4096 bytes) at offset 28");
#endif

  /* It is closed again: by a call, by the end of work, by the end of all. */
  g_assert_cmpuint (sim_n_faults (), ==, 1);
  memory[8] = 6;
  g_assert_cmpuint (sim_n_faults (), ==, 1);
  int version;
  OK (cudaDriverGetVersion (&version));
  g_assert_cmpfloat (memory[8], ==, 6);
  g_assert_cmpuint (sim_n_faults (), ==, 2);
  OK (queue_add (stream, "op", (float *) memory, NULL, 5));
  OK (cudaStreamSynchronize (stream));
  memory[8] = 6;
  g_assert_cmpuint (sim_n_faults (), ==, 3);
  volatile float *host = pinned_memory (BYTES);
  host[0] = 1;
  OK (cudaFreeHost ((void *) host));
  host[0] = 1;
  g_assert_cmpuint (sim_n_faults (), ==, 4);
  host = pinned_memory (BYTES);
  start (SIM_LATE, 0);
  memory[0] = 1;
  FAULT ("the host * what is not open to it: *");
  host[0] = 1;
  g_assert_cmpuint (sim_n_faults (), ==, 2);

#ifdef __x86_64__
  start (SIM_LATE, 0);
  memory = device_memory (BYTES);
  memory[0] = 1;
  FAULT ("the host writes what is not open to it: allocation 1 (4096 bytes) at offset 0");
#endif
}

/* Work touches what is not in its allocation. */
static void
stray (size_t bytes, gssize from, gssize to, bool is_read, const char *pattern)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  char *memory = (char *) device_memory (bytes);
  queue_touch (stream, memory, 0, (gssize) bytes, true);
  queue_touch (stream, memory, 0, (gssize) bytes, false);
  OK (cudaStreamSynchronize (stream));
  NO_FAULT ();
  queue_touch (stream, memory, from, to, is_read);
  cudaError_t error = cudaStreamSynchronize (stream);
  FAULT (pattern);
  /* Where the processor noticed, the context is gone. */
  g_assert_true (error == cudaSuccess || error == cudaErrorIllegalAddress);
  g_assert_cmpint (cudaGetLastError (), ==, error);
}

static void
test_out_of_bounds (void)
{
  /* In the same page, after and before; then pages away. */
  stray (1000, 990, 1001, false, "'touch' wrote to allocation 1 (1000 bytes) at offset 1000, past its end");
  stray (1000, 1000 + 20, 1000 + 21, false, "'touch' wrote to * at offset 1020, past its end");
  stray (1000, -1, 0, false, "'touch' wrote to allocation 1 (1000 bytes) at offset -1, before its start");
  stray (8192, 8190, 8193, false, "'touch' * allocation 1 (8192 bytes) at offset 8192, past its end");
  stray (8192, 8190, 8193, true, "'touch' * allocation 1 (8192 bytes) at offset 8192, past its end");
  stray (8192, -1, 0, true, "'touch' * allocation 1 (8192 bytes) at offset -1, before its start");
}

/* Work that has declared what it touches is held to it, in one allocation too. */
static void
test_undeclared (void)
{
  const size_t page = 4096;
  static const struct
  {
    size_t at;
    bool is_read;
    const char *pattern;
  } cases[] = {
    { 4, true, NULL },
    { 4, false, "'op: touch' * allocation 1 (40960 bytes) at offset 4, which it has not declared" },
    { 3 * 4096 + 4, true, NULL },
    { 3 * 4096 + 4, false, NULL },
    { 5 * 4096, true, "'op: touch' * allocation 1 (40960 bytes) at offset 20480, which it has not declared" },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      start (SIM_LATE, 0);
      cudaStream_t stream = new_stream ();
      char *memory = (char *) device_memory (10 * page);
      const SimRange ranges[] = { { .address = memory, .bytes = page },
                                  { .address = memory + 2 * page, .bytes = 2 * page, .writes = true } };
      sim_declare_ranges ("op", ranges, G_N_ELEMENTS (ranges));
      queue_touch (stream, memory, (gssize) cases[i].at, (gssize) cases[i].at + 1, cases[i].is_read);
      cudaError_t error = cudaStreamSynchronize (stream);
      if (cases[i].pattern)
        FAULT (cases[i].pattern);
      else
        NO_FAULT ();
      g_assert_cmpint (error, ==, cases[i].pattern ? cudaErrorIllegalAddress : cudaSuccess);
      /* What the fault has opened is closed again. */
      touch (memory, (gssize) cases[i].at, (gssize) cases[i].at + 1, true);
      g_assert_cmpuint (sim_n_faults (), ==, cases[i].pattern ? 2 : 1);
    }

  /* Beside the allocation, in a page that is open. */
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  char *small = (char *) device_memory (1000);
  const SimRange all = { .address = small, .bytes = 1000, .writes = true };
  sim_declare_ranges ("op", &all, 1);
  queue_touch (stream, small, 1000, 1001, false);
  OK (cudaStreamSynchronize (stream));
  FAULT ("'op: touch' wrote to allocation 1 (1000 bytes) at offset 1000, past its end");

  /* What is declared or given is not inside an allocation. */
  start (SIM_LATE, 0);
  stream = new_stream ();
  const SimRange too_long = { .address = device_memory (page), .bytes = page + 1 };
  g_assert_cmpint (sim_enqueue (stream, "work", &too_long, 1, NULL, NULL, NULL), ==, cudaErrorInvalidValue);
  FAULT ("work: range 0, 4097 bytes, is not inside one allocation: *");
  start (SIM_LATE, 0);
  char *memory = (char *) device_memory (page);
  const SimRange range = { .address = memory + 1, .bytes = page };
  sim_declare_ranges ("op", &range, 1);
  FAULT ("op: range 0, 4096 bytes, is not inside one allocation: allocation 1 (4096 bytes) at offset 1");
}

#ifdef __SANITIZE_ADDRESS__
static void
read_run (void *closure)
{
  (void) **(volatile float **) closure;
}

/* To the byte, where the work is instrumented. */
static void
test_undeclared_byte (void)
{
  if (g_test_subprocess ())
    {
      start (SIM_LATE, 0);
      cudaStream_t stream = new_stream ();
      float *memory = device_memory (BYTES), *after = memory + 16;
      const SimRange range = { .address = memory, .bytes = 16 * sizeof (float) };
      OK (sim_enqueue (stream, "read", &range, 1, read_run, &after, NULL));
      cudaStreamSynchronize (stream);
      return;
    }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*use-after-poison*read_run*test-sim-runtime.c*");
}
#endif

/* Buffers that hold nothing are NaN when the first work of the op begins, and only then. */
static void
test_fresh (void)
{
  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  float *memory = device_memory (BYTES), *host = pinned_memory (BYTES);
  OK (queue_add (stream, "before", memory, NULL, 1));
  const SimRange range = { .address = memory, .bytes = BYTES / 2, .writes = true, .fresh = true };
  sim_declare_ranges ("op", &range, 1);
  OK (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
  OK (cudaMemsetAsync (memory, 0, sizeof (float), stream));
  queue_touch (stream, memory, 4, 5, false);
  OK (cudaStreamSynchronize (stream));
  for (int i = 0; i < N; i++)
    g_assert_true (i < N / 2 ? isnan (host[i]) : host[i] == 1);
  OK (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream));
  OK (cudaStreamSynchronize (stream));
  g_assert_cmpfloat (host[0], ==, 0);
  NO_FAULT ();

  /* That is a write like others. */
  cudaStream_t other = new_stream ();
  OK (cudaMemcpyAsync (host, memory, 8, cudaMemcpyDeviceToHost, stream));
  sim_declare_ranges ("op", &range, 1);
  OK (cudaMemcpyAsync (memory + N / 2, host + 2, 8, cudaMemcpyHostToDevice, other));
  FAULT ("race: 'cudaMemcpyAsync' (stream 1) writes 8 bytes of allocation 1 *");
}

static void
test_account (void)
{
  const SimConfig config = { .n_devices = 1, .driver_version = CUDART_VERSION, .memory_bytes = 10000 };
  sim_reset (&config);
  size_t free_bytes, total;
  void *memory[3], *pinned;
  OK (cudaMalloc (&memory[0], 6000));
  OK (cudaHostAlloc (&pinned, 20000, cudaHostAllocDefault));
  g_assert_cmpint (cudaMalloc (&memory[1], 4001), ==, cudaErrorMemoryAllocation);
  g_assert_null (memory[1]);
  g_assert_cmpint (cudaGetLastError (), ==, cudaErrorMemoryAllocation);
  OK (cudaGetLastError ());
  OK (cudaMalloc (&memory[1], 4000));
  OK (cudaMemGetInfo (&free_bytes, &total));
  g_assert_cmpuint (free_bytes, ==, 0);
  g_assert_cmpuint (total, ==, 10000);
  OK (cudaFree (memory[0]));
  OK (cudaMalloc (&memory[2], 10));
  OK (cudaFree (NULL));
  g_assert_cmpuint (sim_bytes (), ==, 4010);
  g_assert_cmpuint (sim_peak_bytes (), ==, 10000);
  g_assert_cmpuint (sim_n_allocations (), ==, 3);
  g_assert_cmpuint (sim_n_live (), ==, 3);
  g_assert_true (sim_is_device_range (memory[1], 4000) && !sim_is_device_range (memory[1], 4001));
  g_assert_true (sim_is_pinned_range (pinned, 20000) && !sim_is_device_range (pinned, 1));
  g_assert_cmpuint ((guintptr) memory[2] % 256, ==, 0);
  g_assert_false (sim_is_device_range (&total, 1) || sim_is_pinned_range (&total, 1));
}

/* ---- copies ---- */

static void
test_copies (void)
{
  enum
  {
    DEVICE,
    PINNED,
    PLAIN
  };
  static const char *const kinds[] = { "HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice",
                                       "Default" };
  static const bool to_device[] = { false, true, false, true }, from_device[] = { false, false, true, true };
  static float plain[2][N];
  for (int kind = cudaMemcpyHostToHost; kind <= cudaMemcpyDefault; kind++)
    for (int to = DEVICE; to <= PLAIN; to++)
      for (int from = DEVICE; from <= PLAIN; from++)
        {
          start (SIM_LATE, 0);
          cudaStream_t stream = new_stream ();
          float *places[2][3] = { { device_memory (BYTES), pinned_memory (BYTES), plain[0] },
                                  { device_memory (BYTES), pinned_memory (BYTES), plain[1] } };
          cudaError_t error =
              cudaMemcpyAsync (places[0][to], places[1][from], BYTES, (enum cudaMemcpyKind) kind, stream);
          bool is_right =
              to != PLAIN && from != PLAIN
              && (kind == cudaMemcpyDefault
                  || (to_device[kind] == (to == DEVICE) && from_device[kind] == (from == DEVICE)));
          g_test_message ("%s %d %d", kinds[kind], to, from);
          g_assert_cmpint (error, ==, is_right ? cudaSuccess : cudaErrorInvalidMemcpyDirection);
          g_assert_cmpint (sim_first_fault () == NULL, ==, is_right);
          OK (cudaStreamSynchronize (stream));
        }

  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  float *memory = device_memory (BYTES);
  cudaMemcpyAsync (memory, plain, BYTES, cudaMemcpyHostToDevice, stream);
  FAULT ("cudaMemcpyAsync: the source, *, is not pinned memory; the copy would not be asynchronous");
  start (SIM_LATE, 0);
  stream = new_stream ();
  memory = device_memory (BYTES);
  cudaMemcpyAsync (memory, pinned_memory (BYTES - 1), BYTES, cudaMemcpyHostToDevice, stream);
  FAULT ("cudaMemcpyAsync: 4096 bytes of the source reach past pinned allocation 2 (4095 bytes) at offset 0");
  start (SIM_LATE, 0);
  stream = new_stream ();
  memory = device_memory (BYTES);
  cudaMemcpyAsync (memory, memory + 1, BYTES - 8, cudaMemcpyDeviceToDevice, stream);
  FAULT ("cudaMemcpyAsync: source and destination overlap: *");
  start (SIM_LATE, 0);
  stream = new_stream ();
  memory = device_memory (BYTES);
  cudaMemsetAsync (memory + 1, 0, BYTES, stream);
  FAULT ("cudaMemsetAsync: 4096 bytes of the destination reach past allocation 1 *");
}

/* ---- life cycles ---- */

static void
test_release (void)
{
  start (SIM_LATE, 0);
  float *memory = device_memory (BYTES);
  OK (cudaFree (memory));
  g_assert_cmpint (cudaFree (memory), ==, cudaErrorInvalidValue);
  FAULT ("cudaFree: not the start of what it releases: released allocation 1 (4096 bytes) at offset 0");

  start (SIM_LATE, 0);
  g_assert_cmpint (cudaFree (device_memory (BYTES) + 1), ==, cudaErrorInvalidValue);
  FAULT ("cudaFree: not the start of what it releases: allocation 1 (4096 bytes) at offset 4");

  start (SIM_LATE, 0);
  g_assert_cmpint (cudaFreeHost (device_memory (BYTES)), ==, cudaErrorInvalidValue);
  FAULT ("cudaFreeHost: *");

  start (SIM_LATE, 0);
  cudaStream_t stream = new_stream ();
  memory = device_memory (BYTES);
  float *host = pinned_memory (BYTES);
  OK (queue_add (stream, "op", memory, NULL, 1));
  OK (cudaFree (memory));
  FAULT ("cudaFree: allocation 1 is released, and the host has not waited for 'op: add' (stream 0)");
  OK (cudaStreamSynchronize (stream));
  g_assert_cmpuint (sim_n_faults (), ==, 1);
  g_assert_cmpint (cudaMemcpyAsync (host, memory, BYTES, cudaMemcpyDeviceToHost, stream), !=, cudaSuccess);

  start (SIM_LATE, 0);
  stream = new_stream ();
  memory = device_memory (BYTES);
  host = pinned_memory (BYTES);
  OK (cudaMemcpyAsync (memory, host, BYTES, cudaMemcpyHostToDevice, stream));
  OK (cudaFreeHost (host));
  FAULT ("cudaFreeHost: allocation 2 is released, *'cudaMemcpyAsync' (stream 0)");

  /* Work that has kept the address of what was released. */
  start (SIM_LATE, 0);
  stream = new_stream ();
  memory = device_memory (BYTES);
  OK (cudaFree (memory));
  queue_touch (stream, memory, 8, 9, true);
  g_assert_cmpint (cudaStreamSynchronize (stream), ==, cudaErrorIllegalAddress);
  FAULT ("'touch' * released allocation 1 (4096 bytes) at offset 8");

  /* The host overran its own. */
  start (SIM_LATE, 0);
  char *bytes = (char *) pinned_memory (100);
  touch (bytes, 100, 101, false);
  OK (cudaFreeHost (bytes));
  FAULT ("something wrote to pinned allocation 1 (100 bytes) at offset 100, past its end");
}

static void
test_handles (void)
{
  start (SIM_LATE, 0);
  float *memory = device_memory (BYTES);
  g_assert_cmpint (cudaMemsetAsync (memory, 0, BYTES, NULL), !=, cudaSuccess);
  FAULT ("cudaMemsetAsync: the default stream is used; *");
  start (SIM_LATE, 0);
  memory = device_memory (BYTES);
  g_assert_cmpint (queue_add (cudaStreamPerThread, "op", memory, NULL, 0), !=, cudaSuccess);
  FAULT ("op: add: the default stream is used; *");
  start (SIM_LATE, 0);
  g_assert_cmpint (cudaEventRecord (new_event (), NULL), !=, cudaSuccess);
  FAULT ("cudaEventRecord: the default stream *");
  start (SIM_LATE, 0);
  cudaStream_t stream;
  g_assert_cmpint (cudaStreamCreateWithFlags (&stream, cudaStreamDefault), !=, cudaSuccess);
  FAULT ("cudaStreamCreateWithFlags: *");

  start (SIM_LATE, 0);
  stream = new_stream ();
  g_assert_true (sim_is_stream (stream) && !sim_is_stream (NULL));
  OK (cudaStreamDestroy (stream));
  g_assert_false (sim_is_stream (stream));
  NO_FAULT ();
  g_assert_cmpint (cudaStreamDestroy (stream), ==, cudaErrorInvalidResourceHandle);
  FAULT ("cudaStreamDestroy: stream 0 is destroyed");
  start (SIM_LATE, 0);
  stream = new_stream ();
  int counter = 0;
  queue_note (stream, &counter);
  OK (cudaStreamDestroy (stream));
  FAULT ("cudaStreamDestroy: work is queued on stream 0");
  g_assert_cmpint (counter, ==, 1);
  /* A program that could not wait has no choice. */
  start (SIM_LATE, 0);
  stream = new_stream ();
  queue_note (stream, &counter);
  sim_fail_call (1, cudaErrorUnknown);
  g_assert_cmpint (cudaStreamSynchronize (stream), ==, cudaErrorUnknown);
  OK (cudaStreamDestroy (stream));
  NO_FAULT ();

  start (SIM_LATE, 0);
  cudaEvent_t event = new_event ();
  OK (cudaEventDestroy (event));
  NO_FAULT ();
  g_assert_cmpint (cudaEventDestroy (event), ==, cudaErrorInvalidResourceHandle);
  FAULT ("cudaEventDestroy: * is a destroyed event");
  start (SIM_LATE, 0);
  stream = new_stream ();
  event = new_event ();
  OK (cudaEventDestroy (event));
  g_assert_cmpint (cudaStreamWaitEvent (stream, event, 0), ==, cudaErrorInvalidResourceHandle);
  FAULT ("cudaStreamWaitEvent: * is a destroyed event");
  start (SIM_LATE, 0);
  stream = new_stream ();
  g_assert_cmpint (cudaEventRecord ((cudaEvent_t) &counter, stream), !=, cudaSuccess);
  FAULT ("cudaEventRecord: * is no event");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/gpu/sim/runtime/contents", test_contents);
  g_test_add_func ("/gpu/sim/runtime/dereference", test_dereference);
  g_test_add_func ("/gpu/sim/runtime/out-of-bounds", test_out_of_bounds);
  g_test_add_func ("/gpu/sim/runtime/undeclared", test_undeclared);
#ifdef __SANITIZE_ADDRESS__
  g_test_add_func ("/gpu/sim/runtime/undeclared-byte", test_undeclared_byte);
#endif
  g_test_add_func ("/gpu/sim/runtime/fresh", test_fresh);
  g_test_add_func ("/gpu/sim/runtime/account", test_account);
  g_test_add_func ("/gpu/sim/runtime/copies", test_copies);
  g_test_add_func ("/gpu/sim/runtime/release", test_release);
  g_test_add_func ("/gpu/sim/runtime/handles", test_handles);
  return g_test_run ();
}
