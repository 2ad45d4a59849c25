/*
 * Runs with hooks of a user's own: what `runner new-hook` writes, the examples, functions for ClosureHook,
 * and what a checkpoint says of them.
 */
#include "config.h"

#include "tests/cli/program.h"
#include "tests/plugins/build.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static char *tmp; /* the current folder; has shapes/, my_hook/ and tiny.yaml */

static void
succeed (const char *command)
{
  int code;
  g_autofree char *out = run_shell (&code, "%s", command);
  if (code != 0)
    g_error ("%s: %s", command, out);
}

/* Trains tiny.yaml with @lines added, and gives the messages; @code is the exit status. (transfer full) */
static char *
train (const char *lines, const char *options, int code)
{
  g_autofree char *text = g_strconcat ("_base_: tiny.yaml\n", lines, NULL);
  int found;

  write_text (".", "run.yaml", text);
  char *out = run_shell (&found, "runner train run.yaml --threads 1 %s", options);
  if (found != code)
    g_error ("exit status %d: %s", found, out);
  return out;
}

static void
assert_lacks (const char *text, const char *words)
{
  if (strstr (text, words) != NULL)
    g_error ("\"%s\" in: %s", words, text);
}

static void
set_up (void)
{
  succeed ("runner synth shapes --train 4 --val 2 --test 2");
  succeed ("runner new-hook my_hook");
  write_text (".", "tiny.yaml",
              "_base_: my_hook/check.yaml\n"
              "data_root: shapes/\n"
              "plugins: []\n"
              "custom_hooks: []\n"
              "checkpoint_config: null\n"
              "log_config: {interval: 1}\n"
              "data:\n"
              "  val:\n"
              "    type: VOCDataset\n"
              "    ann_file: ImageSets/Main/val.txt\n"
              "    img_prefix: .\n"
              "    pipeline:\n"
              "      - {type: LoadImageFromFile}\n"
              "      - type: MultiScaleFlipAug\n"
              "        img_scale: [96, 64]\n"
              "        flip: false\n"
              "        transforms:\n"
              "          - {type: Resize, keep_ratio: true}\n"
              "          - \"${x_norm}\"\n"
              "          - {type: Pad, size_divisor: 32}\n"
              "          - {type: ImageToTensor, keys: [img]}\n"
              "          - {type: Collect, keys: [img]}\n");
}

/* ---- new-hook ---- */

/* From the first command to a line of one's own hook: three, and nothing written. */
static void
test_three_commands (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_autofree char *train_command = g_strdup_printf (
      "runner train '%s' --work-dir three --threads 1 --set data_root=shapes/ x_size=[96,64] evaluation=null "
      "'runner={type: IterBasedRunner, max_iters: 2}' 'plugins=[./three_hook]' "
      "'custom_hooks+={type: ThreeHook, every: 2}'",
      config);
  int code;

  succeed ("runner new-hook three_hook");
  succeed ("make -C three_hook");
  g_autofree char *out = run_shell (&code, "%s", train_command);
  g_assert_cmpint (code, ==, 0);
  assert_contains (out, "ThreeHook: line 1, iteration 2, loss ");
  assert_contains (out, "NumClassCheckHook"); /* += keeps what was there */
}

/* The test that comes with it, which also stops and resumes. */
static void
test_own_check (void)
{
  int code;
  g_autofree char *out = run_shell (&code, "make -C my_hook check");
  if (code != 0)
    g_error ("%s", out);
  assert_contains (out, "ok: MyHook: line 3, iteration 6");
  /* It fails where the hook does not do what the test expects. */
  g_autofree char *broken = run_shell (&code, "sed -i 's/self->n_lines++/self->n_lines--/' my_hook/my_hook.c "
                                              "&& make -C my_hook check");
  g_assert_cmpint (code, !=, 0);
  assert_contains (broken, "FAIL: the log has no");
  succeed ("sed -i 's/self->n_lines--/self->n_lines++/' my_hook/my_hook.c && make -C my_hook");
}

