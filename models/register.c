/* register.c: the list of all components of models/. A new one is added here and in builtin.h. */
#include "config.h"

#include "models/builtin.h"
#include "models/model.h"

static const struct
{
  const char *family;
  const RnComponent *component;
} components[] = {
  { "model", &rn_retinanet_desc.part.component },
  { "backbone", &rn_resnet_desc.part.component },
  { "backbone", &rn_resnet_v1d_desc.part.component },
  { "neck", &rn_fpn_desc.part.component },
  { "head", &rn_retina_head_desc.part.component },
  { "loss", &rn_focal_loss_desc.part.component },
  { "loss", &rn_l1_loss_desc.part.component },
  { "loss", &rn_smooth_l1_loss_desc.part.component },
  { "norm", &rn_batch_norm_desc.component },
  { "init", &rn_pretrained_desc.component },
  { "anchor_generator", &rn_anchor_generator_desc.component },
  { "bbox_coder", &rn_delta_xywh_coder_desc.component },
  { "assigner", &rn_max_iou_assigner_desc.component },
  { "nms", &rn_nms_desc.component },
};

gboolean
rn_models_register (GError **error)
{
  static gboolean done;
  for (gsize i = 0; !done && i < G_N_ELEMENTS (components); i++)
    if (!rn_registry_add (rn_registry_family (components[i].family), components[i].component, error))
      return FALSE;
  done = TRUE;
  return TRUE;
}
