/*
 * test-update-in-backward.c: runs with `memory.update: in_backward`: the bits of plain runs without
 * accumulation; with it the sum of a window in the momentum; checkpoints inside a window, and what a resume
 * of them refuses. Real data, loaders and programs.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/hook-list.h"
#include "tests/runner/stepper.h"
#include "tests/tree.h"

#include <float.h>
#include <runner/engine.h>
#include <string.h>

#define IN_BACKWARD "memory.update=in_backward"
#define PLAIN_HOOK "optimizer_config={type: OptimizerHook}"
#define WINDOWS_OF(n) "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: " #n "}"
#define SGD "optimizer={type: SGD, lr: 0.05, momentum: 0.9, dampening: 0.1, weight_decay: 0.01}"
#define FIXED_LR "lr_config={policy: fixed}"
#define N_ITERS 8

static char *data;

/* ---- A hook that ends a run, or looks at gradients without a word of it in its descriptor ---- */

typedef struct
{
  RnHook hook;
  gint64 stop_at;
  gboolean reads, asks_for_stats;
} ProbeHook;

static const RnKeySpec probe_keys[] = {
  RN_KEY (ProbeHook, stop_at, RN_KEY_INT, "0", "finished iterations"),
  RN_KEY (ProbeHook, reads, RN_KEY_BOOL, "false", "a gradient"),
  RN_KEY (ProbeHook, asks_for_stats, RN_KEY_BOOL, "false", "of gradients"),
  RN_KEY_END,
};

static gboolean
probe_run (RnHook *hook, RnRunner *runner, GError **error)
{
  const ProbeHook *self = (const ProbeHook *) hook;
  RnGradStats stats;
  float values[4096];

  if (rn_runner_iter (runner) + 1 == self->stop_at)
    rn_runner_stop (runner);
  g_assert_cmpint (rn_desc_elements (rn_runner_param_desc (runner, 0)), <=, G_N_ELEMENTS (values));
  return (!self->reads || rn_runner_read_grad (runner, 0, values, error))
         && (!self->asks_for_stats || rn_runner_grad_stats (runner, 2, &stats, error));
}

RN_HOOK_DEFINE (probe, ProbeHook, .name = "ProbeHook", .summary = "for tests", .keys = probe_keys,
                .after_train_iter = probe_run);

/* ---- Runs ---- */

typedef struct
{
  RnTraining *training;
  char *dir; /* owned */
} Run;

