/*
 * sample.h: one image on its way through a pipeline.
 *
 * A pipeline passes over a sample twice. Planning draws every choice that moves or resizes the image, and
 * carries sizes and boxes to their end, without a pixel; running then does to the pixels what was decided. So
 * the size of a sample is known before its file is opened, and planning it again gives the same.
 */
#ifndef RUNNER_DATASETS_SAMPLE_H
#define RUNNER_DATASETS_SAMPLE_H

#include <runner/batch.h>
#include "datasets/dataset.h"

G_BEGIN_DECLS

/* Steps of one pipeline, those inside MultiScaleFlipAug among them. */
#define RN_PIPELINE_MAX_STEPS 32

/* What a step decided about one image while it was planned. */
typedef struct
{
  gboolean active;   /* FALSE: the step leaves this image as it is */
  int x, y;          /* pixels; each step says what of */
  int width, height; /* of the image after the step */
} RnDecision;

/* Boxes that a pipeline carries along; memory is the caller's. */
typedef struct
{
  int n;
  float (*boxes)[4]; /* x1 y1 x2 y2 in pixels of the current image */
  int32_t *labels;
} RnBoxList;

/* All memory is lent by the caller. */
typedef struct
{
  RnSampleMeta *meta;  /* gt_boxes and gt_labels have room for truth.n; the pipeline sets sizes and boxes */
  RnGroundTruth truth; /* of the image as decoded */
  guint64 seed, epoch; /* with meta->index the key of all random choices */

  /*
   * While planning: gt lies in the meta's arrays. Difficult objects follow the image but influence no choice;
   * boxes NULL: nobody wants them.
   */
  RnBoxList gt, difficult;
  int width, height; /* of the image before the step that is planned or run */
  RnDecision decisions[RN_PIPELINE_MAX_STEPS];

  guint8 *pixels;            /* [height, width, 3] RGB */
  guint8 *spare;             /* as large as pixels; a step may swap the two */
  const float (*table)[256]; /* [3]: the float of each byte, by output channel; NULL: the byte itself */
  gboolean rgb;              /* channel order of the output; FALSE: BGR, as OpenCV reads */

  /* Output, see rn_sample_set_output; image NULL: only the pixels are wanted. */
  guint8 *image;             /* [out_height, out_width, 3], in the channel order of the output */
  int32_t *size;             /* height, width of the image in it */
  float (*values)[256];      /* [3]: of each byte, by output channel */
  int out_width, out_height; /* of the batch, at least the padded size of this image */
} RnSample;

/* Adds object @i of @truth. */
void rn_box_list_append (RnBoxList *list, const RnGroundTruth *truth, int i);

/* The following work on both lists of boxes. */

/* Multiplies by the factors, then clips to @width x @height. */
void rn_sample_scale_boxes (RnSample *sample, float scale_w, float scale_h, int width, int height);
void rn_sample_move_boxes (RnSample *sample, float dx, float dy);
/* Mirrors within the current size. */
void rn_sample_flip_boxes (RnSample *sample, gboolean horizontal, gboolean vertical);
/* Clips to @width x @height; boxes whose sides are then not both longer than @min_side go. */
void rn_sample_clip_boxes (RnSample *sample, int width, int height, float min_side);
/* Boxes whose centre is not inside @window (x1 y1 x2 y2, the border is outside) go. */
void rn_sample_keep_centred (RnSample *sample, const int window[4]);

/* How many boxes of @list rn_sample_clip_boxes would leave after a move by (@dx, @dy). */
int rn_box_list_count_inside (const RnBoxList *list, float dx, float dy, int width, int height,
                              float min_side);
gboolean rn_box_is_centred (const float box[4], const int window[4]);

/* The output goes to the place of image @i of @batch, whose sizes are set. */
void rn_sample_set_output (RnSample *sample, RnBatch *batch, int i);

/* Exchanges pixels and spare: a step wrote its result there. */
void rn_sample_swap (RnSample *sample);

G_END_DECLS

#endif
