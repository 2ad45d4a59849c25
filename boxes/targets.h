/*
 * targets.h: what a dense head is trained on for one image: a class per anchor, and the encoded boxes of the
 * few positives.
 */
#ifndef BOXES_TARGETS_H
#define BOXES_TARGETS_H

#include <glib.h>
#include <runner/batch.h>
#include "boxes/anchors.h"
#include "boxes/assign.h"
#include "boxes/coder.h"

G_BEGIN_DECLS

/* How targets are made; lent. */
typedef struct
{
  const RnAnchorGenerator *anchors;
  const RnMaxIoUAssigner *assigner;
  const RnBoxCoder *coder;
  int num_classes; /* K; K itself is the background label */
} RnTargetRule;

/* Ground truth of one image, in pixels of the network's input. */
typedef struct
{
  int index;                   /* of the image in its batch */
  int pad_height, pad_width;   /* of the image alone */
  const RnBox *gts;            /* [n_gt] */
  const int32_t *labels;       /* [n_gt] 0..K-1 */
  int n_gt;
  const RnBox *ignores;        /* [n_ignore] */
  int n_ignore;
} RnTargetImage;

/* Reusable memory of one thread. Zero-initialised; grows when needed. */
typedef struct
{
  RnAssignScratch assign;
  int32_t *assigned; /* [n_anchors] */
  gsize n_anchors;
} RnTargetScratch;

RnStatus rn_target_scratch_reserve (RnTargetScratch *scratch, gsize n_anchors, gsize n_gt);
void rn_target_scratch_clear (RnTargetScratch *scratch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnTargetScratch, rn_target_scratch_clear)

/**
 * rn_targets_build:
 * @sizes: {height, width} of each level for the batch's padded size
 * @labels: [rn_anchors_count] class 0..K-1, K = background, -1 = ignored or outside the image's own padded
 *   size
 * @positives: [capacity] in the order of their anchors; rn_anchors_count are always enough
 * @n_positives: (out): number written
 *
 * A positive whose encoded box is not finite (a ground-truth box without area, possible with match_zero_iou
 * only) is ignored instead.
 *
 * Returns: RN_STATUS_OK; RN_STATUS_SHAPE for sizes that rn_anchors_count refuses, K above G_MAXINT16 or a
 * label outside 0..K-1; RN_STATUS_MEMORY, also when there are more than @capacity positives
 */
RnStatus rn_targets_build (const RnTargetRule *rule, const RnTargetImage *image, const int (*sizes)[2],
                           RnTargetScratch *scratch, int16_t *labels, RnPositive *positives,
                           int64_t capacity, int64_t *n_positives);

G_END_DECLS

#endif
