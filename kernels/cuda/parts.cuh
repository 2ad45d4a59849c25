/*
 * parts.cuh: reductions over the channels of a map. Each channel is cut into parts that the map fixes
 * (workspace.h); a block adds up a part of one channel (NCHW) or of several (NHWC), a second launch the parts
 * of each channel.
 */
#ifndef KERNELS_CUDA_PARTS_CUH
#define KERNELS_CUDA_PARTS_CUH

#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.cuh"
#include "kernels/cuda/workspace.h"

/* The smallest power of 2 that is at least @least, or @most. */
static inline int
rn_power_of_2 (int64_t least, int most)
{
  int x = 1;
  while (x < least && x < most)
    x *= 2;
  return x;
}

/* Whether rows (NHWC: of channels, NCHW: of a plane) can be walked in packs of @width elements, 16 bytes. */
static inline bool
rn_has_packs (const RnCudaMap *map, int width, const void *a, const void *b, const void *c)
{
  const int64_t length = map->nhwc ? map->c : (int64_t) map->h * map->w;
  return length % width == 0 && rn_is_aligned (a, 16) && rn_is_aligned (b, 16) && rn_is_aligned (c, 16);
}

/* ---- sums over a part ---------------------------------------------------------------------------------- */

/* A map as the kernels see it, and the parts of a channel, for packs of a width. */
struct RnPartShape
{
  int64_t n, c, cells;
  RnCudaChannelParts parts;
  int lanes;          /* threads of a block that have channels of their own */
  int channel_blocks; /* blocks that share the channels of a part */

  RnPartShape (const RnCudaMap *map, int width)
      : n (map->n), c (map->c), cells ((int64_t) map->h * map->w),
        parts (rn_cuda_channel_parts (n, cells, map->nhwc)),
        lanes (map->nhwc ? rn_power_of_2 (c / width, 32) : 1),
        channel_blocks (map->nhwc ? (int) rn_cuda_n_parts (c / width, lanes) : map->c)
  {
  }

  dim3 block () const
  {
    return dim3 (lanes, RN_BLOCK / lanes);
  }

  unsigned grid () const
  {
    return (unsigned) (parts.parts * channel_blocks);
  }
};

/* The packs of one channel (NCHW), or of V channels from @c on (NHWC), in a part. */
template <int V, bool NHWC> struct RnPartWalk
{
  int64_t first; /* offset of the first */
  int64_t step;  /* to the next, in elements */
  int64_t image; /* likewise to the next image */
  int n, per_image;

  __device__ RnPartWalk (const RnPartShape &s, int64_t part, int64_t c)
  {
    if (NHWC)
      {
        const int64_t row = part * s.parts.length, left = s.n * s.cells - row;
        first = row * s.c + c;
        step = s.c;
        n = c < s.c ? (int) (left < s.parts.length ? left : s.parts.length) : 0;
        per_image = n;
        image = 0;
      }
    else
      {
        const int64_t from = part / s.parts.per_plane * s.parts.images, left = s.n - from;
        const int64_t cell = part % s.parts.per_plane * s.parts.length, cells = s.cells - cell;
        first = (from * s.c + c) * s.cells + cell;
        step = V;
        image = s.c * s.cells;
        per_image = (int) ((cells < s.parts.length ? cells : s.parts.length) / V);
        n = per_image * (int) (left < s.parts.images ? left : s.parts.images);
      }
  }

  __device__ int64_t at (int i) const
  {
    if (n == per_image)
      return first + i * step;
    return first + i / per_image * image + i % per_image * step;
  }
};

/* The first channel of this thread, of V. Its part is blockIdx.x / channel_blocks. */
template <int V, bool NHWC>
__device__ inline int64_t
rn_first_channel (const RnPartShape &s)
{
  const int64_t block = blockIdx.x % s.channel_blocks;
  return NHWC ? (block * blockDim.x + threadIdx.x) * V : block;
}

/*
 * Merges what the threads of each column (of equal threadIdx.x) have, in a tree; the first row has the
 * result. @M: has put () and merge_shared (), see RnMoments; @shared: M::SIZE * RN_BLOCK.
 */
template <typename M>
__device__ inline void
rn_merge_columns (M &own, float *shared)
{
  const int thread = rn_thread_index ();

  own.put (shared + thread);
  for (int rows = (int) blockDim.y / 2; rows > 0; rows /= 2)
    {
      __syncthreads ();
      if ((int) threadIdx.y < rows)
        {
          own.merge_shared (shared + thread + rows * (int) blockDim.x);
          own.put (shared + thread);
        }
    }
}

/* ---- sums over the parts of a channel ------------------------------------------------------------------ */

/* Channels of a block that adds up parts, and threads of each. */
#define RN_FINISH_CHANNELS 8
#define RN_FINISH_THREADS (RN_BLOCK / RN_FINISH_CHANNELS)

static inline dim3
rn_finish_block (void)
{
  return dim3 (RN_FINISH_CHANNELS, RN_FINISH_THREADS);
}

static inline unsigned
rn_finish_grid (int64_t c)
{
  return (unsigned) rn_cuda_n_parts (c, RN_FINISH_CHANNELS);
}

/* The channel of this thread, in such a launch; it may lie behind the last. */
__device__ inline int64_t
rn_finish_channel (void)
{
  return (int64_t) blockIdx.x * RN_FINISH_CHANNELS + threadIdx.x;
}

/* Sums of the threads of a column, to all of them, in a tree. @shared: [RN_BLOCK] */
__device__ inline double
rn_column_sum (double value, double *shared)
{
  const int thread = rn_thread_index ();

  __syncthreads (); /* the sums before these have been read */
  shared[thread] = value;
  for (int rows = RN_FINISH_THREADS / 2; rows > 0; rows /= 2)
    {
      __syncthreads ();
      if ((int) threadIdx.y < rows)
        shared[thread] += shared[thread + rows * RN_FINISH_CHANNELS];
    }
  __syncthreads ();
  return shared[threadIdx.x];
}

#endif
