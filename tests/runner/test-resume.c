/* What a resume takes and refuses, and that a run that is taken up ends in the same bits. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/base/signals.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The same bits ---- */

/* In a child that dies at once, without any farewell, when its iteration comes. */
static void
run_and_kill (const char *yaml, gint64 epoch_length, const char *dir, const double *scores, guint n_scores)
{
  g_autofree char *killer = g_strconcat (yaml, "custom_hooks: [{type: KillHook, priority: LOWEST}]\n", NULL);
  pid_t child = fork ();
  if (child == 0)
    {
      FakeRun fake;
      fake_run_open (&fake, killer, epoch_length, dir);
      fake.fake.scores = scores;
      fake.fake.n_scores = n_scores;
      fake_run_go (&fake);
      _exit (0);
    }
  int status;
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGKILL);
}

static gint64 kill_at;

static gboolean
kill_after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) + 1 == kill_at)
    kill (getpid (), SIGKILL);
  return TRUE;
}

typedef struct
{
  RnHook hook;
} KillHook;

RN_HOOK_DEFINE (killer, KillHook, .name = "KillHook", .summary = "for tests",
                .after_train_iter = kill_after_train_iter);

static const double scores[] = { 0.1, 0.3, 0.2, 0.3, (double) NAN, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 };

static void
test_same_bits (gconstpointer data)
{
  const char *yaml = data;
  const gint64 epoch_length = 7;
  FakeRun straight;

  fake_run_open (&straight, yaml, epoch_length, NULL);
  straight.fake.scores = scores;
  straight.fake.n_scores = G_N_ELEMENTS (scores);
  fake_run_go (&straight);
  gint64 n = rn_runner_iter (straight.runner);
  g_autoptr (GPtrArray) expected = fake_run_timeless_lines (straight.dir);
  g_autofree char *expected_list = fake_run_read_list (straight.dir);

  for (kill_at = 4; kill_at <= n; kill_at += 3)
    {
      FakeRun resumed;
      g_autofree char *dir = g_dir_make_tmp ("rn-killed-XXXXXX", NULL);
      run_and_kill (yaml, epoch_length, dir, scores, G_N_ELEMENTS (scores));
      fake_run_open (&resumed, yaml, epoch_length, dir);
      resumed.fake.scores = scores;
      resumed.fake.n_scores = G_N_ELEMENTS (scores);
      fake_run_resume (&resumed, NULL);
      gint64 from = rn_runner_iter (resumed.runner);
      g_assert_cmpint (from, <, kill_at);
      g_assert_cmpint (from, >=, kill_at - 7);
      resumed.fake.n_evaluations = (guint) rn_runner_epoch (resumed.runner);
      /* The second log has another name only if a second has passed, so the first one is put away. */
      g_autofree char *log = fake_run_files (dir, ".log.json"), *log_path = g_build_filename (dir, log, NULL);
      g_assert_cmpint (g_unlink (log_path), ==, 0);
      g_autoptr (GError) error = NULL;
      g_assert_true (rn_runner_run (resumed.runner, &error));

      g_assert_cmpmem (resumed.fake.w, sizeof resumed.fake.w, straight.fake.w, sizeof straight.fake.w);
      g_assert_cmpmem (resumed.fake.momentum, sizeof resumed.fake.momentum, straight.fake.momentum,
                       sizeof straight.fake.momentum);
      g_assert_cmpint (rn_runner_opt_step (resumed.runner), ==, rn_runner_opt_step (straight.runner));
      g_autofree char *list = fake_run_read_list (dir);
      g_assert_cmpstr (list, ==, expected_list);
      g_autofree char *files = fake_run_files (straight.dir, ".safetensors");
      fake_run_assert_files (dir, files);
      g_autoptr (GPtrArray) lines = fake_run_timeless_lines (dir);
      g_assert_cmpuint (lines->len, <=, expected->len);
      for (guint i = 0; i < lines->len; i++)
        g_assert_cmpstr (g_ptr_array_index (lines, lines->len - 1 - i), ==,
                         g_ptr_array_index (expected, expected->len - 1 - i));
      fake_run_remove (dir);
      fake_run_close (&resumed);
    }
  fake_run_remove (straight.dir);
  fake_run_close (&straight);
}

/* ---- Signals ---- */

static gboolean
raise_after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) + 1 == kill_at)
    raise (SIGTERM);
  return TRUE;
}

