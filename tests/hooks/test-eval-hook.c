/* When EvalHook evaluates, which of two scores it takes for the better one, and which files it keeps. */
#include "config.h"

#include "hooks/best.h"
#include "runner/config/config.h"
#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static FakeRun
run_with (const char *yaml, gint64 epoch_length, const double *scores, guint n_scores)
{
  FakeRun run;
  fake_run_open (&run, yaml, epoch_length, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = n_scores;
  fake_run_go (&run);
  return run;
}

static void
finish (FakeRun *run)
{
  fake_run_remove (run->dir);
  fake_run_close (run);
}

/* ---- When ---- */

/* Notes the finished epochs or iterations of each evaluation. */
static GString *noted;

static gboolean
note (RnHook *hook, RnRunner *runner, GError **error)
{
  const RnRecord *scores = rn_runner_scores (runner);
  if (scores != NULL)
    g_string_append_printf (noted, "%s%d/%d", noted->len > 0 ? " " : "",
                            (int) rn_record_int (scores, "epoch", -1),
                            (int) rn_record_int (scores, "iter", -1));
  return TRUE;
}

typedef struct
{
  RnHook hook;
} NoteHook;

RN_HOOK_DESC (note, NoteHook, .name = "NoteHook", .summary = "for tests", .priority = RN_PRIORITY_LOWEST,
              .before_run = note, .before_train_iter = note, .after_train_iter = note,
              .after_train_epoch = note);

typedef struct
{
  const char *yaml;
  const char *when; /* epoch/iteration of each, in epochs of 2 iterations */
} When;

/* MMDetection's EvalHook._should_evaluate and _decide_interval, with one more at the end of the run. */
static const When whens[] = {
  { BY_EPOCH (5, "evaluation: {interval: 1}\n"), "1/2 2/4 3/6 4/8 5/10" },
  { BY_EPOCH (5, "evaluation: {interval: 2}\n"), "2/4 4/8 5/10" },
  { BY_EPOCH (5, "evaluation: {interval: 2, start: 3}\n"), "3/6 5/10" },
  { BY_EPOCH (5, "evaluation: {interval: 2, start: 0}\n"), "0/0 2/4 4/8 5/10" },
  { BY_EPOCH (5, "evaluation: {interval: 99}\n"), "5/10" },
  { BY_EPOCH (5, "evaluation: {interval: 4, by_epoch: false}\n"), "2/4 4/8 5/10" },
  { BY_EPOCH (4, "evaluation: {interval: 3, start: 4, by_epoch: false}\n"), "2/4 3/7 4/8" },
  { BY_ITER (5, "evaluation: {interval: 1, by_epoch: true}\n"),
    "1/2 2/4 3/5" }, /* ends in the middle of a pass */
  { BY_ITER (4, "evaluation: {interval: 1, by_epoch: true}\n"), "1/2 2/4" },
  { BY_ITER (5, "evaluation: {interval: 2, by_epoch: false}\n"), "1/2 2/4 2/5" },
  { BY_ITER (5, "evaluation: {interval: 2}\n"), "1/2 2/4 2/5" },
  { BY_EPOCH (9, "evaluation: {interval: 4, dynamic_intervals: [[5, 2], [8, 1]]}\n"), "4/8 6/12 8/16 9/18" },
  { BY_EPOCH (6, "evaluation: {interval: 99, start: 1, dynamic_intervals: [[3, 2]]}\n"),
    "1/2 3/6 5/10 6/12" },
  { BY_ITER (9, "evaluation: {interval: 5, by_epoch: false, dynamic_intervals: [[6, 2]]}\n"),
    "2/5 3/6 4/8 4/9" },
};

static void
test_when (gconstpointer data)
{
  static const double scores[9] = { 0.1 };
  const When *when = data;
  g_autofree char *yaml = g_strconcat (when->yaml, "custom_hooks: [{type: NoteHook}]\n", NULL);

  noted = g_string_new (NULL);
  FakeRun run = run_with (yaml, 2, scores, G_N_ELEMENTS (scores));
  g_assert_cmpstr (noted->str, ==, when->when);
  g_string_free (noted, TRUE);
  finish (&run);
}

/* ---- Rules ---- */

typedef struct
{
  const char *score;
  RnRuleKeys keys;
  const char *rule; /* NULL: not to be told */
} Rule;

static const char *const only_gain[] = { "gain", NULL };
static const char *const only_acc[] = { "ACC", NULL };

/* MMCV 1.7's EvalHook._init_rule, and AP50. */
static const Rule rules[] = {
  { "mAP", { 0 }, "greater" },
  { "bbox_mAP_50", { 0 }, "greater" },
  { "AP50", { 0 }, "greater" },
  { "AR@100", { 0 }, "greater" },
  { "Top1", { 0 }, "greater" },
  { "val_LOSS", { 0 }, "less" },
  { "loss", { 0 }, "less" },
  { "top_loss", { 0 }, "greater" }, /* the greater ones come first */
  { "loss",
    { .greater_keys = (const char *const[]){ "los", NULL } },
    "less" }, /* a whole name wins over a part */
  { "lap", { 0 }, NULL },
  { "gain", { 0 }, NULL },
  { "gain", { .less_keys = only_gain }, "less" },
  { "bigain", { .greater_keys = only_gain }, "greater" },
  { "mAP", { .greater_keys = only_gain, .less_keys = only_acc }, NULL },
  { "acc", { .greater_keys = only_gain, .less_keys = only_acc }, "less" },
  { "gain", { .rule = "greater" }, "greater" },
  { "mAP", { .rule = "less" }, "less" },
  { "mAP", { .rule = "more" }, NULL },
};

static void
test_rules (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) config = rn_config_load_text ("rule: x\n", "test.yaml", NULL, &error);

  for (gsize i = 0; i < G_N_ELEMENTS (rules); i++)
    {
      RnScoreRule rule;
      gboolean is_ok = rn_score_rule_choose (rules[i].score, &rules[i].keys, config, &rule, &error);
      g_test_message ("%s", rules[i].score);
      g_assert_cmpint (is_ok, ==, rules[i].rule != NULL);
      if (is_ok)
        g_assert_cmpstr (rn_score_rule_name (rule), ==, rules[i].rule);
      else
        g_assert_nonnull (strstr (error->message, "greater"));
      g_clear_error (&error);
    }
  g_assert_true (rn_score_is_better (RN_RULE_LESS, 1, 2));
  g_assert_false (rn_score_is_better (RN_RULE_LESS, 2, 2));
  g_assert_false (rn_score_is_better (RN_RULE_GREATER, (double) NAN, 2));
  g_assert_false (rn_score_is_better (RN_RULE_LESS, (double) NAN, 2));
}

