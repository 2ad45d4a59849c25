/*
 * `runner infer` on the images of a small drawn data set, with a checkpoint that a single step has trained:
 * what it finds is worth nothing, but must be what `runner eval` finds.
 */
#include "config.h"

#include "datasets/image.h"
#include "tests/cli/program.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_IMAGES 3 /* of the validation set, which `runner eval` takes where there is no data.test */

/* Made once for all tests. */
static char *top, *data, *checkpoint, *config, *set_root;

static char *
in_top (const char *name)
{
  return g_build_filename (top, name, NULL);
}

static void
assert_code (const Result *result, int code)
{
  if (result->code != code)
    g_error ("exit code %d, not %d: %s", result->code, code, result->err);
}

static void
make_checkpoint (void)
{
  g_autoptr (GError) error = NULL;
  top = g_dir_make_tmp ("runner-infer-XXXXXX", &error);
  g_assert_no_error (error);
  data = in_top ("shapes");
  config = config_file ("retinanet_shapes.yaml");
  set_root = g_strconcat ("--set=data_root=", data, NULL);
  g_autofree char *work = in_top ("work");
  checkpoint = g_build_filename (work, "iter_1.safetensors", NULL);

  g_auto (Result) synth = run_program ("synth", data, "--train", "2", "--val", "3", "--test", "1", NULL);
  assert_code (&synth, 0);
  g_auto (Result) train = run_program (
      "train", config, set_root, "--set", "runner={_delete_: true, type: IterBasedRunner, max_iters: 1}",
      "data.samples_per_gpu=1", "+evaluation.draw=2", "--work-dir", work, "--threads", "1", NULL);
  assert_code (&train, 0);
}

/* The images of the validation set, in its order. (transfer full) */
static GPtrArray *
set_images (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *list = g_build_filename (data, "ImageSets", "Main", "val.txt", NULL);
  g_autofree char *text = NULL;
  GPtrArray *paths = g_ptr_array_new_with_free_func (g_free);

  g_assert_true (g_file_get_contents (list, &text, NULL, &error));
  g_auto (GStrv) ids = g_strsplit_set (text, "\n", -1);
  for (guint i = 0; ids[i] != NULL; i++)
    if (ids[i][0] != '\0')
      {
        g_autofree char *name = g_strconcat (ids[i], ".jpg", NULL);
        g_ptr_array_add (paths, g_build_filename (data, "JPEGImages", name, NULL));
      }
  g_assert_cmpuint (paths->len, ==, N_IMAGES);
  return paths;
}

/* A copy of the first image under @name. (transfer full) */
static char *
copy_image (const char *name)
{
  g_autoptr (GPtrArray) images = set_images ();
  g_autofree char *bytes = NULL, *path = in_top (name);
  g_autofree char *dir = g_path_get_dirname (path);
  gsize size;
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (dir, 0777), ==, 0);
  g_assert_true (g_file_get_contents (g_ptr_array_index (images, 0), &bytes, &size, &error));
  g_assert_true (g_file_set_contents (path, bytes, (gssize) size, &error));
  return g_steal_pointer (&path);
}

static void
write_file (const char *name, const char *text)
{
  g_autofree char *path = in_top (name);
  g_autofree char *dir = g_path_get_dirname (path);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (g_mkdir_with_parents (dir, 0777), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, &error));
}

static gboolean
exists (const char *dir, const char *name)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  return g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

/* The objects of JSON lines. (transfer full) of JsonNode */
static GPtrArray *
parse_lines (const char *text)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  GPtrArray *nodes = g_ptr_array_new_with_free_func ((GDestroyNotify) json_node_unref);

  for (guint i = 0; lines[i] != NULL; i++)
    if (lines[i][0] != '\0')
      {
        g_autoptr (GError) error = NULL;
        g_assert_true (g_utf8_validate (lines[i], -1, NULL));
        JsonNode *node = json_from_string (lines[i], &error);
        g_assert_no_error (error);
        g_ptr_array_add (nodes, node);
      }
  return nodes;
}

static JsonArray *
detections_of (GPtrArray *lines, guint i)
{
  return json_object_get_array_member (json_node_get_object (g_ptr_array_index (lines, i)), "detections");
}

