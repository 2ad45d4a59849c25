/*
 * test-guarded-steps.c: trainings whose steps are decided on by the device: overflows of half precision and
 * the norm of the gradients. It must come to what the host decides, with a hook that makes it look ahead of
 * the step.
 */
#include "config.h"

#include "runner/checkpoint.h"
#include "runner/hook-class.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

#define N_ITERS 6

/* ---- hooks ---- */

typedef struct
{
  RnHook hook;
} PlainHook;

static gboolean
look (RnHook *hook, RnRunner *runner, GError **error)
{
  return TRUE;
}

/* What the log says of iterations that are over, by which nothing is asked that is not known yet. */
static double scales[N_ITERS], skipped[N_ITERS], norms[N_ITERS];

static void
note_last (RnRunner *runner, gint64 n_back)
{
  gint64 i = rn_runner_iter (runner) - 1;

  if (i < 0)
    return;
  scales[i] = rn_runner_log_mean (runner, "loss_scale", n_back);
  skipped[i] = rn_runner_log_mean (runner, "skipped", n_back);
  norms[i] = rn_runner_log_mean (runner, "grad_norm", n_back);
}

static gboolean
note_before (RnHook *hook, RnRunner *runner, GError **error)
{
  note_last (runner, 2); /* the one that begins has none yet */
  return TRUE;
}

static gboolean
note_end (RnHook *hook, RnRunner *runner, GError **error)
{
  note_last (runner, 1);
  return TRUE;
}

RN_HOOK_DEFINE (look, PlainHook, .name = "LookHook", .summary = "for tests", .before_step = look);
RN_HOOK_DEFINE (note, PlainHook, .name = "NoteHook", .summary = "for tests", .before_train_iter = note_before,
                .after_run = note_end);

/* ---- runs ---- */

/* What came of one. */
typedef struct
{
  Outcome outcome;
  double scales[N_ITERS], skipped[N_ITERS], norms[N_ITERS];
  gint64 opt_step;
  char *state, *counters; /* of the last checkpoint: the optimizer hook's, the run's */
  GBytes *tensors;
} Course;

static void
course_clear (Course *course)
{
  outcome_clear (&course->outcome);
  g_free (course->state);
  g_free (course->counters);
  g_clear_pointer (&course->tensors, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Course, course_clear)

static void
read_checkpoint (const char *dir, Course *course)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strdup_printf ("iter_%d.safetensors", N_ITERS);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  g_autoptr (GByteArray) all = g_byte_array_new ();

  g_assert_no_error (error);
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      const RnStoredTensor *tensor = rn_safetensors_get (file, i);
      g_byte_array_append (all, (const guint8 *) tensor->name, (guint) strlen (tensor->name));
      g_byte_array_append (all, tensor->data, (guint) tensor->bytes);
    }
  course->tensors = g_byte_array_free_to_bytes (g_steal_pointer (&all));
  course->state = g_strdup (rn_safetensors_metadata (file, "hook/Fp16OptimizerHook"));
  course->counters = g_strdup (rn_safetensors_metadata (file, RN_CHECKPOINT_COUNTERS));
}

/* @looks: the host decides. @logs: a logger looks at the outcome in the iteration; else it is known when the
 * next one begins. */
static void
run_course (Run run, gboolean looks, gboolean logs, Course *course)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);

  g_assert_no_error (error);
  run.n_iters = N_ITERS;
  run.more[0] = looks ? "custom_hooks=[{type: NoteHook}, {type: WatchHook}, {type: LookHook}]"
                      : "custom_hooks=[{type: NoteHook}, {type: WatchHook}]";
  run.more[1] = "checkpoint_config={interval: 6, by_epoch: false}";
  run.more[2] = logs ? "log_config={interval: 1, hooks: [{type: TextLoggerHook}]}" : "log_config={hooks: []}";
  g_autoptr (RnTraining) training = open_run (&run, dir);
  watched = &course->outcome;
  rn_runner_run (training->runner, &error);
  g_assert_no_error (error);
  watched = NULL;
  course->outcome.params = read_params (training->runner);
  course->opt_step = rn_runner_opt_step (training->runner);
  memcpy (course->scales, scales, sizeof scales);
  memcpy (course->skipped, skipped, sizeof skipped);
  memcpy (course->norms, norms, sizeof norms);
  read_checkpoint (dir, course);
  remove_tree (dir);
}

/* NaN where an iteration has no norm. */
static void
assert_same_values (const double *a, const double *b)
{
  for (int i = 0; i < N_ITERS; i++)
    g_assert_true (isnan (b[i]) ? isnan (a[i]) : a[i] == b[i]);
}

static void
assert_same_course (const Course *a, const Course *b)
{
  assert_same (&a->outcome, &b->outcome);
  assert_same_values (a->scales, b->scales);
  assert_same_values (a->skipped, b->skipped);
  assert_same_values (a->norms, b->norms);
  g_assert_cmpint (a->opt_step, ==, b->opt_step);
  g_assert_cmpstr (a->state, ==, b->state);
  g_assert_cmpstr (a->counters, ==, b->counters);
  g_assert_true (g_bytes_equal (a->tensors, b->tensors));
}

