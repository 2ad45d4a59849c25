/* The workflow: what a run does in turn, what its validation sees and leaves alone, and how it is taken up.
 */
#include "config.h"

#include "runner/base/error.h"
#include "runner/base/signals.h"
#include "runner/config/config.h"
#include "runner/place.h"
#include "runner/record.h"
#include "tests/runner/fake-task.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define WATCH "custom_hooks: [{type: WatchHook}]\n"

/* ---- A hook that writes down what it sees ---- */

typedef struct
{
  RnHook hook;
  double sum, weight; /* of the losses of a validation pass */
} Watch;

static GString *record;
static GArray *means;        /* of double: mean loss of the last three iterations, after each */
static gboolean with_values; /* losses too go into the record */
static int n_iters, stop_at; /* iterations of both kinds so far; the one of which a signal comes, or 0 */
static gboolean fails_in_val;

static gboolean
before_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  g_string_append_c (record, '(');
  g_assert_cmpint (rn_runner_epoch_length (runner), ==, ((FakeTask *) runner->task)->task.epoch_length);
  return TRUE;
}

static void
count_iter (void)
{
  if (++n_iters == stop_at)
    raise (SIGTERM);
}

static gboolean
after_train_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  double mean = rn_runner_log_mean (runner, "loss", 3);

  g_assert_false (rn_runner_is_validating (runner));
  g_array_append_val (means, mean);
  g_string_append_c (record, 't');
  if (with_values)
    g_string_append_printf (record, "%.17g", rn_runner_loss (runner, "loss"));
  count_iter ();
  return TRUE;
}

static gboolean
after_train_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  g_string_append_c (record, ')');
  return TRUE;
}

static gboolean
before_val_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  Watch *self = (Watch *) hook;

  g_string_append_c (record, '[');
  g_assert_true (rn_runner_is_validating (runner));
  g_assert_cmpint (rn_runner_inner_iter (runner), ==, 0);
  g_assert_true (isnan (rn_runner_log_mean (runner, "loss", 1))); /* of no batch yet */
  self->sum = self->weight = 0;
  return TRUE;
}

static gboolean
before_val_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  g_assert_nonnull (rn_runner_batch (runner));
  return TRUE;
}

static gboolean
after_val_iter (RnHook *hook, RnRunner *runner, GError **error)
{
  Watch *self = (Watch *) hook;
  const FakeTask *fake = (const FakeTask *) runner->task;
  double loss = rn_runner_loss (runner, "loss");

  if (fails_in_val)
    return rn_hook_error (error, "as asked");
  self->sum += loss * rn_runner_batch (runner)->n;
  self->weight += rn_runner_batch (runner)->n;
  g_string_append_printf (record, "v%d", (int) fake->val_next);
  if (with_values)
    g_string_append_printf (record, ":%.17g", loss);
  count_iter ();
  return TRUE;
}

static void
count_means (const char *name, double mean, gpointer user_data)
{
  *(int *) user_data += strcmp (name, "loss") == 0 || strcmp (name, "loss_cls") == 0
                        || strcmp (name, "loss_bbox") == 0 || strcmp (name, "time") == 0
                        || strcmp (name, "data_time") == 0;
}

static gboolean
after_val_epoch (RnHook *hook, RnRunner *runner, GError **error)
{
  const Watch *self = (const Watch *) hook;
  int n_known = 0;

  g_string_append_c (record, ']');
  g_assert_cmpint (rn_runner_inner_iter (runner), ==, rn_runner_epoch_length (runner));
  /* The same sums in the same order. */
  g_assert_cmpfloat (rn_runner_log_mean (runner, "loss", 1), ==, self->sum / self->weight);
  rn_runner_foreach_log (runner, G_MAXINT64, count_means, &n_known);
  g_assert_cmpint (n_known, ==, 5);
  return TRUE;
}

static gboolean
after_run (RnHook *hook, RnRunner *runner, GError **error)
{
  g_assert_false (rn_runner_is_validating (runner));
  g_string_append_c (record, '.');
  return TRUE;
}

RN_HOOK_DEFINE (watch, Watch, .name = "WatchHook", .summary = "for tests",
                .before_train_epoch = before_train_epoch, .after_train_iter = after_train_iter,
                .after_train_epoch = after_train_epoch, .before_val_epoch = before_val_epoch,
                .before_val_iter = before_val_iter, .after_val_iter = after_val_iter,
                .after_val_epoch = after_val_epoch, .after_run = after_run);

