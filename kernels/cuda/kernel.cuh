/*
 * kernel.cuh: what a .cu file includes: kernels, launches, shared memory, loads and stores of every float
 * type, reductions. nvcc compiles it for the device; with RN_SIM a C++ compiler does, and threads run as
 * fibers on the CPU (tests/gpu/sim/fibers.cc).
 *
 * Both take this part of CUDA:
 *   - a kernel is `__global__ void RN_BOUNDS (256) name (...)`, and is launched by RN_LAUNCH; arguments are
 *     pointers and plain values;
 *   - shared memory by RN_SHARED and RN_DYNAMIC_SHARED; it holds nothing at the start of a block;
 *   - __syncthreads () and its _or, _and and _count, at the same line for all threads of a block, none of
 *     which has ended; __syncwarp (), shuffles and votes with a mask, outside branches that cut a warp;
 *   - integer atomics (a sum of floats by atomics has no fixed order);
 *   - functions of single and double precision, conversions of cuda_fp16.h and cuda_bf16.h;
 *   - __stwb of a uint4: a plain store, of 16 bytes at once.
 * No textures, __constant__, cooperative groups, inline PTX, __activemask, fast math, CUB or Thrust.
 *
 * nvcc contracts a * b + c to one rounding. Where bits must equal the CPU's, write
 * __fadd_rn (__fmul_rn (a, b), c).
 */
#ifndef KERNELS_CUDA_KERNEL_CUH
#define KERNELS_CUDA_KERNEL_CUH

#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>
#include <runner/tensor.h>

#ifdef RN_SIM

  #include "tests/gpu/sim/kernel-sim.h"

#else

  /* The most threads in a block of the kernel, a multiple of 32. */
  #define RN_BOUNDS(threads) __launch_bounds__ (threads)

  /*
   * RN_LAUNCH:
   * @kernel: a kernel; in parentheses if it has template arguments: (name<float, 4>)
   * @grid, @block: blocks, threads per block: dim3 or int
   * @shared_bytes: of dynamic shared memory, at most 48 KiB with what RN_SHARED takes
   * @stream: where it is queued
   * @...: its arguments, converted to the types of its parameters
   *
   * Returns: the error of the launch (or of earlier work), or cudaSuccess.
   */
  /* Not formatted: the brackets would be taken apart. */
  /* clang-format off */
  #define RN_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    (kernel<<<(grid), (block), (shared_bytes), (stream)>>> (__VA_ARGS__), cudaGetLastError ())
  /* clang-format on */

  /* RN_SHARED (float, tile, [32][33]); RN_SHARED (int, flag, ); shared variables of a block. */
  #define RN_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
  /* `type *name`, 16-byte aligned: the bytes that the launch asked for. */
  #define RN_DYNAMIC_SHARED(type, name)                                 \
    extern __shared__ __align__ (16) unsigned char rn_dynamic_shared[]; \
    type *name = reinterpret_cast<type *> (rn_dynamic_shared)

  /* Of functions that wait: the line of their caller is what the simulation compares. */
  #define RN_SITE_PARAMETERS
  #define RN_SITE
  /* Accesses of several bytes need addresses that are multiples of them; the simulation checks. */
  #define RN_CHECK_ALIGNED(address, bytes) ((void) 0)

#endif

/* for (int64_t i...) over 0 .. n - 1 with all threads of a grid of one dimension. */
#define RN_FOR_EACH(i, n)                                                    \
  for (int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (int64_t) gridDim.x * blockDim.x)

