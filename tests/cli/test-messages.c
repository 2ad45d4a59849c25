/*
 * What a newcomer meets in the first hour: mistakes in the file, in the folder and on the command line. Each
 * row is one mistake; the message must name the place and what to do, by the words that carry both.
 *
 * Every row starts in a folder of its own that has configs/ (of the project), data/shapes (drawn once) and
 * mine.yaml, which the row may replace. Nothing here trains: rows end before or in the scan of the data.
 */
#include "config.h"

#include "tests/cli/program.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define GOOD                                \
  "_base_: configs/retinanet_shapes.yaml\n" \
  "classes: [circle, square, triangle]\n"   \
  "data: {samples_per_gpu: 2}\n"

typedef struct
{
  const char *name;
  const char *file;    /* written after GOOD to mine.yaml, or, with a first character '!', in its place */
  const char *args[8]; /* NULL-ended */
  int code;
  const char *words[3]; /* all of them in the one message; NULL-ended */
} Case;

#define CONFIG            \
  {                       \
    "config", "mine.yaml" \
  }
#define TRAIN(...)                    \
  {                                   \
    "train", "mine.yaml", __VA_ARGS__ \
  }
#define SET(text) TRAIN ("--set", text)
#define PLAN                                \
  {                                         \
    "plan", "mine.yaml", "--shape", "64x64" \
  }

