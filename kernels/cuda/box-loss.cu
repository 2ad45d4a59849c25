/*
 * box-loss.cu: L1 or smooth L1 over the matched anchors of one level, and its gradient, in one pass and in
 * place: a thread takes an anchor and looks it up in the list of positives, which is sorted. So nothing is
 * scattered, and no second copy of the gradient is needed.
 */
#include "kernels/cuda/launch-loss.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/workspace.h"

namespace
{

struct BoxShape
{
  int64_t n; /* anchors of all images */
  bool nhwc;
  RnDivisor per_image, cells;
};

/* The entry of an anchor, or NULL. */
__device__ inline const RnCudaPositive *
find_positive (const RnCudaPositive *positives, int64_t n, int64_t image, int64_t anchor)
{
  int64_t low = 0, high = n; /* the first that does not come before */

  while (low < high)
    {
      const int64_t middle = low + (high - low) / 2;
      const RnCudaPositive *p = &positives[middle];
      if (p->image < image || (p->image == image && p->anchor < anchor))
        low = middle + 1;
      else
        high = middle;
    }
  if (low < n && positives[low].image == image && positives[low].anchor == anchor)
    return &positives[low];
  return nullptr;
}

/* L1 (beta 0) or smooth L1: e^2 / (2 beta) below beta, |e| - beta / 2 from there on. Replaces e by the slope.
 */
__device__ inline float
smooth_l1 (float beta, float &e)
{
  const float size = fabsf (e);

  if (size < beta)
    {
      const float loss = e * e / (2 * beta);
      e /= beta;
      return loss;
    }
  e = e > 0 ? 1 : e < 0 ? -1 : e; /* 0 at equality, NaN for NaN */
  return size - beta / 2;
}

/* @V: 4 where the deltas of an anchor lie together and can be read at once, else 1 */
template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) box_loss (BoxShape s, RnCudaBox b, const T *pred, T *diff, float *parts)
{
  RN_SHARED (float, shared, [32]);
  const int64_t start = (int64_t) blockIdx.x * RN_CUDA_BOX_PART, first_image = start / s.per_image.divisor;
  const unsigned first = (unsigned) (start - first_image * s.per_image.divisor);
  const unsigned left = (unsigned) (s.n - start < RN_CUDA_BOX_PART ? s.n - start : RN_CUDA_BOX_PART);
  const int64_t step = s.nhwc ? 1 : s.cells.divisor; /* from a delta to the next */
  const int64_t given = *b.count, count = given < 0 ? 0 : given < b.capacity ? given : b.capacity;
  const float scale = b.weight / *b.avg * *b.grad_scale;
  float sum = 0;

  for (unsigned i = threadIdx.x; i < left; i += RN_BLOCK)
    {
      /* NHWC: anchors in their order; NCHW: cell by cell, for each anchor of a cell. */
      const unsigned images_on = s.per_image.quotient (first + i);
      const unsigned in_image = first + i - images_on * s.per_image.divisor;
      const unsigned a = s.cells.quotient (in_image), cell = in_image - a * s.cells.divisor;
      const int64_t image = first_image + images_on;
      const int64_t anchor = b.anchor_offset + (s.nhwc ? in_image : (int64_t) cell * b.anchors + a);
      const int64_t at = s.nhwc ? 4 * (start + i) : (image * b.anchors + a) * 4 * s.cells.divisor + cell;
      const RnCudaPositive *positive = find_positive (b.positives, count, image, anchor);
      float e[4] = {};

      if (positive == nullptr && diff == nullptr)
        continue;
      if (positive != nullptr)
        {
          if (V == 4)
            rn_read<4> (pred + at, e);
          else
            for (int d = 0; d < 4; d++)
              e[d] = rn_load (pred, at + d * step);
          for (int d = 0; d < 4; d++)
            {
              e[d] -= positive->target[d];
              sum += smooth_l1 (b.beta, e[d]);
              e[d] *= scale;
            }
        }
      if (diff == nullptr)
        continue;
      if (V == 4)
        rn_write<4> (diff + at, e);
      else
        for (int d = 0; d < 4; d++)
          rn_store (diff, at + d * step, e[d]);
    }
  sum = rn_block_sum (sum, shared);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

}

extern "C" cudaError_t
rn_cuda_launch_box_loss (const RnCudaMap *map, RnDType t, const RnCudaBox *box, const void *pred, void *diff,
                         float *value, void *workspace, cudaStream_t stream)
{
  const int64_t cells = (int64_t) map->h * map->w, per_image = cells * box->anchors;
  const int64_t n_parts = rn_cuda_n_parts (map->n * per_image, RN_CUDA_BOX_PART);
  const BoxShape s = { map->n * per_image, map->nhwc != 0, RnDivisor (per_image), RnDivisor (cells) };
  float *parts = static_cast<float *> (workspace);
  cudaError_t error;

  RN_SWITCH_FLOAT (t, T, {
    const T *x = static_cast<const T *> (pred);
    T *dx = static_cast<T *> (diff);
    if (map->nhwc && rn_is_aligned (x, 16) && rn_is_aligned (dx, 16))
      error = RN_LAUNCH ((box_loss<T, 4>), (unsigned) n_parts, RN_BLOCK, 0, stream, s, *box, x, dx, parts);
    else
      error = RN_LAUNCH ((box_loss<T, 1>), (unsigned) n_parts, RN_BLOCK, 0, stream, s, *box, x, dx, parts);
  });
  if (error != cudaSuccess)
    return error;
  return rn_cuda_launch_loss_value (parts, n_parts, box->weight, box->avg, value, stream);
}
