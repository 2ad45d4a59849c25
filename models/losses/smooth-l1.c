#include "config.h"

#include "models/builtin.h"

typedef struct
{
  double beta, loss_weight;
} RnSmoothL1LossKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnSmoothL1LossKeys, beta, RN_KEY_FLOAT, "1.0",
          "where the parabola meets the line, in units of the deltas", .min = 1e-6, .max = 1e6),
  RN_KEY (RnSmoothL1LossKeys, loss_weight, RN_KEY_FLOAT, "1.0", "factor of the loss", .min = 0, .max = 1e6),
  RN_KEY_END,
};

static RnValueId
write_box (gconstpointer self, RnGraph *graph, RnValueId deltas, const RnLossInputs *inputs,
           const RnLossLevel *level)
{
  const RnSmoothL1LossKeys *k = self;
  RnBoxArgs args = {
    .beta = (float) k->beta,
    .weight = (float) k->loss_weight,
    .anchors_per_cell = level->anchors_per_cell,
    .anchor_offset = level->anchor_offset,
  };
  return rn_box_loss (graph, deltas, inputs->positives, inputs->n_positives, inputs->avg_factor,
                      inputs->grad_scale, &args);
}

const RnLossDesc rn_smooth_l1_loss_desc = {
  .part.component = { "SmoothL1Loss",
                      "boxes: (p - t)^2 / (2 beta) up to beta, |p - t| - beta / 2 above (Girshick 2015)",
                      sizeof (RnSmoothL1LossKeys), keys },
  .write_box = write_box,
};
