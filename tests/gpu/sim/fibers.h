/* fibers.h: what the parts of the simulation that run kernels share: fibers.cc, sync.cc, shared.cc. */
#ifndef TESTS_GPU_SIM_FIBERS_H
#define TESTS_GPU_SIM_FIBERS_H

#include "tests/gpu/sim/kernel-sim.h"
#include "tests/gpu/sim/internal.h"

/* These names stand for other things in kernels. */
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace sim
{
/* Of every device: what a block has. */
constexpr int MAX_THREADS = 1024, WARP = 32;
constexpr size_t MAX_SHARED = 49152; /* without asking for more */

enum State
{
  STARTING, /* has not run yet */
  READY,
  AT_BARRIER,
  IN_WARP, /* waits for lanes of its warp */
  ENDED,
};

struct Fiber;

struct Thread
{
  uint3 index;
  Fiber *fiber;
  State state;
  /* what it waits for */
  const char *file;
  int line;
  SimBarrier barrier;
  SimWarpOp op;
  unsigned mask;
  int operand, width;
  uint64_t value;
  uint64_t result;
};

/* The grid that runs. */
struct Grid
{
  const char *kernel;
  void (*body) (void *);
  void *closure;
  uint64_t number; /* of the launch */
  bool is_running, descending, has_failed;
  int n_threads, n_started, n_ended;
  size_t shared_bytes; /* dynamic */
  Thread *current;     /* NULL: the scheduler */
  Thread threads[MAX_THREADS];
};
extern Grid grid;

/* From a thread, which goes no further; the grid ends. */
[[noreturn]] void fail (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
/* As sim_fault, of the block; the grid ends. From the scheduler. */
void fail_block (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
/* The thread that runs waits until it is READY and its turn comes. */
void wait (void);
/* Between two guard pages. */
unsigned char *map_guarded (size_t bytes);
size_t page_size (void);

/* ---- sync.cc ---- */

/* Goes on if all threads wait at the same barrier; else false. */
bool release_barrier (void);
/* No thread can go on: says which waits, and for whom. */
void report_stuck (void);

/* ---- shared.cc ---- */

void shared_begin_grid (void);
void shared_begin_block (void);
void shared_end_block (void);
/* As sim_kernel_segv. */
bool shared_segv (const unsigned char *address);
}

#endif