static void
run_clear (Run *run)
{
  g_clear_pointer (&run->training, rn_training_free);
  if (run->dir != NULL)
    remove_tree (run->dir);
  g_clear_pointer (&run->dir, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

static void
run_open (Run *run, const char *const *changes, int n_iters, gboolean is_resumed)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  g_autofree char *length = g_strdup_printf ("runner={type: IterBasedRunner, max_iters: %d}", n_iters);

  if (run->dir == NULL)
    run->dir = g_dir_make_tmp ("rn-in-backward-XXXXXX", &error);
  g_assert_no_error (error);
  g_clear_pointer (&run->training, rn_training_free);
  g_ptr_array_add (all, length);
  g_ptr_array_add (all, (gpointer) FIXED_LR);
  g_ptr_array_add (all, (gpointer) "checkpoint_config={interval: 1, by_epoch: false}");
  for (gsize i = 0; changes[i] != NULL; i++)
    g_ptr_array_add (all, (gpointer) changes[i]);
  g_ptr_array_add (all, NULL);
  run->training =
      small_detector_training (data, run->dir, (const char *const *) all->pdata, is_resumed, NULL);
}

/* A run of @n_iters iterations from the beginning. */
static void
run_all (Run *run, const char *const *changes, int n_iters)
{
  g_autoptr (GError) error = NULL;

  run_open (run, changes, n_iters, FALSE);
  rn_runner_run (run->training->runner, &error);
  g_assert_no_error (error);
}

/* Goes on with what lies in the folder of @run. */
static gboolean
run_on (Run *run, const char *const *changes, int n_iters, GError **error)
{
  run_open (run, changes, n_iters, TRUE);
  return rn_runner_resume (run->training->runner, NULL, error)
         && rn_runner_run (run->training->runner, error);
}

static RnPrograms *
programs_of (const Run *run)
{
  return run->training->job->programs;
}

static void
assert_same_weights (RnPrograms *a, RnPrograms *b)
{
  const RnParamSet *x = rn_programs_params (a), *y = rn_programs_params (b);
  const char *names[RN_PARAM_MAX_STATES];

  g_assert_true (
      memcmp (rn_param_set_all_values (x), rn_param_set_all_values (y), rn_param_set_value_bytes (x)) == 0);
  if (rn_param_set_all_ema (x) != NULL)
    g_assert_true (memcmp (rn_param_set_all_ema (x), rn_param_set_all_ema (y), rn_param_set_value_bytes (x))
                   == 0);
  for (int k = 0; k < rn_update_rule_states (rn_programs_rule (a), names); k++)
    for (int i = 0; i < rn_param_set_size (x); i++)
      if (rn_param_set_get (x, i)->trainable)
        g_assert_true (memcmp (rn_param_set_state (x, k, i), rn_param_set_state (y, k, i),
                               rn_desc_bytes (&rn_param_set_get (x, i)->desc))
                       == 0);
}

/* ---- Without accumulation ---- */

static const char *const optimizers[] = {
  SGD,
  "optimizer={type: SGD, lr: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01, paramwise_cfg: "
  "{norm_decay_mult: 0, custom_keys: {bbox_head: {lr_mult: 0.5}}}}",
  "optimizer={type: SGD, lr: 0.05}",
  "optimizer={type: Adam, lr: 0.01, weight_decay: 0.01}",
  "optimizer={type: AdamW, lr: 0.01, amsgrad: true}",
};

static void
test_same_run (gconstpointer optimizer)
{
  static const char ema[] = "custom_hooks=[{type: EMAHook, momentum: 0.1, interval: 2}]";
  static const char clip[] =
      "optimizer_config={type: OptimizerHook, grad_clip: {type: value, clip_value: 0.01}}";
  const char *const after[] = { optimizer, clip, ema, NULL };
  const char *const in[] = { optimizer, clip, ema, IN_BACKWARD, "memory.head=depth_first", NULL };
  g_auto (Run) plain = { 0 }, fused = { 0 };

  run_all (&plain, after, 5);
  run_all (&fused, in, 5);
  assert_same_weights (programs_of (&fused), programs_of (&plain));
  g_assert_cmpint (rn_runner_opt_step (fused.training->runner), ==, 5);
  g_assert_cmpuint (rn_programs_memory (programs_of (&plain)).grad_bytes, >, 0);
  g_assert_cmpuint (rn_programs_memory (programs_of (&fused)).grad_bytes, ==, 0);
}

/* Three iterations one way, two the other: there is nothing in a checkpoint that belongs to one of them. */
static void
test_change_between_steps (gconstpointer begins_in_backward)
{
  const char *const after[] = { SGD, PLAIN_HOOK, NULL };
  const char *const in[] = { SGD, PLAIN_HOOK, IN_BACKWARD, NULL };
  gboolean is_first_in = GPOINTER_TO_INT (begins_in_backward);
  g_autoptr (GError) error = NULL;
  g_auto (Run) plain = { 0 }, changed = { 0 };

  run_all (&plain, after, 5);
  run_all (&changed, is_first_in ? in : after, 3);
  run_on (&changed, is_first_in ? after : in, 5, &error);
  g_assert_no_error (error);
  assert_same_weights (programs_of (&changed), programs_of (&plain));
}

/* ---- Windows ---- */

static void
add_to_sum (const Stepper *f, double *sum, double *sizes)
{
  guint at = 0;

  for (guint i = 0; i < f->task->n_params; i++)
    if (f->task->params[i].is_trained)
      {
        g_autofree float *grad = stepper_read (f, f->task->vtbl->read_grad, i);
        for (gint64 k = 0; k < stepper_n_elements (f, i); k++, at++)
          {
            sum[at] += (double) grad[k];
            sizes[at] += fabs ((double) grad[k]);
          }
      }
}

static void
next_batch (Stepper *f)
{
  g_autoptr (GError) error = NULL;
  f->task->vtbl->release (f->task, RN_TASK_TRAIN, f->batch);
  f->batch = f->task->vtbl->next (f->task, RN_TASK_TRAIN, &error);
  g_assert_no_error (error);
}

static void
forward (const Stepper *f, float scale)
{
  g_autoptr (GError) error = NULL;
  f->task->vtbl->forward (f->task, f->batch, RN_MODE_TRAIN, scale, &error);
  g_assert_no_error (error);
}

static guint
count_trained (const Stepper *f)
{
  guint n = 0;
  for (guint i = 0; i < f->task->n_params; i++)
    if (f->task->params[i].is_trained)
      n += (guint) stepper_n_elements (f, i);
  return n;
}

/* Momentum, or a parameter, of all that is trained. (transfer full) of float */
static GArray *
read_trained (const Stepper *f, gboolean momentum)
{
  const RnParamSet *params = rn_programs_params (stepper_programs (f));
  GArray *all = g_array_new (FALSE, FALSE, sizeof (float));

  for (guint i = 0; i < f->task->n_params; i++)
    if (f->task->params[i].is_trained)
      g_array_append_vals (
          all, momentum ? rn_param_set_state (params, 0, (int) i) : rn_param_set_value (params, (int) i),
          (guint) stepper_n_elements (f, i));
  return all;
}

/*
 * Two windows of @n batches, the first step of the optimizer and a later one. The gradients of each batch
 * come from the plain programs. In real numbers, after a window, v = mu * v + take * (decay * w + g1 + ... +
 * gn), without mu * v and take in the first step, and w = w - lr * v. In single precision each of the n + 3
 * sums and products of a term rounds it by at most half an ulp: (n + 3) * eps / 2 times the sum of the terms'
 * sizes. The step rounds twice more.
 */
static void
test_window_sums (gconstpointer size)
{
  int n = GPOINTER_TO_INT (size);
  static const char *const after[] = { SGD, PLAIN_HOOK, FIXED_LR, NULL };
  static const char *const in[] = { SGD, PLAIN_HOOK, FIXED_LR, IN_BACKWARD, "memory.head=depth_first", NULL };
  const double mu = 0.9, lr = 0.05, decay = 0.01;
  g_autoptr (GError) error = NULL;
  Stepper f, plain;

  stepper_open (&f, data, in);
  stepper_open (&plain, data, after);
  guint n_elements = count_trained (&f);
  g_autofree double *sum = g_new (double, n_elements), *sizes = g_new (double, n_elements);
  for (int window = 0; window < 2; window++)
    {
      gboolean is_first = window == 0;
      double take = is_first ? 1 : 1 - (double) 0.1f;
      double lrs[] = { lr };
      g_autoptr (GArray) v0 = read_trained (&f, TRUE), w0 = read_trained (&f, FALSE);
      memset (sum, 0, sizeof *sum * n_elements);
      memset (sizes, 0, sizeof *sizes * n_elements);
      for (int i = 0; i < n; i++)
        {
          plain.task->vtbl->zero_grads (plain.task, &error);
          forward (&plain, 1 / (float) n);
          plain.task->vtbl->backward (plain.task, &error);
          add_to_sum (&plain, sum, sizes);
          forward (&f, 1 / (float) n);
          const RnTaskUpdate part = { .lrs = lrs,
                                      .momentum = mu,
                                      .grad_multiplier = 1,
                                      .is_first = is_first,
                                      .continues = i > 0,
                                      .waits = i < n - 1 };
          f.task->vtbl->backward_update (f.task, &part, &error);
          g_assert_no_error (error);
          next_batch (&f);
          next_batch (&plain);
        }
      g_autoptr (GArray) v = read_trained (&f, TRUE), w = read_trained (&f, FALSE);
      for (guint k = 0; k < n_elements; k++)
        {
          double before = is_first ? 0 : mu * (double) g_array_index (v0, float, k);
          double start = (double) g_array_index (w0, float, k);
          double want = before + take * (decay * start + sum[k]);
          double terms = fabs (before) + take * (decay * fabs (start) + sizes[k]);
          double bound = (n + 3) * (double) FLT_EPSILON / 2 * terms;
          double want_w = start - lr * want;
          g_assert_cmpfloat (fabs ((double) g_array_index (v, float, k) - want), <=, bound);
          g_assert_cmpfloat (fabs ((double) g_array_index (w, float, k) - want_w), <=,
                             lr * bound + (double) FLT_EPSILON * (fabs (want_w) + lr * fabs (want)));
        }
      /* the plain programs go on from the same weights and statistics */
      memcpy (rn_param_set_all_values (rn_programs_params (stepper_programs (&plain))),
              rn_param_set_all_values (rn_programs_params (stepper_programs (&f))),
              rn_param_set_value_bytes (rn_programs_params (stepper_programs (&f))));
    }
  stepper_close (&plain);
  stepper_close (&f);
}

/* What the optimizer hook makes of windows is what is made of them by hand. */
static void
test_windows_of_the_hook (void)
{
  static const char *const changes[] = { SGD, WINDOWS_OF (4), IN_BACKWARD, NULL };
  static const char *const by_hand[] = { SGD, PLAIN_HOOK, FIXED_LR, IN_BACKWARD, NULL };
  double lrs[] = { 0.05 };
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = { 0 };
  Stepper f;

  run_all (&run, changes, 10); /* the last window has two iterations: tail: average */
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, 3);
  stepper_open (&f, data, by_hand);
  for (int i = 0; i < 10; i++)
    {
      forward (&f, i < 8 ? 0.25f : 0.5f);
      const RnTaskUpdate part = { .lrs = lrs,
                                  .momentum = 0.9,
                                  .grad_multiplier = 1,
                                  .is_first = i<4, .continues = i % 4> 0,
                                  .waits = i != 3 && i != 7 && i != 9 };
      f.task->vtbl->backward_update (f.task, &part, &error);
      g_assert_no_error (error);
      if (i < 9)
        next_batch (&f);
    }
  assert_same_weights (programs_of (&run), stepper_programs (&f));
  stepper_close (&f);
}

