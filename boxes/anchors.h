/*
 * anchors.h: the prior boxes of a dense detector: the same few shapes at every cell of every level.
 *
 * Conventions of MMDetection 2: float corners, no rounding, no -1. Over all levels anchors are numbered level
 * by level, then row by row, then cell by cell, then shape by shape: level offset + (y * W + x) * A + a.
 */
#ifndef BOXES_ANCHORS_H
#define BOXES_ANCHORS_H

#include <glib.h>
#include <stdint.h>
#include "boxes/box.h"

G_BEGIN_DECLS

#define RN_MAX_LEVELS 8
#define RN_MAX_ANCHORS_PER_CELL 32
/*
 * Pixels. Up to here an anchor's corner is off by less than one pixel in float32, which assignment relies on.
 */
#define RN_ANCHORS_MAX_SIDE (1 << 20)

/* What a configuration says about anchors. */
typedef struct
{
  int n_levels;
  int strides[RN_MAX_LEVELS];       /* pixels from cell to cell */
  double base_sizes[RN_MAX_LEVELS]; /* pixels; 0: the stride */
  int n_scales;                     /* 0: scales are octave_base_scale * 2^(i / scales_per_octave) */
  double scales[RN_MAX_ANCHORS_PER_CELL];
  double octave_base_scale;
  int scales_per_octave;
  int n_ratios;
  double ratios[RN_MAX_ANCHORS_PER_CELL]; /* height / width */
  double center_offset;                   /* of the centre from the cell's top left, in base sizes, 0 to 1 */
  /* TRUE (MMDetection's default): a = ratio * n_scales + scale; FALSE: a = scale * n_ratios + ratio */
  gboolean scale_major;
} RnAnchorSpec;

typedef struct
{
  int n_levels, n_per_cell;
  int strides[RN_MAX_LEVELS];
  RnBox base[RN_MAX_LEVELS][RN_MAX_ANCHORS_PER_CELL]; /* of the cell at (0, 0) */
} RnAnchorGenerator;

/*
 * Computes the base anchors, in float32 as MMDetection does. RN_CONFIG_ERROR_VALUE if a number of @spec is
 * out of bounds.
 */
gboolean rn_anchors_init (RnAnchorGenerator *gen, const RnAnchorSpec *spec, GError **error);

/* Anchor @a of the cell in column @x of row @y. Anchors are never clipped. */
static inline RnBox
rn_anchors_at (const RnAnchorGenerator *gen, int level, int y, int x, int a)
{
  RnBox b = gen->base[level][a];
  float dx = (float) (x * gen->strides[level]), dy = (float) (y * gen->strides[level]);
  return (RnBox) { b.x1 + dx, b.y1 + dy, b.x2 + dx, b.y2 + dy };
}

/* The anchor with the number @index within a level that is @width cells wide. */
static inline RnBox
rn_anchors_in_level (const RnAnchorGenerator *gen, int level, int width, int64_t index)
{
  int64_t cell = index / gen->n_per_cell;
  int y = (int) (cell / width), x = (int) (cell % width);
  return rn_anchors_at (gen, level, y, x, (int) (index % gen->n_per_cell));
}

/*
 * In what follows @sizes holds {height, width} of each level's feature map, in cells.
 */

/*
 * Number of anchors over all levels, or -1 if a size is negative, a map wider than RN_ANCHORS_MAX_SIDE pixels
 * or the number above 2^31-1.
 */
int64_t rn_anchors_count (const RnAnchorGenerator *gen, const int (*sizes)[2]);

/* Writes all of them, in the order of their numbers, to @anchors [rn_anchors_count]. */
void rn_anchors_generate (const RnAnchorGenerator *gen, const int (*sizes)[2], RnBox *anchors);

/* The anchor with the number @number, 0 to rn_anchors_count - 1. */
RnBox rn_anchors_nth (const RnAnchorGenerator *gen, const int (*sizes)[2], int64_t number);

/*
 * Rows and columns of each level that an image of @pad_height x @pad_width (its own padded size, not the
 * batch's) covers, to @valid: cells that exist only because the batch is larger are left out.
 */
void rn_anchors_valid (const RnAnchorGenerator *gen, const int (*sizes)[2], int pad_height, int pad_width,
                       int (*valid)[2]);

G_END_DECLS

#endif