/* Blocks for RN_FOR_EACH over @n items, @per_block at a time: enough to fill any device, never 0. */
static inline unsigned
rn_n_blocks (int64_t n, int per_block)
{
  const int64_t most = 4096, blocks = (n + per_block - 1) / per_block;
  return (unsigned) (blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/*
 * In a launcher (a function that returns cudaError_t): the code with T as float, __half or __nv_bfloat16;
 * returns cudaErrorInvalidValue for other types.
 */
#define RN_SWITCH_FLOAT(dtype, T, ...) \
  if ((dtype) == RN_F32)               \
    {                                  \
      using T = float;                 \
      __VA_ARGS__;                     \
    }                                  \
  else if ((dtype) == RN_F16)          \
    {                                  \
      using T = __half;                \
      __VA_ARGS__;                     \
    }                                  \
  else if ((dtype) == RN_BF16)         \
    {                                  \
      using T = __nv_bfloat16;         \
      __VA_ARGS__;                     \
    }                                  \
  else                                 \
    return cudaErrorInvalidValue

/* ---- floats ---- */

/*
 * Conversions, bit for bit those of kernels/half.h: to nearest, ties to even; what is too large becomes
 * infinite; a NaN keeps its sign and upper bits (hardware would make all NaNs one).
 */
static inline __device__ float
rn_to_float (float value)
{
  return value;
}

static inline __device__ float
rn_to_float (__half value)
{
  const unsigned bits = __half_as_ushort (value), size = bits & 0x7fff;
  const float result = __half2float (value);
  return size > 0x7c00 ? __uint_as_float ((bits & 0x8000) << 16 | 0x7fc00000 | size << 13) : result;
}

static inline __device__ float
rn_to_float (__nv_bfloat16 value)
{
  return __uint_as_float ((unsigned) __bfloat16_as_ushort (value) << 16);
}

template <typename T> __device__ inline T rn_from_float (float value) = delete;

template <>
__device__ inline float
rn_from_float<float> (float value)
{
  return value;
}

template <>
__device__ inline __half
rn_from_float<__half> (float value)
{
  const unsigned word = __float_as_uint (value), size = word & 0x7fffffff;
  const unsigned nan = 0x7e00 | (size >> 13 & 0x3ff) | (word >> 16 & 0x8000);
  const unsigned short bits = __half_as_ushort (__float2half_rn (value));
  return __ushort_as_half (size > 0x7f800000 ? (unsigned short) nan : bits);
}

template <>
__device__ inline __nv_bfloat16
rn_from_float<__nv_bfloat16> (float value)
{
  const unsigned word = __float_as_uint (value);
  const unsigned rounded = (word + 0x7fff + (word >> 16 & 1)) >> 16;
  return __ushort_as_bfloat16 (
      (unsigned short) ((word & 0x7fffffff) > 0x7f800000 ? word >> 16 | 0x40 : rounded));
}

/* Element @i as a float, and a float rounded to element @i. */
template <typename T>
__device__ inline float
rn_load (const T *array, int64_t i)
{
  return rn_to_float (array[i]);
}

template <typename T>
__device__ inline void
rn_store (T *array, int64_t i, float value)
{
  array[i] = rn_from_float<T> (value);
}

/* ---- reductions ---- */

/* Thread in its block, whatever its shape. */
static inline __device__ int
rn_thread_index (void)
{
  return (int) (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

static inline __device__ int
rn_block_size (void)
{
  return (int) (blockDim.x * blockDim.y * blockDim.z);
}

struct RnSum
{
  template <typename T> __device__ T operator() (T a, T b) const
  {
    return a + b;
  }
};

/* Of numbers; a NaN is lost. */
struct RnMax
{
  template <typename T> __device__ T operator() (T a, T b) const
  {
    return a > b ? a : b;
  }
};

/* Over the 32 lanes of a full warp, to all of them; @combine must commute. */
template <typename T, typename F>
__device__ inline T
rn_warp_reduce (T value, F combine)
{
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine (value, __shfl_xor_sync (0xffffffffu, value, distance));
  return value;
}

/*
 * Over all threads of a block, to all of them, in a fixed tree; every thread must come. The block has a
 * multiple of 32 threads. @shared: 32 elements of shared memory, free again for the next reduction;
 * @neutral: what changes nothing.
 */
template <typename T, typename F>
__device__ inline T
rn_block_reduce (T value, T *shared, T neutral, F combine RN_SITE_PARAMETERS)
{
  const int thread = rn_thread_index (), lane = thread % 32, n_warps = rn_block_size () / 32;

  value = rn_warp_reduce (value, combine);
  __syncthreads (RN_SITE); /* the reduction before this one has been read */
  if (lane == 0)
    shared[thread / 32] = value;
  __syncthreads (RN_SITE);
  return rn_warp_reduce (lane < n_warps ? shared[lane] : neutral, combine);
}

#ifdef RN_SIM
  #define RN_COMMA_SITE , RN_SITE
#else
  #define RN_COMMA_SITE
#endif

/* The sum of float, double or integers. */
template <typename T>
__device__ inline T
rn_block_sum (T value, T *shared RN_SITE_PARAMETERS)
{
  return rn_block_reduce (value, shared, T (0), RnSum () RN_COMMA_SITE);
}

/* The largest; @least: not above any of them. */
template <typename T>
__device__ inline T
rn_block_max (T value, T *shared, T least RN_SITE_PARAMETERS)
{
  return rn_block_reduce (value, shared, least, RnMax () RN_COMMA_SITE);
}

#endif
