/* test-plan-store.c: chosen engines in a file, and files that are damaged or hostile. */
#include "config.h"

#include "kernels/cuda/plan-store.h"
#include "tests/tree.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct
{
  char *folder, *path;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  fixture->folder = g_dir_make_tmp ("plan-store-XXXXXX", &error);
  g_assert_no_error (error);
  fixture->path = g_build_filename (fixture->folder, "made", "plans.jsonl", NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  remove_tree (fixture->folder);
  g_free (fixture->folder);
  g_free (fixture->path);
}

/* Texts with what JSON must escape. */
static const RnStoredPlan example = {
  .problem = "forward 2x64x152x256, workspace 67108864",
  .machine = "cuDNN 9.19.0, a \"device\"",
  .engine = "engine 41, tensor cores",
  .plan = "{\"cudnnVersion\":91900,\"nodes\":[{\"a\":\"b\\n\"}]}",
  .workspace = 131,
  .nanoseconds = 60416,
};

static void
assert_same (const RnStoredPlan *a, const RnStoredPlan *b)
{
  g_assert_nonnull (a);
  g_assert_cmpstr (a->problem, ==, b->problem);
  g_assert_cmpstr (a->machine, ==, b->machine);
  g_assert_cmpstr (a->engine, ==, b->engine);
  g_assert_cmpstr (a->plan, ==, b->plan);
  g_assert_cmpint (a->workspace, ==, b->workspace);
  g_assert_cmpint (a->nanoseconds, ==, b->nanoseconds);
}

static void
save (RnPlanStore *store, gboolean merge)
{
  g_autoptr (GError) error = NULL;

  rn_plan_store_save (store, merge, &error);
  g_assert_no_error (error);
}

/* A file with @n plans of different problems. */
static void
write_example (const Fixture *fixture, int n)
{
  g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
  RnStoredPlan plan = example;

  for (int i = 0; i < n; i++)
    {
      g_autofree char *problem = g_strdup_printf ("%s %d", example.problem, i);
      plan.problem = problem;
      rn_plan_store_put (store, &plan);
    }
  save (store, FALSE);
}

static char *
read_example (const Fixture *fixture)
{
  char *text = NULL;
  g_autoptr (GError) error = NULL;

  g_file_get_contents (fixture->path, &text, NULL, &error);
  g_assert_no_error (error);
  return text;
}

static void
write_text (const Fixture *fixture, const char *text, gssize size)
{
  g_autoptr (GError) error = NULL;

  g_file_set_contents (fixture->path, text, size, &error);
  g_assert_no_error (error);
}

static void
test_keeps (Fixture *fixture, gconstpointer data)
{
  g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
  RnStoredPlan other = example;

  /* No file is an empty one, and nothing is written for nothing. */
  g_assert_null (rn_plan_store_damage (store));
  g_assert_null (rn_plan_store_find (store, example.problem, example.machine));
  save (store, FALSE);
  g_assert_false (g_file_test (fixture->path, G_FILE_TEST_EXISTS));

  rn_plan_store_put (store, &example);
  other.machine = "cuDNN 9.20.0, a \"device\"";
  g_assert_false (rn_plan_store_has_other (store, example.problem, example.machine));
  g_assert_true (rn_plan_store_has_other (store, example.problem, other.machine));
  other.workspace = G_MAXINT64;
  rn_plan_store_put (store, &other);
  save (store, FALSE);

  g_autoptr (RnPlanStore) again = rn_plan_store_open (fixture->path);
  g_assert_null (rn_plan_store_damage (again));
  g_assert_cmpuint (rn_plan_store_size (again), ==, 2);
  assert_same (rn_plan_store_find (again, example.problem, example.machine), &example);
  assert_same (rn_plan_store_find (again, other.problem, other.machine), &other);
  g_assert_true (rn_plan_store_has_other (again, example.problem, example.machine));

  /* The second choice for a problem replaces the first. */
  other.engine = "engine 7";
  rn_plan_store_put (again, &other);
  g_assert_cmpuint (rn_plan_store_size (again), ==, 2);
  assert_same (rn_plan_store_find (again, other.problem, other.machine), &other);
}

/* The file as a text: in its order, checked as the file is. */
static void
test_text (Fixture *fixture, gconstpointer data)
{
  write_example (fixture, 3);
  g_autofree char *file = read_example (fixture);
  g_autoptr (RnPlanStore) store = rn_plan_store_new_from_text (file, strlen (file));
  g_autofree char *text = rn_plan_store_text (store);

  g_assert_null (rn_plan_store_damage (store));
  g_assert_cmpstr (text, ==, file);
  g_assert_cmpuint (rn_plan_store_size (store), ==, 3);
  for (guint i = 0; i < 3; i++)
    {
      g_autofree char *problem = g_strdup_printf ("%s %u", example.problem, i);
      g_assert_cmpstr (rn_plan_store_get (store, i)->problem, ==, problem);
    }

  text[strlen (text) / 2] ^= 1;
  g_autoptr (RnPlanStore) damaged = rn_plan_store_new_from_text (text, strlen (text));
  g_assert_cmpstr (rn_plan_store_damage (damaged), ==, "1 of 3 lines are damaged");
  g_assert_cmpuint (rn_plan_store_size (damaged), ==, 2);

  g_autoptr (RnPlanStore) nothing = rn_plan_store_new_from_text ("", 0);
  g_assert_null (rn_plan_store_damage (nothing));
  g_assert_cmpuint (rn_plan_store_size (nothing), ==, 0);
  g_autofree char *huge = g_malloc0 (RN_PLAN_STORE_MAX_BYTES + 1);
  g_autoptr (RnPlanStore) refused = rn_plan_store_new_from_text (huge, RN_PLAN_STORE_MAX_BYTES + 1);
  g_assert_cmpstr (rn_plan_store_damage (refused), ==, "it is too large");
}

/* A file of several runs: what another one has added meanwhile stays. */
static void
test_merges (Fixture *fixture, gconstpointer data)
{
  for (int merge = 0; merge < 2; merge++)
    {
      g_autoptr (RnPlanStore) first = rn_plan_store_open (fixture->path);
      g_autoptr (RnPlanStore) second = rn_plan_store_open (fixture->path);
      RnStoredPlan other = example;
      other.problem = "another";
      rn_plan_store_put (first, &example);
      save (first, FALSE);
      rn_plan_store_put (second, &other);
      save (second, merge);
      g_autoptr (RnPlanStore) both = rn_plan_store_open (fixture->path);
      g_assert_cmpuint (rn_plan_store_size (both), ==, merge ? 2 : 1);
      g_remove (fixture->path);
    }
}

/* One byte changed anywhere: the line is left out, or says the same. */
static void
test_damage (Fixture *fixture, gconstpointer data)
{
  write_example (fixture, 3);
  g_autofree char *text = read_example (fixture);
  const gsize n = strlen (text);
  const char *second = strchr (text, '\n') + 1;
  const gsize begin = (gsize) (second - text), end = (gsize) (strchr (second, '\n') - text);
  g_autofree char *problem = g_strdup_printf ("%s 1", example.problem);
  RnStoredPlan wanted = example;

  wanted.problem = problem;
  for (gsize at = begin; at < end; at++)
    {
      g_autofree char *damaged = g_memdup2 (text, n);
      damaged[at] ^= (char) (1 << at % 7);
      write_text (fixture, damaged, (gssize) n);
      g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
      const RnStoredPlan *found = rn_plan_store_find (store, problem, example.machine);
      if (found != NULL)
        assert_same (found, &wanted);
      else
        g_assert_nonnull (rn_plan_store_damage (store));
      g_assert_cmpuint (rn_plan_store_size (store), ==, found != NULL ? 3 : 2);
    }
}

/* Cut off anywhere: whole lines are kept. */
static void
test_cut_off (Fixture *fixture, gconstpointer data)
{
  write_example (fixture, 2);
  g_autofree char *text = read_example (fixture);
  const gsize n = strlen (text), line = n / 2;

  for (gsize size = 0; size <= n; size += 7)
    {
      write_text (fixture, text, (gssize) size);
      g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
      /* The end of the last line is no part of what it says. */
      g_assert_cmpuint (rn_plan_store_size (store), ==, (size + 1) / line);
      g_assert_cmpint (rn_plan_store_damage (store) != NULL, ==, size % line != 0 && size % line != line - 1);
    }
}

static void
test_hostile (Fixture *fixture, gconstpointer data)
{
  g_autofree char *deep = g_strnfill (RN_PLAN_STORE_MAX_LINE, '[');
  g_autofree char *long_line = g_strnfill (8 << 20, 'x');
  g_autofree char *many = g_strnfill (1 << 20, '\n');
  g_autofree char *nul = g_strdup ("{\"problem\": \"a\\u0000b\", \"machine\": \"\", \"check\": \"\"}");
  const char *const texts[] = { deep,
                                long_line,
                                many,
                                nul,
                                "{}",
                                "null",
                                "{\"problem\": 7}",
                                "{\"problem\": \"a\", \"problem\": \"b\"}",
                                "{\"plan\": \"",
                                "\"",
                                "\xff\xfe",
                                "{\"workspace\": -1}",
                                "{\"workspace\": 99999999999999999999}" };

  write_example (fixture, 1);
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      write_text (fixture, texts[i], -1);
      g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
      g_assert_cmpuint (rn_plan_store_size (store), ==, 0);
      g_assert_nonnull (rn_plan_store_damage (store));
      /* It can be written anew. */
      rn_plan_store_put (store, &example);
      save (store, TRUE);
      g_autoptr (RnPlanStore) again = rn_plan_store_open (fixture->path);
      g_assert_null (rn_plan_store_damage (again));
      g_assert_cmpuint (rn_plan_store_size (again), ==, 1);
    }
}