static void
test_names (void)
{
  static const struct
  {
    const char *word, *file, *type;
  } cases[] = {
    { "MyLRPrinter", "my_lr_printer", "MyLRPrinterHook" },
    { "say-hello", "say_hello", "SayHelloHook" },
    { "double", "double", "DoubleHook" },
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *file = g_strdup_printf ("names/%s.c", cases[i].file),
                      *words = g_strdup_printf (".name = \"%s\"", cases[i].type), *text = NULL;
      g_auto (Result) result = run_program ("new-hook", cases[i].word, "names", NULL);
      g_assert_cmpint (result.code, ==, 0);
      g_assert_true (g_file_get_contents (file, &text, NULL, NULL));
      assert_contains (text, words);
      succeed ("make -C names");
      remove_tree ("names");
    }
  g_auto (Result) bad = run_program ("new-hook", "9lives", NULL);
  g_assert_cmpint (bad.code, ==, 2);
  assert_contains (bad.err, "cannot be the name of a hook");
  g_auto (Result) taken = run_program ("new-hook", "num_class_check", NULL);
  g_assert_cmpint (taken.code, ==, 2);
  assert_contains (taken.err, "there is a hook named NumClassCheckHook already");
  g_auto (Result) full = run_program ("new-hook", "other", "my_hook", NULL);
  g_assert_cmpint (full.code, ==, 2);
  assert_contains (full.err, "my_hook is not empty");
}

/* ---- Examples ---- */

static void
build_example (const char *name)
{
  g_autofree char *from = g_test_build_filename (G_TEST_DIST, "examples", name, NULL),
                  *make = g_strdup_printf (
                      "make -C %s CFLAGS='-O -Wall -Wextra -Wno-unused-parameter -Werror'", name);
  copy_files (from, name);
  succeed (make);
}

static void
test_print_lr (void)
{
  build_example ("print-lr");
  g_autofree char *out = train ("plugins: [print-lr/print_lr.so]\n"
                                "custom_hooks: [{type: PrintLrHook, interval: 2}]\n",
                                "--work-dir print", 0);
  assert_contains (out, "iteration 2: learning rate 0.001, momentum 0.9\n");
  assert_contains (out, "iteration 4: learning rate 0.001, momentum 0.9\n");
  assert_lacks (out, "iteration 3: learning rate");

  /* The configuration in the work dir names the file wherever it is read. */
  int code;
  g_autofree char *again = run_shell (&code, "cd / && runner config '%s/print/config.yaml'", tmp);
  g_assert_cmpint (code, ==, 0);
  g_autofree char *so = g_strdup_printf ("%s/print-lr/print_lr.so", tmp);
  assert_contains (again, so);
  assert_contains (again, "PrintLrHook");
}

/* With a rate of zero the loss of an epoch stays as it is: the second window is the first without progress.
 */
static void
test_loss_plateau (void)
{
  static const char *const lines = "plugins: [loss-plateau/loss_plateau.so]\n"
                                   "custom_hooks: [{type: LossPlateauHook, window: 2, patience: 2}]\n"
                                   "checkpoint_config: {interval: 1, by_epoch: false}\n"
                                   "optimizer: {lr: 0}\n";

  build_example ("loss-plateau");
  g_autofree char *out = train (lines, "--work-dir plateau --set runner.max_iters=20", 0);
  assert_contains (out, "2 windows ago: the run ends\n");
  assert_contains (out, "Iter [6/20]");
  assert_lacks (out, "Iter [7/20]");
  /* Stopped in the middle of a window and resumed, it ends at the same iteration. */
  g_autofree char *first = train (lines, "--work-dir plateau2 --set runner.max_iters=3", 0);
  assert_lacks (first, "the run ends");
  g_autofree char *second = train (lines, "--work-dir plateau2 --resume --set runner.max_iters=20", 0);
  assert_contains (second, "2 windows ago: the run ends\n");
  assert_contains (second, "Iter [6/20]");
  assert_lacks (second, "Iter [7/20]");
}

