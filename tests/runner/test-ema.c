/* EMAHook: which steps it follows, with what weight, where its mean is used, and that a resume takes it up.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

static const double scores[] = { 0.1, 0.3, 0.2, 0.3 };

/* ---- What the task is asked for ---- */

static GString *momenta; /* of each update but the one that starts the mean */
static gboolean (*fake_update_ema) (RnTask *, double, gboolean, GError **);

static gboolean
note_update (RnTask *task, double momentum, gboolean with_buffers, GError **error)
{
  g_string_append_printf (momenta, "%s%.6g%s", momenta->len > 0 ? " " : "", momentum,
                          with_buffers ? "b" : "");
  return fake_update_ema (task, momentum, with_buffers, error);
}

static void
watch_updates (FakeRun *run)
{
  fake_update_ema = run->fake.vtbl.update_ema;
  run->fake.vtbl.update_ema = note_update;
  g_string_truncate (momenta, 0);
}

/* An optimizer that steps in every third iteration only, as an accumulation does. */
typedef struct
{
  RnHook hook;
} ThirdHook;

static gboolean
step_every_third (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_set_window_open (runner, TRUE); /* its gradients are never zeroed */
  return rn_runner_backward (runner, error)
         && (!rn_runner_every_n_iters (runner, 3) || rn_runner_step (runner, 1, 0, error));
}

RN_HOOK_DEFINE (third, ThirdHook, .name = "ThirdOptimizerHook", .summary = "for tests",
                .priority = RN_PRIORITY_ABOVE_NORMAL, .after_train_iter = step_every_third);

static void
assert_momenta (const char *yaml, const char *expected)
{
  FakeRun run;

  fake_run_open (&run, yaml, 6, NULL);
  watch_updates (&run);
  fake_run_go (&run);
  g_assert_cmpstr (momenta->str, ==, expected);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

#define EMA(keys) "custom_hooks: [{type: EMAHook" keys "}]\n"

static void
test_momenta (void)
{
  /* The first 1 starts the mean. Then 1 - min (0.9, (1 + t) / (10 + t)): 1 - 1/10, 1 - 2/11, ... */
  assert_momenta (BY_ITER (4, EMA (", momentum: 0.1")), "1 0.9 0.818182 0.75 0.692308");
  /* The bound is 0.4 until (1 + t) / (10 + t) is above it: 1/10, 2/11, 3/12, 4/13, 5/14, 6/15 = 0.4. */
  assert_momenta (BY_ITER (7, EMA (", momentum: 0.6")), "1 0.9 0.818182 0.75 0.692308 0.642857 0.6 0.6");
  assert_momenta (BY_ITER (3, EMA (", momentum: 0.1, warm_up: 0, update_buffers: true")), "1 0.1b 0.1b 0.1b");
  /* 1 - 0.9^2, once in two steps. */
  assert_momenta (BY_ITER (5, EMA (", momentum: 0.1, warm_up: 0, interval: 2")), "1 0.19 0.19");
  assert_momenta (BY_ITER (4, EMA (", ema_type: StochasticWeightAverage")), "1 1 0.5 0.333333 0.25");
  /* max (m, gamma / (gamma + t)), at t = 0, 1, 2, 3 */
  assert_momenta (BY_ITER (4, EMA (", ema_type: MomentumAnnealingEMA, gamma: 2, momentum: 0.45")),
                  "1 1 0.666667 0.5 0.45");
  /* (1 - m) exp (-(1 + t) / gamma) + m with m = 0.5, gamma = 2: 0.5 exp (-1/2) + 0.5, ... */
  assert_momenta (BY_ITER (2, EMA (", ema_type: ExpMomentumEMA, gamma: 2, momentum: 0.5")),
                  "1 0.803265 0.68394");
}

/* Iterations without a step leave the mean as it is. */
static void
test_performed_steps (void)
{
  assert_momenta (
      BY_ITER (9, "optimizer_config: {type: ThirdOptimizerHook}\n" EMA (", momentum: 0.1, warm_up: 0")),
      "1 0.1 0.1 0.1");
  assert_momenta (BY_ITER (13, "optimizer_config: {type: ThirdOptimizerHook}\n" EMA (
                                   ", momentum: 0.1, warm_up: 0, interval: 2")),
                  "1 0.19 0.19");
}

/* ---- Values ---- */

/* Takes a mean of its own, in the same single precision. */
typedef struct
{
  RnHook hook;
  float mean[FAKE_N];
  gint64 n;
} MeanHook;

static FakeTask *watched;

static gboolean
mean_before_run (RnHook *hook, RnRunner *runner, GError **error)
{
  MeanHook *self = (MeanHook *) hook;
  memcpy (self->mean, watched->w, sizeof self->mean);
  return TRUE;
}

static gboolean
mean_after_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  MeanHook *self = (MeanHook *) hook;
  for (int i = 0; i < FAKE_N; i++)
    self->mean[i] += 0.25F * (watched->w[i] - self->mean[i]);
  self->n++;
  g_assert_cmpmem (self->mean, sizeof self->mean, watched->ema, sizeof watched->ema);
  return TRUE;
}

