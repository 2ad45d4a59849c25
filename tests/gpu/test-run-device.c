/*
 * test-run-device.c: what a run makes of `device: cuda`, on the simulated device: what the configuration asks
 * of it and it has not; engines that were chosen by time are kept with the run; memory is that of the device.
 */
#include "config.h"

#include "kernels/cuda-module.h"
#include "kernels/cuda/plan-store.h"
#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/infer.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <cudnn_graph.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

#define SAVE_EACH "checkpoint_config={interval: 1, by_epoch: false}"
#define TF32 "device={type: cuda, tf32: true}"

/* ---- the version of cuDNN: the linker puts this in the place of the library's ---- */

size_t __wrap_cudnnGetVersion (void);

static gsize cudnn_version = CUDNN_VERSION;

size_t
__wrap_cudnnGetVersion (void)
{
  return cudnn_version;
}

/* ---- a work dir, the machine's cache, and what was logged ---- */

static char *cache_home, *cache_file; /* the folder is emptied for each test */
static GString *messages;

static void
keep_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
  g_string_append_printf (messages, "%s\n", message);
}

static guint
count_messages (const char *part)
{
  guint n = 0;

  for (const char *at = strstr (messages->str, part); at != NULL; at = strstr (at + 1, part))
    n++;
  return n;
}

typedef struct
{
  char *dir, *plans;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_assert_no_error (error);
  f->plans = g_build_filename (f->dir, "cudnn-plans.json", NULL);
  g_string_truncate (messages, 0);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_autofree char *folder = g_path_get_dirname (cache_file);

  if (g_file_test (folder, G_FILE_TEST_EXISTS))
    remove_tree (folder);
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->plans);
  cudnn_version = CUDNN_VERSION;
}

static gboolean
is_file (const char *path)
{
  return g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

/* The device is that of the configuration, not one that the test opens. */
static Run
run_with (SimConfig sim, const char *device)
{
  return (Run){ .on_cpu = TRUE, .sim = sim, .strategy = -1, .more = { SAVE_EACH, device } };
}

/* Up to @n_iters, from the last checkpoint in @dir or from the beginning. */
static void
train (Run run, const char *dir, int n_iters, gboolean is_resumed, Outcome *outcome)
{
  g_autoptr (GError) error = NULL;

  sim_reset (&run.sim);
  sim_cudnn_forget ();
  run.n_iters = n_iters;
  g_autoptr (RnTraining) training = open_run (&run, dir);
  if (is_resumed)
    rn_runner_resume (training->runner, NULL, &error);
  g_assert_no_error (error);
  watched = outcome;
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
  g_assert_cmpint (rn_runner_iter (training->runner), ==, n_iters);
  g_clear_pointer (&outcome->params, g_array_unref);
  outcome->params = read_params (training->runner);
}

/* Nothing is compared with the generic engine where nothing is measured. */
static gboolean
has_measured (void)
{
  return sim_cudnn_n_executions (SIM_ENGINE_GENERIC) > 0;
}

/* ---- engines ---- */

static const char *
member (JsonParser *line, const char *name)
{
  return json_object_get_string_member (json_node_get_object (json_parser_get_root (line)), name);
}

/* In place of engine @from the file has @to. */
static void
change_engines (const char *path, int from, int to)
{
  g_autofree char *text = NULL, *old = g_strdup_printf ("\"engineId\":%d,", from);
  g_autofree char *new = g_strdup_printf ("\"engineId\":%d,", to);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnPlanStore) store = rn_plan_store_open (path);

  g_file_get_contents (path, &text, NULL, &error);
  g_assert_no_error (error);
  g_auto (GStrv) lines = g_strsplit (g_strchomp (text), "\n", -1);
  for (char **at = lines; *at != NULL; at++)
    {
      g_autoptr (JsonParser) line = json_parser_new ();
      json_parser_load_from_data (line, *at, -1, &error);
      g_assert_no_error (error);
      RnStoredPlan plan = *rn_plan_store_find (store, member (line, "problem"), member (line, "machine"));
      g_autoptr (GString) json = g_string_new (plan.plan);
      g_assert_cmpuint (g_string_replace (json, old, new, 0), ==, 1);
      plan.plan = json->str;
      rn_plan_store_put (store, &plan);
    }
  rn_plan_store_save (store, FALSE, &error);
  g_assert_no_error (error);
}

