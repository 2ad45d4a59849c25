/* transform-output.c: Normalize, Pad, and what makes a tensor of the image: the end of every pipeline. */
#include "config.h"

#include "datasets/transform.h"

#include <string.h>

/* ---- Normalize ---- */

typedef struct
{
  GArray *mean, *std; /* of double */
  gboolean to_rgb;
  float table[3][256];
} Normalize;

static const RnKeySpec normalize_keys[] = {
  RN_KEY (Normalize, mean, RN_KEY_FLOAT_LIST, NULL, "of the three output channels, 0 to 255", .min = -1e6,
          .max = 1e6, .flags = RN_KEY_REQUIRED),
  RN_KEY (Normalize, std, RN_KEY_FLOAT_LIST, NULL, "of the three output channels", .min = 1e-6, .max = 1e6,
          .flags = RN_KEY_REQUIRED),
  RN_KEY (Normalize, to_rgb, RN_KEY_BOOL, "true", "channel order of the output; false: BGR"),
  RN_KEY_END,
};

/* mmcv.imnormalize: float32 (byte - mean), times the float32 of a reciprocal that is taken in double. */
static gboolean
normalize_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  Normalize *settings = self;

  if (settings->mean->len != 3 || settings->std->len != 3)
    return rn_node_error (node, error, "mean and std are lists of three numbers");
  for (guint c = 0; c < 3; c++)
    {
      float mean = (float) g_array_index (settings->mean, double, c);
      float factor = (float) (1 / g_array_index (settings->std, double, c));

      for (guint v = 0; v < 256; v++)
        settings->table[c][v] = ((float) v - mean) * factor;
    }
  return TRUE;
}

static gboolean
normalize_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  const Normalize *settings = self;

  sample->table = settings->table;
  sample->rgb = settings->to_rgb;
  return TRUE;
}

const RnTransformDesc rn_transform_normalize = {
  .component = { "Normalize", "subtracts the mean, divides by the deviation", sizeof (Normalize),
                 normalize_keys },
  .rank = RN_TRANSFORM_NORMALIZE,
  .setup = normalize_setup,
  .run = normalize_run,
};

/* ---- Pad ---- */

typedef struct
{
  gint64 size_divisor; /* RN_NULL_INT: not given */
  GArray *size;        /* of gint64; NULL: not given */
} Pad;

static const RnKeySpec pad_keys[] = {
  RN_KEY (Pad, size_divisor, RN_KEY_INT, "null",
          "both sides become multiples of it, by zeros at the right and the bottom", .min = 1, .max = 1024,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (Pad, size, RN_KEY_INT_LIST, "null",
          "or: [height, width] in pixels that the image grows to; a larger one stays", .min = 1,
          .max = RN_MAX_SIDE, .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

static gboolean
pad_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const Pad *settings = self;

  if ((settings->size_divisor == RN_NULL_INT) == (settings->size == NULL))
    return rn_node_error (node, error, "Pad needs size_divisor or size, one of them");
  if (settings->size != NULL && settings->size->len != 2)
    return rn_node_error (node, error, "size is [height, width]");
  return TRUE;
}

/* @i: 0 height, 1 width. */
static int
padded (const Pad *settings, int i, int side)
{
  if (settings->size != NULL)
    return MAX (side, (int) g_array_index (settings->size, gint64, i));
  int divisor = (int) settings->size_divisor;
  return (side + divisor - 1) / divisor * divisor;
}

/* The image itself stays: the zeros are written together with those of the batch. */
static void
pad_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  sample->meta->pad_width = padded (self, 1, sample->width);
  sample->meta->pad_height = padded (self, 0, sample->height);
}

static void
pad_bound (gconstpointer self, RnSizeRange in, GArray *out)
{
  RnSizeRange range = { padded (self, 1, in.min_width), padded (self, 1, in.max_width),
                        padded (self, 0, in.min_height), padded (self, 0, in.max_height) };

  g_array_append_val (out, range);
}

const RnTransformDesc rn_transform_pad = {
  .component = { "Pad", "rounds the size up, after normalising", sizeof (Pad), pad_keys },
  .rank = RN_TRANSFORM_PAD,
  .setup = pad_setup,
  .plan = pad_plan,
  .bound = pad_bound,
};

/* ---- DefaultFormatBundle, ImageToTensor ---- */

static void
write_row (const RnSample *sample, int y, guint8 *out)
{
  const gsize width = sample->width;
  const guint8 *in = sample->pixels + (gsize) y * width * 3;

  if (sample->rgb)
    memcpy (out, in, 3 * width);
  else
    for (gsize x = 0; x < 3 * width; x += 3)
      {
        out[x] = in[x + 2];
        out[x + 1] = in[x + 1];
        out[x + 2] = in[x];
      }
  memset (out + 3 * width, 0, 3 * (sample->out_width - width));
}

/* Writes the image with its final padding, that of the batch, so no padded copy is ever made. */
static gboolean
bundle_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  const gsize pitch = (gsize) sample->out_width * 3, height = sample->height;

  if (sample->image == NULL)
    return TRUE;
  for (gsize y = 0; y < height; y++)
    write_row (sample, (int) y, sample->image + y * pitch);
  memset (sample->image + height * pitch, 0, pitch * (sample->out_height - height));
  sample->size[0] = sample->height;
  sample->size[1] = sample->width;
  for (int c = 0; c < 3; c++)
    for (int v = 0; v < 256; v++)
      sample->values[c][v] = sample->table != NULL ? sample->table[c][v] : (float) v;
  return TRUE;
}

static const RnKeySpec no_keys[] = { RN_KEY_END };

const RnTransformDesc rn_transform_format_bundle = {
  .component = { "DefaultFormatBundle", "writes the image into its batch", 0, no_keys },
  .rank = RN_TRANSFORM_BUNDLE,
  .run = bundle_run,
};

typedef struct
{
  char **keys;
} Keys;

static const RnKeySpec keys_keys[] = {
  RN_KEY (Keys, keys, RN_KEY_STRING_LIST, NULL, "what goes into the batch: img, gt_bboxes, gt_labels",
          .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static gboolean
keys_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  static const char *const known[] = { "img", "gt_bboxes", "gt_labels", NULL };
  const char *const *keys = (const char *const *) ((const Keys *) self)->keys;

  for (guint i = 0; keys[i] != NULL; i++)
    if (!g_strv_contains (known, keys[i]))
      return rn_node_error (node, error, "keys: \"%s\" is not one of img, gt_bboxes, gt_labels", keys[i]);
  return g_strv_contains (keys, "img") ? TRUE : rn_node_error (node, error, "keys: \"img\" is missing");
}

const RnTransformDesc rn_transform_image_to_tensor = {
  .component = { "ImageToTensor", "writes the image into its batch", sizeof (Keys), keys_keys },
  .rank = RN_TRANSFORM_BUNDLE,
  .setup = keys_setup,
  .run = bundle_run,
};

/* ---- Collect ---- */

const RnTransformDesc rn_transform_collect = {
  .component = { "Collect", "names what goes into the batch", sizeof (Keys), keys_keys },
  .rank = RN_TRANSFORM_COLLECT,
  .setup = keys_setup,
};
