/* random-batch.c: noise in, but targets as real ones: the loss and the box kernels see sparse positives. */
#include "config.h"

#include "runner/random-batch.h"

#include "boxes/targets.h"
#include "runner/base/error.h"
#include "runner/base/rng.h"

#include <math.h>

#define MIN_BOX_SIDE 16.0

void
rn_random_batch_free (RnBatch *batch)
{
  if (!batch)
    return;
  for (int i = 0; batch->metas && i < batch->n; i++)
    {
      g_free (batch->metas[i].gt_boxes);
      g_free (batch->metas[i].gt_labels);
    }
  g_free (batch->pixels);
  g_free (batch->sizes);
  g_free (batch->table);
  g_free (batch->labels);
  g_free (batch->positives);
  g_free (batch->metas);
  g_free (batch);
}

static float
random_side (RnRng *rng, int image_side)
{
  double longest = MAX (image_side / 2.0, MIN_BOX_SIDE);
  return (float) (MIN_BOX_SIDE + rn_rng_uniform (rng) * (longest - MIN_BOX_SIDE));
}

/* Of the bytes, which are then 8 deviations from end to end: what lies further out is one in 16000. */
#define DEVIATION 32.0

static void
draw_pixels (RnBatch *batch, gsize n_pixels, RnRng *rng)
{
  for (gsize i = 0; i < n_pixels; i++)
    {
      double value = floor (128 + DEVIATION * rn_rng_normal (rng));
      batch->pixels[i] = (guint8) CLAMP (value, 0, 255);
    }
  for (int i = 0; i < batch->n; i++)
    {
      batch->sizes[i][0] = batch->height;
      batch->sizes[i][1] = batch->width;
      for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++)
          batch->table[i][c][v] = (float) ((v - 127.5) / DEVIATION);
    }
}

static void
draw_boxes (RnSampleMeta *meta, int num_classes, RnRng *rng)
{
  for (int g = 0; g < meta->n_gt; g++)
    {
      float w = random_side (rng, meta->img_width), h = random_side (rng, meta->img_height);
      float x = (float) (rn_rng_uniform (rng) * ((double) meta->img_width - w));
      float y = (float) (rn_rng_uniform (rng) * ((double) meta->img_height - h));
      float *box = meta->gt_boxes[g];
      box[0] = x;
      box[1] = y;
      box[2] = x + w;
      box[3] = y + h;
      meta->gt_labels[g] = (int32_t) rn_rng_below (rng, (guint64) num_classes);
    }
}

static RnStatus
draw_targets (const RnModel *model, RnBatch *batch, const int (*sizes)[2])
{
  RnTargetRule rule = { rn_model_anchors (model), rn_model_assigner (model), rn_model_coder (model),
                        rn_model_num_classes (model) };
  g_auto (RnTargetScratch) scratch = { 0 };
  int64_t capacity = batch->n * batch->n_anchors;
  for (int i = 0; i < batch->n; i++)
    {
      RnSampleMeta *meta = &batch->metas[i];
      RnTargetImage image = {
        .index = i,
        .pad_height = batch->height,
        .pad_width = batch->width,
        .gts = (const RnBox *) (const void *) meta->gt_boxes,
        .labels = meta->gt_labels,
        .n_gt = meta->n_gt,
      };
      int64_t found = 0;
      RnStatus status =
          rn_targets_build (&rule, &image, sizes, &scratch, batch->labels + i * batch->n_anchors,
                            batch->positives + batch->n_positives, capacity - batch->n_positives, &found);
      if (status != RN_STATUS_OK)
        return status;
      meta->n_positives = (int) found;
      batch->n_positives += found;
      batch->avg_factor += (float) MAX (found, 1);
    }
  return RN_STATUS_OK;
}

RnBatch *
rn_random_batch_new (const RnModel *model, int n, int height, int width, int n_boxes, guint64 seed,
                     GError **error)
{
  int sizes[RN_MAX_LEVELS][2];
  rn_model_feature_sizes (model, height, width, sizes);

  g_autoptr (RnBatch) batch = g_new0 (RnBatch, 1);
  batch->n = n;
  batch->height = height;
  batch->width = width;
  batch->n_anchors = rn_anchors_count (rn_model_anchors (model), (const int (*)[2]) sizes);
  gsize pixels = (gsize) n * 3 * (gsize) height * (gsize) width;
  RnStatus status = batch->n_anchors < 0 ? RN_STATUS_SHAPE : RN_STATUS_OK;
  if (status == RN_STATUS_OK)
    {
      gsize anchors = (gsize) n * (gsize) batch->n_anchors;
      batch->pixels = g_try_malloc (pixels);
      batch->sizes = g_malloc_n ((gsize) n, sizeof *batch->sizes);
      batch->table = g_malloc_n ((gsize) n, sizeof *batch->table);
      batch->labels = g_try_new (int16_t, anchors);
      batch->positives = g_try_new (RnPositive, anchors);
      if (!batch->pixels || !batch->labels || !batch->positives)
        status = RN_STATUS_MEMORY;
    }
  if (status == RN_STATUS_OK)
    {
      RnRng rng;
      rn_rng_init (&rng, seed, RN_STREAM_SYNTH, 0, 0);
      draw_pixels (batch, pixels, &rng);
      batch->metas = g_new0 (RnSampleMeta, n);
      for (int i = 0; i < n; i++)
        {
          batch->metas[i] = (RnSampleMeta){
            .index = i,
            .id = "random",
            .path = "random",
            .ori_width = width,
            .ori_height = height,
            .img_width = width,
            .img_height = height,
            .pad_width = width,
            .pad_height = height,
            .scale_w = 1,
            .scale_h = 1,
            .n_gt = n_boxes,
          };
          batch->metas[i].gt_boxes = g_malloc_n ((gsize) n_boxes, sizeof *batch->metas[i].gt_boxes);
          batch->metas[i].gt_labels = g_new (int32_t, n_boxes);
          draw_boxes (&batch->metas[i], rn_model_num_classes (model), &rng);
        }
      status = draw_targets (model, batch, (const int (*)[2]) sizes);
    }
  if (status != RN_STATUS_OK)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "no random batch of %d at %dx%d: %s", n,
                   height, width, rn_status_name (status));
      return NULL;
    }
  return g_steal_pointer (&batch);
}
