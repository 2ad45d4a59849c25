/*
 * pack.cuh: elements as floats, several per access: 4 floats or 8 halves are 16 bytes, the most that a thread
 * reads at once. Vectors are walked in packs where all their addresses allow it, in single elements else.
 */
#ifndef KERNELS_CUDA_PACK_CUH
#define KERNELS_CUDA_PACK_CUH

#include "kernels/cuda/kernel.cuh"
#include <string.h>

/* Threads of a block. */
#define RN_BLOCK 256

/* Elements of a pack of 16 bytes. */
#define RN_PACK_OF(T) (16 / (int) sizeof (T))

/* A number of elements as a type, so that one lambda serves whole packs and what is left. */
template <int V> struct RnWidth
{
  static constexpr int value = V;
};

/* @V elements that are read at once; more than 16 bytes are several of these. */
template <typename T, int V> struct alignas (V * sizeof (T) < 16 ? V * sizeof (T) : 16) RnElements
{
  T values[V];
};

/* @p is aligned to the pack, or to 16 bytes where that is larger. */
template <int V, typename T>
__device__ inline RnElements<T, V>
rn_read_pack (const T *p)
{
  RN_CHECK_ALIGNED (p, (int) alignof (RnElements<T, V>));
  return *reinterpret_cast<const RnElements<T, V> *> (p);
}

template <int V, typename T>
__device__ inline void
rn_unpack (const RnElements<T, V> &pack, float (&values)[V])
{
#pragma unroll
  for (int k = 0; k < V; k++)
    values[k] = rn_to_float (pack.values[k]);
}

template <int V, typename T>
__device__ inline void
rn_read (const T *p, float (&values)[V])
{
  rn_unpack (rn_read_pack<V> (p), values);
}

/*
 * To global memory, and at once if it is 16 bytes: nvcc takes a plain store apart where the elements are
 * needed by themselves as well.
 */
template <int V, typename T>
__device__ inline void
rn_write_pack (T *p, const RnElements<T, V> &pack)
{
  RN_CHECK_ALIGNED (p, (int) alignof (RnElements<T, V>));
  if constexpr (sizeof pack == sizeof (uint4))
    {
      uint4 words;
      memcpy (&words, &pack, sizeof words);
      __stwb (reinterpret_cast<uint4 *> (p), words);
    }
  else
    *reinterpret_cast<RnElements<T, V> *> (p) = pack;
}

/* Rounds to nearest even. */
template <typename T, int V>
__device__ inline RnElements<T, V>
rn_pack (const float (&values)[V])
{
  RnElements<T, V> pack;
#pragma unroll
  for (int k = 0; k < V; k++)
    pack.values[k] = rn_from_float<T> (values[k]);
  return pack;
}

template <int V, typename T>
__device__ inline void
rn_write (T *p, const float (&values)[V])
{
  RN_CHECK_ALIGNED (p, (int) alignof (RnElements<T, V>));
  *reinterpret_cast<RnElements<T, V> *> (p) = rn_pack<T> (values);
}

/* Calls @body (RnWidth, i) for elements i, i + 1, ... of @n: packs of @V, then what is left one by one. */
template <int V, typename Body>
__device__ inline void
rn_for_each_pack (int64_t n, Body body)
{
  RN_FOR_EACH (pack, n / V)
    body (RnWidth<V> (), pack * V);
  if constexpr (V > 1)
    {
      RN_FOR_EACH (rest, n % V)
        body (RnWidth<1> (), n - n % V + rest);
    }
}

/* Whether a thread may read @bytes at once from @p; NULL is read by none. */
static inline bool
rn_is_aligned (const void *p, int bytes)
{
  return reinterpret_cast<uintptr_t> (p) % (unsigned) bytes == 0;
}

#endif
