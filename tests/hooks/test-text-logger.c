/* Lines of the text log and of the JSON log. */
#include "config.h"

#include "runner/base/registry.h"
#include "runner/config/schema.h"
#include "runner/run-log.h"
#include "runner/runner-private.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

extern const RnHookDesc rn_hook_desc_text_logger;

static GPtrArray *text_lines; /* of char *: what the logger printed */

/* Takes the program's log output; g_test's own functions would stop at the first message. */
static GLogWriterOutput
collect (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer data)
{
  const char *domain = "", *message = "";
  for (gsize i = 0; i < n_fields; i++)
    if (strcmp (fields[i].key, "MESSAGE") == 0)
      message = fields[i].value;
    else if (strcmp (fields[i].key, "GLIB_DOMAIN") == 0)
      domain = fields[i].value;
  if (strcmp (domain, "rn-hooks") == 0 && strchr (message, '\t') != NULL)
    g_ptr_array_add (text_lines, g_strdup (message));
  return G_LOG_WRITER_HANDLED;
}

/* Iteration i (from 0) of the fake task has these losses; the learning rate is 0, so they depend on the batch
 * only. */
static double
loss_of (gint64 iter, gint64 epoch_length)
{
  FakeTask fake;
  fake_task_init (&fake, epoch_length);
  fake.epoch = (guint64) (iter / epoch_length);
  fake.next = iter % epoch_length + 1;
  fake.vtbl.forward (&fake.task, &fake.batch, RN_MODE_TRAIN, 1, NULL);
  return fake.vtbl.loss (&fake.task, "loss");
}

static double
mean_loss (gint64 begin, gint64 end, gint64 epoch_length)
{
  double sum = 0;
  for (gint64 i = begin; i < end; i++)
    sum += loss_of (i, epoch_length);
  return sum / (double) (end - begin);
}

typedef struct
{
  const char *yaml;
  gint64 epoch_length;
  const char *lines; /* "iter:length of the window", for each training line */
} Case;

#define EPOCHS(n, log)                                                                \
  "optimizer: {type: SGD, lr: 0.0}\nrunner: {type: EpochBasedRunner, max_epochs: " #n \
  "}\nlog_config: {hooks: [{type: TextLoggerHook}], " log "}\n"
#define ITERS(n, log)                                                               \
  "optimizer: {type: SGD, lr: 0.0}\nrunner: {type: IterBasedRunner, max_iters: " #n \
  "}\nlog_config: {hooks: [{type: TextLoggerHook}], " log "}\n"
#define WITH_LAST                                                                      \
  "optimizer: {type: SGD, lr: 0.0}\nrunner: {type: EpochBasedRunner, max_epochs: 2}\n" \
  "log_config: {interval: 4, hooks: [{type: TextLoggerHook, ignore_last: false}]}\n"

/* Ends in its second epoch, whose line does not reach back into the first. */
#define CUT_SHORT                                                                                     \
  "optimizer: {type: SGD, lr: 0.0}\nrunner: {type: EpochBasedRunner, max_epochs: 2, max_iters: 12}\n" \
  "log_config: {interval: 4, hooks: [{type: TextLoggerHook}]}\n"

static const Case cases[] = {
  { CUT_SHORT, 10, "4:4 8:4 12:2" },
  { EPOCHS (2, "interval: 4"), 10, "4:4 8:4 14:4 18:4" }, /* within the epoch, the rest is left out */
  { WITH_LAST, 10, "4:4 8:4 10:2 14:4 18:4 20:2" },
  { EPOCHS (2, "interval: 50"), 3,
    "3:3 6:3" }, /* an epoch shorter than the interval has a line all the same */
  { EPOCHS (2, "interval: 5"), 5, "5:5 10:5" },
  { ITERS (10, "interval: 4"), 7, "4:4 8:4" },
  { ITERS (9, "interval: 100"), 4, "4:4 8:4 9:1" },
  { ITERS (3, "interval: 100"), 50, "3:3" },
};

/* Strict JSON: json-glib is lenient with comments and the like, which our lines never hold, but not with NaN.
 */
