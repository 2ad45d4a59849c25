/*
 * model.h: a detector built from the `model:` part of the configuration. It writes graphs; it holds no
 * memory.
 */
#ifndef MODELS_MODEL_H
#define MODELS_MODEL_H

#include <glib.h>
#include <runner/node.h>
#include "boxes/anchors.h"
#include "boxes/assign.h"
#include "boxes/coder.h"
#include "graph/graph.h"
#include "graph/memory-options.h"

G_BEGIN_DECLS

typedef struct _RnModel RnModel;

/*
 * Names of the graph's inputs, the same for every detector:
 *   "image" F32 [N,3,H,W]; training and loss: "labels" I16 [N, anchors], "positives" U8 [N * anchors * sizeof
 * (RnPositive)], "n_positives" I64 [1], "avg_factor" F32 [1], "grad_scale" F32 [1]. Outputs: training and
 * loss: F32 [1] values named "loss_cls.0" ... "loss_bbox.4" (one per level; the sums over levels are reported
 * as loss_cls, loss_bbox); inference: "level0.index", "level0.logits", "level0.deltas", ...
 */

/* @num_classes: of the data set, or 0 if not known; must agree with the head's num_classes where both are
 * given. */
RnModel *rn_model_new (const RnNode *model_config, int num_classes, GError **error);
void rn_model_free (RnModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnModel, rn_model_free)

/* Writes the forward graph for one padded batch shape. Parameters are added to @params on first use. Not yet
 * passed through the passes. */
RnGraph *rn_model_build (RnModel *model, RnParamSet *params, RnMode mode, int n, int height, int width,
                         GError **error);

int rn_model_num_classes (const RnModel *model);
/* Names of the losses that a step reports, NULL-ended, in MMDetection's order: "loss_cls", "loss_bbox". Lent.
 */
const char *const *rn_model_loss_names (const RnModel *model);
/* `checkpoint` of the model's or else the backbone's init_cfg of type Pretrained ("torchvision://resnet50"),
 * or NULL. Lent. */
const char *rn_model_pretrained (const RnModel *model);
/* TRUE when frozen_stages >= 0 freezes layers that would otherwise be random: training then needs loaded
 * weights. */
gboolean rn_model_has_frozen_stages (const RnModel *model);

#define RN_MODEL_MAX_PARTS 3

/* What `with_cp` and `fp16_enabled` of the parts ask of the passes. */
typedef struct
{
  RnCpOptions backbone, head;
  const char *single_modules[RN_MODEL_MAX_PARTS + 1]; /* NULL-ended: those with fp16_enabled: false */
} RnModelMemory;
const RnModelMemory *rn_model_memory (const RnModel *model);

/* What targets and detections are made with. Lent. */
const RnAnchorGenerator *rn_model_anchors (const RnModel *model);
const RnMaxIoUAssigner *rn_model_assigner (const RnModel *model);
const RnBoxCoder *rn_model_coder (const RnModel *model);

typedef struct
{
  int nms_pre, max_per_img;
  float score_thr, iou_thr;
} RnTestConfig;
const RnTestConfig *rn_model_test_config (const RnModel *model);

/* Sizes (H, W) of the head's levels for a padded input; returns the number of levels, at most RN_MAX_LEVELS.
 */
int rn_model_feature_sizes (const RnModel *model, int height, int width, int (*sizes)[2]);

/*
 * Adds all components of models/ to the registry: families "model", "backbone", "neck", "head", "loss",
 * "norm", "init", "anchor_generator", "bbox_coder", "assigner", "nms". Further calls do nothing.
 */
gboolean rn_models_register (GError **error);

G_END_DECLS

#endif