RN_HOOK_DEFINE (raiser, KillHook, .name = "RaiseHook", .summary = "for tests",
                .after_train_iter = raise_after_train_iter);

static void
test_signal (void)
{
  const char *yaml = BY_EPOCH (2, "custom_hooks: [{type: RaiseHook}]\n");
  FakeRun straight;

  kill_at = -1;
  fake_run_open (&straight, yaml, 5, NULL);
  fake_run_go (&straight);
  for (gint64 at = 1; at <= 10; at++)
    {
      FakeRun stopped, resumed;
      fake_run_open (&stopped, yaml, 5, NULL);
      kill_at = at;
      rn_signals_install ();
      fake_run_go (&stopped);
      rn_signals_remove ();
      g_assert_cmpint (rn_runner_signal (stopped.runner), ==, SIGTERM);
      g_assert_cmpint (rn_runner_iter (stopped.runner), ==, at);
      g_autofree char *files = g_strdup_printf ("iter_%d.safetensors latest.safetensors", (int) at);
      fake_run_assert_files (stopped.dir, files);

      kill_at = -1;
      fake_run_open (&resumed, yaml, 5, stopped.dir);
      fake_run_resume (&resumed, NULL);
      fake_run_go (&resumed);
      g_assert_cmpint (rn_runner_epoch (resumed.runner), ==, 2);
      g_assert_cmpmem (resumed.fake.w, sizeof resumed.fake.w, straight.fake.w, sizeof straight.fake.w);
      fake_run_remove (stopped.dir);
      fake_run_close (&stopped);
      fake_run_close (&resumed);
    }
  fake_run_remove (straight.dir);
  fake_run_close (&straight);
}

/* An evaluation that a signal breaks off is made up for, and is the first thing after the resume. */
static void
test_signal_in_evaluation (void)
{
  const char *yaml =
      BY_EPOCH (2, "evaluation: {interval: 1, save_best: auto}\ncheckpoint_config: {interval: 1}\n");
  FakeRun stopped, resumed;

  fake_run_open (&stopped, yaml, 3, NULL);
  stopped.fake.scores = scores;
  stopped.fake.n_scores = 2;
  stopped.fake.signal_in_evaluation = 2;
  rn_signals_install ();
  fake_run_go (&stopped);
  rn_signals_remove ();
  g_assert_cmpint (rn_runner_signal (stopped.runner), ==, SIGTERM);
  fake_run_assert_files (
      stopped.dir, "best_mAP_epoch_1.safetensors epoch_1.safetensors epoch_2.safetensors latest.safetensors");

  fake_run_open (&resumed, yaml, 3, stopped.dir);
  resumed.fake.scores = scores;
  resumed.fake.n_scores = 2;
  resumed.fake.n_evaluations = 1;
  fake_run_resume (&resumed, NULL);
  fake_run_go (&resumed);
  g_assert_cmpuint (resumed.fake.n_evaluations, ==, 2);
  fake_run_assert_files (
      stopped.dir, "best_mAP_epoch_2.safetensors epoch_1.safetensors epoch_2.safetensors latest.safetensors");
  fake_run_remove (stopped.dir);
  fake_run_close (&stopped);
  fake_run_close (&resumed);
}

/* In the evaluation ahead of the first step: there is nothing to save, and the run begins anew with it. */
static void
test_signal_before_start (void)
{
  const char *yaml = BY_EPOCH (2, "evaluation: {interval: 1, start: 0, save_best: auto}\n");
  FakeRun stopped, resumed;

  fake_run_open (&stopped, yaml, 3, NULL);
  stopped.fake.scores = scores;
  stopped.fake.n_scores = 3;
  stopped.fake.signal_in_evaluation = 1;
  rn_signals_install ();
  fake_run_go (&stopped);
  rn_signals_remove ();
  g_assert_cmpint (rn_runner_signal (stopped.runner), ==, SIGTERM);
  g_assert_cmpint (rn_runner_iter (stopped.runner), ==, 0);
  fake_run_assert_files (stopped.dir, "");

  fake_run_open (&resumed, yaml, 3, stopped.dir);
  resumed.fake.scores = scores;
  resumed.fake.n_scores = 3;
  fake_run_resume (&resumed, NULL);
  fake_run_go (&resumed);
  g_assert_cmpuint (resumed.fake.n_evaluations, ==, 3); /* epochs 0, 1, 2 */
  g_assert_cmpint (rn_runner_iter (resumed.runner), ==, 6);
  fake_run_remove (stopped.dir);
  fake_run_close (&stopped);
  fake_run_close (&resumed);
}

