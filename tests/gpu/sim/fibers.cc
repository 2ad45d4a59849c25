/*
 * fibers.cc: kernels on the CPU. Blocks run one after the other; each thread of a block is a fiber that runs
 * until it waits for its block or its warp, or ends. What waits for something that cannot come is reported,
 * and ends the grid.
 */
#undef _FORTIFY_SOURCE /* its longjmp refuses to change stacks */

#include "tests/gpu/sim/kernel-sim.h"
#include "tests/gpu/sim/internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* The built-in variables are macros. */
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#ifdef __SANITIZE_ADDRESS__
  #include <sanitizer/asan_interface.h>
  #include <sanitizer/common_interface_defs.h>
  #define LEAVE(keep, bottom, bytes) __sanitizer_start_switch_fiber (keep, bottom, bytes)
  #define ARRIVE(kept, bottom, bytes) __sanitizer_finish_switch_fiber (kept, bottom, bytes)
  #define POISON(address, bytes) __asan_poison_memory_region (address, bytes)
  #define UNPOISON(address, bytes) __asan_unpoison_memory_region (address, bytes)
#else
  #define LEAVE(keep, bottom, bytes) ((void) (keep))
  #define ARRIVE(kept, bottom, bytes) ((void) (kept))
  #define POISON(address, bytes) ((void) (address), (void) (bytes))
  #define UNPOISON(address, bytes) ((void) (address), (void) (bytes))
#endif

/* Of every device: what a block has. */
#define MAX_THREADS 1024
#define MAX_SHARED 49152 /* without asking for more */
#define WARP 32

#define STACK_BYTES 65536

SimHere sim_here;

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

struct Fiber
{
  jmp_buf context;
  unsigned char *stack; /* above a guard page */
  void *fake_stack;     /* of the address sanitizer */
  bool is_new;          /* has to be started */
  bool is_idle;
};

/* The grid that runs. */
static struct
{
  const char *kernel;
  void (*body) (void *);
  void *closure;
  uint64_t number; /* of the launch */
  bool is_running, descending, has_failed;
  int n_threads, n_started, n_ended;
  size_t shared_bytes; /* dynamic */
  Thread *current;     /* NULL: the scheduler */
  jmp_buf scheduler;
  void *fake_stack;
  const void *stack; /* of the scheduler */
  size_t stack_bytes;
  Thread threads[MAX_THREADS];
} grid;

static Fiber fibers[MAX_THREADS], *idle[MAX_THREADS];
static int n_fibers, n_idle;
static size_t page;

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

/* From a thread, which goes no further; the grid ends. */
__attribute__ ((noreturn, format (printf, 1, 2))) static void
fail (const char *format, ...)
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

/* ---- switching ---- */

static void
run_threads (Fiber *self)
{
  ARRIVE (NULL, &grid.stack, &grid.stack_bytes);
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
  LEAVE (&from->fake_stack, grid.stack, grid.stack_bytes);
  if (_setjmp (from->context) == 0)
    _longjmp (grid.scheduler, 1);
  ARRIVE (from->fake_stack, &grid.stack, &grid.stack_bytes);
}

static void
switch_to_fiber (Fiber *to)
{
  LEAVE (&grid.fake_stack, to->stack, STACK_BYTES);
  if (_setjmp (grid.scheduler) == 0)
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
  ARRIVE (grid.fake_stack, NULL, NULL);
}