/* A corner was the sum of another one and a side, in float. */
static void
compare_boxes (JsonArray *corners, JsonArray *sides)
{
  for (guint c = 0; c < 2; c++)
    {
      double low = json_array_get_double_element (corners, c),
             high = json_array_get_double_element (corners, c + 2);
      g_assert_cmpfloat (low, ==, json_array_get_double_element (sides, c));
      g_assert_cmpfloat (fabs (high - low - json_array_get_double_element (sides, c + 2)), <=,
                         fabs (high) * ldexp (1, -23) + 1e-6 /* 9 digits */);
    }
}

static void
test_equals_eval (void)
{
  g_autoptr (GPtrArray) images = set_images ();
  g_autofree char *eval_path = in_top ("eval.json"), *infer_path = in_top ("infer.jsonl"),
                  *out = in_top ("out");
  g_autofree char *eval_text = NULL, *infer_text = NULL;

  g_auto (Result) eval =
      run_program ("eval", config, checkpoint, set_root, "--set", "model.test_cfg.score_thr=0", "--out",
                   eval_path, "--threads", "1", NULL);
  assert_code (&eval, 0);
  g_auto (Result) infer =
      run_program ("infer", config, checkpoint, images->pdata[0], images->pdata[1], images->pdata[2],
                   set_root, "--score-thr", "0", "--out", out, "--json", infer_path, "--threads", "1", NULL);
  assert_code (&infer, 0);
  assert_contains (infer.err, "memory: parameters ");
  g_assert_true (g_file_get_contents (eval_path, &eval_text, NULL, NULL));
  g_assert_true (g_file_get_contents (infer_path, &infer_text, NULL, NULL));

  g_autoptr (JsonNode) eval_node = json_from_string (eval_text, NULL);
  JsonArray *all = json_node_get_array (eval_node);
  g_autoptr (GPtrArray) lines = parse_lines (infer_text);
  g_assert_cmpuint (lines->len, ==, N_IMAGES);
  guint next = 0;
  for (guint i = 0; i < lines->len; i++)
    {
      JsonObject *line = json_node_get_object (g_ptr_array_index (lines, i));
      JsonArray *found = detections_of (lines, i);
      int width, height;
      g_assert_cmpstr (json_object_get_string_member (line, "path"), ==, images->pdata[i]);
      g_assert_true (rn_image_probe_path (images->pdata[i], &width, &height, NULL));
      g_assert_cmpint (json_object_get_int_member (line, "width"), ==, width);
      g_assert_cmpint (json_object_get_int_member (line, "height"), ==, height);
      g_assert_true (g_file_test (json_object_get_string_member (line, "picture"), G_FILE_TEST_IS_REGULAR));
      for (guint k = 0; k < json_array_get_length (found); k++, next++)
        {
          JsonObject *a = json_array_get_object_element (found, k),
                     *b = json_array_get_object_element (all, next);
          g_autofree char *base = g_path_get_basename (images->pdata[i]);
          g_assert_true (g_str_has_prefix (base, json_object_get_string_member (b, "image_id")));
          g_assert_cmpfloat (json_object_get_double_member (a, "score"), ==,
                             json_object_get_double_member (b, "score"));
          g_assert_cmpint (json_object_get_int_member (a, "category_id"), ==,
                           json_object_get_int_member (b, "category_id"));
          g_assert_cmpstr (json_object_get_string_member (a, "category"), ==,
                           json_object_get_string_member (b, "category"));
          compare_boxes (json_object_get_array_member (a, "bbox"), json_object_get_array_member (b, "bbox"));
        }
    }
  g_assert_cmpuint (next, ==, json_array_get_length (all));
  g_assert_cmpuint (next, >, N_IMAGES); /* there was something to compare */
}

