/*
 * Weights from elsewhere, as users bring them: pretrained backbones that are looked up, load_from, evaluation
 * of any kind of file, and `runner convert`. The files are this program's own, converted.
 */
#include "config.h"

#include "runner/safetensors.h"
#include "tests/cli/program.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  char *dir, *home, *config, *set_root;
  char *checkpoint; /* of a run of one iteration */
  char *backbone;   /* a .pth with torchvision's names of a detector */
} Fixture;

static char *
path_in (const Fixture *f, const char *name)
{
  return g_build_filename (f->dir, name, NULL);
}

static void
assert_success (const Result *result)
{
  if (result->code != 0)
    g_error ("exit code %d: %s", result->code, result->err);
}

#define TRAIN(f, work, ...)                                                                              \
  run_program ("train", (f)->config, (f)->set_root, "--threads", "1", "--work-dir", work, "--set",       \
               "runner={_delete_: true, type: IterBasedRunner, max_iters: 1}", "data.samples_per_gpu=2", \
               "evaluation=null", "optimizer.lr=0", "x_size=[64, 64]", __VA_ARGS__, NULL)

static void
set_up (Fixture *f, gconstpointer user_data)
{
  g_autoptr (GError) error = NULL;
  f->dir = g_dir_make_tmp ("runner-weights-XXXXXX", &error);
  g_assert_no_error (error);
  f->home = path_in (f, "home");
  g_autofree char *cache = g_build_filename (f->home, "hub", "checkpoints", NULL);
  g_assert_cmpint (g_mkdir_with_parents (cache, 0777), ==, 0);
  g_setenv ("TORCH_HOME", f->home, TRUE);
  g_unsetenv ("RN_WEIGHTS");
  f->config = config_file ("retinanet_shapes.yaml");

  g_autofree char *data = path_in (f, "shapes"), *work = path_in (f, "first");
  f->set_root = g_strconcat ("--set=data_root=", data, NULL);
  g_auto (Result) synth = run_program ("synth", data, "--train", "4", "--val", "2", "--test", "2", NULL);
  assert_success (&synth);
  g_auto (Result) train = TRAIN (f, work, "seed=1", "optimizer.lr=0.001");
  assert_success (&train);
  f->checkpoint = g_build_filename (work, "iter_1.safetensors", NULL);
  f->backbone = path_in (f, "torchvision.pth");
  g_auto (Result) convert =
      run_program ("convert", f->checkpoint, f->backbone, "--names", "torchvision", NULL);
  assert_success (&convert);
}

static void
tear_down (Fixture *f, gconstpointer user_data)
{
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->home);
  g_free (f->config);
  g_free (f->set_root);
  g_free (f->checkpoint);
  g_free (f->backbone);
}

static RnSafetensors *
open_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

/* The tensors of @b whose names begin with @prefix are in @a, in the same bytes; gives their number. */
static guint
assert_same_tensors (const char *a_path, const char *b_path, const char *prefix)
{
  g_autoptr (RnSafetensors) a = open_file (a_path);
  g_autoptr (RnSafetensors) b = open_file (b_path);
  guint n = 0;

  for (guint i = 0; i < rn_safetensors_size (b); i++)
    {
      const RnStoredTensor *tensor = rn_safetensors_get (b, i);
      if (!g_str_has_prefix (tensor->name, prefix))
        continue;
      const RnStoredTensor *other = rn_safetensors_find (a, tensor->name);
      g_assert_nonnull (other);
      g_assert_cmpstr (other->type, ==, tensor->type);
      g_assert_cmpint (other->rank, ==, tensor->rank);
      for (int d = 0; d < tensor->rank; d++)
        g_assert_cmpint (other->dims[d], ==, tensor->dims[d]);
      g_assert_cmpuint (other->bytes, ==, tensor->bytes);
      g_assert_cmpint (memcmp (other->data, tensor->data, tensor->bytes), ==, 0);
      n++;
    }
  return n;
}

/* ---- A running mean ---- */

