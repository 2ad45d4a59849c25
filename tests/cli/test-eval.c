/* The files of `runner eval` agree with its table and with each other, and `runner report` reads the run. */
#include "config.h"

#include "tests/cli/program.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

typedef struct
{
  char *dir, *work, *config, *set_root, *checkpoint;
} Fixture;

static char *
path_in (const Fixture *f, const char *name)
{
  return g_build_filename (f->dir, name, NULL);
}

/* Two iterations on four images: weights that know nothing, which is all that is needed. */
static void
set_up (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GError) error = NULL;
  f->dir = g_dir_make_tmp ("runner-eval-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *data = path_in (f, "shapes");
  f->work = path_in (f, "work");
  f->config = config_file ("retinanet_shapes.yaml");
  f->set_root = g_strconcat ("--set=data_root=", data, NULL);
  f->checkpoint = g_build_filename (f->work, "iter_2.safetensors", NULL);

  g_auto (Result) synth = run_program ("synth", data, "--train", "4", "--val", "3", "--test", "2", NULL);
  g_assert_cmpint (synth.code, ==, 0);
  g_auto (Result) train =
      run_program ("train", f->config, f->set_root, "--set",
                   "runner={_delete_: true, type: IterBasedRunner, max_iters: 2}", "data.samples_per_gpu=2",
                   "evaluation={interval: 2, by_epoch: false, metric: bbox, save_best: bbox_mAP_50}",
                   "log_config.interval=1", "--work-dir", f->work, "--threads", "1", NULL);
  if (train.code != 0)
    g_error ("%s", train.err);
  assert_contains (train.err, "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = ");
  g_autofree char *best = g_build_filename (f->work, "best_bbox_mAP_50_iter_2.safetensors", NULL);
  g_assert_true (g_file_test (best, G_FILE_TEST_IS_REGULAR));
}

static void
tear_down (Fixture *f, gconstpointer user_data)
{
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->work);
  g_free (f->config);
  g_free (f->set_root);
  g_free (f->checkpoint);
}

/* (transfer full) */
static JsonNode *
load_json (const char *path)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GError) error = NULL;
  json_parser_load_from_file (parser, path, &error);
  g_assert_no_error (error);
  return json_parser_steal_root (parser);
}

/* Boxes lie in their image, whose id the other file has. Gives the number of annotations. */
static guint
check_truth (const char *path, GHashTable *ids)
{
  g_autoptr (JsonNode) root = load_json (path);
  JsonObject *truth = json_node_get_object (root);
  JsonArray *images = json_object_get_array_member (truth, "images");
  JsonArray *annotations = json_object_get_array_member (truth, "annotations");

  g_assert_cmpuint (json_array_get_length (images), ==, 3);
  g_assert_cmpuint (json_array_get_length (json_object_get_array_member (truth, "categories")), ==, 3);
  for (guint i = 0; i < 3; i++)
    g_hash_table_add (
        ids, g_strdup (json_object_get_string_member (json_array_get_object_element (images, i), "id")));
  for (guint i = 0; i < json_array_get_length (annotations); i++)
    {
      JsonObject *a = json_array_get_object_element (annotations, i);
      JsonArray *box = json_object_get_array_member (a, "bbox");
      g_assert_cmpint (json_object_get_int_member (a, "id"), ==, i + 1);
      g_assert_true (g_hash_table_contains (ids, json_object_get_string_member (a, "image_id")));
      g_assert_cmpfloat (json_object_get_double_member (a, "area"), ==,
                         json_array_get_double_element (box, 2) * json_array_get_double_element (box, 3));
    }
  return json_array_get_length (annotations);
}

