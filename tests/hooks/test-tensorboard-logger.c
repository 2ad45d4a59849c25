/*
 * Event files, by a reader of their own that shares nothing with the writer: the checksum is computed bit by
 * bit, messages are taken apart by their tags. check-tensorboard.py asks TensorBoard itself.
 */
#include "config.h"

#include "tests/hooks/python.h"
#include "tests/runner/fake-task.h"
#include "tests/tree.h"

#include <math.h>
#include <string.h>

/* One message of the file, taken apart. */
typedef struct
{
  double wall_time;
  gint64 step;
  char *version;
  gboolean is_restart;
  GPtrArray *values; /* of char *: "TAG=VALUE", in order */
} Event;

static void
event_free (gpointer data)
{
  Event *event = data;
  g_free (event->version);
  g_ptr_array_unref (event->values);
  g_free (event);
}

/* ---- Records ---- */

static guint32
crc32c_by_bits (const guint8 *data, gsize size)
{
  guint32 crc = 0xffffffff;
  for (gsize i = 0; i < size; i++)
    {
      crc ^= data[i];
      for (int bit = 0; bit < 8; bit++)
        crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
  return ~crc;
}

static guint64
little_endian (const guint8 *data, int bytes)
{
  guint64 value = 0;
  for (int i = bytes; i-- > 0;)
    value = value << 8 | data[i];
  return value;
}

static void
assert_checksum (const guint8 *data, gsize size, const guint8 *stored)
{
  guint32 crc = crc32c_by_bits (data, size);
  g_assert_cmphex (little_endian (stored, 4), ==, (guint32) ((crc >> 15 | crc << 17) + 0xa282ead8));
}

/* ---- Messages ---- */

typedef struct
{
  const guint8 *at, *end;
} Span;

static guint64
take_varint (Span *span)
{
  guint64 value = 0;
  for (int shift = 0;; shift += 7)
    {
      g_assert_true (span->at < span->end && shift < 64);
      value |= (guint64) (*span->at & 0x7f) << shift;
      if (*span->at++ < 0x80)
        return value;
    }
}

/* FALSE at the end. @number: of a field that is a number, as bits; @bytes: of another one. */
static gboolean
take_field (Span *span, int *field, guint64 *number, Span *bytes)
{
  if (span->at == span->end)
    return FALSE;
  guint64 key = take_varint (span), size;

  *field = (int) (key >> 3);
  *bytes = (Span){ NULL, NULL };
  *number = 0;
  switch (key & 7)
    {
    case 0:
      *number = take_varint (span);
      return TRUE;
    case 1:
    case 5:
      size = (key & 7) == 1 ? 8 : 4;
      g_assert_cmpuint (size, <=, span->end - span->at);
      *number = little_endian (span->at, (int) size);
      break;
    default:
      g_assert_cmpuint (key & 7, ==, 2);
      size = take_varint (span);
      g_assert_cmpuint (size, <=, span->end - span->at);
      *bytes = (Span){ span->at, span->at + size };
    }
  span->at += size;
  return TRUE;
}

static char *
span_text (Span span)
{
  char *text = g_strndup ((const char *) span.at, (gsize) (span.end - span.at));
  g_assert_true (g_utf8_validate (text, -1, NULL));
  return text;
}

/* The bytes of @field in @span, which must have it once. */
static Span
get_bytes (Span span, int wanted)
{
  int field, n = 0;
  guint64 number;
  Span bytes, found = { NULL, NULL };

  while (take_field (&span, &field, &number, &bytes))
    if (field == wanted)
      {
        found = bytes;
        n++;
      }
  g_assert_cmpint (n, ==, 1);
  return found;
}

static void
read_value (Event *event, Span span)
{
  g_autofree char *tag = span_text (get_bytes (span, 1)), *text = NULL;
  int field;
  guint64 number;
  Span bytes;

  while (take_field (&span, &field, &number, &bytes))
    if (field == 2) /* simple_value */
      {
        guint32 bits = (guint32) number;
        float value;
        memcpy (&value, &bits, sizeof value);
        text = g_strdup_printf ("%.7g", (double) value);
      }
    else if (field == 8) /* tensor: string_val */
      text = span_text (get_bytes (bytes, 8));
    else if (field == 9) /* metadata: plugin_data: plugin_name */
      {
        g_autofree char *plugin = span_text (get_bytes (get_bytes (bytes, 1), 1));
        g_assert_cmpstr (plugin, ==, "text");
      }
  g_ptr_array_add (event->values, g_strdup_printf ("%s=%s", tag, text));
}

static Event *
read_event (Span span)
{
  Event *event = g_new0 (Event, 1);
  int field, inner;
  guint64 number;
  Span bytes, value;

  event->values = g_ptr_array_new_with_free_func (g_free);
  while (take_field (&span, &field, &number, &bytes))
    switch (field)
      {
      case 1:
        memcpy (&event->wall_time, &number, sizeof number);
        break;
      case 2:
        event->step = (gint64) number;
        break;
      case 3:
        event->version = span_text (bytes);
        break;
      case 5:
        while (take_field (&bytes, &inner, &number, &value))
          {
            g_assert_cmpint (inner, ==, 1);
            read_value (event, value);
          }
        break;
      case 7:
        g_assert_true (take_field (&bytes, &inner, &number, &value));
        g_assert_cmpint (inner, ==, 1);
        g_assert_cmpuint (number, ==, 1); /* START */
        event->is_restart = TRUE;
        break;
      default:
        g_assert_not_reached ();
      }
  return event;
}

static GPtrArray *
read_events (const char *path)
{
  g_autofree char *text = NULL;
  gsize size, at = 0;
  GPtrArray *events = g_ptr_array_new_with_free_func (event_free);

  g_assert_true (g_file_get_contents (path, &text, &size, NULL));
  const guint8 *data = (const guint8 *) text;
  while (at < size)
    {
      g_assert_cmpuint (size - at, >=, 16);
      guint64 length = little_endian (data + at, 8);
      assert_checksum (data + at, 8, data + at + 8);
      g_assert_cmpuint (length, <=, size - at - 16);
      assert_checksum (data + at + 12, length, data + at + 12 + length);
      g_ptr_array_add (events, read_event ((Span){ data + at + 12, data + at + 12 + length }));
      at += length + 16;
    }
  return events;
}

/* Event file @i in the order of their names, of @n. */
static GPtrArray *
read_file (const char *dir, guint i, guint n)
{
  g_autofree char *names = fake_run_files (dir, "");
  g_auto (GStrv) list = g_strsplit (names, " ", -1);

  g_assert_cmpuint (g_strv_length (list), ==, n);
  g_assert_true (g_str_has_prefix (list[i], "events.out.tfevents."));
  g_autofree char *path = g_build_filename (dir, list[i], NULL);
  return read_events (path);
}

/* "STEP TAG" of all events. */
static void
assert_steps (const GPtrArray *events, const char *tag, const char *expected)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *prefix = g_strconcat (tag, "=", NULL);

  for (guint i = 0; i < events->len; i++)
    {
      const Event *event = g_ptr_array_index (events, i);
      for (guint k = 0; k < event->values->len; k++)
        if (g_str_has_prefix (g_ptr_array_index (event->values, k), prefix))
          g_string_append_printf (text, "%s%" G_GINT64_FORMAT, text->len > 0 ? " " : "", event->step);
    }
  g_assert_cmpstr (text->str, ==, expected);
}

