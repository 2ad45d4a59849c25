#include "config.h"

#include "tests/hooks/step-run.h"

#include <math.h>
#include <string.h>

guint64 step_run_overflows;
gboolean step_run_is_late;

static gboolean (*fake_backward) (RnTask *task, GError **error);
static const RnBatch *(*fake_next) (RnTask *task, RnTaskData data, GError **error);
static GPtrArray *messages; /* of char * */

int
step_run_images (gint64 iter)
{
  return 1 + (int) (iter * 2 % 3);
}

float
step_run_positives (gint64 iter)
{
  return (float) (step_run_images (iter) + iter * 7 % 13);
}

static gint64
current_iter (const RnTask *task)
{
  const FakeTask *fake = (const FakeTask *) task;
  return (gint64) fake->epoch * task->epoch_length + fake->next - 1;
}

static const RnBatch *
next (RnTask *task, RnTaskData data, GError **error)
{
  FakeTask *fake = (FakeTask *) task;
  const RnBatch *batch = fake_next (task, data, error);
  fake->batch.n = step_run_images (current_iter (task));
  fake->batch.avg_factor = step_run_positives (current_iter (task));
  return batch;
}

static gboolean
backward (RnTask *task, GError **error)
{
  if (!fake_backward (task, error))
    return FALSE;
  if (step_run_overflows >> current_iter (task) & 1)
    ((FakeTask *) task)->grads[1] = INFINITY;
  return TRUE;
}

static void
take_over (FakeTask *fake)
{
  fake_backward = fake->vtbl.backward;
  fake_next = fake->vtbl.next;
  fake->vtbl.backward = backward;
  fake->vtbl.next = next;
  if (step_run_is_late)
    fake_task_be_late (fake);
}

void
step_run_gradient (gint64 iter, const float *w, double *gradient)
{
  FakeTask fake;

  fake_task_init (&fake, STEP_EPOCH);
  memcpy (fake.w, w, sizeof fake.w);
  fake.vtbl.seek (&fake.task, RN_TASK_TRAIN, (guint64) (iter / STEP_EPOCH), iter % STEP_EPOCH);
  g_assert_true (fake.vtbl.next (&fake.task, RN_TASK_TRAIN, NULL) != NULL);
  fake.grad_scale = 1;
  g_assert_true (fake.vtbl.backward (&fake.task, NULL));
  for (int i = 0; i < FAKE_N; i++)
    gradient[i] = (double) fake.grads[i];
}

void
step_run_open (FakeRun *run, const char *yaml, const char *dir)
{
  fake_run_open (run, yaml, STEP_EPOCH, dir);
  take_over (&run->fake);
}

void
step_run_weights (const char *yaml, float *w)
{
  FakeRun run;

  step_run_open (&run, yaml, NULL);
  fake_run_go (&run);
  memcpy (w, run.fake.w, sizeof run.fake.w);
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

GPtrArray *
step_run_lines (const char *dir)
{
  GPtrArray *lines = fake_run_timeless_lines (dir);

  for (guint i = lines->len; i > 0; i--)
    if (strstr (g_ptr_array_index (lines, i - 1), ";loss=") == NULL)
      g_ptr_array_remove_index (lines, i - 1);
  return lines;
}

double
step_run_value (const char *line, const char *name)
{
  g_autofree char *key = g_strdup_printf (";%s=", name);
  const char *found = strstr (line, key);
  return found != NULL ? g_ascii_strtod (found + strlen (key), NULL) : (double) NAN;
}

static void
collect (const char *domain, GLogLevelFlags level, const char *message, gpointer data)
{
  g_ptr_array_add (messages, g_strdup (message));
}

void
step_run_collect (void)
{
  messages = g_ptr_array_new_with_free_func (g_free);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  g_log_set_handler ("rn-hooks", (GLogLevelFlags) (G_LOG_LEVEL_MASK | G_LOG_FLAG_FATAL), collect, NULL);
}

guint
step_run_count (const char *pattern)
{
  guint n = 0;

  for (guint i = 0; i < messages->len; i++)
    n += g_pattern_match_simple (pattern, g_ptr_array_index (messages, i));
  g_ptr_array_set_size (messages, 0);
  return n;
}
