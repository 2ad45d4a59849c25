/* EarlyStoppingHook against MMEngine's, written down anew below. */
#include "config.h"

#include "runner/hook-list.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define NONE ((double) NAN)

typedef struct
{
  const char *keys; /* beside type and monitor */
  double scores[8];
  guint n;           /* of them */
  guint n_expected;  /* evaluations until the end */
  const char *words; /* of the message; NULL: the run is not stopped */
} Case;

/*
 * n_expected by hand from MMEngine's rule: better is more than min_delta ahead of the best so far; `patience`
 * evaluations in a row that are not end the run.
 */
static const Case cases[] = {
  { "patience: 2", { 0.1, 0.3, 0.35, 0.38, 0.9 }, 5, 4, "*mAP has not got better by more than 0.1 in 2*" },
  { "patience: 2, min_delta: 0.01", { 0.1, 0.3, 0.35, 0.38, 0.9 }, 5, 5, NULL },
  /* Exactly min_delta ahead is not enough; the wait begins anew with each better one. */
  { "patience: 2, min_delta: 0.25", { 0, 0.25, 0.5, 0.5, 0.5 }, 5, 5, "*in 2 evaluations*" },
  { "patience: 3, min_delta: 0", { 0.5, 0.5, 0.4, 0.3, 0.9 }, 5, 4, "*in 3 evaluations; best 0.5000*" },
  { "patience: 2, min_delta: 0, rule: less", { 0.5, 0.4, 0.4, 0.6, 0.1 }, 5, 4, "*best 0.4000, now 0.6000*" },
  { "patience: 2, rule: less", { 0.5, 0.41, 0.42, 0.1 }, 4, 3, "*in 2 evaluations*" },
  { "", { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.9 }, 7, 6, "*in 5 evaluations*" },
  { "stopping_threshold: 0.6", { 0.1, 0.6, 0.7, 0.8 }, 4, 3, "*better than the stopping_threshold 0.6*" },
  { "stopping_threshold: 0.3, rule: less", { 0.5, 0.3, 0.2 }, 3, 3, "*is 0.2000, better than*" },
  { "", { 0.1, NONE, 0.2 }, 3, 2, "*mAP is nan*" },
  { "check_finite: false, patience: 2, min_delta: 0", { 0.1, NONE, 0.2, NONE, NONE, 1 }, 6, 5, "*in 2*" },
  { "check_finite: false, patience: 1", { NONE, 0.3 }, 2, 1, "*in 1 evaluations*" },
};

/* The messages of the hook, one a line. */
static GString *messages;

static GLogWriterOutput
collect (GLogLevelFlags level, const GLogField *fields, gsize n, gpointer data)
{
  const char *domain = NULL, *message = NULL;
  for (gsize i = 0; i < n; i++)
    if (strcmp (fields[i].key, "GLIB_DOMAIN") == 0)
      domain = fields[i].value;
    else if (strcmp (fields[i].key, "MESSAGE") == 0)
      message = fields[i].value;
  if (g_strcmp0 (domain, "rn-hooks") == 0 && strstr (message, "early stopping") != NULL)
    g_string_append_printf (messages, "%s\n", message);
  return G_LOG_WRITER_HANDLED;
}

static char *
make_yaml (gboolean is_by_epoch, const char *keys)
{
  return g_strdup_printf ("%s"
                          "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP%s%s}]\n",
                          is_by_epoch
                              ? BY_EPOCH (8, "evaluation: {interval: 1}\n"
                                             "checkpoint_config: {interval: 100, save_last: false}\n")
                              : BY_ITER (24, "evaluation: {interval: 3, by_epoch: false}\n"
                                             "checkpoint_config: {interval: 100, save_last: false}\n"),
                          *keys != '\0' ? ", " : "", keys);
}

