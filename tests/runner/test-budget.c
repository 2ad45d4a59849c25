/* Predictions, the strategies that a budget chooses, and what a run that does not fit says: of a small
 * RetinaNet, by planning alone. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/budget.h"
#include "runner/config/config.h"
#include "runner/fit.h"
#include "tests/small-model.h"

#include <string.h>

#define N_BUDGETS 30
#define HEIGHT 64
#define WIDTH 96
#define MAX_CHANGES 6

static const RnShape train_shape = { RN_MODE_TRAIN, 2, HEIGHT, WIDTH };

static RnNode *
load (const char *const *changes)
{
  /* Two stages that train: few segments to try. */
  static const char *const basics[] = { "threads=1", "classes=[circle, square, triangle]",
                                        "model.backbone.frozen_stages=2", SMALL_MODEL,
                                        "optimizer_config.grad_clip=null" };
  const char *overrides[G_N_ELEMENTS (basics) + MAX_CHANGES + 1] = { NULL };
  g_autofree char *path = g_test_build_filename (G_TEST_DIST, "configs", "retinanet_shapes.yaml", NULL);
  g_autoptr (GError) error = NULL;

  memcpy (overrides, basics, sizeof basics);
  for (int i = 0; changes != NULL && changes[i] != NULL; i++)
    {
      g_assert_cmpint (i, <, MAX_CHANGES);
      overrides[G_N_ELEMENTS (basics) + (gsize) i] = changes[i];
    }
  RnNode *root = rn_config_load (path, overrides, &error);
  g_assert_no_error (error);
  return root;
}

/* With its model; not its programs. */
static RnJob *
open_job (const char *const *changes)
{
  g_autoptr (GError) error = NULL;
  RnJob *job = rn_job_new (load (changes), &error);

  g_assert_no_error (error);
  rn_job_open_model (job, &error);
  g_assert_no_error (error);
  return job;
}

static GArray *
training_shapes (void)
{
  GArray *shapes = g_array_new (FALSE, FALSE, sizeof (RnShape));

  g_array_append_val (shapes, train_shape);
  return shapes;
}

/* Planned as for a run. */
static gboolean
plan_job (RnJob *job, const GArray *shapes, GError **error)
{
  return rn_job_open_programs (job, shapes, TRUE, FALSE, error)
         && rn_programs_plan (job->programs, NULL, NULL, error);
}

static RnBudget *
try_all (const RnJob *job, const GArray *shapes)
{
  g_autoptr (GError) error = NULL;
  RnBudget *budget = rn_budget_new (job, shapes, NULL, NULL, &error);

  g_assert_no_error (error);
  return budget;
}

static const RnCandidate *
find (RnBudget *budget, guint64 bytes)
{
  const RnRoom room = { .bytes = bytes, .is_budget = TRUE };
  g_autoptr (GError) error = NULL;
  const RnCandidate *found = rn_budget_find (budget, &room, &error);

  g_assert_no_error (error);
  return found;
}

static const RnCandidate *
find_smallest (RnBudget *budget)
{
  const RnRoom room = { .is_budget = TRUE };
  g_autoptr (GError) error = NULL;
  const RnCandidate *smallest = rn_budget_smallest (budget, &room, &error);

  g_assert_no_error (error);
  return smallest;
}

static gboolean
has_key (const RnCandidate *candidate, const char *key)
{
  for (int i = 0; candidate->lines[i] != NULL; i++)
    if (g_str_has_prefix (candidate->lines[i], key))
      return TRUE;
  return FALSE;
}

/* ---- predictions ---- */

/* What is predicted for the file as it is, is what its plan needs; without offsets it is no more. */
static void
test_predict_same (void)
{
  static const char *const lines[] = { "memory.head=depth_first", "memory.update=in_backward",
                                       "model.backbone.with_cp=true", NULL };
  g_autoptr (GArray) shapes = training_shapes ();
  RnShape infer = { RN_MODE_INFER, 1, HEIGHT, WIDTH };
  g_array_append_val (shapes, infer);

  for (int with = 0; with < 2; with++)
    {
      g_autoptr (RnJob) job = open_job (NULL), real = open_job (with ? lines : NULL);
      g_autoptr (RnPredictor) predictor = rn_predictor_new (job, shapes);
      const char *const *set = with ? lines : NULL;
      RnPrediction bound, largest, all;
      g_autoptr (GError) error = NULL;

      rn_predict (predictor, set, 0, RN_PREDICT_BOUND, &bound, &error);
      g_assert_no_error (error);
      rn_predict (predictor, set, 0, RN_PREDICT_LARGEST, &largest, &error);
      g_assert_no_error (error);
      rn_predict (predictor, set, 0, RN_PREDICT_ALL, &all, &error);
      g_assert_no_error (error);
      plan_job (real, shapes, &error);
      g_assert_no_error (error);

      RnMemory memory = rn_programs_memory (real->programs);
      g_assert_cmpmem (&all.memory, sizeof all.memory, &memory, sizeof memory);
      g_assert_cmpuint (bound.memory.total_bytes, <=, largest.memory.total_bytes);
      g_assert_cmpuint (largest.memory.total_bytes, <=, all.memory.total_bytes);
      g_assert_cmpint (all.work.recompute > 0, ==, with);
      g_assert_cmpuint (all.memory.grad_bytes == 0, ==, with);
    }
}