/*
 * A resumed run has the engines that it had, whatever the machine has by then; and so it has the bits of a
 * run that was not interrupted. What is fastest in the simulation has no bits that come again, so the machine
 * is made to know another choice.
 */
static void
test_resumed (Fixture *f, gconstpointer data)
{
  const Run run = run_with (t4, "device=cuda");
  char *dirs[4], *plans;
  g_auto (Outcome) first = { 0 }, straight = { 0 }, resumed = { 0 }, other = { 0 };

  for (guint i = 0; i < G_N_ELEMENTS (dirs); i++)
    {
      dirs[i] = g_strdup_printf ("%s/%u", f->dir, i);
      g_mkdir (dirs[i], 0777);
    }
  train (run, dirs[0], 1, FALSE, &first);
  g_assert_true (has_measured ());
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_RANDOM_ORDER), >, 0);
  change_engines (cache_file, SIM_ENGINE_RANDOM_ORDER, SIM_ENGINE_NORMAL);

  /* Other runs on the machine measure nothing, and keep what they took. */
  train (run, dirs[1], 3, FALSE, &straight);
  g_assert_false (has_measured ());
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_NORMAL), >, 0);
  train (run, dirs[2], 2, FALSE, &resumed);
  plans = g_build_filename (dirs[2], "cudnn-plans.json", NULL);
  g_assert_true (is_file (plans));
  change_engines (cache_file, SIM_ENGINE_NORMAL, SIM_ENGINE_TENSOR_CORE);
  train (run, dirs[2], 3, TRUE, &resumed);
  g_assert_false (has_measured ());
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_NORMAL), >, 0);
  assert_same (&resumed, &straight);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 0);

  /* Without choices of its own a run has the machine's, and bits that are not the same. */
  train (run, dirs[3], 3, FALSE, &other);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_TENSOR_CORE), >, 0);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_NORMAL), ==, 0);
  g_assert_cmpint (memcmp (other.params->data, straight.params->data, straight.params->len * sizeof (float)),
                   !=, 0);
  for (guint i = 0; i < G_N_ELEMENTS (dirs); i++)
    g_free (dirs[i]);
  g_free (plans);
}

/* Choices that cannot be taken are made again, with one warning, and the run goes on. */
static void
test_lost_choices (Fixture *f, gconstpointer data)
{
  static const SimConfig h200 = { .model = "h200", .n_devices = 1, .driver_version = CUDART_VERSION };
  g_autofree char *text = NULL;
  g_auto (Outcome) outcome = { 0 };

  train (run_with (a100, TF32), f->dir, 1, FALSE, &outcome);

  cudnn_version = CUDNN_VERSION + 100;
  train (run_with (a100, TF32), f->dir, 2, TRUE, &outcome);
  g_assert_true (has_measured ());
  g_assert_cmpuint (count_messages ("with another version of cuDNN or on another device"), ==, 1);

  cudnn_version = CUDNN_VERSION;
  train (run_with (h200, TF32), f->dir, 3, TRUE, &outcome);
  g_assert_true (has_measured ());
  g_assert_cmpuint (count_messages ("with another version of cuDNN or on another device"), ==, 2);

  g_assert_true (g_file_get_contents (f->plans, &text, NULL, NULL));
  char *plan = g_strrstr (text, "cudnnVersion"); /* the last was made last */
  g_assert_nonnull (plan);
  *plan = 'C';
  g_assert_true (g_file_set_contents (f->plans, text, -1, NULL));
  train (run_with (h200, TF32), f->dir, 4, TRUE, &outcome);
  g_assert_true (is_file (f->plans));
  g_assert_cmpuint (count_messages ("lines are damaged: the engines of convolutions in it are chosen again"),
                    ==, 1);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 3);

  /* What was lost is there again. */
  train (run_with (h200, TF32), f->dir, 5, TRUE, &outcome);
  g_assert_false (has_measured ());
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 3);
}

