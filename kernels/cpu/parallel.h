/*
 * parallel.h: how our own kernels use threads. Work is cut into chunks whose borders depend on sizes only;
 * partial sums are stored per chunk and added in order by one thread. So results have the same bits for any
 * number of threads.
 */
#ifndef KERNELS_CPU_PARALLEL_H
#define KERNELS_CPU_PARALLEL_H

#include <glib.h>
#include <stdint.h>
#include <string.h>

/*
 * Marks the innermost function of a kernel: compiled for several instruction sets, the best one is chosen
 * when the program is loaded. It must contain no OpenMP parallel region, whose body would stay a single copy.
 * Contraction is off, so elementwise results have equal bits in all.
 */
#if defined __x86_64__ && defined __gnu_linux__ && __GNUC__ >= 12 && !defined __clang__ \
    && !defined __SANITIZE_THREAD__
  #define RN_CLONES __attribute__ ((target_clones ("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
  #define RN_CLONES
#endif

/*
 * Elements per chunk of flat loops: 64 KiB of floats, small against a cache and large against the cost of
 * handing out a chunk.
 */
#define RN_CHUNK 16384

static inline int64_t
rn_n_chunks (int64_t elements)
{
  return (elements + RN_CHUNK - 1) / RN_CHUNK;
}

static inline void
rn_parallel_copy (void *dst, const void *src, gsize bytes)
{
  const int64_t piece = RN_CHUNK * (int64_t) sizeof (float), total = (int64_t) bytes;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < total; at += piece)
    memcpy ((guint8 *) dst + at, (const guint8 *) src + at, (gsize) MIN (piece, total - at));
}

static inline void
rn_parallel_zero (void *dst, gsize bytes)
{
  const int64_t piece = RN_CHUNK * (int64_t) sizeof (float), total = (int64_t) bytes;
#pragma omp parallel for schedule(static)
  for (int64_t at = 0; at < total; at += piece)
    memset ((guint8 *) dst + at, 0, (gsize) MIN (piece, total - at));
}

/*
 * Adds in order, pairs first: the error grows with the depth of the tree, not with its width. Overwrites
 * @partial.
 */
static inline double
rn_tree_sum (double *partial, int64_t n)
{
  for (int64_t step = 1; step < n; step *= 2)
    for (int64_t i = 0; i + step < n; i += 2 * step)
      partial[i] += partial[i + step];
  return n > 0 ? partial[0] : 0;
}

#endif