static void
check (const Case *c, gboolean is_by_epoch)
{
  g_autofree char *yaml = make_yaml (is_by_epoch, c->keys);
  double scores[8];
  FakeRun run;

  /* After those of the case the scores grow, so that nothing else stops the run. */
  for (guint i = 0; i < G_N_ELEMENTS (scores); i++)
    scores[i] = i < c->n ? c->scores[i] : strstr (c->keys, "less") != NULL ? -(double) i : (double) i;
  g_string_truncate (messages, 0);
  fake_run_open (&run, yaml, 3, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  fake_run_go (&run);
  g_assert_cmpuint (run.fake.n_evaluations, ==, c->words != NULL ? c->n_expected : 8);
  if (c->words == NULL)
    g_assert_cmpstr (messages->str, ==, "");
  else
    {
      g_assert_true (g_pattern_match_simple (c->words, messages->str));
      /* The run is saved where it ends. */
      g_autofree char *files = g_strdup_printf ("iter_%u.safetensors latest.safetensors", 3 * c->n_expected);
      fake_run_assert_files (run.dir, files);
    }
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static void
test_cases (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      check (&cases[i], TRUE);
      check (&cases[i], FALSE);
    }
}

/* The wait goes on where it was; a run that had stopped stops again, unless it is given more patience. */
static void
test_resume (void)
{
  static const double scores[] = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 };
  const char *first_yaml =
      BY_EPOCH (3, "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n"
                   "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 3}]\n");
  const char *more_epochs =
      BY_EPOCH (8, "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n"
                   "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 3}]\n");
  const char *patient =
      BY_EPOCH (8, "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n"
                   "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 5}]\n");
  const char *yamls[] = { first_yaml, more_epochs, more_epochs, patient };
  const guint n_epochs[] = { 3, 4, 4, 6 }; /* at the end of each */
  g_autofree char *dir = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (yamls); i++)
    {
      FakeRun run;
      fake_run_open (&run, yamls[i], 2, dir);
      run.fake.scores = scores;
      run.fake.n_scores = G_N_ELEMENTS (scores);
      g_autoptr (GError) error = NULL;
      fake_run_resume (&run, NULL);
      g_assert_true (rn_runner_run (run.runner, &error));
      g_assert_cmpint (rn_runner_epoch (run.runner), ==, n_epochs[i]);
      if (dir == NULL)
        dir = g_strdup (run.dir);
      fake_run_close (&run);
    }
  fake_run_remove (dir);
}

/* Also where no score was a number yet. */
static void
test_resume_without_best (void)
{
  static const double scores[] = { NONE, NONE, NONE, NONE };
#define PATIENT                                                   \
  "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n" \
  "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP, patience: 3, check_finite: false}]\n"
  FakeRun first, second;

  fake_run_open (&first, BY_EPOCH (2, PATIENT), 2, NULL);
  first.fake.scores = scores;
  first.fake.n_scores = G_N_ELEMENTS (scores);
  fake_run_go (&first);
  fake_run_open (&second, BY_EPOCH (8, PATIENT), 2, first.dir);
  second.fake.scores = scores;
  second.fake.n_scores = G_N_ELEMENTS (scores);
  g_autoptr (GError) error = NULL;
  fake_run_resume (&second, NULL);
  g_assert_true (rn_runner_run (second.runner, &error));
  g_assert_cmpint (rn_runner_epoch (second.runner), ==, 3);
#undef PATIENT
  fake_run_close (&second);
  fake_run_remove (first.dir);
  fake_run_close (&first);
}

/* A score that another hook adds is known when it was declared. */
typedef struct
{
  RnHook hook;
  gboolean is_silent;
} ScoreHook;

static const RnKeySpec score_keys[] = {
  RN_KEY (ScoreHook, is_silent, RN_KEY_BOOL, "false", "declare only"),
  RN_KEY_END,
};

static gboolean
declare (RnHook *hook, RnRunner *runner, GError **error)
{
  rn_runner_declare_score (runner, "f_score");
  return TRUE;
}

