/*
 * test-run-engines.c: engines that were chosen by time are kept with the run, in its folder and in its
 * checkpoints, on the simulated device: a run that goes on takes them again, and so has the same bits.
 */
#include "config.h"

#include "kernels/cuda-module.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/cuda/plan-store.h"
#include "runner/checkpoint.h"
#include "runner/safetensors.h"
#include "tests/gpu/sim/sim-cudnn.h"
#include "tests/gpu/training-run.h"
#include "tests/tree.h"

#include <cudnn_graph.h>
#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

/* ---- the version of cuDNN: the linker puts this in the place of the library's ---- */

size_t __wrap_cudnnGetVersion (void);

#define KEEPS_CHOICES MAX (CUDNN_VERSION, RN_CUDNN_WRITES_PLANS)

static gsize cudnn_version = KEEPS_CHOICES;

size_t
__wrap_cudnnGetVersion (void)
{
  return cudnn_version;
}

/* ---- work dirs, and the machine's cache ---- */

static char *cache_home, *cache_file; /* the folder is emptied for each test */

#define N_DIRS 4

typedef struct
{
  char *root, *dirs[N_DIRS], *plans[N_DIRS]; /* @plans: of each dir */
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->root = g_dir_make_tmp ("rn-gpu-XXXXXX", &error);
  g_assert_no_error (error);
  for (int i = 0; i < N_DIRS; i++)
    {
      f->dirs[i] = g_strdup_printf ("%s/%d", f->root, i);
      f->plans[i] = g_build_filename (f->dirs[i], "cudnn-plans.json", NULL);
      g_assert_cmpint (g_mkdir (f->dirs[i], 0777), ==, 0);
    }
  g_string_truncate (run_messages, 0);
}

static void
empty_cache (void)
{
  g_autofree char *folder = g_path_get_dirname (cache_file);

  if (g_file_test (folder, G_FILE_TEST_EXISTS))
    remove_tree (folder);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  empty_cache ();
  remove_tree (f->root);
  for (int i = 0; i < N_DIRS; i++)
    {
      g_free (f->dirs[i]);
      g_free (f->plans[i]);
    }
  g_free (f->root);
  cudnn_version = KEEPS_CHOICES;
  sim_cudnn_slow_down (SIM_ENGINE_TENSOR_CORE, 1);
}

static gboolean
is_file (const char *path)
{
  return g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

/* Up to @n_iters, from the last checkpoint in @dir or from the beginning. */
static void
train (Run run, const char *dir, int n_iters, gboolean is_resumed, Outcome *outcome)
{
  run.n_iters = n_iters;
  sim_cudnn_forget ();
  sim_reset (&run.sim);
  run_configured (&run, dir, is_resumed, outcome);
}

/* Nothing is compared with the generic engine where nothing is measured. */
static gboolean
has_measured (void)
{
  return sim_cudnn_n_executions (SIM_ENGINE_GENERIC) > 0;
}

static gboolean
has_run (int64_t engine)
{
  return sim_cudnn_n_executions (engine) > 0;
}

static void
assert_differs (const Outcome *a, const Outcome *b)
{
  g_assert_cmpint (memcmp (a->params->data, b->params->data, a->params->len * sizeof (float)), !=, 0);
}

/* ---- files ---- */

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

typedef enum
{
  WHOLE,
  WITHOUT_CHOICES,
  WITH_A_FLAW, /* in the middle of the choices */
  CUT_OFF,
  NO_TEXT,
  N_FORMS
} Form;

static gboolean
read_copy (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const guint8 *) source + offset, size);
  return TRUE;
}

