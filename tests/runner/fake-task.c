#include "config.h"

#include "tests/runner/fake-task.h"

#include "runner/base/signals.h"
#include "runner/config/config.h"
#include "runner/hook-wants.h"
#include "runner/record.h"

#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <string.h>

static void
trace (FakeTask *fake, const char *what)
{
  if (fake->trace != NULL)
    g_string_append_printf (fake->trace, "%s%s", fake->trace->len > 0 ? " " : "", what);
}

static void
seek (RnTask *task, RnTaskData data, guint64 epoch, gint64 first_batch)
{
  FakeTask *fake = (FakeTask *) task;
  if (data == RN_TASK_VAL)
    {
      fake->val_next = first_batch;
      return;
    }
  fake->epoch = epoch;
  fake->next = first_batch;
}

static const RnBatch *
next (RnTask *task, RnTaskData data, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  if (data == RN_TASK_VAL)
    {
      fake->val_batch.n = fake->val_next + 1 == task->val_length ? 1 : 2;
      return fake->val_next++ < task->val_length ? &fake->val_batch : NULL;
    }
  return fake->next++ < task->epoch_length ? &fake->batch : NULL;
}

static void
release (RnTask *task, RnTaskData data, const RnBatch *batch)
{
  FakeTask *fake = (FakeTask *) task;
  g_assert_true (batch == (data == RN_TASK_VAL ? &fake->val_batch : &fake->batch));
}

/* What weight @i is pulled to by the current batch. */
static float
target (const FakeTask *fake, int i)
{
  if (fake->is_val)
    return (float) ((guint64) (fake->val_next * 5 + i) % 7) / 3;
  return (float) ((fake->epoch * 7 + (guint64) fake->next * 3 + (guint64) i) % 11) / 3;
}

static const char *const loss_names[] = { "loss_cls", "loss_bbox", "loss" };

/* Of the first half of the weights, the second, all. */
static double
compute_loss (const FakeTask *fake, int which)
{
  float sum = 0;

  for (int i = 0; i < FAKE_N; i++)
    if (which == 2 || (which == 0) == (i < FAKE_N / 2))
      sum += (fake->w[i] - target (fake, i)) * (fake->w[i] - target (fake, i)) / 2;
  return (double) sum;
}

static gboolean
forward (RnTask *task, const RnBatch *batch, RnMode mode, float grad_scale, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  trace (fake, mode == RN_MODE_LOSS ? "loss" : "forward");
  fake->is_val = mode == RN_MODE_LOSS;
  g_assert_true (batch == (fake->is_val ? &fake->val_batch : &fake->batch));
  fake->grad_scale = grad_scale;
  for (int i = 0; i < 3; i++)
    fake->losses[i] = compute_loss (fake, i);
  fake->has_due_losses = task->has_late_results;
  return TRUE;
}

static gboolean
settle (RnTask *task, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  trace (fake, "settle");
  fake->has_due_losses = FALSE;
  return TRUE;
}

static double
loss (RnTask *task, const char *name)
{
  const FakeTask *fake = (const FakeTask *) task;
  for (int i = 0; i < 3; i++)
    if (strcmp (loss_names[i], name) == 0)
      return fake->has_due_losses ? (double) NAN : fake->losses[i];
  return (double) NAN;
}

static gboolean
backward (RnTask *task, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  trace (fake, "backward");
  for (int i = 0; i < FAKE_N; i++)
    fake->grads[i] += (fake->w[i] - target (fake, i)) * fake->grad_scale;
  return TRUE;
}

static gboolean
zero_grads (RnTask *task, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  trace (fake, "zero");
  memset (fake->grads, 0, sizeof fake->grads);
  return TRUE;
}

static gboolean
grad_stats (RnTask *task, double norm_type, RnGradStats *stats, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  double sum = 0, largest = 0;
  trace (fake, "norm");
  for (int i = 0; i < FAKE_N; i++)
    {
      double a = fabs ((double) fake->grads[i]);
      sum += pow (a, norm_type);
      largest = a <= largest ? largest : a; /* NaN stays */
    }
  stats->norm = fake->grad_norm > 0 ? fake->grad_norm
                : isinf (norm_type) ? largest
                                    : pow (sum, 1 / norm_type);
  stats->max_abs = largest;
  return TRUE;
}

/* What a guard makes of @multiplier; *@skips: there is no step. */
static double
guard (FakeTask *fake, const RnTaskUpdate *step, double multiplier, gboolean *skips)
{
  *skips = FALSE;
  if (step->max_norm <= 0 && !step->checks_finite)
    return multiplier;
  grad_stats (&fake->task, step->norm_type, &fake->stats, NULL);
  *skips = fake->is_skipped = step->checks_finite && !isfinite (fake->stats.max_abs);
  if (step->max_norm > 0)
    multiplier *= MIN (1.0, step->max_norm / (fake->stats.norm * multiplier + 1e-6));
  return multiplier;
}

