/*
 * test-command-line.c: the program itself with `--device cuda`, on the simulated device as a module: a
 * training, what it says when the device fails in the middle of one, the memory that plans go by, detections.
 */
#include "config.h"

#include "runner/checkpoint-list.h"
#include "tests/cli/program.h"
#include "tests/small-model.h"

#include <string.h>

#define T4_BYTES (15.0 * (1 << 30)) /* that the simulated T4 has */
#define SMALL "x_size=[96, 64]", SMALL_MODEL, "deterministic=true"
/* Calls of the runtime from one failure to the next: a training of three iterations makes some 6000. */
#define FAILURE_STEP 1300

static char *top, *data_root, *config;

static char *
in_top (const char *name)
{
  return g_build_filename (top, name, NULL);
}

static Result
train (const char *work_dir, const char *more)
{
  return run_program ("train", config, "--device", "cuda", "--work-dir", work_dir, "--threads", "1", "--set",
                      data_root, SMALL, "data.samples_per_gpu=2", "data.workers_per_gpu=1", "evaluation=null",
                      "log_config.interval=1", "checkpoint_config={interval: 1, by_epoch: false}",
                      "runner={type: IterBasedRunner, max_iters: 3}", more, NULL);
}

static void
test_devices (void)
{
  g_auto (Result) result = run_program ("devices", NULL);

  g_assert_cmpint (result.code, ==, 0);
  assert_contains (result.out, "cuda:0   Tesla T4");
}

static void
test_train (void)
{
  g_autofree char *work_dir = in_top ("straight"), *last = in_top ("straight/iter_3.safetensors");
  g_auto (Result) result = train (work_dir, NULL);

  if (result.code != 0)
    g_error ("%s", result.err);
  assert_contains (result.err, "device: Tesla T4 (sm_75)");
  assert_contains (result.err, "planned on the device");
  g_assert_true (g_file_test (last, G_FILE_TEST_IS_REGULAR));

  g_autofree char *image_dir = in_top ("data/JPEGImages");
  g_autofree char *found = in_top ("found");
  g_auto (Result) infer = run_program ("infer", config, last, image_dir, "--device", "cuda", "--json", "-",
                                       "--out", found, "--set", data_root, SMALL, NULL);
  g_auto (Result) on_cpu = run_program ("infer", config, last, image_dir, "--threads", "1", "--json", "-",
                                        "--out", found, "--set", data_root, SMALL, NULL);
  if (infer.code != 0)
    g_error ("%s", infer.err);
  g_assert_cmpint (on_cpu.code, ==, 0);
  g_auto (GStrv) lines = g_strsplit (infer.out, "\n", -1), cpu_lines = g_strsplit (on_cpu.out, "\n", -1);
  g_assert_cmpuint (g_strv_length (lines), >, 2);
  g_assert_cmpuint (g_strv_length (lines), ==, g_strv_length (cpu_lines));
}

/* One line that names the newest checkpoint, which a run goes on from. */
static void
test_failure (void)
{
  guint n_named = 0;

  for (guint n = FAILURE_STEP;; n += FAILURE_STEP)
    {
      g_autofree char *work_dir = g_strdup_printf ("%s/fails-%u", top, n);
      g_autofree char *plan = g_strdup_printf ("%u:700", n);
      g_setenv ("RN_SIM_FAIL", plan, TRUE);
      g_auto (Result) result = train (work_dir, NULL);
      g_unsetenv ("RN_SIM_FAIL");
      if (result.code == 0)
        break;
      g_assert_cmpint (result.code, ==, 1);
      const char *line = strstr (result.err, "runner train: ");
      g_assert_nonnull (line);
      g_assert_cmpstr (strchr (line, '\n'), ==, "\n");
      assert_contains (line, "cudaErrorIllegalAddress (700)");

      g_autoptr (GPtrArray) list = rn_checkpoint_list_read (work_dir, NULL);
      g_assert_true ((list->len > 0) == (strstr (line, "the last checkpoint is") != NULL));
      if (list->len == 0)
        continue;
      g_autofree char *path = rn_checkpoint_list_path (work_dir, g_ptr_array_index (list, 0));
      assert_contains (line, path);
      if (n_named++ > 0)
        continue;
      g_auto (Result) resumed = train (work_dir, "--resume");
      if (resumed.code != 0)
        g_error ("%s", resumed.err);
    }
  g_assert_cmpuint (n_named, >, 0);
}

/* Loaders are in memory of the host, which may be short of it whatever the device has. */
static void
test_host_memory (void)
{
  g_autofree char *work_dir = in_top ("host");

  g_setenv ("RN_FREE_MEMORY", "64KiB", TRUE);
  g_auto (Result) result = train (work_dir, NULL);
  g_unsetenv ("RN_FREE_MEMORY");
  g_assert_cmpint (result.code, ==, 3);
  assert_contains (result.err, "64.0 KiB are available; what needs less: a smaller data.prefetch");
}

/* The memory of the device that is there, not that of the process. */
static void
test_plan (void)
{
  g_auto (Result) result =
      run_program ("plan", config, "--shape", "64x96", "--device", "cuda", "--budget", "auto", "--json",
                   "--set", "classes=[circle, square, triangle]", SMALL, NULL);
  g_autoptr (JsonParser) parser = parse_json (&result);
  JsonObject *budget = json_object_get_object_member (json_object_of (parser), "budget");

  g_assert_cmpint (json_object_get_int_member (budget, "budget_bytes"), ==, (gint64) (0.9 * T4_BYTES));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_autoptr (GError) error = NULL;
  g_autofree char *module =
      g_test_build_filename (G_TEST_BUILT, "tests", "gpu", ".libs", "runner-cuda-sim.so", NULL);

  g_setenv ("RN_CUDA_MODULE", module, TRUE);
  g_setenv ("RN_SIM_DEVICE", "t4", TRUE);
  top = g_dir_make_tmp ("rn-command-line-XXXXXX", &error);
  g_assert_no_error (error);
  g_setenv ("XDG_CACHE_HOME", top, TRUE);
  config = config_file ("retinanet_shapes.yaml");
  g_autofree char *data = in_top ("data");
  data_root = g_strconcat ("data_root=", data, NULL);
  g_auto (Result) synth = run_program ("synth", data, "--train", "4", "--val", "2", "--test", "2", "--width",
                                       "96", "--height", "64", NULL);
  g_assert_cmpint (synth.code, ==, 0);
  g_test_add_func ("/command-line/devices", test_devices);
  g_test_add_func ("/command-line/train", test_train);
  g_test_add_func ("/command-line/failure", test_failure);
  g_test_add_func ("/command-line/host-memory", test_host_memory);
  g_test_add_func ("/command-line/plan", test_plan);
  int status = g_test_run ();
  remove_tree (top);
  g_free (top);
  g_free (data_root);
  g_free (config);
  return status;
}