static JsonObject *
parse (const char *line, JsonParser *parser)
{
  g_autoptr (GError) error = NULL;
  json_parser_load_from_data (parser, line, -1, &error);
  g_assert_no_error (error);
  return json_node_get_object (json_parser_get_root (parser));
}

static void
test_lines (gconstpointer data)
{
  const Case *c = data;
  g_autoptr (GError) error = NULL;
  FakeRun run;

  g_ptr_array_set_size (text_lines, 0);
  fake_run_open (&run, c->yaml, c->epoch_length, NULL);
  g_assert_true (rn_runner_init (run.runner, &error) && rn_runner_run (run.runner, &error));
  g_autoptr (GPtrArray) lines = fake_run_json_lines (run.dir);
  g_auto (GStrv) expected = g_strsplit (c->lines, " ", -1);
  g_assert_cmpuint (lines->len, ==, g_strv_length (expected));
  g_assert_cmpuint (text_lines->len, ==, lines->len);
  for (guint i = 0; i < lines->len; i++)
    {
      g_autoptr (JsonParser) parser = json_parser_new ();
      JsonObject *line = parse (g_ptr_array_index (lines, i), parser);
      gint64 iter = g_ascii_strtoll (expected[i], NULL, 10),
             n = g_ascii_strtoll (strchr (expected[i], ':') + 1, NULL, 10);
      double loss = mean_loss (iter - n, iter, c->epoch_length);

      g_assert_cmpint (json_object_get_int_member (line, "iter"), ==, iter);
      g_assert_cmpint (json_object_get_int_member (line, "epoch"), ==, (iter - 1) / c->epoch_length + 1);
      g_assert_cmpint (json_object_get_int_member (line, "inner_iter"), ==, (iter - 1) % c->epoch_length + 1);
      g_assert_cmpint (json_object_get_int_member (line, "opt_step"), ==, iter);
      g_assert_cmpstr (json_object_get_string_member (line, "mode"), ==, "train");
      /* 9 digits are in the file */
      g_assert_cmpfloat (fabs (json_object_get_double_member (line, "loss") - loss), <=, 1e-8 * loss);
      g_autofree char *text = g_strdup_printf ("loss: %.4f", loss);
      g_assert_nonnull (strstr (g_ptr_array_index (text_lines, i), text));
    }
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static char *
join_lines (void)
{
  GString *all = g_string_new (NULL);
  for (guint i = 0; i < text_lines->len; i++)
    g_string_append_printf (all, "%s\n", (const char *) g_ptr_array_index (text_lines, i));
  return g_string_free (all, FALSE);
}

/* The form of MMCV's lines. */
static void
test_text (void)
{
  static const double scores[] = { 0.25, 0.77259 };
  g_autoptr (GError) error = NULL;
  FakeRun run;

  g_ptr_array_set_size (text_lines, 0);
  fake_run_open (&run,
                 "optimizer: {type: SGD, lr: 0.00125}\nrunner: {type: EpochBasedRunner, max_epochs: 1}\n"
                 "optimizer_config: {grad_clip: {max_norm: 35}}\nevaluation: {interval: 1, start: "
                 "0}\nlog_config: {interval: 2}\n",
                 4, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = 2;
  g_assert_true (rn_runner_init (run.runner, &error) && rn_runner_run (run.runner, &error));
  g_assert_cmpuint (text_lines->len, ==, 4);
  const char *train =
      "^Epoch \\[1\\]\\[2/4\\]\tlr: 1\\.250e-03, eta: 0:00:[0-9]{2}, time: [0-9]+\\.[0-9]{3}, data_time: "
      "[0-9]+\\.[0-9]{3}, "
      "memory: [0-9]+, loss_cls: [0-9]+\\.[0-9]{4}, loss_bbox: [0-9]+\\.[0-9]{4}, loss: [0-9]+\\.[0-9]{4}, "
      "grad_norm: [0-9]+\\.[0-9]{4}$";
  g_assert_true (g_regex_match_simple (train, g_ptr_array_index (text_lines, 1), 0, 0));
  g_assert_cmpstr (g_ptr_array_index (text_lines, 3), ==, "Epoch(val) [1][5]\tAP50: 0.7730, mAP: 0.7726");

  /* That before training stands first. */
  g_assert_cmpstr (g_ptr_array_index (text_lines, 0), ==, "Epoch(val) [0][5]\tAP50: 0.2500, mAP: 0.2500");

  g_autoptr (GPtrArray) lines = fake_run_json_lines (run.dir);
  g_assert_cmpuint (lines->len, ==, 4);
  g_assert_cmpstr (
      g_ptr_array_index (lines, 3), ==,
      "{\"mode\": \"val\", \"epoch\": 1, \"iter\": 4, \"n_images\": 5, \"AP50\": 0.773, \"mAP\": 0.77259}");
  g_assert_cmpstr (
      g_ptr_array_index (lines, 0), ==,
      "{\"mode\": \"val\", \"epoch\": 0, \"iter\": 0, \"n_images\": 5, \"AP50\": 0.25, \"mAP\": 0.25}");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* Counts and scales are shown as they are. */
static void
test_text_counts (void)
{
  FakeRun run;

  g_ptr_array_set_size (text_lines, 0);
  fake_run_open (&run,
                 ITERS (4, "interval: 4") "optimizer_config: {type: GradientCumulativeFp16OptimizerHook, "
                                          "cumulative_iters: 3, loss_scale: 512}\n",
                 4, NULL);
  fake_run_go (&run);
  g_autofree char *all = join_lines ();
  g_assert_nonnull (strstr (all, ", micro_batches: 1, loss_scale: 512, skipped: 0"));
  g_assert_nonnull (g_strrstr (all, ", loss: "));
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static double
nan_loss (RnTask *task, const char *name)
{
  return strcmp (name, "loss_cls") == 0 ? 0.5 : (double) NAN;
}

/* A loss that is no number is no JSON number either. */
static void
test_nan (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, ITERS (2, "interval: 2"), 10, NULL);
  run.fake.vtbl.loss = nan_loss;
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error)); /* and no good end of a run */
  g_autoptr (GPtrArray) lines = fake_run_json_lines (run.dir);
  g_autoptr (JsonParser) parser = json_parser_new ();
  JsonObject *line = parse (g_ptr_array_index (lines, 0), parser);
  g_assert_true (json_object_get_null_member (line, "loss"));
  g_assert_cmpfloat (json_object_get_double_member (line, "loss_cls"), ==, 0.5);
  JsonArray *names = json_object_get_array_member (line, "non_finite");
  g_assert_cmpuint (json_array_get_length (names), ==, 2);
  g_assert_cmpstr (json_array_get_string_element (names, 0), ==, "loss_bbox");
  g_assert_cmpstr (json_array_get_string_element (names, 1), ==, "loss");
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Resumed runs ---- */

/* The "mode" of each line of @path, with its iteration: "meta:0 train:4 ...". Every line is JSON, but those
 * that begin with @junk. */
static char *
list_modes (const char *path, const char *junk)
{
  g_autofree char *text = NULL;
  GString *modes = g_string_new (NULL);

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_true (g_str_has_suffix (text, "\n"));
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line != NULL && **line != '\0'; line++)
    {
      if (modes->len > 0)
        g_string_append_c (modes, ' ');
      if (junk != NULL && g_str_has_prefix (*line, junk))
        {
          g_string_append (modes, "junk");
          continue;
        }
      g_autoptr (JsonParser) parser = json_parser_new ();
      JsonObject *object = parse (*line, parser);
      g_string_append_printf (modes, "%s:%" G_GINT64_FORMAT, json_object_get_string_member (object, "mode"),
                              json_object_get_int_member (object, "iter"));
    }
  return g_string_free (modes, FALSE);
}

#define RESUMED(logger)                                                                                \
  "runner: {type: IterBasedRunner, max_iters: 8}\ncheckpoint_config: {interval: 4, by_epoch: false}\n" \
  "log_config: {interval: 2, hooks: [{type: TextLoggerHook" logger "}]}\n"

static char *
json_path (const char *dir, const char *timestamp)
{
  g_autofree char *name = g_strconcat (timestamp, ".log.json", NULL);
  return g_build_filename (dir, name, NULL);
}

/* Runs 8 iterations, cuts the log in the middle of its last line as a kill would, and takes up iteration 4;
 * gives the path of the first log. */
static char *
run_and_resume (const char *yaml, const char *resumed_yaml, char **dir)
{
  FakeRun run;

  fake_run_open (&run, yaml, 10, NULL);
  *dir = g_strdup (run.dir);
  fake_run_go (&run);
  char *path = json_path (*dir, rn_runner_timestamp (run.runner));
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_true (g_file_set_contents (path, text, (gssize) strlen (text) - 10, NULL));
  fake_run_close (&run);

  g_autofree char *from = g_build_filename (*dir, "iter_4.safetensors", NULL);
  fake_run_open (&run, resumed_yaml, 10, *dir);
  run.runner->timestamp[0] = '9'; /* not in the same second as the run before */
  fake_run_resume (&run, from);
  g_autoptr (GError) error = NULL;
  g_assert_true (rn_runner_run (run.runner, &error));
  fake_run_close (&run);
  return path;
}

/* A run that does not append begins a new file, whatever the run before did. */
static void
test_resume_new_file (gconstpointer first_yaml)
{
  g_autofree char *dir = NULL, *first = run_and_resume (first_yaml, RESUMED (""), &dir);
  g_autofree char *names = fake_run_files (dir, ".log.json");
  g_auto (GStrv) files = g_strsplit (names, " ", -1);

  g_assert_cmpuint (g_strv_length (files), ==, 2);
  g_autofree char *path = g_build_filename (dir, files[1], NULL);
  g_autofree char *modes = list_modes (path, NULL);
  g_assert_cmpstr (modes, ==, "meta:4 resume:4 train:6 train:8");
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_autofree char *from = g_strdup_printf ("\"opt_step\": 4, \"checkpoint\": \"%s/iter_4.safetensors\"", dir);
  g_assert_nonnull (strstr (text, from));
  fake_run_remove (dir);
}

/* One file in order: what a reader takes from it is the run without the lines that were done again. */
static void
test_resume_append (void)
{
  g_autofree char *dir = NULL,
                  *path = run_and_resume (RESUMED (", append: true"), RESUMED (", append: true"), &dir);
  g_autofree char *names = fake_run_files (dir, ".log.json");
  g_autofree char *modes = list_modes (path, "{\"mode\": \"train\", \"epoch\": 1, \"iter\": 8, ");
  g_autoptr (GError) error = NULL;

  g_assert_null (strchr (names, ' '));
  /* The last line of both runs is that of iteration 8: once cut off, once whole. */
  g_assert_cmpstr (modes, ==, "meta:0 train:2 train:4 train:6 junk meta:4 resume:4 train:6 junk");
  g_autoptr (RnRunLog) log = rn_run_log_read (dir, &error);
  g_assert_no_error (error);
  const RnLogSeries *loss = rn_log_find (log->train, "loss");
  g_assert_cmpuint (loss->points->len, ==, 4);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpint (g_array_index (loss->points, RnLogPoint, i).iter, ==, 2 * (i + 1));
  g_assert_cmpuint (log->notes->len, ==, 1);
  g_assert_nonnull (strstr (g_ptr_array_index (log->notes, 0), "left out"));
  fake_run_remove (dir);
}

/* The log of the run before is gone: a new one. */
static void
test_resume_append_lost (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, RESUMED (", append: true"), 10, NULL);
  g_autofree char *dir = g_strdup (run.dir), *first = json_path (dir, rn_runner_timestamp (run.runner));
  fake_run_go (&run);
  fake_run_close (&run);
  g_assert_cmpint (g_remove (first), ==, 0);
  g_autofree char *from = g_build_filename (dir, "iter_4.safetensors", NULL);
  fake_run_open (&run, RESUMED (", append: true"), 10, dir);
  fake_run_resume (&run, from);
  g_autofree char *path = json_path (dir, rn_runner_timestamp (run.runner));
  g_assert_true (rn_runner_run (run.runner, &error));
  fake_run_close (&run);
  g_autofree char *modes = list_modes (path, NULL);
  g_assert_cmpstr (modes, ==, "meta:4 resume:4 train:6 train:8");
  fake_run_remove (dir);
}

