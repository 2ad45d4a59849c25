/* transform-place.c: Expand and RandomShift: the image elsewhere on a plain ground. */
#include "config.h"

#include "datasets/transform.h"

#include <math.h>
#include <string.h>

static void
fill (guint8 *pixels, gsize n, const guint8 color[3])
{
  for (gsize i = 0; i < 3 * n; i += 3)
    memcpy (pixels + i, color, 3);
}

/* ---- Expand ---- */

typedef struct
{
  GArray *mean; /* of double */
  gboolean to_rgb;
  GArray *ratio_range; /* of double */
  double prob;
  guint8 ground[3]; /* RGB */
} Expand;

static const RnKeySpec expand_keys[] = {
  RN_KEY (Expand, mean, RN_KEY_FLOAT_LIST, "[0, 0, 0]", "colour of the ground, rounded to bytes", .min = 0,
          .max = 255),
  RN_KEY (Expand, to_rgb, RN_KEY_BOOL, "true", "mean is red, green, blue; false: blue, green, red"),
  RN_KEY (Expand, ratio_range, RN_KEY_FLOAT_LIST, "[1, 4]",
          "[low, high]: sides of the ground over the image's", .min = 1, .max = 16),
  RN_KEY (Expand, prob, RN_KEY_FLOAT, "0.5", "probability that the image is put on a ground", .min = 0,
          .max = 1),
  RN_KEY_END,
};

static gboolean
expand_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  Expand *settings = self;

  if (settings->mean->len != 3)
    return rn_node_error (node, error, "mean is a list of three numbers");
  if (settings->ratio_range->len != 2
      || g_array_index (settings->ratio_range, double, 0) > g_array_index (settings->ratio_range, double, 1))
    return rn_node_error (node, error, "ratio_range is [low, high]");
  for (guint c = 0; c < 3; c++)
    settings->ground[settings->to_rgb ? c : 2 - c] =
        (guint8) lrint (g_array_index (settings->mean, double, c));
  return test_mode ? rn_transform_refuse_random (node, "Expand", error) : TRUE;
}

/* Decision: x and y of the image on the ground. Numbers are drawn and truncated as MMDetection does. */
static void
expand_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const Expand *settings = self;
  double low = g_array_index (settings->ratio_range, double, 0);
  double high = g_array_index (settings->ratio_range, double, 1);

  decision->active = rn_rng_uniform (rng) < settings->prob;
  if (!decision->active)
    return;
  double ratio = low + (high - low) * rn_rng_uniform (rng);
  int width = (int) (sample->width * ratio), height = (int) (sample->height * ratio);
  decision->x = (int) (rn_rng_uniform (rng) * (sample->width * ratio - sample->width));
  decision->y = (int) (rn_rng_uniform (rng) * (sample->height * ratio - sample->height));
  rn_sample_move_boxes (sample, (float) decision->x, (float) decision->y);
  sample->width = width;
  sample->height = height;
}

/*
 * Both sides grow by one factor. One range of all would not say so, and let a landscape image become a
 * portrait; ranges of a slice of the factors each keep the ratio of the sides nearly as it is.
 */
#define N_SLICES 12

static void
expand_bound (gconstpointer self, RnSizeRange in, GArray *out)
{
  const Expand *settings = self;
  double low = settings->prob < 1 ? 1 : g_array_index (settings->ratio_range, double, 0);
  double high = settings->prob > 0 ? g_array_index (settings->ratio_range, double, 1) : 1;
  double step = pow (high / low, 1.0 / N_SLICES);
  for (int i = 0; i < (high > low ? N_SLICES : 1); i++)
    {
      /* A little wider than the slice, for the rounding of the powers. */
      double from = MAX (low, low * pow (step, i) * (1 - 1e-9));
      double to = MIN (high, low * pow (step, i + 1) * (1 + 1e-9));
      RnSizeRange range = { (int) (in.min_width * from), (int) (in.max_width * to),
                            (int) (in.min_height * from), (int) (in.max_height * to) };

      g_array_append_val (out, range);
    }
}

