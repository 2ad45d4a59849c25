#include "config.h"

#include "tests/gpu/training-run.h"

#include "runner/hook-class.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

const SimConfig t4 = { .model = "t4", .n_devices = 1, .driver_version = 13000 };
const SimConfig a100 = { .model = "a100", .n_devices = 1, .driver_version = 13000 };

Outcome *watched;
gboolean is_long;
GString *run_messages;

static char *data; /* folder of the data set */

static gboolean
watch_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 iter = rn_runner_iter (runner);

  watched->losses[iter] = rn_runner_loss (runner, "loss");
  watched->allocations[iter] = test_device_n_allocations ();
  watched->n_iters = (int) iter + 1;
  return TRUE;
}

typedef struct
{
  RnHook hook;
} WatchHook;

RN_HOOK_DEFINE (watch, WatchHook, .name = "WatchHook", .summary = "for tests", .needs = RN_NEEDS_LOSS,
                .priority = RN_PRIORITY_VERY_LOW, .after_train_iter = watch_iter);

void
outcome_clear (Outcome *outcome)
{
  g_clear_pointer (&outcome->params, g_array_unref);
}

GArray *
read_params (RnRunner *runner)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (float));
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < rn_runner_n_params (runner); i++)
    {
      guint n = (guint) rn_desc_elements (rn_runner_param_desc (runner, i)), at = all->len;
      g_array_set_size (all, at + n);
      rn_runner_read_param (runner, i, &g_array_index (all, float, at), &error);
      g_assert_no_error (error);
    }
  return all;
}

static void
add_strategy (GPtrArray *changes, RnStrategyId id)
{
  small_detector_add_strategy (changes, id, "memory.workspace_limit=1MiB");
}

/* For --set. (transfer full) */
GPtrArray *
changes_of (const Run *run)
{
  static const char *const base[] = { SMALL_RESNET,
                                      "data.train.pipeline.2.img_scale=[32, 32]",
                                      "optimizer_config.grad_clip=null",
                                      "lr_config={policy: fixed}",
                                      "checkpoint_config=null",
                                      "custom_hooks=[{type: WatchHook}]",
                                      "data.workers_per_gpu=1" };
  GPtrArray *changes = g_ptr_array_new_with_free_func (NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (base); i++)
    g_ptr_array_add (changes, (gpointer) base[i]);
  g_ptr_array_add (changes, (gpointer) g_intern_string (g_strdup_printf (
                                "runner={type: IterBasedRunner, max_iters: %d}", run->n_iters)));
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (rn_strategy_get ((RnStrategyId) id)->is_default && id != run->strategy)
      g_ptr_array_add (changes, (gpointer) rn_strategy_get ((RnStrategyId) id)->off);
  if (run->dtype != RN_F32)
    add_strategy (changes, run->dtype == RN_F16 ? RN_STRATEGY_FP16 : RN_STRATEGY_BF16);
  if (run->strategy >= 0)
    add_strategy (changes, (RnStrategyId) run->strategy);
  for (int i = 0; run->more[i] != NULL; i++)
    g_ptr_array_add (changes, (gpointer) run->more[i]);
  g_ptr_array_add (changes, NULL);
  return changes;
}

/* The device of @run in place of the one that the job has. */
static void
set_device (RnJob *job, const Run *run, gboolean is_half)
{
  const RnCudaOptions options = { .half = is_half, .deterministic = !run->measured, .layout = run->layout };
  RnDevice *device = test_device_open (&run->sim, &options);

  device->workspace_limit = job->device->workspace_limit;
  device->prefer = job->device->prefer;
  device->forbid = job->device->forbid;
  rn_device_free (job->device);
  job->device = device;
}

RnJob *
open_job (const Run *run, const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) changes = changes_of (run);
  RnJob *job = small_detector_job (data, dir, (const char *const *) changes->pdata, &error);

  g_assert_no_error (error);
  if (!run->on_cpu)
    {
      set_device (job, run, run->dtype != RN_F32);
      if (run->plant != NULL)
        run->plant (job->device);
    }
  return job;
}

RnTraining *
open_run (const Run *run, const char *dir)
{
  g_autoptr (GError) error = NULL;
  RnTraining *training = rn_training_new (open_job (run, dir), NULL, TRUE, &error);

  g_assert_no_error (error);
  return training;
}