static gboolean
mean_after_run (RnHook *hook, RnRunner *runner, GError **error)
{
  g_assert_cmpint (((MeanHook *) hook)->n, ==, 12);
  return TRUE;
}

RN_HOOK_DEFINE (mean, MeanHook, .name = "MeanHook", .summary = "for tests", .before_run = mean_before_run,
                .after_run = mean_after_run, .after_iter = mean_after_iter);

static const RnStoredTensor *
find_tensor (const RnSafetensors *file, const char *name)
{
  const RnStoredTensor *tensor = rn_safetensors_find (file, name);
  g_assert_nonnull (tensor);
  g_assert_cmpuint (tensor->bytes, ==, sizeof (float) * FAKE_N);
  return tensor;
}

/* Swapped for an evaluation and back: what is trained and what is saved as weights are the weights. */
static void
test_use (void)
{
  FakeRun run, plain;
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) trace = g_string_new (NULL);
  const char *yaml = BY_EPOCH (2, "checkpoint_config: {interval: 1}\nevaluation: {interval: 1}\n"
                                  "custom_hooks: [{type: EMAHook, momentum: 0.25, warm_up: 0}, {type: "
                                  "MeanHook}]\n");

  fake_run_open (&run, yaml, 6, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  run.fake.trace = trace;
  watched = &run.fake;
  fake_run_go (&run);
  g_auto (GStrv) parts = g_strsplit (trace->str, "swap", -1);
  g_assert_cmpuint (g_strv_length (parts), ==, 5);
  g_assert_cmpstr (parts[1], ==, " "); /* nothing but the evaluation between the two */
  g_assert_cmpstr (parts[3], ==, " ");

  fake_run_open (&plain, BY_EPOCH (2, "checkpoint_config: {interval: 1}\n"), 6, NULL);
  fake_run_go (&plain);
  g_assert_cmpmem (run.fake.w, sizeof run.fake.w, plain.fake.w, sizeof plain.fake.w);

  g_autofree char *path = g_build_filename (run.dir, "epoch_2.safetensors", NULL),
                  *plain_path = g_build_filename (plain.dir, "epoch_2.safetensors", NULL);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  g_autoptr (RnSafetensors) plain_file = rn_safetensors_open (plain_path, &error);
  g_assert_no_error (error);
  g_assert_cmpmem (find_tensor (file, "w")->data, sizeof run.fake.w, run.fake.w, sizeof run.fake.w);
  g_assert_cmpmem (find_tensor (file, "ema/w")->data, sizeof run.fake.ema, run.fake.ema, sizeof run.fake.ema);
  g_assert_null (rn_safetensors_find (plain_file, "ema/w"));
  fake_run_remove (run.dir);
  fake_run_close (&run);
  fake_run_remove (plain.dir);
  fake_run_close (&plain);
}

/* Before its start there is no mean to evaluate or to save. */
static void
test_begin (gconstpointer data)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) trace = g_string_new (NULL);
  const char *yaml = data;

  fake_run_open (&run, yaml, 3, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  run.fake.trace = trace;
  watch_updates (&run);
  fake_run_go (&run);
  g_assert_cmpstr (momenta->str, ==, "1 0.5 0.5 0.5");
  g_auto (GStrv) parts = g_strsplit (trace->str, "swap", -1);
  g_assert_cmpuint (g_strv_length (parts), ==, 3); /* around the second evaluation */
  g_autofree char *early = g_build_filename (run.dir, "epoch_1.safetensors", NULL),
                  *late = g_build_filename (run.dir, "epoch_2.safetensors", NULL);
  g_autoptr (RnSafetensors) a = rn_safetensors_open (early, &error);
  g_autoptr (RnSafetensors) b = rn_safetensors_open (late, &error);
  g_assert_no_error (error);
  g_assert_null (rn_safetensors_find (a, "ema/w"));
  find_tensor (b, "ema/w");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Resume ---- */

typedef struct
{
  RnHook hook;
} StopHook;

static gint64 stop_at;

static gboolean
stop_run (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) + 1 == stop_at)
    rn_runner_stop (runner);
  return TRUE;
}

