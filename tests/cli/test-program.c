/* The program as users run it: exit codes, where output goes, and the forms that options may take. */
#include "config.h"

#include "tests/cli/program.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

static void
test_help (void)
{
  g_auto (Result) help = run_program ("--help", NULL);
  g_assert_cmpint (help.code, ==, 0);
  assert_contains (help.out, "config ");
  g_auto (Result) version = run_program ("--version", NULL);
  g_assert_cmpint (version.code, ==, 0);
  assert_contains (version.out, "runner " PACKAGE_VERSION "\n");

  /* Every command that --help lists explains itself. */
  g_auto (GStrv) lines = g_strsplit (help.out, "\n", -1);
  gboolean in_list = FALSE;
  int n = 0;
  for (char **line = lines; *line != NULL; line++)
    {
      if (in_list && g_str_has_prefix (*line, "  "))
        {
          g_auto (GStrv) words = g_strsplit_set (*line + 2, " ,", 2);
          g_auto (Result) own = run_program (words[0], "--help", NULL);
          g_assert_cmpint (own.code, ==, 0);
          g_autofree char *usage = g_strdup_printf ("runner %s [OPTION", words[0]);
          assert_contains (own.out, usage);
          assert_contains (own.out, "Examples:\n  runner ");
          n++;
        }
      in_list = g_str_equal (*line, "Commands:") || (in_list && g_str_has_prefix (*line, "  "));
    }
  g_assert_cmpint (n, >=, 4);
}

static void
test_usage_errors (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) none = run_program (NULL, NULL);
  g_assert_cmpint (none.code, ==, 2);
  g_auto (Result) unknown = run_program ("confg", NULL);
  g_assert_cmpint (unknown.code, ==, 2);
  assert_contains (unknown.err, "did you mean \"config\"?");
  g_auto (Result) missing = run_program ("config", NULL);
  g_assert_cmpint (missing.code, ==, 2);
  assert_contains (missing.err, "CONFIG is missing");
  g_auto (Result) many = run_program ("config", config, "more", NULL);
  g_assert_cmpint (many.code, ==, 2);
  assert_contains (many.err, "\"more\" is one argument too many");
  g_auto (Result) option = run_program ("config", config, "--sett", "a=1", NULL);
  g_assert_cmpint (option.code, ==, 2);
  g_auto (Result) value = run_program ("config", config, "--set", NULL);
  g_assert_cmpint (value.code, ==, 2);
  g_auto (Result) file = run_program ("config", "no-such-file.yaml", NULL);
  g_assert_cmpint (file.code, ==, 2);
  assert_contains (file.err, "no-such-file.yaml");
  g_assert_cmpstr (file.out, ==, "");
}

static void
test_set (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  /* All of these say the same. */
  g_auto (Result) a = run_program ("config", "--plain", config, "--set", "seed=3", "optimizer.lr=0.5", NULL);
  g_assert_cmpint (a.code, ==, 0);
  assert_contains (a.out, "seed: 3");
  assert_contains (a.out, "lr: 0.5");
  g_auto (Result) b =
      run_program ("config", "--plain", "--cfg-options", "seed=3", "optimizer.lr=0.5", config, NULL);
  g_assert_cmpstr (a.out, ==, b.out);
  g_auto (Result) c =
      run_program ("config", "--plain", config, "--set=seed=3", "--set", "optimizer.lr=0.5", NULL);
  g_assert_cmpstr (a.out, ==, c.out);
  g_auto (Result) d =
      run_program ("config", "--plain", config, "--set", "optimizer.lr=0.5", "--seed", "3", NULL);
  g_assert_cmpstr (a.out, ==, d.out);

  g_auto (Result) removed =
      run_program ("config", "--plain", config, "--set", "seed=3", "~optimizer.weight_decay", NULL);
  g_assert_cmpint (removed.code, ==, 0);
  g_assert_null (strstr (removed.out, "weight_decay:"));
}

static void
test_origins (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) result = run_program ("config", config, "--set", "seed=3", "--threads", "2", NULL);
  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.out, "_base_/models/retinanet_r50_fpn.yaml:");
  assert_contains (result.out, "--set");
  assert_contains (result.out, "--threads");
  assert_contains (result.out, "work_dirs/retinanet_shapes");
}

static void
test_devices (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) cpu = run_program ("config", config, "--device", "cpu", NULL);
  g_assert_cmpint (cpu.code, ==, 0);
  g_auto (Result) cuda = run_program ("config", config, "--device", "cuda:1", NULL);
  g_assert_cmpint (cuda.code, ==, 0); /* it need not be there to be written down */
  assert_contains (cuda.out, "device: \"cuda:1\"");
  g_auto (Result) other = run_program ("config", config, "--device", "tpu", NULL);
  g_assert_cmpint (other.code, ==, 2);
  g_auto (Result) threads = run_program ("config", config, "--threads", "-1", NULL);
  g_assert_cmpint (threads.code, ==, 2);
  assert_contains (threads.err, "--threads");
}