static void
test_draw_detections (void)
{
  g_autofree char *picture = NULL;
  gsize length;

  build_example ("draw-detections");
  g_autofree char *out = train ("plugins: [draw-detections/draw_detections.so]\n"
                                "custom_hooks: [{type: DrawDetectionsHook, image: 1, score_thr: 0.001}]\n"
                                "evaluation: {interval: 100}\n",
                                "--work-dir drawn", 0);
  assert_contains (out, "drawn: drawn/drawn/epoch_1.png\n");
  assert_contains (out, "drawn: drawn/drawn/epoch_2.png\n");
  g_assert_true (g_file_get_contents ("drawn/drawn/epoch_2.png", &picture, &length, NULL));
  g_assert_cmpmem (picture, 8, "\x89PNG\r\n\x1a\n", 8);

  /* The picture that an evaluation with the same weights draws of this image, and of no other. The threshold
   * of evaluations lets nothing through that was hardly trained, but a lower one does. */
  g_autofree char *same = train ("plugins: [draw-detections/draw_detections.so]\n"
                                 "custom_hooks: [{type: DrawDetectionsHook, image: 1}]\n"
                                 "evaluation: {interval: 1, by_epoch: true, draw: 2}\n",
                                 "--work-dir same", 0);
  assert_contains (same, "drawn: same/drawn/epoch_2.png\n");
  succeed ("cmp same/drawn/epoch_2.png same/vis/epoch_2/$(sed -n 2p shapes/ImageSets/Main/val.txt).png");
  succeed ("! cmp same/drawn/epoch_2.png same/vis/epoch_2/$(sed -n 1p shapes/ImageSets/Main/val.txt).png");
  succeed ("! cmp same/drawn/epoch_2.png drawn/drawn/epoch_2.png");

  g_autofree char *beyond = train ("plugins: [draw-detections/draw_detections.so]\n"
                                   "custom_hooks: [{type: DrawDetectionsHook, image: 2}]\n"
                                   "evaluation: {interval: 100}\n",
                                   "--work-dir drawn", 2);
  assert_contains (beyond,
                   "DrawDetectionsHook: after_train_epoch: there is no image 2; the validation set has 2");
  g_autofree char *none = train ("plugins: [draw-detections/draw_detections.so]\n"
                                 "custom_hooks: [{type: DrawDetectionsHook}]\n",
                                 "--work-dir drawn", 1);
  assert_contains (none, "DrawDetectionsHook: after_train_epoch: there is no validation set");
}

/* Their files for a configuration say what they should. */
static void
test_example_configs (void)
{
  static const char *const names[] = { "print-lr", "loss-plateau", "draw-detections" };
  g_autofree char *configs = g_test_build_filename (G_TEST_DIST, "configs", NULL);
  g_autofree char *whole = g_canonicalize_filename (configs, NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree char *path = g_build_filename (names[i], "config.yaml", NULL), *text = NULL;
      g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
      g_autoptr (GString) moved = g_string_new (text);
      g_assert_cmpuint (g_string_replace (moved, "../../configs", whole, 0), ==, 1);
      write_text (names[i], "config.yaml", moved->str);
      g_auto (Result) result = run_program ("config", path, NULL);
      if (result.code != 0)
        g_error ("%s", result.err);
      assert_contains (result.out, "NumClassCheckHook");
    }
}

/* ---- Functions ---- */

