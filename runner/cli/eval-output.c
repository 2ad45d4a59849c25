#include "config.h"

#include "runner/cli/eval-output.h"

#include "boxes/box.h"
#include "runner/base/atomic-file.h"
#include "runner/cli/json.h"

#include <math.h>
#include <string.h>

#define DIGITS 9 /* tell two float32 apart */

static gboolean
write_text (RnAtomicFile *file, const char *text, GError **error)
{
  return rn_atomic_file_write (file, text, strlen (text), error);
}

/* One item of a list. @n_before: items that stand before it. */
static gboolean
write_item (RnAtomicFile *file, const RnRecord *record, gint64 n_before, GError **error)
{
  g_autofree char *json = rn_record_to_json (record, DIGITS);
  return write_text (file, n_before > 0 ? ",\n" : "\n", error) && write_text (file, json, error);
}

/* Corners as x, y, width, height. The difference is taken in double, as MMDetection does. */
static void
set_bbox (RnRecord *record, float x1, float y1, float x2, float y2)
{
  const double box[] = { (double) x1, (double) y1, (double) x2 - (double) x1, (double) y2 - (double) y1 };
  rn_record_set_floats (record, "bbox", box, G_N_ELEMENTS (box));
}

/* ---- Detections ---- */

struct _RnDetectionFile
{
  RnAtomicFile *file;
  const RnDataset *dataset;
  gint64 n_items;
};

RnDetectionFile *
rn_detection_file_new (const char *path, const RnDataset *dataset, GError **error)
{
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);
  if (file == NULL || !write_text (file, "[", error))
    return NULL;

  RnDetectionFile *self = g_new0 (RnDetectionFile, 1);
  self->file = g_steal_pointer (&file);
  self->dataset = dataset;
  return self;
}

void
rn_detection_file_free (RnDetectionFile *file)
{
  if (file == NULL)
    return;
  rn_atomic_file_free (file->file);
  g_free (file);
}

