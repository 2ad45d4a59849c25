#include "config.h"

#include "datasets/dataset-private.h"

#include <string.h>

void
rn_dataset_free (RnDataset *dataset)
{
  if (dataset == NULL)
    return;
  g_clear_pointer (&dataset->parts, g_ptr_array_unref);
  g_clear_pointer (&dataset->bases, g_ptr_array_unref);
  g_clear_pointer (&dataset->index, rn_index_free);
  g_clear_pointer (&dataset->pipeline, rn_pipeline_free);
  g_strfreev (dataset->classes);
  g_free (dataset->ann_file);
  g_free (dataset->prefix);
  g_free (dataset);
}

char *
rn_dataset_resolve_path (const char *root, const char *path)
{
  if (root == NULL || g_path_is_absolute (path))
    return g_strdup (path);
  return g_build_filename (root, strcmp (path, ".") == 0 ? NULL : path, NULL);
}

/* The base that holds @index, which becomes the index in it. */
static const RnDataset *
locate (const RnDataset *dataset, int64_t *index)
{
  g_return_val_if_fail (*index >= 0 && *index < dataset->size, NULL);
  while (dataset->parts != NULL)
    {
      int64_t sum = 0;
      guint part = 0;

      for (guint i = 0; i < dataset->parts->len; i++)
        sum += ((const RnDataset *) dataset->parts->pdata[i])->size;
      *index %= sum;
      while (*index >= ((const RnDataset *) dataset->parts->pdata[part])->size)
        *index -= ((const RnDataset *) dataset->parts->pdata[part++])->size;
      dataset = dataset->parts->pdata[part];
    }
  return dataset;
}

static const RnIndexImage *
locate_image (const RnDataset *dataset, int64_t index, const RnDataset **base)
{
  *base = locate (dataset, &index);
  return rn_index_image ((*base)->index, index);
}

int64_t
rn_dataset_size (const RnDataset *dataset)
{
  return dataset->size;
}

int
rn_dataset_n_classes (const RnDataset *dataset)
{
  return dataset->n_classes;
}

const char *
rn_dataset_class_name (const RnDataset *dataset, int label)
{
  g_return_val_if_fail (label >= 0 && label < dataset->n_classes, NULL);
  return dataset->classes[label];
}

const char *const *
rn_dataset_class_names (const RnDataset *dataset)
{
  return (const char *const *) dataset->classes;
}

int
rn_dataset_group (const RnDataset *dataset, int64_t index)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  return image->width > image->height;
}

const char *
rn_dataset_id (const RnDataset *dataset, int64_t index)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  return rn_index_string (base->index, image->id);
}

const char *
rn_dataset_path (const RnDataset *dataset, int64_t index)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  return rn_index_string (base->index, image->path);
}

void
rn_dataset_image_size (const RnDataset *dataset, int64_t index, int *width, int *height)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  *width = image->width;
  *height = image->height;
}

void
rn_dataset_bound (const RnDataset *dataset, int64_t index, GArray *ranges)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  rn_pipeline_bound (base->pipeline, image->width, image->height, ranges);
}

static RnGroundTruth
truth_of (const RnIndex *index, const RnIndexImage *image)
{
  return (RnGroundTruth){
    .n = (int) image->n,
    .boxes = (const float (*)[4]) (gpointer) index->boxes->data + image->first,
    .labels = (const int16_t *) (gpointer) index->labels->data + image->first,
    .difficult = index->difficult->data + image->first,
  };
}

void
rn_dataset_ground_truth (const RnDataset *dataset, int64_t index, RnGroundTruth *truth)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);

  *truth = truth_of (base->index, image);
}

/* Fills in what the pipeline reads. Gives the pipeline. */
static const RnPipeline *
describe_sample (const RnDataset *dataset, int64_t index, RnSample *sample)
{
  const RnDataset *base;
  const RnIndexImage *image = locate_image (dataset, index, &base);
  RnSampleMeta *meta = sample->meta;

  meta->index = index;
  meta->id = rn_index_string (base->index, image->id);
  meta->path = rn_index_string (base->index, image->path);
  meta->ori_width = image->width;
  meta->ori_height = image->height;
  meta->n_positives = 0;
  sample->truth = truth_of (base->index, image);
  return base->pipeline;
}

void
rn_dataset_plan (const RnDataset *dataset, int64_t index, RnSample *sample)
{
  rn_pipeline_plan (describe_sample (dataset, index, sample), sample);
}

gboolean
rn_dataset_load (const RnDataset *dataset, int64_t index, RnSample *sample, GError **error)
{
  return rn_pipeline_run (describe_sample (dataset, index, sample), sample, error);
}

RnDatasetMaxima
rn_dataset_maxima (const RnDataset *dataset)
{
  RnDatasetMaxima maxima = { 0, 0 };
  g_autoptr (GArray) ranges = g_array_new (FALSE, FALSE, sizeof (RnSizeRange));

  for (guint b = 0; b < rn_dataset_n_bases (dataset); b++)
    {
      const RnDataset *base = rn_dataset_base (dataset, b);

      for (guint i = 0; i < base->index->images->len; i++)
        {
          const RnIndexImage *image = rn_index_image (base->index, i);
          gsize pixels = rn_pipeline_bound (base->pipeline, image->width, image->height, ranges);

          g_array_set_size (ranges, 0);
          maxima.pixels = MAX (maxima.pixels, pixels);
          maxima.objects = MAX (maxima.objects, image->n);
        }
    }
  return maxima;
}

guint
rn_dataset_n_bases (const RnDataset *dataset)
{
  return dataset->bases != NULL ? dataset->bases->len : 1;
}

const RnDataset *
rn_dataset_base (const RnDataset *dataset, guint i)
{
  return dataset->bases != NULL ? dataset->bases->pdata[i] : dataset;
}

RnApMode
rn_dataset_default_ap_mode (const RnDataset *dataset)
{
  return strstr (rn_dataset_base (dataset, 0)->prefix, "VOC2007") != NULL ? RN_AP_11POINTS : RN_AP_AREA;
}

char *
rn_dataset_describe (const RnDataset *dataset)
{
  int64_t n_images = 0, n_objects = 0, n_read = 0, n_small = 0, n_empty = 0;

  for (guint b = 0; b < rn_dataset_n_bases (dataset); b++)
    {
      const RnDataset *base = rn_dataset_base (dataset, b);

      n_images += base->size;
      n_read += base->n_read;
      n_small += base->n_too_small;
      n_empty += base->n_empty;
      for (guint i = 0; i < base->index->images->len; i++)
        n_objects += rn_index_image (base->index, i)->n;
    }
  return g_strdup_printf ("%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " images (%" G_GINT64_FORMAT
                          " below %d pixels and %" G_GINT64_FORMAT
                          " without objects left out), %" G_GINT64_FORMAT " objects, %d classes",
                          (gint64) n_images, (gint64) n_read, (gint64) n_small, RN_DATASET_MIN_SIDE,
                          (gint64) n_empty, (gint64) n_objects, dataset->n_classes);
}