/* Good, broken and strange files in one folder. */
static void
test_folder (void)
{
  g_autofree char *dir = in_top ("mixed"), *out = in_top ("mixed-out"),
                  *good = copy_image ("mixed/good.JPEG");
  g_autofree char *deep = copy_image ("mixed/sub/deep.jpg"), *hidden = copy_image ("mixed/.hidden.jpg");
  g_autofree char *fifo = in_top ("mixed/pipe.png"), *link = in_top ("mixed/sub/up");
  g_autofree char *cut = copy_image ("mixed/cut.jpg"), *bytes = NULL;
  gsize size;

  write_file ("mixed/broken.png", "no picture at all");
  write_file ("mixed/empty.jpg", "");
  write_file ("mixed/notes.txt", "not even tried");
  g_assert_cmpint (mkfifo (fifo, 0600), ==, 0);
  g_assert_cmpint (symlink (dir, link), ==, 0); /* a circle */
  g_assert_true (g_file_get_contents (cut, &bytes, &size, NULL));
  g_assert_true (g_file_set_contents (cut, bytes, (gssize) size * 3 / 4, NULL)); /* its header is whole */

  g_auto (Result) flat = run_program ("infer", config, checkpoint, dir, "--out", out, "--threads", "1", NULL);
  assert_code (&flat, 1);
  assert_contains (flat.out, "good.JPEG: ");
  assert_contains (flat.err, "broken.png: neither JPEG nor PNG");
  assert_contains (flat.err, "empty.jpg: ");
  assert_contains (flat.err, "pipe.png: ");
  assert_contains (flat.err, "cut.jpg: ");
  assert_contains (flat.err, "4 files or folders could not be read");
  assert_contains (flat.err, "1 image, ");
  g_assert_null (strstr (flat.err, "notes.txt"));
  g_assert_null (strstr (flat.out, "hidden"));
  g_assert_null (strstr (flat.out, "deep"));
  g_assert_true (exists (out, "good.png") && !exists (out, "broken.png") && !exists (out, "cut.png"));

  g_auto (Result) all =
      run_program ("infer", config, checkpoint, dir, "--recursive", "--out", out, "--threads", "1", NULL);
  assert_code (&all, 1);
  assert_contains (all.err, "2 images, ");
  g_assert_true (exists (out, "deep.png"));
}

/* Names that meet, and pictures that would lie on photographs. */
static void
test_names (void)
{
  g_autofree char *a = copy_image ("a/x.jpg"), *b = copy_image ("b/x.jpg"), *dir_a = in_top ("a");
  g_autofree char *out = in_top ("named"), *photos = in_top ("photos"), *photo = in_top ("photos/y.png");
  g_autofree char *before = NULL, *after = NULL;
  gsize n_before, n_after;

  g_auto (Result) two =
      run_program ("infer", config, checkpoint, dir_a, b, a, "--out", out, "--threads", "1", NULL);
  assert_code (&two, 0);
  assert_contains (two.err, "2 images, "); /* a/x.jpg was named twice */
  g_assert_true (exists (out, "x.png") && exists (out, "x-2.png") && !exists (out, "x-3.png"));

  g_auto (Result) again =
      run_program ("infer", config, checkpoint, dir_a, "--out", out, "--threads", "1", NULL);
  assert_code (&again, 0);
  g_assert_true (!exists (out, "x-3.png")); /* the newer picture takes the place of the old one */

  /* A PNG photograph, which the picture of that name would destroy: made from a picture of before. */
  g_autofree char *picture = g_build_filename (out, "x.png", NULL);
  g_assert_cmpint (g_mkdir_with_parents (photos, 0777), ==, 0);
  g_assert_true (g_file_get_contents (picture, &before, &n_before, NULL));
  g_assert_true (g_file_set_contents (photo, before, (gssize) n_before, NULL));
  g_auto (Result) beside =
      run_program ("infer", config, checkpoint, photo, "--out", photos, "--threads", "1", NULL);
  assert_code (&beside, 0);
  g_assert_true (g_file_get_contents (photo, &after, &n_after, NULL));
  g_assert_cmpuint (n_before, ==, n_after);
  g_assert_true (memcmp (before, after, n_before) == 0);
  g_assert_true (exists (photos, "y-2.png"));

  g_auto (Result) same = run_program ("infer", config, checkpoint, photos, "--out", photos, NULL);
  assert_code (&same, 2);
  assert_contains (same.err, "give another one to --out");
  g_auto (Result) json =
      run_program ("infer", config, checkpoint, photo, "--out", out, "--json", photo, NULL);
  assert_code (&json, 2);
  assert_contains (json.err, "that is one of the images");
}

static void
test_strange_paths (void)
{
  g_autofree char *path = copy_image ("strange/\xff\xe9 \"q\"\n.jpg"), *out = in_top ("strange-out");
  g_autofree char *tiny = in_top ("strange/tiny.jpg");
  static const guint8 pixel[3] = { 10, 200, 30 };

  g_assert_true (rn_image_write_jpeg (tiny, pixel, 1, 1, 90, NULL));
  g_auto (Result) result = run_program ("infer", config, checkpoint, path, tiny, "--out", out, "--json", "-",
                                        "--score-thr", "0", "--max-per-img", "2", "--threads", "1", NULL);
  assert_code (&result, 0);
  g_autoptr (GPtrArray) lines = parse_lines (result.out); /* nothing else is on standard output */
  g_assert_cmpuint (lines->len, ==, 2);
  assert_contains (json_object_get_string_member (json_node_get_object (lines->pdata[0]), "path"),
                   " \"q\"\n.jpg");
  g_assert_cmpuint (json_array_get_length (detections_of (lines, 0)), ==, 2);
  g_assert_cmpuint (json_array_get_length (detections_of (lines, 1)), <=, 2);
  assert_contains (result.err, "tiny.jpg: ");
}