/* Checkpoint @from as @to, whole but for the choices in it. */
static void
copy_checkpoint (const char *from, const char *to, Form form)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensors) file = rn_safetensors_open (from, &error);
  g_assert_no_error (error);
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, "");

  for (guint i = 0; i < keys->len; i++)
    if (strcmp (keys->pdata[i], "checksum") != 0) /* the writer's own */
      rn_safetensors_writer_set_metadata (writer, keys->pdata[i],
                                          rn_safetensors_metadata (file, keys->pdata[i]));
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      RnStoredTensor tensor = *rn_safetensors_get (file, i);
      char *copy = g_memdup2 (tensor.data, MAX (tensor.bytes, 1));
      if (strcmp (tensor.name, RN_CHECKPOINT_CHOICES) == 0)
        {
          g_assert_cmpuint (tensor.bytes, >, 1000);
          if (form == WITH_A_FLAW)
            copy[tensor.bytes / 2] ^= 1;
          else if (form == CUT_OFF)
            tensor.dims[0] = (int64_t) tensor.bytes / 2;
          else if (form == NO_TEXT)
            memset (copy, 0xff, tensor.bytes);
        }
      if (strcmp (tensor.name, RN_CHECKPOINT_CHOICES) == 0 && form == WITHOUT_CHOICES)
        g_free (copy);
      else
        rn_safetensors_writer_add_typed (writer, tensor.name, tensor.type, tensor.element_bytes, tensor.rank,
                                         tensor.dims, read_copy, copy, g_free);
    }
  rn_safetensors_writer_save (writer, to, &error);
  g_assert_no_error (error);
}

/* ---- in the folder of the run ---- */

/*
 * A resumed run has the engines that it had, whatever the machine has by then, or would measure; and so it
 * has the bits of a run that was not interrupted.
 */
static void
test_resumed (Fixture *f, gconstpointer data)
{
  const Run run = configured_run (a100, TF32);
  g_auto (Outcome) first = { 0 }, straight = { 0 }, resumed = { 0 }, other = { 0 };

  train (run, f->dirs[0], 3, FALSE, &straight);
  g_assert_true (has_measured ());

  /* Another run on the machine measures nothing, and keeps what it took. */
  train (run, f->dirs[1], 2, FALSE, &resumed);
  g_assert_false (has_measured ());
  g_assert_true (is_file (f->plans[1]));
  change_engines (cache_file, SIM_ENGINE_TENSOR_CORE, SIM_ENGINE_NORMAL);
  train (run, f->dirs[1], 3, TRUE, &resumed);
  g_assert_false (has_measured ());
  g_assert_true (has_run (SIM_ENGINE_TENSOR_CORE));
  assert_same (&resumed, &straight);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 0);

  /* Without choices of its own a run has the machine's, and bits that are not the same. */
  train (run, f->dirs[2], 3, FALSE, &other);
  g_assert_true (has_run (SIM_ENGINE_NORMAL));
  g_assert_false (has_run (SIM_ENGINE_TENSOR_CORE));
  assert_differs (&other, &straight);
}

/* Choices that cannot be taken are made again, with one warning, and the run goes on. */
static void
test_lost (Fixture *f, gconstpointer data)
{
  static const SimConfig h200 = { .model = "h200", .n_devices = 1, .driver_version = CUDART_VERSION };
  static const char other[] = "with another version of cuDNN or on another device";
  g_auto (Outcome) outcome = { 0 };
  const char *dir = f->dirs[0];

  train (configured_run (a100, TF32), dir, 1, FALSE, &outcome);
  cudnn_version = KEEPS_CHOICES + 100;
  train (configured_run (a100, TF32), dir, 2, TRUE, &outcome);
  g_assert_true (has_measured ());
  g_assert_cmpuint (count_messages (other), ==, 1);

  cudnn_version = KEEPS_CHOICES;
  train (configured_run (h200, TF32), dir, 3, TRUE, &outcome);
  g_assert_true (has_measured ());
  g_assert_cmpuint (count_messages (other), ==, 2);

  /* What was lost is there again. */
  train (configured_run (h200, TF32), dir, 4, TRUE, &outcome);
  g_assert_false (has_measured ());
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 2);
}

/* The file of the folder need not be there, nor whole: the checkpoint has them too. */
static void
test_damaged_file (Fixture *f, gconstpointer data)
{
  const Run run = configured_run (a100, TF32);
  g_autofree char *text = NULL;
  g_auto (Outcome) outcome = { 0 };

  train (run, f->dirs[0], 1, FALSE, &outcome);
  empty_cache ();
  g_assert_true (g_file_get_contents (f->plans[0], &text, NULL, NULL));
  *g_strrstr (text, "cudnnVersion") = 'C';
  g_assert_true (g_file_set_contents (f->plans[0], text, -1, NULL));
  train (run, f->dirs[0], 2, TRUE, &outcome);
  g_assert_false (has_measured ());
  g_assert_cmpint (g_remove (f->plans[0]), ==, 0);
  train (run, f->dirs[0], 3, TRUE, &outcome);
  g_assert_false (has_measured ());
  g_assert_true (is_file (f->plans[0]));
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 0);
}

