/*
 * focal.cu: the sigmoid focal loss of one level and its gradient in one pass (Lin et al. 2017, arXiv
 * 1708.02002, eq. 5).
 *
 * With z = x and w = 1 - alpha for y = 0, z = -x and w = -alpha for y = 1, and p = sigmoid (z):
 *
 *   loss = |w| p^gamma softplus (z),
 *
 *   d/dx = w p^gamma (p + gamma (1 - p) softplus (z)).
 *
 * p, 1 - p and softplus are all from exp (-|x|), so that nothing cancels.
 */
#include "kernels/cuda/launch-loss.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/workspace.h"

namespace
{

/* Where logits lie, and what divides their offsets. */
struct FocalShape
{
  int64_t n; /* logits */
  bool nhwc;
  RnDivisor cells, channels, classes;
};

/* Of one anchor and class: its label lies at labels[image * label_stride + anchor]. */
struct Place
{
  int64_t image, anchor;
  unsigned k;
};

/* Logit @i after @start; both are below 2^30 within an image. */
__device__ inline Place
place_of (const FocalShape &s, int anchors, int64_t start, unsigned i)
{
  const RnDivisor &inner = s.nhwc ? s.channels : s.cells, &outer = s.nhwc ? s.cells : s.channels;
  const int64_t row = start / inner.divisor; /* the same in all threads of a block, and so is what follows */
  const unsigned in_row = (unsigned) (start - row * inner.divisor) + i;
  const int64_t image = row / outer.divisor;
  const unsigned rows_on = inner.quotient (in_row), rest = in_row - rows_on * inner.divisor;
  const unsigned in_image = (unsigned) (row - image * outer.divisor) + rows_on;
  const unsigned images_on = outer.quotient (in_image), row_of_image = in_image - images_on * outer.divisor;
  const unsigned c = s.nhwc ? rest : row_of_image, cell = s.nhwc ? row_of_image : rest;
  const unsigned a = s.classes.quotient (c);
  Place p;

  p.image = image + images_on;
  p.k = c - a * s.classes.divisor;
  p.anchor = (int64_t) cell * anchors + a;
  return p;
}

/* Replaces the logit by the slope; the loss. @SQUARE: gamma is 2 */
template <bool SQUARE>
__device__ inline float
focal_of (const RnCudaFocal &f, float negative, bool is_positive, float &x)
{
  const float z = is_positive ? -x : x, w = is_positive ? -f.alpha : negative;
  const float e = expf (-fabsf (z)), larger = 1 / (1 + e), smaller = e * larger;
  const float p = z < 0 ? smaller : larger, q = z < 0 ? larger : smaller; /* sigmoid (z), sigmoid (-z) */
  const float softplus = log1pf (e) + (z < 0 ? 0 : z);
  const float power = w * (SQUARE ? p * p : powf (p, f.gamma));

  x = power * (p + f.gamma * q * softplus);
  return fabsf (power) * softplus;
}

template <typename T, int V, bool SQUARE>
__global__ void
RN_BOUNDS (RN_BLOCK)
    focal_loss (FocalShape s, RnCudaFocal f, float negative, const T *logits, T *diff, float *parts)
{
  RN_SHARED (float, shared, [32]);
  const int64_t start = (int64_t) blockIdx.x * RN_CUDA_FOCAL_PART;
  const unsigned left = (unsigned) (s.n - start < RN_CUDA_FOCAL_PART ? s.n - start : RN_CUDA_FOCAL_PART);
  const float scale = f.weight / *f.avg * *f.grad_scale;
  float sum = 0;

  for (unsigned i = threadIdx.x * V; i < left; i += RN_BLOCK * V)
    {
      Place p = place_of (s, f.anchors, start, i);
      const int16_t *labels = f.labels + p.image * f.label_stride;
      int label = labels[p.anchor];
      float x[V];

      rn_read<V> (logits + start + i, x);
#pragma unroll
      for (int v = 0; v < V; v++)
        {
          if (label < 0)
            x[v] = 0;
          else
            {
              sum += focal_of<SQUARE> (f, negative, label == (int) p.k, x[v]);
              x[v] *= scale;
            }
          /* A pack lies in one cell (NHWC) or in one channel. */
          if (v + 1 < V && !s.nhwc)
            {
              p.anchor += f.anchors;
              label = labels[p.anchor];
            }
          else if (v + 1 < V && ++p.k == s.classes.divisor)
            {
              p.k = 0;
              label = labels[++p.anchor];
            }
        }
      if (diff != nullptr)
        rn_write<V> (diff + start + i, x);
    }
  sum = rn_block_sum (sum, shared);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

template <typename T, int V>
cudaError_t
launch (const FocalShape &s, unsigned n_parts, const RnCudaFocal *focal, const T *logits, T *diff,
        float *parts, cudaStream_t stream)
{
  const float negative = (float) (1 - (double) focal->alpha);

  if (focal->gamma == 2)
    return RN_LAUNCH ((focal_loss<T, V, true>), n_parts, RN_BLOCK, 0, stream, s, *focal, negative, logits,
                      diff, parts);
  return RN_LAUNCH ((focal_loss<T, V, false>), n_parts, RN_BLOCK, 0, stream, s, *focal, negative, logits,
                    diff, parts);
}

}

extern "C" cudaError_t
rn_cuda_launch_focal_loss (const RnCudaMap *map, RnDType t, const RnCudaFocal *focal, const void *logits,
                           void *diff, float *value, void *workspace, cudaStream_t stream)
{
  const int64_t cells = (int64_t) map->h * map->w, n = map->n * map->c * cells;
  const int64_t n_parts = rn_cuda_n_parts (n, RN_CUDA_FOCAL_PART), row = map->nhwc ? map->c : cells;
  const FocalShape s = { n, map->nhwc != 0, RnDivisor (cells), RnDivisor (map->c),
                         RnDivisor (focal->classes) };
  float *parts = static_cast<float *> (workspace);
  cudaError_t error;

  RN_SWITCH_FLOAT (t, T, {
    constexpr int V = RN_PACK_OF (T);
    const T *x = static_cast<const T *> (logits);
    T *dx = static_cast<T *> (diff);
    error = row % V == 0 && rn_is_aligned (x, 16) && rn_is_aligned (dx, 16)
                ? launch<T, V> (s, (unsigned) n_parts, focal, x, dx, parts, stream)
                : launch<T, 1> (s, (unsigned) n_parts, focal, x, dx, parts, stream);
  });
  if (error != cudaSuccess)
    return error;
  return rn_cuda_launch_loss_value (parts, n_parts, focal->weight, focal->avg, value, stream);
}