/* A batch of four needs what a file with four needs. */
static void
test_predict_batch (void)
{
  g_autoptr (RnJob) job = open_job (NULL), real = open_job (NULL);
  g_autoptr (GArray) shapes = training_shapes (), large = training_shapes ();
  g_autoptr (RnPredictor) predictor = rn_predictor_new (job, shapes);
  g_autoptr (GError) error = NULL;
  RnPrediction prediction;

  g_array_index (large, RnShape, 0).n = 4;
  rn_predict (predictor, NULL, 4, RN_PREDICT_ALL, &prediction, &error);
  g_assert_no_error (error);
  plan_job (real, large, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (prediction.memory.total_bytes, ==, rn_programs_memory (real->programs).total_bytes);
}

/* A line that is refused in a file is refused here, and the error says why. */
static void
test_predict_refused (void)
{
  static const char *const clipped[] = { "memory.update=in_backward",
                                         "optimizer_config.grad_clip={max_norm: 1}", NULL };
  static const char *const unknown[] = { "memory.haed=depth_first", NULL };
  g_autoptr (RnJob) job = open_job (NULL);
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnPredictor) predictor = rn_predictor_new (job, shapes);
  g_autoptr (GError) error = NULL;
  RnPrediction prediction;

  g_assert_false (rn_predict (predictor, clipped, 0, RN_PREDICT_BOUND, &prediction, &error));
  g_assert_nonnull (strstr (error->message, "grad_clip"));
  g_clear_error (&error);
  g_assert_false (rn_predict (predictor, unknown, 0, RN_PREDICT_BOUND, &prediction, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY);
}

/* ---- a budget ---- */

/* The plan that a run with this budget gets, against what was promised. */
static void
check_answer (const RnCandidate *answer, guint64 bytes)
{
  g_autofree char *line = g_strdup_printf ("memory.budget=%" G_GUINT64_FORMAT, bytes);
  const char *const changes[] = { line, NULL };
  g_autoptr (RnJob) job = open_job (changes);
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (GError) error = NULL;

  plan_job (job, shapes, &error);
  g_assert_no_error (error);
  RnMemory memory = rn_programs_memory (job->programs);
  g_assert_cmpuint (memory.total_bytes, ==, answer->prediction.memory.total_bytes);
  const RnPlan *plan = rn_programs_get_plan (job->programs, train_shape, &error);
  g_assert_no_error (error);
  g_autofree char *fault = rn_plan_check (plan);
  g_assert_cmpstr (fault, ==, NULL);
}

static void
test_monotone (void)
{
  g_autoptr (RnJob) job = open_job (NULL);
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnBudget) budget = try_all (job, shapes);
  guint64 least = find_smallest (budget)->prediction.memory.total_bytes;
  const RnCandidate *last = NULL;
  int n_answers = 0;

  const RnCandidate *base = find (budget, G_MAXUINT64);
  guint64 most = base->prediction.memory.total_bytes;
  g_assert_cmpuint (g_strv_length (base->lines), ==, 0);
  g_assert_true (base == rn_budget_base (budget));
  g_assert_cmpuint (least, <, most);
  for (guint64 i = 0; i < N_BUDGETS; i++)
    {
      guint64 bytes = least + (most - least) * i / (N_BUDGETS - 1);
      const RnCandidate *answer = find (budget, bytes);
      g_assert_nonnull (answer);
      g_assert_true (answer->is_exact);
      g_assert_cmpuint (answer->prediction.memory.total_bytes, <=, bytes);
      if (last != NULL)
        g_assert_cmpfloat (answer->seconds, <=, last->seconds);
      if (answer != last && (n_answers++ < 3))
        check_answer (answer, bytes);
      last = answer;
    }
  g_assert_true (last == base);
  g_assert_cmpint (n_answers, >=, 4); /* else the budgets say little */
  g_assert_null (find (budget, least - 1));
}