gboolean
rn_detection_file_add (RnDetectionFile *file, const char *id, const GArray *detections, GError **error)
{
  for (guint i = 0; i < detections->len; i++)
    {
      const RnDetection *d = &g_array_index (detections, RnDetection, i);
      g_autoptr (RnRecord) record = rn_record_new ();

      rn_record_set_string (record, "image_id", id);
      rn_record_set_int (record, "category_id", d->label);
      rn_record_set_string (record, "category", rn_dataset_class_name (file->dataset, d->label));
      set_bbox (record, d->box.x1, d->box.y1, d->box.x2, d->box.y2);
      rn_record_set_float (record, "score", (double) d->score);
      if (!write_item (file->file, record, file->n_items++, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
rn_detection_file_commit (RnDetectionFile *file, GError **error)
{
  return write_text (file->file, file->n_items > 0 ? "\n]\n" : "]\n", error)
         && rn_atomic_file_commit (file->file, error);
}

/* ---- Ground truth ---- */

static gboolean
write_images (RnAtomicFile *file, const RnDataset *dataset, GError **error)
{
  for (int64_t i = 0; i < rn_dataset_size (dataset); i++)
    {
      g_autoptr (RnRecord) record = rn_record_new ();
      int width, height;

      rn_dataset_image_size (dataset, i, &width, &height);
      rn_record_set_string (record, "id", rn_dataset_id (dataset, i));
      rn_record_set_string (record, "file_name", rn_dataset_path (dataset, i));
      rn_record_set_int (record, "width", width);
      rn_record_set_int (record, "height", height);
      if (!write_item (file, record, i, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
write_categories (RnAtomicFile *file, const RnDataset *dataset, GError **error)
{
  for (int label = 0; label < rn_dataset_n_classes (dataset); label++)
    {
      g_autoptr (RnRecord) record = rn_record_new ();

      rn_record_set_int (record, "id", label);
      rn_record_set_string (record, "name", rn_dataset_class_name (dataset, label));
      if (!write_item (file, record, label, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
write_annotations (RnAtomicFile *file, const RnDataset *dataset, GError **error)
{
  gint64 n = 0;

  for (int64_t i = 0; i < rn_dataset_size (dataset); i++)
    {
      RnGroundTruth truth;

      rn_dataset_ground_truth (dataset, i, &truth);
      for (int k = 0; k < truth.n; k++)
        {
          const float *b = truth.boxes[k];
          g_autoptr (RnRecord) record = rn_record_new ();

          rn_record_set_int (record, "id", n + 1); /* 0 means "not found" to pycocotools */
          rn_record_set_string (record, "image_id", rn_dataset_id (dataset, i));
          rn_record_set_int (record, "category_id", truth.labels[k]);
          set_bbox (record, b[0], b[1], b[2], b[3]);
          rn_record_set_float (record, "area",
                               ((double) b[2] - (double) b[0]) * ((double) b[3] - (double) b[1]));
          rn_record_set_int (record, "iscrowd", truth.difficult[k] != 0);
          if (!write_item (file, record, n++, error))
            return FALSE;
        }
    }
  return TRUE;
}

gboolean
rn_truth_write (const char *path, const RnDataset *dataset, GError **error)
{
  g_autoptr (RnAtomicFile) file = rn_atomic_file_new (path, error);

  return file != NULL && write_text (file, "{\"info\": {}, \"images\": [", error)
         && write_images (file, dataset, error) && write_text (file, "\n], \"categories\": [", error)
         && write_categories (file, dataset, error) && write_text (file, "\n], \"annotations\": [", error)
         && write_annotations (file, dataset, error) && write_text (file, "\n]}\n", error)
         && rn_atomic_file_commit (file, error);
}

/* ---- Scores ---- */

/* -1 stands for a score that does not exist. */
static void
add_score (JsonBuilder *builder, const char *name, double value)
{
  rn_json_add_float (builder, name, value >= 0 ? value : (double) NAN);
}

static void
add_class (JsonBuilder *builder, const RnEvaluation *evaluation, const char *name, guint label)
{
  g_autofree char *valid = g_utf8_make_valid (name, -1);

  json_builder_begin_object (builder);
  rn_json_add_string (builder, "class", valid);
  if (evaluation->class_bbox != NULL)
    add_score (builder, "bbox_mAP", evaluation->class_bbox[label]);
  if (evaluation->scores->len > 0)
    {
      json_builder_set_member_name (builder, "overlaps");
      json_builder_begin_array (builder);
      for (guint i = 0; i < evaluation->scores->len; i++)
        {
          const RnIouScore *score = &g_array_index (evaluation->scores, RnIouScore, i);
          const RnClassScore *c = &g_array_index (score->classes, RnClassScore, label);
          json_builder_begin_object (builder);
          rn_json_add_float (builder, "iou_thr", score->iou_thr);
          rn_json_add_int (builder, "gts", c->n_gts);
          rn_json_add_int (builder, "dets", c->n_dets);
          rn_json_add_float (builder, "recall", c->recall);
          rn_json_add_float (builder, "ap", c->ap);
          json_builder_end_object (builder);
        }
      json_builder_end_array (builder);
    }
  json_builder_end_object (builder);
}

gboolean
rn_scores_write (const char *path, const char *checkpoint, const RnEvaluation *evaluation,
                 const char *const *class_names, GError **error)
{
  g_autoptr (JsonBuilder) builder = json_builder_new ();
  g_autoptr (RnRecord) scores = rn_record_new ();
  g_autofree char *valid = g_utf8_make_valid (checkpoint, -1);

  rn_evaluation_put_scores (evaluation, scores);
  json_builder_begin_object (builder);
  rn_json_add_string (builder, "checkpoint", valid);
  rn_json_add_int (builder, "n_images", evaluation->n_images);
  json_builder_set_member_name (builder, "scores");
  json_builder_begin_object (builder);
  for (guint i = 0; i < rn_record_size (scores); i++)
    add_score (builder, rn_record_name (scores, i), rn_record_float (scores, rn_record_name (scores, i), -1));
  json_builder_end_object (builder);
  json_builder_set_member_name (builder, "classes");
  json_builder_begin_array (builder);
  for (guint label = 0; class_names[label] != NULL; label++)
    add_class (builder, evaluation, class_names[label], label);
  json_builder_end_array (builder);
  json_builder_end_object (builder);

  g_autoptr (JsonNode) root = json_builder_get_root (builder);
  g_autofree char *text = json_to_string (root, TRUE);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  return rn_atomic_file_save (path, line, strlen (line), error);
}
