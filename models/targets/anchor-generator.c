#include "config.h"

#include "models/builtin.h"

typedef struct
{
  GArray *strides, *ratios, *scales, *base_sizes;
  double octave_base_scale;
  gint64 scales_per_octave;
  gboolean scale_major;
  double center_offset;
} RnAnchorGeneratorKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnAnchorGeneratorKeys, strides, RN_KEY_INT_LIST, "[8, 16, 32, 64, 128]",
          "pixels from cell to cell, per level", .min = 1, .max = 65536),
  RN_KEY (RnAnchorGeneratorKeys, ratios, RN_KEY_FLOAT_LIST, "[0.5, 1.0, 2.0]", "height / width", .min = 1e-3,
          .max = 1e3),
  RN_KEY (RnAnchorGeneratorKeys, octave_base_scale, RN_KEY_FLOAT, "4",
          "first scale, in base sizes; without `scales`", .min = 1e-3, .max = 1e4),
  RN_KEY (RnAnchorGeneratorKeys, scales_per_octave, RN_KEY_INT, "3",
          "scale i is octave_base_scale * 2^(i / this)", .min = 1, .max = RN_MAX_ANCHORS_PER_CELL),
  RN_KEY (RnAnchorGeneratorKeys, scales, RN_KEY_FLOAT_LIST, "null", "explicit scales instead of the octave",
          .min = 1e-3, .max = 1e4, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnAnchorGeneratorKeys, base_sizes, RN_KEY_FLOAT_LIST, "null",
          "pixels, per level; null: the strides", .min = 1e-3, .max = 1e6, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnAnchorGeneratorKeys, scale_major, RN_KEY_BOOL, "true",
          "number anchors of a cell by ratio, then scale; else the other way round"),
  RN_KEY (RnAnchorGeneratorKeys, center_offset, RN_KEY_FLOAT, "0",
          "of the centre from the cell's top left, in base sizes", .min = 0, .max = 1),
  RN_KEY_END,
};

static gboolean
check_length (const RnNode *config, const char *key, guint length, guint most, GError **error)
{
  if (length >= 1 && length <= most)
    return TRUE;
  return rn_node_error (rn_node_blame (config, key), error, "%s must have 1 to %u items", key, most);
}

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnAnchorGeneratorKeys *k = self;
  if (!check_length (config, "strides", k->strides->len, RN_MAX_LEVELS, error)
      || !check_length (config, "ratios", k->ratios->len, RN_MAX_ANCHORS_PER_CELL, error)
      || (k->scales && !check_length (config, "scales", k->scales->len, RN_MAX_ANCHORS_PER_CELL, error)))
    return FALSE;
  if (k->base_sizes && k->base_sizes->len != k->strides->len)
    return rn_node_error (rn_node_blame (config, "base_sizes"), error,
                          "base_sizes has %u items for %u strides", k->base_sizes->len, k->strides->len);

  RnAnchorSpec spec = {
    .n_levels = (int) k->strides->len,
    .n_ratios = (int) k->ratios->len,
    .octave_base_scale = k->octave_base_scale,
    .scales_per_octave = (int) k->scales_per_octave,
    .center_offset = k->center_offset,
    .scale_major = k->scale_major,
  };
  for (int i = 0; i < spec.n_levels; i++)
    {
      spec.strides[i] = (int) g_array_index (k->strides, gint64, i);
      spec.base_sizes[i] = k->base_sizes ? g_array_index (k->base_sizes, double, i) : 0;
    }
  for (int i = 0; i < spec.n_ratios; i++)
    spec.ratios[i] = g_array_index (k->ratios, double, i);
  if (k->scales)
    for (spec.n_scales = 0; spec.n_scales < (int) k->scales->len; spec.n_scales++)
      spec.scales[spec.n_scales] = g_array_index (k->scales, double, spec.n_scales);

  g_autoptr (GError) inner = NULL;
  if (rn_anchors_init (out, &spec, &inner))
    return TRUE;
  return rn_node_error (config, error, "%s", inner->message);
}

const RnMakerDesc rn_anchor_generator_desc = {
  .component = { "AnchorGenerator", "the same shapes at every cell of every level",
                 sizeof (RnAnchorGeneratorKeys), keys },
  .make = make,
};