static gboolean
fail_to_evaluate (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  return rn_hook_error (error, "no such image");
}

/* An evaluation that fails ends the run, and costs neither the checkpoint of its stage nor the evaluation. */
static void
test_failed_evaluation (gconstpointer yaml)
{
  g_autoptr (GError) error = NULL;
  FakeRun failed, resumed;

  fake_run_open (&failed, yaml, 3, NULL);
  failed.fake.vtbl.evaluate = fail_to_evaluate;
  g_assert_true (rn_runner_init (failed.runner, &error));
  g_assert_false (rn_runner_run (failed.runner, &error));
  g_assert_nonnull (strstr (error->message, "no such image"));

  fake_run_open (&resumed, yaml, 3, failed.dir);
  resumed.fake.scores = scores;
  resumed.fake.n_scores = 2;
  fake_run_resume (&resumed, NULL);
  g_assert_cmpint (rn_runner_iter (resumed.runner), ==, 3);
  fake_run_go (&resumed);
  g_assert_cmpuint (resumed.fake.n_evaluations, ==, 2);
  g_assert_cmpint (rn_runner_iter (resumed.runner), ==, 6);
  fake_run_remove (failed.dir);
  fake_run_close (&failed);
  fake_run_close (&resumed);
}

/* A best file that cannot be written does not take the regular one with it. */
static void
test_failed_best (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, BY_EPOCH (2, "evaluation: {save_best: auto}\ncheckpoint_config: {interval: 1}\n"), 3,
                 NULL);
  run.fake.scores = scores;
  run.fake.n_scores = 2;
  g_autofree char *path = g_build_filename (run.dir, "best_mAP_epoch_1.safetensors", NULL);
  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
  g_autofree char *list = fake_run_read_list (run.dir);
  g_assert_cmpstr (list, ==, "epoch_1.safetensors\n");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Damage ---- */

static void
damage (const char *dir, const char *name, gsize keep)
{
  g_autofree char *path = g_build_filename (dir, name, NULL), *text = NULL;
  gsize size;
  g_assert_true (g_file_get_contents (path, &text, &size, NULL));
  g_assert_true (g_file_set_contents (path, text, (gssize) MIN (size, keep), NULL));
}

static void
test_truncated (void)
{
  const char *yaml = BY_ITER (6, "checkpoint_config: {interval: 2}\n");
  FakeRun first, second, third;
  g_autoptr (GError) error = NULL;

  fake_run_open (&first, yaml, 100, NULL);
  fake_run_go (&first);
  damage (first.dir, "iter_6.safetensors", 700);
  fake_run_open (&second, yaml, 100, first.dir);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*LOST*iter_6.safetensors*");
  fake_run_resume (&second, NULL);
  g_test_assert_expected_messages ();
  g_assert_cmpint (rn_runner_iter (second.runner), ==, 4);
  fake_run_go (&second);
  g_assert_cmpmem (second.fake.w, sizeof second.fake.w, first.fake.w, sizeof first.fake.w);
  g_autofree char *list = fake_run_read_list (first.dir);
  g_assert_cmpstr (list, ==, "iter_6.safetensors\niter_4.safetensors\niter_2.safetensors\n");

  for (int i = 2; i <= 6; i += 2)
    {
      g_autofree char *name = g_strdup_printf ("iter_%d.safetensors", i);
      damage (first.dir, name, 100);
      g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*LOST*");
    }
  fake_run_open (&third, yaml, 100, first.dir);
  g_assert_true (rn_runner_init (third.runner, &error));
  g_assert_false (rn_runner_resume (third.runner, NULL, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  g_test_assert_expected_messages ();
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
  fake_run_close (&third);
}

static char *
contents (const char *dir, const char *name, gsize *size)
{
  g_autofree char *path = g_build_filename (dir, name, NULL);
  char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, size, NULL));
  return text;
}