/* The number in the message works, and one byte less does not. */
static void
test_infeasible (void)
{
  static const char *const tiny[] = { "memory.budget=1MiB", NULL };
  static const char words[] = "--set memory.budget=";
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnJob) job = open_job (tiny);
  g_autoptr (GError) error = NULL;

  g_assert_false (rn_job_open_programs (job, shapes, TRUE, FALSE, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_test_message ("%s", error->message);
  const char *number = strstr (error->message, words);
  g_assert_nonnull (number);
  guint64 least = g_ascii_strtoull (number + strlen (words), NULL, 10);

  for (int less = 0; less < 2; less++)
    {
      g_autofree char *line = g_strdup_printf ("memory.budget=%" G_GUINT64_FORMAT, least - (guint64) less);
      const char *const changes[] = { line, NULL };
      g_autoptr (RnJob) again = open_job (changes);
      g_autoptr (GError) local = NULL;
      g_assert_cmpint (plan_job (again, shapes, &local), ==, !less);
      if (less)
        g_assert_error (local, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
      else
        g_assert_cmpuint (rn_programs_memory (again->programs).total_bytes, ==, least);
    }
}

/* What the file says is no choice of the planner's, be it on or off. */
static void
test_fixed (void)
{
  static const char *const changes[] = { "memory.offload=none", "model.backbone.with_cp=true",
                                         "memory.update=after_backward", NULL };
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnJob) open = open_job (NULL), job = open_job (changes);
  g_autoptr (RnBudget) free_budget = try_all (open, shapes), budget = try_all (job, shapes);
  const RnCandidate *smallest = find_smallest (budget);

  g_assert_false (has_key (smallest, "memory.offload"));
  g_assert_false (has_key (smallest, "memory.update"));
  g_assert_false (has_key (smallest, "model.backbone.with_cp"));
  g_assert_cmpint (rn_budget_base (budget)->prediction.work.recompute, >, 0);
  g_assert_cmpuint (rn_budget_count (budget), <, rn_budget_count (free_budget));
  g_assert_true (has_key (find_smallest (free_budget), "memory.offload"));
}

/* Chosen lines stand in the configuration, so that what a run saves can be run again without a search. */
static void
test_lines_are_set (void)
{
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnJob) probe = open_job (NULL);
  g_autoptr (RnBudget) budget = try_all (probe, shapes);
  const RnCandidate *smallest = find_smallest (budget);
  g_autofree char *line =
      g_strdup_printf ("memory.budget=%" G_GSIZE_FORMAT, smallest->prediction.memory.total_bytes);
  const char *const changes[] = { line, NULL };
  g_autoptr (RnJob) job = open_job (changes);
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (g_strv_length (smallest->lines), >, 0);
  plan_job (job, shapes, &error);
  g_assert_no_error (error);
  g_assert_nonnull (job->chosen);
  g_assert_cmpuint (g_strv_length (job->chosen->lines), ==, g_strv_length (smallest->lines));
  for (int i = 0; smallest->lines[i] != NULL; i++)
    {
      g_autofree char *key = g_strndup (smallest->lines[i], strcspn (smallest->lines[i], "="));
      g_assert_cmpstr (job->chosen->lines[i], ==, smallest->lines[i]);
      g_assert_false (rn_node_is_null (rn_node_path (job->root, key)));
    }

  g_autofree char *saved = rn_config_dump (job->root, FALSE);
  RnNode *root = rn_config_load_text (saved, "saved", NULL, &error);
  g_assert_no_error (error);
  g_autoptr (RnJob) again = rn_job_new (root, &error);
  g_assert_no_error (error);
  g_assert_true (rn_job_open_model (again, &error) && plan_job (again, shapes, &error));
  g_assert_cmpuint (rn_programs_memory (again->programs).total_bytes, ==,
                    rn_programs_memory (job->programs).total_bytes);
}

static void
test_arguments (void)
{
  char *lines[] = { (char *) "memory.head=depth_first", (char *) "model.backbone.with_cp={stages: [1, 2]}",
                    (char *) "memory.offload=idle>16", NULL };
  g_autofree char *text = rn_lines_to_arguments (lines), *none = rn_lines_to_arguments (lines + 3);

  g_assert_cmpstr (text, ==,
                   "--set memory.head=depth_first 'model.backbone.with_cp={stages: [1, 2]}' "
                   "'memory.offload=idle>16'");
  g_assert_cmpstr (none, ==, "");
}

/* ---- what is free ---- */

static void
set_free (guint64 bytes)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, bytes);
  g_setenv ("RN_FREE_MEMORY", text, TRUE);
}

