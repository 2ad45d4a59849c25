#include "config.h"

#include "models/builtin.h"

typedef struct
{
  int use_sigmoid;
  double gamma, alpha, loss_weight;
} RnFocalLossKeys;

static const char *const only_true[] = { "true", NULL };

static const RnKeySpec keys[] = {
  { .name = "use_sigmoid",
    .type = RN_KEY_ENUM,
    .offset = G_STRUCT_OFFSET (RnFocalLossKeys, use_sigmoid),
    .deflt = "true",
    .names = only_true,
    .help = "one sigmoid per class; the loss is defined for nothing else" },
  RN_KEY (RnFocalLossKeys, gamma, RN_KEY_FLOAT, "2.0", "exponent of the factor that fades out easy examples",
          .min = 0, .max = 100),
  RN_KEY (RnFocalLossKeys, alpha, RN_KEY_FLOAT, "0.25", "weight of positives; negatives have 1 - alpha",
          .min = 0, .max = 1),
  RN_KEY (RnFocalLossKeys, loss_weight, RN_KEY_FLOAT, "1.0", "factor of the loss", .min = 0, .max = 1e6),
  RN_KEY_END,
};

static RnValueId
write_class (gconstpointer self, RnGraph *graph, RnValueId logits, const RnLossInputs *inputs,
             const RnLossLevel *level)
{
  const RnFocalLossKeys *k = self;
  RnFocalArgs args = {
    .alpha = (float) k->alpha,
    .gamma = (float) k->gamma,
    .weight = (float) k->loss_weight,
    .num_classes = level->num_classes,
    .anchors_per_cell = level->anchors_per_cell,
    .anchor_offset = level->anchor_offset,
  };
  return rn_focal_loss (graph, logits, inputs->labels, inputs->avg_factor, inputs->grad_scale, &args);
}

const RnLossDesc rn_focal_loss_desc = {
  .part.component = { "FocalLoss", "classes: sigmoid focal loss (Lin et al. 2017)", sizeof (RnFocalLossKeys),
                      keys },
  .write_class = write_class,
};