static const Case cases[] = {
  /* The text of the file. */
  { "tab", "optimizer:\n\tlr: 0.01\n", CONFIG, 2, { "mine.yaml:5:1: ", "tab", "spaces" } },
  { "no-colon", "optimizer\n  lr: 0.01\n", CONFIG, 2, { "mine.yaml:4:1: ", "\"optimizer\" has no colon" } },
  { "no-space", "seed:3\n", CONFIG, 2, { "mine.yaml:4:1: ", "space after the colon: \"seed: 3\"" } },
  { "indented", "optimizer:\n  lr: 0.01\n   momentum: 0\n", CONFIG, 2, { "mine.yaml:6:", "indented" } },
  { "not-indented", "optimizer:\nlr: 0.01\n", CONFIG, 2, { "mine.yaml:5:1: lr: ", "optimizer.lr" } },
  { "twice", "seed: 1\nseed: 2\n", CONFIG, 2, { "mine.yaml:5:1: seed: ", "first at mine.yaml:4:1" } },
  { "quote", "work_dir: \"out\nseed: 3\n", CONFIG, 2, { "mine.yaml:4:11: ", "no end" } },
  { "bracket", "work_dir: [a\nseed: 3\n", CONFIG, 2, { "mine.yaml:4:11: ", "\"]\" is missing" } },
  { "windows-path", "work_dir: \"C:\\data\"\n", CONFIG, 2, { "mine.yaml:4:", "backslash" } },
  { "python", "!model = dict(type='RetinaNet')\n", CONFIG, 2, { "mine.yaml:1:1: ", "Python", "mmcv.dump" } },
  { "utf16", "!\xff\xfes", CONFIG, 2, { "mine.yaml: ", "UTF-16", "save it as UTF-8" } },
  { "jpeg", "!\xff\xd8\xff\xe0", CONFIG, 2, { "mine.yaml: ", "a JPEG image" } },
  /* Values and keys of the file. */
  { "policy",
    "lr_config: {_delete_: true, policy: CosineAnealing, min_lr: 0}\n",
    SET ("seed=1"),
    2,
    { "mine.yaml:4:", "lr_config.policy: ", "did you mean \"CosineAnnealing\"?" } },
  { "policy-short",
    "lr_config: {_delete_: true, policy: cosine, min_lr: 0}\n",
    SET ("seed=1"),
    2,
    { "mine.yaml:4:", "no policy \"cosine\"; did you mean \"",
      "there are: fixed, step, exp, poly, inv, CosineAnnealing, " } },
  { "policy-key",
    "lr_config: {_delete_: true, policy: CosineAnnealing}\n",
    SET ("data_root=gone/"),
    2,
    { "mine.yaml:4:", "lr_config: ", "min_lr or min_lr_ratio" } },
  { "lr-type",
    "lr_config: {_delete_: true, type: EMAHook}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "LrUpdaterHook" } },
  { "save-best",
    "evaluation: {save_best: mAp}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "there are auto, mAP, AP50" } },
  { "metric", "evaluation: {metric: mAPP}\n", CONFIG, 2, { "mine.yaml:4:", "mAP" } },
  { "overlap", "evaluation: {iou_thr: []}\n", CONFIG, 2, { "mine.yaml:4:", "at least one overlap" } },
  { "intervals",
    "evaluation: {dynamic_intervals: [[3]]}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "[milestone, interval]" } },
  { "keep-none",
    "checkpoint_config: {max_keep_ckpts: 0}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "would keep nothing" } },
  { "base-policy",
    "lr_config: {policy: CosineAnnealing, min_lr: 0}\n",
    SET ("seed=1"),
    2,
    { "lr_config.step: unknown key; there are: ", "`_delete_: true` beside lr_config.policy (",
      "mine.yaml:4:13) drops" } },
  { "base-batch",
    "auto_scale_lr: {enable: true, base_batch_size: 0}\n",
    SET ("data_root=gone/"),
    2,
    { "mine.yaml:4:", "auto_scale_lr.base_batch_size: " } },
  { "comma", "optimizer:\n  lr: 0,01\n", CONFIG, 2, { "mine.yaml:5:3: optimizer.lr: ", "point" } },
  { "flow-comma", "optimizer: {lr: 0,01}\n", CONFIG, 2, { "mine.yaml:4:", "point" } },
  { "quoted-number", "optimizer: {lr: \"1e-4\"}\n", CONFIG, 2, { "optimizer.lr: ", "leave out the quotes" } },
  { "top-typo", "optimiser: {lr: 1}\n", CONFIG, 2, { "mine.yaml:4:1: ", "did you mean \"optimizer\"?" } },
  { "other-name", "batch_size: 4\n", CONFIG, 2, { "mine.yaml:4:1: ", "data.samples_per_gpu" } },
  { "mmdet3", "param_scheduler: []\n", CONFIG, 2, { "mine.yaml:4:1: ", "lr_config" } },
  { "max-keep", "checkpoint_config: {max_keep: 3}\n", CONFIG, 2, { "mine.yaml:4:", "\"max_keep_ckpts\"?" } },
  { "head-typo", "model: {bbox_head: {num_clases: 3}}\n", CONFIG, 2, { "mine.yaml:4:", "\"num_classes\"?" } },
  { "hook", "custom_hooks: [{type: EmaHook}]\n", CONFIG, 2, { "mine.yaml:4:", "did you mean \"EMAHook\"?" } },
  { "priority",
    "custom_hooks: [{type: NumClassCheckHook, priority: SUPER}]\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "HIGHEST" } },
  { "workflow",
    "workflow: [[train, 1], [vall, 1]]\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "did you mean \"val\"?" } },
  { "fp16-key",
    "fp16: {loss_scal: 512}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "fp16.loss_scal: ", "\"loss_scale\"?" } },
  { "fp16-scale",
    "fp16: {loss_scale: often}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "fp16.loss_scale: ", "dynamic" } },
  { "fp16-level", "fp16: {opt_level: O3}\n", CONFIG, 2, { "mine.yaml:4:", "what works: O2" } },
  { "fp16-twice",
    "fp16: {loss_scale: 64}\noptimizer_config: {_delete_: true, type: Fp16OptimizerHook, loss_scale: 512}\n",
    CONFIG,
    2,
    { "mine.yaml:5:", "differs from fp16.loss_scale in mine.yaml:4:" } },
  { "fp16-no-effect",
    "fp16: {opt_level: O0, dtype: bf16}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "fp16.dtype: ", "does nothing with opt_level: O0" } },
  { "fp16-both-lists",
    "fp16: {force_fp32: [neck], force_half: [neck]}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "neck is in force_fp32 too" } },
  { "fp16-module",
    "fp16: {force_fp32: [backbone.layr1]}\n",
    { "plan", "mine.yaml", "--shape", "64x96" },
    2,
    { "mine.yaml:4:", "fp16.force_fp32.0: ", "no module \"backbone.layr1\"; nearest: \"backbone.layer1\"" } },
  { "fp16-enabled",
    "model: {neck: {fp16_enabled: true}}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "model.neck.fp16_enabled: ", "`fp16: {loss_scale: dynamic}`" } },
  { "fp16-nothing-left",
    "fp16: {loss_scale: 512, force_fp32: [backbone, neck, bbox_head]}\n",
    { "plan", "mine.yaml", "--shape", "64x96" },
    2,
    { "mine.yaml:4:", "no module is left in half precision" } },
  { "with-cp",
    "model: {backbone: {with_cp: {segment: 2}}}\n",
    CONFIG,
    2,
    { "mine.yaml:4:", "\"segments\"?" } },
  { "with-cp-range",
    "model: {backbone: {with_cp: {segments: 9}}}\n",
    PLAN,
    2,
    { "mine.yaml:4:", "model.backbone.with_cp: 9 segments of 8 blocks", "what works: {segments: 2 to 8}" } },
  { "with-cp-idle",
    "model: {bbox_head: {with_cp: {larger_than: 1GiB}}}\n",
    PLAN,
    2,
    { "mine.yaml:4:", "model.bbox_head.with_cp: no tensor inside a branch of the head", "a limit below" } },
  { "recompute-idle",
    "memory: {recompute: [frozen]}\n",
    PLAN,
    2,
    { "mine.yaml:4:", "memory.recompute: ", "frozen has no effect; what works: " } },
  { "model", "model: {type: FasterRCNN}\n", CONFIG, 2, { "mine.yaml:4:", "there are: RetinaNet" } },
  { "reference", "work_dir: ${data_rot}\n", CONFIG, 2, { "mine.yaml:4:1: ", "did you mean \"data_root\"?" } },
  { "base",
    "!_base_: configs/retinanet_shape.yaml\n",
    CONFIG,
    2,
    { "mine.yaml:1:1: ", "retinanet_shapes.yaml" } },
  /* The data, before it is read or while it is. */
  { "num-classes",
    "",
    SET ("model.bbox_head.num_classes=4"),
    2,
    { "num_classes is 4", "3 classes", "agree" } },
  { "class-scalar", "", SET ("classes=circle"), 2, { "--set classes: ", "[circle]" } },
  { "class-number", "", SET ("classes=[1, 2, 3]"), 2, { "--set classes: classes.0: ", "in quotes" } },
  { "class-twice", "", SET ("classes=[circle, circle, a]"), 2, { "--set classes: classes.1: ", "twice" } },
  { "class-unknown", "", SET ("classes=[cat, dog, cow]"), 1, { "--set classes: ", "circle (", "auto" } },
  { "data-root", "", SET ("data_root=data/shape"), 2, { "data/shape/ImageSets", "data_root=FOLDER" } },
  { "ann-file",
    "",
    SET ("data.train.dataset.ann_file=ImageSets/Main/trian.txt"),
    2,
    { "trian.txt", "is missing" } },
  { "empty-list",
    "",
    SET ("data.val.ann_file=../../empty.txt"),
    1,
    { "no image is left", "empty.txt, which ann_file names, is empty" } },
  { "empty-classes",
    "",
    SET ("classes=../../empty.txt"),
    1,
    { "--set classes: ", "empty.txt: there is no class", "one name on each line" } },
  { "binary-classes",
    "",
    SET ("classes=../../bell.txt"),
    2,
    { "--set classes: ", "bell.txt: classes: name 2, \"squ?are\"", "control character" } },
  { "no-classes", "", SET ("classes=[]"), 1, { "--set classes: classes: the list is empty" } },
  { "batch", "", SET ("data.samples_per_gpu=0"), 2, { "--set data.samples_per_gpu: ", "between 1" } },
  { "lr", "", SET ("optimizer.lr=-1"), 2, { "--set optimizer.lr: ", "between 0" } },
  { "epochs", "", SET ("runner.max_epochs=0"), 2, { "--set runner.max_epochs: ", "between 1" } },
  /* The command line. */
  { "device", "", TRAIN ("--device", "cuda:4095"), 3, { "CUDA: " } },
  { "set-typo", "", SET ("optimizer.l=1"), 2, { "--set optimizer.l: ", "did you mean \"lr\"?" } },
  { "set-deep", "", SET ("optimizer.lr.x=1"), 2, { "--set optimizer.lr.x: ", "optimizer.lr is a number" } },
  { "set-space", "", TRAIN ("--set", "optimizer.lr", "0.1"), 2, { "--set optimizer.lr=VALUE" } },
  { "set-left-out", "", TRAIN ("optimizer.lr=0.1"), 2, { "--set optimizer.lr=0.1" } },
  { "resume-missing", "", TRAIN ("--resume=gone.safetensors"), 2, { "--resume: ", "gone.safetensors: " } },
  { "resume-space", "", TRAIN ("--resume", "a.safetensors"), 2, { "--resume=a.safetensors" } },
  { "gpus", "", TRAIN ("--gpus", "2"), 2, { "no option --gpus", "--device cuda" } },
  { "option", "", TRAIN ("--work-dri", "x"), 2, { "did you mean --work-dir?" } },
  { "work-dir",
    "",
    TRAIN ("--work-dir", "mine.yaml"),
    1,
    { "mine.yaml: ", "--work-dir names another folder" } },
  { "no-file", "", { "train", "mine.yml" }, 2, { "mine.yml: No such file", "\"mine.yaml\"?" } },
  { "folder", "", { "train", "configs" }, 2, { "configs: is a folder" } },
  { "swapped",
    "",
    { "eval", "a.pth", "mine.yaml" },
    2,
    { "CONFIG comes first: runner eval mine.yaml a.pth" } },
  { "checkpoint", "", { "train", "a.safetensors" }, 2, { "is no CONFIG but a checkpoint" } },
  { "missing", "", { "eval", "mine.yaml" }, 2, { "the arguments are CONFIG CHECKPOINT" } },
  { "no-command", "", { "mine.yaml" }, 2, { "runner train mine.yaml" } },
  { "command", "", { "trian", "mine.yaml" }, 2, { "did you mean \"train\"?" } },
};

static char *folder, *project_configs, *program;

static void
write_file (const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, text, -1, &error);
  g_assert_no_error (error);
}

/* Runs the program in the folder. */
static Result
run_here (const char *const *args)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  Result result = { 0 };
  int status = 0;

  g_ptr_array_add (argv, program);
  for (; *args != NULL; args++)
    g_ptr_array_add (argv, (gpointer) *args);
  g_ptr_array_add (argv, NULL);
  g_spawn_sync (folder, (char **) argv->pdata, NULL, G_SPAWN_DEFAULT, NULL, NULL, &result.out, &result.err,
                &status, &error);
  g_assert_no_error (error);
  if (!g_spawn_check_wait_status (status, &error))
    {
      g_assert_true (error->domain == G_SPAWN_EXIT_ERROR);
      result.code = error->code;
    }
  return result;
}

/* The lines from the one that the program begins with its name: the message, without notices before it. */
static const char *
message_of (const char *err)
{
  for (const char *line = err; line != NULL; line = strchr (line, '\n'))
    {
      line += *line == '\n';
      if (g_str_has_prefix (line, "runner"))
        return line;
    }
  return "";
}

static void
test_message (gconstpointer data)
{
  const Case *c = data;
  gboolean is_alone = c->file[0] == '!';
  g_autofree char *text = g_strconcat (is_alone ? "" : GOOD, c->file + is_alone, NULL);

  write_file ("mine.yaml", text);
  g_auto (Result) result = run_here (c->args);
  const char *message = message_of (result.err);
  g_test_message ("%s", result.err);
  g_assert_cmpint (result.code, ==, c->code);
  for (gsize i = 0; i < G_N_ELEMENTS (c->words) && c->words[i] != NULL; i++)
    assert_contains (message, c->words[i]);
}

/* A wrong file leaves nothing behind: no work dir to clean up. */
static void
test_leaves_nothing (void)
{
  static const char *const args[] = { "train", "mine.yaml", "--work-dir", "new-dir", NULL };
  g_autofree char *path = g_build_filename (folder, "new-dir", NULL);

  write_file ("mine.yaml", GOOD "checkpoint_config: {intervall: 3}\n");
  g_auto (Result) result = run_here (args);
  g_assert_cmpint (result.code, ==, 2);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
}

#define WANTS_WEIGHTS "model: {backbone: {init_cfg: {type: Pretrained, checkpoint: gone.pth}}}\n"

/* Weights that are not there: found before there is a work dir, and only noted where none are needed. */
static void
test_weights_missing (void)
{
  static const char *const train[] = { "train", "mine.yaml", "--work-dir", "new-dir", "--resume", NULL };
  static const char *const config[] = { "config", "mine.yaml", NULL };
  static const char *const plan[] = { "plan", "mine.yaml", "--shape", "64x64", "--json", NULL };
  g_autofree char *path = g_build_filename (folder, "new-dir", NULL);

  write_file ("mine.yaml", GOOD WANTS_WEIGHTS);
  g_auto (Result) trained = run_here (train);
  g_assert_cmpint (trained.code, ==, 2);
  assert_contains (message_of (trained.err), "there is no file gone.pth");
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));

  g_auto (Result) shown = run_here (config);
  g_assert_cmpint (shown.code, ==, 0);
  assert_contains (shown.err, "note: training would stop: mine.yaml:4");
  g_auto (Result) planned = run_here (plan);
  g_assert_cmpint (planned.code, ==, 0);
  assert_contains (planned.err, "there is no file gone.pth");
  g_assert_true (planned.out[0] == '{');
}

/* Where sizes are drawn, a plan says to what they are rounded up. */
static void
test_random_sizes (void)
{
  static const char *const plan[] = { "plan", "mine.yaml", NULL };
  static const char *const random[] = {
    "plan", "mine.yaml", "--set",
    "data.train.dataset.pipeline=[{type: LoadImageFromFile}, {type: LoadAnnotations, with_bbox: true}, "
    "{type: Resize, img_scale: [[160, 64], [160, 128]], multiscale_mode: range, keep_ratio: true}, "
    "{type: Normalize, mean: [0, 0, 0], std: [1, 1, 1], to_rgb: true}, {type: Pad, size_divisor: 32}, "
    "{type: DefaultFormatBundle}, {type: Collect, keys: [img, gt_bboxes, gt_labels]}]",
    NULL
  };

  write_file ("mine.yaml", GOOD);
  g_auto (Result) fixed = run_here (plan);
  g_assert_cmpint (fixed.code, ==, 0);
  g_assert_null (strstr (fixed.err, "sizes are random"));
  g_auto (Result) result = run_here (random);
  g_test_message ("%s", result.err);
  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.err, "train: sizes are random: batches are padded up to one of ");
}

/* Two runs in one work dir would mix their checkpoints; the lock goes with the process that holds it. */
static void
test_two_runs (void)
{
  static const char *const args[] = { "train", "mine.yaml", "--work-dir", "shared", NULL };
  g_autofree char *path = g_build_filename (folder, "shared", NULL);

  write_file ("mine.yaml", GOOD);
  g_assert_cmpint (g_mkdir (path, 0777), ==, 0);
  int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (flock (fd, LOCK_EX), ==, 0);
  g_auto (Result) result = run_here (args);
  close (fd);
  g_assert_cmpint (result.code, ==, 1);
  assert_contains (message_of (result.err), "shared: another run is at work there");
}

/* The values are shown even where the check refuses them. */
static void
test_config_shows (void)
{
  static const char *const args[] = { "config", "mine.yaml", NULL };

  write_file ("mine.yaml", GOOD "checkpoint_config: {intervall: 3}\n");
  g_auto (Result) result = run_here (args);
  g_assert_cmpint (result.code, ==, 2);
  assert_contains (result.out, "intervall: 3");
  assert_contains (result.out, "mine.yaml:4");
}

/* The blocks of YAML in the guide are configurations that pass: the first one, and the others on top of it.
 */
static void
test_guide (void)
{
  static const char *const args[] = { "config", "step.yaml", NULL };
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "docs", "guide", "your-own-folder.md", NULL);
  g_autofree char *guide = NULL;
  g_autoptr (GError) error = NULL;

  g_file_get_contents (path, &guide, NULL, &error);
  g_assert_no_error (error);
  g_auto (GStrv) parts = g_strsplit (guide, "```yaml\n", -1);
  g_assert_cmpuint (g_strv_length (parts), ==, 4);
  for (guint i = 1; parts[i] != NULL; i++)
    {
      char *end = strstr (parts[i], "```");
      g_assert_nonnull (end);
      *end = '\0';
      const char *base = "_base_: retinanet_r18_bccd.yaml\n";
      gboolean is_first = g_str_has_prefix (parts[i], base);
      g_assert_cmpint (is_first, ==, i == 1);
      g_autofree char *text =
          is_first ? g_strconcat ("_base_: configs/retinanet_r18_bccd.yaml\n", parts[i] + strlen (base), NULL)
                   : g_strconcat ("_base_: first.yaml\n", parts[i], NULL);
      if (is_first)
        write_file ("first.yaml", text);
      write_file ("step.yaml", text);
      g_auto (Result) result = run_here (args);
      if (result.code != 0)
        g_error ("block %u of the guide: %s", i, result.err);
    }
}

int
main (int argc, char **argv)
{
  static const char *const synth[] = { "synth", "data/shapes", "--train", "4", "--val",
                                       "2",     "--test",      "2",       NULL };
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  g_autofree char *relative = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  program = g_canonicalize_filename (relative, NULL);
  g_autofree char *configs = g_test_build_filename (G_TEST_DIST, "configs", NULL);
  project_configs = g_canonicalize_filename (configs, NULL);
  folder = g_dir_make_tmp ("rn-messages-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *link = g_build_filename (folder, "configs", NULL);
  g_assert_cmpint (symlink (project_configs, link), ==, 0);
  g_auto (Result) drawn = run_here (synth);
  g_assert_cmpint (drawn.code, ==, 0);
  write_file ("empty.txt", "");
  write_file ("bell.txt", "circle\nsqu\007are\ntriangle\n");

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *path = g_strconcat ("/messages/", cases[i].name, NULL);
      g_test_add_data_func (path, &cases[i], test_message);
    }
  g_test_add_func ("/messages/leaves-nothing", test_leaves_nothing);
  g_test_add_func ("/messages/weights-missing", test_weights_missing);
  g_test_add_func ("/messages/random-sizes", test_random_sizes);
  g_test_add_func ("/messages/two-runs", test_two_runs);
  g_test_add_func ("/messages/config-shows", test_config_shows);
  g_test_add_func ("/messages/guide", test_guide);
  int status = g_test_run ();
  remove_tree (folder);
  return status;
}
