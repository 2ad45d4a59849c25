/*
 * Checkpoints whose counters and states are anything but what a run writes: each value of each text replaced
 * by each of a list of values. A resume says in one line what is wrong with it, or goes on and ends as runs
 * do. What it must not do, a crash or a number that is none, is for the sanitizers to find.
 */
#include "config.h"

#include "runner/base/error.h"
#include "tests/runner/fake-task.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <string.h>

/* In the middle of a window, of an epoch and of the workflow, with a best file. */
static const char yaml[] =
    "runner: {type: IterBasedRunner, max_iters: 8}\n"
    "workflow: [[train, 5], [val, 1]]\n"
    "optimizer_config: {type: GradientCumulativeFp16OptimizerHook, cumulative_iters: 3, loss_scale: "
    "dynamic}\n"
    "lr_config: {policy: CosineRestart, periods: [4, 8], restart_weights: [1, 0.5], min_lr: 0}\n"
    "checkpoint_config: {interval: 5, by_epoch: false}\n"
    "evaluation: {interval: 2, by_epoch: false, save_best: auto}\n"
    "log_config: {interval: 4, hooks: [{type: TextLoggerHook}]}\n"
    "custom_hooks: [{type: EMAHook}, {type: EarlyStoppingHook, monitor: mAP}]\n";

/* Each in place of a value. */
static const char *const values[] = {
  "-1",
  "9223372036854775807",
  "-9223372036854775808",
  "1e308",
  "-1e999",
  "null",
  "\"x\"",
  "[1.5]",
  "1e999",
  "4611686018427387904",
  "-1e308",
  "5e-324",
  "[]",
  "{}",
  "0",
  "true",
};
/* In place of a whole text. */
static const char *const texts[] = { "", "{}", "[]", "null", "{\"a\":", "{\"a\": {}}", "\x01" };

typedef struct
{
  char *dir, *path;   /* of the work dir, and the checkpoint */
  JsonNode *header;   /* of the checkpoint as it was written, without checksum */
  JsonObject *texts;  /* its metadata, in @header */
  char *bytes;        /* the whole file */
  gsize size, offset; /* of @bytes, and where the tensors begin in it */
  guint n_refused, n_run;
} Original;

static void
open_run (FakeRun *run, const char *dir)
{
  static const double scores[] = { 0.5, 0.25, 0.75, 0.5, 0.5, 0.5 };

  fake_run_open (run, yaml, 6, dir);
  run->fake.task.val_length = 2;
  run->fake.scores = scores;
  run->fake.n_scores = G_N_ELEMENTS (scores);
}

static void
original_open (Original *original)
{
  g_autoptr (GError) error = NULL;
  guint64 header_bytes;
  FakeRun run;

  memset (original, 0, sizeof *original);
  open_run (&run, NULL);
  fake_run_go (&run);
  original->dir = g_strdup (run.dir);
  fake_run_close (&run);
  original->path = g_build_filename (original->dir, "iter_5.safetensors", NULL);
  g_assert_true (g_file_get_contents (original->path, &original->bytes, &original->size, &error));
  memcpy (&header_bytes, original->bytes, sizeof header_bytes);
  original->offset = sizeof header_bytes + GUINT64_FROM_LE (header_bytes);
  g_autofree char *text =
      g_strndup (original->bytes + sizeof header_bytes, original->offset - sizeof header_bytes);
  original->header = json_from_string (text, &error);
  g_assert_no_error (error);
  original->texts = json_object_get_object_member (json_node_get_object (original->header), "__metadata__");
  json_object_remove_member (original->texts, "checksum");
}

static void
original_close (Original *original)
{
  json_node_unref (original->header);
  fake_run_remove (original->dir);
  g_free (original->bytes);
  g_free (original->path);
  g_free (original->dir);
}

static void
write_file (const Original *original)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = json_to_string (original->header, FALSE);
  g_autoptr (GString) file = g_string_new (NULL);
  guint64 header_bytes = GUINT64_TO_LE (strlen (text));

  g_string_append_len (file, (const char *) &header_bytes, sizeof header_bytes);
  g_string_append (file, text);
  g_string_append_len (file, original->bytes + original->offset,
                       (gssize) (original->size - original->offset));
  g_unlink (original->path); /* GLib 2.74 leaves the end of a longer file in place */
  g_assert_true (g_file_set_contents_full (original->path, file->str, (gssize) file->len,
                                           G_FILE_SET_CONTENTS_NONE, 0600, &error));
}

