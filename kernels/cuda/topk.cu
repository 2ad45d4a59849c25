/*
 * topk.cu: the k anchors of a level with the largest class logit, image by image, with their rows.
 *
 * A rank for every anchor; then one block per image finds the k-th largest key by a radix select from the
 * top digit down, and collects the keys from there on; then each finds its place by counting those before it.
 * Keys differ, so whatever the order in which they were collected, their places are the same.
 */
#include "kernels/cuda/launch-select.h"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/workspace.h"
#include "kernels/topk-key.h"

namespace
{

/* Digits of 11 bits: 6 of them in a key, the last one of 9. */
#define DIGIT_BITS 11
#define BINS (1 << DIGIT_BITS)
/* Threads of the block that selects: two bins each. */
#define SELECT_THREADS (BINS / 2)

/* Logits or deltas of the anchors: channels anchor * row + i. */
struct Rows
{
  int64_t cells;
  int channels, row;
  bool nhwc;

  __device__ int64_t at (int64_t image, int64_t cell, int64_t anchor_of_cell, int i) const
  {
    const int64_t c = anchor_of_cell * row + i;
    return nhwc ? (image * cells + cell) * channels + c : (image * channels + c) * cells + cell;
  }
  __device__ int64_t step (void) const
  {
    return nhwc ? 1 : cells;
  }
};

/* ranks[image][anchor]. @V: classes that are read at once; more than one in NHWC, where they divide a row */
template <typename T, int V>
__global__ void
RN_BOUNDS (RN_BLOCK) topk_ranks (int64_t n, Rows rows, RnDivisor per_image, RnDivisor cells, int anchors,
                                 const T *logits, uint32_t *ranks)
{
  RN_FOR_EACH (i, n)
    {
      /* Neighbours read neighbours: in NHWC the anchors of a cell, in NCHW the cells of an anchor. */
      const int64_t image = i / per_image.divisor;
      const unsigned in_image = (unsigned) (i - image * per_image.divisor);
      unsigned cell, a;
      if (rows.nhwc)
        {
          cell = in_image / (unsigned) anchors;
          a = in_image - cell * (unsigned) anchors;
        }
      else
        {
          a = cells.quotient (in_image);
          cell = in_image - a * cells.divisor;
        }
      const T *first = logits + rows.at (image, cell, a, 0);
      float best = rn_load (first, 0);
      for (int k = 0; k < rows.row; k += V)
        {
          float value[V];
          rn_read<V> (first + k * rows.step (), value);
#pragma unroll
          for (int v = 0; v < V; v++)
            best = fmaxf (best, value[v]); /* NaN only when all are */
        }
      ranks[image * per_image.divisor + (int64_t) cell * anchors + a] = rn_topk_rank (best);
    }
}

/*
 * The bin of the @wanted-th largest, and how many lie in the bins above it. Threads take two bins each, from
 * the top. @totals: 32
 */
__device__ inline void
find_bin (const unsigned *bins, unsigned *totals, unsigned wanted, unsigned *bin, unsigned *above)
{
  const int thread = (int) threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int pair = SELECT_THREADS - 1 - thread;
  const unsigned upper = bins[2 * pair + 1], both = upper + bins[2 * pair];
  unsigned in_warp = both; /* of this thread and the lanes before it */

  for (int distance = 1; distance < 32; distance *= 2)
    {
      const unsigned other = __shfl_up_sync (0xffffffffu, in_warp, distance);
      in_warp += lane >= distance ? other : 0;
    }
  if (lane == 31)
    totals[warp] = in_warp;
  __syncthreads ();
  const unsigned end = in_warp + rn_warp_reduce (lane < warp ? totals[lane] : 0, RnSum ());
  const unsigned begin = end - both;
  if (begin < wanted && wanted <= end)
    {
      const bool is_upper = wanted <= begin + upper;
      *bin = (unsigned) (2 * pair) + is_upper;
      *above = is_upper ? begin : begin + upper;
    }
  __syncthreads ();
}

/* selected[image][k]: the keys of the k largest, in no order. A block per image. */
__global__ void
RN_BOUNDS (SELECT_THREADS)
    topk_select (unsigned n_anchors, unsigned k, const uint32_t *ranks, uint64_t *selected)
{
  RN_SHARED (unsigned, bins, [BINS]);
  RN_SHARED (unsigned, totals, [SELECT_THREADS / 32]);
  RN_SHARED (unsigned, found, [2]); /* bin; number above it */
  RN_SHARED (unsigned, n_selected, );
  uint64_t prefix = 0; /* the upper bits of the k-th largest key, as far as they are known */
  unsigned wanted = k;
  int unknown = 64;

  ranks += (int64_t) blockIdx.x * n_anchors;
  selected += (int64_t) blockIdx.x * k;
  for (bool is_found = false; !is_found && unknown > 0;)
    {
      const int width = unknown < DIGIT_BITS ? unknown : DIGIT_BITS, shift = unknown - width;
      const uint64_t mask = ((uint64_t) 1 << width) - 1;
      unsigned last = 0, run = 0; /* scores lie close together: equal digits in a row are counted first */

      for (int b = (int) threadIdx.x; b < BINS; b += SELECT_THREADS)
        bins[b] = 0;
      __syncthreads ();
      for (unsigned i = threadIdx.x; i < n_anchors; i += SELECT_THREADS)
        {
          const uint64_t key = rn_topk_key_of_rank (ranks[i], i);
          if (unknown < 64 && key >> unknown != prefix)
            continue;
          const unsigned digit = (unsigned) (key >> shift & mask);
          if (digit != last && run > 0)
            {
              atomicAdd (&bins[last], run);
              run = 0;
            }
          last = digit;
          run++;
        }
      if (run > 0)
        atomicAdd (&bins[last], run);
      __syncthreads ();
      find_bin (bins, totals, wanted, &found[0], &found[1]);
      prefix = prefix << width | found[0];
      wanted -= found[1];
      unknown = shift;
      is_found = bins[found[0]] == wanted; /* all of them are selected */
      __syncthreads ();
    }

  if (threadIdx.x == 0)
    n_selected = 0;
  __syncthreads ();
  for (unsigned i = threadIdx.x; i < n_anchors; i += SELECT_THREADS)
    {
      const uint64_t key = rn_topk_key_of_rank (ranks[i], i);
      if (key >> unknown >= prefix)
        selected[atomicAdd (&n_selected, 1u)] = key;
    }
}

/* index[image][place of the key]. A row of blocks per image. */
__global__ void
RN_BOUNDS (RN_BLOCK) topk_order (unsigned k, const uint64_t *selected, int32_t *index)
{
  RN_SHARED (uint64_t, tile, [RN_BLOCK]);
  const unsigned j = blockIdx.x * RN_BLOCK + threadIdx.x;

  selected += (int64_t) blockIdx.y * k;
  const uint64_t own = j < k ? selected[j] : 0;
  unsigned place = 0;
  for (unsigned first = 0; first < k; first += RN_BLOCK)
    {
      const unsigned n = k - first < RN_BLOCK ? k - first : RN_BLOCK;
      __syncthreads (); /* the tile before has been read */
      if (threadIdx.x < n)
        tile[threadIdx.x] = selected[first + threadIdx.x];
      __syncthreads ();
      for (unsigned i = 0; i < n; i++)
        place += tile[i] > own;
    }
  if (j < k)
    index[(int64_t) blockIdx.y * k + place] = (int32_t) rn_topk_key_index (own);
}

/* 0, 1, 2, ... for each image */
__global__ void
RN_BOUNDS (RN_BLOCK) topk_all (int64_t n, int64_t k, int32_t *index)
{
  RN_FOR_EACH (i, n)
    index[i] = (int32_t) (i % k);
}

/* Of the selected anchors, the elements of their rows: dst[image][k][row]; @n of them. */
template <typename T>
__global__ void
RN_BOUNDS (RN_BLOCK)
    topk_gather (int64_t n, Rows rows, int64_t k, int anchors, const int32_t *index, const T *src, float *dst)
{
  RN_FOR_EACH (i, n)
    {
      const int64_t selected = i / rows.row, image = selected / k;
      const int anchor = index[selected], cell = anchor / anchors;
      dst[i] = rn_load (src, rows.at (image, cell, anchor - cell * anchors, (int) (i % rows.row)));
    }
}

cudaError_t
gather (int64_t n_selected, const Rows &rows, const RnCudaTopk *topk, RnDType t, const int32_t *index,
        const void *src, float *dst, cudaStream_t stream)
{
  const int64_t n = n_selected * rows.row;

  RN_SWITCH_FLOAT (t, T, {
    return RN_LAUNCH ((topk_gather<T>), rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, rows, topk->k,
                      topk->anchors, index, static_cast<const T *> (src), dst);
  });
}

template <typename T>
cudaError_t
rank_anchors (const RnCudaTopk *topk, const Rows &rows, int n_images, const T *logits, uint32_t *ranks,
              cudaStream_t stream)
{
  const int64_t per_image = rows.cells * topk->anchors, n = n_images * per_image;
  const unsigned grid = rn_n_blocks (n, RN_BLOCK);
  const RnDivisor divisor (per_image), cells (rows.cells);
  const bool packs = rows.nhwc && rn_is_aligned (logits, 16);

  if (packs && rows.row % RN_PACK_OF (T) == 0)
    return RN_LAUNCH ((topk_ranks<T, RN_PACK_OF (T)>), grid, RN_BLOCK, 0, stream, n, rows, divisor, cells,
                      topk->anchors, logits, ranks);
  if (packs && rows.row % 4 == 0)
    return RN_LAUNCH ((topk_ranks<T, 4>), grid, RN_BLOCK, 0, stream, n, rows, divisor, cells, topk->anchors,
                      logits, ranks);
  return RN_LAUNCH ((topk_ranks<T, 1>), grid, RN_BLOCK, 0, stream, n, rows, divisor, cells, topk->anchors,
                    logits, ranks);
}

/* The k best of each image. */
cudaError_t
select_best (const RnCudaTopk *topk, const Rows &rows, int n_images, RnDType t, const void *logits,
             int32_t *index, void *workspace, cudaStream_t stream)
{
  const int64_t per_image = rows.cells * topk->anchors;
  uint64_t *selected = static_cast<uint64_t *> (workspace);
  uint32_t *ranks = reinterpret_cast<uint32_t *> (selected + n_images * topk->k);
  cudaError_t error;

  RN_SWITCH_FLOAT (
      t, T, { error = rank_anchors (topk, rows, n_images, static_cast<const T *> (logits), ranks, stream); });
  if (error == cudaSuccess)
    error = RN_LAUNCH (topk_select, n_images, SELECT_THREADS, 0, stream, (unsigned) per_image,
                       (unsigned) topk->k, ranks, selected);
  if (error == cudaSuccess)
    error = RN_LAUNCH (topk_order, dim3 ((unsigned) rn_cuda_n_parts (topk->k, RN_BLOCK), n_images), RN_BLOCK,
                       0, stream, (unsigned) topk->k, selected, index);
  return error;
}

}