/* ---- The best files ---- */

static void
assert_best (const RnBestList *list, const char *names)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < rn_best_list_size (list); i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "", rn_best_list_name (list, i));
  g_assert_cmpstr (text->str, ==, names);
}

static int
offer (RnBestList *list, const char *name, double score, guint max, const char *expected)
{
  g_autofree char *dropped = NULL;
  int place = rn_best_list_offer (list, name, score, max, &dropped);
  g_assert_cmpstr (dropped, ==, expected);
  return place;
}

static void
test_best_list (void)
{
  g_autoptr (RnBestList) list = rn_best_list_new (RN_RULE_LESS);

  g_assert_cmpint (offer (list, "best_a", 5, 3, NULL), ==, 0);
  g_assert_cmpint (offer (list, "best_b", 7, 3, NULL), ==, 1);
  g_assert_cmpint (offer (list, "best_nan", (double) NAN, 3, NULL), ==, -1);
  g_assert_cmpint (offer (list, "best_inf", -(double) INFINITY, 3, NULL), ==, -1);
  g_assert_cmpint (offer (list, "best_c", 5, 3, NULL), ==, 1); /* the earlier of equals is the better */
  g_assert_cmpint (offer (list, "best_d", 7, 3, NULL), ==, -1);
  g_assert_cmpint (offer (list, "best_e", 6, 3, "best_b"), ==, 2);
  assert_best (list, "best_a best_c best_e");
  g_assert_cmpint (offer (list, "best_e", 4, 3, NULL), ==, 0); /* written again */
  assert_best (list, "best_e best_a best_c");

  /* What a resume finds again: the files that are there. */
  static const char *const files[] = { "best_e",  "best_a", "best_c",
                                       "best_ok", "best_n", "epoch_3.safetensors" };
  g_autofree char *dir = g_dir_make_tmp ("rn-best-XXXXXX", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    {
      g_autofree char *path = g_build_filename (dir, files[i], NULL);
      g_assert_true (g_file_set_contents (path, "", 0, NULL));
    }
  g_autoptr (RnRecord) state = rn_record_new ();
  rn_best_list_save (list, state);
  g_autoptr (RnBestList) again = rn_best_list_new (RN_RULE_LESS);
  rn_best_list_load (again, state, dir);
  assert_best (again, "best_e best_a best_c");
  g_assert_cmpfloat (rn_best_list_score (again, 1), ==, 5);
  g_autofree char *gone = g_build_filename (dir, "best_a", NULL);
  g_assert_cmpint (g_unlink (gone), ==, 0);
  rn_best_list_load (again, state, dir);
  assert_best (again, "best_e best_c");

  /* What a forged file cannot do: name files of others, or more than it has scores for. */
  const double scores[] = { 1, 2, (double) NAN, 0 };
  rn_record_set_string (state, "best_names", "best_/../best_e\nepoch_3.safetensors\nbest_n\nbest_ok\nbest_c");
  rn_record_set_floats (state, "best_scores", scores, 4);
  rn_best_list_load (again, state, dir);
  assert_best (again, "best_ok");
  rn_record_set_int (state, "best_names", 3);
  rn_best_list_load (again, state, dir);
  assert_best (again, "");
  fake_run_remove (dir);
}

typedef struct
{
  const char *yaml;
  const char *files; /* after 6 epochs with the scores below */
} Best;

#define NO_REGULAR ", save_last: false}\n"

/* 0 is better than nothing, NaN than nothing at all. */
static const double best_scores[] = { 0, (double) NAN, -1, 0.25, 0.25, 0.125 };

static const Best bests[] = {
  { BY_EPOCH (6, "evaluation: {interval: 1, save_best: mAP}\ncheckpoint_config: {interval: 100" NO_REGULAR),
    "best_mAP_epoch_4.safetensors" },
  { BY_EPOCH (6, "evaluation: {save_best: auto, rule: less}\ncheckpoint_config: {interval: 100" NO_REGULAR),
    "best_mAP_epoch_3.safetensors" },
  { BY_EPOCH (
        6, "evaluation: {save_best: AP50, less_keys: [ap50]}\ncheckpoint_config: {interval: 100" NO_REGULAR),
    "best_AP50_epoch_3.safetensors" },
  { BY_EPOCH (6,
              "evaluation: {save_best: mAP, keep_best_k: 2}\ncheckpoint_config: {interval: 100" NO_REGULAR),
    "best_mAP_epoch_4.safetensors best_mAP_epoch_5.safetensors" },
  { BY_EPOCH (6,
              "evaluation: {save_best: mAP}\ncheckpoint_config: {keep_best_k: 3, interval: 100" NO_REGULAR),
    "best_mAP_epoch_4.safetensors best_mAP_epoch_5.safetensors best_mAP_epoch_6.safetensors" },
  { BY_EPOCH (6, "evaluation: {save_best: mAP, keep_best_k: 9}\ncheckpoint_config: {keep_best_k: 3, "
                 "interval: 100" NO_REGULAR),
    "best_mAP_epoch_1.safetensors best_mAP_epoch_3.safetensors best_mAP_epoch_4.safetensors "
    "best_mAP_epoch_5.safetensors best_mAP_epoch_6.safetensors" },
  { BY_EPOCH (6, "evaluation: {save_best: mAP, by_epoch: false, interval: 2}\n"
                 "checkpoint_config: {interval: 100" NO_REGULAR),
    "best_mAP_iter_8.safetensors" },
  /* The regular ones do not count for the best, nor the other way round. */
  { BY_EPOCH (6, "evaluation: {save_best: mAP}\ncheckpoint_config: {interval: 1, max_keep_ckpts: 1}\n"),
    "best_mAP_epoch_4.safetensors epoch_6.safetensors latest.safetensors" },
};

static void
test_best (gconstpointer data)
{
  const Best *best = data;
  FakeRun run = run_with (best->yaml, 2, best_scores, G_N_ELEMENTS (best_scores));
  g_assert_cmpuint (run.fake.n_evaluations, ==, 6);
  fake_run_assert_files (run.dir, best->files);
  finish (&run);
}

static void
test_before_training (void)
{
  FakeRun run =
      run_with (BY_EPOCH (3, "evaluation: {interval: 3, start: 0, save_best: AP50}\n"), 2, best_scores, 2);
  g_assert_cmpuint (run.fake.n_evaluations, ==, 2);
  fake_run_assert_files (run.dir, "best_AP50_epoch_0.safetensors");
  finish (&run);
}

static void
test_out_dir (void)
{
  g_autofree char *out = g_dir_make_tmp ("rn-best-XXXXXX", NULL);
  g_autofree char *yaml = g_strdup_printf (
      BY_EPOCH (6, "evaluation: {save_best: mAP, out_dir: %s}\ncheckpoint_config: {interval: 100" NO_REGULAR),
      out);
  FakeRun run = run_with (yaml, 2, best_scores, G_N_ELEMENTS (best_scores));
  g_autofree char *name = g_path_get_basename (run.dir), *dir = g_build_filename (out, name, NULL);

  fake_run_assert_files (dir, "best_mAP_epoch_4.safetensors");
  fake_run_assert_files (run.dir, "");
  fake_run_remove (dir);
  g_assert_cmpint (g_rmdir (out), ==, 0);
  finish (&run);
}

/* A resumed run with another measure leaves the files of the old one alone, and begins anew. */
static void
test_other_measure (void)
{
  const char *first_yaml = BY_EPOCH (2, "evaluation: {save_best: mAP}\ncheckpoint_config: {interval: 1}\n");
  const char *second_yaml = BY_EPOCH (
      4, "evaluation: {save_best: AP50, rule: less}\ncheckpoint_config: {interval: 1, max_keep_ckpts: 1}\n");
  static const double scores[] = { 0.5, 0.5, 0.5, 0.75, 0.25 };
  FakeRun first = run_with (first_yaml, 2, scores, 2), second;

  fake_run_open (&second, second_yaml, 2, first.dir);
  second.fake.scores = scores + 3;
  second.fake.n_scores = 2;
  g_autoptr (GError) error = NULL;
  fake_run_resume (&second, NULL);
  g_assert_true (rn_runner_run (second.runner, &error));
  fake_run_assert_files (first.dir,
                         "best_AP50_epoch_4.safetensors best_mAP_epoch_1.safetensors epoch_4.safetensors "
                         "latest.safetensors");
  fake_run_close (&second);
  finish (&first);
}

/* A run that was killed when the best file had been replaced, and that goes on from before that, does not
 * hold its scores against a file that is gone. */
static void
test_replaced_and_killed (void)
{
  const char *yaml = BY_EPOCH (2, "evaluation: {save_best: mAP}\ncheckpoint_config: {interval: 1}\n");
  static const double scores[] = { 0.5, 0.75, 0.25 };
  FakeRun first = run_with (yaml, 2, scores, 2), second;
  g_autofree char *path = g_build_filename (first.dir, "epoch_1.safetensors", NULL);
  g_autoptr (GError) error = NULL;

  fake_run_assert_files (
      first.dir, "best_mAP_epoch_2.safetensors epoch_1.safetensors epoch_2.safetensors latest.safetensors");
  g_autofree char *newer = g_build_filename (first.dir, "best_mAP_epoch_2.safetensors", NULL);
  g_assert_cmpint (g_unlink (newer), ==, 0);
  fake_run_open (&second, yaml, 2, first.dir);
  second.fake.scores = scores + 2; /* another configuration, which is worse */
  second.fake.n_scores = 1;
  fake_run_resume (&second, path);
  g_assert_true (rn_runner_run (second.runner, &error));
  fake_run_assert_files (
      first.dir, "best_mAP_epoch_2.safetensors epoch_1.safetensors epoch_2.safetensors latest.safetensors");
  fake_run_close (&second);
  finish (&first);
}

/* While the loss is not finite no checkpoint is written, so its score must not be remembered either. */
static double
lost_in_first_epoch (RnTask *task, const char *name)
{
  return ((FakeTask *) task)->epoch == 0 ? (double) NAN : 1;
}

static void
test_lost (void)
{
  static const double scores[] = { 0.5, 0.25 };
  FakeRun run;

  fake_run_open (&run, BY_EPOCH (2, "evaluation: {save_best: mAP}\n"), 2, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  run.fake.vtbl.loss = lost_in_first_epoch;
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR); /* the warnings are what is wanted */
  fake_run_go (&run);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  g_assert_cmpuint (run.fake.n_evaluations, ==, 2);
  fake_run_assert_files (run.dir, "best_mAP_epoch_2.safetensors");
  finish (&run);
}

/* ---- Refused before the training ---- */

typedef struct
{
  const char *line, *words;
} Refusal;

static const Refusal refusals[] = {
  { "evaluation: {save_best: mAp}\n",
    "no score \"mAp\"; with this metric and iou_thr there are auto, mAP, AP50" },
  { "evaluation: {save_best: bbox_mAP}\n", "no score \"bbox_mAP\"" },
  { "evaluation: {save_best: mAP, rule: bigger}\n", "no rule \"bigger\"; there are greater, less" },
  { "evaluation: {save_best: mAP, greater_keys: [x], less_keys: [y]}\n", "`rule: greater`" },
  { "evaluation: {dynamic_intervals: [3]}\n", "must be [milestone, interval]" },
  { "evaluation: {dynamic_intervals: [[3, 0]]}\n", "must be [milestone, interval]" },
  { "evaluation: {dynamic_intervals: [[3, 1], [3, 2]]}\n", "milestones must grow: 3 follows 3" },
  { "evaluation: {dynamic_intervals: 3}\n", "must be a list" },
  { "evaluation: {interval: 0}\n", "interval" },
  { "evaluation: {keep_best_k: 0}\n", "keep_best_k" },
  { "evaluation: {iou_thr: []}\n", "iou_thr" },
  { "evaluation: {save_best: mAP, out_dir: /dev/null/x}\n", "out_dir: /dev/null/x" },
  { "checkpoint_config: {keep_best_k: 0}\n", "keep_best_k" },
};

static void
test_refused (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (refusals); i++)
    {
      g_autofree char *yaml = g_strconcat ("runner: {max_epochs: 2}\n", refusals[i].line, NULL);
      g_autoptr (GError) error = NULL;
      FakeRun run;
      if (fake_run_try (&run, yaml, 2, &error))
        g_error ("not refused: %s", refusals[i].line);
      if (strstr (error->message, refusals[i].words) == NULL || strstr (error->message, "test.yaml:") == NULL)
        g_error ("no \"%s\" in: %s", refusals[i].words, error->message);
      finish (&run);
    }
}