static gboolean
update (RnTask *task, const RnTaskUpdate *step, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  gboolean skips;
  double multiplier = guard (fake, step, step->grad_multiplier, &skips);
  if (skips)
    return TRUE;
  if (fake->trace != NULL)
    g_string_append_printf (fake->trace, " update(%g%s)", multiplier, step->is_first ? ",first" : "");
  for (int i = 0; i < FAKE_N; i++)
    {
      float d = fake->grads[i] * (float) multiplier, limit = (float) step->clip_value;
      if (limit > 0)
        d = CLAMP (d, -limit, limit);
      fake->momentum[i] = step->is_first ? d : (float) step->momentum * fake->momentum[i] + d;
      fake->w[i] -= (float) step->lrs[0] * fake->momentum[i];
    }
  return TRUE;
}

static gboolean
settle_update (RnTask *task, RnGradStats *stats, gboolean *is_done, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  if (task->has_late_results)
    trace (fake, "outcome");
  *stats = fake->stats;
  *is_done = !fake->is_skipped;
  return TRUE;
}

static gboolean
update_ema (RnTask *task, double momentum, gboolean with_buffers, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  for (int i = 0; i < FAKE_N; i++)
    fake->ema[i] += (float) momentum * (fake->w[i] - fake->ema[i]);
  return TRUE;
}

static gboolean
swap_ema (RnTask *task, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  trace (fake, "swap");
  for (int i = 0; i < FAKE_N; i++)
    {
      float w = fake->w[i];
      fake->w[i] = fake->ema[i];
      fake->ema[i] = w;
    }
  return TRUE;
}

static gboolean
read_param (RnTask *task, guint param, float *values, GError **error)
{
  memcpy (values, ((FakeTask *) task)->w, sizeof (float) * FAKE_N);
  return TRUE;
}

static gboolean
read_grad (RnTask *task, guint param, float *values, GError **error)
{
  memcpy (values, ((FakeTask *) task)->grads, sizeof (float) * FAKE_N);
  return TRUE;
}

static gboolean
write_grad (RnTask *task, guint param, const float *values, GError **error)
{
  memcpy (((FakeTask *) task)->grads, values, sizeof (float) * FAKE_N);
  return TRUE;
}

static char **
unreached_params (RnTask *task)
{
  static const char *const none[] = { NULL };
  return g_strdupv ((char **) none);
}

static gboolean
find_non_finite (RnTask *task, const RnBatch *batch, char **where, GError **error)
{
  *where = NULL;
  for (int i = 0; i < FAKE_N; i++)
    if (!isfinite (((FakeTask *) task)->w[i]))
      *where = g_strdup ("w");
  return TRUE;
}

static guint64
empty_cache (RnTask *task)
{
  trace ((FakeTask *) task, "empty_cache");
  return FAKE_CACHE_BYTES;
}

static gboolean
evaluate (RnTask *task, const RnEvalOptions *options, RnEvaluation *result, GError **error)
{
  FakeTask *fake = (FakeTask *) task;

  if ((int) fake->n_evaluations + 1 == fake->signal_in_evaluation)
    {
      fake->signal_in_evaluation = 0;
      raise (SIGTERM);
    }
  if (rn_signals_pending () != 0)
    return FALSE;
  g_assert_cmpuint (fake->n_evaluations, <, fake->n_scores);
  RnIouScore score = { .iou_thr = options->iou_thrs[0],
                       .classes = g_array_new (FALSE, FALSE, sizeof (RnClassScore)) };
  RnClassScore class = { 0, 3, 4, 0.5, fake->scores[fake->n_evaluations], NULL };
  score.map = result->map = fake->scores[fake->n_evaluations++];
  g_array_append_val (score.classes, class);
  result->scores = g_array_new (FALSE, FALSE, sizeof (RnIouScore));
  g_array_append_val (result->scores, score);
  result->n_images = 5;
  return TRUE;
}

static gboolean
read_floats (gpointer source, gsize offset, void *dst, gsize size, GError **error)
{
  memcpy (dst, (const char *) source + offset, size);
  return TRUE;
}

