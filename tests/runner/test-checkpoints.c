/* When a run saves, and which files it keeps. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/checkpoint-list.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Retention ---- */

typedef struct
{
  const char *yaml;
  gint64 epoch_length;
  const char *files, *list;
} Retention;

static const Retention retentions[] = {
  { BY_ITER (12, "checkpoint_config: {interval: 5, max_keep_ckpts: 1}\n"), 100,
    "iter_12.safetensors latest.safetensors", "iter_12.safetensors\n" },
  { BY_ITER (12, "checkpoint_config: {interval: 5, max_keep_ckpts: 2}\n"), 100,
    "iter_10.safetensors iter_12.safetensors latest.safetensors",
    "iter_12.safetensors\niter_10.safetensors\n" },
  { BY_ITER (12, "checkpoint_config: {interval: 5, save_last: false}\n"), 100,
    "iter_10.safetensors iter_5.safetensors latest.safetensors",
    "iter_10.safetensors\niter_5.safetensors\n" },
  { BY_ITER (12, "checkpoint_config: {interval: 5, by_epoch: true, max_keep_ckpts: 3}\n"), 2,
    "epoch_5.safetensors epoch_6.safetensors latest.safetensors",
    "epoch_6.safetensors\nepoch_5.safetensors\n" },
  /* Counted in epochs, ends in the middle of one. */
  { BY_ITER (5, "checkpoint_config: {interval: 1, by_epoch: true}\n"), 4,
    "epoch_1.safetensors iter_5.safetensors latest.safetensors",
    "iter_5.safetensors\nepoch_1.safetensors\n" },
  { BY_EPOCH (3, "checkpoint_config: {interval: 2, max_keep_ckpts: 1}\n"), 2,
    "epoch_3.safetensors latest.safetensors", "epoch_3.safetensors\n" },
  { BY_EPOCH (2, "checkpoint_config: {interval: 3, by_epoch: false}\n"), 4,
    "iter_3.safetensors iter_6.safetensors iter_8.safetensors latest.safetensors",
    "iter_8.safetensors\niter_6.safetensors\niter_3.safetensors\n" },
  /* Saving begins late, and the interval counts from there; the last one is saved in any case. */
  { BY_ITER (12, "checkpoint_config: {interval: 3, save_begin: 5}\n"), 100,
    "iter_11.safetensors iter_12.safetensors iter_5.safetensors iter_8.safetensors latest.safetensors",
    "iter_12.safetensors\niter_11.safetensors\niter_8.safetensors\niter_5.safetensors\n" },
  { BY_EPOCH (3, "checkpoint_config: {interval: 1, save_begin: 9}\n"), 2,
    "epoch_3.safetensors latest.safetensors", "epoch_3.safetensors\n" },
  { BY_EPOCH (2, "checkpoint_config: {}\n"), 2, "epoch_2.safetensors latest.safetensors",
    "epoch_2.safetensors\n" },
};

static void
test_retention (gconstpointer data)
{
  const Retention *r = data;
  FakeRun fake;

  fake_run_open (&fake, r->yaml, r->epoch_length, NULL);
  g_autofree char *foreign = g_build_filename (fake.dir, "iter_1.safetensors.bak", NULL);
  g_assert_true (g_file_set_contents (foreign, "mine", -1, NULL));
  fake_run_go (&fake);
  fake_run_assert_files (fake.dir, r->files);
  g_autofree char *list = fake_run_read_list (fake.dir);
  g_assert_cmpstr (list, ==, r->list);
  g_assert_true (g_file_test (foreign, G_FILE_TEST_EXISTS));

  g_autofree char *link = g_build_filename (fake.dir, "latest.safetensors", NULL);
  g_autofree char *target = g_file_read_link (link, NULL);
  g_assert_true (g_str_has_prefix (list, target));
  fake_run_remove (fake.dir);
  fake_run_close (&fake);
}

/* A new run in an old folder deletes no file of the old one. */
/* A run that died in its last save, between the list and what follows from it, has nothing left to do but
 * that. */
static void
test_unsettled (void)
{
  static const char yaml[] = BY_ITER (6, "checkpoint_config: {interval: 2, max_keep_ckpts: 2}\n");
  FakeRun first, second;

  fake_run_open (&first, yaml, 100, NULL);
  fake_run_go (&first);
  g_autofree char *list = g_build_filename (first.dir, "last_checkpoint", NULL),
                  *link = g_build_filename (first.dir, "latest.safetensors", NULL),
                  *oldest = g_build_filename (first.dir, "iter_2.safetensors", NULL);
  g_assert_true (g_file_set_contents (oldest, "old", -1, NULL));
  g_assert_true (
      g_file_set_contents (list, "iter_6.safetensors\niter_4.safetensors\niter_2.safetensors\n", -1, NULL));
  g_assert_cmpint (g_unlink (link), ==, 0);

  fake_run_open (&second, yaml, 100, first.dir);
  fake_run_resume (&second, NULL);
  g_assert_true (rn_runner_run (second.runner, NULL));
  fake_run_assert_files (first.dir, "iter_4.safetensors iter_6.safetensors latest.safetensors");
  g_autofree char *settled = fake_run_read_list (first.dir), *target = g_file_read_link (link, NULL);
  g_assert_cmpstr (settled, ==, "iter_6.safetensors\niter_4.safetensors\n");
  g_assert_cmpstr (target, ==, "iter_6.safetensors");
  fake_run_remove (first.dir);
  fake_run_close (&second);
  fake_run_close (&first);
}

