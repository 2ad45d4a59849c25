#include "config.h"

#include "boxes/coder.h"
#include "models/builtin.h"

typedef struct
{
  GArray *target_means, *target_stds;
  gboolean clip_border;
} RnDeltaCoderKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnDeltaCoderKeys, target_means, RN_KEY_FLOAT_LIST, "[0., 0., 0., 0.]", "of dx, dy, dw, dh",
          .min = -1e6, .max = 1e6),
  RN_KEY (RnDeltaCoderKeys, target_stds, RN_KEY_FLOAT_LIST, "[1., 1., 1., 1.]", "of dx, dy, dw, dh",
          .min = 1e-6, .max = 1e6),
  RN_KEY (RnDeltaCoderKeys, clip_border, RN_KEY_BOOL, "true", "clip decoded boxes to the image"),
  RN_KEY_END,
};

static gboolean
copy_four (const RnNode *config, const char *key, const GArray *list, float out[4], GError **error)
{
  if (list->len != 4)
    return rn_node_error (rn_node_blame (config, key), error, "%s must have 4 items", key);
  for (guint i = 0; i < 4; i++)
    out[i] = (float) g_array_index (list, double, i);
  return TRUE;
}

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnDeltaCoderKeys *k = self;
  RnBoxCoder *coder = out;
  *coder = (RnBoxCoder) RN_BOX_CODER_INIT;
  coder->clip_border = k->clip_border;
  return copy_four (config, "target_means", k->target_means, coder->means, error)
         && copy_four (config, "target_stds", k->target_stds, coder->stds, error);
}

const RnMakerDesc rn_delta_xywh_coder_desc = {
  .component = { "DeltaXYWHBBoxCoder", "centre and size relative to the anchor", sizeof (RnDeltaCoderKeys),
                 keys },
  .make = make,
};
