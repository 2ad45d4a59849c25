/*
 * A run of 30 iterations, stopped after any of them and taken up by a new run, ends in the bits of a run that
 * was left alone, and logs the same losses and learning rates on the way: with and without accumulation,
 * dynamic loss scale, running mean and steps in the backward pass, counted in epochs and in iterations. Real
 * data, loaders and programs. Then with what saves memory: half precision, momentum in bf16 or in host
 * memory, offload, with_cp, a depth-first head, and what a budget chooses.
 *
 * 16 kinds of run times 30 iterations; a tenth of them unless RN_TEST_LONG=1.
 */
#include "config.h"

#include "runner/base/signals.h"
#include "runner/checkpoint.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#define N_ITERS 30

enum
{
  ACCUMULATES = 1 << 0,
  SCALES = 1 << 1,
  BY_ITERATION = 1 << 2,
  HAS_EMA = 1 << 3,
  N_KINDS = 1 << 4,
  USES_ADAM = 1 << 4, /* some more, beside the kinds */
  IN_BACKWARD = 1 << 5,
  BY_FP16_LINE = 1 << 6, /* with SCALES: fp16 and the plain hook of the kind */
  MOMENTUM_BF16 = 1 << 7,
  MOMENTUM_HOST = 1 << 8,
  DEPTH_FIRST = 1 << 9,
  OFFLOADS = 1 << 10,
  IS_RESNET = 1 << 11, /* has residual blocks */
  WITH_CP = 1 << 12,
  HAS_BUDGET = 1 << 13, /* of four fifths */
};

static char *data;

/* ---- A hook that stops the run, and makes gradients overflow ---- */

typedef struct
{
  RnHook hook;
  gint64 stop_at;
  gboolean by_signal, overflows;
} StopHook;

static const RnKeySpec stop_keys[] = {
  RN_KEY (StopHook, stop_at, RN_KEY_INT, "0", "finished iterations"),
  RN_KEY (StopHook, by_signal, RN_KEY_BOOL, "false", "SIGTERM"),
  RN_KEY (StopHook, overflows, RN_KEY_BOOL, "false", "infinite gradients in some iterations"),
  RN_KEY_END,
};

/* 1e38 times the smallest loss scale is infinite. The second one is in a window's middle. */
static gboolean
spoil (RnHook *hook, RnRunner *runner, GError **error)
{
  gint64 i = rn_runner_iter (runner);
  if (((StopHook *) hook)->overflows && (i == 3 || i == 17 || i == 18))
    rn_runner_set_loss_weight (runner, 1e38);
  return TRUE;
}

static gboolean
stop_run (RnHook *hook, RnRunner *runner, GError **error)
{
  const StopHook *self = (const StopHook *) hook;
  if (rn_runner_iter (runner) + 1 != self->stop_at)
    return TRUE;
  if (self->by_signal)
    raise (SIGTERM);
  else
    rn_runner_stop (runner);
  return TRUE;
}

RN_HOOK_DEFINE (stop, StopHook, .name = "StopHook", .summary = "for tests", .keys = stop_keys,
                .before_train_iter = spoil, .after_train_iter = stop_run);

/* ---- One run ---- */

static const char *
optimizer_hook (int kind)
{
  switch (kind & (ACCUMULATES | (kind & BY_FP16_LINE ? 0 : SCALES)))
    {
    case ACCUMULATES:
      return "GradientCumulativeOptimizerHook, cumulative_iters: 4";
    case SCALES:
      return "Fp16OptimizerHook, loss_scale: {init_scale: 1024, growth_interval: 3}";
    case ACCUMULATES | SCALES:
      return "GradientCumulativeFp16OptimizerHook, cumulative_iters: 4, loss_scale: {init_scale: 1024, "
             "growth_interval: 3}";
    default:
      return "OptimizerHook";
    }
}