RN_HOOK_DEFINE (stop, StopHook, .name = "StopHook", .summary = "for tests", .after_train_iter = stop_run);

/* The mean starts, and its interval is cut, at places that are no multiple of anything. */
static void
test_resume (void)
{
  const char *yaml = BY_EPOCH (3, "optimizer_config: {type: ThirdOptimizerHook}\nevaluation: {interval: 1}\n"
                                  "custom_hooks: [{type: EMAHook, momentum: 0.3, warm_up: 3, interval: 2, "
                                  "begin_iter: 4}, {type: StopHook}]\n");
  FakeRun straight;

  stop_at = 0;
  fake_run_open (&straight, yaml, 7, NULL);
  straight.fake.scores = scores;
  straight.fake.n_scores = G_N_ELEMENTS (scores);
  fake_run_go (&straight);
  g_assert_cmpint (rn_runner_opt_step (straight.runner), ==, 7);
  for (gint64 at = 1; at <= 20; at++)
    {
      FakeRun stopped, resumed;
      g_autoptr (GError) error = NULL;
      stop_at = at;
      fake_run_open (&stopped, yaml, 7, NULL);
      stopped.fake.scores = scores;
      stopped.fake.n_scores = G_N_ELEMENTS (scores);
      fake_run_go (&stopped);
      stop_at = 0;
      fake_run_open (&resumed, yaml, 7, stopped.dir);
      resumed.fake.scores = scores;
      resumed.fake.n_scores = G_N_ELEMENTS (scores);
      fake_run_resume (&resumed, NULL);
      g_assert_cmpint (rn_runner_iter (resumed.runner), ==, at);
      g_assert_true (rn_runner_run (resumed.runner, &error));
      g_assert_cmpmem (resumed.fake.w, sizeof straight.fake.w, straight.fake.w, sizeof straight.fake.w);
      g_assert_cmpmem (resumed.fake.ema, sizeof straight.fake.ema, straight.fake.ema,
                       sizeof straight.fake.ema);
      fake_run_remove (stopped.dir);
      fake_run_close (&resumed);
      fake_run_close (&stopped);
    }
  fake_run_remove (straight.dir);
  fake_run_close (&straight);
}

/* A run that had no mean gets one; it starts with the weights as they are then. */
static void
test_added_on_resume (void)
{
  FakeRun first, second;
  g_autoptr (GError) error = NULL;

  stop_at = 4;
  fake_run_open (&first, BY_ITER (8, "custom_hooks: [{type: StopHook}]\n"), 6, NULL);
  fake_run_go (&first);
  stop_at = 0;
  fake_run_open (&second, BY_ITER (8, EMA (", momentum: 0.5, warm_up: 0")), 6, first.dir);
  fake_run_resume (&second, NULL);
  watch_updates (&second);
  g_assert_true (rn_runner_run (second.runner, &error));
  g_assert_cmpstr (momenta->str, ==, "1 0.5 0.5 0.5 0.5");
  fake_run_remove (first.dir);
  fake_run_close (&second);
  fake_run_close (&first);
}

/* ---- Real parameters ---- */

/* Takes the mean of all parameters in double precision; of buffers the mean, or the newest. */
typedef struct
{
  RnHook hook;
  gboolean with_buffers;
} ParamMeanHook;

static const RnKeySpec param_mean_keys[] = {
  RN_KEY (ParamMeanHook, with_buffers, RN_KEY_BOOL, "false", "mean of buffers"),
  RN_KEY_END,
};

static GHashTable *param_means; /* from names to GArray of double */

