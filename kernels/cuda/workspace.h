/*
 * workspace.h: how reductions on the device are cut into parts, and the scratch that they need. These are
 * functions of the problem alone, so results do not depend on the device, and a device that is not there can
 * be planned for. Plain C: the planner includes this too.
 */
#ifndef KERNELS_CUDA_WORKSPACE_H
#define KERNELS_CUDA_WORKSPACE_H

#include <stddef.h>
#include <stdint.h>

/* Number of parts of @length that cover @n. */
static inline int64_t
rn_cuda_n_parts (int64_t n, int64_t length)
{
  return (n + length - 1) / length;
}

/* ---- sums over the elements of a channel ---- */

/* Rows of NHWC that a part has at least, and parts at most; elements of a part in NCHW. */
#define RN_CUDA_PART_ROWS 128
#define RN_CUDA_CHANNEL_PARTS 256
#define RN_CUDA_PART_ELEMENTS 4096

/*
 * The elements of one channel, cut into @parts.
 * NHWC: part p has rows (pixels of all images) p * length to (p + 1) * length.
 * NCHW: part p has, of image (p / per_plane) * images and the images - 1 that follow, cells p % per_plane *
 * length to (p % per_plane + 1) * length.
 */
typedef struct
{
  int64_t parts, length;
  int images, per_plane; /* NCHW */
} RnCudaChannelParts;

static inline RnCudaChannelParts
rn_cuda_channel_parts (int64_t n, int64_t cells, int nhwc)
{
  RnCudaChannelParts p = { 0, RN_CUDA_PART_ELEMENTS, 1, 1 };

  if (nhwc)
    {
      p.length = rn_cuda_n_parts (n * cells, RN_CUDA_CHANNEL_PARTS);
      p.length = p.length > RN_CUDA_PART_ROWS ? p.length : RN_CUDA_PART_ROWS;
      p.parts = rn_cuda_n_parts (n * cells, p.length);
      return p;
    }
  if (cells < RN_CUDA_PART_ELEMENTS)
    p.images = (int) (RN_CUDA_PART_ELEMENTS / cells);
  p.per_plane = (int) rn_cuda_n_parts (cells, p.length);
  p.parts = p.per_plane * rn_cuda_n_parts (n, p.images);
  return p;
}

/* A float per part and channel. */
static inline size_t
rn_cuda_channel_sums_workspace (int64_t n, int64_t c, int64_t cells, int nhwc)
{
  return (size_t) (rn_cuda_channel_parts (n, cells, nhwc).parts * c) * sizeof (float);
}

/* ---- batch norm ---- */

/* Whether the gradient needs sums: with given statistics it may not. */
static inline int
rn_cuda_norm_bwd_reduces (int training, int has_diff_gamma, int has_diff_beta)
{
  return training || has_diff_gamma || has_diff_beta;
}

/*
 * Two floats per part and channel, and four coefficients per channel.
 * @reduces: whether there are sums: forward where the statistics are those of the batch
 */
static inline size_t
rn_cuda_norm_workspace (int64_t n, int64_t c, int64_t cells, int nhwc, int reduces)
{
  const int64_t parts = reduces ? rn_cuda_channel_parts (n, cells, nhwc).parts : 0;
  return (size_t) (c * (2 * parts + 4)) * sizeof (float);
}

/* ---- losses ---- */

/* Logits, or anchors with their four deltas, that one block takes; it leaves a float. */
#define RN_CUDA_FOCAL_PART 4096
#define RN_CUDA_BOX_PART 1024

static inline size_t
rn_cuda_focal_workspace (int64_t n_logits)
{
  return (size_t) rn_cuda_n_parts (n_logits, RN_CUDA_FOCAL_PART) * sizeof (float);
}

static inline size_t
rn_cuda_box_workspace (int64_t n_anchors)
{
  return (size_t) rn_cuda_n_parts (n_anchors, RN_CUDA_BOX_PART) * sizeof (float);
}

/* ---- selection ---- */

/* The keys of the selected anchors, and the upper halves of those of all; nothing where all are selected. */
static inline size_t
rn_cuda_topk_workspace (int64_t n, int64_t n_anchors, int64_t k)
{
  if (k == n_anchors)
    return 0;
  return (size_t) (n * k) * sizeof (uint64_t) + (size_t) (n * n_anchors) * sizeof (uint32_t);
}

/* ---- norm of the gradients ---- */

/* Elements that one block takes; it leaves a double and the largest bits. */
#define RN_CUDA_STATS_PART 16384

static inline size_t
rn_cuda_stats_workspace (int64_t n)
{
  return (size_t) rn_cuda_n_parts (n, RN_CUDA_STATS_PART) * (sizeof (double) + sizeof (uint32_t));
}

#endif
