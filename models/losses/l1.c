#include "config.h"

#include "models/builtin.h"

typedef struct
{
  double loss_weight;
} RnL1LossKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnL1LossKeys, loss_weight, RN_KEY_FLOAT, "1.0", "factor of the loss", .min = 0, .max = 1e6),
  RN_KEY_END,
};

static RnValueId
write_box (gconstpointer self, RnGraph *graph, RnValueId deltas, const RnLossInputs *inputs,
           const RnLossLevel *level)
{
  const RnL1LossKeys *k = self;
  RnBoxArgs args = {
    .beta = 0,
    .weight = (float) k->loss_weight,
    .anchors_per_cell = level->anchors_per_cell,
    .anchor_offset = level->anchor_offset,
  };
  return rn_box_loss (graph, deltas, inputs->positives, inputs->n_positives, inputs->avg_factor,
                      inputs->grad_scale, &args);
}

const RnLossDesc rn_l1_loss_desc = {
  .part.component = { "L1Loss", "boxes: |p - t|", sizeof (RnL1LossKeys), keys },
  .write_box = write_box,
};