static double
value_at (const GPtrArray *events, gint64 step, const char *tag)
{
  g_autofree char *prefix = g_strconcat (tag, "=", NULL);

  for (guint i = 0; i < events->len; i++)
    {
      const Event *event = g_ptr_array_index (events, i);
      for (guint k = 0; k < event->values->len && event->step == step; k++)
        if (g_str_has_prefix (g_ptr_array_index (event->values, k), prefix))
          return g_ascii_strtod ((const char *) g_ptr_array_index (event->values, k) + strlen (prefix), NULL);
    }
  g_error ("no %s at %d", tag, (int) step);
}

/* ---- Tests ---- */

#define CONFIG                                                                                          \
  "optimizer: {type: SGD, lr: 0.001, momentum: 0.9}\nrunner: {type: EpochBasedRunner, max_epochs: 2}\n" \
  "evaluation: {interval: 1}\ncheckpoint_config: {interval: 1}\n"                                       \
  "log_config: {interval: 2, hooks: [{type: TextLoggerHook}, {type: TensorboardLoggerHook}]}\n"

static const double scores[] = { 0.25, 0.75, 0.5 };

/* The same numbers as in the JSON log, at the same iterations; evaluations at the iteration of their epoch's
 * last line. */
static void
test_values (void)
{
  FakeRun run;

  fake_run_open (&run, CONFIG, 4, NULL);
  run.fake.scores = scores;
  run.fake.n_scores = 2;
  gint64 before = g_get_real_time ();
  fake_run_go (&run);
  g_autofree char *dir = g_build_filename (run.dir, "tf_logs", NULL);
  g_autoptr (GPtrArray) events = read_file (dir, 0, 1);

  const Event *first = g_ptr_array_index (events, 0);
  g_assert_cmpstr (first->version, ==, "brain.Event:2");
  g_assert_cmpfloat (first->wall_time * 1e6, >=, (double) before - 1);
  g_assert_cmpfloat (first->wall_time * 1e6, <=, (double) g_get_real_time () + 1);
  const Event *config = g_ptr_array_index (events, 1);
  g_assert_true (g_str_has_prefix (g_ptr_array_index (config->values, 0),
                                   "config/text_summary=    optimizer: {type: SGD"));
  assert_steps (events, "train/loss", "2 4 6 8");
  assert_steps (events, "learning_rate", "2 4 6 8");
  assert_steps (events, "momentum", "2 4 6 8");
  assert_steps (events, "val/mAP", "4 8");
  assert_steps (events, "train/time", "");
  assert_steps (events, "train/data_time", "");
  assert_steps (events, "val/epoch", ""); /* a count, not a score */
  /* Seven digits are read back. */
  g_assert_cmpfloat (value_at (events, 8, "val/mAP"), ==, 0.75);
  g_assert_cmpfloat (fabs (value_at (events, 2, "learning_rate") - 0.001), <=, 1e-9);
  g_assert_cmpfloat (fabs (value_at (events, 2, "momentum") - 0.9), <=, 1e-6);

  g_autoptr (GPtrArray) lines = fake_run_json_lines (run.dir);
  guint n = 0;
  for (guint i = 0; i < lines->len; i++)
    {
      const char *line = g_ptr_array_index (lines, i);
      if (strstr (line, "\"train\"") == NULL)
        continue;
      gint64 iter = g_ascii_strtoll (strstr (line, "\"iter\": ") + strlen ("\"iter\": "), NULL, 10);
      double loss = g_ascii_strtod (strstr (line, "\"loss\": ") + strlen ("\"loss\": "), NULL);
      g_assert_cmpfloat (fabs (value_at (events, iter, "train/loss") - loss), <=, 1e-6 * loss);
      n++;
    }
  g_assert_cmpuint (n, ==, 4);
  remove_tree (run.dir);
  fake_run_close (&run);
}