/* Host memory is the same memory, so waiting there is no way out. */
static void
test_auto (void)
{
  static const char *const changes[] = { "memory.budget=auto", NULL };
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnJob) plain = open_job (NULL), job = open_job (changes);
  g_autoptr (GError) error = NULL;

  plan_job (plain, shapes, &error);
  g_assert_no_error (error);
  set_free (rn_programs_memory (plain->programs).total_bytes); /* of which nine tenths may be taken */
  plan_job (job, shapes, &error);
  g_assert_no_error (error);
  RnMemory memory = rn_programs_memory (job->programs);
  g_assert_cmpuint (g_strv_length (job->chosen->lines), >, 0);
  g_assert_cmpuint (memory.total_bytes + memory.host_bytes, <=, job->budget_bytes);
  g_unsetenv ("RN_FREE_MEMORY");
}

/* The argument behind "--set", without its quotes. (transfer full) */
static char **
read_arguments (const char *message)
{
  const char *start = strstr (message, "--set ");
  g_autoptr (GError) error = NULL;
  char **lines = NULL;

  g_assert_nonnull (start);
  g_shell_parse_argv (start + strlen ("--set "), NULL, &lines, &error);
  g_assert_no_error (error);
  return lines;
}

/* A run that needs more than is free is refused; with the lines of the message it fits. */
static void
test_fit (void)
{
  g_autoptr (GArray) shapes = training_shapes ();
  g_autoptr (RnJob) job = open_job (NULL);
  g_autoptr (GError) error = NULL;

  plan_job (job, shapes, &error);
  g_assert_no_error (error);
  gsize total = rn_programs_memory (job->programs).total_bytes;
  set_free (total + 100);
  g_assert_true (rn_job_check_fit (job, 100, &error));
  g_assert_false (rn_job_check_fit (job, 101, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_test_message ("%s", error->message);

  g_auto (GStrv) lines = read_arguments (error->message);
  g_clear_error (&error);
  g_autoptr (RnJob) changed = open_job ((const char *const *) lines);
  plan_job (changed, shapes, &error);
  g_assert_no_error (error);
  g_assert_true (rn_job_check_fit (changed, 101, &error));
  g_unsetenv ("RN_FREE_MEMORY");
}

/* Where no line is enough, a smaller batch may be. */
static void
test_fit_batch (void)
{
  g_autoptr (GArray) shapes = training_shapes (), small = training_shapes ();
  g_autoptr (RnJob) job = open_job (NULL);
  g_autoptr (RnPredictor) predictor = rn_predictor_new (job, shapes);
  g_autoptr (RnBudget) budget = try_all (job, shapes);
  const RnRoom room = { .counts_host = TRUE };
  g_autoptr (GError) error = NULL;

  const RnCandidate *smallest = rn_budget_smallest (budget, &room, &error);
  g_assert_no_error (error);
  plan_job (job, shapes, &error);
  g_assert_no_error (error);
  set_free (rn_room_needed (&room, &smallest->prediction.memory) - 1);
  g_assert_false (rn_job_check_fit (job, 0, &error));
  g_assert_error (error, RN_DEVICE_ERROR, RN_DEVICE_ERROR_MEMORY);
  g_test_message ("%s", error->message);

  g_auto (GStrv) lines = read_arguments (error->message);
  g_clear_error (&error);
  g_assert_cmpstr (lines[0], ==, "data.samples_per_gpu=1");
  g_array_index (small, RnShape, 0).n = 1;
  g_autoptr (RnJob) changed = open_job ((const char *const *) lines);
  plan_job (changed, small, &error);
  g_assert_no_error (error);
  g_assert_true (rn_job_check_fit (changed, 0, &error));

  set_free (1);
  g_assert_false (rn_job_check_fit (job, 0, &error));
  g_assert_null (strstr (error->message, "samples_per_gpu=1"));
  g_unsetenv ("RN_FREE_MEMORY");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/predict/same", test_predict_same);
  g_test_add_func ("/predict/batch", test_predict_batch);
  g_test_add_func ("/predict/refused", test_predict_refused);
  g_test_add_func ("/budget/monotone", test_monotone);
  g_test_add_func ("/budget/infeasible", test_infeasible);
  g_test_add_func ("/budget/fixed", test_fixed);
  g_test_add_func ("/budget/lines-are-set", test_lines_are_set);
  g_test_add_func ("/budget/arguments", test_arguments);
  g_test_add_func ("/budget/auto", test_auto);
  g_test_add_func ("/fit/lines", test_fit);
  g_test_add_func ("/fit/batch", test_fit_batch);
  return g_test_run ();
}