/* ---- in the checkpoint ---- */

/* Goes on for one iteration in @dir, where nothing was, from the checkpoint @path. */
static void
train_from (Run run, const char *path, const char *dir, int n_iters, Outcome *outcome)
{
  g_autofree char *line = g_strconcat ("resume_from=", path, NULL);

  run.more[2] = line;
  train (run, dir, n_iters, TRUE, outcome);
}

/* *@rest: @all without its third iteration, which is to be trained again. */
static void
forget_third (const Outcome *all, Outcome *rest)
{
  *rest = *all;
  rest->params = NULL;
  rest->losses[2] = 0;
}

/*
 * A checkpoint that was taken elsewhere ends in the bits of the run that was not interrupted, though the
 * machine has no choices and would make others; one without its choices does not, and says so.
 */
static void
test_elsewhere (Fixture *f, gconstpointer data)
{
  const Run run = configured_run (a100, TF32);
  g_auto (Outcome) straight = { 0 }, resumed = { 0 }, again = { 0 }, other = { 0 };
  g_autofree char *saved = g_build_filename (f->dirs[0], "iter_2.safetensors", NULL);
  g_autofree char *taken = g_build_filename (f->root, "taken.safetensors", NULL);

  train (run, f->dirs[0], 3, FALSE, &straight);
  g_assert_true (has_run (SIM_ENGINE_TENSOR_CORE));
  empty_cache ();
  sim_cudnn_slow_down (SIM_ENGINE_TENSOR_CORE, 1000);

  copy_checkpoint (saved, taken, WHOLE);
  forget_third (&straight, &resumed);
  train_from (run, taken, f->dirs[1], 3, &resumed);
  g_assert_false (has_measured ());
  assert_same (&resumed, &straight);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 0);

  /* The folder has them now, and so have the checkpoints that are written there. */
  g_autofree char *next = g_build_filename (f->dirs[1], "iter_3.safetensors", NULL);
  train_from (run, next, f->dirs[2], 4, &again);
  g_assert_false (has_measured ());
  g_assert_true (is_file (f->plans[1]));

  empty_cache ();
  copy_checkpoint (saved, taken, WITHOUT_CHOICES);
  train_from (run, taken, f->dirs[3], 3, &other);
  g_assert_true (has_measured ());
  assert_differs (&other, &straight);
  g_assert_cmpuint (count_messages ("what the run had chosen is not in the checkpoint: engines of "
                                    "convolutions are chosen again, and bits will differ"),
                    ==, 1);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 1);
}

/* What the folder of the run has gives way to the checkpoint that it goes on from. */
static void
test_checkpoint_wins (Fixture *f, gconstpointer data)
{
  const Run run = configured_run (a100, TF32);
  g_auto (Outcome) straight = { 0 }, resumed = { 0 }, other = { 0 };
  g_autofree char *saved = g_build_filename (f->dirs[0], "iter_2.safetensors", NULL);

  train (run, f->dirs[0], 3, FALSE, &straight);
  empty_cache ();
  sim_cudnn_slow_down (SIM_ENGINE_TENSOR_CORE, 1000);
  train (run, f->dirs[1], 1, FALSE, &other);
  g_assert_true (has_measured ());
  forget_third (&straight, &resumed);
  train_from (run, saved, f->dirs[1], 3, &resumed);
  g_assert_false (has_measured ());
  assert_same (&resumed, &straight);
}

/* Whatever became of them: one warning, and the run goes on. */
static void
test_damaged (Fixture *f, gconstpointer data)
{
  const Run run = configured_run (a100, TF32);
  g_auto (Outcome) outcome = { 0 };
  g_autofree char *saved = g_build_filename (f->dirs[0], "iter_1.safetensors", NULL);
  g_autofree char *taken = g_build_filename (f->root, "taken.safetensors", NULL);

  train (run, f->dirs[0], 1, FALSE, &outcome);
  for (int form = WITH_A_FLAW; form < N_FORMS; form++)
    {
      empty_cache ();
      g_string_truncate (run_messages, 0);
      copy_checkpoint (saved, taken, (Form) form);
      train_from (run, taken, f->dirs[form - WITH_A_FLAW + 1], 2, &outcome);
      g_assert_true (has_measured ());
      g_assert_cmpuint (count_messages ("what the run had chosen, in the checkpoint: "), ==, 1);
      g_assert_cmpuint (count_messages (" lines are damaged: engines of convolutions are chosen again, and"),
                        ==, 1);
      g_assert_cmpuint (count_messages ("bits will differ"), ==, 1);
    }
}

