#include "config.h"

#include "datasets/transform.h"

#include "datasets/image.h"
#include "datasets/resize.h"

#include <math.h>
#include <string.h>

#define MAX_SIDE 16384 /* of a resized or padded image */

/* ---- LoadImageFromFile ---- */

/* A transform without settings still has an instance. */
typedef struct
{
  char unused;
} Plain;

static const RnKeySpec no_keys[] = { RN_KEY_END };

static gboolean
load_image_run (gconstpointer self, RnSample *sample, GError **error)
{
  return rn_image_decode_path (sample->meta->path, sample->pixels, sample->meta->ori_width,
                               sample->meta->ori_height, error);
}

const RnTransformDesc rn_transform_load_image = {
  .component = { "LoadImageFromFile", "decodes a JPEG or PNG file", sizeof (Plain), no_keys },
  .rank = RN_TRANSFORM_LOAD,
  .run = load_image_run,
};

/* ---- LoadAnnotations ---- */

typedef struct
{
  gboolean with_bbox;
} LoadAnnotations;

static const RnKeySpec load_annotations_keys[] = {
  RN_KEY (LoadAnnotations, with_bbox, RN_KEY_BOOL, "true", "load boxes and labels"),
  RN_KEY_END,
};

/*
 * Difficult objects are left out: MMDetection's VOC configuration does not collect them either, so they are
 * plain background.
 */
static gboolean
load_annotations_run (gconstpointer self, RnSample *sample, GError **error)
{
  const LoadAnnotations *settings = self;
  RnSampleMeta *meta = sample->meta;

  for (int i = 0; settings->with_bbox && i < sample->truth.n; i++)
    if (!sample->truth.difficult[i])
      {
        memcpy (meta->gt_boxes[meta->n_gt], sample->truth.boxes[i], sizeof meta->gt_boxes[0]);
        meta->gt_labels[meta->n_gt++] = sample->truth.labels[i];
      }
  return TRUE;
}

const RnTransformDesc rn_transform_load_annotations = {
  .component = { "LoadAnnotations", "takes the boxes and labels of the image", sizeof (LoadAnnotations),
                 load_annotations_keys },
  .rank = RN_TRANSFORM_ANNOTATIONS,
  .run = load_annotations_run,
};

/* ---- Resize ---- */

static const RnKeySpec resize_keys[] = {
  RN_KEY (RnResize, img_scale, RN_KEY_INT_LIST, "null",
          "[longer, shorter] side that the image may take, in pixels", .min = 1, .max = MAX_SIDE,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnResize, keep_ratio, RN_KEY_BOOL, "true",
          "one factor for both sides; false: img_scale is [width, height]"),
  RN_KEY_END,
};

static gboolean
resize_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const RnResize *settings = self;

  if (settings->img_scale->len == 2)
    return TRUE;
  return rn_node_error (node, error, "img_scale is one scale of two numbers, [longer side, shorter side]");
}

/*
 * mmcv.rescale_size: the largest factor at which the image fits into the scale, in either direction; sizes
 * are rounded half up.
 */
static void
resize_plan (gconstpointer self, RnSampleMeta *meta)
{
  const RnResize *settings = self;
  double a = (double) g_array_index (settings->img_scale, gint64, 0);
  double b = (double) g_array_index (settings->img_scale, gint64, 1);
  int w = meta->ori_width, h = meta->ori_height;

  if (settings->keep_ratio)
    {
      double factor = MIN (MAX (a, b) / MAX (w, h), MIN (a, b) / MIN (w, h));

      a = w * factor + 0.5;
      b = h * factor + 0.5;
    }
  meta->img_width = meta->pad_width = MAX ((int) a, 1);
  meta->img_height = meta->pad_height = MAX ((int) b, 1);
  meta->scale_w = (float) ((double) meta->img_width / w);
  meta->scale_h = (float) ((double) meta->img_height / h);
}

static gboolean
resize_run (gconstpointer self, RnSample *sample, GError **error)
{
  RnSampleMeta *meta = sample->meta;
  guint8 *resized = sample->spare;

  rn_resize_bilinear (sample->pixels, meta->ori_width, meta->ori_height, resized, meta->img_width,
                      meta->img_height);
  sample->spare = sample->pixels;
  sample->pixels = resized;
  for (int i = 0; i < meta->n_gt; i++)
    for (int c = 0; c < 4; c++)
      {
        gboolean horizontal = c % 2 == 0;
        float side = (float) (horizontal ? meta->img_width : meta->img_height);

        meta->gt_boxes[i][c] =
            CLAMP (meta->gt_boxes[i][c] * (horizontal ? meta->scale_w : meta->scale_h), 0, side);
      }
  return TRUE;
}

const RnTransformDesc rn_transform_resize = {
  .component = { "Resize", "scales the image and its boxes, bilinear as OpenCV", sizeof (RnResize),
                 resize_keys },
  .rank = RN_TRANSFORM_RESIZE,
  .setup = resize_setup,
  .plan = resize_plan,
  .run = resize_run,
};

/* ---- RandomFlip ---- */

typedef struct
{
  double flip_ratio; /* NAN: never */
  int direction;
} RandomFlip;

static const char *const flip_directions[] = { "horizontal", NULL };

static const RnKeySpec random_flip_keys[] = {
  RN_KEY (RandomFlip, flip_ratio, RN_KEY_FLOAT, "null", "probability of a flip; null: never", .min = 0,
          .max = 1, .flags = RN_KEY_NULLABLE),
  RN_KEY (RandomFlip, direction, RN_KEY_ENUM, "horizontal", "axis", .names = flip_directions),
  RN_KEY_END,
};

