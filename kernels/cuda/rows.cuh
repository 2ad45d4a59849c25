/*
 * rows.cuh: maps of features, walked row by row. A map in NCHW is one in NHWC with a single channel and n * c
 * images, so that kernels know one layout: [images][h][w][c].
 *
 * A block covers a few rows and a part of their elements, pixel by pixel, a pack of channels per thread.
 */
#ifndef KERNELS_CUDA_ROWS_CUH
#define KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/launch.h"
#include "kernels/cuda/pack.cuh"

/*
 * Division of numbers below 2^31 by a constant, as a product with its reciprocal of 33 bits (Granlund and
 * Montgomery 1994, figure 4.1).
 */
struct RnDivisor
{
  unsigned divisor, factor, shift;

  explicit RnDivisor (int64_t d) : divisor ((unsigned) d), shift (0)
  {
    while (((uint64_t) 1 << shift) < divisor)
      shift++;
    factor = (unsigned) (((((uint64_t) 1 << shift) - divisor) << 32) / divisor + 1);
  }

  __device__ unsigned quotient (unsigned n) const
  {
    return ((unsigned) ((uint64_t) n * factor >> 32) + n) >> shift;
  }
};

struct RnRows
{
  int images, h, w, c;

  explicit RnRows (const RnCudaMap *map)
      : images (map->nhwc ? map->n : map->n * map->c), h (map->h), w (map->w), c (map->nhwc ? map->c : 1)
  {
  }

  __device__ int64_t offset (int image, int y, int x, int channel) const
  {
    return (((int64_t) image * h + y) * w + x) * c + channel;
  }
};

/* How the threads of a grid share out the rows of a map. */
struct RnRowWalk
{
  int64_t rows;            /* of all images */
  unsigned length;         /* of a row, in packs */
  RnDivisor height, packs; /* rows of an image; packs of a pixel */

  RnRowWalk (const RnRows &map, int width)
      : rows ((int64_t) map.images * map.h), length ((unsigned) map.w * (unsigned) (map.c / width)),
        height (map.h), packs (map.c / width)
  {
  }

  dim3 block () const
  {
    unsigned x = 1;
    while (x < length && x < RN_BLOCK)
      x *= 2;
    return dim3 (x, RN_BLOCK / x);
  }

  /* Longer rows and more of them are done in further rounds. */
  dim3 grid () const
  {
    const dim3 b = block ();
    const unsigned x = rn_n_blocks (length, (int) b.x);
    return dim3 (x < 64 ? x : 64, rn_n_blocks (rows, (int) b.y));
  }

  /* Calls @body (image, y, x, c) for this thread's packs of @V channels, which begin with c. */
  template <int V, typename Body> __device__ inline void for_each (Body body) const
  {
    for (int64_t row = (int64_t) blockIdx.y * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t) gridDim.y * blockDim.y)
      {
        const unsigned image = height.quotient ((unsigned) row), y = (unsigned) row - image * height.divisor;
        for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += gridDim.x * blockDim.x)
          {
            const unsigned x = packs.quotient (i), pack = i - x * packs.divisor;
            body ((int) image, (int) y, (int) x, (int) pack * V);
          }
      }
  }
};

#endif
