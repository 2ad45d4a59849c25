/* test-conv-stored.c: engines that were chosen by measurement are taken again, on the simulated device. */
#include "config.h"

#include "kernels/cuda/conv-graph.h"
#include "kernels/cuda/plan-store.h"
#include "tests/gpu/conv-case.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/sim/sim.h"
#include "tests/tree.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct
{
  char *folder, *run, *cache;
  GString *log;
  guint handler;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->folder = g_dir_make_tmp ("conv-stored-XXXXXX", &error);
  g_assert_no_error (error);
  fixture->run = g_build_filename (fixture->folder, "run", "plans.jsonl", NULL);
  fixture->cache = g_build_filename (fixture->folder, "cache", "plans.jsonl", NULL);
  fixture->log = g_string_new (NULL);
  fixture->handler = log_begin (fixture->log);
  start ("t4");
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  log_end (fixture->handler);
  g_string_free (fixture->log, TRUE);
  remove_tree (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->run);
  g_free (fixture->cache);
  g_assert_cmpstr (sim_first_fault (), ==, NULL);
}

static guint
n_warnings (const Fixture *fixture, const char *part)
{
  guint n = 0;

  for (const char *at = strstr (fixture->log->str, part); at != NULL; at = strstr (at + 1, part))
    n++;
  return n;
}

/*
 * A process that plans the problem twice, measures and saves. Returns what it chose; *@is_stored: it measured
 * nothing for it. (transfer full)
 */
static char *
run_process (const Fixture *fixture, const char *run, const char *cache, gboolean *is_stored)
{
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);
  g_auto (Case) c;

  sim_cudnn_forget ();
  case_init (&c, &p, FALSE);
  g_autoptr (RnConvLibrary) library = library_new (&c, FALSE, run, cache);
  g_autoptr (RnConvPlan) plan = plan_new (library, &p), again = plan_new (library, &p);
  assert_ok (library, rn_conv_plan_measure (plan, &c.pointers, LIMIT));
  assert_ok (library, rn_conv_plan_measure (again, &c.pointers, LIMIT));
  *is_stored = sim_cudnn_n_executions (SIM_ENGINE_GENERIC) == 0;
  assert_ok (library, rn_conv_library_save (library));
  check_result (&c, library, plan);
  return g_strdup (rn_conv_plan_detail (plan));
}

/* What a store says of the one problem in it. */
static RnStoredPlan
only_plan (const RnPlanStore *store)
{
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);
  g_autofree char *text = rn_conv_problem_text (&p);
  g_autofree char *key = g_strdup_printf ("%s, workspace %" G_GSIZE_FORMAT, text, LIMIT);
  g_autoptr (GString) machine = g_string_new (NULL);
  g_autofree char *file = NULL;

  /* The name of the machine is read from the file. */
  g_assert_true (g_file_get_contents (rn_plan_store_path (store), &file, NULL, NULL));
  const char *at = strstr (file, "\"machine\": \"") + strlen ("\"machine\": \"");
  g_string_append_len (machine, at, strchr (at, '"') - at);
  const RnStoredPlan *plan = rn_plan_store_find (store, key, machine->str);
  g_assert_nonnull (plan);
  return *plan;
}

static void
test_taken_again (Fixture *fixture, gconstpointer data)
{
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, fixture->run, NULL, &is_stored);
  g_assert_false (is_stored);
  g_autofree char *second = run_process (fixture, fixture->run, NULL, &is_stored);

  g_assert_true (is_stored);
  g_assert_cmpstr (second, ==, first);
  g_assert_cmpuint (n_warnings (fixture, "bits will differ"), ==, 0);
}

/* Another run on the machine measures nothing, and has the choice for itself from then on. */
static void
test_of_the_machine (Fixture *fixture, gconstpointer data)
{
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, NULL, fixture->cache, &is_stored);
  g_autofree char *second = run_process (fixture, fixture->run, fixture->cache, &is_stored);

  g_assert_true (is_stored);
  g_assert_cmpstr (second, ==, first);
  g_remove (fixture->cache);
  g_autofree char *third = run_process (fixture, fixture->run, fixture->cache, &is_stored);
  g_assert_true (is_stored);
  g_assert_cmpstr (third, ==, first);
}

static void
rewrite (const char *path, const RnStoredPlan *plan)
{
  g_autoptr (RnPlanStore) store = rn_plan_store_open (path);
  g_autoptr (GError) error = NULL;

  rn_plan_store_put (store, plan);
  rn_plan_store_save (store, FALSE, &error);
  g_assert_no_error (error);
}

static void
test_own_choice_wins (Fixture *fixture, gconstpointer data)
{
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, fixture->run, fixture->cache, &is_stored);
  g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->run);
  RnStoredPlan plan = only_plan (store);

  plan.engine = "the run's";
  rewrite (fixture->run, &plan);
  plan.engine = "the machine's";
  rewrite (fixture->cache, &plan);
  g_autofree char *second = run_process (fixture, fixture->run, fixture->cache, &is_stored);
  g_assert_true (is_stored);
  g_assert_cmpstr (second, ==, "the run's");
}

/* On another device all is measured anew, with one warning; back on the first the choice is still there. */
static void
test_other_device (Fixture *fixture, gconstpointer data)
{
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, fixture->run, fixture->cache, &is_stored);

  start ("a100");
  g_autofree char *second = run_process (fixture, fixture->run, fixture->cache, &is_stored);
  g_assert_false (is_stored);
  g_assert_cmpuint (n_warnings (fixture, "another device: they are chosen again, and bits will differ"), ==,
                    1);
  start ("t4");
  g_autofree char *third = run_process (fixture, fixture->run, fixture->cache, &is_stored);
  g_assert_true (is_stored);
  g_assert_cmpstr (third, ==, first);
  g_assert_cmpuint (n_warnings (fixture, "bits will differ"), ==, 1);
}

