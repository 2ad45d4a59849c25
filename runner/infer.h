/*
 * infer.h: detections on loose image files: the test pipeline of a configuration and a checkpoint, without
 * data set and annotations.
 *
 * Sizes are read from the headers first, so that memory is known, said and taken before the first image. One
 * image is worked on at a time.
 */
#ifndef RUNNER_INFER_H
#define RUNNER_INFER_H

#include "boxes/box.h"
#include "runner/job.h"

G_BEGIN_DECLS

typedef struct
{
  const char *path;
  int width, height;         /* as decoded, pixels */
  int pad_width, pad_height; /* as the model sees it */
  gsize area;                /* the largest on the way from the one to the other, pixels */
} RnInferImage;

typedef struct _RnInfer RnInfer;

/**
 * rn_infer_new:
 * @job: lent; its model and programs are made here
 * @path: of a file of weights, of any kind
 * @use_ema: take their running mean where the file has one
 * @paths: (element-type filename): of the images; kept
 *
 * Images are prepared by the pipeline of data.test, else data.val, else test_pipeline. Class names are those
 * of the checkpoint; where it has none, `classes:` of the configuration, else VOC's. Images whose header
 * cannot be read are named in warnings, counted and left out.
 *
 * Errors: RN_CONFIG_ERROR; RN_CHECKPOINT_ERROR, _MISMATCH also when there are not as many class names as the
 * model has classes; RN_DATA_ERROR_EMPTY when no image can be read; RN_DEVICE_ERROR_MEMORY
 */
RnInfer *rn_infer_new (RnJob *job, const char *path, gboolean use_ema, GPtrArray *paths, GError **error);
void rn_infer_free (RnInfer *infer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnInfer, rn_infer_free)

guint rn_infer_size (const RnInfer *infer); /* images that have a readable header */
const RnInferImage *rn_infer_image (const RnInfer *infer, guint i);
guint rn_infer_n_unreadable (const RnInfer *infer);
const char *const *rn_infer_class_names (const RnInfer *infer); /* one a label, NULL-ended */

/*
 * Detections of image @i, best first, in pixels of the image as decoded. Errors: RN_DATA_ERROR when the image
 * cannot be read after all: the others can go on; any other ends the work.
 *
 * Returns: (transfer full): of RnDetection
 */
GArray *rn_infer_run (RnInfer *infer, guint i, GError **error);

G_END_DECLS

#endif