static void
test_deterministic (Fixture *f, gconstpointer data)
{
  Run run = run_with (a100, TF32);
  g_auto (Outcome) first = { 0 }, second = { 0 };

  run.more[2] = "deterministic=true";
  sim_reset (&run.sim);
  sim_cudnn_forget ();
  run.n_iters = 1;
  RnTraining *training = open_run (&run, f->dir);
  for (int64_t engine = SIM_ENGINE_GENERIC; engine <= SIM_ENGINE_NAN; engine++)
    g_assert_cmpuint (sim_cudnn_n_executions (engine), ==, 0);
  rn_training_free (training);

  train (run, f->dir, 2, FALSE, &first);
  train (run, f->dir, 2, FALSE, &second);
  assert_same (&first, &second);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_RANDOM_ORDER), ==, 0);
  g_assert_false (is_file (f->plans));
  g_assert_false (is_file (cache_file));
}

/* ---- what the device has not ---- */

static RnJob *
try_job (const Run *run, const char *dir, GError **error)
{
  g_autoptr (GPtrArray) changes = changes_of (run);

  sim_reset (&run->sim);
  return small_detector_job (training_data (), dir, (const char *const *) changes->pdata, error);
}

static RnTraining *
try_training (const Run *run, const char *dir, GError **error)
{
  RnJob *job = try_job (run, dir, error);
  return job != NULL ? rn_training_new (job, NULL, TRUE, error) : NULL;
}

static void
assert_error (const GError *error, GQuark domain, int code, const char *part)
{
  g_assert_error (error, domain, code);
  g_assert_null (strchr (error->message, '\n'));
  if (strstr (error->message, part) == NULL)
    g_error ("no \"%s\" in: %s", part, error->message);
}

static void
test_bf16 (Fixture *f, gconstpointer data)
{
  Run run = run_with (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.more[2] = "fp16.dtype=bf16";
  run.n_iters = 1;
  g_assert_null (try_training (&run, f->dir, &error));
  assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE,
                "bf16 needs compute capability 8.0, and Tesla T4 has 7.5; what works: dtype: fp16");
  g_assert_true (g_str_has_prefix (error->message, "--set fp16.dtype: "));
  g_clear_error (&error);
  g_assert_cmpuint (sim_n_live (), ==, 0);

  run.sim = a100;
  g_autoptr (RnTraining) training = try_training (&run, f->dir, &error);
  g_assert_no_error (error);
  g_assert_nonnull (training);
}

/* Said once where it helps, and not where it cannot. */
static void
test_tf32_hints (Fixture *f, gconstpointer data)
{
  static const char hint[] = "device_options: {tf32: true} lets them", no_effect[] = "tf32 has no effect";
  static const struct
  {
    const SimConfig *sim;
    const char *device, *more;
    guint n_hints, n_no_effects;
  } cases[] = {
    { &a100, "device=cuda", NULL, 1, 0 },
    { &a100, TF32, NULL, 0, 0 },
    { &a100, "device=cuda", "fp16={}", 0, 0 },
    { &t4, "device=cuda", NULL, 0, 0 },
    { &t4, TF32, NULL, 0, 1 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      Run run = run_with (*cases[i].sim, cases[i].device);
      g_autoptr (GError) error = NULL;
      run.more[2] = cases[i].more;
      run.n_iters = 1;
      g_string_truncate (messages, 0);
      RnJob *job = try_job (&run, f->dir, &error);
      g_assert_no_error (error);
      rn_job_free (job);
      g_assert_cmpuint (count_messages (hint), ==, cases[i].n_hints);
      g_assert_cmpuint (count_messages (no_effect), ==, cases[i].n_no_effects);
    }
}

/* ---- memory ---- */

static gsize
bytes_of (const Run *run, const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnTraining) training = try_training (run, dir, &error);

  g_assert_no_error (error);
  return rn_programs_memory (training->job->programs).total_bytes;
}

/* It did not fit, and the error has lines to paste. */
static void
assert_advice (const GError *error)
{
  assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, "--set ");
  g_assert_cmpint (rn_error_exit_code (error), ==, 3);
  g_assert_cmpuint (sim_n_live (), ==, 0);
}