extern "C" cudaError_t
rn_cuda_launch_topk (const RnCudaTopk *topk, const RnCudaMap *logits_map, RnDType logits_type,
                     const void *logits, const RnCudaMap *deltas_map, RnDType deltas_type, const void *deltas,
                     int32_t *index, float *row_logits, float *row_deltas, void *workspace,
                     cudaStream_t stream)
{
  const int64_t cells = (int64_t) logits_map->h * logits_map->w, n = logits_map->n * topk->k;
  const Rows logits_rows = { cells, logits_map->c, topk->classes, logits_map->nhwc != 0 };
  const Rows deltas_rows = { cells, deltas_map->c, 4, deltas_map->nhwc != 0 };
  cudaError_t error;

  if (topk->k == cells * topk->anchors)
    error = RN_LAUNCH (topk_all, rn_n_blocks (n, RN_BLOCK), RN_BLOCK, 0, stream, n, topk->k, index);
  else
    error = select_best (topk, logits_rows, logits_map->n, logits_type, logits, index, workspace, stream);
  if (error == cudaSuccess)
    error = gather (n, logits_rows, topk, logits_type, index, logits, row_logits, stream);
  if (error == cudaSuccess)
    error = gather (n, deltas_rows, topk, deltas_type, index, deltas, row_deltas, stream);
  return error;
}
