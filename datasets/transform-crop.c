/* transform-crop.c: RandomCrop and MinIoURandomCrop: a part of the image becomes the image. */
#include "config.h"

#include "datasets/transform.h"

#include "boxes/box.h"

#include <string.h>

#define N_TRIES 50

/* Decisions of both: x, y, width and height of the part. */
static gboolean
crop_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  gsize from = (gsize) sample->width * 3, to = (gsize) decision->width * 3;
  const guint8 *first = sample->pixels + decision->y * from + (gsize) decision->x * 3;

  for (int y = 0; y < decision->height; y++) /* never ahead of what is still to be read */
    memmove (sample->pixels + y * to, first + y * from, to);
  return TRUE;
}

/* ---- RandomCrop ---- */

enum
{
  CROP_ABSOLUTE,
  CROP_ABSOLUTE_RANGE,
  CROP_RELATIVE,
  CROP_RELATIVE_RANGE
};

static const char *const crop_types[] = { "absolute", "absolute_range", "relative", "relative_range", NULL };

typedef struct
{
  GArray *crop_size; /* of double */
  int crop_type;
  gboolean allow_negative_crop;
} RandomCrop;

static const RnKeySpec random_crop_keys[] = {
  RN_KEY (RandomCrop, crop_size, RN_KEY_FLOAT_LIST, NULL,
          "[height, width] in pixels or as parts of the image's; absolute_range: [shortest, longest] side",
          .min = 1e-3, .max = RN_MAX_SIDE, .flags = RN_KEY_REQUIRED),
  RN_KEY (RandomCrop, crop_type, RN_KEY_ENUM, "absolute",
          "what crop_size is; the ranges draw each side, up to the whole image or the longest side",
          .names = crop_types),
  RN_KEY (RandomCrop, allow_negative_crop, RN_KEY_BOOL, "false",
          "parts without objects; false: drawn again, and in the end laid over an object"),
  RN_KEY_END,
};

static gboolean
random_crop_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  const RandomCrop *settings = self;
  gboolean relative = settings->crop_type == CROP_RELATIVE || settings->crop_type == CROP_RELATIVE_RANGE;

  if (settings->crop_size->len != 2)
    return rn_node_error (node, error, "crop_size is a list of two numbers");
  for (guint i = 0; i < 2; i++)
    {
      double side = g_array_index (settings->crop_size, double, i);

      if (relative && side > 1)
        return rn_node_error (node, error,
                              "crop_size: %g is no part of an image; crop_type: absolute takes "
                              "pixels",
                              side);
      if (!relative && (side < 1 || side != (double) (int) side))
        return rn_node_error (node, error,
                              "crop_size: %g is no whole number of pixels; crop_type: relative "
                              "takes parts",
                              side);
    }
  if (settings->crop_type == CROP_ABSOLUTE_RANGE
      && g_array_index (settings->crop_size, double, 0) > g_array_index (settings->crop_size, double, 1))
    return rn_node_error (node, error, "crop_size of an absolute_range is [shortest, longest]");
  return test_mode ? rn_transform_refuse_random (node, "RandomCrop", error) : TRUE;
}

/* The shortest and longest side that a side of @side can become; @i: 0 height, 1 width. */
static void
crop_limits (const RandomCrop *settings, int i, int side, int *low, int *high)
{
  double size = g_array_index (settings->crop_size, double, i);

  switch (settings->crop_type)
    {
    case CROP_ABSOLUTE:
      *low = *high = MIN ((int) size, side);
      break;
    case CROP_ABSOLUTE_RANGE:
      *low = MIN ((int) g_array_index (settings->crop_size, double, 0), side);
      *high = MIN ((int) g_array_index (settings->crop_size, double, 1), side);
      break;
    default:
      *low = MAX ((int) (side * size + 0.5), 1);
      *high = settings->crop_type == CROP_RELATIVE ? *low : side;
    }
}