void
run_training (const Run *run, Outcome *outcome)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);

  g_assert_no_error (error);
  g_autoptr (RnTraining) training = open_run (run, dir);
  watched = outcome;
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
  g_assert_cmpint (outcome->n_iters, ==, run->n_iters);
  outcome->params = read_params (training->runner);
  remove_tree (dir);
}

void
run_interrupted (Run run, Outcome *straight, Outcome *resumed)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);

  run.n_iters = 4;
  run.more[0] = "checkpoint_config={interval: 2, by_epoch: false}";
  run_training (&run, straight);
  for (int part = 0; part < 2; part++)
    {
      run.n_iters = part == 0 ? 2 : 4;
      g_autoptr (RnTraining) training = open_run (&run, dir);
      watched = resumed;
      if (part == 1)
        rn_runner_resume (training->runner, NULL, &error);
      g_assert_no_error (error);
      g_assert_cmpint (rn_runner_iter (training->runner), ==, 2 * part);
      rn_runner_run (training->runner, &error);
      g_assert_no_error (error);
      g_clear_pointer (&resumed->params, g_array_unref);
      resumed->params = read_params (training->runner);
      watched = NULL;
    }
  remove_tree (dir);
}

Run
configured_run (SimConfig sim, const char *device)
{
  return (Run){ .on_cpu = TRUE,
                .sim = sim,
                .strategy = -1,
                .more = { "checkpoint_config={interval: 1, by_epoch: false}", device } };
}

void
run_configured (const Run *run, const char *dir, gboolean is_resumed, Outcome *outcome)
{
  g_autoptr (GError) error = NULL;

  g_autoptr (RnTraining) training = open_run (run, dir);
  if (is_resumed)
    rn_runner_resume (training->runner, training->job->config.resume_from, &error);
  g_assert_no_error (error);
  watched = outcome;
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
  g_assert_cmpint (rn_runner_iter (training->runner), ==, run->n_iters);
  g_clear_pointer (&outcome->params, g_array_unref);
  outcome->params = read_params (training->runner);
}

/*
 * A loss is a sum over layers' results, each rounded once: half a unit in the last place of 11 bits (F16) or
 * 8 (BF16), on both devices, through at most N_LAYERS layers. From the second iteration on the weights have
 * been moved by gradients that went through as many layers again.
 */
#define N_LAYERS 16

double
loss_tolerance (RnDType dtype)
{
  const int bits = dtype == RN_F16 ? 12 : 9;

  return dtype == RN_F32 ? 1e-4 : 2 * N_LAYERS * ldexp (1, -bits);
}

void
assert_close (const Outcome *a, const Outcome *b, double relative)
{
  g_assert_cmpint (a->n_iters, ==, b->n_iters);
  for (int i = 0; i < a->n_iters; i++)
    if (!(fabs (a->losses[i] - b->losses[i]) <= relative * fabs (b->losses[i])))
      g_error ("the loss of iteration %d is %.9g on the device, %.9g on the CPU", i + 1, a->losses[i],
               b->losses[i]);
}

void
assert_same (const Outcome *a, const Outcome *b)
{
  g_assert_cmpint (a->n_iters, ==, b->n_iters);
  for (int i = 0; i < a->n_iters; i++)
    g_assert_cmpint (memcmp (&a->losses[i], &b->losses[i], sizeof *a->losses), ==, 0);
  g_assert_cmpuint (a->params->len, ==, b->params->len);
  g_assert_cmpint (memcmp (a->params->data, b->params->data, a->params->len * sizeof (float)), ==, 0);
}

static void
drop_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
}

static void
keep_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
  g_string_append_printf (run_messages, "%s\n", message);
}

void
keep_messages (void)
{
  run_messages = g_string_new (NULL);
  g_log_set_default_handler (keep_message, NULL);
}

guint
count_messages (const char *part)
{
  guint n = 0;

  for (const char *at = strstr (run_messages->str, part); at != NULL; at = strstr (at + 1, part))
    n++;
  return n;
}

void
training_runs_begin (void)
{
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_default_handler (drop_message, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_watch, NULL));
  small_detector_register ();
  data = small_detector_data ();
  is_long = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0;
}

const char *
training_data (void)
{
  return data;
}

void
training_runs_end (void)
{
  remove_tree (data);
  g_free (data);
  if (run_messages != NULL)
    g_string_free (g_steal_pointer (&run_messages), TRUE);
}