static char *
detect (const Fixture *f, const char *checkpoint, const char *option, gboolean says_so)
{
  g_autofree char *out = path_in (f, "found.json"), *text = NULL;
  g_auto (Result) eval =
      run_program ("eval", f->config, checkpoint, f->set_root, "--threads", "1", "--set", "x_size=[64, 64]",
                   "model.test_cfg.score_thr=0.001", "--out", out, option, NULL);
  assert_success (&eval);
  g_assert_cmpint (strstr (eval.err, "running mean of the weights is taken") != NULL, ==, says_so);
  g_assert_true (g_file_get_contents (out, &text, NULL, NULL));
  g_assert_cmpint (g_unlink (out), ==, 0);
  return g_steal_pointer (&text);
}

/* Weights of a training with EMAHook are their mean, for all but a resume. */
static void
test_ema (Fixture *f, gconstpointer user_data)
{
  g_autofree char *work = path_in (f, "mean"), *next = path_in (f, "next"),
                  *mean = path_in (f, "mean.safetensors"), *raw = path_in (f, "raw.safetensors"),
                  *checkpoint = g_build_filename (work, "iter_3.safetensors", NULL),
                  *first = g_build_filename (next, "iter_1.safetensors", NULL),
                  *load_from = g_strconcat ("load_from=", checkpoint, NULL);
  g_auto (Result) train = TRAIN (f, work, "runner.max_iters=3", "optimizer.lr=0.02", "lr_config=null",
                                 "custom_hooks=[{type: EMAHook, momentum: 0.3, warm_up: 0}]");
  assert_success (&train);
  g_auto (Result) convert = run_program ("convert", checkpoint, mean, NULL);
  assert_success (&convert);
  assert_contains (convert.err, "--no-ema takes the weights themselves");
  g_auto (Result) convert_raw = run_program ("convert", checkpoint, raw, "--no-ema", NULL);
  assert_success (&convert_raw);
  g_assert_cmpuint (assert_same_tensors (checkpoint, raw, ""), >, 100);
  g_autoptr (RnSafetensors) file = open_file (checkpoint);
  g_autoptr (RnSafetensors) means = open_file (mean);
  const RnStoredTensor *stored = rn_safetensors_find (file, "ema/bbox_head.retina_cls.weight"),
                       *written = rn_safetensors_find (means, "bbox_head.retina_cls.weight");
  g_assert_cmpuint (stored->bytes, ==, written->bytes);
  g_assert_cmpint (memcmp (stored->data, written->data, stored->bytes), ==, 0);

  g_autofree char *of_checkpoint = detect (f, checkpoint, NULL, TRUE),
                  *of_mean = detect (f, mean, NULL, FALSE), *of_raw = detect (f, raw, NULL, FALSE),
                  *without = detect (f, checkpoint, "--no-ema", FALSE);
  g_assert_cmpstr (of_checkpoint, ==, of_mean);
  g_assert_cmpstr (without, ==, of_raw);
  g_assert_cmpstr (of_mean, !=, of_raw);

  g_auto (Result) again = TRAIN (f, next, load_from);
  assert_success (&again);
  assert_contains (again.err, "running mean of the weights is taken");
  g_assert_cmpuint (assert_same_tensors (first, mean, "bbox_head."), >, 4);
}

/* ---- convert ---- */

static void
test_round_trip (Fixture *f, gconstpointer user_data)
{
  g_autofree char *torch = path_in (f, "a.pth"), *back = path_in (f, "b.safetensors"),
                  *named = path_in (f, "c.safetensors");
  g_auto (Result) there = run_program ("convert", f->checkpoint, torch, NULL);
  assert_success (&there);
  assert_contains (there.err, "left out: momentum");
  assert_contains (there.out, "F32)");
  g_auto (Result) here = run_program ("convert", torch, back, NULL);
  assert_success (&here);
  guint n = assert_same_tensors (f->checkpoint, back, "");
  g_assert_cmpuint (n, >, 100);
  g_autoptr (RnSafetensors) file = open_file (back);
  g_assert_cmpuint (rn_safetensors_size (file), ==, n);
  g_assert_cmpstr (rn_safetensors_metadata (file, "classes"), ==, "circle\nsquare\ntriangle");
  g_assert_null (rn_safetensors_metadata (file, "counters"));

  /* Through torchvision's names, with its background and without it. */
  g_auto (Result) renamed = run_program ("convert", f->backbone, named, "--names", "mmdet", NULL);
  assert_success (&renamed);
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, named, ""), ==, n);
}

