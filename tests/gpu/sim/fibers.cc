/*
 * fibers.cc: kernels on the CPU. Blocks run one after the other; each thread of a block is a fiber that runs
 * until it waits for its block or its warp, or ends. What waits for something that cannot come is reported,
 * and ends the grid.
 */
#undef _FORTIFY_SOURCE /* its longjmp refuses to change stacks */

#include "tests/gpu/sim/fibers.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
  #include <sanitizer/common_interface_defs.h>
  #define LEAVE(keep, bottom, bytes) __sanitizer_start_switch_fiber (keep, bottom, bytes)
  #define ARRIVE(kept, bottom, bytes) __sanitizer_finish_switch_fiber (kept, bottom, bytes)
#else
  #define LEAVE(keep, bottom, bytes) ((void) (keep))
  #define ARRIVE(kept, bottom, bytes) ((void) (kept))
#endif

#define STACK_BYTES 65536

using namespace sim;

SimHere sim_here;

struct sim::Fiber
{
  jmp_buf context;
  unsigned char *stack; /* above a guard page */
  void *fake_stack;     /* of the address sanitizer */
  bool is_new;          /* has to be started */
  bool is_idle;
};

Grid sim::grid;

static Fiber fibers[MAX_THREADS], *idle[MAX_THREADS];
static int n_fibers, n_idle;

static struct
{
  jmp_buf context;
  void *fake_stack;
  const void *stack;
  size_t stack_bytes;
} scheduler;

/* ---- reports ---- */

const char *
sim_place (void)
{
  static char text[256];
  if (!grid.is_running)
    return NULL;
  const uint3 t = sim_here.thread, b = sim_here.block;
  snprintf (text, sizeof text, "kernel '%s', block (%u,%u,%u), thread (%u,%u,%u)", grid.kernel, b.x, b.y, b.z,
            t.x, t.y, t.z);
  return text;
}

static void switch_to_scheduler (Fiber *from);

void
sim::fail (const char *format, ...)
{
  char text[512];
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (text, sizeof text, format, arguments);
  va_end (arguments);
  sim_fault ("%s: %s", sim_place (), text);
  grid.has_failed = true;
  switch_to_scheduler (grid.current->fiber);
  abort (); /* nobody resumes it */
}

void
sim::fail_block (const char *format, ...)
{
  char text[1024];
  const uint3 b = sim_here.block;
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (text, sizeof text, format, arguments);
  va_end (arguments);
  sim_fault ("kernel '%s', block (%u,%u,%u): %s", grid.kernel, b.x, b.y, b.z, text);
  grid.has_failed = true;
}

/* ---- switching ---- */

static void
run_threads (Fiber *self)
{
  ARRIVE (NULL, &scheduler.stack, &scheduler.stack_bytes);
  for (;;)
    {
      /* One that never waits leaves its stack to the next; so do those that end in later rounds, when all
       * have started. */
      while (grid.n_started < grid.n_threads && !grid.has_failed)
        {
          int i = grid.descending ? grid.n_threads - 1 - grid.n_started : grid.n_started;
          Thread *thread = &grid.threads[i];
          grid.n_started++;
          grid.current = thread;
          thread->fiber = self;
          thread->state = READY;
          sim_here.thread = thread->index;
          grid.body (grid.closure);
          grid.current->state = ENDED;
          grid.n_ended++;
        }
      self->is_idle = true;
      idle[n_idle++] = self;
      switch_to_scheduler (self);
    }
}

static void
start_fiber (unsigned upper, unsigned lower)
{
  run_threads (reinterpret_cast<Fiber *> ((uintptr_t) upper << 32 | lower));
}

static void
switch_to_scheduler (Fiber *from)
{
  grid.current = NULL;
  LEAVE (&from->fake_stack, scheduler.stack, scheduler.stack_bytes);
  if (_setjmp (from->context) == 0)
    _longjmp (scheduler.context, 1);
  ARRIVE (from->fake_stack, &scheduler.stack, &scheduler.stack_bytes);
}

static void
switch_to_fiber (Fiber *to)
{
  LEAVE (&scheduler.fake_stack, to->stack, STACK_BYTES);
  if (_setjmp (scheduler.context) == 0)
    {
      if (!to->is_new)
        _longjmp (to->context, 1);

      static ucontext_t context; /* read before anything else starts */
      to->is_new = false;
      getcontext (&context);
      context.uc_stack.ss_sp = to->stack;
      context.uc_stack.ss_size = STACK_BYTES;
      context.uc_link = NULL;
      makecontext (&context, reinterpret_cast<void (*) (void)> (start_fiber), 2,
                   (unsigned) (reinterpret_cast<uintptr_t> (to) >> 32),
                   (unsigned) reinterpret_cast<uintptr_t> (to));
      setcontext (&context);
    }
  ARRIVE (scheduler.fake_stack, NULL, NULL);
}

void
sim::wait (void)
{
  switch_to_scheduler (grid.current->fiber);
}

size_t
sim::page_size (void)
{
  static const size_t size = (size_t) sysconf (_SC_PAGESIZE);
  return size;
}