static void
test_closure (void)
{
  static const struct
  {
    const char *hook, *words;
  } refused[] = {
    { "fn: hello", "run.yaml:3:16: custom_hooks.0: needs one of the keys stage and fn_name" },
    { "fn: hello, stage: after_run, fn_name: after_run", "needs one of the keys stage and fn_name" },
    { "fn: hello, stage: after_rn", "custom_hooks.0.stage: no stage \"after_rn\"; there are: before_run, " },
    { "fn: helo, stage: after_run",
      "custom_hooks.0.fn: no plugin of `plugins:` has RN_CLOSURE_DEFINE (helo)" },
    { "fn: printf, stage: after_run", "has RN_CLOSURE_DEFINE (printf)" },
    { "stage: after_run", "fn" },
  };
  g_autofree char *so =
      build_text (".", "functions",
                  "#include <runner/hook.h>\n"
                  "RN_CLOSURE_DEFINE (hello) (RnRunner *runner, GError **error)\n"
                  "{ g_message (\"hello at iteration %d\", (int) rn_runner_iter (runner)); return TRUE; }\n"
                  "RN_CLOSURE_DEFINE (fail) (RnRunner *runner, GError **error)\n"
                  "{ return rn_hook_error (error, \"as %s\", \"asked\"); }\n"
                  "RN_PLUGIN_HOOKS (NULL);\n");

  g_autofree char *out = train ("plugins: [./functions.so]\n"
                                "custom_hooks:\n"
                                "  - {type: ClosureHook, stage: before_train_epoch, fn: hello}\n"
                                "  - {type: ClosureHook, fn_name: after_run, fn: hello}\n",
                                "--work-dir closure", 0);
  assert_contains (out, "functions.so: functions for ClosureHook\n");
  assert_contains (out, "\n  before_train_epoch ClosureHook (50)");
  assert_contains (out, "\n  after_run          ClosureHook (50)");
  assert_lacks (out, "after_train_iter   OptimizerHook (40), ClosureHook");
  assert_contains (out, "hello at iteration 0\n");
  assert_contains (out, "hello at iteration 2\n");
  assert_contains (out, "hello at iteration 4\n");
  assert_lacks (out, "hello at iteration 1\n");

  /* MMCV's names of a stage of training and of validation. */
  g_autofree char *generic = train ("plugins: [./functions.so]\n"
                                    "custom_hooks: [{type: ClosureHook, fn_name: after_epoch, fn: hello}]\n",
                                    "--work-dir closure", 0);
  assert_contains (generic, "\n  after_train_epoch  ClosureHook (50)");
  assert_contains (generic, "\n  after_val_epoch    ClosureHook (50)");
  assert_lacks (generic, "before_val_epoch   ClosureHook");
  assert_lacks (generic, "after_train_iter   OptimizerHook (40), ClosureHook");
  assert_contains (generic, "hello at iteration 2\n");

  g_autofree char *failed =
      train ("plugins: [./functions.so]\n"
             "custom_hooks: [{type: ClosureHook, stage: before_train_iter, fn: fail}]\n",
             "--work-dir closure", 1);
  assert_contains (failed, "ClosureHook: before_train_iter: as asked");
  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++)
    {
      g_autofree char *lines = g_strdup_printf (
          "plugins: [./functions.so]\ncustom_hooks: [{type: ClosureHook, %s}]\n", refused[i].hook);
      g_autofree char *message = train (lines, "--work-dir closure", 2);
      assert_contains (message, refused[i].words);
    }
}

/* ---- All that a hook may read and change: every-function.c checks it itself ---- */

static void
test_every_function (void)
{
  g_autofree char *source = g_test_build_filename (G_TEST_DIST, "tests", "plugins", "every-function.c", NULL);
  g_autofree char *json = NULL;
  int code;

  build_plugin (source, "every.so", "");
  g_autofree char *out = train ("plugins: [./every.so]\n"
                                "custom_hooks:\n"
                                "  - {type: EarlyHook, node: {numbers: [1, 2.5], text: hello, no: false}}\n"
                                "  - {type: LateHook}\n"
                                "optimizer: {weight_decay: 0}\n"
                                "evaluation: {interval: 1, by_epoch: true}\n",
                                "--work-dir every --set runner.max_iters=20", 0);
  assert_contains (out, "every function: {\"i\": 7, \"f\": 0.5, \"s\": \"text\", \"l\": [1.0, 2.0, 3.0]}\n");
  assert_contains (out, "Iter [2/20]\tlr: 2.000e-03");
  assert_contains (out, "mine: 0.25");
  assert_lacks (out, "Iter [3/20]"); /* rn_runner_stop */
  json = run_shell (&code, "cat every/*.log.json");
  assert_contains (json, "\"momentum\": 0.5");
  assert_contains (json, "\"plugins\": \"EarlyHook\\t");
  g_assert_true (g_file_test ("every/kept.safetensors", G_FILE_TEST_IS_REGULAR));
  g_assert_true (g_file_test ("every/late.png", G_FILE_TEST_IS_REGULAR));
}

