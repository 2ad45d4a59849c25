#include "config.h"

#include "models/builtin.h"

typedef struct
{
  double iou_threshold;
} RnNmsKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnNmsKeys, iou_threshold, RN_KEY_FLOAT, "0.5",
          "a box is dropped if a better one of its class overlaps it by more", .min = 0, .max = 1),
  RN_KEY_END,
};

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnNmsKeys *k = self;
  *(float *) out = (float) k->iou_threshold;
  return TRUE;
}

const RnMakerDesc rn_nms_desc = {
  .component = { "nms", "greedy non-maximum suppression", sizeof (RnNmsKeys), keys },
  .make = make,
};