/* What is free on the device counts, and what is free on the host does not. */
static void
test_memory (Fixture *f, gconstpointer data)
{
  Run run = run_with (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.more[2] = "deterministic=true";
  run.n_iters = 1;
  gsize bytes = bytes_of (&run, f->dir);
  g_autofree char *size = rn_size_format (bytes);
  g_autofree char *line = g_strdup_printf (": %s on the device; available: ", size);
  g_assert_cmpuint (count_messages (line), ==, 1);
  g_setenv ("RN_FREE_MEMORY", "1KiB", TRUE);
  run.sim.memory_bytes = bytes;
  g_assert_cmpuint (bytes_of (&run, f->dir), ==, bytes);
  run.sim.memory_bytes = bytes - 1;
  g_assert_null (try_training (&run, f->dir, &error));
  g_unsetenv ("RN_FREE_MEMORY");
  assert_advice (error);
  g_assert_nonnull (strstr (error->message, " are available; "));
}

/* One image on @run's device: bytes that are planned, or 0 with an error. */
static gsize
try_inference (const Run *run, const char *dir, GError **error)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *weights = g_build_filename (dir, "iter_1.safetensors", NULL);

  g_ptr_array_add (paths, g_build_filename (training_data (), "JPEGImages", "000001.jpg", NULL));
  g_autoptr (RnJob) job = try_job (run, dir, error);
  g_assert_nonnull (job);
  g_autoptr (RnInfer) infer = rn_infer_new (job, weights, FALSE, paths, error);
  return infer != NULL ? rn_programs_memory (job->programs).total_bytes : 0;
}

/* The same of inference, whose images are in memory of the host. */
static void
test_inference_memory (Fixture *f, gconstpointer data)
{
  Run run = run_with (t4, "device=cuda");
  g_auto (Outcome) outcome = { 0 };
  g_autoptr (GError) error = NULL;

  run.more[2] = "deterministic=true";
  train (run, f->dir, 1, FALSE, &outcome);
  run.n_iters = 1;
  gsize bytes = try_inference (&run, f->dir, &error);
  g_assert_no_error (error);
  g_autofree char *size = rn_size_format (bytes);
  g_autofree char *line = g_strdup_printf (": %s on the device; available: ", size);
  g_assert_cmpuint (count_messages (line), ==, 1);
  g_setenv ("RN_FREE_MEMORY", "1KiB", TRUE);
  run.sim.memory_bytes = bytes;
  g_assert_cmpuint (try_inference (&run, f->dir, &error), ==, bytes);
  run.sim.memory_bytes = bytes - 1;
  g_assert_cmpuint (try_inference (&run, f->dir, &error), ==, 0);
  g_unsetenv ("RN_FREE_MEMORY");
  assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY, " are available; the largest image is ");
  g_assert_cmpuint (sim_n_live (), ==, 0);
}

static void
test_budget (Fixture *f, gconstpointer data)
{
  Run run = run_with (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.n_iters = 1;
  run.more[0] = "deterministic=true";
  gsize bytes = bytes_of (&run, f->dir);
  run.more[2] = "memory.budget=auto";
  g_setenv ("RN_FREE_MEMORY", "1KiB", TRUE);
  /* Nine tenths of it are the budget. */
  g_assert_cmpuint (bytes_of (&run, f->dir), ==, bytes);
  run.sim.memory_bytes = bytes;
  g_assert_cmpuint (bytes_of (&run, f->dir), <=, bytes / 10 * 9 + 9);
  run.sim.memory_bytes = 64 << 10;
  g_assert_null (try_training (&run, f->dir, &error));
  g_unsetenv ("RN_FREE_MEMORY");
  assert_advice (error);
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;

  g_test_init (&argc, &argv, NULL);
  cache_home = g_dir_make_tmp ("rn-cache-XXXXXX", &error);
  g_assert_no_error (error);
  g_setenv ("XDG_CACHE_HOME", cache_home, TRUE);
  cache_file = g_build_filename (cache_home, "runner", "cudnn-plans.json", NULL);
  training_runs_begin ();
  messages = g_string_new (NULL);
  g_log_set_default_handler (keep_message, NULL);
  rn_cuda_module_use (rn_cuda_module ());
  ADD ("/run-device/engines/resumed", test_resumed);
  ADD ("/run-device/engines/lost", test_lost_choices);
  ADD ("/run-device/engines/deterministic", test_deterministic);
  ADD ("/run-device/generation/bf16", test_bf16);
  ADD ("/run-device/generation/tf32", test_tf32_hints);
  ADD ("/run-device/memory/fit", test_memory);
  ADD ("/run-device/memory/inference", test_inference_memory);
  ADD ("/run-device/memory/budget", test_budget);
  int status = g_test_run ();
  training_runs_end ();
  remove_tree (cache_home);
  g_string_free (messages, TRUE);
  g_free (cache_home);
  g_free (cache_file);
  return status;
}
