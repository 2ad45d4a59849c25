/* batch.h: one batch on its way from the loader to the model: pixels, targets and what is known of each
 * image. */
#ifndef RUNNER_BATCH_H
#define RUNNER_BATCH_H

#include <glib.h>
#include <stdint.h>
#include <runner/tensor.h>

G_BEGIN_DECLS

/* One anchor that was matched to a ground-truth box, with its encoded box. In arrays, so it stays as it is.
 */
typedef struct
{
  int32_t image;   /* index in the batch */
  int32_t anchor;  /* index over all levels of the batch's padded shape: level offset + (y * W + x) * A + a */
  float target[4]; /* encoded box deltas (dx, dy, dw, dh), means and stds applied */
} RnPositive;

/* How an image was mirrored. */
typedef enum
{
  RN_FLIP_HORIZONTAL = 1 << 0,
  RN_FLIP_VERTICAL = 1 << 1,
} RnFlip;

/* What is known of one image of a batch. Strings are lent by the data set. In arrays, so it stays as it is.
 */
typedef struct
{
  int64_t index;             /* position in the (repeated, concatenated) data set */
  const char *id;            /* the line of the split list */
  const char *path;          /* of the image file */
  int ori_width, ori_height; /* as decoded */
  int img_width, img_height; /* after all transforms, before Pad */
  int pad_width, pad_height; /* after Pad of this image alone */
  float scale_w, scale_h;    /* of Resize */
  int flip;                  /* bits of RnFlip */
  int n_gt;
  float (*gt_boxes)[4]; /* [n_gt] x1 y1 x2 y2, pixels of the image after all transforms; owned by the batch */
  int32_t *gt_labels;   /* [n_gt] 0..K-1; owned by the batch */
  int n_positives;      /* matched anchors of this image; 0 in test mode */
} RnSampleMeta;

/* Owned by the loader, lent until it is given back. */
typedef struct
{
  int n, height, width; /* images, padded size that they share */
  guint8 *pixels; /* [n, height, width, 3], channels in the order that the model takes; 0 in the padding */
  int32_t (*sizes)[2]; /* [n] height, width of each image, at the top left; the rest is padding */
  /*
   * [n]: what Normalize makes of each byte, by channel. The model sees table[i][c][pixel], and 0 in the
   * padding.
   */
  float (*table)[3][256];
  int64_t n_anchors; /* per image, over all levels of the padded shape */
  int16_t *labels;   /* [n, n_anchors]: 0..K-1, K = background, -1 = ignored or outside; NULL in test mode */
  RnPositive *positives; /* [n_positives], ordered by image, then anchor; NULL in test mode */
  int64_t n_positives;
  float avg_factor;    /* sum over the images of max (positives, 1) */
  RnSampleMeta *metas; /* [n] */
} RnBatch;

G_END_DECLS

#endif