static void
test_list (Fixture *f, gconstpointer user_data)
{
  g_auto (Result) list = run_program ("convert", f->backbone, "--list", NULL);
  assert_success (&list);
  assert_contains (list.out, "backbone.body.conv1.weight");
  assert_contains (list.out, "32x3x7x7");
  assert_contains (list.out, "36x64x3x3"); /* 9 anchors; background and 3 classes */
  g_assert_cmpstr (list.err, ==, "");
}

static void
test_convert_refusals (Fixture *f, gconstpointer user_data)
{
  g_autofree char *text = path_in (f, "a.txt"), *link_path = path_in (f, "link.safetensors"),
                  *folder = path_in (f, "no-such-folder/a.pth"), *out = path_in (f, "a.pth");
  g_assert_cmpint (symlink (f->checkpoint, link_path), ==, 0);
  const struct
  {
    const char *in, *out, *option, *words;
    int code;
  } cases[] = {
    { f->checkpoint, f->checkpoint, NULL, "is the file that is read", 2 },
    { f->checkpoint, link_path, NULL, "is the file that is read", 2 },
    { f->checkpoint, text, NULL, "must end in .safetensors, .pth or .pt", 2 },
    { f->checkpoint, folder, NULL, "no-such-folder", 1 },
    { f->checkpoint, NULL, NULL, "OUT is missing", 2 },
    { f->checkpoint, out, "--list", "writes nothing", 2 },
    { f->checkpoint, out, "--names=torchvison", "did you mean \"torchvision\"?", 2 },
    { f->config, out, NULL, "is not a checkpoint", 1 },
    { f->dir, out, NULL, "a folder", 2 },
    { text, out, NULL, "No such file", 2 },
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const char *rest[] = { cases[i].out, cases[i].option };
      const char *a = rest[0] != NULL ? rest[0] : rest[1], *b = rest[0] != NULL ? rest[1] : NULL;
      g_auto (Result) result = run_program ("convert", cases[i].in, a, b, NULL);
      g_test_message ("%s", result.err);
      assert_contains (result.err, cases[i].words);
      g_assert_cmpint (result.code, ==, cases[i].code);
      g_assert_false (g_file_test (out, G_FILE_TEST_EXISTS));
    }
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, f->checkpoint, ""), >, 0); /* still whole */
}

/* ---- eval ---- */