static void
assert_one_line (const GError *error)
{
  g_assert_nonnull (error);
  g_assert_true (error->domain == RN_CHECKPOINT_ERROR || error->domain == RN_RUN_ERROR);
  g_assert_cmpstr (error->message, !=, "");
  g_assert_null (strchr (error->message, '\n'));
}

/* @key has @text instead of its own. */
static void
resume_with (Original *original, const char *key, const char *text)
{
  g_autofree char *own = g_strdup (json_object_get_string_member (original->texts, key));
  g_autoptr (GError) error = NULL;
  FakeRun run;

  json_object_set_string_member (original->texts, key, text);
  write_file (original);
  json_object_set_string_member (original->texts, key, own);

  open_run (&run, original->dir);
  g_assert_true (rn_runner_init (run.runner, &error));
  if (!rn_runner_resume (run.runner, original->path, &error))
    {
      assert_one_line (error);
      original->n_refused++;
    }
  else
    {
      if (!rn_runner_run (run.runner, &error))
        assert_one_line (error);
      g_assert_cmpint (rn_runner_iter (run.runner), >=, 5);
      original->n_run++;
    }
  fake_run_close (&run);
}

/* @record with @value in place of that of @name. (transfer full) */
static char *
replace (JsonObject *record, const char *name, const char *value)
{
  g_autoptr (GString) text = g_string_new ("{");
  g_autoptr (GList) names = json_object_get_members (record);

  for (GList *l = names; l != NULL; l = l->next)
    {
      g_autofree char *own = json_to_string (json_object_get_member (record, l->data), FALSE);
      g_string_append_printf (text, "%s\"%s\": %s", l == names ? "" : ", ", (const char *) l->data,
                              strcmp (l->data, name) == 0 ? value : own);
    }
  g_string_append_c (text, '}');
  return g_strdup (text->str);
}

static void
change_values (Original *original, const char *key, guint *turn)
{
  g_autoptr (JsonNode) node = json_from_string (json_object_get_string_member (original->texts, key), NULL);
  JsonObject *record = json_node_get_object (node);
  guint n = g_test_slow () ? G_N_ELEMENTS (values) : 3; /* the next ones for the next name */
  g_autoptr (GList) names = json_object_get_members (record);

  for (GList *l = names; l != NULL; l = l->next)
    for (guint i = 0; i < n; i++)
      {
        g_autofree char *text = replace (record, l->data, values[(*turn)++ % G_N_ELEMENTS (values)]);
        resume_with (original, key, text);
      }
}

/* Of the texts that are records; of the log the first one, as all are alike. (transfer full) */
static GStrv
list_keys (JsonObject *metadata)
{
  g_autoptr (GList) names = json_object_get_members (metadata);
  g_autoptr (GStrvBuilder) keys = g_strv_builder_new ();

  for (GList *l = names; l != NULL; l = l->next)
    if (json_object_get_string_member (metadata, l->data)[0] == '{'
        && (!g_str_has_prefix (l->data, "log/") || g_str_has_prefix (l->data, "log/0000/")))
      g_strv_builder_add (keys, l->data);
  return g_strv_builder_end (keys);
}

static void
test_states (void)
{
  Original original;
  guint turn = 0;

  original_open (&original);
  g_auto (GStrv) keys = list_keys (original.texts);
  for (char **key = keys; *key != NULL; key++)
    {
      change_values (&original, *key, &turn);
      for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
        resume_with (&original, *key, texts[i]);
    }
  g_test_message ("%u refused, %u run", original.n_refused, original.n_run);
  g_assert_cmpuint (original.n_refused, >, 80);
  g_assert_cmpuint (original.n_run, >, 80);
  original_close (&original);
}

/* What runs say while they go on is not the point here. */
static void
ignore (const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_default_handler (ignore, NULL);
  g_test_add_func ("/runner/hostile-states", test_states);
  return g_test_run ();
}