static gboolean
expand_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  const Expand *settings = self;
  gsize from = (gsize) sample->width * 3, to = (gsize) decision->width * 3;

  fill (sample->spare, (gsize) decision->width * decision->height, settings->ground);
  for (int y = 0; y < sample->height; y++)
    memcpy (sample->spare + (decision->y + y) * to + (gsize) decision->x * 3, sample->pixels + y * from,
            from);
  rn_sample_swap (sample);
  return TRUE;
}

const RnTransformDesc rn_transform_expand = {
  .component = { "Expand", "puts the image on a larger ground, so that objects get smaller (SSD)",
                 sizeof (Expand), expand_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_EXPAND,
  .setup = expand_setup,
  .plan = expand_plan,
  .bound = expand_bound,
  .run = expand_run,
};

/* ---- RandomShift ---- */

typedef struct
{
  double shift_ratio;
  gint64 max_shift_px;
  double filter_thr_px;
} RandomShift;

static const RnKeySpec random_shift_keys[] = {
  RN_KEY (RandomShift, shift_ratio, RN_KEY_FLOAT, "0.5", "probability of a shift", .min = 0, .max = 1),
  RN_KEY (RandomShift, max_shift_px, RN_KEY_INT, "32", "longest shift in each direction, in pixels", .min = 0,
          .max = RN_MAX_SIDE),
  RN_KEY (RandomShift, filter_thr_px, RN_KEY_FLOAT, "1",
          "boxes with a side that is not longer afterwards go, in pixels", .min = 0, .max = RN_MAX_SIDE),
  RN_KEY_END,
};

static gboolean
random_shift_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  return test_mode ? rn_transform_refuse_random (node, "RandomShift", error) : TRUE;
}

static int
draw_shift (const RandomShift *settings, int side, RnRng *rng)
{
  int max = (int) settings->max_shift_px;
  int shift = (int) rn_rng_below (rng, 2 * (guint64) max + 1) - max;

  return CLAMP (shift, -side, side);
}

/* Decision: x and y of the shift, which does not take place if no box would be left of some. */
static void
random_shift_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const RandomShift *settings = self;
  float min_side = (float) settings->filter_thr_px;

  decision->active = rn_rng_uniform (rng) < settings->shift_ratio;
  decision->x = draw_shift (settings, sample->width, rng);
  decision->y = draw_shift (settings, sample->height, rng);
  if (decision->active && sample->gt.n > 0)
    decision->active = rn_box_list_count_inside (&sample->gt, (float) decision->x, (float) decision->y,
                                                 sample->width, sample->height, min_side)
                       > 0;
  if (!decision->active)
    return;
  rn_sample_move_boxes (sample, (float) decision->x, (float) decision->y);
  rn_sample_clip_boxes (sample, sample->width, sample->height, min_side);
}

static gboolean
random_shift_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng,
                  GError **error)
{
  int dx = decision->x, dy = decision->y;
  gsize pitch = (gsize) sample->width * 3, n = (gsize) (sample->width - ABS (dx)) * 3;

  memset (sample->spare, 0, pitch * sample->height);
  for (int y = MAX (dy, 0); y < sample->height + MIN (dy, 0); y++)
    memcpy (sample->spare + y * pitch + (gsize) MAX (dx, 0) * 3,
            sample->pixels + (y - dy) * pitch + (gsize) MAX (-dx, 0) * 3, n);
  rn_sample_swap (sample);
  return TRUE;
}

const RnTransformDesc rn_transform_random_shift = {
  .component = { "RandomShift", "shifts the image and its boxes; black comes in", sizeof (RandomShift),
                 random_shift_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_SHIFT,
  .setup = random_shift_setup,
  .plan = random_shift_plan,
  .run = random_shift_run,
};