typedef struct
{
  char *dir;        /* owned */
  GPtrArray *lines; /* of the log: what does not depend on the clock */
  char *last;       /* path of the newest checkpoint */
} Run;

static void
run_clear (Run *run)
{
  remove_tree (run->dir);
  g_free (run->dir);
  g_free (run->last);
  g_ptr_array_unref (run->lines);
}

/* The log is put away: the next run's has the same name if it starts within the same second. */
static void
take_lines (Run *run)
{
  g_autoptr (GPtrArray) json = fake_run_json_lines (run->dir), lines = fake_run_timeless_lines (run->dir);
  g_autofree char *name = fake_run_files (run->dir, ".log.json"),
                  *path = g_build_filename (run->dir, name, NULL);

  g_assert_cmpuint (json->len, ==, lines->len);
  for (guint i = 0; i < json->len; i++)
    if (strstr (g_ptr_array_index (json, i), "\"mode\": \"resume\"") == NULL)
      g_ptr_array_add (run->lines, g_strdup (g_ptr_array_index (lines, i)));
  g_assert_cmpint (g_unlink (path), ==, 0);
}

static void
find_last (Run *run)
{
  g_autofree char *list = fake_run_read_list (run->dir), *name = g_strndup (list, strcspn (list, "\n"));
  g_free (run->last);
  run->last = g_build_filename (run->dir, name, NULL);
}

static gsize
planned_bytes (const RnTraining *training)
{
  return rn_programs_memory (training->job->programs).total_bytes;
}