/* ---- Checkpoints inside a window ---- */

static RnSafetensors *
open_last (const Run *run)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (run->dir, "latest.safetensors", NULL);
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  return file;
}

static gboolean
has_prefix (const RnSafetensors *file, const char *prefix)
{
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    if (g_str_has_prefix (rn_safetensors_get (file, i)->name, prefix))
      return TRUE;
  return FALSE;
}

static void
run_until (Run *run, const char *const *lines, int stop_at)
{
  g_autoptr (GPtrArray) changes = g_ptr_array_new ();
  g_autofree char *stop_line = g_strdup_printf ("custom_hooks=[{type: ProbeHook, stop_at: %d}]", stop_at);

  for (gsize i = 0; lines[i] != NULL; i++)
    g_ptr_array_add (changes, (gpointer) lines[i]);
  g_ptr_array_add (changes, stop_line);
  g_ptr_array_add (changes, NULL);
  run_all (run, (const char *const *) changes->pdata, N_ITERS);
}

/* In the first window the optimizer has no state of before, which dampening makes a difference. */
static void
test_resume_inside (gconstpointer stop_at)
{
  static const char *const changes[] = { SGD, WINDOWS_OF (4), IN_BACKWARD, NULL };
  g_autoptr (GError) error = NULL;
  g_auto (Run) straight = { 0 }, run = { 0 };

  run_all (&straight, changes, N_ITERS);
  run_until (&run, changes, GPOINTER_TO_INT (stop_at));
  g_autoptr (RnSafetensors) file = open_last (&run);
  g_assert_true (has_prefix (file, "momentum/"));
  g_assert_nonnull (rn_safetensors_find (file, "optimizer/steps_and_part"));
  g_assert_false (has_prefix (file, "pending/"));
  run_on (&run, changes, N_ITERS, &error);
  g_assert_no_error (error);
  assert_same_weights (programs_of (&run), programs_of (&straight));
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, 2);
  g_autoptr (RnSafetensors) last = open_last (&run);
  g_assert_null (rn_safetensors_find (last, "optimizer/steps_and_part"));
}