static guint
check_detections (const char *path, GHashTable *ids)
{
  g_autoptr (JsonNode) root = load_json (path);
  JsonArray *detections = json_node_get_array (root);

  for (guint i = 0; i < json_array_get_length (detections); i++)
    {
      JsonObject *d = json_array_get_object_element (detections, i);
      g_assert_true (g_hash_table_contains (ids, json_object_get_string_member (d, "image_id")));
      g_assert_cmpint (json_object_get_int_member (d, "category_id"), >=, 0);
      g_assert_cmpint (json_object_get_int_member (d, "category_id"), <, 3);
      g_assert_cmpuint (json_array_get_length (json_object_get_array_member (d, "bbox")), ==, 4);
    }
  return json_array_get_length (detections);
}

static void
test_files (Fixture *f, gconstpointer user_data)
{
  g_autofree char *out = path_in (f, "d.json"), *truth = path_in (f, "t.json");
  g_autofree char *scores = path_in (f, "s.json"), *picture = path_in (f, "pr.png");
  g_auto (Result) eval = run_program (
      "eval", f->config, f->checkpoint, f->set_root, "--threads", "1", "--out", out, "--out-truth", truth,
      "--metrics-json", scores, "--pr-curve", picture, "--set", "evaluation.metric=[mAP, bbox]",
      "evaluation.iou_thr=[0.5, 0.75]", "model.test_cfg.score_thr=0.001", NULL);
  if (eval.code != 0)
    g_error ("%s", eval.err);
  assert_contains (eval.out, "iou_thr: 0.75");
  assert_contains (eval.out, "\n| class    | bbox_mAP |\n+----------+----------+\n| circle   | ");
  assert_contains (eval.out, "mAP, the mean of the 2 thresholds: ");
  assert_contains (eval.out, "Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = ");
  g_assert_true (g_file_test (picture, G_FILE_TEST_IS_REGULAR));

  g_autoptr (GHashTable) ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint n_gts = check_truth (truth, ids), n_dets = check_detections (out, ids);
  g_assert_cmpuint (n_dets, >, 0);

  g_autoptr (JsonNode) root = load_json (scores);
  JsonObject *all = json_node_get_object (root);
  JsonObject *numbers = json_object_get_object_member (all, "scores");
  g_assert_cmpint (json_object_get_int_member (all, "n_images"), ==, 3);
  g_assert_true (json_object_has_member (numbers, "AP75"));
  g_assert_true (json_object_has_member (numbers, "mAP"));
  g_assert_true (json_object_has_member (numbers, "bbox_mAP_l"));
  JsonArray *classes = json_object_get_array_member (all, "classes");
  g_assert_cmpuint (json_array_get_length (classes), ==, 3);
  gint64 sum_gts = 0, sum_dets = 0;
  for (guint i = 0; i < 3; i++)
    {
      JsonObject *class = json_array_get_object_element (classes, i);
      JsonArray *overlaps = json_object_get_array_member (class, "overlaps");
      g_assert_true (json_object_has_member (class, "bbox_mAP"));
      g_assert_cmpuint (json_array_get_length (overlaps), ==, 2);
      sum_gts += json_object_get_int_member (json_array_get_object_element (overlaps, 1), "gts");
      sum_dets += json_object_get_int_member (json_array_get_object_element (overlaps, 1), "dets");
    }
  g_assert_cmpint (sum_gts, ==, n_gts); /* none of them is difficult */
  g_assert_cmpint (sum_dets, ==, n_dets);
}

