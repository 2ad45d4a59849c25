/* transform-resize.c: Resize, to one scale or to one that is drawn for each image. */
#include "config.h"

#include "datasets/transform.h"

#include "datasets/resize.h"

enum
{
  MODE_RANGE,
  MODE_VALUE
};

static const char *const mode_names[] = { "range", "value", NULL };

static const RnKeySpec resize_keys[] = {
  RN_KEY (RnResize, img_scale, RN_KEY_NODE, "null",
          "[longer, shorter] side that the image may take, in pixels; or a list of such scales to draw from",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnResize, multiscale_mode, RN_KEY_ENUM, "range",
          "range: each side is drawn between those of two scales; value: one of the scales is drawn",
          .names = mode_names),
  RN_KEY (RnResize, ratio_range, RN_KEY_FLOAT_LIST, "null",
          "[low, high]: the one scale is multiplied by a number drawn between them", .min = 0.01, .max = 100,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnResize, keep_ratio, RN_KEY_BOOL, "true",
          "one factor for both sides; false: the scale is [width, height]"),
  RN_KEY (RnResize, override, RN_KEY_BOOL, "false", "this is a second Resize, on purpose"),
  RN_KEY_END,
};

/* ---- Scales ---- */

static gboolean
parse_scale (const RnNode *node, RnScales *scales, GError **error)
{
  if (rn_node_kind (node) != RN_NODE_LIST || rn_node_size (node) != 2)
    return rn_node_error (node, error, "a scale is two numbers, [longer side, shorter side]");
  for (guint i = 0; i < 2; i++)
    {
      const RnNode *side = rn_node_item (node, i);

      if (rn_node_kind (side) != RN_NODE_INT || rn_node_as_int (side) < 1
          || rn_node_as_int (side) > RN_MAX_SIDE)
        return rn_node_error (side, error, "a side is a whole number of pixels, 1 to %d", RN_MAX_SIDE);
      scales->sides[scales->n][i] = (int) rn_node_as_int (side);
    }
  scales->n++;
  return TRUE;
}

gboolean
rn_scales_parse (const RnNode *node, RnScales *scales, GError **error)
{
  guint n = rn_node_size (node);

  scales->n = 0;
  if (rn_node_kind (node) != RN_NODE_LIST || n == 0 || rn_node_kind (rn_node_item (node, 0)) != RN_NODE_LIST)
    return parse_scale (node, scales, error);
  if (n > RN_MAX_SCALES)
    return rn_node_error (node, error, "more than %d scales", RN_MAX_SCALES);
  for (guint i = 0; i < n; i++)
    if (!parse_scale (rn_node_item (node, i), scales, error))
      return FALSE;
  return TRUE;
}

static gboolean
is_random (const RnResize *settings)
{
  return settings->scales.n > 1 || settings->ratio_range != NULL;
}

static gboolean
check_ratio_range (const RnResize *settings, const RnNode *node, GError **error)
{
  const double *range = (const double *) (gpointer) settings->ratio_range->data;

  if (settings->ratio_range->len != 2 || range[0] > range[1])
    return rn_node_error (node, error, "ratio_range is [low, high]");
  for (int i = 0; i < 2; i++)
    if (settings->scales.sides[0][i] * range[1] > RN_MAX_SIDE)
      return rn_node_error (node, error, "ratio_range makes a side longer than %d pixels", RN_MAX_SIDE);
  return settings->scales.n == 1 || rn_node_error (node, error, "ratio_range goes with one img_scale");
}

/* The scales of the instance are there: its own, or those of the MultiScaleFlipAug around it. */
static gboolean
resize_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  RnResize *settings = self;

  if (settings->img_scale != NULL && !rn_scales_parse (settings->img_scale, &settings->scales, error))
    return FALSE;
  if (settings->scales.n == 0)
    return rn_node_error (node, error, "Resize needs img_scale: [longer side, shorter side]");
  if (settings->ratio_range != NULL && !check_ratio_range (settings, node, error))
    return FALSE;
  if (settings->ratio_range == NULL && settings->multiscale_mode == MODE_RANGE && settings->scales.n > 2)
    return rn_node_error (node, error,
                          "img_scale: a range has two scales; to draw one of several, set multiscale_mode: "
                          "value");
  if (test_mode && is_random (settings))
    return rn_node_error (node, error, "a test pipeline resizes to one img_scale");
  return TRUE;
}