static void
open_run (FakeRun *run, const char *yaml, gint64 epoch_length, gint64 val_length, const char *dir)
{
  fake_run_open (run, yaml, epoch_length, dir);
  run->fake.task.val_length = val_length;
  g_string_truncate (record, 0);
  g_array_set_size (means, 0);
  n_iters = 0;
}

static void
close_run (FakeRun *run)
{
  fake_run_remove (run->dir);
  fake_run_close (run);
}

/* ---- The list ---- */

static GArray *
parse (const char *yaml, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (RnNode) root = rn_config_load_text (yaml, "test.yaml", NULL, &local);
  g_assert_no_error (local);
  return rn_workflow_parse (rn_node_get (root, "workflow"), error);
}

static void
assert_parsed (const char *yaml, const char *expected)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) workflow = parse (yaml, &error);
  g_assert_no_error (error);
  g_autofree char *text = rn_workflow_describe (workflow, TRUE);
  g_assert_cmpstr (text, ==, expected);
}

static void
test_parse (void)
{
  assert_parsed ("seed: 1\n", "[[train, 1]] epochs");
  assert_parsed ("workflow: [[train, 2], [val, 1]]\n", "[[train, 2], [val, 1]] epochs");
  assert_parsed ("workflow:\n  - [val, 3]\n  - [train, 100]\n", "[[val, 3], [train, 100]] epochs");
  /* As a line of a Python configuration, copied. */
  assert_parsed ("workflow: [('train', 2), ('val', 1)]\n", "[[train, 2], [val, 1]] epochs");
  assert_parsed ("workflow: [(\"train\", 1)]\n", "[[train, 1]] epochs");
  assert_parsed ("workflow: [(train, 1), [val, 1]]\n", "[[train, 1], [val, 1]] epochs");
}

static void
assert_refused (const char *value, const char *pattern)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *yaml = g_strdup_printf ("workflow: %s\n", value);
  g_autoptr (GArray) workflow = parse (yaml, &error);

  g_assert_null (workflow);
  g_assert_cmpint (error->domain, ==, RN_CONFIG_ERROR);
  g_assert_true (g_str_has_prefix (error->message, "test.yaml:1:"));
  if (!g_pattern_match_simple (pattern, error->message))
    g_error ("\"%s\" does not match \"%s\"", error->message, pattern);
}

static void
test_refused (void)
{
  assert_refused ("[[val, 1]]", "*without train*");
  assert_refused ("[]", "*list*");
  assert_refused ("train", "*list*");
  assert_refused ("[[trian, 1]]", "*\"trian\"*did you mean \"train\"*");
  assert_refused ("[[test, 1], [train, 1]]", "*\"test\"*train and val*");
  assert_refused ("[[train, 0]]", "*train 0 times*");
  assert_refused ("[[train, -1]]", "*train -1 times*");
  assert_refused ("[[train, 9000000000000]]", "*1e12*");
  assert_refused ("[[train, 1.5]]", "*not [mode, number]*");
  assert_refused ("[[train]]", "*not [mode, number]*");
  assert_refused ("[[train, 1, 1]]", "*not [mode, number]*");
  assert_refused ("[train, 1]", "*not [mode, number]*");
  assert_refused ("[('train', x)]", "*not [mode, number]*");
  assert_refused ("[('train']", "*not [mode, number]*");
  assert_refused ("[('train', 1]", "*not [mode, number]*");
  assert_refused ("[(')]", "*not [mode, number]*");
}

/* ---- Order ---- */

typedef struct
{
  const char *yaml;
  gint64 epoch_length, val_length;
  const char *expected;
} Case;

#define EPOCHS(n, workflow) BY_EPOCH (n, WATCH "workflow: " workflow "\n")
#define ITERS(n, workflow) BY_ITER (n, WATCH "workflow: " workflow "\n")