/* Damaged lines go when the file is saved, though nothing was put: the next run is not told of them. */
static void
test_damage_goes (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = NULL;

  write_example (fixture, 2);
  g_assert_true (g_file_get_contents (fixture->path, &text, NULL, NULL));
  text[strlen (text) / 4] ^= 1;
  for (int merge = 0; merge < 2; merge++)
    {
      write_text (fixture, text, -1);
      g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
      g_assert_cmpstr (rn_plan_store_damage (store), ==, "1 of 2 lines are damaged");
      save (store, merge);
      g_autoptr (RnPlanStore) again = rn_plan_store_open (fixture->path);
      g_assert_null (rn_plan_store_damage (again));
      g_assert_cmpuint (rn_plan_store_size (again), ==, 1);
    }
}

/* Things that are no files of ours are neither waited for nor read to their end. */
static void
test_no_file (Fixture *fixture, gconstpointer data)
{
  g_autofree char *pipe = g_build_filename (fixture->folder, "pipe", NULL);
  g_autofree char *large = g_build_filename (fixture->folder, "large", NULL);
  const char *const paths[] = { fixture->folder, pipe, "/dev/zero", large };

  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  g_assert_true (g_file_set_contents (large, "", 0, NULL));
  g_assert_cmpint (truncate (large, (off_t) RN_PLAN_STORE_MAX_BYTES + 1), ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++)
    {
      g_autoptr (RnPlanStore) store = rn_plan_store_open (paths[i]);
      g_assert_nonnull (rn_plan_store_damage (store));
      g_assert_cmpuint (rn_plan_store_size (store), ==, 0);
    }
}

