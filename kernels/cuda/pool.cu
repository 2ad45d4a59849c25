/*
 * pool.cu: max and average pooling. Gradients are gathered: a cell of the source looks for the windows that
 * cover it, in their order, so that sums have the order of the reference and no atomics.
 */
#include "kernels/cuda/launch-pool.h"
#include "kernels/cuda/rows.cuh"

namespace
{

/* Cells [first, last) of an axis. */
struct Range
{
  int first, last;
};

/* Cells of the source, of @size, under window @out, from the window's first cell on. */
__device__ static inline Range
cells_of (const RnCudaWindow &w, int axis, int out, int size)
{
  const int start = out * w.stride[axis] - w.pad[axis];
  return { start < 0 ? -start : 0, size - start < w.kernel[axis] ? size - start : w.kernel[axis] };
}

/* Windows, of @size, that cover cell @in of the source. */
__device__ static inline Range
windows_of (const RnCudaWindow &w, int axis, int in, int size)
{
  const int at = in + w.pad[axis], before = at - w.kernel[axis];
  const int last = at / w.stride[axis] + 1;
  return { before < 0 ? 0 : before / w.stride[axis] + 1, last < size ? last : size };
}

/* Places in a window, a byte each, @V at once. */
template <int V> struct alignas (V) Places
{
  uint8_t values[V];
};

/* ---- kernels ---- */

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) max_pool_fwd (RnRows src, RnRows dst, RnRowWalk walk, RnCudaWindow window, const T *x,
                                   T *y, uint8_t *index)
{
  walk.for_each<V> ([=] (int image, int oy, int ox, int c) {
    const Range us = cells_of (window, 0, oy, src.h), vs = cells_of (window, 1, ox, src.w);
    const int top = oy * window.stride[0] - window.pad[0], left = ox * window.stride[1] - window.pad[1];
    float best[V] = {};
    Places<V> places = {};
    for (int u = us.first; u < us.last; u++)
      for (int v = vs.first; v < vs.last; v++)
        {
          float value[V];
          const bool is_first = u == us.first && v == vs.first;
          rn_read<V> (x + src.offset (image, top + u, left + v, c), value);
          for (int k = 0; k < V; k++)
            if (is_first || value[k] > best[k] || value[k] != value[k])
              {
                best[k] = value[k];
                places.values[k] = (uint8_t) (u * window.kernel[1] + v);
              }
        }
    rn_write<V> (y + dst.offset (image, oy, ox, c), best);
    if (index != nullptr)
      *reinterpret_cast<Places<V> *> (index + dst.offset (image, oy, ox, c)) = places;
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) max_pool_bwd (RnRows src, RnRows dst, RnRowWalk walk, RnCudaWindow window, const T *dy,
                                   const uint8_t *index, T *dx)
{
  walk.for_each<V> ([=] (int image, int sy, int sx, int c) {
    const Range ys = windows_of (window, 0, sy, dst.h), xs = windows_of (window, 1, sx, dst.w);
    float sum[V] = {};
    for (int y = ys.first; y < ys.last; y++)
      for (int x = xs.first; x < xs.last; x++)
        {
          const int u = sy + window.pad[0] - y * window.stride[0];
          const int v = sx + window.pad[1] - x * window.stride[1];
          float grad[V];
          const int64_t at = dst.offset (image, y, x, c);
          const Places<V> places = *reinterpret_cast<const Places<V> *> (index + at);
          rn_read<V> (dy + at, grad);
          for (int k = 0; k < V; k++)
            sum[k] += places.values[k] == u * window.kernel[1] + v ? grad[k] : 0;
        }
    rn_write<V> (dx + src.offset (image, sy, sx, c), sum);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK)
    avg_pool_fwd (RnRows src, RnRows dst, RnRowWalk walk, RnCudaWindow window, const T *x, T *y)
{
  walk.for_each<V> ([=] (int image, int oy, int ox, int c) {
    const Range us = cells_of (window, 0, oy, src.h), vs = cells_of (window, 1, ox, src.w);
    const int top = oy * window.stride[0] - window.pad[0], left = ox * window.stride[1] - window.pad[1];
    double sum[V] = {};
    float mean[V];
    for (int u = us.first; u < us.last; u++)
      for (int v = vs.first; v < vs.last; v++)
        {
          float value[V];
          rn_read<V> (x + src.offset (image, top + u, left + v, c), value);
          for (int k = 0; k < V; k++)
            sum[k] += value[k];
        }
    /* the division in F32: those in double are slow on most devices */
    const float count = (float) ((us.last - us.first) * (vs.last - vs.first));
    for (int k = 0; k < V; k++)
      mean[k] = (float) sum[k] / count;
    rn_write<V> (y + dst.offset (image, oy, ox, c), mean);
  });
}

template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK)
    avg_pool_bwd (RnRows src, RnRows dst, RnRowWalk walk, RnCudaWindow window, const T *dy, T *dx)
{
  walk.for_each<V> ([=] (int image, int sy, int sx, int c) {
    const Range ys = windows_of (window, 0, sy, dst.h), xs = windows_of (window, 1, sx, dst.w);
    float sum[V] = {};
    for (int y = ys.first; y < ys.last; y++)
      for (int x = xs.first; x < xs.last; x++)
        {
          const Range us = cells_of (window, 0, y, src.h), vs = cells_of (window, 1, x, src.w);
          const float count = (float) ((us.last - us.first) * (vs.last - vs.first));
          float grad[V];
          rn_read<V> (dy + dst.offset (image, y, x, c), grad);
          for (int k = 0; k < V; k++)
            sum[k] += grad[k] / count;
        }
    rn_write<V> (dx + src.offset (image, sy, sx, c), sum);
  });
}

}

/* ---- launchers ---- */

/* Whether a thread takes a pack of channels: rows of pixels are then aligned as the maps are. */
template <typename T>
static bool
takes_packs (const RnRows &rows, const void *a, const void *b, const uint8_t *index)
{
  constexpr int V = RN_PACK_OF (T);
  return rows.c % V == 0 && rn_is_aligned (a, 16) && rn_is_aligned (b, 16) && rn_is_aligned (index, V);
}

/* A thread writes a pack of @OUT, a map of @rows. */
#define LAUNCH(kernel, T, rows, packs, ...)                                                              \
  do                                                                                                     \
    {                                                                                                    \
      constexpr int V = RN_PACK_OF (T);                                                                  \
      if (packs)                                                                                         \
        {                                                                                                \
          const RnRowWalk walk (rows, V);                                                                \
          return RN_LAUNCH ((kernel<T, V>), walk.grid (), walk.block (), 0, stream, s, d, walk, *window, \
                            __VA_ARGS__);                                                                \
        }                                                                                                \
      const RnRowWalk walk (rows, 1);                                                                    \
      return RN_LAUNCH ((kernel<T, 1>), walk.grid (), walk.block (), 0, stream, s, d, walk, *window,     \
                        __VA_ARGS__);                                                                    \
    }                                                                                                    \
  while (0)

template <typename T>
static cudaError_t
launch_max_pool_fwd (const RnRows &s, const RnRows &d, const RnCudaWindow *window, const T *x, T *y,
                     uint8_t *index, cudaStream_t stream)
{
  LAUNCH (max_pool_fwd, T, d, takes_packs<T> (d, x, y, index), x, y, index);
}

template <typename T>
static cudaError_t
launch_max_pool_bwd (const RnRows &s, const RnRows &d, const RnCudaWindow *window, const T *dy,
                     const uint8_t *index, T *dx, cudaStream_t stream)
{
  LAUNCH (max_pool_bwd, T, s, takes_packs<T> (s, dy, dx, index), dy, index, dx);
}

template <typename T>
static cudaError_t
launch_avg_pool_fwd (const RnRows &s, const RnRows &d, const RnCudaWindow *window, const T *x, T *y,
                     cudaStream_t stream)
{
  LAUNCH (avg_pool_fwd, T, d, takes_packs<T> (d, x, y, nullptr), x, y);
}

template <typename T>
static cudaError_t
launch_avg_pool_bwd (const RnRows &s, const RnRows &d, const RnCudaWindow *window, const T *dy, T *dx,
                     cudaStream_t stream)
{
  LAUNCH (avg_pool_bwd, T, s, takes_packs<T> (s, dy, dx, nullptr), dy, dx);
}

cudaError_t
rn_cuda_launch_max_pool_fwd (const RnCudaMap *src, const RnCudaMap *dst, const RnCudaWindow *window,
                             RnDType t, const void *x, void *y, uint8_t *index, cudaStream_t stream)
{
  const RnRows s (src), d (dst);
  RN_SWITCH_FLOAT (t, T, return launch_max_pool_fwd (s, d, window, (const T *) x, (T *) y, index, stream));
}

cudaError_t
rn_cuda_launch_max_pool_bwd (const RnCudaMap *src, const RnCudaMap *dst, const RnCudaWindow *window,
                             RnDType t, const void *dy, const uint8_t *index, void *dx, cudaStream_t stream)
{
  const RnRows s (src), d (dst);
  RN_SWITCH_FLOAT (t, T, return launch_max_pool_bwd (s, d, window, (const T *) dy, index, (T *) dx, stream));
}

cudaError_t
rn_cuda_launch_avg_pool_fwd (const RnCudaMap *src, const RnCudaMap *dst, const RnCudaWindow *window,
                             RnDType t, const void *x, void *y, cudaStream_t stream)
{
  const RnRows s (src), d (dst);
  RN_SWITCH_FLOAT (t, T, return launch_avg_pool_fwd (s, d, window, (const T *) x, (T *) y, stream));
}

cudaError_t
rn_cuda_launch_avg_pool_bwd (const RnCudaMap *src, const RnCudaMap *dst, const RnCudaWindow *window,
                             RnDType t, const void *dy, void *dx, cudaStream_t stream)
{
  const RnRows s (src), d (dst);
  RN_SWITCH_FLOAT (t, T, return launch_avg_pool_bwd (s, d, window, (const T *) dy, (T *) dx, stream));
}
