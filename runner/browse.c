#include "config.h"

#include "runner/browse.h"

#include "boxes/assign.h"
#include "datasets/image.h"
#include "datasets/sample-view.h"
#include "runner/base/error.h"
#include "runner/draw/picture.h"

#include <string.h>

struct _RnBrowse
{
  RnJob *job;
  const RnDataset *dataset;
  RnBrowseOptions options;
  RnSampleView *view;
  RnBrowseSample sample;
  RnAssignScratch scratch;
  GArray *assigned; /* of int32_t, one an anchor: as rn_assign gives */
  int sizes[RN_MAX_LEVELS][2];
};

RnBrowse *
rn_browse_new (RnJob *job, RnSplit split, const RnBrowseOptions *options, GError **error)
{
  g_autoptr (RnBrowse) browse = g_new0 (RnBrowse, 1);

  browse->job = job;
  browse->dataset = job->datasets[split];
  browse->options = *options;
  browse->sample.boxes = g_array_new (FALSE, TRUE, sizeof (RnBrowseBox));
  browse->assigned = g_array_new (FALSE, FALSE, sizeof (int32_t));
  browse->view = rn_sample_view_new (browse->dataset, (guint64) job->config.seed, error);
  return browse->view != NULL ? g_steal_pointer (&browse) : NULL;
}

void
rn_browse_free (RnBrowse *browse)
{
  if (browse == NULL)
    return;
  rn_sample_view_free (browse->view);
  rn_assign_scratch_clear (&browse->scratch);
  g_array_unref (browse->assigned);
  g_array_unref (browse->sample.boxes);
  g_free (browse);
}

/* ---- Anchors ---- */

static gboolean
assign (RnBrowse *browse, const RnSample *sample, GError **error)
{
  const RnModel *model = browse->job->model;
  const RnAnchorGenerator *anchors = rn_model_anchors (model);
  const RnSampleMeta *meta = sample->meta;
  int valid[RN_MAX_LEVELS][2];
  RnStatus status = RN_STATUS_SHAPE;
  int n_levels = rn_model_feature_sizes (model, meta->pad_height, meta->pad_width, browse->sizes);
  int64_t n =
      n_levels == anchors->n_levels ? rn_anchors_count (anchors, (const int (*)[2]) browse->sizes) : -1;

  if (n >= 0)
    {
      g_array_set_size (browse->assigned, (guint) n);
      rn_anchors_valid (anchors, (const int (*)[2]) browse->sizes, meta->pad_height, meta->pad_width, valid);
      status = rn_assign (rn_model_assigner (model), anchors, (const int (*)[2]) browse->sizes,
                          (const int (*)[2]) valid, (const RnBox *) sample->gt.boxes, sample->gt.n, NULL, 0,
                          &browse->scratch, (int32_t *) (gpointer) browse->assigned->data);
    }
  if (status == RN_STATUS_OK)
    return TRUE;
  g_set_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
               "%s: anchors cannot be laid over %dx%d with %d feature maps: %s", meta->path, meta->pad_height,
               meta->pad_width, n_levels, rn_status_name (status));
  return FALSE;
}

static void
count_anchors (RnBrowse *browse, const RnSample *sample)
{
  const RnModel *model = browse->job->model;
  RnBrowseSample *result = &browse->sample;
  RnBrowseBox *boxes;

  g_array_set_size (result->boxes, 0);
  g_array_set_size (result->boxes, (guint) sample->gt.n);
  boxes = (RnBrowseBox *) (gpointer) result->boxes->data;
  result->n_anchors = 0;
  for (int g = 0; g < sample->gt.n; g++)
    {
      boxes[g].label = sample->gt.labels[g];
      memcpy (boxes[g].box, sample->gt.boxes[g], sizeof boxes[g].box);
      boxes[g].iou = browse->scratch.gt_max[g];
      boxes[g].low = boxes[g].iou < rn_model_assigner (model)->pos_iou_thr;
    }
  for (guint i = 0; i < browse->assigned->len; i++)
    if (g_array_index (browse->assigned, int32_t, i) > 0)
      {
        boxes[g_array_index (browse->assigned, int32_t, i) - 1].n_anchors++;
        result->n_anchors++;
      }
}

/* ---- The picture ---- */

static void
draw_anchors (const RnBrowse *browse, RnPicture *picture)
{
  const RnAnchorGenerator *anchors = rn_model_anchors (browse->job->model);

  for (guint i = 0; i < browse->assigned->len; i++)
    {
      int32_t gt = g_array_index (browse->assigned, int32_t, i) - 1;

      if (gt < 0)
        continue;
      RnBox anchor = rn_anchors_nth (anchors, (const int (*)[2]) browse->sizes, i);
      rn_picture_box (picture, (float[4]){ anchor.x1, anchor.y1, anchor.x2, anchor.y2 },
                      g_array_index (browse->sample.boxes, RnBrowseBox, gt).label, RN_BOX_THIN, NULL);
    }
}

static void
draw_boxes (const RnBrowse *browse, const RnSample *sample, RnPicture *picture)
{
  for (int i = 0; i < sample->difficult.n; i++)
    rn_picture_box (picture, sample->difficult.boxes[i], sample->difficult.labels[i], RN_BOX_DASHED,
                    rn_dataset_class_name (browse->dataset, sample->difficult.labels[i]));
  for (guint i = 0; i < browse->sample.boxes->len; i++)
    {
      const RnBrowseBox *box = &g_array_index (browse->sample.boxes, RnBrowseBox, i);
      g_autofree char *label =
          g_strdup_printf ("%s %d%s", rn_dataset_class_name (browse->dataset, box->label), box->n_anchors,
                           box->low ? "!" : "");

      rn_picture_box (picture, box->box, box->label, RN_BOX_SOLID, label);
    }
}

static gboolean
draw (const RnBrowse *browse, const RnSample *sample, const char *path, GError **error)
{
  if (sample->width > RN_IMAGE_MAX_SIDE || sample->height > RN_IMAGE_MAX_SIDE)
    {
      g_set_error (error, RN_DATA_ERROR, RN_DATA_ERROR_FORMAT,
                   "%s: %dx%d after the transforms is too large for a picture", sample->meta->path,
                   sample->width, sample->height);
      return FALSE;
    }
  g_autoptr (RnPicture) picture = rn_picture_new (sample->pixels, sample->width, sample->height);
  g_autofree char *caption =
      g_strdup_printf ("%s  %dx%d: %d boxes, %" G_GINT64_FORMAT " anchors", browse->sample.id, sample->width,
                       sample->height, sample->gt.n, (gint64) browse->sample.n_anchors);

  if (browse->options.anchors)
    draw_anchors (browse, picture);
  draw_boxes (browse, sample, picture);
  rn_picture_caption (picture, caption);
  return rn_picture_write_png (picture, path, error);
}

const RnBrowseSample *
rn_browse_sample (RnBrowse *browse, int64_t index, const char *path, GError **error)
{
  const RnSample *sample = rn_sample_view_load (browse->view, index, browse->options.epoch, error);

  if (sample == NULL || !assign (browse, sample, error))
    return NULL;
  browse->sample.id = sample->meta->id;
  browse->sample.width = sample->width;
  browse->sample.height = sample->height;
  browse->sample.n_difficult = sample->difficult.n;
  count_anchors (browse, sample);
  return path == NULL || draw (browse, sample, path, error) ? &browse->sample : NULL;
}