/* Of more plans than are read the last ones stay, and none of those counts as damaged. */
static void
test_many (Fixture *fixture, gconstpointer data)
{
  write_example (fixture, RN_PLAN_STORE_MAX_PLANS + 10);
  g_autoptr (RnPlanStore) store = rn_plan_store_open (fixture->path);
  g_autofree char *first = g_strdup_printf ("%s 9", example.problem);
  g_autofree char *second = g_strdup_printf ("%s 10", example.problem);

  g_assert_null (rn_plan_store_damage (store));
  g_assert_cmpuint (rn_plan_store_size (store), ==, RN_PLAN_STORE_MAX_PLANS);
  g_assert_null (rn_plan_store_find (store, first, example.machine));
  g_assert_nonnull (rn_plan_store_find (store, second, example.machine));
}

/* What cannot be written leaves the old file. */
static void
test_cannot_write (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *under = NULL;

  write_example (fixture, 1);
  g_autofree char *before = read_example (fixture);
  under = g_build_filename (fixture->path, "below-a-file", NULL);
  g_autoptr (RnPlanStore) store = rn_plan_store_open (under);
  rn_plan_store_put (store, &example);
  g_assert_false (rn_plan_store_save (store, FALSE, &error));
  g_assert_nonnull (error);
  g_autofree char *after = read_example (fixture);
  g_assert_cmpstr (after, ==, before);
}

#define ADD(name, function) g_test_add ("/plan-store/" name, Fixture, NULL, set_up, function, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("keeps", test_keeps);
  ADD ("text", test_text);
  ADD ("merges", test_merges);
  ADD ("damage", test_damage);
  ADD ("damage-goes", test_damage_goes);
  ADD ("cut-off", test_cut_off);
  ADD ("hostile", test_hostile);
  ADD ("no-file", test_no_file);
  ADD ("many", test_many);
  ADD ("cannot-write", test_cannot_write);
  return g_test_run ();
}
