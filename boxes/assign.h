/*
 * assign.h: which ground-truth box each anchor is trained on (MMDetection's MaxIoUAssigner).
 *
 * No anchors x boxes matrix: memory is one float per anchor, and for each ground-truth box only the cells
 * whose anchors can touch it are visited. All others overlap it by exactly 0, so that the result is the same.
 */
#ifndef BOXES_ASSIGN_H
#define BOXES_ASSIGN_H

#include <glib.h>
#include <stdint.h>
#include "boxes/anchors.h"
#include "boxes/box.h"
#include "runner/base/error.h"

G_BEGIN_DECLS

typedef struct
{
  float pos_iou_thr;               /* from here an anchor is positive */
  float neg_iou_thr;               /* below it is negative; between the two it is ignored */
  float min_pos_iou;               /* a ground-truth box whose best anchor reaches this takes that anchor */
  gboolean gt_max_assign_all;      /* it takes all anchors at its best IoU; else the first of them */
  gboolean match_low_quality;      /* FALSE: no such taking */
  /* > 0: anchors that an ignore box covers by more than this are ignored; else ignore boxes do nothing */
  float ignore_iof_thr;
  gboolean ignore_wrt_candidates;  /* cover = common area / anchor's area; else / ignore box's area */
  /*
   * A ground-truth box that overlaps no anchor has best IoU 0, and with min_pos_iou 0 MMDetection lets it
   * take every anchor at IoU 0, even those that other boxes deserve: one box without area or outside the
   * image spoils the whole image. TRUE keeps that rule; with FALSE such a box takes none.
   */
  gboolean match_zero_iou;
} RnMaxIoUAssigner;

/* RetinaNet's values. */
#define RN_MAX_IOU_ASSIGNER_INIT \
  { .pos_iou_thr = 0.5f, .neg_iou_thr = 0.4f, .gt_max_assign_all = TRUE, .match_low_quality = TRUE, \
    .ignore_iof_thr = -1, .ignore_wrt_candidates = TRUE }

/* Reusable memory of one thread. Zero-initialised; grows when needed. */
typedef struct
{
  float *max_iou; /* [n_anchors] best IoU with any ground-truth box */
  gsize n_anchors;
  float *gt_max;  /* [n_gt] best IoU with any anchor */
  gsize n_gt;
} RnAssignScratch;

/*
 * Makes room, so that rn_assign with up to these numbers allocates nothing. RN_STATUS_OK or RN_STATUS_MEMORY.
 */
RnStatus rn_assign_scratch_reserve (RnAssignScratch *scratch, gsize n_anchors, gsize n_gt);
void rn_assign_scratch_clear (RnAssignScratch *scratch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (RnAssignScratch, rn_assign_scratch_clear)

#define RN_ASSIGN_NEGATIVE 0
#define RN_ASSIGN_IGNORED (-1)

/**
 * rn_assign:
 * @sizes: {height, width} of each level of the batch
 * @valid: {rows, columns} of each level that belong to this image, see rn_anchors_valid
 * @gts: [n_gt] in pixels of the network's input; boxes that are not finite overlap nothing
 * @ignores: [n_ignore] regions that count neither way
 * @assigned: [rn_anchors_count] RN_ASSIGN_NEGATIVE, RN_ASSIGN_IGNORED (also cells outside @valid), or index
 *   in @gts + 1
 *
 * In order: 1. all are ignored; without ground truth all are negative. 2. an anchor whose best IoU is below
 * neg_iou_thr is negative. 3. from pos_iou_thr up it goes to its best box, the first on ties. 4. one box
 * after the other takes the anchors at its best IoU, also from boxes before it.
 *
 * Returns: RN_STATUS_OK, RN_STATUS_SHAPE for sizes that rn_anchors_count refuses, RN_STATUS_MEMORY
 */
RnStatus rn_assign (const RnMaxIoUAssigner *assigner, const RnAnchorGenerator *gen, const int (*sizes)[2],
                    const int (*valid)[2], const RnBox *gts, int n_gt, const RnBox *ignores, int n_ignore,
                    RnAssignScratch *scratch, int32_t *assigned);

G_END_DECLS

#endif