static void
add_tensors (RnTask *task, RnSafetensorsWriter *writer, guint what)
{
  FakeTask *fake = (FakeTask *) task;
  RnTensorDesc desc = rn_desc_vector (RN_F32, FAKE_N);
  rn_safetensors_writer_add (writer, "w", &desc, read_floats, fake->w, NULL);
  if (what & RN_TENSORS_OPTIMIZER)
    rn_safetensors_writer_add (writer, "momentum/w", &desc, read_floats, fake->momentum, NULL);
  if (what & RN_TENSORS_PENDING)
    rn_safetensors_writer_add (writer, "pending/w", &desc, read_floats, fake->grads, NULL);
  if (what & RN_TENSORS_EMA)
    rn_safetensors_writer_add (writer, "ema/w", &desc, read_floats, fake->ema, NULL);
}

static guint
load (const RnSafetensors *file, const char *name, float *values, guint what)
{
  const RnStoredTensor *tensor = rn_safetensors_find (file, name);
  if (tensor == NULL)
    return 0;
  memcpy (values, tensor->data, sizeof (float) * FAKE_N);
  return what;
}

static gboolean
load_tensors (RnTask *task, const RnSafetensors *file, guint *found, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  load (file, "w", fake->w, 0);
  *found = load (file, "momentum/w", fake->momentum, RN_TENSORS_OPTIMIZER)
           | load (file, "pending/w", fake->grads, RN_TENSORS_PENDING)
           | load (file, "ema/w", fake->ema, RN_TENSORS_EMA);
  return TRUE;
}

void
fake_task_init (FakeTask *fake, gint64 epoch_length)
{
  static const char *const classes[] = { "thing", NULL };
  static const char *const losses[] = { "loss_cls", "loss_bbox", NULL };
  static const double mults[] = { 1 };
  static const RnTensorDesc w_desc = { RN_F32, 1, { FAKE_N }, 1 };
  static const RnTaskParam params[] = { { "w", &w_desc, TRUE } };

  memset (fake, 0, sizeof *fake);
  fake->vtbl = (RnTaskVtbl){ .seek = seek,
                             .next = next,
                             .release = release,
                             .forward = forward,
                             .loss = loss,
                             .backward = backward,
                             .zero_grads = zero_grads,
                             .grad_stats = grad_stats,
                             .update = update,
                             .settle_update = settle_update,
                             .update_ema = update_ema,
                             .swap_ema = swap_ema,
                             .read_param = read_param,
                             .read_grad = read_grad,
                             .write_grad = write_grad,
                             .unreached_params = unreached_params,
                             .find_non_finite = find_non_finite,
                             .empty_cache = empty_cache,
                             .evaluate = evaluate,
                             .add_tensors = add_tensors,
                             .load_tensors = load_tensors };
  fake->task = (RnTask){ .vtbl = &fake->vtbl,
                         .epoch_length = epoch_length,
                         .batch_size = 2,
                         .seed = 1,
                         .num_classes = 1,
                         .class_names = classes,
                         .loss_names = losses,
                         .device = "fake",
                         .lr_mults = mults,
                         .n_groups = 1,
                         .params = params,
                         .n_params = G_N_ELEMENTS (params) };
}

void
fake_task_be_late (FakeTask *fake)
{
  fake->task.has_late_results = TRUE;
  fake->vtbl.settle = settle;
}

static gboolean
open_runner (FakeRun *run, const char *text, GError **error)
{
  RnRunnerOptions options = { .work_dir = run->dir, .config_text = text };
  g_autoptr (GArray) workflow = NULL;
  g_autoptr (RnWants) wants = rn_wants_new ();

  if ((run->root = rn_config_load_text (text, "test.yaml", NULL, error)) == NULL
      || !rn_run_config_parse (run->root, &run->config, error)
      || (run->optimizer = rn_optimizer_new (run->config.optimizer, error)) == NULL
      || !rn_runner_options_parse (run->config.runner, &options, error)
      || (workflow = rn_workflow_parse (run->config.workflow, error)) == NULL
      || (options.hooks = rn_training_hooks_new (&run->config, &options.log_interval, error)) == NULL)
    return FALSE;
  if (!rn_hook_list_prepare (options.hooks, wants, error))
    {
      rn_hook_list_free (options.hooks);
      return FALSE;
    }
  options.workflow = workflow;
  options.optimizer = run->optimizer;
  options.allow_batch_change = run->config.resume.allow_batch_change;
  run->runner = rn_runner_new (&run->fake.task, &options);
  return TRUE;
}

