/* transform-photometric.c: PhotoMetricDistortion draws its changes; photometric.c makes them. */
#include "config.h"

#include "datasets/transform.h"

#include "datasets/photometric.h"

typedef struct
{
  double brightness_delta;
  GArray *contrast_range, *saturation_range; /* of double */
  double hue_delta;
} Photometric;

static const RnKeySpec photometric_keys[] = {
  RN_KEY (Photometric, brightness_delta, RN_KEY_FLOAT, "32", "largest change of brightness, of 255", .min = 0,
          .max = 255),
  RN_KEY (Photometric, contrast_range, RN_KEY_FLOAT_LIST, "[0.5, 1.5]", "[low, high] factor of all values",
          .min = 0, .max = 100),
  RN_KEY (Photometric, saturation_range, RN_KEY_FLOAT_LIST, "[0.5, 1.5]", "[low, high] factor of saturation",
          .min = 0, .max = 100),
  RN_KEY (Photometric, hue_delta, RN_KEY_FLOAT, "18", "largest change of hue, in degrees", .min = 0,
          .max = 180),
  RN_KEY_END,
};

static gboolean
is_range (const GArray *range)
{
  return range->len == 2 && g_array_index (range, double, 0) <= g_array_index (range, double, 1);
}

static gboolean
photometric_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const Photometric *settings = self;

  if (!is_range (settings->contrast_range) || !is_range (settings->saturation_range))
    return rn_node_error (node, error, "contrast_range and saturation_range are [low, high]");
  return test_mode ? rn_transform_refuse_random (node, "PhotoMetricDistortion", error) : TRUE;
}

/* A number of [low, high), or @otherwise, at even odds. Always two draws. */
static float
draw_or (RnRng *rng, double low, double high, float otherwise)
{
  gboolean wanted = rn_rng_below (rng, 2) == 1;
  double drawn = low + (high - low) * rn_rng_uniform (rng);

  return wanted ? (float) drawn : otherwise;
}

static RnPhotometric
draw_change (const Photometric *settings, RnRng *rng)
{
  const double *contrast = (const double *) (gpointer) settings->contrast_range->data;
  const double *saturation = (const double *) (gpointer) settings->saturation_range->data;
  RnPhotometric change = RN_PHOTOMETRIC_INIT;
  int64_t order[3] = { 0, 1, 2 };

  change.brightness = draw_or (rng, -settings->brightness_delta, settings->brightness_delta, 0);
  change.contrast_first = rn_rng_below (rng, 2) == 1;
  change.contrast = draw_or (rng, contrast[0], contrast[1], 1);
  change.saturation = draw_or (rng, saturation[0], saturation[1], 1);
  change.hue = draw_or (rng, -settings->hue_delta, settings->hue_delta, 0);
  if (rn_rng_below (rng, 2) == 1)
    rn_rng_shuffle (rng, order, 3);
  for (int k = 0; k < 3; k++)
    change.order[k] = (int) order[k];
  return change;
}

static gboolean
photometric_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  const RnPhotometric change = draw_change (self, rng);

  rn_photometric_apply (&change, sample->pixels, (gsize) sample->width * sample->height);
  return TRUE;
}

const RnTransformDesc rn_transform_photometric = {
  .component = { "PhotoMetricDistortion",
                 "changes brightness, contrast, saturation, hue and channel order, each at even odds (SSD)",
                 sizeof (Photometric), photometric_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_PHOTOMETRIC,
  .setup = photometric_setup,
  .run = photometric_run,
};