/* With another version of cuDNN, and on another device. */
static void
test_other_version (Fixture *f, gconstpointer data)
{
  g_auto (Outcome) outcome = { 0 };
  g_autofree char *saved = g_build_filename (f->dirs[0], "iter_1.safetensors", NULL);

  train (configured_run (a100, TF32), f->dirs[0], 1, FALSE, &outcome);
  for (int i = 1; i < 3; i++)
    {
      g_string_truncate (run_messages, 0);
      cudnn_version = KEEPS_CHOICES + (i == 1 ? 100 : 0);
      train_from (configured_run (i == 1 ? a100 : t4, TF32), saved, f->dirs[i], 2, &outcome);
      g_assert_true (has_measured ());
      g_assert_cmpuint (count_messages ("bits will differ"), ==, 1);
      g_assert_cmpuint (count_messages ("with another version of cuDNN or on another device"), ==, 1);
    }
}

/* ---- without choices ---- */

static gboolean
has_choices (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "iter_1.safetensors", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);

  g_assert_no_error (error);
  return rn_safetensors_find (file, RN_CHECKPOINT_CHOICES) != NULL;
}

static void
test_deterministic (Fixture *f, gconstpointer data)
{
  Run run = configured_run (a100, TF32);
  g_auto (Outcome) first = { 0 }, second = { 0 };

  run.more[2] = "deterministic=true";
  run.n_iters = 1;
  sim_reset (&run.sim);
  sim_cudnn_forget ();
  RnTraining *training = open_run (&run, f->dirs[0]);
  for (int64_t engine = SIM_ENGINE_GENERIC; engine <= SIM_ENGINE_NAN; engine++)
    g_assert_false (has_run (engine));
  rn_training_free (training);

  train (run, f->dirs[0], 2, FALSE, &first);
  train (run, f->dirs[1], 2, FALSE, &second);
  assert_same (&first, &second);
  g_assert_false (is_file (f->plans[0]));
  g_assert_false (is_file (cache_file));
  g_assert_false (has_choices (f->dirs[0]));
}

/* A checkpoint of the CPU has none, and one that has them goes on there, as one of the CPU does here. */
static void
test_cpu (Fixture *f, gconstpointer data)
{
  g_auto (Outcome) outcome = { 0 };

  train (configured_run (a100, "device=cpu"), f->dirs[0], 1, FALSE, &outcome);
  g_assert_false (has_choices (f->dirs[0]));
  train (configured_run (a100, TF32), f->dirs[0], 2, TRUE, &outcome);
  g_assert_cmpuint (count_messages ("bits will differ"), ==, 0);
  train (configured_run (a100, TF32), f->dirs[1], 1, FALSE, &outcome);
  g_assert_true (has_choices (f->dirs[1]));
  train (configured_run (a100, "device=cpu"), f->dirs[1], 2, TRUE, &outcome);
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
  keep_messages ();
  rn_cuda_module_use (rn_cuda_module ());
  ADD ("/run-engines/resumed", test_resumed);
  ADD ("/run-engines/lost", test_lost);
  ADD ("/run-engines/damaged-file", test_damaged_file);
  ADD ("/run-engines/elsewhere", test_elsewhere);
  ADD ("/run-engines/checkpoint-wins", test_checkpoint_wins);
  ADD ("/run-engines/damaged", test_damaged);
  ADD ("/run-engines/other-version", test_other_version);
  ADD ("/run-engines/deterministic", test_deterministic);
  ADD ("/run-engines/cpu", test_cpu);
  int status = g_test_run ();
  training_runs_end ();
  remove_tree (cache_home);
  g_free (cache_home);
  g_free (cache_file);
  return status;
}
