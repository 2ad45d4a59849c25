/*
 * move.cu: another layout or type, nearest upsampling and its gradient. The gradient is gathered: a coarse
 * cell adds up the fine ones that lie in it, in the order of the reference.
 */
#include "kernels/cuda/launch-move.h"
#include "kernels/cuda/rows.cuh"

namespace
{

/* ---- layout and type ---- */

template <typename S, typename D, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) cast (int64_t n, const S *src, D *dst)
{
  rn_for_each_pack<V> (n, [=] (auto width, int64_t i) {
    constexpr int W = decltype (width)::value;
    float value[W];
    rn_read<W> (src + i, value);
    rn_write<W> (dst + i, value);
  });
}

#define TILE 32
#define TILE_ROWS 8

/* dst [column][row] = src [row][column], per image, tile by tile through shared memory, so that both sides
 * are read and written along their rows. */
template <typename S, typename D>
__global__ void
RN_BOUNDS (TILE *TILE_ROWS) transpose (int images, unsigned rows, unsigned columns, RnDivisor tiles_across,
                                       unsigned tiles, const S *src, D *dst)
{
  RN_SHARED (float, tile, [TILE][TILE + 1]); /* one more: a column then lies in all banks */

  for (int image = blockIdx.y; image < images; image += gridDim.y)
    for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x)
      {
        const unsigned down = tiles_across.quotient (t), across = t - down * tiles_across.divisor;
        const unsigned row0 = down * TILE, column0 = across * TILE;
        const int64_t base = (int64_t) image * rows * columns;

        for (unsigned i = threadIdx.y; i < TILE; i += TILE_ROWS)
          if (row0 + i < rows && column0 + threadIdx.x < columns)
            tile[i][threadIdx.x] =
                rn_load<S> (src, base + (int64_t) (row0 + i) * columns + column0 + threadIdx.x);
        __syncthreads ();
        for (unsigned i = threadIdx.y; i < TILE; i += TILE_ROWS)
          if (column0 + i < columns && row0 + threadIdx.x < rows)
            rn_store (dst, base + (int64_t) (column0 + i) * rows + row0 + threadIdx.x, tile[threadIdx.x][i]);
        __syncthreads (); /* the next tile is written where this one was read */
      }
}

/* Few channels would leave most of a tile empty: a thread per element, in the order of NHWC. */
template <typename S, typename D, bool TO_NHWC>
__global__ void
RN_BOUNDS (RN_BLOCK) interleave (int images, int64_t plane, RnDivisor channels, const S *src, D *dst)
{
  const unsigned n = (unsigned) plane * channels.divisor;

  for (int image = blockIdx.y; image < images; image += gridDim.y)
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      {
        const unsigned pixel = channels.quotient (i), c = i - pixel * channels.divisor;
        const int64_t base = (int64_t) image * n, planar = base + c * plane + pixel;
        rn_store (dst, TO_NHWC ? base + i : planar, rn_load<S> (src, TO_NHWC ? planar : base + i));
      }
}

/* ---- upsampling ---- */

/* An axis of two maps: fine cell i lies in coarse cell floor (i * n_coarse / n_fine). */
struct Axis
{
  RnDivisor n_coarse, n_fine;

  Axis (int coarse, int fine) : n_coarse (coarse), n_fine (fine)
  {
  }

  __device__ int coarse_of (int fine) const
  {
    return (int) n_fine.quotient ((unsigned) fine * n_coarse.divisor);
  }