static void
test_eval (Fixture *f, gconstpointer user_data)
{
  g_autofree char *torch = path_in (f, "a.pth"), *half = path_in (f, "half.pth");
  g_auto (Result) convert = run_program ("convert", f->checkpoint, torch, NULL);
  assert_success (&convert);
  g_auto (Result) to_half = run_program ("convert", f->checkpoint, half, "--half", NULL);
  assert_success (&to_half);
  assert_contains (to_half.out, "F16)");

  const char *files[] = { f->checkpoint, torch };
  char *detections[2];
  for (int i = 0; i < 2; i++)
    {
      g_autofree char *out = path_in (f, "detections.json");
      g_auto (Result) eval =
          run_program ("eval", f->config, files[i], f->set_root, "--threads", "1", "--set", "x_size=[64, 64]",
                       "model.test_cfg.score_thr=0", "--out", out, NULL);
      assert_success (&eval);
      g_assert_null (strstr (eval.err, "detections may be wrong"));
      g_assert_true (g_file_get_contents (out, &detections[i], NULL, NULL));
    }
  g_assert_cmpstr (detections[0], ==, detections[1]);
  g_assert_cmpuint (strlen (detections[0]), >, 1000);
  g_free (detections[0]);
  g_free (detections[1]);

  g_auto (Result) eval =
      run_program ("eval", f->config, half, f->set_root, "--threads", "1", "--set", "x_size=[64, 64]", NULL);
  assert_success (&eval);
  /* The class names came along. */
  g_auto (Result) other = run_program ("eval", f->config, half, f->set_root, "--threads", "1", "--set",
                                       "classes=[square, circle, triangle]", NULL);
  g_assert_cmpint (other.code, ==, 1);
  assert_contains (other.err, "circle in the checkpoint and square in the data set");
  /* And, where the format has a place for it, the training's configuration. */
  g_autofree char *small = path_in (f, "half.safetensors");
  g_auto (Result) to_small = run_program ("convert", f->checkpoint, small, "--half", NULL);
  assert_success (&to_small);
  g_auto (Result) anchors = run_program (
      "eval", f->config, small, f->set_root, "--threads", "1", "--set", "x_size=[64, 96]",
      "model.bbox_head.anchor_generator.octave_base_scale=3", "model.test_cfg.nms_pre=100", NULL);
  assert_success (&anchors);
  assert_contains (anchors.err, "octave_base_scale: 4 in the checkpoint, 3 now; detections may be wrong");
  assert_contains (anchors.err, "pipeline.1.img_scale: [64, 64] in the checkpoint, [64, 96] now");
  g_assert_null (strstr (anchors.err, "nms_pre"));
  /* torchvision's pyramid is another one. */
  g_auto (Result) pyramid = run_program ("eval", f->config, f->backbone, f->set_root, "--threads", "1", NULL);
  g_assert_cmpint (pyramid.code, ==, 1);
  assert_contains (pyramid.err, "model.neck.relu_before_extra_convs=true");
}

/* ---- training ---- */

#define PRETRAINED "model.backbone.init_cfg={type: Pretrained, checkpoint: '%s'}"

static void
test_pretrained (Fixture *f, gconstpointer user_data)
{
  g_autofree char *work = path_in (f, "work"), *weights = path_in (f, "weights");
  g_autofree char *result = g_build_filename (work, "iter_1.safetensors", NULL);
  g_autofree char *set_name = g_strdup_printf (PRETRAINED, "torchvision://resnet18");
  g_autofree char *set_path = g_strdup_printf (PRETRAINED, f->checkpoint);
  g_autofree char *set_url = g_strdup_printf (PRETRAINED, "https://a.b/c.pth");

  g_auto (Result) missing = TRAIN (f, work, set_name);
  g_assert_cmpint (missing.code, ==, 2);
  assert_contains (missing.err, "--set");
  assert_contains (missing.err, f->home);
  assert_contains (missing.err, "torchvision.models.resnet18(");
  assert_contains (missing.err, "model.backbone.init_cfg=null model.backbone.frozen_stages=-1");
  g_auto (Result) url = TRAIN (f, work, set_url);
  g_assert_cmpint (url.code, ==, 2);
  assert_contains (url.err, "downloads nothing");

  /* In torch's cache, where an older and a newer recipe may be. lr is 0, so weights stay as they were loaded.
   */
  g_autofree char *first = g_build_filename (f->home, "hub", "checkpoints", "resnet18-1234.pth", NULL);
  g_autofree char *second = g_build_filename (f->home, "hub", "checkpoints", "resnet18-5678.pth", NULL);
  g_autofree char *other = g_build_filename (f->home, "hub", "checkpoints", "resnet18.txt", NULL);
  g_assert_cmpint (g_rename (f->backbone, first), ==, 0);
  g_assert_true (g_file_set_contents (second, "x", 1, NULL));
  g_assert_true (g_file_set_contents (other, "x", 1, NULL));
  g_auto (Result) cached = TRAIN (f, work, set_name, "model.backbone.frozen_stages=1");
  assert_success (&cached);
  assert_contains (cached.err, "torchvision://resnet18 is ");
  assert_contains (cached.err, "resnet18-1234.pth (also there: resnet18-5678.pth)");
  assert_contains (cached.err, "tensors of the backbone loaded");
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, result, "backbone.conv1"), ==, 1);
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, result, "backbone.layer1.0.conv"), ==, 2);

  /* $RN_WEIGHTS comes before the cache. */
  g_assert_cmpint (g_mkdir (weights, 0777), ==, 0);
  g_autofree char *mine = g_build_filename (weights, "resnet18.safetensors", NULL);
  g_auto (Result) convert = run_program ("convert", first, mine, NULL);
  assert_success (&convert);
  g_setenv ("RN_WEIGHTS", weights, TRUE);
  g_auto (Result) own = TRAIN (f, work, set_name);
  assert_success (&own);
  assert_contains (own.err, mine);
  g_unsetenv ("RN_WEIGHTS");

  /* A checkpoint of ours is one too. */
  g_auto (Result) ours = TRAIN (f, work, set_path);
  assert_success (&ours);
  assert_contains (ours.err, "tensors of the backbone loaded");
}

