/*
 * kernel-sim.h: CUDA as kernel.cuh wants it, for a C++ compiler: qualifiers, built-in variables, barriers,
 * warp operations, atomics, device functions that CUDA's headers lack on the host. Included by kernel.cuh,
 * after CUDA's headers. Compile with -ffp-contract=off -fno-strict-aliasing.
 */
#ifndef TESTS_GPU_SIM_KERNEL_SIM_H
#define TESTS_GPU_SIM_KERNEL_SIM_H

#include <string.h>
#include <tuple>
#include <type_traits>
#include "tests/gpu/sim/sim.h"

/* ---- what fibers.cc offers ---- */

/* The built-in variables of the thread that runs. */
struct SimHere
{
  uint3 thread, block;
  dim3 block_size, grid_size;
};
extern "C" SimHere sim_here;

/* A shared variable in the source: where it lies in the block's memory, for the launch that it was seen in.
 */
struct SimShared
{
  uint64_t launch;
  size_t offset;
};

enum SimBarrier
{
  SIM_BARRIER_PLAIN,
  SIM_BARRIER_OR,
  SIM_BARRIER_AND,
  SIM_BARRIER_COUNT,
};

enum SimWarpOp
{
  SIM_WARP_SYNC,
  SIM_WARP_BALLOT,
  SIM_WARP_ANY,
  SIM_WARP_ALL,
  SIM_WARP_SHUFFLE,
  SIM_WARP_SHUFFLE_UP,
  SIM_WARP_SHUFFLE_DOWN,
  SIM_WARP_SHUFFLE_XOR,
};

extern "C"
{
  /* What cudaLaunchKernel would say of it; RN_LAUNCH asks before it queues. */
  cudaError_t sim_check_launch (const char *kernel, const void *function, dim3 grid, dim3 block,
                                size_t shared_bytes);
  void *sim_shared (SimShared *variable, size_t bytes, size_t alignment, const char *file, int line);
  void *sim_dynamic_shared (void);
  /* Waits for the whole block; the block's answer of @predicate. */
  int sim_barrier (SimBarrier kind, int predicate, const char *file, int line);
  /* Waits for the lanes of @mask; @value: up to 8 bytes; @operand, @width: of shuffles. */
  uint64_t sim_warp (SimWarpOp op, unsigned mask, uint64_t value, int operand, int width, const char *file,
                     int line);
  /* A fault where @address is no multiple of @bytes. */
  void sim_check_aligned (const void *address, size_t bytes, const char *file, int line);
}

/* ---- the language ---- */

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __shared__ please_use_RN_SHARED_for_shared_variables
#define __launch_bounds__ please_use_RN_BOUNDS_for_launch_bounds

#define threadIdx (sim_here.thread)
#define blockIdx (sim_here.block)
#define blockDim (sim_here.block_size)
#define gridDim (sim_here.grid_size)
static constexpr int warpSize = 32;

/* The number stands in front of the kernel's code, as so many no-operations: attributes that can be read from
 * the address of a function are few. sim_check_launch () counts them. */
#define RN_BOUNDS(threads) \
  __attribute__ ((noinline, patchable_function_entry ((threads) / 32, (threads) / 32)))

#define RN_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  sim_launch (#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__)

#define RN_SHARED(type, name, ...)                                      \
  typedef type sim_type_##name __VA_ARGS__;                             \
  static SimShared sim_shared_##name;                                   \
  sim_type_##name &name = *static_cast<sim_type_##name *> (sim_shared ( \
      &sim_shared_##name, sizeof (sim_type_##name), alignof (sim_type_##name), __FILE__, __LINE__))
#define RN_DYNAMIC_SHARED(type, name) type *name = static_cast<type *> (sim_dynamic_shared ())

#define RN_SITE_PARAMETERS , const char *sim_file = __builtin_FILE(), int sim_line = __builtin_LINE()
#define RN_SITE sim_file, sim_line
#define RN_CHECK_ALIGNED(address, bytes) sim_check_aligned (address, bytes, __FILE__, __LINE__)

/* ---- launches: arguments are copied now, the kernel runs when its turn comes ---- */

template <typename... P> struct SimLaunch
{
  const char *name;
  void (*kernel) (P...);
  SimDim3 grid, block;
  size_t shared_bytes;
  std::tuple<P...> arguments;

  static void run_thread (void *closure)
  {
    const auto *self = static_cast<const SimLaunch *> (closure);
    std::apply (self->kernel, self->arguments);
  }
  static void run (void *closure)
  {
    const auto *self = static_cast<const SimLaunch *> (closure);
    sim_run_grid (self->name, self->grid, self->block, self->shared_bytes, run_thread, closure);
  }
  static void destroy (void *closure)
  {
    delete static_cast<SimLaunch *> (closure);
  }
};