/* MMCV's orders; v2 is the second batch of the validation data. */
static const Case cases[] = {
  { EPOCHS (2, "[[train, 1]]"), 2, 0, "(tt)(tt)." },
  { EPOCHS (3, "[[train, 2]]"), 1, 0, "(t)(t)(t)." },
  { EPOCHS (3, "[[train, 2], [val, 1]]"), 2, 2, "(tt)(tt)[v1v2](tt)[v1v2]." },
  { EPOCHS (2, "[[val, 1], [train, 1]]"), 2, 3, "[v1v2v3](tt)[v1v2v3](tt)." },
  { EPOCHS (1, "[[train, 1], [val, 2]]"), 2, 1, "(tt)[v1][v1]." },
  /* The second train item has nothing left to do, the val item behind it has. */
  { EPOCHS (1, "[[train, 1], [val, 1], [train, 1], [val, 1]]"), 1, 1, "(t)[v1][v1]." },
  { "runner: {type: EpochBasedRunner, max_epochs: 9, max_iters: 3}\n" WATCH
    "workflow: [[train, 1], [val, 1]]\n",
    2, 1, "(tt)[v1](t." },
  { "runner: {type: EpochBasedRunner, max_epochs: 9, max_iters: 3}\n" WATCH
    "workflow: [[train, 2], [val, 1]]\n",
    2, 1, "(tt)(t." },
  /* Iterations: the pass of training stays open, and the stream of validation goes on. */
  { ITERS (7, "[[train, 3], [val, 2]]"), 4, 3, "(ttt[v1v2]t)(tt[v3v1]t[v2v3]." },
  { ITERS (8, "[[train, 4], [val, 1]]"), 4, 2, "(tttt)[v1](tttt)[v2]." },
  { ITERS (3, "[[train, 5]]"), 2, 0, "(tt)(t." },
  { ITERS (2, "[[val, 5], [train, 1]]"), 3, 2, "[v1v2v1v2v1](t[v2v1v2v1v2]t." },
};

static void
test_order (gconstpointer data)
{
  const Case *c = data;
  FakeRun run;

  open_run (&run, c->yaml, c->epoch_length, c->val_length, NULL);
  fake_run_go (&run);
  g_assert_cmpstr (record->str, ==, c->expected);
  close_run (&run);
}

/* ---- What validation sees and leaves alone ---- */

static void
test_untouched (void)
{
  FakeRun plain, run;

  open_run (&plain, EPOCHS (4, "[[train, 1]]"), 5, 0, NULL);
  fake_run_go (&plain);
  g_autoptr (GArray) expected = g_array_copy (means);
  open_run (&run, EPOCHS (4, "[[train, 1], [val, 1]]"), 5, 3, NULL);
  fake_run_go (&run);

  g_assert_cmpmem (run.fake.w, sizeof run.fake.w, plain.fake.w, sizeof plain.fake.w);
  g_assert_cmpmem (run.fake.momentum, sizeof run.fake.momentum, plain.fake.momentum,
                   sizeof plain.fake.momentum);
  g_assert_cmpuint (means->len, ==, 20);
  g_assert_cmpuint (expected->len, ==, 20);
  for (guint i = 0; i < 20; i++)
    g_assert_cmpfloat (g_array_index (means, double, i), ==, g_array_index (expected, double, i));
  g_assert_cmpint (rn_runner_iter (run.runner), ==, 20);
  g_assert_cmpint (rn_runner_epoch (run.runner), ==, 4);
  g_assert_cmpint (rn_runner_opt_step (run.runner), ==, 20);
  close_run (&run);
  close_run (&plain);
}

static void
test_programs (void)
{
  g_autoptr (GString) trace = g_string_new (NULL);
  FakeRun run;

  open_run (&run, ITERS (1, "[[train, 1], [val, 2]]"), 3, 3, NULL);
  run.fake.trace = trace;
  fake_run_go (&run);
  /* No gradient is set to zero, none is added to. */
  g_assert_cmpstr (trace->str, ==, "zero forward backward update(1,first) loss loss");
  close_run (&run);

  /* The mean of the weights takes their place for the validation. */
  g_string_truncate (trace, 0);
  open_run (&run, ITERS (1, "[[train, 1], [val, 2]]"), 3, 3, NULL);
  run.fake.trace = trace;
  rn_runner_use_ema (run.runner, TRUE);
  fake_run_go (&run);
  g_assert_cmpstr (trace->str, ==, "zero forward backward update(1,first) swap loss loss swap");
  close_run (&run);
}

