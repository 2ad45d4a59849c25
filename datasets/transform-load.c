/* transform-load.c: LoadImageFromFile and LoadAnnotations, with which every pipeline begins. */
#include "config.h"

#include "datasets/transform.h"

#include "datasets/image.h"

static const RnKeySpec load_image_keys[] = {
  { .name = "to_float32", .type = RN_KEY_UNUSED, .help = "pixels stay 8-bit up to Normalize" },
  RN_KEY_END,
};

static gboolean
load_image_run (gconstpointer self, RnSample *sample, const RnDecision *decision, RnRng *rng, GError **error)
{
  return rn_image_decode_path (sample->meta->path, sample->pixels, sample->meta->ori_width,
                               sample->meta->ori_height, error);
}

const RnTransformDesc rn_transform_load_image = {
  .component = { "LoadImageFromFile", "decodes a JPEG or PNG file", 0, load_image_keys },
  .rank = RN_TRANSFORM_LOAD,
  .run = load_image_run,
};

typedef struct
{
  gboolean with_bbox;
} LoadAnnotations;

static const RnKeySpec load_annotations_keys[] = {
  RN_KEY (LoadAnnotations, with_bbox, RN_KEY_BOOL, "true", "load boxes and labels"),
  RN_KEY_END,
};

/*
 * Difficult objects are no ground truth: MMDetection's VOC configuration does not collect them either, so
 * they are plain background.
 */
static void
load_annotations_plan (gconstpointer self, RnSample *sample, RnRng *rng, RnDecision *decision)
{
  const LoadAnnotations *settings = self;

  for (int i = 0; settings->with_bbox && i < sample->truth.n; i++)
    if (!sample->truth.difficult[i])
      rn_box_list_append (&sample->gt, &sample->truth, i);
    else if (sample->difficult.boxes != NULL)
      rn_box_list_append (&sample->difficult, &sample->truth, i);
}

const RnTransformDesc rn_transform_load_annotations = {
  .component = { "LoadAnnotations", "takes the boxes and labels of the image", sizeof (LoadAnnotations),
                 load_annotations_keys },
  .rank = RN_TRANSFORM_ANNOTATIONS,
  .plan = load_annotations_plan,
};