typedef struct
{
  const char *name;
  const char *changes[4];
  const char *reason; /* in the message */
} Refusal;

static const Refusal refusals[] = {
  { "update", { SGD, WINDOWS_OF (4), NULL }, "memory.update is after_backward and was in_backward" },
  { "window", { SGD, WINDOWS_OF (2), IN_BACKWARD, NULL }, "cumulative_iters is 2 and was 4" },
  { "no-window", { SGD, PLAIN_HOOK, IN_BACKWARD, NULL }, "another optimizer hook began it" },
  { "optimizer",
    { "optimizer={type: AdamW, lr: 0.01}", PLAIN_HOOK, IN_BACKWARD, NULL },
    NULL }, /* the momentum is not taken, and with it goes what is in it */
};

static void
test_refused_resume (gconstpointer user_data)
{
  const Refusal *refusal = user_data;
  static const char *const changes[] = { SGD, WINDOWS_OF (4), IN_BACKWARD, NULL };
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = { 0 };

  run_until (&run, changes, 6);
  run_on (&run, refusal->changes, N_ITERS, &error);
  if (refusal->reason == NULL)
    {
      g_assert_no_error (error);
      return;
    }
  g_assert_nonnull (error);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, refusal->reason));
  g_assert_nonnull (strstr (error->message, "cannot be taken out again"));
  g_assert_nonnull (strstr (error->message, "what works"));
  /* the weights of before are not touched by a step */
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), <=, 1);
}