static void
test_failure (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) trace = g_string_new (NULL);
  FakeRun run;

  fails_in_val = TRUE;
  open_run (&run, EPOCHS (1, "[[val, 1], [train, 1]]"), 2, 2, NULL);
  run.fake.trace = trace;
  rn_runner_use_ema (run.runner, TRUE);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  fails_in_val = FALSE;
  g_assert_cmpstr (error->message, ==, "WatchHook: after_val_iter: as asked");
  g_assert_cmpstr (record->str, ==, "[.");
  g_assert_cmpstr (trace->str, ==, "swap loss swap");
  close_run (&run);
}

static int fails_at; /* call of the forward pass */

static gboolean
failing_forward (RnTask *task, const RnBatch *batch, RnMode mode, float grad_scale, GError **error)
{
  return --fails_at > 0 || rn_hook_error (error, "as asked");
}

/* The message has the iteration of the run, or of the validation pass. */
static void
test_failing_forward (void)
{
  static const struct
  {
    int at;
    const char *message;
  } failures[] = { { 2, "iteration 2: as asked" },
                   { 4, "validation, iteration 2: as asked" },
                   { 5, "iteration 3: as asked" } };

  for (gsize i = 0; i < G_N_ELEMENTS (failures); i++)
    {
      g_autoptr (GError) error = NULL;
      FakeRun run;
      open_run (&run, EPOCHS (2, "[[train, 1], [val, 1]]"), 2, 2, NULL);
      run.fake.vtbl.forward = failing_forward;
      fails_at = failures[i].at;
      g_assert_true (rn_runner_init (run.runner, &error));
      g_assert_false (rn_runner_run (run.runner, &error));
      g_assert_cmpstr (error->message, ==, failures[i].message);
      close_run (&run);
    }
}

static void
test_no_data (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  open_run (&run, EPOCHS (1, "[[train, 1], [val, 1]]"), 2, 0, NULL);
  g_assert_false (rn_runner_init (run.runner, &error));
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_KEY);
  g_assert_nonnull (strstr (error->message, "data.val"));
  close_run (&run);
}

/* ---- Taking a run up ---- */

/*
 * What a stopped run and the one that took it up did together: a val pass that was broken off counts once,
 * and a pass of training that was entered twice too.
 */
static char *
join_records (const char *stopped, const char *resumed)
{
  g_autoptr (GString) text = g_string_new (stopped);

  g_string_truncate (text, text->len - strlen ("."));
  const char *open = strrchr (text->str, '['), *close = strrchr (text->str, ']');
  if (open != NULL && (close == NULL || close < open))
    g_string_truncate (text, (gsize) (open - text->str));
  const char *entered = strrchr (text->str, '('), *left = strrchr (text->str, ')');
  gboolean is_inside = entered != NULL && (left == NULL || left < entered);
  const char *again = is_inside ? strchr (resumed, '(') : NULL;
  if (again == NULL)
    g_string_append (text, resumed);
  else
    {
      g_string_append_len (text, resumed, again - resumed);
      g_string_append (text, again + 1);
    }
  return g_strdup (text->str);
}

/* A signal in every iteration of training and of validation. */
static void
test_resume (gconstpointer data)
{
  const Case *c = data;
  FakeRun straight;

  with_values = TRUE;
  open_run (&straight, c->yaml, c->epoch_length, c->val_length, NULL);
  fake_run_go (&straight);
  g_autofree char *expected = g_strdup (record->str);
  int n = n_iters;
  for (int at = 1; at <= n; at++)
    {
      FakeRun stopped, resumed;
      stop_at = at;
      rn_signals_install ();
      open_run (&stopped, c->yaml, c->epoch_length, c->val_length, NULL);
      fake_run_go (&stopped);
      rn_signals_remove ();
      stop_at = 0;
      g_autofree char *before = g_strdup (record->str);

      open_run (&resumed, c->yaml, c->epoch_length, c->val_length, stopped.dir);
      fake_run_resume (&resumed, NULL);
      g_autoptr (GError) error = NULL;
      g_assert_true (rn_runner_run (resumed.runner, &error));
      g_autofree char *together = join_records (before, record->str);
      g_assert_cmpstr (together, ==, expected);
      g_assert_cmpmem (resumed.fake.w, sizeof resumed.fake.w, straight.fake.w, sizeof straight.fake.w);
      fake_run_close (&stopped);
      close_run (&resumed);
    }
  with_values = FALSE;
  close_run (&straight);
}