/* Runs to the end, then takes up epoch 1. Gives the folder of the run. */
static char *
run_twice (void)
{
  FakeRun run;

  fake_run_open (&run, CONFIG, 4, NULL);
  char *dir = g_strdup (run.dir);
  run.fake.scores = scores;
  run.fake.n_scores = 3;
  fake_run_go (&run);
  fake_run_close (&run);

  g_autofree char *path = g_build_filename (dir, "epoch_1.safetensors", NULL);
  fake_run_open (&run, CONFIG, 4, dir);
  run.fake.scores = scores;
  run.fake.n_scores = 3;
  fake_run_resume (&run, path);
  g_autoptr (GError) error = NULL;
  g_assert_true (rn_runner_run (run.runner, &error));
  fake_run_close (&run);
  return dir;
}

/* A resumed run says where it begins: one behind the last point that stays. */
static void
test_resume (void)
{
  g_autofree char *dir = run_twice (), *tf = g_build_filename (dir, "tf_logs", NULL);
  g_autoptr (GPtrArray) events = read_file (tf, 1, 2);
  const Event *start = g_ptr_array_index (events, 1);
  g_assert_true (start->is_restart);
  g_assert_cmpint (start->step, ==, 5);
  assert_steps (events, "train/loss", "6 8");
  assert_steps (events, "val/mAP", "8");
  g_autoptr (GPtrArray) old = read_file (tf, 0, 2);
  for (guint i = 0; i < old->len; i++)
    g_assert_false (((const Event *) g_ptr_array_index (old, i))->is_restart);
  remove_tree (dir);
}