static gboolean
take_mean (RnRunner *runner, double momentum, gboolean with_buffers, GError **error)
{
  for (guint p = 0; p < rn_runner_n_params (runner); p++)
    {
      gsize n = (gsize) rn_desc_elements (rn_runner_param_desc (runner, p));
      g_autofree float *values = g_new (float, n);
      GArray *mean = g_hash_table_lookup (param_means, rn_runner_param_name (runner, p));
      gboolean is_copied = !with_buffers && !rn_runner_param_is_trained (runner, p);
      if (!rn_runner_read_param (runner, p, values, error))
        return FALSE;
      for (gsize i = 0; i < n; i++)
        {
          double *m = &g_array_index (mean, double, i);
          *m += (is_copied ? 1 : momentum) * ((double) values[i] - *m);
        }
    }
  return TRUE;
}

static gboolean
start_means (RnHook *hook, RnRunner *runner, GError **error)
{
  param_means = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_array_unref);
  for (guint p = 0; p < rn_runner_n_params (runner); p++)
    {
      GArray *mean = g_array_new (FALSE, TRUE, sizeof (double));
      g_array_set_size (mean, (guint) rn_desc_elements (rn_runner_param_desc (runner, p)));
      g_hash_table_insert (param_means, g_strdup (rn_runner_param_name (runner, p)), mean);
    }
  return take_mean (runner, 1, TRUE, error);
}

static gboolean
go_on_with_means (RnHook *hook, RnRunner *runner, GError **error)
{
  return take_mean (runner, 0.25, ((ParamMeanHook *) hook)->with_buffers, error);
}

RN_HOOK_DEFINE (param_mean, ParamMeanHook, .name = "ParamMeanHook", .summary = "for tests",
                .keys = param_mean_keys, .before_run = start_means, .after_train_iter = go_on_with_means);