/* Gradients that wait in a checkpoint have no place; they are lost, as with other changes of a window. */
static void
test_other_direction (void)
{
  static const char *const after[] = { SGD, WINDOWS_OF (4), NULL };
  static const char *const in[] = { SGD, WINDOWS_OF (4), IN_BACKWARD, NULL };
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = { 0 };

  run_until (&run, after, 6);
  g_autoptr (RnSafetensors) file = open_last (&run);
  g_assert_true (has_prefix (file, "pending/"));
  run_on (&run, in, N_ITERS, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rn_runner_opt_step (run.training->runner), ==, 2);
}

/* ---- Hooks ---- */

static void
test_no_gradients (gconstpointer what)
{
  g_autofree char *hook =
      g_strdup_printf ("custom_hooks=[{type: ProbeHook, priority: LOWEST, %s: true}]", (const char *) what);
  const char *const changes[] = { SGD, PLAIN_HOOK, IN_BACKWARD, hook, NULL };
  g_autoptr (GError) error = NULL;
  g_auto (Run) run = { 0 };

  run_open (&run, changes, 2, FALSE);
  g_assert_false (rn_runner_run (run.training->runner, &error));
  g_assert_nonnull (strstr (error->message, "memory.update: in_backward keeps no gradients"));
  g_assert_nonnull (strstr (error->message, "what works: memory.update: after_backward"));
}

static void
drop_message (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
  if (level & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
    g_log_default_handler (domain, level, message, user_data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_default_handler (drop_message, NULL);
  rn_hooks_register ();
  small_detector_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_probe, NULL));
  data = small_detector_data ();
  for (gsize i = 0; i < G_N_ELEMENTS (optimizers); i++)
    {
      g_autofree char *path = g_strdup_printf ("/runner/update-in-backward/same-run/%d", (int) i);
      g_test_add_data_func (path, optimizers[i], test_same_run);
    }
  g_test_add_data_func ("/runner/update-in-backward/change/to-after", GINT_TO_POINTER (TRUE),
                        test_change_between_steps);
  g_test_add_data_func ("/runner/update-in-backward/change/to-in", GINT_TO_POINTER (FALSE),
                        test_change_between_steps);
  g_test_add_data_func ("/runner/update-in-backward/sums/2", GINT_TO_POINTER (2), test_window_sums);
  g_test_add_data_func ("/runner/update-in-backward/sums/4", GINT_TO_POINTER (4), test_window_sums);
  g_test_add_func ("/runner/update-in-backward/windows-of-the-hook", test_windows_of_the_hook);
  g_test_add_data_func ("/runner/update-in-backward/resume/first-window", GINT_TO_POINTER (2),
                        test_resume_inside);
  g_test_add_data_func ("/runner/update-in-backward/resume/later-window", GINT_TO_POINTER (7),
                        test_resume_inside);
  for (gsize i = 0; i < G_N_ELEMENTS (refusals); i++)
    {
      g_autofree char *path = g_strconcat ("/runner/update-in-backward/refused/", refusals[i].name, NULL);
      g_test_add_data_func (path, &refusals[i], test_refused_resume);
    }
  g_test_add_func ("/runner/update-in-backward/other-direction", test_other_direction);
  g_test_add_data_func ("/runner/update-in-backward/no-gradients/read", "reads", test_no_gradients);
  g_test_add_data_func ("/runner/update-in-backward/no-gradients/stats", "asks_for_stats", test_no_gradients);
  int result = g_test_run ();
  remove_tree (data);
  g_free (data);
  return result;
}