static gboolean
open_run (FakeRun *run, const char *yaml, gint64 epoch_length, const char *dir, GError **error)
{
  g_autofree char *text = g_strconcat (
      strstr (yaml, "optimizer: {") == NULL ? "optimizer: {type: SGD, lr: 0.001, momentum: 0.9}\n" : "", yaml,
      NULL);

  memset (run, 0, sizeof *run);
  fake_task_init (&run->fake, epoch_length);
  run->dir = dir != NULL ? g_strdup (dir) : g_dir_make_tmp ("rn-run-XXXXXX", error);
  return run->dir != NULL && open_runner (run, text, error);
}

void
fake_run_open (FakeRun *run, const char *yaml, gint64 epoch_length, const char *dir)
{
  g_autoptr (GError) error = NULL;
  open_run (run, yaml, epoch_length, dir, &error);
  g_assert_no_error (error);
}

gboolean
fake_run_try (FakeRun *run, const char *yaml, gint64 epoch_length, GError **error)
{
  return open_run (run, yaml, epoch_length, NULL, error) && rn_runner_init (run->runner, error);
}

void
fake_run_close (FakeRun *run)
{
  rn_runner_free (run->runner);
  rn_optimizer_free (run->optimizer);
  rn_run_config_clear (&run->config);
  rn_node_free (run->root);
  g_free (run->dir);
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

static GPtrArray *
list_files (const char *dir, const char *suffix)
{
  GPtrArray *names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GDir) folder = g_dir_open (dir, 0, NULL);
  const char *name;

  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL)
    if (g_str_has_suffix (name, suffix))
      g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, compare_names);
  return names;
}

void
fake_run_remove (const char *dir)
{
  g_autoptr (GPtrArray) names = list_files (dir, "");
  for (guint i = 0; i < names->len; i++)
    {
      g_autofree char *path = g_build_filename (dir, g_ptr_array_index (names, i), NULL);
      g_assert_cmpint (g_remove (path), ==, 0);
    }
  g_assert_cmpint (g_rmdir (dir), ==, 0);
}

GPtrArray *
fake_run_json_lines (const char *dir)
{
  g_autoptr (GPtrArray) names = list_files (dir, ".log.json");
  g_autofree char *text = NULL, *path = NULL;
  GPtrArray *lines = g_ptr_array_new_with_free_func (g_free);

  g_assert_cmpuint (names->len, >, 0);
  path = g_build_filename (dir, g_ptr_array_index (names, names->len - 1), NULL);
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_auto (GStrv) all = g_strsplit (text, "\n", -1);
  for (char **line = all; *line != NULL; line++)
    if (**line != '\0' && strstr (*line, "\"mode\": \"meta\"") == NULL
        && strstr (*line, "\"mode\": \"resume\"") == NULL)
      g_ptr_array_add (lines, g_strdup (*line));
  return lines;
}

static char *
timeless (const char *json)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) record = rn_record_parse (json, &error);
  GString *text = g_string_new (NULL);

  g_assert_no_error (error);
  for (guint i = 0; i < rn_record_size (record); i++)
    {
      const char *name = rn_record_name (record, i);
      if (strstr (name, "time") == NULL && strstr (name, "memory") == NULL && strcmp (name, "eta_s") != 0)
        g_string_append_printf (text, "%s=%.17g;", name, rn_record_float (record, name, -1));
    }
  return g_string_free (text, FALSE);
}

GPtrArray *
fake_run_timeless_lines (const char *dir)
{
  g_autoptr (GPtrArray) lines = fake_run_json_lines (dir);
  GPtrArray *result = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < lines->len; i++)
    if (strstr (g_ptr_array_index (lines, i), "\"mode\": \"resume\"") == NULL)
      g_ptr_array_add (result, timeless (g_ptr_array_index (lines, i)));
  return result;
}

char *
fake_run_files (const char *dir, const char *suffix)
{
  g_autoptr (GPtrArray) names = list_files (dir, suffix);
  g_ptr_array_add (names, NULL);
  return g_strjoinv (" ", (char **) names->pdata);
}

void
fake_run_go (FakeRun *run)
{
  g_autoptr (GError) error = NULL;
  gboolean is_ok = rn_runner_init (run->runner, &error) && rn_runner_run (run->runner, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

void
fake_run_resume (FakeRun *run, const char *path)
{
  g_autoptr (GError) error = NULL;
  gboolean is_ok = rn_runner_init (run->runner, &error) && rn_runner_resume (run->runner, path, &error);
  g_assert_no_error (error);
  g_assert_true (is_ok);
}

void
fake_run_assert_files (const char *dir, const char *expected)
{
  g_autofree char *files = fake_run_files (dir, ".safetensors");
  g_assert_cmpstr (files, ==, expected);
}

char *
fake_run_read_list (const char *dir)
{
  g_autofree char *path = g_build_filename (dir, "last_checkpoint", NULL);
  char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  return text;
}