/* ---- Checkpoints ---- */

#define VERSIONED(version)               \
  "#include <runner/hook.h>\n"           \
  "typedef struct { RnHook hook; } V;\n" \
  "RN_HOOK_DEFINE (v, V, .name = \"VersionHook\", .version = \"" version "\", .summary = \"for tests\");\n"

static void
test_resume (void)
{
  static const char *const lines = "plugins: [./version.so]\n"
                                   "custom_hooks: [{type: VersionHook}]\n"
                                   "checkpoint_config: {interval: 1, by_epoch: false}\n";
  g_autofree char *so = build_text (".", "version", VERSIONED ("1.0"));

  g_autofree char *first = train (lines, "--work-dir resumed --set runner.max_iters=1", 0);
  g_autofree char *same = train (lines, "--work-dir resumed --resume --set runner.max_iters=2", 0);
  assert_lacks (same, "plugin VersionHook");
  g_autofree char *newer = build_text (".", "version", VERSIONED ("1.1"));
  g_autofree char *other = train (lines, "--work-dir resumed --resume --set runner.max_iters=3", 0);
  assert_contains (other,
                   "warning: resume: the plugin VersionHook was version \"1.0\" in the checkpoint and is "
                   "\"1.1\" now\n");
  g_autofree char *changed = build_text (".", "version", VERSIONED ("1.1") "int unused = 1;\n");
  g_autofree char *file = train (lines, "--work-dir resumed --resume --set runner.max_iters=4", 0);
  assert_contains (file, "the plugin VersionHook is the same version, but another file");
  g_autofree char *none = train ("", "--work-dir resumed --resume --set runner.max_iters=5", 0);
  assert_contains (none, "the checkpoint was made with the plugin VersionHook (");
  assert_contains (none, "version.so), which is not loaded now\n");
  g_autofree char *saved = train ("checkpoint_config: {interval: 1, by_epoch: false}\n",
                                  "--work-dir resumed2 --set runner.max_iters=1", 0);
  g_autofree char *added = train (lines, "--work-dir resumed2 --resume --set runner.max_iters=2", 0);
  assert_contains (added, "was not loaded when the checkpoint was made\n");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  build_init ();
  tmp = g_dir_make_tmp ("rn-hooks-XXXXXX", NULL);
  g_assert_cmpint (chdir (tmp), ==, 0);
  set_up ();
  g_test_add_func ("/hooks/three-commands", test_three_commands);
  g_test_add_func ("/hooks/own-check", test_own_check);
  g_test_add_func ("/hooks/names", test_names);
  g_test_add_func ("/hooks/print-lr", test_print_lr);
  g_test_add_func ("/hooks/loss-plateau", test_loss_plateau);
  g_test_add_func ("/hooks/draw-detections", test_draw_detections);
  g_test_add_func ("/hooks/example-configs", test_example_configs);
  g_test_add_func ("/hooks/closure", test_closure);
  g_test_add_func ("/hooks/every-function", test_every_function);
  g_test_add_func ("/hooks/resume", test_resume);
  int status = g_test_run ();
  g_assert_cmpint (chdir ("/"), ==, 0);
  remove_tree (tmp);
  g_free (tmp);
  return status;
}