static int
draw_crop_side (const RandomCrop *settings, int i, int side, RnRng *rng)
{
  int low, high;

  crop_limits (settings, i, side, &low, &high);
  if (settings->crop_type == CROP_ABSOLUTE_RANGE)
    return low + (int) rn_rng_below (rng, (guint64) (high - low) + 1);
  if (settings->crop_type == CROP_RELATIVE_RANGE)
    {
      double part = g_array_index (settings->crop_size, double, i);

      part += rn_rng_uniform (rng) * (1 - part);
      return CLAMP ((int) (side * part + 0.5), low, high);
    }
  return low;
}

static gboolean
crop_has_objects (const RnSample *sample, const RnDecision *crop)
{
  return rn_box_list_count_inside (&sample->gt, (float) -crop->x, (float) -crop->y, crop->width, crop->height,
                                   0)
         > 0;
}

/* As little as needed to hold the centre of @box, as near to it as the image allows. */
static void
lay_over (const RnSample *sample, const float box[4], RnDecision *crop)
{
  int x = (int) ((box[0] + box[2]) / 2) - crop->width / 2;
  int y = (int) ((box[1] + box[3]) / 2) - crop->height / 2;

  crop->x = CLAMP (x, 0, sample->width - crop->width);
  crop->y = CLAMP (y, 0, sample->height - crop->height);
}

/*
 * Where MMDetection gives up on the image for a part without objects, and loads another one, the part is
 * drawn again: every image keeps its place in the epoch.
 */
static void
random_crop_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const RandomCrop *settings = self;
  gboolean any = settings->allow_negative_crop || sample->gt.n == 0;

  decision->height = draw_crop_side (settings, 0, sample->height, rng);
  decision->width = draw_crop_side (settings, 1, sample->width, rng);
  for (int try = 0; try < N_TRIES; try++)
    {
      decision->y = (int) rn_rng_below (rng, (guint64) (sample->height - decision->height) + 1);
      decision->x = (int) rn_rng_below (rng, (guint64) (sample->width - decision->width) + 1);
      if (any || crop_has_objects (sample, decision))
        break;
      if (try == N_TRIES - 1)
        lay_over (sample, sample->gt.boxes[rn_rng_below (rng, (guint64) sample->gt.n)], decision);
    }
  rn_sample_move_boxes (sample, (float) -decision->x, (float) -decision->y);
  rn_sample_clip_boxes (sample, decision->width, decision->height, 0);
  sample->width = decision->width;
  sample->height = decision->height;
}

static void
random_crop_bound (gconstpointer self, RnSizeRange in, GArray *out)
{
  RnSizeRange range;
  int unused;

  crop_limits (self, 0, in.min_height, &range.min_height, &unused);
  crop_limits (self, 0, in.max_height, &unused, &range.max_height);
  crop_limits (self, 1, in.min_width, &range.min_width, &unused);
  crop_limits (self, 1, in.max_width, &unused, &range.max_width);
  g_array_append_val (out, range);
}