/* Keys of MMDetection's files that mean nothing here are no error. */
static void
test_unused_keys (void)
{
  FakeRun run = run_with (
      BY_EPOCH (1, "evaluation: {interval: 1, proposal_nums: [100], logger: null, metric_items: [mAP], "
                   "classwise: false, jsonfile_prefix: x, iou_thrs: null, file_client_args: {backend: disk}, "
                   " gpu_collect: true, broadcast_bn_buffer: true}\n"
                   "checkpoint_config: {interval: 1, sync_buffer: false, file_client_args: {backend: disk}, "
                   "filename_tmpl: 'e_{}.pth', create_symlink: true, meta: {}}\n"),
      2, best_scores, 1);
  fake_run_assert_files (run.dir, "epoch_1.safetensors latest.safetensors");
  finish (&run);
}

/* An interval that was meant for epochs, in a run that counts iterations. */
static void
test_many (void)
{
  static const char *const quiet[] = { BY_ITER (1000, "evaluation: {interval: 10}\n"),
                                       BY_ITER (1000, "evaluation: {interval: 1, by_epoch: false}\n"),
                                       BY_ITER (1000, "evaluation: {interval: 1, by_epoch: true}\n"),
                                       BY_EPOCH (1000, "evaluation: {interval: 1}\n") };
  FakeRun run;
  g_autoptr (GError) error = NULL;

  g_test_expect_message ("rn-hooks", G_LOG_LEVEL_WARNING, "evaluation.interval: 9 counts*111 evaluations*");
  fake_run_open (&run, BY_ITER (1000, "evaluation: {interval: 9}\n"), 10, NULL);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_test_assert_expected_messages ();
  finish (&run);
  for (gsize i = 0; i < G_N_ELEMENTS (quiet); i++)
    {
      fake_run_open (&run, quiet[i], 10, NULL);
      g_assert_true (rn_runner_init (run.runner, &error));
      finish (&run);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_note, NULL));

  for (gsize i = 0; i < G_N_ELEMENTS (whens); i++)
    {
      g_autofree char *name = g_strdup_printf ("/eval-hook/when/%u", (guint) i);
      g_test_add_data_func (name, &whens[i], test_when);
    }
  for (gsize i = 0; i < G_N_ELEMENTS (bests); i++)
    {
      g_autofree char *name = g_strdup_printf ("/eval-hook/best/%u", (guint) i);
      g_test_add_data_func (name, &bests[i], test_best);
    }
  g_test_add_func ("/eval-hook/rules", test_rules);
  g_test_add_func ("/eval-hook/many", test_many);
  g_test_add_func ("/eval-hook/best-list", test_best_list);
  g_test_add_func ("/eval-hook/before-training", test_before_training);
  g_test_add_func ("/eval-hook/out-dir", test_out_dir);
  g_test_add_func ("/eval-hook/other-measure", test_other_measure);
  g_test_add_func ("/eval-hook/replaced-and-killed", test_replaced_and_killed);
  g_test_add_func ("/eval-hook/lost", test_lost);
  g_test_add_func ("/eval-hook/refused", test_refused);
  g_test_add_func ("/eval-hook/unused-keys", test_unused_keys);
  return g_test_run ();
}
