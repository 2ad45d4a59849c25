/*
 * sim.h: the simulated CUDA device: the entry points of the runtime and of cuDNN that the module uses, on the
 * CPU. Kernels are compiled as C++ and their threads run as fibers; queued work runs late, in an order that
 * the streams and events allow. Stricter than a real device: what would be undefined there is an error here.
 *
 * For tests only; never installed. This header is what its parts share, and what tests ask of it.
 */
#ifndef TESTS_GPU_SIM_SIM_H
#define TESTS_GPU_SIM_SIM_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

  /* ---- the runtime, for the other parts (config.c, memory.c, runtime.c, streams.c) ---- */

  /* A range that a piece of queued work reads or writes. */
  typedef struct
  {
    const void *address;
    size_t bytes;
    bool writes;
    bool fresh; /* of a declaration: holds nothing yet; filled with NaN before the first work that follows */
  } SimRange;

  /*
   * Queues a piece of work on @stream: @run (@closure) is called when the host waits for it or the schedule
   * wants it; then @destroy (@closure) (NULL: nothing), once, also when nothing was queued. @ranges (copied):
   * what it touches, each inside one allocation: no other part of device memory is open while it runs, and
   * what it does not write can only be read. NULL: the declared ranges; all of the memory is open if there
   * are none. @what: copied, for messages. A planned failure makes it return that error and queue nothing.
   */
  cudaError_t sim_enqueue (cudaStream_t stream, const char *what, const SimRange *ranges, int n_ranges,
                           void (*run) (void *closure), void *closure, void (*destroy) (void *closure));

  /* What kernels read and write from now on, until it is called again: the executor's list of the op's
   * buffers (copied; empty ones are left out). Kernels themselves know none of their sizes. */
  void sim_declare_ranges (const char *op, const SimRange *ranges, int n_ranges);

  /* Whether [address, address + bytes) lies in one live allocation of the device, or in pinned memory of the
   * host. */
  bool sim_is_device_range (const void *address, size_t bytes);
  bool sim_is_pinned_range (const void *address, size_t bytes);
  /* Whether work can be queued on @stream: it lives, and is not the legacy stream. */
  bool sim_is_stream (cudaStream_t stream);

  /* From a piece of queued work: it takes @milliseconds, as events with timing see it. */
  void sim_spend (double milliseconds);

  /* The host is about to read, or to write, pinned memory: a fault where queued work may still write, or use,
   * it. Memory that is not pinned is no concern of theirs, that of the device is a fault. */
  void sim_host_reads (const void *address, size_t bytes);
  void sim_host_writes (const void *address, size_t bytes);

  /* Counts a call of an entry point, and says whether it is the one that shall fail (sim_fail_call). */
  cudaError_t sim_call (const char *entry_point);

  /* Reports a violation: prints it; the test fails unless it expects one (sim_expect_fault). */
  void sim_fault (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

  /* ---- kernels (fibers.cc), for kernel-sim.h ---- */

  typedef struct
  {
    unsigned x, y, z;
  } SimDim3;

  /* Runs a grid now: every thread calls @body (@closure). Called from a piece of queued work. */
  void sim_run_grid (const char *kernel, SimDim3 grid, SimDim3 block, size_t shared_bytes,
                     void (*body) (void *closure), void *closure);

  /* ---- tests ---- */

  typedef enum
  {
    SIM_LATE,   /* only what the awaited work needs; other streams lag */
    SIM_EARLY,  /* other streams run as far ahead as their events allow */
    SIM_RANDOM, /* by the seed */
  } SimSchedule;

  typedef struct
  {
    const char *model; /* "gtx1660", "t4", "a100", "rtx3060", "rtx4090", "h200", ... */
    int n_devices;
    int driver_version;        /* 13000; 0: no driver */
    cudaError_t startup_error; /* of the first call that needs a driver; cudaSuccess: none */
    size_t memory_bytes;       /* 0: that of the model */
    SimSchedule schedule;
    unsigned seed;
    bool descending; /* order of threads in a block and of blocks in a grid */
  } SimConfig;

  /*
   * Ends what was there, and starts anew with @config. NULL: what the environment says, as for a program that
   * never calls this: RN_SIM_DEVICE=MODEL[,driver=N][,devices=N][,memory=BYTES][,error=CODE] (a T4),
   * RN_SIM_SCHEDULE=late|early|random:SEED (late), RN_SIM_FAIL=N[:CODE] (none; code 719).
   */
  void sim_reset (const SimConfig *config);
  const SimConfig *sim_config (void);

  /* The @n-th call of an entry point from now on (1: the next; 0: none) fails with @error; sticky ones go on
   * failing. Calls that release something release it all the same. */
  void sim_fail_call (unsigned long n, cudaError_t error);
  unsigned long sim_n_calls (void);
  /* Those in which the host waits for the device. */
  unsigned long sim_n_waits (void);

  /* Faults from now on are kept instead of ending the program. */
  void sim_expect_faults (bool expect);
  /* The first that was kept, or NULL; forgotten by sim_reset. */
  const char *sim_first_fault (void);
  unsigned long sim_n_faults (void); /* since sim_reset */

  /* Bytes of device memory: now, and the most since sim_reset; number of allocations since sim_reset. */
  size_t sim_bytes (void);
  size_t sim_peak_bytes (void);
  unsigned long sim_n_allocations (void);
  /* Streams, events and allocations, pinned ones too, that are not released yet. */
  unsigned long sim_n_live (void);

#ifdef __cplusplus
}
#endif

#endif