static void
test_refusals (Fixture *f, gconstpointer user_data)
{
  static const struct
  {
    const char *set, *words;
  } wrong[] = {
    { "evaluation.metric=bbx", "no metric \"bbx\"; there are mAP and bbox; did you mean \"bbox\"?" },
    { "evaluation.metric=[]", "needs at least one of mAP and bbox" },
    { "evaluation.metric=segm", "no metric \"segm\"" },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_auto (Result) eval = run_program ("eval", f->config, f->checkpoint, f->set_root, "--threads", "1",
                                          "--set", wrong[i].set, NULL);
      g_assert_cmpint (eval.code, ==, 2);
      assert_contains (eval.err, wrong[i].words);
    }
  g_auto (Result) best = run_program ("train", f->config, f->set_root, "--work-dir", f->work, "--threads",
                                      "1", "--set", "evaluation={metric: bbox, save_best: mAP}", NULL);
  g_assert_cmpint (best.code, ==, 2);
  assert_contains (best.err, "save_best: no score \"mAP\"");
  assert_contains (best.err, "auto, bbox_mAP, bbox_mAP_50");

  static const char *const options[] = { "--out", "--out-truth", "--metrics-json", "--pr-curve" };
  for (gsize i = 0; i < G_N_ELEMENTS (options); i++)
    {
      g_auto (Result) eval = run_program ("eval", f->config, f->checkpoint, f->set_root, "--threads", "1",
                                          options[i], "/nonexistent/file", NULL);
      g_assert_cmpint (eval.code, !=, 0);
      assert_contains (eval.err, "/nonexistent/file");
      g_assert_cmpstr (eval.out, ==, ""); /* found before the evaluation */
    }
}

/* What a metric does not look at is said, and not printed. */
static void
test_bbox_alone (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) eval = run_program ("eval", f->config, f->checkpoint, f->set_root, "--threads", "1",
                                      "--set", "evaluation.metric=bbox", "evaluation.iou_thr=0.7", NULL);

  g_assert_cmpint (eval.code, ==, 0);
  assert_contains (eval.err, "evaluation.iou_thr is for the metric mAP and says nothing to bbox");
  g_assert_null (strstr (eval.out, "recall |"));
  assert_contains (eval.out, "bbox_mAP");
}

static void
test_report (Fixture *f, gconstpointer user_data)
{
  g_autofree char *picture = g_build_filename (f->work, "report.png", NULL);
  g_autofree char *other = path_in (f, "other.png"), *empty = path_in (f, "shapes");
  g_auto (Result) report = run_program ("report", f->work, NULL);

  g_assert_cmpint (report.code, ==, 0);
  g_assert_cmpstr (report.err, ==, "");
  assert_contains (report.out, "iterations    2 of 2");
  assert_contains (report.out, "bbox_mAP_50");
  assert_contains (report.out, "report.png: written");
  g_assert_true (g_file_test (picture, G_FILE_TEST_IS_REGULAR));
  g_auto (Result) two = run_program ("report", f->work, f->work, "--out", other, NULL);
  g_assert_cmpint (two.code, ==, 0);
  g_assert_true (g_file_test (other, G_FILE_TEST_IS_REGULAR));

  g_auto (Result) none = run_program ("report", empty, NULL);
  g_assert_cmpint (none.code, ==, 2);
  assert_contains (none.err, "no file *.log.json in this folder");
  g_auto (Result) nothing = run_program ("report", NULL);
  g_assert_cmpint (nothing.code, ==, 2);

  /* A log without a line: named beside a run, refused alone, and no picture is left behind. */
  g_autofree char *log = path_in (f, "empty.log.json"), *missing = path_in (f, "missing.png");
  g_assert_true (g_file_set_contents (log, "", 0, NULL));
  g_auto (Result) beside = run_program ("report", f->work, log, "--out", other, NULL);
  g_assert_cmpint (beside.code, ==, 0);
  assert_contains (beside.err, "empty.log.json: no line of a training or an evaluation");
  g_auto (Result) alone = run_program ("report", log, "--out", missing, NULL);
  g_assert_cmpint (alone.code, ==, 1);
  assert_contains (alone.err, "empty.log.json: nothing to draw");
  g_assert_false (g_file_test (missing, G_FILE_TEST_EXISTS));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/eval/files", Fixture, NULL, set_up, test_files, tear_down);
  g_test_add ("/eval/refusals", Fixture, NULL, set_up, test_refusals, tear_down);
  g_test_add ("/eval/bbox-alone", Fixture, NULL, set_up, test_bbox_alone, tear_down);
  g_test_add ("/eval/report", Fixture, NULL, set_up, test_report, tear_down);
  return g_test_run ();
}
