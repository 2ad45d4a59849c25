#include "config.h"

#include "datasets/sample-view.h"

#include "datasets/dataset-private.h"
#include "runner/base/error.h"

struct _RnSampleView
{
  const RnDataset *dataset;
  RnSampleMeta meta;
  RnSample sample;
  guint8 *pixels[2];
  float (*boxes[2])[4]; /* of gt, of difficult */
  int32_t *labels[2];
};

RnSampleView *
rn_sample_view_new (const RnDataset *dataset, guint64 seed, GError **error)
{
  RnDatasetMaxima maxima = rn_dataset_maxima (dataset);
  gsize n_boxes = MAX (maxima.objects, 1);
  g_autoptr (RnSampleView) view = g_new0 (RnSampleView, 1);
  gboolean whole = TRUE;

  view->dataset = dataset;
  for (int i = 0; i < 2; i++)
    {
      view->pixels[i] = g_try_malloc_n (maxima.pixels, 3);
      view->boxes[i] = g_try_malloc_n (n_boxes, sizeof view->boxes[i][0]);
      view->labels[i] = g_try_malloc_n (n_boxes, sizeof view->labels[i][0]);
      whole &= view->pixels[i] != NULL && view->boxes[i] != NULL && view->labels[i] != NULL;
    }
  if (!whole)
    {
      g_set_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY,
                   "no memory for two images of %" G_GSIZE_FORMAT
                   " pixels, the largest on its way through the "
                   "pipeline",
                   maxima.pixels);
      return NULL;
    }
  view->sample.seed = seed;
  return g_steal_pointer (&view);
}

void
rn_sample_view_free (RnSampleView *view)
{
  if (view == NULL)
    return;
  for (int i = 0; i < 2; i++)
    {
      g_free (view->pixels[i]);
      g_free (view->boxes[i]);
      g_free (view->labels[i]);
    }
  g_free (view);
}

/* For a test pipeline, which scales the image but loads no boxes. */
static void
add_annotation (RnSample *sample)
{
  const RnGroundTruth *truth = &sample->truth;

  for (int i = 0; i < truth->n; i++)
    rn_box_list_append (truth->difficult[i] ? &sample->difficult : &sample->gt, truth, i);
  rn_sample_scale_boxes (sample, sample->meta->scale_w, sample->meta->scale_h, sample->width, sample->height);
}

const RnSample *
rn_sample_view_load (RnSampleView *view, int64_t index, guint64 epoch, GError **error)
{
  RnSample *sample = &view->sample;

  view->meta = (RnSampleMeta){ .gt_boxes = view->boxes[0], .gt_labels = view->labels[0] };
  sample->meta = &view->meta;
  sample->epoch = epoch;
  sample->difficult = (RnBoxList){ 0, view->boxes[1], view->labels[1] };
  sample->pixels = view->pixels[0];
  sample->spare = view->pixels[1];
  if (!rn_dataset_load (view->dataset, index, sample, error))
    return NULL;
  if (view->dataset->test_mode && sample->gt.n + sample->difficult.n == 0)
    add_annotation (sample);
  return sample;
}