  /* First fine cell of coarse cell @coarse, or of the next one that has any. */
  __device__ int first_fine (int coarse) const
  {
    return (int) n_coarse.quotient ((unsigned) coarse * n_fine.divisor + n_coarse.divisor - 1);
  }
};

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) upsample_fwd (RnRows coarse, RnRows fine, Axis vertical, Axis horizontal, RnRowWalk walk,
                                   const T *src, const T *addend, T *dst)
{
  walk.for_each<V> ([=] (int image, int y, int x, int c) {
    const int64_t at = fine.offset (image, y, x, c);
    float value[V], other[V] = {};
    rn_read<V> (src + coarse.offset (image, vertical.coarse_of (y), horizontal.coarse_of (x), c), value);
    if (addend != nullptr)
      rn_read<V> (addend + at, other);
    for (int k = 0; k < V; k++)
      value[k] += other[k];
    rn_write<V> (dst + at, value);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) upsample_bwd (RnRows coarse, RnRows fine, Axis vertical, Axis horizontal, RnRowWalk walk,
                                   const T *src, const T *addend, T *dst)
{
  walk.for_each<V> ([=] (int image, int y, int x, int c) {
    const int64_t at = coarse.offset (image, y, x, c);
    const int bottom = vertical.first_fine (y + 1), right = horizontal.first_fine (x + 1);
    float sum[V] = {};
    if (addend != nullptr)
      rn_read<V> (addend + at, sum);
    for (int fy = vertical.first_fine (y); fy < bottom; fy++)
      for (int fx = horizontal.first_fine (x); fx < right; fx++)
        {
          float value[V];
          rn_read<V> (src + fine.offset (image, fy, fx, c), value);
          for (int k = 0; k < V; k++)
            sum[k] += value[k];
        }
    rn_write<V> (dst + at, sum);
  });
}

}

/* ---- launchers ---- */

template <typename S, typename D>
static cudaError_t
launch_reorder (const RnCudaMap *map, int dst_nhwc, const S *src, D *dst, cudaStream_t stream)
{
  const int64_t plane = (int64_t) map->h * map->w, n = plane * map->c * map->n;
  const unsigned images = rn_n_blocks (map->n, 1);

  if (!map->nhwc == !dst_nhwc || map->c == 1 || plane == 1)
    {
      constexpr int V = 16 / (sizeof (S) < sizeof (D) ? sizeof (S) : sizeof (D));
      if (rn_is_aligned (src, 16) && rn_is_aligned (dst, 16))
        return RN_LAUNCH ((cast<S, D, V>), rn_n_blocks (n / V, RN_BLOCK), RN_BLOCK, 0, stream, n, src, dst);
      return RN_LAUNCH ((cast<S, D, 1>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, src, dst);
    }
  if (map->c <= TILE / 2 && plane * map->c <= INT32_MAX)
    {
      const dim3 grid (rn_n_blocks (plane * map->c, RN_BLOCK), images);
      const RnDivisor channels (map->c);
      if (dst_nhwc)
        return RN_LAUNCH ((interleave<S, D, true>), grid, RN_BLOCK, 0, stream, map->n, plane, channels, src,
                          dst);
      return RN_LAUNCH ((interleave<S, D, false>), grid, RN_BLOCK, 0, stream, map->n, plane, channels, src,
                        dst);
    }
  const int64_t rows = map->nhwc ? plane : map->c, columns = map->nhwc ? map->c : plane;
  const int64_t down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE;
  if (down * across > INT32_MAX)
    return cudaErrorInvalidValue;
  const dim3 grid (rn_n_blocks (down * across, 1), images);
  return RN_LAUNCH ((transpose<S, D>), grid, dim3 (TILE, TILE_ROWS), 0, stream, map->n, (unsigned) rows,
                    (unsigned) columns, RnDivisor (across), (unsigned) (down * across), src, dst);
}

cudaError_t
rn_cuda_launch_reorder (const RnCudaMap *map, RnDType src_type, const void *src, int dst_nhwc,
                        RnDType dst_type, void *dst, cudaStream_t stream)
{
  RN_SWITCH_FLOAT (
      src_type, S,
      RN_SWITCH_FLOAT (dst_type, D,
                       return launch_reorder (map, dst_nhwc, (const S *) src, (D *) dst, stream)));
}

template <typename T>
static bool
takes_packs (const RnRows &rows, const void *src, const void *addend, const void *dst)
{
  return rows.c % RN_PACK_OF (T) == 0 && rn_is_aligned (src, 16) && rn_is_aligned (addend, 16)
         && rn_is_aligned (dst, 16);
}

template <typename T, int V>
static cudaError_t
launch_upsample (bool fwd, const RnRows &coarse, const RnRows &fine, const T *src, const T *addend, T *dst,
                 cudaStream_t stream)
{
  const RnRowWalk walk (fwd ? fine : coarse, V);
  const Axis vertical (coarse.h, fine.h), horizontal (coarse.w, fine.w);

  if (fwd)
    return RN_LAUNCH ((upsample_fwd<T, V>), walk.grid (), walk.block (), 0, stream, coarse, fine, vertical,
                      horizontal, walk, src, addend, dst);
  return RN_LAUNCH ((upsample_bwd<T, V>), walk.grid (), walk.block (), 0, stream, coarse, fine, vertical,
                    horizontal, walk, src, addend, dst);
}

static cudaError_t
upsample (bool fwd, const RnCudaMap *coarse, const RnCudaMap *fine, RnDType t, const void *src,
          const void *addend, void *dst, cudaStream_t stream)
{
  const RnRows c (coarse), f (fine);

  if (!rn_cuda_upsample_is_supported (coarse, fine))
    return cudaErrorInvalidValue;
  RN_SWITCH_FLOAT (
      t, T,
      return takes_packs<T> (f, src, addend, dst)
                 ? launch_upsample<T, RN_PACK_OF (T)> (fwd, c, f, (const T *) src, (const T *) addend,
                                                       (T *) dst, stream)
                 : launch_upsample<T, 1> (fwd, c, f, (const T *) src, (const T *) addend, (T *) dst, stream));
}

cudaError_t
rn_cuda_launch_upsample_fwd (const RnCudaMap *coarse, const RnCudaMap *fine, RnDType t, const void *src,
                             const void *addend, void *dst, cudaStream_t stream)
{
  return upsample (true, coarse, fine, t, src, addend, dst, stream);
}

cudaError_t
rn_cuda_launch_upsample_bwd (const RnCudaMap *coarse, const RnCudaMap *fine, RnDType t, const void *src,
                             const void *addend, void *dst, cudaStream_t stream)
{
  return upsample (false, coarse, fine, t, src, addend, dst, stream);
}

/* Products of two sizes are divided, in 31 bits. */
int
rn_cuda_upsample_is_supported (const RnCudaMap *coarse, const RnCudaMap *fine)
{
  return (int64_t) coarse->h * (fine->h + 1) <= INT32_MAX && (int64_t) coarse->w * (fine->w + 1) <= INT32_MAX;
}