unsigned char *
sim::map_guarded (size_t bytes)
{
  const size_t page = page_size ();
  auto *pages = static_cast<unsigned char *> (
      mmap (NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (pages == MAP_FAILED || mprotect (pages + page, bytes, PROT_READ | PROT_WRITE) != 0)
    {
      perror ("simulated CUDA device: memory of kernels");
      abort ();
    }
  return pages + page;
}

static Fiber *
take_fiber (void)
{
  if (n_idle == 0)
    {
      Fiber *fiber = &fibers[n_fibers++];
      fiber->stack = map_guarded (STACK_BYTES);
      fiber->is_new = true;
      idle[n_idle++] = fiber;
    }
  Fiber *fiber = idle[--n_idle];
  fiber->is_idle = false;
  return fiber;
}

/* Threads of a grid that has failed are left where they are, and their stacks begin anew. */
static void
abandon_fibers (void)
{
  for (int i = 0; i < n_fibers; i++)
    if (!fibers[i].is_idle)
      {
        Fiber *fiber = &fibers[i];
        UNPOISON (fiber->stack, STACK_BYTES);
        fiber->is_new = fiber->is_idle = true;
        fiber->fake_stack = NULL;
        idle[n_idle++] = fiber;
      }
}

bool
sim_kernel_segv (const void *address)
{
  const auto *p = static_cast<const unsigned char *> (address);
  if (!grid.is_running)
    return false;
  for (int i = 0; i < n_fibers; i++)
    if (p < fibers[i].stack && p >= fibers[i].stack - page_size ())
      {
        sim_fault ("%s: more than %d bytes of stack", sim_place (), STACK_BYTES);
        abort ();
      }
  return shared_segv (p);
}

/* ---- launches ---- */

/* RN_BOUNDS: a no-operation for each 32 threads in front of the kernel, whose start the compiler notes. */
extern "C" const uintptr_t __start___patchable_function_entries[] __attribute__ ((weak));
extern "C" const uintptr_t __stop___patchable_function_entries[] __attribute__ ((weak));

#if defined __x86_64__ || defined __i386__
typedef uint8_t Nop;
  #define NOP 0x90
#elif defined __aarch64__
typedef uint32_t Nop;
  #define NOP 0xd503201f
#else
  #error "which instruction does nothing here?"
#endif

/* 0: there are none. */
__attribute__ ((no_sanitize_address)) static int
launch_bounds (const void *function)
{
  const auto *code = static_cast<const Nop *> (function);
  for (auto *entry = __start___patchable_function_entries; entry < __stop___patchable_function_entries;
       entry++)
    {
      const auto *nops = reinterpret_cast<const Nop *> (*entry), *end = nops;
      if (nops >= code || code - nops > MAX_THREADS / WARP)
        continue;
      while (end < code && *end == NOP)
        end++;
      if (end == code)
        return (int) (code - nops) * WARP;
    }
  return 0;
}

cudaError_t
sim_check_launch (const char *kernel, const void *function, dim3 blocks, dim3 block, size_t shared_bytes)
{
  const int bounds = launch_bounds (function);
  const uint64_t n_threads = (uint64_t) block.x * block.y * block.z;

  if (bounds == 0)
    {
      sim_fault ("kernel '%s' has no RN_BOUNDS", kernel);
      return cudaErrorInvalidConfiguration;
    }
  if (blocks.x < 1 || blocks.y < 1 || blocks.z < 1 || blocks.x > INT32_MAX || blocks.y > 65535
      || blocks.z > 65535 || n_threads < 1 || block.x > MAX_THREADS || block.y > MAX_THREADS || block.z > 64
      || n_threads > MAX_THREADS)
    return cudaErrorInvalidConfiguration;
  /* CUDA says no more than that such a launch fails. */
  if (n_threads > (uint64_t) bounds)
    return cudaErrorInvalidConfiguration;
  /* Every device has more, which a kernel would have to ask for first. */
  if (shared_bytes > MAX_SHARED)
    return cudaErrorInvalidValue;
  return cudaSuccess;
}

/* ---- grids ---- */

static void
run_block (void)
{
  grid.n_started = grid.n_ended = 0;
  for (int i = 0; i < grid.n_threads; i++)
    grid.threads[i].state = STARTING;
  shared_begin_block ();

  while (grid.n_started < grid.n_threads && !grid.has_failed)
    switch_to_fiber (take_fiber ());
  while (grid.n_ended < grid.n_threads && !grid.has_failed)
    {
      bool has_run = false;
      for (int n = 0; n < grid.n_threads && !grid.has_failed; n++)
        {
          Thread *thread = &grid.threads[grid.descending ? grid.n_threads - 1 - n : n];
          if (thread->state != READY)
            continue;
          has_run = true;
          grid.current = thread;
          sim_here.thread = thread->index;
          switch_to_fiber (thread->fiber);
        }
      if (!has_run && !release_barrier ())
        report_stuck ();
    }
  shared_end_block ();
}

void
sim_run_grid (const char *kernel, SimDim3 blocks, SimDim3 block, size_t shared_bytes, void (*body) (void *),
              void *closure)
{
  grid.kernel = kernel;
  grid.body = body;
  grid.closure = closure;
  grid.number++;
  grid.descending = sim_config ()->descending;
  grid.has_failed = false;
  grid.n_threads = (int) (block.x * block.y * block.z);
  grid.shared_bytes = shared_bytes;
  for (int i = 0; i < grid.n_threads; i++)
    grid.threads[i].index = { i % block.x, i / block.x % block.y, i / block.x / block.y };
  sim_here.block_size = dim3 (block.x, block.y, block.z);
  sim_here.grid_size = dim3 (blocks.x, blocks.y, blocks.z);
  shared_begin_grid ();

  grid.is_running = true;
  const uint64_t n = (uint64_t) blocks.x * blocks.y * blocks.z;
  for (uint64_t i = 0; i < n && !grid.has_failed; i++)
    {
      const uint64_t b = grid.descending ? n - 1 - i : i;
      sim_here.block = { (unsigned) (b % blocks.x), (unsigned) (b / blocks.x % blocks.y),
                         (unsigned) (b / blocks.x / blocks.y) };
      run_block ();
    }
  grid.is_running = false;
  if (grid.has_failed)
    abandon_fibers ();
}