/* Numbers are drawn as MMDetection does: whole pixels, both ends included; products are truncated. */
static void
draw_scale (const RnResize *settings, RnRng *rng, int scale[2])
{
  const int (*sides)[2] = settings->scales.sides;

  if (settings->ratio_range != NULL)
    {
      const double *range = (const double *) (gpointer) settings->ratio_range->data;
      double ratio = range[0] + (range[1] - range[0]) * rn_rng_uniform (rng);

      for (int i = 0; i < 2; i++)
        scale[i] = MAX ((int) (sides[0][i] * ratio), 1);
    }
  else if (settings->scales.n > 1 && settings->multiscale_mode == MODE_RANGE)
    for (int i = 0; i < 2; i++) /* the longer sides, then the shorter ones */
      {
        int a = i == 0 ? MAX (sides[0][0], sides[0][1]) : MIN (sides[0][0], sides[0][1]);
        int b = i == 0 ? MAX (sides[1][0], sides[1][1]) : MIN (sides[1][0], sides[1][1]);

        scale[i] = MIN (a, b) + (int) rn_rng_below (rng, (guint64) ABS (a - b) + 1);
      }
  else
    {
      gsize k = settings->scales.n > 1 ? rn_rng_below (rng, (guint64) settings->scales.n) : 0;

      scale[0] = sides[k][0];
      scale[1] = sides[k][1];
    }
}

/*
 * mmcv.rescale_size: the largest factor at which the image fits into the scale, in either direction; sizes
 * are rounded half up.
 */
static void
size_at (const int scale[2], gboolean keep_ratio, int *width, int *height)
{
  double a = scale[0], b = scale[1];

  if (keep_ratio)
    {
      double factor = MIN (MAX (a, b) / MAX (*width, *height), MIN (a, b) / MIN (*width, *height));

      a = *width * factor + 0.5;
      b = *height * factor + 0.5;
    }
  *width = MAX ((int) a, 1);
  *height = MAX ((int) b, 1);
}

static void
resize_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const RnResize *settings = self;
  RnSampleMeta *meta = sample->meta;
  int width = sample->width, height = sample->height, scale[2];

  draw_scale (settings, rng, scale);
  size_at (scale, settings->keep_ratio, &sample->width, &sample->height);
  meta->scale_w = (float) ((double) sample->width / width);
  meta->scale_h = (float) ((double) sample->height / height);
  rn_sample_scale_boxes (sample, meta->scale_w, meta->scale_h, sample->width, sample->height);
  decision->active = sample->width != width || sample->height != height;
}

/* ---- Bounds ---- */

/* The smallest and the largest scale that can be drawn, or the k-th of several values. */
static void
scale_limits (const RnResize *settings, int k, int low[2], int high[2])
{
  const int (*sides)[2] = settings->scales.sides;

  for (int i = 0; i < 2; i++)
    if (settings->ratio_range != NULL)
      {
        const double *range = (const double *) (gpointer) settings->ratio_range->data;

        low[i] = MAX ((int) (sides[0][i] * range[0]), 1);
        high[i] = MAX ((int) (sides[0][i] * range[1]), 1);
      }
    else if (settings->scales.n > 1 && settings->multiscale_mode == MODE_RANGE)
      {
        int a = i == 0 ? MAX (sides[0][0], sides[0][1]) : MIN (sides[0][0], sides[0][1]);
        int b = i == 0 ? MAX (sides[1][0], sides[1][1]) : MIN (sides[1][0], sides[1][1]);

        low[i] = MIN (a, b);
        high[i] = MAX (a, b);
      }
    else
      low[i] = high[i] = sides[k][i];
}

/* Rounded half up, with room for what the factor's own rounding may add. */
static int
round_bound (double side)
{
  return MAX ((int) (side + 0.5 + 1e-6), 1);
}

