/* builtin.h: the components of this folder. */
#ifndef MODELS_BUILTIN_H
#define MODELS_BUILTIN_H

#include "models/component.h"
#include "models/detector.h"

G_BEGIN_DECLS

extern const RnDetectorDesc rn_retinanet_desc;
extern const RnBackboneDesc rn_resnet_desc, rn_resnet_v1d_desc;
extern const RnNeckDesc rn_fpn_desc;
extern const RnHeadDesc rn_retina_head_desc;
extern const RnLossDesc rn_focal_loss_desc, rn_l1_loss_desc, rn_smooth_l1_loss_desc;
extern const RnMakerDesc rn_batch_norm_desc, rn_pretrained_desc;
extern const RnMakerDesc rn_anchor_generator_desc, rn_delta_xywh_coder_desc, rn_max_iou_assigner_desc,
    rn_nms_desc;

G_END_DECLS

#endif