template <typename... P, typename... A>
static inline cudaError_t
sim_launch (const char *name, void (*kernel) (P...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, A... arguments)
{
  static_assert (sizeof...(P) == sizeof...(A), "a kernel is launched with all of its arguments");
  static_assert ((std::is_trivially_copyable_v<P> && ...), "arguments of kernels are copied as bytes");
  using Launch = SimLaunch<P...>;

  cudaError_t error =
      sim_check_launch (name, reinterpret_cast<const void *> (kernel), grid, block, shared_bytes);
  if (error != cudaSuccess)
    return error;
  auto *launch = new Launch{ name,
                             kernel,
                             { grid.x, grid.y, grid.z },
                             { block.x, block.y, block.z },
                             shared_bytes,
                             std::tuple<P...> (P (arguments)...) };
  error = sim_enqueue (stream, name, NULL, 0, Launch::run, launch, Launch::destroy);
  const cudaError_t last = cudaGetLastError (); /* as the real one asks */
  return error != cudaSuccess ? error : last;
}

/* ---- barriers and warps; the caller's line is part of each ---- */

#define SIM_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void
__syncthreads (SIM_SITE)
{
  sim_barrier (SIM_BARRIER_PLAIN, 0, file, line);
}

static inline int
__syncthreads_or (int predicate, SIM_SITE)
{
  return sim_barrier (SIM_BARRIER_OR, predicate, file, line);
}

static inline int
__syncthreads_and (int predicate, SIM_SITE)
{
  return sim_barrier (SIM_BARRIER_AND, predicate, file, line);
}

static inline int
__syncthreads_count (int predicate, SIM_SITE)
{
  return sim_barrier (SIM_BARRIER_COUNT, predicate, file, line);
}

static inline void
__syncwarp (unsigned mask = 0xffffffff, SIM_SITE)
{
  sim_warp (SIM_WARP_SYNC, mask, 0, 0, 32, file, line);
}

static inline unsigned
__ballot_sync (unsigned mask, int predicate, SIM_SITE)
{
  return (unsigned) sim_warp (SIM_WARP_BALLOT, mask, predicate != 0, 0, 32, file, line);
}

static inline int
__any_sync (unsigned mask, int predicate, SIM_SITE)
{
  return (int) sim_warp (SIM_WARP_ANY, mask, predicate != 0, 0, 32, file, line);
}

static inline int
__all_sync (unsigned mask, int predicate, SIM_SITE)
{
  return (int) sim_warp (SIM_WARP_ALL, mask, predicate != 0, 0, 32, file, line);
}

template <typename T>
static inline T
sim_shuffle (SimWarpOp op, unsigned mask, T value, int operand, int width, const char *file, int line)
{
  static_assert (std::is_trivially_copyable_v<T> && (sizeof (T) == 2 || sizeof (T) == 4 || sizeof (T) == 8),
                 "shuffles move 2, 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy (&bits, &value, sizeof value);
  bits = sim_warp (op, mask, bits, operand, width, file, line);
  memcpy (static_cast<void *> (&value), &bits, sizeof value);
  return value;
}

template <typename T>
static inline T
__shfl_sync (unsigned mask, T value, int lane, int width = 32, SIM_SITE)
{
  return sim_shuffle (SIM_WARP_SHUFFLE, mask, value, lane, width, file, line);
}

template <typename T>
static inline T
__shfl_up_sync (unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE)
{
  return sim_shuffle (SIM_WARP_SHUFFLE_UP, mask, value, (int) delta, width, file, line);
}

template <typename T>
static inline T
__shfl_down_sync (unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE)
{
  return sim_shuffle (SIM_WARP_SHUFFLE_DOWN, mask, value, (int) delta, width, file, line);
}

template <typename T>
static inline T
__shfl_xor_sync (unsigned mask, T value, int lane_mask, int width = 32, SIM_SITE)
{
  return sim_shuffle (SIM_WARP_SHUFFLE_XOR, mask, value, lane_mask, width, file, line);
}

#undef SIM_SITE

/* Threads take turns in one thread of the CPU: what they write is seen at once. */
static inline void
__threadfence (void)
{
}

static inline void
__threadfence_block (void)
{
}

/* ---- atomics, of integers only; nothing interrupts a fiber ---- */

template <typename T> using SimSame = std::common_type_t<T>;

#define SIM_ATOMIC(name, expression)                                                                      \
  template <typename T> static inline T name (T *address, SimSame<T> value)                               \
  {                                                                                                       \
    static_assert (std::is_integral_v<T> && sizeof (T) >= 4, "atomics are of integers of 32 or 64 bits"); \
    const T old = *address;                                                                               \
    *address = (expression);                                                                              \
    return old;                                                                                           \
  }
SIM_ATOMIC (atomicAdd, T (std::make_unsigned_t<T> (old) + std::make_unsigned_t<T> (value)))
SIM_ATOMIC (atomicOr, old | value)
SIM_ATOMIC (atomicAnd, old &value)
SIM_ATOMIC (atomicXor, old ^ value)
SIM_ATOMIC (atomicMin, value < old ? value : old)
SIM_ATOMIC (atomicMax, value > old ? value : old)
SIM_ATOMIC (atomicExch, value)
#undef SIM_ATOMIC

template <typename T>
static inline T
atomicCAS (T *address, SimSame<T> expected, SimSame<T> value)
{
  static_assert (std::is_integral_v<T> && sizeof (T) >= 4, "atomics are of integers of 32 or 64 bits");
  const T old = *address;
  if (old == expected)
    *address = value;
  return old;
}

#include "tests/gpu/sim/math-sim.h"

#endif