/* The checkpoint of an epoch is from before the validation that follows it. */
static void
test_from_epoch (void)
{
  FakeRun run, resumed;

  open_run (&run, EPOCHS (2, "[[train, 1], [val, 1]]") "checkpoint_config: {interval: 1}\n", 2, 2, NULL);
  fake_run_go (&run);
  for (int epoch = 1; epoch <= 2; epoch++)
    {
      g_autofree char *path = g_strdup_printf ("%s/epoch_%d.safetensors", run.dir, epoch);
      g_autoptr (GError) error = NULL;
      open_run (&resumed, EPOCHS (2, "[[train, 1], [val, 1]]"), 2, 2, NULL);
      fake_run_resume (&resumed, path);
      g_assert_true (rn_runner_run (resumed.runner, &error));
      g_assert_cmpstr (record->str, ==, epoch == 1 ? "[v1v2](tt)[v1v2]." : "[v1v2].");
      close_run (&resumed);
    }
  close_run (&run);
}

static gboolean
load_place (FakeRun *run, const char *json, RnCounters *counters)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) place = rn_record_parse (json, &error);
  g_assert_no_error (error);
  return rn_place_load (run->runner, place, counters);
}

#define PLACE(item, done, batch)                                                \
  "{\"workflow\": \"[[val, 1], [train, 3]] epochs\", \"workflow_item\": " #item \
  ", \"workflow_item_done\": " #done ", \"val_batch\": " #batch "}"

static void
test_places (void)
{
  static const char *const impossible[] = { PLACE (2, 0, 0),
                                            PLACE (-1, 0, 0),
                                            PLACE (1, 3, 0),
                                            PLACE (1, -1, 0),
                                            PLACE (0, 1, 0),
                                            PLACE (1, 0, -1),
                                            "{\"workflow\": \"[[val, 1], [train, 3]] epochs\"}" };
  RnCounters counters = { .inner_iter = 0 };
  FakeRun run;

  open_run (&run, EPOCHS (9, "[[val, 1], [train, 3]]"), 2, 4, NULL);
  g_assert_true (load_place (&run, PLACE (1, 2, 3), &counters));
  g_assert_cmpint (counters.item, ==, 1);
  g_assert_cmpint (counters.item_done, ==, 2);
  g_assert_cmpint (counters.val_batch, ==, 3);
  g_assert_true (load_place (&run, PLACE (0, 0, 4), &counters)); /* there were more validation data */
  g_assert_cmpint (counters.val_batch, ==, 0);
  for (gsize i = 0; i < G_N_ELEMENTS (impossible); i++)
    g_assert_false (load_place (&run, impossible[i], &counters));

  /* Older files and another workflow: on with training. */
  g_assert_true (load_place (&run, "{}", &counters));
  g_assert_cmpint (counters.item, ==, 1);
  g_assert_cmpint (counters.item_done, ==, 0);
  counters.item = 0;
  g_assert_true (
      load_place (&run, "{\"workflow\": \"[[train, 1]] epochs\", \"workflow_item\": 7}", &counters));
  g_assert_cmpint (counters.item, ==, 1);

  /* No validation inside an epoch. */
  counters.inner_iter = 1;
  g_assert_false (load_place (&run, PLACE (0, 0, 0), &counters));
  g_assert_true (load_place (&run, PLACE (1, 0, 0), &counters));
  close_run (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  record = g_string_new (NULL);
  means = g_array_new (FALSE, FALSE, sizeof (double));
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_watch, NULL));

  g_test_add_func ("/runner/workflow/parse", test_parse);
  g_test_add_func ("/runner/workflow/refused", test_refused);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *order = g_strdup_printf ("/runner/workflow/order/%d", (int) i);
      g_autofree char *resume = g_strdup_printf ("/runner/workflow/resume/%d", (int) i);
      g_test_add_data_func (order, &cases[i], test_order);
      g_test_add_data_func (resume, &cases[i], test_resume);
    }
  g_test_add_func ("/runner/workflow/untouched", test_untouched);
  g_test_add_func ("/runner/workflow/programs", test_programs);
  g_test_add_func ("/runner/workflow/failure", test_failure);
  g_test_add_func ("/runner/workflow/failing-forward", test_failing_forward);
  g_test_add_func ("/runner/workflow/no-data", test_no_data);
  g_test_add_func ("/runner/workflow/from-epoch", test_from_epoch);
  g_test_add_func ("/runner/workflow/places", test_places);
  int status = g_test_run ();
  g_string_free (record, TRUE);
  g_array_unref (means);
  return status;
}
