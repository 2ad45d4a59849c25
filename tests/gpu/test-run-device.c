/*
 * test-run-device.c: what a run makes of `device: cuda`, on the simulated device: what the configuration asks
 * of it and it has not; memory is that of the device.
 */
#include "config.h"

#include "kernels/cuda-module.h"
#include "runner/base/error.h"
#include "runner/base/size.h"
#include "runner/infer.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct
{
  char *dir;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_assert_no_error (error);
  g_string_truncate (run_messages, 0);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_tree (f->dir);
  g_free (f->dir);
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
  Run run = configured_run (t4, "device=cuda");
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
      Run run = configured_run (*cases[i].sim, cases[i].device);
      g_autoptr (GError) error = NULL;
      run.more[2] = cases[i].more;
      run.n_iters = 1;
      g_string_truncate (run_messages, 0);
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

/* The host has room for the loaders, and not for what the device takes. */
static void
set_host_memory (gsize device_bytes)
{
  g_autofree char *text = g_strdup_printf ("%" G_GSIZE_FORMAT "KiB", device_bytes / 2 >> 10);

  g_setenv ("RN_FREE_MEMORY", text, TRUE);
}

/* What is free on the device counts; on the host only the loaders do. */
static void
test_memory (Fixture *f, gconstpointer data)
{
  Run run = configured_run (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.more[2] = "deterministic=true";
  run.n_iters = 1;
  gsize bytes = bytes_of (&run, f->dir);
  g_autofree char *size = rn_size_format (bytes);
  g_autofree char *line = g_strdup_printf (": %s on the device; available: ", size);
  g_assert_cmpuint (count_messages (line), ==, 1);
  set_host_memory (bytes);
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
  Run run = configured_run (t4, "device=cuda");
  g_auto (Outcome) outcome = { 0 };
  g_autoptr (GError) error = NULL;

  run.more[2] = "deterministic=true";
  run.n_iters = 1;
  sim_reset (&run.sim);
  run_configured (&run, f->dir, FALSE, &outcome);
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
  Run run = configured_run (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.n_iters = 1;
  run.more[0] = "deterministic=true";
  gsize bytes = bytes_of (&run, f->dir);
  run.more[2] = "memory.budget=auto";
  set_host_memory (bytes);
  /* Nine tenths of it are the budget. */
  g_assert_cmpuint (bytes_of (&run, f->dir), ==, bytes);
  run.sim.memory_bytes = bytes;
  g_assert_cmpuint (bytes_of (&run, f->dir), <=, bytes / 10 * 9 + 9);
  run.sim.memory_bytes = 64 << 10;
  g_assert_null (try_training (&run, f->dir, &error));
  g_unsetenv ("RN_FREE_MEMORY");
  assert_advice (error);
}

/* What was measured is forgotten, by the run in @dir and by the machine. */
static void
forget_engines (const char *dir)
{
  g_autofree char *own = g_build_filename (dir, "cudnn-plans.json", NULL);
  g_autofree char *cache = g_build_filename (g_get_user_cache_dir (), "runner", "cudnn-plans.json", NULL);

  g_assert_cmpint (g_remove (own), ==, 0);
  g_assert_cmpint (g_remove (cache), ==, 0);
}

/* A budget holds while engines are measured, too: then the arena is the largest. */
static void
test_measured_budget (Fixture *f, gconstpointer data)
{
  Run run = configured_run (t4, "device=cuda");
  g_autoptr (GError) error = NULL;

  run.n_iters = 1;
  gsize bytes = bytes_of (&run, f->dir);
  gsize peak = sim_peak_bytes (), budget = bytes / 10 * 9;
  g_assert_cmpuint (peak, >, bytes);
  g_autofree char *line = g_strdup_printf ("memory.budget=%" G_GSIZE_FORMAT "KiB", budget >> 10);
  run.more[2] = line;
  forget_engines (f->dir);
  for (int is_stored = 0; is_stored < 2; is_stored++)
    {
      g_string_truncate (run_messages, 0);
      g_autoptr (RnTraining) training = try_training (&run, f->dir, &error);
      g_assert_no_error (error);
      gsize total = rn_programs_memory (training->job->programs).total_bytes;
      g_assert_cmpuint (count_messages ("measuring kernels for "), ==, !is_stored);
      g_assert_cmpuint (sim_bytes (), ==, total);
      g_assert_cmpuint (sim_peak_bytes (), <=, budget);
      g_assert_cmpint (sim_peak_bytes () > total, ==, !is_stored);
    }
}

#define ADD(name, function) g_test_add (name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  char *cache_home;

  g_test_init (&argc, &argv, NULL);
  cache_home = g_dir_make_tmp ("rn-cache-XXXXXX", &error);
  g_assert_no_error (error);
  g_setenv ("XDG_CACHE_HOME", cache_home, TRUE);
  training_runs_begin ();
  keep_messages ();
  rn_cuda_module_use (rn_cuda_module ());
  ADD ("/run-device/generation/bf16", test_bf16);
  ADD ("/run-device/generation/tf32", test_tf32_hints);
  ADD ("/run-device/memory/fit", test_memory);
  ADD ("/run-device/memory/inference", test_inference_memory);
  ADD ("/run-device/memory/budget", test_budget);
  ADD ("/run-device/memory/budget-measured", test_measured_budget);
  int status = g_test_run ();
  training_runs_end ();
  remove_tree (cache_home);
  g_free (cache_home);
  return status;
}
