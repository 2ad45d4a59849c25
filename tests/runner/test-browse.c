/* What `runner browse` says of a sample is what the loader trains on. */
#include "config.h"

#include "datasets/synth.h"
#include "runner/browse.h"
#include "runner/config/config.h"
#include "tests/tree.h"

#include <string.h>

static RnJob *
open_job (const char *data, const char *const *more)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_shapes.yaml", NULL);
  g_autofree char *data_root = g_strdup_printf ("data_root=%s/", data);
  g_autofree char *work_dir = g_strdup_printf ("work_dir=%s", data);
  g_autoptr (GPtrArray) overrides = g_ptr_array_new ();

  g_ptr_array_add (overrides, data_root);
  g_ptr_array_add (overrides, work_dir);
  g_ptr_array_add (overrides, (gpointer) "data.workers_per_gpu=0");
  g_ptr_array_add (overrides, (gpointer) "seed=3");
  for (; *more != NULL; more++)
    g_ptr_array_add (overrides, (gpointer) *more);
  g_ptr_array_add (overrides, NULL);
  RnNode *root = rn_config_load (path, (const char *const *) overrides->pdata, &error);
  g_assert_no_error (error);
  RnJob *job = rn_job_new (root, &error);
  g_assert_no_error (error);
  g_assert_true (rn_job_open_data (job, RN_SPLIT_TRAIN, &error));
  g_assert_true (rn_job_open_data (job, RN_SPLIT_VAL, &error));
  g_assert_true (rn_job_open_model (job, &error));
  return job;
}

static char *
make_data (void)
{
  GError *error = NULL;
  char *dir = g_dir_make_tmp ("rn-browse-XXXXXX", &error);

  g_assert_no_error (error);
  rn_synth_write (
      dir,
      &(RnSynthOptions){
          .n_train = 9, .n_val = 3, .n_test = 1, .width = 96, .height = 64, .seed = 1, .force = TRUE },
      &error);
  g_assert_no_error (error);
  return dir;
}

static void
compare_batch (RnBrowse *browse, const RnBatch *batch)
{
  for (int i = 0; i < batch->n; i++)
    {
      const RnSampleMeta *meta = &batch->metas[i];
      GError *error = NULL;
      const RnBrowseSample *sample = rn_browse_sample (browse, meta->index, NULL, &error);
      int64_t n = 0;

      g_assert_no_error (error);
      g_assert_cmpstr (sample->id, ==, meta->id);
      g_assert_cmpint (sample->width, ==, meta->img_width);
      g_assert_cmpint (sample->height, ==, meta->img_height);
      g_assert_cmpint (sample->n_anchors, ==, meta->n_positives);
      g_assert_cmpint (sample->boxes->len, ==, meta->n_gt);
      for (guint g = 0; g < sample->boxes->len; g++)
        {
          const RnBrowseBox *box = &g_array_index (sample->boxes, RnBrowseBox, g);

          g_assert_cmpint (box->label, ==, meta->gt_labels[g]);
          g_assert_true (memcmp (box->box, meta->gt_boxes[g], sizeof box->box) == 0);
          g_assert_cmpint (box->low, ==, box->iou < 0.5f);
          n += box->n_anchors;
        }
      g_assert_cmpint (n, ==, sample->n_anchors);
    }
}

static void
test_same_as_loader (void)
{
  static const char *const more[] = { "train_pipeline=[{type: LoadImageFromFile}, {type: LoadAnnotations}, "
                                      "{type: MinIoURandomCrop}, {type: Resize, "
                                      "img_scale: [[160, 96], [160, 128]]}, {type: RandomFlip, flip_ratio: "
                                      "0.5}, {type: Normalize, mean: [0, 0, 0], "
                                      "std: [1, 1, 1]}, {type: Pad, size_divisor: 32}, {type: "
                                      "DefaultFormatBundle}, {type: Collect, keys: [img, "
                                      "gt_bboxes, gt_labels]}]",
                                      "data.samples_per_gpu=2", NULL };
  char *data = make_data ();
  GError *error = NULL;
  int n = 0;

  {
    g_autoptr (RnJob) job = open_job (data, more);
    g_autoptr (RnLoader) loader = rn_job_loader (job, RN_SPLIT_TRAIN, &error);
    g_assert_no_error (error);
    g_autoptr (RnBrowse) browse =
        rn_browse_new (job, RN_SPLIT_TRAIN, &(RnBrowseOptions){ .epoch = 2 }, &error);
    const RnBatch *batch;

    g_assert_no_error (error);
    rn_loader_start (loader, 2, 0);
    while ((batch = rn_loader_next (loader, &error)) != NULL)
      {
        compare_batch (browse, batch);
        n += batch->n;
        rn_loader_release (loader, batch);
      }
    g_assert_no_error (error);
  }
  g_assert_cmpint (n, >=, 9);
  remove_tree (data);
  g_free (data);
}

/* A test pipeline loads no boxes; they come from the annotation, scaled. */
static void
test_validation (void)
{
  static const char *const more[] = { "x_size=[192, 128]", NULL };
  char *data = make_data ();
  GError *error = NULL;

  {
    g_autoptr (RnJob) job = open_job (data, more);
    g_autoptr (RnBrowse) browse = rn_browse_new (job, RN_SPLIT_VAL, &(RnBrowseOptions){ 0 }, &error);
    RnGroundTruth truth;
    guint solid = 0;

    g_assert_no_error (error);
    rn_dataset_ground_truth (job->datasets[RN_SPLIT_VAL], 0, &truth);
    const RnBrowseSample *sample = rn_browse_sample (browse, 0, NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpint (MAX (sample->width, sample->height), ==, 192);
    g_assert_cmpint ((int) sample->boxes->len + sample->n_difficult, ==, truth.n);
    for (int i = 0; i < truth.n; i++)
      if (!truth.difficult[i])
        {
          const RnBrowseBox *box = &g_array_index (sample->boxes, RnBrowseBox, solid++);

          for (int c = 0; c < 4; c++)
            g_assert_cmpfloat (box->box[c], ==, 2 * truth.boxes[i][c]);
        }
  }
  remove_tree (data);
  g_free (data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/runner/browse/same-as-loader", test_same_as_loader);
  g_test_add_func ("/runner/browse/validation", test_validation);
  return g_test_run ();
}