static void
test_old_folder (void)
{
  FakeRun first, second;

  fake_run_open (&first, BY_ITER (6, "checkpoint_config: {interval: 2}\n"), 100, NULL);
  fake_run_go (&first);
  fake_run_open (&second, BY_ITER (7, "checkpoint_config: {interval: 7, max_keep_ckpts: 1}\n"), 100,
                 first.dir);
  fake_run_go (&second);
  fake_run_assert_files (
      first.dir,
      "iter_2.safetensors iter_4.safetensors iter_6.safetensors iter_7.safetensors latest.safetensors");
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

static gboolean
stop (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_stop (runner);
  return TRUE;
}

typedef struct
{
  RnHook hook;
} StopHook;

RN_HOOK_DESC (stop, StopHook, .name = "StopHook", .summary = "for tests", .after_train_iter = stop);

static void
test_out_dir (void)
{
  FakeRun fake;
  g_autofree char *out = g_dir_make_tmp ("rn-out-XXXXXX", NULL);
  g_autofree char *yaml = g_strdup_printf (
      BY_ITER (4, "checkpoint_config: {interval: 2, max_keep_ckpts: 1, out_dir: %s}\n"), out);

  fake_run_open (&fake, yaml, 100, NULL);
  fake_run_go (&fake);
  g_autofree char *name = g_path_get_basename (fake.dir);
  g_autofree char *dir = g_build_filename (out, name, NULL);
  fake_run_assert_files (dir, "iter_4.safetensors");
  fake_run_assert_files (fake.dir, "latest.safetensors");

  /* A run that ends early saves itself there too. */
  FakeRun again;
  g_autofree char *longer =
      g_strdup_printf (BY_ITER (9, "checkpoint_config: {interval: 9, max_keep_ckpts: 1, out_dir: "
                                   "%s}\ncustom_hooks: [{type: StopHook}]\n"),
                       out);
  fake_run_open (&again, longer, 100, fake.dir);
  fake_run_resume (&again, NULL);
  g_assert_cmpint (rn_runner_iter (again.runner), ==, 4);
  g_assert_true (rn_runner_run (again.runner, NULL));
  fake_run_assert_files (dir, "iter_4.safetensors iter_5.safetensors");
  fake_run_close (&again);
  fake_run_remove (dir);
  g_assert_cmpint (g_rmdir (out), ==, 0);
  fake_run_remove (fake.dir);
  fake_run_close (&fake);
}

/* ---- What hooks ask for ---- */

static const char *wanted_name;

static gboolean
want (RnHook *hook, RnRunner *runner, GError **error)
{
  if (rn_runner_iter (runner) == 1)
    rn_runner_save (runner, hook, wanted_name);
  return TRUE;
}

typedef struct
{
  RnHook hook;
} WantHook;

RN_HOOK_DESC (want, WantHook, .name = "WantHook", .summary = "for tests", .after_train_iter = want);

#define WANT \
  BY_ITER (8, "checkpoint_config: {interval: 2, max_keep_ckpts: 1}\ncustom_hooks: [{type: WantHook}]\n")

/* It is kept, is not what a resume takes, holds the optimizer, and can be named to go on from. */
static void
test_asked_for (void)
{
  FakeRun run, again;

  wanted_name = "mine";
  fake_run_open (&run, WANT, 100, NULL);
  fake_run_go (&run);
  fake_run_assert_files (run.dir, "iter_8.safetensors latest.safetensors mine.safetensors");
  g_autofree char *list = fake_run_read_list (run.dir);
  g_assert_cmpstr (list, ==, "iter_8.safetensors\n");

  g_autofree char *path = g_build_filename (run.dir, "mine.safetensors", NULL);
  g_autoptr (GError) error = NULL;
  fake_run_open (&again, BY_ITER (8, "checkpoint_config: {interval: 100}\n"), 100, run.dir);
  fake_run_resume (&again, path);
  g_assert_cmpint (rn_runner_iter (again.runner), ==, 2);
  g_assert_true (rn_runner_run (again.runner, &error));
  g_assert_cmpmem (again.fake.w, sizeof again.fake.w, run.fake.w, sizeof run.fake.w);
  g_assert_cmpmem (again.fake.momentum, sizeof again.fake.momentum, run.fake.momentum,
                   sizeof run.fake.momentum);
  fake_run_close (&again);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* What is asked for ahead of an iteration has the weights from before it. */
RN_HOOK_DESC (want_before_iter, WantHook, .name = "WantBeforeIterHook", .summary = "for tests",
              .before_train_iter = want);
RN_HOOK_DESC (want_before_epoch, WantHook, .name = "WantBeforeEpochHook", .summary = "for tests",
              .before_train_epoch = want);

static gboolean
want_at_end (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_save (runner, hook, wanted_name);
  return TRUE;
}

RN_HOOK_DESC (want_after_run, WantHook, .name = "WantAfterRunHook", .summary = "for tests",
              .after_run = want_at_end);

static void
test_asked_for_stages (void)
{
  static const struct
  {
    const char *yaml;
    gint64 iter;
  } cases[] = {
    { BY_ITER (6, "custom_hooks: [{type: WantBeforeIterHook}]\n"), 1 },
    { BY_ITER (6, "custom_hooks: [{type: WantBeforeEpochHook}]\n"), 1 },
    { BY_ITER (6, "custom_hooks: [{type: WantAfterRunHook}]\n"), 6 },
  };

  wanted_name = "mine";
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      FakeRun run, again;
      fake_run_open (&run, cases[i].yaml, 1, NULL);
      fake_run_go (&run);
      fake_run_assert_files (run.dir, "mine.safetensors");

      g_autofree char *path = g_build_filename (run.dir, "mine.safetensors", NULL);
      g_autoptr (GError) error = NULL;
      fake_run_open (&again, BY_ITER (6, ""), 1, run.dir);
      fake_run_resume (&again, path);
      g_assert_cmpint (rn_runner_iter (again.runner), ==, cases[i].iter);
      g_assert_true (rn_runner_run (again.runner, &error));
      g_assert_cmpmem (again.fake.w, sizeof again.fake.w, run.fake.w, sizeof run.fake.w);
      fake_run_close (&again);
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* Names that the list may own one day, and be deleted with, or that leave the folder. */
static void
test_asked_for_refused (void)
{
  static const char *const names[] = { "iter_2", "epoch_1", "latest", "../x",     "sub/x",
                                       ".x",     "",        "a\nb",   "epoch_1\n" };

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autoptr (GError) error = NULL;
      FakeRun run;
      wanted_name = names[i];
      g_assert_true (fake_run_try (&run, WANT, 100, &error));
      g_assert_false (rn_runner_run (run.runner, &error));
      g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_WRITE);
      g_assert_true (g_str_has_prefix (error->message, "WantHook: after_train_iter: "));
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* ---- The list ---- */

static void
test_damaged_list (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("rn-list-XXXXXX", &error);
  g_assert_no_error (error);
  g_autofree char *path = g_build_filename (dir, "last_checkpoint", NULL);

  g_assert_true (g_file_set_contents (path, "../iter_4.safetensors\n\niter_3.safetensors\n", -1, &error));
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_WARNING, "*\"../iter_4.safetensors\"*left out");
  g_autoptr (GPtrArray) list = rn_checkpoint_list_read (dir, &error);
  g_test_assert_expected_messages ();
  g_assert_no_error (error);
  g_assert_cmpuint (list->len, ==, 1);
  g_assert_cmpstr (g_ptr_array_index (list, 0), ==, "iter_3.safetensors");
  g_unlink (path);

  g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  g_assert_null (rn_checkpoint_list_read (dir, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  g_assert_true (g_str_has_suffix (error->message, "last_checkpoint: not a regular file"));
  g_clear_error (&error);
  g_rmdir (path);

  g_assert_cmpint (mkfifo (path, 0600), ==, 0); /* nobody ever writes into it */
  g_assert_null (rn_checkpoint_list_read (dir, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_DAMAGED);
  g_unlink (path);
  g_rmdir (dir);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_want, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_want_before_iter, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_want_before_epoch, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_want_after_run, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_stop, NULL));

  for (gsize i = 0; i < G_N_ELEMENTS (retentions); i++)
    {
      g_autofree char *name = g_strdup_printf ("/runner/retention/%u", (guint) i);
      g_test_add_data_func (name, &retentions[i], test_retention);
    }
  g_test_add_func ("/runner/retention/unsettled", test_unsettled);
  g_test_add_func ("/runner/retention/old-folder", test_old_folder);
  g_test_add_func ("/runner/retention/out-dir", test_out_dir);
  g_test_add_func ("/runner/asked-for", test_asked_for);
  g_test_add_func ("/runner/asked-for/stages", test_asked_for_stages);
  g_test_add_func ("/runner/asked-for/refused", test_asked_for_refused);
  g_test_add_func ("/runner/damaged-list", test_damaged_list);
  return g_test_run ();
}