/* A name in a checkpoint is no way out of the work dir. */
static void
test_hostile_state (void)
{
  static const char *const bad[] = { "../x.log.json", "/tmp/x.log.json", "x.txt", "" };
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, RESUMED (", append: true"), 10, NULL);
  const RnComponent *component;
  RnHook *hook =
      rn_component_new (rn_registry_family ("hook"), NULL, "TextLoggerHook", NULL, &component, &error);
  g_assert_no_error (error);
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr (RnRecord) state = rn_record_new ();
      rn_record_set_string (state, "json_log", bad[i]);
      rn_record_set_int (state, "last_line", -5);
      g_assert_false (rn_hook_desc_text_logger.load_state (hook, state, &error));
      g_assert_nonnull (error);
      g_clear_error (&error);
    }
  rn_component_free (component, hook);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

/* ---- Losses of a val workflow ---- */

static void
test_val (void)
{
  FakeRun run;

  g_ptr_array_set_size (text_lines, 0);
  fake_run_open (&run,
                 "runner: {type: EpochBasedRunner, max_epochs: 1}\nworkflow: [[train, 1], [val, 1]]\n"
                 "log_config: {interval: 2}\n",
                 4, NULL);
  run.fake.task.val_length = 3;
  fake_run_go (&run);
  g_autoptr (GPtrArray) lines = fake_run_json_lines (run.dir);
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_assert_cmpuint (lines->len, ==, 3);
  JsonObject *line = parse (g_ptr_array_index (lines, 2), parser);
  g_assert_cmpstr (json_object_get_string_member (line, "mode"), ==, "val");
  g_assert_cmpint (json_object_get_int_member (line, "epoch"), ==, 1);
  g_assert_cmpint (json_object_get_int_member (line, "iter"), ==, 4);
  g_assert_cmpint (json_object_get_int_member (line, "n_batches"), ==, run.fake.task.val_length);
  double loss = json_object_get_double_member (line, "loss");
  g_assert_cmpfloat (loss, >, 0);
  g_autofree char *text =
      g_strdup_printf ("Epoch(val) [1][%d]\tloss_cls: %.4f, loss_bbox: %.4f, loss: %.4f",
                       (int) run.fake.task.val_length, json_object_get_double_member (line, "loss_cls"),
                       json_object_get_double_member (line, "loss_bbox"), loss);
  g_assert_cmpstr (g_ptr_array_index (text_lines, 2), ==, text);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  text_lines = g_ptr_array_new_with_free_func (g_free);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* the NaN below is warned of */
  g_log_set_writer_func (collect, NULL, NULL);
  g_log_set_default_handler (g_log_default_handler, NULL); /* g_test's would print each message as TAP */

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *name = g_strdup_printf ("/hooks/text-logger/lines/%u", (guint) i);
      g_test_add_data_func (name, &cases[i], test_lines);
    }
  g_test_add_func ("/hooks/text-logger/text", test_text);
  g_test_add_func ("/hooks/text-logger/text-counts", test_text_counts);
  g_test_add_func ("/hooks/text-logger/nan", test_nan);
  g_test_add_data_func ("/hooks/text-logger/resume/new-file", RESUMED (""), test_resume_new_file);
  g_test_add_data_func ("/hooks/text-logger/resume/no-append", RESUMED (", append: true"),
                        test_resume_new_file);
  g_test_add_func ("/hooks/text-logger/resume/append", test_resume_append);
  g_test_add_func ("/hooks/text-logger/resume/append-lost", test_resume_append_lost);
  g_test_add_func ("/hooks/text-logger/resume/hostile-state", test_hostile_state);
  g_test_add_func ("/hooks/text-logger/val", test_val);
  int status = g_test_run ();
  g_ptr_array_unref (text_lines);
  return status;
}