/* Resumes in @dir; the newest file, iter_4, must be found damaged, and iter_2 be taken. */
static void
assert_falls_back (const char *yaml, const char *dir)
{
  FakeRun run;
  fake_run_open (&run, yaml, 100, dir);
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "THIS CHECKPOINT IS LOST*iter_4.safetensors*");
  fake_run_resume (&run, NULL);
  g_test_assert_expected_messages ();
  g_assert_cmpint (rn_runner_iter (run.runner), ==, 2);
  fake_run_close (&run);
}

/* Cut anywhere, or with any byte changed, a file is known to be damaged. */
static void
test_any_damage (void)
{
  const char *yaml = BY_ITER (4, "checkpoint_config: {interval: 2}\n");
  FakeRun run;
  gsize size;

  fake_run_open (&run, yaml, 100, NULL);
  fake_run_go (&run);
  g_autofree char *text = contents (run.dir, "iter_4.safetensors", &size);
  g_autofree char *path = g_build_filename (run.dir, "iter_4.safetensors", NULL);
  g_assert_cmpuint (size, >, 1000);
  for (gsize keep = 0; keep < size; keep += keep < 16 || keep + 40 > size ? 1 : 37)
    {
      g_assert_true (g_file_set_contents (path, text, (gssize) keep, NULL));
      assert_falls_back (yaml, run.dir);
    }
  for (gsize at = 0; at < size; at += at < 16 || at + 40 > size ? 1 : 37)
    {
      text[at] ^= 0x20;
      g_assert_true (g_file_set_contents (path, text, (gssize) size, NULL));
      assert_falls_back (yaml, run.dir);
      text[at] ^= 0x20;
    }
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- What a resume refuses, and what it says ---- */

static void
test_mismatch (void)
{
  const char *yaml = BY_ITER (2, "checkpoint_config: {interval: 2}\n");
  FakeRun first, second;
  g_autoptr (GError) error = NULL;

  fake_run_open (&first, yaml, 10, NULL);
  fake_run_go (&first);
  fake_run_open (&second, yaml, 10, first.dir);
  second.fake.task.batch_size = 4;
  g_assert_true (rn_runner_init (second.runner, &error));
  g_assert_false (rn_runner_resume (second.runner, NULL, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "data.samples_per_gpu: 2"));
  g_clear_error (&error);
  second.fake.task.batch_size = 2;
  second.fake.task.epoch_length = 11;
  g_assert_false (rn_runner_resume (second.runner, NULL, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  g_clear_error (&error);
  second.fake.task.epoch_length = 10;

  const char *const *classes = second.fake.task.class_names;
  g_autofree char *first_class = g_strconcat (classes[0], "-", NULL);
  const char *const others[] = { first_class, NULL };
  second.fake.task.class_names = others;
  g_assert_false (rn_runner_resume (second.runner, NULL, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, first_class));
  g_clear_error (&error);
  second.fake.task.class_names = classes;

  g_assert_false (rn_runner_resume (second.runner, "/nonexistent.safetensors", &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISSING);

  second.fake.task.device = "another";
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*\"fake\"*\"another\"*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "resumed from*");
  fake_run_resume (&second, NULL);
  g_test_assert_expected_messages ();
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

/* Reads a tensor of another file. */
static gboolean
read_stored (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, ((const RnStoredTensor *) source)->data + offset, size);
  return TRUE;
}

/* Writes @path anew with one text changed, and a checksum that fits. */
static void
forge (const char *path, const char *key, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  g_autoptr (RnSafetensorsWriter) writer = rn_safetensors_writer_new ();
  g_autoptr (GPtrArray) keys = rn_safetensors_metadata_keys (file, "");

  for (guint i = 0; i < keys->len; i++)
    if (strcmp (g_ptr_array_index (keys, i), "checksum") != 0)
      rn_safetensors_writer_set_metadata (writer, g_ptr_array_index (keys, i),
                                          rn_safetensors_metadata (file, g_ptr_array_index (keys, i)));
  rn_safetensors_writer_set_metadata (writer, key, text);
  for (guint i = 0; i < rn_safetensors_size (file); i++)
    {
      RnTensorDesc desc = rn_desc_vector (RN_F32, FAKE_N);
      const RnStoredTensor *tensor = rn_safetensors_get (file, i);
      rn_safetensors_writer_add (writer, tensor->name, &desc, read_stored, (gpointer) tensor, NULL);
    }
  g_assert_true (rn_safetensors_writer_save (writer, path, &error));
}

typedef struct
{
  const char *key, *text;
  gboolean is_ok;
} Forgery;

#define COUNTERS(iter, epoch, inner, step) \
  "{\"iter\": " iter ", \"epoch\": " epoch ", \"inner_iter\": " inner ", \"opt_step\": " step "}"

#define SAMPLER(batch, world, length) \
  "{\"batch_size\": " batch ", \"world_size\": " world ", \"epoch_length\": " length "}"

static void
test_forged (void)
{
  static const Forgery forgeries[] = {
    { "format", "another-1", FALSE },
    { "counters", COUNTERS ("13", "1", "3", "13"), TRUE },
    { "counters", COUNTERS ("-1", "0", "-1", "0"), FALSE },
    { "counters", COUNTERS ("13", "0", "13", "13"), FALSE }, /* past the end of the epoch */
    { "counters", COUNTERS ("14", "1", "3", "13"), FALSE },
    { "counters", COUNTERS ("9223372036854775807", "922337203685477581", "0", "0"), FALSE },
    { "counters", COUNTERS ("-9223372036854775808", "1", "3", "13"),
      FALSE }, /* iter - inner_iter: no number */
    { "counters", COUNTERS ("13", "1", "3", "9223372036854775807"), FALSE }, /* no step can follow */
    { "counters", "{\"iter\": 1e3}", FALSE },
    { "counters", "[", FALSE },
    { "sampler", "{}", FALSE },
    { "log/0000/loss", "{\"iters\": [1e300, -5, null], \"values\": [1]}", TRUE },
    { "log/0000", "{}", TRUE },
    { "log/0000/loss", "x", FALSE },
    { "hook/TextLoggerHook", "{\"last_line\": \"soon\"}", TRUE },
    { "hook/TextLoggerHook", "{\"last_line\": {}}", FALSE },
    { "hook/EvalHook", "{\"best_names\": \"best_../../mAP\", \"best_scores\": [1.0]}", TRUE },
    { "sampler", SAMPLER ("2", "1", "10"), TRUE },
    { "sampler", "{\"batch_size\": 2, \"epoch_length\": 10}", TRUE }, /* of one process */
    { "sampler", SAMPLER ("0", "1", "10"), FALSE },
    { "sampler", SAMPLER ("2", "0", "10"), FALSE },
    { "sampler", SAMPLER ("9223372036854775807", "9223372036854775807", "10"), FALSE },
    { "sampler", SAMPLER ("2", "1", "0"), FALSE },
    { "sampler", SAMPLER ("2", "2", "5"), FALSE },
    { "config", "a: [", TRUE }, /* cannot be compared, which is said */
  };
  const char *yaml = BY_ITER (20, "checkpoint_config: {interval: 13, max_keep_ckpts: 1, save_last: false}\n");

  for (gsize i = 0; i < G_N_ELEMENTS (forgeries); i++)
    {
      g_autoptr (GError) error = NULL;
      FakeRun first, second;
      fake_run_open (&first, yaml, 10, NULL);
      fake_run_go (&first);
      g_autofree char *path = g_build_filename (first.dir, "iter_13.safetensors", NULL);
      forge (path, forgeries[i].key, forgeries[i].text);
      fake_run_open (&second, yaml, 10, first.dir);
      g_assert_true (rn_runner_init (second.runner, &error));
      if (strcmp (forgeries[i].key, "config") == 0)
        g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*cannot be compared*");
      gboolean is_ok = rn_runner_resume (second.runner, NULL, &error);
      g_assert_cmpint (is_ok, ==, forgeries[i].is_ok);
      if (!is_ok)
        g_assert_cmpint (error->domain, ==, RN_CHECKPOINT_ERROR);
      else
        g_assert_true (rn_runner_run (second.runner, &error));
      fake_run_remove (first.dir);
      fake_run_close (&first);
      fake_run_close (&second);
    }
}

/* With nothing to take up a run starts at the beginning; a named file is taken, and what came after it is
 * forgotten. */
static void
test_which_file (void)
{
  const char *yaml = BY_ITER (6, "checkpoint_config: {interval: 2}\n");
  FakeRun first, second;

  fake_run_open (&first, yaml, 100, NULL);
  g_assert_true (rn_runner_init (first.runner, NULL));
  fake_run_resume (&first, NULL);
  g_assert_cmpint (rn_runner_iter (first.runner), ==, 0);
  fake_run_go (&first);

  g_autofree char *path = g_build_filename (first.dir, "iter_4.safetensors", NULL);
  fake_run_open (&second, yaml, 100, first.dir);
  fake_run_resume (&second, path);
  g_assert_cmpint (rn_runner_iter (second.runner), ==, 4);
  fake_run_go (&second);
  g_autofree char *list = fake_run_read_list (first.dir);
  g_assert_cmpstr (list, ==, "iter_6.safetensors\niter_4.safetensors\niter_2.safetensors\n");

  /* The link is another name of the newest one: nothing is forgotten. */
  FakeRun third;
  g_autofree char *link = g_build_filename (first.dir, "latest.safetensors", NULL);
  fake_run_open (&third, BY_ITER (8, "checkpoint_config: {interval: 2}\n"), 100, first.dir);
  fake_run_resume (&third, link);
  fake_run_go (&third);
  g_autofree char *longer = fake_run_read_list (first.dir);
  g_assert_cmpstr (longer, ==,
                   "iter_8.safetensors\niter_6.safetensors\niter_4.safetensors\niter_2.safetensors\n");
  fake_run_close (&third);

  /* A file that is not in the list: those of before stay in it. */
  FakeRun fourth;
  g_autofree char *best = g_build_filename (first.dir, "best_5.safetensors", NULL);
  g_autofree char *command = g_strdup_printf ("cp '%s' '%s'", path, best);
  g_assert_true (g_spawn_command_line_sync (command, NULL, NULL, NULL, NULL));
  fake_run_open (&fourth, yaml, 100, first.dir);
  fake_run_resume (&fourth, best);
  fake_run_go (&fourth);
  g_autofree char *shorter = fake_run_read_list (first.dir);
  g_assert_cmpstr (shorter, ==, "iter_6.safetensors\niter_4.safetensors\niter_2.safetensors\n");
  fake_run_close (&fourth);

  /* One of another run: what is here is not its past. */
  FakeRun fifth, sixth;
  fake_run_open (&fifth, yaml, 100, NULL);
  fake_run_go (&fifth);
  fake_run_open (&sixth, BY_ITER (8, "checkpoint_config: {interval: 2}\n"), 100, fifth.dir);
  fake_run_resume (&sixth, path);
  fake_run_go (&sixth);
  g_autofree char *other = fake_run_read_list (fifth.dir);
  g_assert_cmpstr (other, ==, "iter_8.safetensors\niter_6.safetensors\n");
  fake_run_remove (fifth.dir);
  fake_run_close (&sixth);
  fake_run_close (&fifth);
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_killer, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_raiser, NULL));

  g_test_add_data_func ("/runner/same-bits/iter", BY_ITER (20, "checkpoint_config: {interval: 3}\n"),
                        test_same_bits);
  g_test_add_data_func ("/runner/same-bits/epoch",
                        BY_EPOCH (4, "checkpoint_config: {interval: 3, by_epoch: false, max_keep_ckpts: 2}\n"
                                     "evaluation: {interval: 1, save_best: auto}\n"
                                     "lr_config: {policy: step, step: [2], warmup: linear, warmup_iters: 9}\n"
                                     "optimizer_config: {grad_clip: {max_norm: 1}}\n"),
                        test_same_bits);
  g_test_add_func ("/runner/signal", test_signal);
  g_test_add_func ("/runner/signal-in-evaluation", test_signal_in_evaluation);
  g_test_add_func ("/runner/signal-before-start", test_signal_before_start);
  g_test_add_data_func ("/runner/failed-evaluation/epoch",
                        BY_EPOCH (2, "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n"),
                        test_failed_evaluation);
  g_test_add_data_func ("/runner/failed-evaluation/iter",
                        BY_ITER (6, "evaluation: {interval: 3, by_epoch: false}\n"
                                    "checkpoint_config: {interval: 3, by_epoch: false}\n"),
                        test_failed_evaluation);
  g_test_add_func ("/runner/failed-best", test_failed_best);
  g_test_add_func ("/runner/truncated", test_truncated);
  g_test_add_func ("/runner/any-damage", test_any_damage);
  g_test_add_func ("/runner/mismatch", test_mismatch);
  g_test_add_func ("/runner/forged", test_forged);
  g_test_add_func ("/runner/which-file", test_which_file);
  return g_test_run ();
}