/* What plan needs no data set for is checked all the same. */
static void
test_plan_errors (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) momentum =
      run_program ("plan", config, "--shape", "64x64", "--set", "optimizer.momentum=abc", NULL);
  g_assert_cmpint (momentum.code, ==, 2);
  assert_contains (momentum.err, "optimizer.momentum: needs a number");
  g_auto (Result) optimizer =
      run_program ("plan", config, "--shape", "64x64", "--set", "optimizer.momentun=0.9", NULL);
  g_assert_cmpint (optimizer.code, ==, 2);
  assert_contains (optimizer.err, "did you mean \"momentum\"?");
  g_auto (Result) batch = run_program ("plan", config, "--shape", "64x64", "--batch", "-3", NULL);
  g_assert_cmpint (batch.code, ==, 2);
  assert_contains (batch.err, "--batch");
  g_auto (Result) data = run_program ("plan", config, "--set", "data_root=no-such-folder", NULL);
  g_assert_cmpint (data.code, ==, 2);
  assert_contains (data.err, "--shape HxW needs no data set");
  g_assert_true (g_str_has_prefix (data.err, "runner plan: "));
  /* Where ann_file is, not the base that has the rest. */
  assert_contains (data.err, "retinanet_shapes.yaml:");
  g_assert_true (strstr (data.err, "retinanet_shapes.yaml:") < strstr (data.err, "no data set"));
  g_assert_true (strstr (data.err, "--shape") > strstr (data.err, "no data set"));
}

/* Zero and less are numbers too, not what is taken when nothing is given. */
static void
test_synth_errors (void)
{
  static const char *const options[] = { "--train=0", "--val=-1", "--test=-5", "--width=0", "--height=0" };
  g_autofree char *dir = g_dir_make_tmp ("rn-synth-XXXXXX", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (options); i++)
    {
      g_auto (Result) synth = run_program ("synth", dir, options[i], NULL);
      g_assert_cmpint (synth.code, ==, 2);
      assert_contains (synth.err, "a synthetic set has");
    }
  g_assert_cmpint (g_rmdir (dir), ==, 0); /* nothing was written */
}

/* Not by the kernel's killer of processes. */
static void
test_too_large (void)
{
  g_autofree char *config = config_file ("retinanet_shapes.yaml");
  g_auto (Result) bench = run_program ("bench", config, "--shape", "60000x60000", NULL);
  g_assert_cmpint (bench.code, ==, 3);
  assert_contains (bench.err, "are available");
}

static void
test_full_output (void)
{
  g_autofree char *program = g_test_build_filename (G_TEST_BUILT, "runner", "runner", NULL);
  g_autofree char *quoted = g_shell_quote (program);
  g_autofree char *script = g_strconcat ("exec ", quoted, " --version > /dev/full", NULL);
  const char *const argv[] = { "/bin/sh", "-c", script, NULL };
  g_autofree char *err = NULL;
  g_autoptr (GError) error = NULL;
  int status;

  if (!g_file_test ("/dev/full", G_FILE_TEST_EXISTS))
    {
      g_test_skip ("no /dev/full");
      return;
    }
  g_assert_true (
      g_spawn_sync (NULL, (char **) argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, &err, &status, &error));
  g_assert_no_error (error);
  g_assert_false (g_spawn_check_wait_status (status, &error));
  g_assert_error (error, G_SPAWN_EXIT_ERROR, 1);
  assert_contains (err, "could not be written");
}

static void
test_lists (void)
{
  g_auto (Result) hooks = run_program ("hooks", NULL);
  g_assert_cmpint (hooks.code, ==, 0);
  assert_contains (hooks.out, "CheckpointHook");
  g_assert_null (strstr (hooks.out, "ResNet"));
  assert_contains (hooks.out,
                   "  EMAHook                             running"); /* one column, whatever is longest */
  assert_contains (hooks.out, "  GradientCumulativeFp16OptimizerHook Fp16");
  g_auto (Result) hook = run_program ("hooks", "CheckpointHook", NULL);
  g_assert_cmpint (hook.code, ==, 0);
  assert_contains (hook.out, "max_keep_ckpts");
  g_auto (Result) typo = run_program ("hooks", "ChekpointHook", NULL);
  g_assert_cmpint (typo.code, ==, 2);
  assert_contains (typo.err, "did you mean \"CheckpointHook\"? (a hook of a plugin: ");
  g_auto (Result) model = run_program ("models", "ResNet", NULL);
  g_assert_cmpint (model.code, ==, 0);
  assert_contains (model.out, "frozen_stages");
  g_auto (Result) op = run_program ("ops", "conv2d_fwd", NULL);
  g_assert_cmpint (op.code, ==, 0);
  assert_contains (op.out, "kernel: ref:");
  g_auto (Result) no_op = run_program ("ops", "conv2d", NULL);
  g_assert_cmpint (no_op.code, ==, 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/program/help", test_help);
  g_test_add_func ("/program/usage-errors", test_usage_errors);
  g_test_add_func ("/program/set", test_set);
  g_test_add_func ("/program/origins", test_origins);
  g_test_add_func ("/program/devices", test_devices);
  g_test_add_func ("/program/plan-errors", test_plan_errors);
  g_test_add_func ("/program/synth-errors", test_synth_errors);
  g_test_add_func ("/program/too-large", test_too_large);
  g_test_add_func ("/program/full-output", test_full_output);
  g_test_add_func ("/program/lists", test_lists);
  return g_test_run ();
}