static gboolean
random_flip_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const RandomFlip *settings = self;

  if (!test_mode || !(settings->flip_ratio > 0))
    return TRUE;
  return rn_node_error (node, error, "a test pipeline cannot flip at random; leave flip_ratio out");
}

static void
flip_row (guint8 *row, int width)
{
  for (guint8 *a = row, *b = row + 3 * (width - 1); a < b; a += 3, b -= 3)
    for (int c = 0; c < 3; c++)
      {
        guint8 byte = a[c];

        a[c] = b[c];
        b[c] = byte;
      }
}

static gboolean
random_flip_run (gconstpointer self, RnSample *sample, GError **error)
{
  const RandomFlip *settings = self;
  RnSampleMeta *meta = sample->meta;
  float width = (float) meta->img_width;

  meta->flip = rn_rng_uniform (&sample->rng) < settings->flip_ratio; /* never for NAN */
  if (!meta->flip)
    return TRUE;
  for (int y = 0; y < meta->img_height; y++)
    flip_row (sample->pixels + (gsize) y * meta->img_width * 3, meta->img_width);
  for (int i = 0; i < meta->n_gt; i++)
    {
      float x1 = meta->gt_boxes[i][0];

      meta->gt_boxes[i][0] = width - meta->gt_boxes[i][2];
      meta->gt_boxes[i][2] = width - x1;
    }
  return TRUE;
}

const RnTransformDesc rn_transform_random_flip = {
  .component = { "RandomFlip", "mirrors the image and its boxes with a probability", sizeof (RandomFlip),
                 random_flip_keys },
  .rank = RN_TRANSFORM_FLIP,
  .setup = random_flip_setup,
  .run = random_flip_run,
};

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
normalize_run (gconstpointer self, RnSample *sample, GError **error)
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
  gint64 size_divisor;
} Pad;

static const RnKeySpec pad_keys[] = {
  RN_KEY (Pad, size_divisor, RN_KEY_INT, NULL,
          "both sides become multiples of it, by zeros at the right and the bottom", .min = 1, .max = 1024,
          .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static void
pad_plan (gconstpointer self, RnSampleMeta *meta)
{
  int divisor = (int) ((const Pad *) self)->size_divisor;

  meta->pad_width = (meta->img_width + divisor - 1) / divisor * divisor;
  meta->pad_height = (meta->img_height + divisor - 1) / divisor * divisor;
}

const RnTransformDesc rn_transform_pad = {
  .component = { "Pad", "rounds the size up, after normalising", sizeof (Pad), pad_keys },
  .rank = RN_TRANSFORM_PAD,
  .plan = pad_plan,
};

/* ---- DefaultFormatBundle, ImageToTensor ---- */

static void
write_row (const RnSample *sample, int channel, int y, float *out)
{
  int width = sample->meta->img_width;
  const guint8 *in = sample->pixels + (gsize) y * width * 3 + (sample->rgb ? channel : 2 - channel);

  if (sample->table != NULL)
    for (int x = 0; x < width; x++)
      out[x] = sample->table[channel][in[3 * x]];
  else
    for (int x = 0; x < width; x++)
      out[x] = in[3 * x];
  memset (out + width, 0, sizeof (float) * (sample->out_width - width));
}

/* Writes the image with its final padding, that of the batch, so no padded copy is ever made. */
static gboolean
bundle_run (gconstpointer self, RnSample *sample, GError **error)
{
  gsize pitch = sample->out_width, plane = pitch * sample->out_height;
  int height = sample->meta->img_height;

  for (int c = 0; c < 3; c++)
    {
      for (int y = 0; y < height; y++)
        write_row (sample, c, y, sample->image + c * plane + y * pitch);
      memset (sample->image + c * plane + height * pitch, 0, sizeof (float) * (plane - height * pitch));
    }
  return TRUE;
}

const RnTransformDesc rn_transform_format_bundle = {
  .component = { "DefaultFormatBundle", "to float32, one plane a channel", sizeof (Plain), no_keys },
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
  .component = { "ImageToTensor", "to float32, one plane a channel", sizeof (Keys), keys_keys },
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

/* ---- MultiScaleFlipAug ---- */

static const RnKeySpec multi_scale_flip_aug_keys[] = {
  RN_KEY (RnMultiScaleFlipAug, img_scale, RN_KEY_INT_LIST, NULL,
          "[longer, shorter] side for the Resize inside, in pixels", .min = 1, .max = MAX_SIDE,
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnMultiScaleFlipAug, flip, RN_KEY_BOOL, "false", "test on the mirrored image too; only false"),
  RN_KEY (RnMultiScaleFlipAug, transforms, RN_KEY_NODE, NULL, "list of transforms", .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static gboolean
multi_scale_flip_aug_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const RnMultiScaleFlipAug *settings = self;

  return settings->flip ? rn_node_error (node, error, "flip: one pass over the image only; set it to false")
                        : TRUE;
}

const RnTransformDesc rn_transform_multi_scale_flip_aug = {
  .component = { "MultiScaleFlipAug", "wraps a test pipeline of one scale", sizeof (RnMultiScaleFlipAug),
                 multi_scale_flip_aug_keys },
  .rank = RN_TRANSFORM_NEST,
  .setup = multi_scale_flip_aug_setup,
};