/* Frozen layers must come from somewhere. */
static void
test_frozen (Fixture *f, gconstpointer user_data)
{
  g_autofree char *work = path_in (f, "work"), *head = path_in (f, "head.safetensors");
  g_autofree char *set_from = g_strdup_printf (
      "load_from={checkpoint: '%s', revise_keys: [['^backbone\\.layer1\\.', other.]]}", f->checkpoint);

  g_auto (Result) nothing = TRAIN (f, work, "model.backbone.frozen_stages=1");
  g_assert_cmpint (nothing.code, ==, 2);
  assert_contains (nothing.err, "would stay random");
  g_auto (Result) partly = TRAIN (f, work, "model.backbone.frozen_stages=1", set_from);
  g_assert_cmpint (partly.code, ==, 1);
  assert_contains (partly.err, "4 convolutions are frozen");
  assert_contains (partly.err, "the first is backbone.layer1.0.conv1.weight");
  g_auto (Result) free = TRAIN (f, work, "model.backbone.frozen_stages=0", set_from);
  assert_success (&free);
  assert_contains (free.err, "are not in the file and keep their first values");
}

static void
test_load_from (Fixture *f, gconstpointer user_data)
{
  g_autofree char *work = path_in (f, "work"), *half = path_in (f, "half.safetensors");
  g_autofree char *result = g_build_filename (work, "iter_1.safetensors", NULL);
  g_autofree char *set_from = g_strdup_printf ("load_from=%s", f->checkpoint),
                  *set_half = g_strdup_printf ("load_from=%s", half);
  g_autofree char *set_name = g_strdup_printf (PRETRAINED, "torchvision://resnet18");

  g_auto (Result) whole = TRAIN (f, work, set_from);
  assert_success (&whole);
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, result, "backbone.conv1"), ==, 1);
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, result, "neck."), ==, 16);
  g_assert_cmpuint (assert_same_tensors (f->checkpoint, result, "bbox_head."), ==, 12);

  /* It has all of the backbone, so the pretrained one need not be there. */
  g_auto (Result) both = TRAIN (f, work, set_from, set_name, "model.backbone.frozen_stages=1");
  assert_success (&both);
  assert_contains (both.err, "init_cfg is not needed");

  /* Other classes: the class predictor starts anew. */
  g_auto (Result) classes =
      TRAIN (f, work, set_from, "classes=[circle, square]", "model.bbox_head.num_classes=2");
  assert_success (&classes);
  assert_contains (classes.err, "2 tensors of the model have another shape");
  assert_contains (classes.err,
                   "bbox_head.retina_cls.weight (27x64x3x3 in the file, 18x64x3x3 in the model)");
  /* That only it may be of another shape; and that nothing may. */
  g_autofree char *set_cls = g_strdup_printf (
                      "load_from={checkpoint: '%s', allow_shape_mismatch: ['\\.retina_cls\\.']}",
                      f->checkpoint),
                  *set_reg = g_strdup_printf (
                      "load_from={checkpoint: '%s', allow_shape_mismatch: [retina_reg]}", f->checkpoint),
                  *set_strict = g_strdup_printf ("load_from={checkpoint: '%s', strict: true}", f->checkpoint),
                  *set_wrong = g_strdup_printf ("load_from={checkpoint: '%s', allow_shape_mismatch: ['(']}",
                                                f->checkpoint);
  g_auto (Result) cls = TRAIN (f, work, set_cls, "classes=[circle, square]", "model.bbox_head.num_classes=2");
  assert_success (&cls);
  g_auto (Result) reg = TRAIN (f, work, set_reg, "classes=[circle, square]", "model.bbox_head.num_classes=2");
  g_assert_cmpint (reg.code, ==, 1);
  assert_contains (reg.err, "other shape of bbox_head.retina_cls.weight (27x64x3x3 in the file");
  g_auto (Result) strict =
      TRAIN (f, work, set_strict, "classes=[circle, square]", "model.bbox_head.num_classes=2");
  g_assert_cmpint (strict.code, ==, 1);
  assert_contains (strict.err, "0 are missing, 2 have another shape");
  g_auto (Result) wrong = TRAIN (f, work, set_wrong);
  g_assert_cmpint (wrong.code, ==, 2);
  assert_contains (wrong.err, "load_from.allow_shape_mismatch.0: ");
  /* The same number of others: taken over, but not in silence. */
  g_auto (Result) renamed = TRAIN (f, work, set_from, "classes=[circle, triangle, square]");
  assert_success (&renamed);
  assert_contains (renamed.err, "number 1 is square there and triangle here");

  g_auto (Result) convert = run_program ("convert", f->checkpoint, half, "--half", NULL);
  assert_success (&convert);
  g_auto (Result) from_half = TRAIN (f, work, set_half);
  assert_success (&from_half);
}