/* A run with these hooks; its checkpoint after one epoch. */
static RnSafetensors *
train_small (const char *data, const char *hooks, char **dir)
{
  g_autoptr (GError) error = NULL;
  const char *const changes[] = { "runner.max_epochs=1",
                                  "checkpoint_config={interval: 1}",
                                  "evaluation={interval: 1}",
                                  "backend.forbid=cpu:conv2d*",
                                  hooks,
                                  NULL };
  *dir = g_dir_make_tmp ("rn-ema-XXXXXX", &error);
  g_assert_no_error (error);
  g_autoptr (RnTraining) training = small_detector_training (data, *dir, changes, FALSE, NULL);
  g_assert_true (rn_runner_run (training->runner, &error));
  g_autofree char *path = g_build_filename (*dir, "epoch_1.safetensors", NULL);
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

/*
 * Each of ten updates rounds twice, by half a unit in the last place of numbers as large as the weights:
 * 20 x 2^-24 of the largest of a tensor.
 */
#define MEAN_TOLERANCE (20 * 0x1p-24)

static void
assert_means (const RnSafetensors *file, const RnSafetensors *plain)
{
  guint n = 0;

  for (guint t = 0; t < rn_safetensors_size (plain); t++)
    {
      const RnStoredTensor *weight = rn_safetensors_get (plain, t);
      if (strchr (weight->name, '/') != NULL)
        continue;
      g_autofree char *name = g_strconcat ("ema/", weight->name, NULL);
      const RnStoredTensor *mean = rn_safetensors_find (file, name);
      g_assert_nonnull (mean);
      const GArray *expected = g_hash_table_lookup (param_means, weight->name);
      const float *values = (const float *) (gconstpointer) mean->data;
      double largest = 0;
      n++;
      g_assert_cmpuint (mean->bytes, ==, expected->len * sizeof (float));
      for (guint i = 0; i < expected->len; i++)
        largest = fmax (largest, fabs (g_array_index (expected, double, i)));
      for (guint i = 0; i < expected->len; i++)
        g_assert_cmpfloat_with_epsilon ((double) values[i], g_array_index (expected, double, i),
                                        MEAN_TOLERANCE * largest);
      /* The evaluation exchanged the two and gave the weights back. */
      const RnStoredTensor *same = rn_safetensors_find (file, weight->name);
      g_assert_cmpint (memcmp (same->data, weight->data, weight->bytes), ==, 0);
    }
  g_assert_cmpuint (n, ==, g_hash_table_size (param_means));
}

static void
test_real (void)
{
  g_autofree char *data = small_detector_data (), *plain_dir = NULL;
  g_autoptr (RnSafetensors) plain = train_small (data, "custom_hooks=[]", &plain_dir);

  for (int with_buffers = 0; with_buffers < 2; with_buffers++)
    {
      g_autofree char *dir = NULL,
                      *hooks =
                          g_strdup_printf ("custom_hooks=[{type: EMAHook, momentum: 0.25, warm_up: 0, "
                                           "update_buffers: %s}, {type: ParamMeanHook, with_buffers: %s}]",
                                           with_buffers ? "true" : "false", with_buffers ? "true" : "false");
      g_autoptr (RnSafetensors) file = train_small (data, hooks, &dir);
      assert_means (file, plain);
      g_clear_pointer (&param_means, g_hash_table_unref);
      remove_tree (dir);
    }
  remove_tree (plain_dir);
  remove_tree (data);
}

/* ---- Faults ---- */

static void
assert_init_fails (const char *keys, const char *expected)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;
  g_autofree char *yaml = g_strdup_printf (BY_ITER (4, EMA ("%s")), keys);

  fake_run_open (&run, yaml, 6, NULL);
  g_assert_false (rn_runner_init (run.runner, &error));
  g_assert_true (g_str_has_suffix (error->message, expected));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_faults (void)
{
  assert_init_fails (", begin_iter: 1, begin_epoch: 1",
                     ": custom_hooks.0.begin_epoch: begin_iter is given too; the mean starts "
                     "once: give one of the two");
  static const char priority[] =
      ": custom_hooks.0.priority: the mean is updated behind the optimizer step (40) and ahead of the "
      "evaluation (70); what works: 49 (the default), or another number from 40 to 69";
  assert_init_fails (", priority: HIGH", priority);
  assert_init_fails (", priority: LOW", priority);
}

/* A run has one array for the mean. */
static void
test_two (void)
{
  FakeRun run;
  g_autoptr (GError) error = NULL;

  g_assert_false (fake_run_try (
      &run, BY_ITER (4, "custom_hooks: [{type: EMAHook}, {type: EMAHook, momentum: 0.1}]\n"), 6, &error));
  g_assert_true (g_str_has_suffix (error->message,
                                   ": custom_hooks.1: EMAHook is there already, and a run has "
                                   "one running mean of the weights"));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_hostile_state (void)
{
  extern const RnHookDesc rn_hook_desc_ema;
  g_autofree RnHook *hook = g_malloc0 (rn_hook_desc_ema.instance_size);
  static const struct
  {
    gint64 updates, waiting;
  } bad[] = { { -1, 0 }, { 0, -1 }, { G_MAXINT64, 0 }, { 0, G_MAXINT64 } };

  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (RnRecord) state = rn_record_new ();
      g_autoptr (GError) error = NULL;
      rn_record_set_int (state, "updates", bad[i].updates);
      rn_record_set_int (state, "waiting", bad[i].waiting);
      g_assert_false (rn_hook_desc_ema.load_state (hook, state, &error));
      g_assert_error (error, RN_RUN_ERROR, RN_RUN_ERROR_FAILED);
    }
}

int
main (int argc, char **argv)
{
  static const RnHookDesc *const hooks[] = { &rn_hook_desc_third, &rn_hook_desc_mean, &rn_hook_desc_stop,
                                             &rn_hook_desc_param_mean };
  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  for (gsize i = 0; i < G_N_ELEMENTS (hooks); i++)
    rn_hook_register (hooks[i], NULL);
  small_detector_register ();
  momenta = g_string_new (NULL);
  g_test_add_func ("/ema/momenta", test_momenta);
  g_test_add_func ("/ema/performed-steps", test_performed_steps);
  g_test_add_func ("/ema/use", test_use);
  g_test_add_data_func ("/ema/begin/iter",
                        BY_EPOCH (2, "checkpoint_config: {interval: 1}\nevaluation: {interval: 1}\n" EMA (
                                         ", momentum: 0.5, warm_up: 0, begin_iter: 3")),
                        test_begin);
  g_test_add_data_func ("/ema/begin/epoch",
                        BY_EPOCH (2, "checkpoint_config: {interval: 1}\nevaluation: {interval: 1}\n" EMA (
                                         ", momentum: 0.5, warm_up: 0, begin_epoch: 1")),
                        test_begin);
  g_test_add_func ("/ema/resume", test_resume);
  g_test_add_func ("/ema/added-on-resume", test_added_on_resume);
  g_test_add_func ("/ema/real", test_real);
  g_test_add_func ("/ema/faults", test_faults);
  g_test_add_func ("/ema/two", test_two);
  g_test_add_func ("/ema/hostile-state", test_hostile_state);
  int result = g_test_run ();
  g_string_free (momenta, TRUE);
  return result;
}