static gboolean
add_score (RnHook *hook, RnRunner *runner, GError **error)
{
  if (!((ScoreHook *) hook)->is_silent)
    rn_runner_set_score (runner, "f_score", 0.5);
  return TRUE;
}

RN_HOOK_DESC (score, ScoreHook, .name = "ScoreHook", .summary = "for tests", .priority = RN_PRIORITY_VERY_LOW,
              .keys = score_keys, .init = declare, .after_train_epoch = add_score);

static gboolean
run_to_end (const char *yaml, guint *n_evaluations, GError **error)
{
  static const double scores[] = { 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1 };
  FakeRun run;
  gboolean is_ok = fake_run_try (&run, yaml, 2, error);

  run.fake.scores = scores;
  run.fake.n_scores = G_N_ELEMENTS (scores);
  is_ok = is_ok && rn_runner_run (run.runner, error);
  *n_evaluations = run.fake.n_evaluations;
  fake_run_remove (run.dir);
  fake_run_close (&run);
  return is_ok;
}

#define HOOKS(more) \
  BY_EPOCH (8,      \
            "evaluation: {interval: 1}\ncustom_hooks:\n- {type: EarlyStoppingHook, patience: 1, " more "\n")

static void
test_monitor (void)
{
  static const struct
  {
    const char *yaml, *words;
    guint n_evaluations;
  } refused[] = {
    { HOOKS ("monitor: mAp}"), "*test.yaml:*monitor: no score \"mAp\"; there are mAP, AP50*", 0 },
    { HOOKS ("monitor: f_score, rule: greater}"), "*no score \"f_score\"*", 0 },
    { HOOKS ("monitor: f_score}\n- {type: ScoreHook}"), "*`rule: greater` or `rule: less`*", 0 },
    { HOOKS ("monitor: mAP, rule: most}"), "*no rule \"most\"*", 0 },
    { HOOKS ("monitor: mAP, patience: 0}"), "*patience*", 0 },
    { HOOKS ("rule: less}"), "*monitor*", 0 },
    { HOOKS ("monitor: f_score, rule: greater, strict: true}\n- {type: ScoreHook, is_silent: true}"),
      "*EarlyStoppingHook: after_train_epoch: this evaluation has no score \"f_score\"*", 1 },
    { BY_EPOCH (2, "custom_hooks: [{type: EarlyStoppingHook, monitor: mAP}]\n"), "*no evaluation to look at*",
      0 },
  };
  guint n;

  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++)
    {
      g_autoptr (GError) error = NULL;
      g_assert_false (run_to_end (refused[i].yaml, &n, &error));
      if (!g_pattern_match_simple (refused[i].words, error->message))
        g_error ("\"%s\" does not match \"%s\"", error->message, refused[i].words);
      g_assert_cmpuint (n, ==, refused[i].n_evaluations);
    }
  g_autoptr (GError) error = NULL;
  g_assert_true (run_to_end (HOOKS ("monitor: f_score, rule: greater}\n- {type: ScoreHook}"), &n, &error));
  g_assert_cmpuint (n, ==, 2);
  g_assert_true (run_to_end (HOOKS ("monitor: f_score, rule: greater}\n- {type: ScoreHook, is_silent: true}"),
                             &n, &error));
  g_assert_cmpuint (n, ==, 8);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  messages = g_string_new (NULL);
  g_log_set_always_fatal (G_LOG_FATAL_MASK);
  g_log_set_writer_func (collect, NULL, NULL);
  g_assert_true (rn_hook_register (&rn_hook_desc_score, NULL));

  g_test_add_func ("/early-stopping/cases", test_cases);
  g_test_add_func ("/early-stopping/resume", test_resume);
  g_test_add_func ("/early-stopping/resume/without-best", test_resume_without_best);
  g_test_add_func ("/early-stopping/monitor", test_monitor);
  return g_test_run ();
}
