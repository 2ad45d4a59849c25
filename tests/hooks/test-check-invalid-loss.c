/* CheckInvalidLossHook: what it says, and when. */
#include "config.h"

#include "tests/runner/fake-task.h"

#include <math.h>
#include <string.h>

#define RUN(keys)                                                                       \
  "optimizer: {type: SGD, lr: 0.0125}\nrunner: {type: IterBasedRunner, max_iters: 8}\n" \
  "log_config: {hooks: []}\ncustom_hooks: [{type: CheckInvalidLossHook" keys "}]\n"

static double
infinite_loss (RnTask *task, const char *name)
{
  return ((FakeTask *) task)->next < 3 ? 1 : INFINITY;
}

static gboolean
find (RnTask *task, const RnBatch *batch, char **where, GError **error)
{
  g_assert_true (batch == &((FakeTask *) task)->batch);
  *where = g_strdup ("backbone.layer1.0.conv1: 3 of 8 values");
  return TRUE;
}

/* The weights must be those of the loss: no step was done since. */
static void
test_message (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) trace = g_string_new (NULL);
  RnSampleMeta metas[] = { { .id = "000012", .path = "/data/000012.jpg" },
                           { .id = "000017", .path = "/b.png" } };
  FakeRun run;

  fake_run_open (&run, RUN (", interval: 1"), 10, NULL);
  run.fake.vtbl.loss = infinite_loss;
  run.fake.vtbl.find_non_finite = find;
  run.fake.batch.metas = metas;
  run.fake.batch.n = 2;
  run.fake.trace = trace;
  g_assert_true (rn_runner_init (run.runner, &error));
  g_assert_false (rn_runner_run (run.runner, &error));
  g_assert_true (g_str_has_prefix (
      error->message,
      "CheckInvalidLossHook: after_train_iter: the loss of iteration 3 is infinite; first in "
      "backbone.layer1.0.conv1: 3 of 8 values; images: 000012 (/data/000012.jpg), 000017 (/b.png); "
      "lr 0.0125, gradients times 1. What usually helps: "));
  g_assert_true (
      g_str_has_suffix (trace->str, " forward")); /* of the third iteration, and nothing after it */
  fake_run_remove (run.dir);
  fake_run_close (&run);
}

static gboolean
run_to (const char *yaml, double (*loss) (RnTask *, const char *), char **message)
{
  g_autoptr (GError) error = NULL;
  FakeRun run;

  fake_run_open (&run, yaml, 10, NULL);
  if (loss != NULL)
    run.fake.vtbl.loss = loss;
  gboolean is_ok = rn_runner_init (run.runner, &error) && rn_runner_run (run.runner, &error);
  *message = is_ok ? NULL : g_strdup (error->message);
  fake_run_remove (run.dir);
  fake_run_close (&run);
  return is_ok;
}

static void
test_interval (void)
{
  g_autofree char *message = NULL;

  g_assert_true (run_to (RUN (", interval: 1"), NULL, &message));
  g_assert_false (run_to (RUN (", interval: 9"), infinite_loss, &message));
  g_assert_null (strstr (message, "CheckInvalidLossHook"));
  g_clear_pointer (&message, g_free);
  g_assert_false (run_to (RUN (", interval: 4"), infinite_loss, &message));
  g_assert_nonnull (strstr (message, "iteration 4 is infinite"));
  g_assert_nonnull (strstr (message, "it was not to be seen again")); /* the fake's weights are finite */
}

/* After the optimizer hook it would look at other weights. */
static void
test_priority (void)
{
  g_autofree char *message = NULL;

  g_assert_false (run_to (RUN (", priority: NORMAL"), NULL, &message));
  g_assert_true (g_str_has_prefix (message, "test.yaml:4:"));
  g_assert_nonnull (strstr (message, "must be below 40"));
  g_clear_pointer (&message, g_free);
  g_assert_true (run_to (RUN (", priority: 39"), NULL, &message));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* the losses are warned of */
  g_test_add_func ("/hooks/check-invalid-loss/message", test_message);
  g_test_add_func ("/hooks/check-invalid-loss/interval", test_interval);
  g_test_add_func ("/hooks/check-invalid-loss/priority", test_priority);
  return g_test_run ();
}
