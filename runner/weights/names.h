/*
 * names.h: what a tensor is called in MMDetection's detectors, which is what it is called here, and in
 * torchvision's.
 *
 * torchvision's RetinaNet agrees with MMDetection's in everything that a name can stand for: anchors are
 * numbered by aspect ratio, then size; predictors by anchor, then class or coordinate; boxes are dx, dy, dw,
 * dh. But its class 0 is the background, which has no counterpart (names-map.h).
 */
#ifndef RUNNER_WEIGHTS_NAMES_H
#define RUNNER_WEIGHTS_NAMES_H

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  RN_NAMES_MMDET,       /* backbone.layer1.0.conv1.weight, neck.lateral_convs.0.conv.weight, ... */
  RN_NAMES_RESNET,      /* a backbone alone: layer1.0.conv1.weight, fc.weight */
  RN_NAMES_TORCHVISION, /* a detector: backbone.body.layer1.0.conv1.weight, backbone.fpn..., head... */
} RnNamesStyle;

typedef struct
{
  RnNamesStyle style;
  int n_laterals; /* levels of the pyramid that come from the backbone; those of its extra convolutions follow
                   */
} RnNames;

/* What the names of the last convolutions begin with. */
#define RN_MMDET_CLASS_PREDICTOR "bbox_head.retina_cls."
#define RN_MMDET_BOX_PREDICTOR "bbox_head.retina_reg."
#define RN_TORCHVISION_CLASS_PREDICTOR "head.classification_head.cls_logits."
#define RN_TORCHVISION_BOX_PREDICTOR "head.regression_head.bbox_reg."

/* @names: NULL-ended. */
RnNames rn_names_detect (const char *const *names);

/* MMDetection's name, @name itself where it has none. (transfer full) */
char *rn_names_to_mmdet (const RnNames *names, const char *name);

/*
 * torchvision's name of @name, which is MMDetection's: as a detector's, or as a backbone's alone for
 * RN_NAMES_RESNET. NULL where torchvision has no such tensor. (transfer full)
 */
char *rn_names_to_torchvision (const RnNames *names, RnNamesStyle style, const char *name);

/* Tensors that files have and no model here needs: a classifier (fc.*), counters of batch norms. */
gboolean rn_names_is_dispensable (const char *name);

G_END_DECLS

#endif