static void
test_damaged (Fixture *fixture, gconstpointer data)
{
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, fixture->run, NULL, &is_stored);
  g_autofree char *text = NULL;

  g_assert_true (g_file_get_contents (fixture->run, &text, NULL, NULL));
  text[strlen (text) / 2] ^= 1;
  g_assert_true (g_file_set_contents (fixture->run, text, -1, NULL));
  g_autofree char *second = run_process (fixture, fixture->run, NULL, &is_stored);
  g_assert_false (is_stored);
  g_assert_cmpuint (n_warnings (fixture,
                                "1 of 1 lines are damaged: engines of convolutions are chosen again, "
                                "and bits will differ"),
                    ==, 1);
  /* It was written anew. */
  g_autofree char *third = run_process (fixture, fixture->run, NULL, &is_stored);
  g_assert_true (is_stored);
  g_assert_cmpuint (n_warnings (fixture, "bits will differ"), ==, 1);
}

/* Whole lines whose plan the library refuses. */
static void
test_refused (Fixture *fixture, gconstpointer data)
{
  static const char *const plans[] = { "", "{}", "nonsense", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[" };
  gboolean is_stored;
  g_autofree char *first = run_process (fixture, fixture->run, NULL, &is_stored);

  for (guint i = 0; i < G_N_ELEMENTS (plans); i++)
    {
      g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->run);
      RnStoredPlan plan = only_plan (store);
      plan.plan = plans[i];
      rewrite (fixture->run, &plan);
      g_autofree char *again = run_process (fixture, fixture->run, NULL, &is_stored);
      g_assert_false (is_stored);
      g_assert_cmpuint (n_warnings (fixture, "bits will differ"), ==, i + 1);
    }
}

/* With nothing to compare nothing is measured: the first by rank is kept like a choice by time, and needs no
 * more than its own workspace. */
static void
test_without_generic (Fixture *fixture, gconstpointer data)
{
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);
  gboolean is_stored;
  g_auto (Case) c;

  sim_cudnn_leave_out (SIM_ENGINE_GENERIC);
  case_init (&c, &p, FALSE);
  g_autoptr (RnConvLibrary) library = library_new (&c, FALSE, fixture->run, NULL);
  g_autoptr (RnConvPlan) plan = plan_new (library, &p);
  gsize bound = rn_conv_plan_workspace (plan);
  g_assert_true (rn_conv_plan_is_bound (plan));
  assert_ok (library, rn_conv_plan_measure (plan, &c.pointers, LIMIT));
  g_assert_false (rn_conv_plan_is_bound (plan));
  g_assert_cmpuint (rn_conv_plan_workspace (plan), <, bound);
  g_assert_cmpuint (sim_cudnn_n_executions (SIM_ENGINE_NORMAL), ==, 0);
  check_result (&c, library, plan);
  assert_ok (library, rn_conv_library_save (library));
  sim_cudnn_leave_out (-1);

  g_autofree char *second = run_process (fixture, fixture->run, NULL, &is_stored);
  g_assert_true (is_stored);
  g_assert_cmpstr (second, ==, rn_conv_plan_detail (plan));
}

/* A run that cannot keep its choices does not go on; what the machine keeps is a matter of time alone. */
static void
test_cannot_write (Fixture *fixture, gconstpointer data)
{
  const RnConvProblem p = problem_of (RN_CONV_FORWARD, RN_F32, FALSE);
  g_autofree char *file = g_build_filename (fixture->folder, "file", NULL);
  g_autofree char *below = g_build_filename (file, "plans.jsonl", NULL);

  g_assert_true (g_file_set_contents (file, "", 0, NULL));
  for (int is_run = 0; is_run < 2; is_run++)
    {
      g_auto (Case) c;
      case_init (&c, &p, FALSE);
      g_autoptr (RnConvLibrary) library =
          library_new (&c, FALSE, is_run ? below : NULL, is_run ? NULL : below);
      g_autoptr (RnConvPlan) plan = plan_new (library, &p);
      assert_ok (library, rn_conv_library_save (library)); /* nothing to write */
      assert_ok (library, rn_conv_plan_measure (plan, &c.pointers, LIMIT));
      RnStatus status = rn_conv_library_save (library);
      g_assert_cmpint (status, ==, is_run ? RN_STATUS_DEVICE : RN_STATUS_OK);
      if (is_run)
        g_assert_nonnull (strstr (rn_conv_library_fault (library), "the choice of engines cannot be kept"));
      g_assert_cmpuint (n_warnings (fixture, "is not kept for other runs"), ==, 1);
    }
}

#define ADD(name, function) g_test_add ("/conv-stored/" name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_FATAL_MASK); /* warnings are part of what is tested */
  ADD ("taken-again", test_taken_again);
  ADD ("of-the-machine", test_of_the_machine);
  ADD ("own-choice-wins", test_own_choice_wins);
  ADD ("other-device", test_other_device);
  ADD ("damaged", test_damaged);
  ADD ("refused", test_refused);
  ADD ("without-generic", test_without_generic);
  ADD ("cannot-write", test_cannot_write);
  return g_test_run ();
}