/* TensorBoard shows each iteration once: the score of the second run (the first of its list, 0.25) in the
 * place of the first run's 0.75. */
static void
test_own_reader (void)
{
  g_autofree char *dir = run_twice (), *tf = g_build_filename (dir, "tf_logs", NULL);
  const char *const args[] = { tf,  "val/mAP", "val/AP50", "learning_rate", "momentum", "config/text_summary",
                               NULL };
  g_autofree char *text = run_python ("check-tensorboard.py", args);

  if (text != NULL)
    g_assert_cmpstr (text, ==,
                     "val/mAP 4:0.25 8:0.25\nval/AP50 4:0.25 8:0.25\n"
                     "learning_rate 2:0.001 4:0.001 6:0.001 8:0.001\nmomentum 2:0.9 4:0.9 6:0.9 8:0.9\n"
                     "config/text_summary 0:optimizer: {type: SGD, lr: 0.001, momentum: 0.9} "
                     "4:optimizer: {type: SGD, lr: 0.001, momentum: 0.9}\n");
  remove_tree (dir);
}

static double
nan_loss (RnTask *task, const char *name)
{
  return strcmp (name, "loss_cls") == 0 ? 0.5 : (double) NAN;
}

static void
test_keys (void)
{
  g_autofree char *dir = g_dir_make_tmp ("rn-tb-XXXXXX", NULL);
  g_autofree char *tf = g_build_filename (dir, "a", "b", NULL);
  g_autofree char *yaml = g_strdup_printf (
      "runner: {type: IterBasedRunner, max_iters: 7}\nlog_config: {hooks: [{type: TensorboardLoggerHook, "
      "log_dir: %s, interval: 3, ignore_last: false, reset_flag: true, by_epoch: false}]}\n",
      tf);
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, yaml, 5, dir);
  run.fake.vtbl.loss = nan_loss;
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  fake_run_close (&run);
  g_autoptr (GPtrArray) events = read_file (tf, 0, 1);
  assert_steps (events, "train/loss_cls", "3 5 6 7"); /* 5: the end of the first pass */
  g_assert_true (isnan (value_at (events, 3, "train/loss")));
  remove_tree (dir);
}

static void
test_refused (void)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run,
                 "runner: {type: IterBasedRunner, max_iters: 2}\nlog_config: {hooks: [{type: "
                 "TensorboardLoggerHook, log_dir: /proc/no/such}]}\n",
                 5, NULL);
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_true (g_str_has_prefix (error->message, "TensorboardLoggerHook: before_run: /proc/no/such: "));
  remove_tree (run.dir);
  fake_run_close (&run);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* the NaN above is warned of */
  g_test_add_func ("/hooks/tensorboard/values", test_values);
  g_test_add_func ("/hooks/tensorboard/resume", test_resume);
  g_test_add_func ("/hooks/tensorboard/own-reader", test_own_reader);
  g_test_add_func ("/hooks/tensorboard/keys", test_keys);
  g_test_add_func ("/hooks/tensorboard/refused", test_refused);
  return g_test_run ();
}