/* Nothing of a first step is sure of anything. */
static void
test_threshold (void)
{
  g_autoptr (GPtrArray) images = set_images ();
  g_autofree char *out = in_top ("threshold");
  g_auto (Result) result = run_program ("infer", config, checkpoint, images->pdata[0], "--out", out, "--json",
                                        "-", "--threads", "1", NULL);

  assert_code (&result, 0);
  g_autoptr (GPtrArray) lines = parse_lines (result.out);
  g_assert_cmpuint (json_array_get_length (detections_of (lines, 0)), ==, 0);
  assert_contains (result.err, ": nothing -> ");
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

/* Names in a folder, sorted, with a blank after each. (transfer full) */
static char *
list_folder (const char *path)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (path, 0, &error);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  GString *text = g_string_new (NULL);

  g_assert_no_error (error);
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, compare_names);
  for (guint i = 0; i < names->len; i++)
    g_string_append_printf (text, "%s ", (const char *) names->pdata[i]);
  return g_string_free (text, FALSE);
}

/* The training of make_checkpoint drew two of the three validation images. */
static void
test_draw_in_training (void)
{
  g_autofree char *vis = in_top ("work/vis"), *stage = in_top ("work/vis/iter_1");
  g_autofree char *stages = list_folder (vis), *pictures = list_folder (stage);

  g_assert_cmpstr (stages, ==, "iter_1 ");
  g_assert_cmpstr (pictures, ==, "000003.png 000004.png ");
}

/* Every image once, and never among the photographs. */
static void
test_show_dir (void)
{
  g_autofree char *all = in_top ("show-all"), *few = in_top ("show-few");
  g_autofree char *photos = g_build_filename (data, "JPEGImages", NULL), *before = list_folder (photos);
  g_auto (Result) low =
      run_program ("eval", config, checkpoint, set_root, "--set", "model.test_cfg.score_thr=0", "--show-dir",
                   all, "--show-score-thr", "0", "--threads", "1", NULL);
  assert_code (&low, 0);
  g_auto (Result) high =
      run_program ("eval", config, checkpoint, set_root, "--show-dir", few, "--threads", "1", NULL);
  assert_code (&high, 0);
  g_autofree char *told = g_strdup_printf ("3 pictures: %s", few);
  assert_contains (high.err, told);
  g_autofree char *names = list_folder (all), *names_few = list_folder (few);
  g_assert_cmpstr (names, ==, "000003.png 000004.png 000005.png ");
  g_assert_cmpstr (names_few, ==, names);
  g_autofree char *a = g_build_filename (all, "000003.png", NULL),
                  *b = g_build_filename (few, "000003.png", NULL);
  g_autofree char *bytes_a = NULL, *bytes_b = NULL;
  gsize n_a, n_b;
  g_assert_true (g_file_get_contents (a, &bytes_a, &n_a, NULL)
                 && g_file_get_contents (b, &bytes_b, &n_b, NULL));
  g_assert_true (n_a != n_b || memcmp (bytes_a, bytes_b, n_a) != 0);

  g_auto (Result) onto =
      run_program ("eval", config, checkpoint, set_root, "--show-dir", photos, "--threads", "1", NULL);
  assert_code (&onto, 1);
  assert_contains (onto.err, "that is the folder of the photographs");
  g_autofree char *after = list_folder (photos);
  g_assert_cmpstr (before, ==, after);
  g_auto (Result) score = run_program ("eval", config, checkpoint, set_root, "--show-score-thr", "7", NULL);
  assert_code (&score, 2);
}

/* @words must be in the message, and the exit code @code. */
static void
expect_refusal (int code, const char *words, const char *weights, const char *image, const char *extra)
{
  g_autofree char *out = in_top ("refused");
  g_auto (Result) result =
      run_program ("infer", config, weights, image, "--out", out, "--threads", "1", extra, NULL);

  assert_code (&result, code);
  assert_contains (result.err, words);
  g_assert_cmpstr (result.out, ==, "");
}