const RnTransformDesc rn_transform_random_crop = {
  .component = { "RandomCrop", "cuts a part out of the image; boxes are clipped to it", sizeof (RandomCrop),
                 random_crop_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_CROP,
  .moves_only = TRUE,
  .setup = random_crop_setup,
  .plan = random_crop_plan,
  .bound = random_crop_bound,
  .run = crop_run,
};

/* ---- MinIoURandomCrop ---- */

typedef struct
{
  GArray *min_ious; /* of double */
  double min_crop_size;
} MinIoUCrop;

static const RnKeySpec min_iou_crop_keys[] = {
  RN_KEY (MinIoUCrop, min_ious, RN_KEY_FLOAT_LIST, "[0.1, 0.3, 0.5, 0.7, 0.9]",
          "one is drawn (or 0, or that the image stays whole): each box overlaps the part by at least it",
          .min = 0, .max = 1),
  RN_KEY (MinIoUCrop, min_crop_size, RN_KEY_FLOAT, "0.3", "shortest side, as a part of the image's",
          .min = 0.01, .max = 1),
  RN_KEY_END,
};

static gboolean
min_iou_crop_setup (gpointer self, const RnNode *node, gboolean test_mode, GError **error)
{
  return test_mode ? rn_transform_refuse_random (node, "MinIoURandomCrop", error) : TRUE;
}

static double
draw_between (RnRng *rng, double low, double high)
{
  return low + (high - low) * rn_rng_uniform (rng);
}

/* FALSE: no part came out of this try. The ratio of the sides is 1/2 to 2. */
static gboolean
draw_window (const MinIoUCrop *settings, const RnSample *sample, RnRng *rng, int window[4])
{
  double w = draw_between (rng, settings->min_crop_size * sample->width, sample->width);
  double h = draw_between (rng, settings->min_crop_size * sample->height, sample->height);

  if (h / w < 0.5 || h / w > 2)
    return FALSE;
  double left = draw_between (rng, 0, sample->width - w), top = draw_between (rng, 0, sample->height - h);

  window[0] = (int) left;
  window[1] = (int) top;
  window[2] = (int) (left + w);
  window[3] = (int) (top + h);
  return window[2] > window[0] && window[3] > window[1];
}

/* Every box overlaps the window enough, and the centre of one of them is inside. */
static gboolean
window_suits (const RnBoxList *list, const int window[4], double min_iou)
{
  const RnBox part = { (float) window[0], (float) window[1], (float) window[2], (float) window[3] };
  gboolean centred = list->n == 0;

  for (int i = 0; i < list->n; i++)
    {
      const float *box = list->boxes[i];

      if ((double) rn_box_iou ((RnBox){ box[0], box[1], box[2], box[3] }, part, FALSE) < min_iou)
        return FALSE;
      centred |= rn_box_is_centred (box, window);
    }
  return centred;
}

/*
 * MMDetection's steps: draw an overlap, try N_TRIES parts, else draw the next overlap; one draw in n + 2 says
 * that the image stays whole. The number of rounds, without end there, is bounded: that it is reached has a
 * probability below 1e-6 even for 64 overlaps. Left and top are uniform up to where the part still fits;
 * MMDetection's are between 1 and that place.
 */
#define N_ROUNDS 1000

static gboolean
draw_part (const MinIoUCrop *settings, const RnSample *sample, RnRng *rng, int window[4])
{
  guint n = settings->min_ious->len;

  for (int round = 0; round < N_ROUNDS; round++)
    {
      guint64 mode = rn_rng_below (rng, n + 2);
      double min_iou = mode < n ? g_array_index (settings->min_ious, double, mode) : 0;

      if (mode == n + 1)
        return FALSE;
      for (int try = 0; try < N_TRIES; try++)
        if (draw_window (settings, sample, rng, window) && window_suits (&sample->gt, window, min_iou))
          return TRUE;
    }
  return FALSE;
}

static void
min_iou_crop_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  int window[4];

  decision->active = draw_part (self, sample, rng, window);
  if (!decision->active)
    return;
  decision->x = window[0];
  decision->y = window[1];
  rn_sample_keep_centred (sample, window);
  rn_sample_move_boxes (sample, (float) -window[0], (float) -window[1]);
  sample->width = window[2] - window[0];
  sample->height = window[3] - window[1];
  rn_sample_clip_boxes (sample, sample->width, sample->height, 0);
}

static void
min_iou_crop_bound (gconstpointer self, RnSizeRange in, GArray *out)
{
  const MinIoUCrop *settings = self;

  /* A window whose sides are truncated at both ends may lose nearly a pixel. */
  in.min_width = MAX ((int) (in.min_width * settings->min_crop_size) - 1, 1);
  in.min_height = MAX ((int) (in.min_height * settings->min_crop_size) - 1, 1);
  g_array_append_val (out, in);
}

const RnTransformDesc rn_transform_min_iou_crop = {
  .component = { "MinIoURandomCrop", "cuts out a part that overlaps every box enough (SSD)",
                 sizeof (MinIoUCrop), min_iou_crop_keys },
  .rank = RN_TRANSFORM_PIXELS,
  .draws = RN_DRAWS_MIN_IOU_CROP,
  .moves_only = TRUE,
  .setup = min_iou_crop_setup,
  .plan = min_iou_crop_plan,
  .bound = min_iou_crop_bound,
  .run = crop_run,
};
