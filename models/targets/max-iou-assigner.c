#include "config.h"

#include "boxes/assign.h"
#include "models/builtin.h"

typedef struct
{
  double pos_iou_thr, neg_iou_thr, min_pos_iou, ignore_iof_thr;
  gboolean gt_max_assign_all, match_low_quality, ignore_wrt_candidates, match_zero_iou;
} RnAssignerKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnAssignerKeys, pos_iou_thr, RN_KEY_FLOAT, "0.5", "IoU from which an anchor is positive", .min = 0,
          .max = 1),
  RN_KEY (RnAssignerKeys, neg_iou_thr, RN_KEY_FLOAT, "0.4",
          "IoU below which it is negative; between the two it is ignored", .min = 0, .max = 1),
  RN_KEY (RnAssignerKeys, min_pos_iou, RN_KEY_FLOAT, "0", "a box takes its best anchor from this IoU up",
          .min = 0, .max = 1),
  RN_KEY (RnAssignerKeys, gt_max_assign_all, RN_KEY_BOOL, "true",
          "it takes all anchors at its best IoU, else the first"),
  RN_KEY (RnAssignerKeys, match_low_quality, RN_KEY_BOOL, "true", "false: no such taking"),
  RN_KEY (RnAssignerKeys, ignore_iof_thr, RN_KEY_FLOAT, "-1",
          "anchors covered more than this by an ignore box are ignored; 0 or less: off", .min = -1, .max = 1),
  RN_KEY (RnAssignerKeys, ignore_wrt_candidates, RN_KEY_BOOL, "true",
          "coverage in parts of the anchor, else of the ignore box"),
  RN_KEY (
      RnAssignerKeys, match_zero_iou, RN_KEY_BOOL, "false",
      "MMDetection's rule: a box that touches no anchor takes every anchor at IoU 0 (if min_pos_iou is 0)"),
  { .name = "gpu_assign_thr", .type = RN_KEY_UNUSED, .help = "no IoU matrix is made here" },
  RN_KEY_END,
};

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnAssignerKeys *k = self;
  if (k->neg_iou_thr > k->pos_iou_thr)
    return rn_node_error (rn_node_blame (config, "neg_iou_thr"), error,
                          "neg_iou_thr must not be above pos_iou_thr");

  *(RnMaxIoUAssigner *) out = (RnMaxIoUAssigner){
    .pos_iou_thr = (float) k->pos_iou_thr,
    .neg_iou_thr = (float) k->neg_iou_thr,
    .min_pos_iou = (float) k->min_pos_iou,
    .gt_max_assign_all = k->gt_max_assign_all,
    .match_low_quality = k->match_low_quality,
    .ignore_iof_thr = (float) k->ignore_iof_thr,
    .ignore_wrt_candidates = k->ignore_wrt_candidates,
    .match_zero_iou = k->match_zero_iou,
  };
  return TRUE;
}

const RnMakerDesc rn_max_iou_assigner_desc = {
  .component = { "MaxIoUAssigner", "each anchor to the box that it overlaps most", sizeof (RnAssignerKeys),
                 keys },
  .make = make,
};