static void
test_refusals (void)
{
  g_autoptr (GPtrArray) images = set_images ();
  const char *image = images->pdata[0];
  g_autofree char *empty = in_top ("no-images"), *missing = in_top ("missing.jpg"),
                  *text = in_top ("junk/text.jpg");
  write_file ("junk/text.jpg", "no picture");
  g_assert_cmpint (g_mkdir_with_parents (empty, 0777), ==, 0);

  expect_refusal (2, "no image to look at", checkpoint, empty, NULL);
  expect_refusal (2, "no .jpg, .jpeg or .png file in this folder; --recursive", checkpoint, empty, NULL);
  expect_refusal (2, "missing.jpg: No such file", checkpoint, missing, NULL);
  expect_refusal (2, "is an image, not a checkpoint", image, checkpoint, NULL);
  expect_refusal (2, "is a folder, not a checkpoint", top, image, NULL);
  expect_refusal (2, "missing.jpg", missing, image, NULL);
  expect_refusal (1, "text.jpg", text, image, NULL);
  expect_refusal (1, "none of 1 images can be read", checkpoint, text, NULL);
  expect_refusal (1, "this is a safetensors checkpoint", checkpoint, checkpoint, NULL);
  expect_refusal (2, "--score-thr: expected 0 to 1", checkpoint, image, "--score-thr=1.5");
  expect_refusal (2, "--score-thr: expected 0 to 1", checkpoint, image, "--score-thr=nan");
  expect_refusal (2, "--score-thr: expected 0 to 1", checkpoint, image, "--score-thr=-1");
  expect_refusal (2, "--max-per-img: expected at least 1", checkpoint, image, "--max-per-img=-1");
  expect_refusal (2, "--max-per-img: expected at least 1", checkpoint, image, "--max-per-img=0");
  expect_refusal (1, "3 class names (circle, ...), but the model has num_classes: 5", checkpoint, image,
                  "--set=model.bbox_head.num_classes=5");
  expect_refusal (1, "not the weights of this model", checkpoint, image,
                  "--set=model.bbox_head.stacked_convs=3");

  /* Names that a training would refuse, for weights that name no classes. */
  g_autofree char *nameless = in_top ("nameless.pth"), *names = in_top ("names.txt");
  g_autofree char *set_names = g_strconcat ("--set=classes=", names, NULL);
  g_auto (Result) convert = run_program ("convert", checkpoint, nameless, "--names", "torchvision", NULL);
  assert_code (&convert, 0);
  write_file ("names.txt", "circle\nsquare\ncircle\n");
  expect_refusal (2, "names.txt: classes: \"circle\" is there twice", nameless, image, set_names);

  g_auto (Result) none = run_program ("infer", config, checkpoint, NULL);
  assert_code (&none, 2);
  assert_contains (none.err, "an argument is missing");
}

/* Names come from the checkpoint, whatever the file says and wherever its data are. */
static void
test_class_names (void)
{
  g_autoptr (GPtrArray) images = set_images ();
  g_autofree char *out = in_top ("class-names");
  g_auto (Result) result =
      run_program ("infer", config, checkpoint, images->pdata[0], "--out", out, "--json", "-", "--score-thr",
                   "0", "--set", "classes=[a, b, c]", "--threads", "1", NULL);

  assert_code (&result, 0);
  assert_contains (result.err, "`classes:` differs");
  g_autoptr (GPtrArray) lines = parse_lines (result.out);
  JsonArray *found = detections_of (lines, 0);
  static const char *const names[] = { "circle", "square", "triangle" };
  g_assert_cmpuint (json_array_get_length (found), >, 0);
  for (guint i = 0; i < json_array_get_length (found); i++)
    {
      JsonObject *d = json_array_get_object_element (found, i);
      g_assert_cmpstr (json_object_get_string_member (d, "category"), ==,
                       names[json_object_get_int_member (d, "category_id")]);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  make_checkpoint ();
  g_test_add_func ("/infer/equals-eval", test_equals_eval);
  g_test_add_func ("/infer/folder", test_folder);
  g_test_add_func ("/infer/names", test_names);
  g_test_add_func ("/infer/strange-paths", test_strange_paths);
  g_test_add_func ("/infer/threshold", test_threshold);
  g_test_add_func ("/infer/draw-in-training", test_draw_in_training);
  g_test_add_func ("/infer/show-dir", test_show_dir);
  g_test_add_func ("/infer/refusals", test_refusals);
  g_test_add_func ("/infer/class-names", test_class_names);
  int code = g_test_run ();
  remove_tree (top);
  return code;
}