/*
 * Images of @in that are at least as wide as high (@wide), or at least as high as wide, fitted into @high.
 * The longer side is longest where the ratio of the sides is largest, the shorter one where it is smallest.
 */
static void
bound_oriented (RnSizeRange in, const int high[2], gboolean wide, GArray *out)
{
  int max_long = wide ? in.max_width : in.max_height, min_long = wide ? in.min_width : in.min_height;
  int max_short = wide ? in.max_height : in.max_width, min_short = wide ? in.min_height : in.min_width;
  double a = MAX (high[0], high[1]), b = MIN (high[0], high[1]);
  double longer, shorter;

  if (max_long < min_short)
    return; /* none is */
  longer = MIN (a, b * max_long / min_short);
  shorter = MIN (b, a * MIN (1.0, (double) max_short / min_long));
  RnSizeRange range = { 1, round_bound (wide ? longer : shorter), 1, round_bound (wide ? shorter : longer) };
  g_array_append_val (out, range);
}

static void
resize_bound (gconstpointer self, RnSizeRange in, GArray *out)
{
  const RnResize *settings = self;
  gboolean values = settings->ratio_range == NULL && settings->multiscale_mode == MODE_VALUE;
  gboolean one_size = in.min_width == in.max_width && in.min_height == in.max_height;

  for (int k = 0; k < (values ? settings->scales.n : 1); k++)
    {
      int low[2], high[2];

      scale_limits (settings, k, low, high);
      if (one_size || !settings->keep_ratio) /* larger scales give larger images */
        {
          RnSizeRange range = { in.min_width, in.max_width, in.min_height, in.max_height };

          size_at (low, settings->keep_ratio, &range.min_width, &range.min_height);
          size_at (high, settings->keep_ratio, &range.max_width, &range.max_height);
          g_array_append_val (out, range);
          continue;
        }
      bound_oriented (in, high, TRUE, out);
      bound_oriented (in, high, FALSE, out);
    }
}

static gboolean
resize_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  rn_resize_bilinear (sample->pixels, sample->width, sample->height, sample->spare, decision->width,
                      decision->height);
  rn_sample_swap (sample);
  return TRUE;
}

const RnTransformDesc rn_transform_resize = {
  .component = { "Resize", "scales the image and its boxes, bilinear as OpenCV", sizeof (RnResize),
                 resize_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_RESIZE,
  .setup = resize_setup,
  .plan = resize_plan,
  .bound = resize_bound,
  .run = resize_run,
};

/* ---- MultiScaleFlipAug ---- */

static const RnKeySpec multi_scale_flip_aug_keys[] = {
  RN_KEY (RnMultiScaleFlipAug, img_scale, RN_KEY_NODE, NULL,
          "[longer, shorter] side for the Resize inside, in pixels", .flags = RN_KEY_REQUIRED),
  RN_KEY (RnMultiScaleFlipAug, flip, RN_KEY_BOOL, "false", "test on the mirrored image too; only false"),
  RN_KEY (RnMultiScaleFlipAug, transforms, RN_KEY_NODE, NULL, "list of transforms", .flags = RN_KEY_REQUIRED),
  RN_KEY_END,
};

static gboolean
multi_scale_flip_aug_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  RnMultiScaleFlipAug *settings = self;

  if (!rn_scales_parse (settings->img_scale, &settings->scales, error))
    return FALSE;
  if (settings->scales.n > 1)
    return rn_node_error (settings->img_scale, error, "one pass over the image only; give one scale");
  return settings->flip ? rn_node_error (node, error, "flip: one pass over the image only; set it to false")
                        : TRUE;
}

const RnTransformDesc rn_transform_multi_scale_flip_aug = {
  .component = { "MultiScaleFlipAug", "wraps a test pipeline of one scale", sizeof (RnMultiScaleFlipAug),
                 multi_scale_flip_aug_keys },
  .rank = RN_TRANSFORM_NEST,
  .setup = multi_scale_flip_aug_setup,
};