static unsigned char *
map_guarded (size_t bytes)
{
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

/* ---- shared memory ---- */

/*
 * Between guard pages: variables from below, with gaps, the dynamic part at the end. All of it is NaN before
 * each block, and gaps are afterwards.
 */
#define GAP 32
#define MAX_VARIABLES 64
#define SHARED_BYTES (MAX_SHARED + 16384)

static struct
{
  unsigned char *memory;
  size_t used;      /* by variables and gaps */
  size_t variables; /* bytes of variables alone */
  struct
  {
    size_t offset, bytes;
    const char *file;
    int line;
  } list[MAX_VARIABLES];
  int n;
  bool is_open; /* guard pages can be accessed, since a thread did */
} shared;

static unsigned char *
dynamic_start (void)
{
  return shared.memory + SHARED_BYTES - (grid.shared_bytes + 15) / 16 * 16;
}

__attribute__ ((no_sanitize_address)) static void
fill_with_nan (unsigned char *from, unsigned char *to)
{
  for (volatile unsigned char *p = from; p < to; p++)
    *p = 0xff;
}

__attribute__ ((no_sanitize_address)) static bool
is_nan_filled (const unsigned char *from, const unsigned char *to)
{
  for (const unsigned char *p = from; p < to; p++)
    if (*p != 0xff)
      return false;
  return true;
}

static void
begin_shared (void)
{
  UNPOISON (shared.memory, SHARED_BYTES);
  shared.used = shared.variables = 0;
  shared.n = 0;
  POISON (dynamic_start () + grid.shared_bytes,
          shared.memory + SHARED_BYTES - dynamic_start () - grid.shared_bytes);
}

/* After a block. */
static void
check_shared (void)
{
  for (int i = 0; i < shared.n; i++)
    {
      auto &v = shared.list[i];
      size_t end = i + 1 < shared.n ? shared.list[i + 1].offset : shared.used;
      if (!is_nan_filled (shared.memory + v.offset + v.bytes, shared.memory + end))
        {
          sim_fault (
              "kernel '%s', block (%u,%u,%u): %s:%d: a thread wrote past the end of the shared variable",
              grid.kernel, sim_here.block.x, sim_here.block.y, sim_here.block.z, v.file, v.line);
          grid.has_failed = true;
          return;
        }
    }
  if (!is_nan_filled (dynamic_start () + grid.shared_bytes, shared.memory + SHARED_BYTES))
    {
      sim_fault ("kernel '%s', block (%u,%u,%u): a thread wrote past the end of %zu bytes of dynamic shared "
                 "memory",
                 grid.kernel, sim_here.block.x, sim_here.block.y, sim_here.block.z, grid.shared_bytes);
      grid.has_failed = true;
    }
}

/* Guard pages that were opened. */
static void
close_shared (void)
{
  if (!shared.is_open)
    return;
  mprotect (shared.memory - page, page, PROT_NONE);
  mprotect (shared.memory + SHARED_BYTES, page, PROT_NONE);
  shared.is_open = false;
}

void *
sim_shared (SimShared *variable, size_t bytes, size_t alignment, const char *file, int line)
{
  if (variable->launch == grid.number)
    return shared.memory + variable->offset;

  /* No better aligned than its type says. */
  size_t offset = (shared.used + GAP + alignment - 1) / alignment * alignment;
  if (offset % (2 * alignment) == 0)
    offset += alignment;
  shared.variables += bytes;
  if (shared.variables + grid.shared_bytes > MAX_SHARED || shared.n == MAX_VARIABLES
      || offset + bytes + GAP > SHARED_BYTES - grid.shared_bytes - 16)
    fail ("%s:%d: %zu bytes of shared variables and %zu of dynamic shared memory are more than the %d of a "
          "block",
          file, line, shared.variables, grid.shared_bytes, MAX_SHARED);

  if (shared.n == 0)
    POISON (shared.memory, offset);
  shared.list[shared.n++] = { offset, bytes, file, line };
  fill_with_nan (shared.memory + shared.used, shared.memory + offset + bytes + GAP);
  UNPOISON (shared.memory + offset, bytes);
  shared.used = offset + bytes + GAP;
  POISON (shared.memory + offset + bytes, GAP);
  *variable = { grid.number, offset };
  return shared.memory + offset;
}

void *
sim_dynamic_shared (void)
{
  return dynamic_start ();
}

/* ---- what threads wait for ---- */

static const char *
op_name (SimWarpOp op)
{
  static const char *const names[] = {
    "__syncwarp",  "__ballot_sync",  "__any_sync",       "__all_sync",
    "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
  };
  return names[op];
}

static bool
is_same_site (const Thread *a, const Thread *b)
{
  return a->line == b->line && (a->file == b->file || strcmp (a->file, b->file) == 0);
}

/* What a thread does, for messages. */
static void
describe (const Thread *thread, char *text, size_t size)
{
  const uint3 i = thread->index;
  int n = snprintf (text, size, "thread (%u,%u,%u) ", i.x, i.y, i.z);
  if (thread->state == AT_BARRIER)
    snprintf (text + n, size - n, "waits in __syncthreads at %s:%d", thread->file, thread->line);
  else if (thread->state == IN_WARP)
    snprintf (text + n, size - n, "waits in %s of mask 0x%x at %s:%d", op_name (thread->op), thread->mask,
              thread->file, thread->line);
  else
    snprintf (text + n, size - n, "has ended");
}

/* Nobody can go on: names one that waits, and one that it waits for. */
static void
report_stuck (void)
{
  const Thread *waiting = NULL, *other = NULL;
  for (int i = 0; i < grid.n_threads && !waiting; i++)
    if (grid.threads[i].state != ENDED)
      waiting = &grid.threads[i];
  for (int i = 0; i < grid.n_threads && !other; i++)
    {
      const Thread *t = &grid.threads[i];
      bool is_awaited = true, is_there;
      if (waiting->state == AT_BARRIER)
        is_there = t->state == AT_BARRIER && is_same_site (t, waiting) && t->barrier == waiting->barrier;
      else
        {
          int first = (int) (waiting - grid.threads) / WARP * WARP;
          is_awaited = i >= first && i < first + WARP && (waiting->mask >> (i - first) & 1);
          is_there = t->state == IN_WARP && is_same_site (t, waiting) && t->op == waiting->op
                     && t->mask == waiting->mask;
        }
      if (is_awaited && !is_there)
        other = t;
    }
  char one[384], two[384];
  describe (waiting, one, sizeof one);
  describe (other, two, sizeof two);
  sim_fault ("kernel '%s', block (%u,%u,%u): %s, but %s", grid.kernel, sim_here.block.x, sim_here.block.y,
             sim_here.block.z, one, two);
}

int
sim_barrier (SimBarrier kind, int predicate, const char *file, int line)
{
  Thread *self = grid.current;
  self->state = AT_BARRIER;
  self->barrier = kind;
  self->value = predicate != 0;
  self->file = file;
  self->line = line;
  switch_to_scheduler (self->fiber);
  return (int) self->result;
}

/* FALSE: they do not all wait at the same one. */
static bool
release_barrier (void)
{
  int n = 0;
  for (int i = 0; i < grid.n_threads; i++)
    {
      const Thread *t = &grid.threads[i];
      if (t->state != AT_BARRIER || !is_same_site (t, &grid.threads[0])
          || t->barrier != grid.threads[0].barrier)
        return false;
      n += (int) t->value;
    }
  for (int i = 0; i < grid.n_threads; i++)
    {
      Thread *t = &grid.threads[i];
      t->state = READY;
      t->result = t->barrier == SIM_BARRIER_OR    ? n > 0
                  : t->barrier == SIM_BARRIER_AND ? n == grid.n_threads
                                                  : (uint64_t) n;
    }
  return true;
}

/* The lane that lane @lane reads; itself where CUDA says so. */
static int64_t
source_lane (const Thread *t, int lane)
{
  const int first = lane & ~(t->width - 1), last = first + t->width - 1;
  int64_t source;
  switch (t->op)
    {
    case SIM_WARP_SHUFFLE:
      return first + (t->operand & (t->width - 1));
    case SIM_WARP_SHUFFLE_UP:
      source = (int64_t) lane - (unsigned) t->operand;
      return source < first ? lane : source;
    case SIM_WARP_SHUFFLE_DOWN:
      source = (int64_t) lane + (unsigned) t->operand;
      return source > last ? lane : source;
    default:
      source = (int64_t) lane ^ (unsigned) t->operand;
      return source > last ? lane : source;
    }
}

/* All lanes of @mask have come. */
static void
finish_warp_op (Thread *warp, unsigned mask, SimWarpOp op)
{
  unsigned ballot = 0;
  for (int lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1 && warp[lane].value)
      ballot |= 1u << lane;

  for (int lane = 0; lane < WARP; lane++)
    {
      Thread *t = &warp[lane];
      if (!(mask >> lane & 1))
        continue;
      if (op >= SIM_WARP_SHUFFLE)
        {
          int64_t source = source_lane (t, lane);
          if (!(mask >> source & 1))
            fail ("%s:%d: %s: lane %d reads lane %d, which is not in the mask 0x%x", t->file, t->line,
                  op_name (op), lane, (int) source, mask);
          t->result = warp[source].value;
        }
      else
        t->result = op == SIM_WARP_BALLOT ? ballot : op == SIM_WARP_ANY ? ballot != 0 : ballot == mask;
    }
  for (int lane = 0; lane < WARP; lane++)
    if (mask >> lane & 1)
      warp[lane].state = READY;
}

uint64_t
sim_warp (SimWarpOp op, unsigned mask, uint64_t value, int operand, int width, const char *file, int line)
{
  Thread *self = grid.current;
  const int index = (int) (self - grid.threads), lane = index % WARP, first = index - lane;
  Thread *warp = &grid.threads[first];

  if (!(mask >> lane & 1))
    fail ("%s:%d: %s: lane %d is not in its own mask 0x%x", file, line, op_name (op), lane, mask);
  if (width < 1 || width > WARP || (width & (width - 1)) != 0)
    fail ("%s:%d: %s: a width of %d is no power of 2 up to 32", file, line, op_name (op), width);

  self->op = op;
  self->mask = mask;
  self->value = value;
  self->operand = operand;
  self->width = width;
  self->file = file;
  self->line = line;
  bool all_came = true;
  for (int i = 0; i < WARP; i++)
    if (mask >> i & 1 && i != lane)
      {
        if (first + i >= grid.n_threads)
          fail ("%s:%d: %s: the mask 0x%x holds lane %d, which the block has not", file, line, op_name (op),
                mask, i);
        const Thread *t = &warp[i];
        if (t->state == ENDED)
          fail ("%s:%d: %s: the mask 0x%x holds lane %d, which has ended", file, line, op_name (op), mask, i);
        all_came =
            all_came && t->state == IN_WARP && t->op == op && t->mask == mask && is_same_site (t, self);
      }
  if (all_came)
    finish_warp_op (warp, mask, op);
  else
    {
      self->state = IN_WARP;
      switch_to_scheduler (self->fiber);
    }
  return self->result;
}

void
sim_check_aligned (const void *address, size_t bytes, const char *file, int line)
{
  if (reinterpret_cast<uintptr_t> (address) % bytes != 0)
    fail ("%s:%d: an access of %zu bytes at %p, which is no multiple of that", file, line, bytes, address);
}

/* ---- memory faults ---- */

static bool
is_guard_of (const unsigned char *address, const unsigned char *memory, size_t bytes)
{
  return (address >= memory - page && address < memory)
         || (address >= memory + bytes && address < memory + bytes + page);
}

bool
sim_kernel_segv (const void *address)
{
  auto *p = static_cast<const unsigned char *> (address);
  if (!grid.is_running)
    return false;
  if (is_guard_of (p, shared.memory, SHARED_BYTES))
    {
      sim_fault ("%s: an access %td bytes from the start of %zu bytes of dynamic shared memory", sim_place (),
                 p - dynamic_start (), grid.shared_bytes);
      mprotect (shared.memory - page, page, PROT_READ | PROT_WRITE);
      mprotect (shared.memory + SHARED_BYTES, page, PROT_READ | PROT_WRITE);
      shared.is_open = grid.has_failed = true;
      return true;
    }
  for (int i = 0; i < n_fibers; i++)
    if (is_guard_of (p, fibers[i].stack, STACK_BYTES))
      {
        sim_fault ("%s: more than %d bytes of stack", sim_place (), STACK_BYTES);
        abort ();
      }
  return false;
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
  fill_with_nan (shared.memory, shared.memory + shared.used);
  fill_with_nan (dynamic_start (), shared.memory + SHARED_BYTES);

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
        {
          report_stuck ();
          grid.has_failed = true;
        }
    }
  if (!grid.has_failed)
    check_shared ();
  close_shared ();
}

void
sim_run_grid (const char *kernel, SimDim3 blocks, SimDim3 block, size_t shared_bytes, void (*body) (void *),
              void *closure)
{
  if (!shared.memory)
    {
      page = (size_t) sysconf (_SC_PAGESIZE);
      shared.memory = map_guarded (SHARED_BYTES);
    }
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
  begin_shared ();

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