/* A resumed run has its own weights. */
static void
test_resume (Fixture *f, gconstpointer user_data)
{
  g_autofree char *work = path_in (f, "work"), *gone = path_in (f, "gone.safetensors");
  g_autofree char *set_from = g_strdup_printf ("load_from=%s", gone);
  g_assert_cmpint (g_rename (f->checkpoint, gone), ==, 0);

  g_auto (Result) first = TRAIN (f, work, set_from, "model.backbone.frozen_stages=1", "--resume");
  assert_success (&first); /* nothing to resume yet */
  assert_contains (first.err, "tensors of the model loaded");
  g_assert_cmpint (g_unlink (gone), ==, 0);
  g_auto (Result) longer =
      TRAIN (f, work, set_from, "model.backbone.frozen_stages=1", "runner.max_iters=2", "--resume");
  assert_success (&longer);
  assert_contains (longer.err, "load_from is not read");
  assert_contains (longer.err, "iter_2.safetensors");
  g_auto (Result) foreign = TRAIN (f, work, "--resume-from", f->backbone);
  g_assert_cmpint (foreign.code, ==, 1);
  assert_contains (foreign.err, "what starts from its weights: --set load_from=");

  /* Without it, the file is missed, before the data is read. */
  g_auto (Result) anew = TRAIN (f, work, set_from, "data_root=nowhere/");
  g_assert_cmpint (anew.code, ==, 2);
  assert_contains (anew.err, "there is no file");
}

int
main (int argc, char **argv)
{
  static const struct
  {
    const char *name;
    void (*run) (Fixture *f, gconstpointer data);
  } tests[] = {
    { "/weights/ema", test_ema },           { "/weights/convert/round-trip", test_round_trip },
    { "/weights/convert/list", test_list }, { "/weights/convert/refusals", test_convert_refusals },
    { "/weights/eval", test_eval },         { "/weights/pretrained", test_pretrained },
    { "/weights/frozen", test_frozen },     { "/weights/load-from", test_load_from },
    { "/weights/resume", test_resume },
  };
  g_test_init (&argc, &argv, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (tests); i++)
    g_test_add (tests[i].name, Fixture, NULL, set_up, tests[i].run, tear_down);
  return g_test_run ();
}