/* The kind's lines under `model:` and `memory:`, but the budget. */
static void
add_memory_lines (GPtrArray *changes, int kind)
{
  static const char *const resnet[] = { SMALL_RESNET };
  const struct
  {
    int bit;
    const char *on, *off;
  } lines[] = {
    { IN_BACKWARD, "memory.update=in_backward", "memory.update=after_backward" },
    { IN_BACKWARD | DEPTH_FIRST, "memory.head=depth_first", "memory.head=all_levels" },
    { MOMENTUM_BF16, "memory.momentum=bf16", NULL },
    { MOMENTUM_HOST, "memory.momentum=host", NULL },
    { OFFLOADS, "memory.offload=idle>2", NULL },
    { WITH_CP, "model.backbone.with_cp=true", NULL },
  };

  if (kind & IS_RESNET)
    for (gsize i = 0; i < G_N_ELEMENTS (resnet); i++)
      g_ptr_array_add (changes, (gpointer) resnet[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++)
    if ((kind & lines[i].bit) || lines[i].off != NULL)
      g_ptr_array_add (changes, (gpointer) (kind & lines[i].bit ? lines[i].on : lines[i].off));
}

/* Opens @run with @changes and a budget that the plain run does not fit in. */
static RnTraining *
train_in_budget (Run *run, GPtrArray *changes, gboolean is_resume)
{
  RnTraining *plain =
      small_detector_training (data, run->dir, (const char *const *) changes->pdata, TRUE, NULL);
  gsize budget = planned_bytes (plain) / 5 * 4;
  g_autofree char *line = g_strdup_printf ("memory.budget=%" G_GSIZE_FORMAT, budget);

  rn_training_free (plain);
  g_ptr_array_insert (changes, (int) changes->len - 1, line);
  RnTraining *training =
      small_detector_training (data, run->dir, (const char *const *) changes->pdata, is_resume, NULL);
  g_assert_cmpuint (planned_bytes (training), <=, budget);
  return training;
}

/* Goes on with what is in the folder, if anything is. @stop_at 0: to the end. */
static void
go (Run *run, int kind, gint64 stop_at)
{
  g_autoptr (GError) error = NULL;
  gboolean by_iter = (kind & BY_ITERATION) != 0, is_resume = run->last != NULL;
  g_autofree char *optimizer =
                      g_strdup_printf ("optimizer_config={type: %s, grad_clip: %s}", optimizer_hook (kind),
                                       kind & IN_BACKWARD ? "null" : "{max_norm: 5, norm_type: 2}"),
                  *hooks = g_strdup_printf (
                      "custom_hooks=[{type: StopHook, stop_at: %d, by_signal: %s, overflows: %s}%s]",
                      (int) stop_at, stop_at % 2 == 0 ? "true" : "false", kind & SCALES ? "true" : "false",
                      kind & HAS_EMA ? ", {type: EMAHook, momentum: 0.05, interval: 2, begin_iter: 2}" : "");
  const char *const lines[] = {
    optimizer,
    hooks,
    by_iter ? "runner={type: IterBasedRunner, max_iters: 30}"
            : "runner={type: EpochBasedRunner, max_epochs: 3}",
    by_iter ? "lr_config={policy: step, by_epoch: false, step: [20], warmup: linear, warmup_iters: 7}"
            : "lr_config={policy: step, step: [2], warmup: linear, warmup_iters: 7}",
    by_iter ? "evaluation={interval: 12, by_epoch: false}" : "evaluation={interval: 1}",
    kind & USES_ADAM ? "optimizer={type: AdamW, lr: 0.01, amsgrad: true}"
                     : "optimizer={type: SGD, lr: 0.05, momentum: 0.9, dampening: 0.1}",
    kind & BY_FP16_LINE ? "fp16={opt_level: O2, loss_scale: {init_scale: 1024, growth_interval: 3}}"
                        : "fp16=null",
  };
  g_autoptr (GPtrArray) changes = g_ptr_array_new ();

  for (gsize i = 0; i < G_N_ELEMENTS (lines); i++)
    g_ptr_array_add (changes, (gpointer) lines[i]);
  add_memory_lines (changes, kind);
  g_ptr_array_add (changes, NULL);
  /* A ResNet would ask for pretrained weights otherwise. */
  gboolean is_resumed = is_resume || (kind & IS_RESNET) != 0;
  g_autoptr (RnTraining) training =
      kind & HAS_BUDGET
          ? train_in_budget (run, changes, is_resumed)
          : small_detector_training (data, run->dir, (const char *const *) changes->pdata, is_resumed, NULL);
  if (is_resume && !rn_runner_resume (training->runner, NULL, &error))
    g_error ("%s", error->message);
  rn_signals_install ();
  gboolean is_ok = rn_runner_run (training->runner, &error);
  rn_signals_remove ();
  g_assert_no_error (error);
  g_assert_true (is_ok);
  g_assert_cmpint (rn_runner_iter (training->runner), ==, stop_at > 0 ? stop_at : N_ITERS);
  take_lines (run);
  find_last (run);
}

static void
run_init (Run *run)
{
  g_autoptr (GError) error = NULL;
  run->dir = g_dir_make_tmp ("rn-matrix-XXXXXX", &error);
  g_assert_no_error (error);
  run->lines = g_ptr_array_new_with_free_func (g_free);
  run->last = NULL;
}

/* ---- Comparisons ---- */

static RnSafetensors *
open_file (const char *path)
{
  g_autoptr (GError) error = NULL;
  RnSafetensors *file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  g_assert_true (rn_safetensors_verify (file, &error));
  return file;
}

static guint
count_tensors (const RnSafetensors *file, const char *prefix)
{
  guint n = 0;
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    n += g_str_has_prefix (rn_safetensors_get (file, i)->name, prefix);
  return n;
}

/*
 * Weights, momentum and the like, running mean, pending gradients; and scaler, counts of the mean, counters.
 * @was_over: there was no iteration left, and so no newer checkpoint than the one that still owes the last
 * evaluation.
 */
static void
assert_same_state (const char *path, const char *expected_path, gboolean was_over)
{
  g_autoptr (RnSafetensors) a = open_file (path), b = open_file (expected_path);
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (b, "hook/");

  g_assert_cmpuint (rn_safetensors_size (a), ==, rn_safetensors_size (b));
  for (guint i = 0; i < rn_safetensors_size (a); i++)
    {
      const RnStoredTensor *x = rn_safetensors_get (a, i), *y = rn_safetensors_find (b, x->name);
      g_assert_nonnull (y);
      if (x->bytes != y->bytes || memcmp (x->data, y->data, x->bytes) != 0)
        g_error ("%s: %s differs", path, x->name);
    }
  g_ptr_array_add (keys, (gpointer) RN_CHECKPOINT_COUNTERS);
  for (guint i = 0; i < keys->len; i++)
    if (strstr (g_ptr_array_index (keys, i), "Logger") == NULL /* they know times */
        && !(was_over && g_str_equal (g_ptr_array_index (keys, i), "hook/EvalHook")))
      g_assert_cmpstr (rn_safetensors_metadata (a, g_ptr_array_index (keys, i)), ==,
                       rn_safetensors_metadata (b, g_ptr_array_index (keys, i)));
}

static void
assert_same_lines (const GPtrArray *lines, const GPtrArray *expected)
{
  for (guint i = 0; i < MIN (lines->len, expected->len); i++)
    g_assert_cmpstr (g_ptr_array_index (lines, i), ==, g_ptr_array_index (expected, i));
  if (lines->len < expected->len)
    g_error ("a line is missing: %s", (char *) g_ptr_array_index (expected, lines->len));
  g_assert_cmpuint (lines->len, ==, expected->len);
}

static guint
count_weights (const RnSafetensors *file)
{
  return count_tensors (file, "backbone.") + count_tensors (file, "neck.")
         + count_tensors (file, "bbox_head.");
}

static void
assert_stopped_file (const char *path, int kind, gint64 at)
{
  g_autoptr (RnSafetensors) file = open_file (path);
  guint n_weights = count_weights (file);
  gboolean is_open = (kind & ACCUMULATES) != 0 && at % 4 != 0 && at < N_ITERS;

  g_assert_cmpuint (count_tensors (file, "ema/"), ==, (kind & HAS_EMA) != 0 && at > 2 ? n_weights : 0);
  g_assert_cmpint (count_tensors (file, "pending/") > 0, ==, is_open && !(kind & IN_BACKWARD));
  g_assert_cmpint (count_tensors (file, "optimizer/steps_and_part"), ==,
                   is_open && (kind & IN_BACKWARD) != 0);
}

/* ---- The matrix ---- */

static Run straight;
static int straight_kind = -1;

/* One run serves all that are compared with it. */
static void
run_straight (int kind)
{
  if (straight_kind == kind)
    return;
  if (straight_kind >= 0)
    run_clear (&straight);
  run_init (&straight);
  go (&straight, kind, 0);
  g_assert_cmpuint (straight.lines->len, >=, N_ITERS);
  straight_kind = kind;
}

static void
check_stop (int kind, gint64 at)
{
  Run run;

  run_straight (kind);
  g_test_message ("stopped after iteration %d", (int) at);
  run_init (&run);
  go (&run, kind, at);
  assert_stopped_file (run.last, kind, at);
  go (&run, kind, 0); /* after the last iteration too: a signal cuts the last evaluation off */
  assert_same_lines (run.lines, straight.lines);
  assert_same_state (run.last, straight.last, at == N_ITERS);
  run_clear (&run);
}

/* What a kind has is really there. */
static void
assert_straight_file (int kind)
{
  g_autoptr (RnSafetensors) file = open_file (straight.last);
  guint n_weights = count_weights (file);
  const char *state = kind & USES_ADAM ? "exp_avg_sq/" : "momentum/";

  if (!(kind & IS_RESNET))
    {
      g_assert_cmpuint (n_weights, ==, 9);
      g_assert_cmpuint (count_tensors (file, state), ==, 7);
    }
  g_assert_cmpuint (count_tensors (file, state), >, 0);
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    if (g_str_has_prefix (rn_safetensors_get (file, i)->name, state))
      g_assert_cmpstr (rn_safetensors_get (file, i)->type, ==, kind & MOMENTUM_BF16 ? "BF16" : "F32");
  g_assert_cmpuint (count_tensors (file, "ema/"), ==, kind & HAS_EMA ? n_weights : 0);
}

static void
test_kind (gconstpointer user_data)
{
  int kind = GPOINTER_TO_INT (user_data);
  gboolean is_long = g_strcmp0 (g_getenv ("RN_TEST_LONG"), "1") == 0;

  run_straight (kind);
  assert_straight_file (kind);
  /* Spread: 7 has no factor in common with 30, and no two kinds begin at the same one. */
  gint64 n = is_long ? N_ITERS : 3;
  for (gint64 i = 0; i < n; i++)
    check_stop (kind, is_long ? i + 1 : (kind * 7 + i * 10) % N_ITERS + 1);
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
  /* Overflows are warned of, and 96 runs say what they do. */
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_default_handler (drop_message, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_stop, NULL));
  small_detector_register ();
  data = small_detector_data ();
  for (int kind = 0; kind < N_KINDS; kind++)
    {
      g_autofree char *name =
          g_strdup_printf ("/resume-matrix/%s%s%s%s", kind & BY_ITERATION ? "iterations" : "epochs",
                           kind & ACCUMULATES ? "-accumulation" : "", kind & SCALES ? "-scale" : "",
                           kind & HAS_EMA ? "-ema" : "");
      g_test_add_data_func (name, GINT_TO_POINTER (kind), test_kind);
    }
  g_test_add_data_func ("/resume-matrix/adam/epochs",
                        GINT_TO_POINTER (USES_ADAM | ACCUMULATES | SCALES | HAS_EMA), test_kind);
  g_test_add_data_func ("/resume-matrix/in-backward/epochs",
                        GINT_TO_POINTER (IN_BACKWARD | ACCUMULATES | HAS_EMA), test_kind);
  g_test_add_data_func ("/resume-matrix/in-backward/adam",
                        GINT_TO_POINTER (IN_BACKWARD | USES_ADAM | BY_ITERATION), test_kind);
  g_test_add_data_func ("/resume-matrix/fp16-line/epochs",
                        GINT_TO_POINTER (BY_FP16_LINE | SCALES | ACCUMULATES | HAS_EMA), test_kind);
  g_test_add_data_func ("/resume-matrix/fp16-line/iterations",
                        GINT_TO_POINTER (BY_FP16_LINE | SCALES | ACCUMULATES | BY_ITERATION), test_kind);
  g_test_add_data_func ("/resume-matrix/adam/iterations", GINT_TO_POINTER (USES_ADAM | BY_ITERATION),
                        test_kind);
  const int half = BY_FP16_LINE | SCALES | ACCUMULATES;
  g_test_add_data_func ("/resume-matrix/momentum-bf16", GINT_TO_POINTER (MOMENTUM_BF16 | half | HAS_EMA),
                        test_kind);
  g_test_add_data_func ("/resume-matrix/momentum-host",
                        GINT_TO_POINTER (MOMENTUM_HOST | USES_ADAM | BY_ITERATION | IN_BACKWARD), test_kind);
  g_test_add_data_func ("/resume-matrix/offload",
                        GINT_TO_POINTER (OFFLOADS | MOMENTUM_HOST | ACCUMULATES | HAS_EMA), test_kind);
  g_test_add_data_func ("/resume-matrix/with-cp",
                        GINT_TO_POINTER (IS_RESNET | WITH_CP | DEPTH_FIRST | MOMENTUM_BF16 | half),
                        test_kind);
  g_test_add_data_func ("/resume-matrix/budget", GINT_TO_POINTER (IS_RESNET | HAS_BUDGET | ACCUMULATES),
                        test_kind);
  int result = g_test_run ();
  if (straight_kind >= 0)
    run_clear (&straight);
  remove_tree (data);
  g_free (data);
  return result;
}