/* The scale is halved by each step that is skipped, and only by those. */
static void
assert_logic (const Course *course, double first_scale)
{
  for (int i = 0; i < N_ITERS; i++)
    {
      double before = i > 0 ? course->skipped[i - 1] : 0;
      g_assert_cmpfloat (course->scales[i], ==, ldexp (first_scale, -(int) before));
      g_assert_true (course->skipped[i] == before || course->skipped[i] == before + 1);
    }
  g_assert_cmpint (course->opt_step, ==, N_ITERS - (gint64) course->skipped[N_ITERS - 1]);
}

/* ---- tests ---- */

static const SimSchedule schedules[] = { SIM_LATE, SIM_EARLY, SIM_RANDOM };

/* @run in each schedule of the device, where it decides and where the host does; the last one in @course. */
static void
run_all (Run run, Course *course)
{
  g_auto (Course) by_host = { 0 };

  run_course (run, TRUE, TRUE, &by_host);
  for (gsize k = 0; k < G_N_ELEMENTS (schedules); k++)
    {
      run.sim.schedule = schedules[k];
      run.sim.seed = 5;
      course_clear (course);
      *course = (Course){ 0 };
      run_course (run, FALSE, k == 0, course);
      assert_same_course (course, &by_host);
    }
}

/* The first scale is a float's. Gradients of the losses are beyond 65504 with it, on the CPU as well. */
static void
test_overflow (void)
{
  const double first = 0x1p+30;
  Run run = { .sim = t4,
              .strategy = -1,
              .dtype = RN_F16,
              .more = { "", "", "", "fp16={opt_level: O2, loss_scale: {init_scale: 1073741824.0}}" } };
  g_auto (Course) course = { 0 }, cpu = { 0 };

  run_all (run, &course);
  assert_logic (&course, first);
  g_assert_cmpfloat (course.skipped[N_ITERS - 1], >=, 2);
  run.on_cpu = TRUE;
  run_course (run, FALSE, TRUE, &cpu);
  assert_logic (&cpu, first);
  assert_same_values (course.scales, cpu.scales);
  assert_same_values (course.skipped, cpu.skipped);
  g_assert_cmpstr (course.state, ==, cpu.state);
  g_assert_cmpstr (course.counters, ==, cpu.counters);
}

/* Adam counts steps that were done; the first of them comes behind two that were not. */
static void
test_overflow_of_adam (void)
{
  Run run = { .sim = t4,
              .strategy = -1,
              .dtype = RN_F16,
              .more = { "", "", "",
                        "fp16={opt_level: O2, loss_scale: {init_scale: 1073741824.0, backoff_factor: 1e-6}}",
                        "optimizer={type: Adam, lr: 0.001, weight_decay: 0.0001}" } };
  g_auto (Course) course = { 0 };

  run_all (run, &course);
  g_assert_cmpfloat (course.skipped[N_ITERS - 1], ==, 1);
  g_assert_cmpint (course.opt_step, ==, N_ITERS - 1);
}

/* The norm on the CPU is that of other roundings, which tests/graph bounds by far less than a thousandth. */
static void
test_clip (void)
{
  static const char *const clips[] = { "optimizer_config.grad_clip={max_norm: 0.5}",
                                       "optimizer_config.grad_clip={max_norm: 2, norm_type: inf}" };

  for (gsize i = 0; i < G_N_ELEMENTS (clips); i++)
    {
      Run run = { .sim = t4, .strategy = -1, .more = { "", "", "", clips[i] } };
      g_auto (Course) course = { 0 }, cpu = { 0 };

      run_all (run, &course);
      run.on_cpu = TRUE;
      run_course (run, FALSE, TRUE, &cpu);
      assert_close (&course.outcome, &cpu.outcome, loss_tolerance (RN_F32));
      g_assert_cmpint (course.opt_step, ==, N_ITERS);
      for (int k = 0; k < N_ITERS; k++)
        {
          g_assert_true (isnan (course.scales[k]));
          g_assert_cmpfloat (fabs (course.norms[k] / cpu.norms[k] - 1), <, 1e-3);
        }
    }
}

/* Both, and momentum that lies with the host: its copies are made for steps that are skipped, too. */
static void
test_together (void)
{
  Run run = { .sim = t4,
              .strategy = RN_STRATEGY_MOMENTUM_HOST,
              .dtype = RN_F16,
              .more = {
                  "", "", "", "optimizer_config.grad_clip={max_norm: 0.5}",
                  "fp16={opt_level: O2, loss_scale: {init_scale: 1073741824.0, growth_interval: 1}}" } };
  g_auto (Course) course = { 0 };

  run_all (run, &course);
  g_assert_cmpfloat (course.skipped[N_ITERS - 1], >=, 2);
  g_assert_cmpint (course.opt_step, ==, N_ITERS - (gint64) course.skipped[N_ITERS - 1]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  training_runs_begin ();
  g_assert_true (rn_hook_register (&rn_hook_desc_look, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_note, NULL));
  g_test_add_func ("/guarded-steps/overflow", test_overflow);
  g_test_add_func ("/guarded-steps/overflow-of-adam", test_overflow_of_adam);
  g_test_add_func ("/guarded-steps/clip", test_clip);
  g_test_add_func ("/guarded-steps/together", test_together);
  int result = g_test_run ();
  training_runs_end ();
  return result;
}
