/*
 * normalize.cu: the bytes of a batch become the model's input, by table, so that bits are those of the CPU. A
 * block keeps the table of its image in shared memory and walks through packs of pixels of a row.
 */
#include "kernels/cuda/launch-normalize.h"
#include "kernels/cuda/rows.cuh"

namespace
{

/* Packs of a thread, so that reading a table is little beside them. */
#define ROUNDS 4

template <typename T, int V, bool NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) normalize (int images, int h, RnDivisor packs_of_row, const uint8_t *pixels,
                                const int32_t *sizes, const float *tables, T *dst)
{
  using Bytes = RnElements<uint8_t, V>;
  RN_SHARED (float, table, [3][256]);
  const unsigned packs = (unsigned) h * packs_of_row.divisor;
  const int64_t plane = (int64_t) packs * V;

  for (int image = blockIdx.y; image < images; image += gridDim.y)
    {
      const int height = sizes[2 * (int64_t) image], width = sizes[2 * (int64_t) image + 1];
      const int64_t base = 3 * image * plane;

      for (int i = threadIdx.x; i < 3 * 256; i += blockDim.x)
        table[i / 256][i % 256] = tables[(int64_t) image * 3 * 256 + i];
      __syncthreads ();
      for (unsigned p = blockIdx.x * blockDim.x + threadIdx.x; p < packs; p += gridDim.x * blockDim.x)
        {
          const int y = (int) packs_of_row.quotient (p), x = (int) (p - y * packs_of_row.divisor) * V;
          const int64_t first = (int64_t) p * V;
          const uint8_t *from = pixels + base + 3 * first;
          Bytes bytes[3];
          float value[3][V]; /* by channel; in NHWC: in the order of memory */

          RN_CHECK_ALIGNED (from, V);
#pragma unroll
          for (int k = 0; k < 3; k++)
            bytes[k] = reinterpret_cast<const Bytes *> (from)[k];
#pragma unroll
          for (int i = 0; i < 3 * V; i++)
            {
              const int pixel = i / 3, c = i % 3, row = NHWC ? i / V : c, column = NHWC ? i % V : pixel;
              const bool exists = y < height && x + pixel < width;
              value[row][column] = exists ? table[c][bytes[i / V].values[i % V]] : 0;
            }
#pragma unroll
          for (int k = 0; k < 3; k++)
            rn_write<V> (dst + base + (NHWC ? 3 * first + k * V : k * plane + first), value[k]);
        }
      __syncthreads (); /* the next table is written where this one was read */
    }
}

}

/* ---- launchers ---- */

template <typename T, int V>
static cudaError_t
launch (const RnCudaMap *map, const uint8_t *pixels, const int32_t *sizes, const float *table, T *dst,
        cudaStream_t stream)
{
  const int packs_of_row = map->w / V;
  const dim3 grid (rn_n_blocks ((int64_t) map->h * packs_of_row, RN_BLOCK * ROUNDS), rn_n_blocks (map->n, 1));

  if (map->nhwc)
    return RN_LAUNCH ((normalize<T, V, true>), grid, RN_BLOCK, 0, stream, map->n, map->h,
                      RnDivisor (packs_of_row), pixels, sizes, table, dst);
  return RN_LAUNCH ((normalize<T, V, false>), grid, RN_BLOCK, 0, stream, map->n, map->h,
                    RnDivisor (packs_of_row), pixels, sizes, table, dst);
}

cudaError_t
rn_cuda_launch_normalize (const RnCudaMap *map, RnDType t, const uint8_t *pixels, const int32_t *sizes,
                          const float *table, void *dst, cudaStream_t stream)
{
  constexpr int V = 4;

  RN_SWITCH_FLOAT (t, T,
                   return map->w % V == 0 && rn_is_aligned (pixels, V) && rn_is_aligned (dst, V * sizeof (T))
                              ? launch<T, V> (map, pixels, sizes, table, (T *) dst, stream)
                              : launch<T, 1> (map, pixels, sizes, table, (T *) dst, stream));
}
