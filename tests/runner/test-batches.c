/* Where a run stands when it is taken up with other batches than it was stopped with. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/batches.h"
#include "tests/runner/fake-task.h"

#include <string.h>

typedef struct
{
  gint64 was[3], now[3];               /* images in a batch, processes, iterations of an epoch */
  gint64 epoch, inner_iter;            /* before */
  gint64 expected_inner_iter, n_again; /* after */
} Change;

/* Of 20 images; by hand: images done are inner_iter * batch * processes, whole new batches of them count. */
static const Change changes[] = {
  { { 2, 1, 10 }, { 4, 1, 5 }, 1, 6, 3, 0 },
  { { 2, 1, 10 }, { 4, 1, 5 }, 1, 7, 3, 2 },
  { { 2, 1, 10 }, { 4, 1, 5 }, 0, 1, 0, 2 },
  { { 4, 1, 5 }, { 2, 1, 10 }, 3, 4, 8, 0 },
  { { 2, 1, 10 }, { 20, 1, 1 }, 2, 9, 0, 18 },
  { { 2, 2, 5 }, { 2, 1, 10 }, 1, 3, 6, 0 },    /* two processes before */
  { { 2, 3, 4 }, { 4, 1, 5 }, 0, 3, 4, 2 },     /* 18 done */
  { { 3, 1, 7 }, { 4, 1, 5 }, 2, 7, 5, 0 },     /* all of it, with a short last batch */
  { { 2, 1, 10 }, { 2, 1, 14 }, 1, 10, 14, 0 }, /* more images: the epoch is over all the same */
  { { 2, 1, 10 }, { 2, 1, 6 }, 1, 8, 6, 0 },    /* fewer images than are done */
  { { 2, 1, 10 }, { 2, 1, 12 }, 1, 8, 8, 0 },
  { { 2, 1, 10 }, { 4, 1, 5 }, 0, 0, 0, 0 },
};

static RnBatches
make_batches (const gint64 *numbers)
{
  return (RnBatches){ .batch_size = numbers[0], .world_size = numbers[1], .epoch_length = numbers[2] };
}

static gboolean
convert (const gint64 *was_numbers, const gint64 *now_numbers, RnCounters *counters, gint64 *n_again)
{
  RnBatches was = make_batches (was_numbers), now = make_batches (now_numbers);
  g_assert_false (rn_batches_match (&was, &now));
  return rn_batches_convert (&was, &now, counters, n_again);
}

static void
test_convert (void)
{
  for (gsize i = 0; i < G_N_ELEMENTS (changes); i++)
    {
      const Change *c = &changes[i];
      RnCounters counters = { .epoch = c->epoch,
                              .inner_iter = c->inner_iter,
                              .iter = c->epoch * c->was[2] + c->inner_iter,
                              .opt_step = 5 };
      gint64 n_again;
      g_assert_true (convert (c->was, c->now, &counters, &n_again));
      g_assert_cmpint (counters.epoch, ==, c->epoch);
      g_assert_cmpint (counters.inner_iter, ==, c->expected_inner_iter);
      g_assert_cmpint (counters.iter, ==, c->epoch * c->now[2] + c->expected_inner_iter);
      g_assert_cmpint (counters.opt_step, ==, 5);
      g_assert_cmpint (n_again, ==, c->n_again);
    }

  const gint64 was[] = { 1 << 24, 1 << 24, G_MAXINT64 }, now[] = { 1, 1, 1 };
  RnCounters far = { .inner_iter = G_MAXINT64 / 2 }, many = { .epoch = 3 };
  gint64 n_again;
  g_assert_false (convert (was, now, &far, &n_again));
  const gint64 one[] = { 1, 1, 2 }, long_epoch[] = { 2, 1, G_MAXINT64 / 2 };
  g_assert_false (convert (one, long_epoch, &many, &n_again));
}

/* What a run of several processes has left; this one is alone. */
static void
test_world_size (void)
{
  const gint64 of_two[] = { 2, 2, 5 }, of_one[] = { 2, 1, 10 }, as_many[] = { 4, 1, 5 };
  RnBatches two = make_batches (of_two), one = make_batches (of_one), same = make_batches (as_many), loaded;
  g_autoptr (GError) error = NULL;
  g_autoptr (RnRecord) record = rn_record_new ();

  g_assert_true (rn_batches_match (&two, &same)); /* the same images in every step */
  g_assert_false (rn_batches_refuse (&two, &one, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "2 processes with 2 images in a batch each, this is 1 with 2"));
  g_assert_nonnull (strstr (error->message, "--set resume.allow_batch_change=true"));
  g_clear_error (&error);

  rn_batches_save (&two, record);
  g_assert_true (rn_batches_load (&loaded, record, &error));
  g_assert_cmpint (loaded.world_size, ==, 2);
  g_assert_true (rn_batches_match (&loaded, &two));
}

/* A run that is stopped in the middle of an epoch goes on with batches of twice the size. */
static void
test_batch_change (void)
{
  const char *yaml = BY_EPOCH (3, "checkpoint_config: {interval: 7, by_epoch: false, save_last: false}\n");
  const char *allowed = BY_EPOCH (3, "checkpoint_config: {interval: 1, max_keep_ckpts: 1}\n"
                                     "resume: {allow_batch_change: true}\n");
  FakeRun first, second, third;
  g_autoptr (GError) error = NULL;

  fake_run_open (&first, yaml, 10, NULL);
  fake_run_go (&first);
  g_autofree char *path = g_build_filename (first.dir, "iter_14.safetensors", NULL);
  fake_run_open (&second, yaml, 5, first.dir);
  second.fake.task.batch_size = 4;
  g_assert_true (rn_runner_init (second.runner, &error));
  g_assert_false (rn_runner_resume (second.runner, path, &error));
  g_assert_error (error, RN_CHECKPOINT_ERROR, RN_CHECKPOINT_ERROR_MISMATCH);
  g_assert_nonnull (strstr (error->message, "--set resume.allow_batch_change=true"));
  g_clear_error (&error);

  fake_run_open (&third, allowed, 5, first.dir);
  third.fake.task.batch_size = 4;
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "*images in an iteration: 2 in the checkpoint, 4 now");
  g_test_expect_message (
      "rn-runner", G_LOG_LEVEL_MESSAGE,
      "*of an epoch: 10 in the checkpoint, 5 now; of the run: 30 in the checkpoint, 15 now");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "*learning rate: 0.001 in the checkpoint, 0.001 now;*");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE,
                         "*iteration 14 (4 of epoch 2) becomes iteration 7 (2): 0 images*");
  for (int i = 0; i < 4; i++)
    g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "resume: *the configuration wins");
  g_test_expect_message ("rn-runner", G_LOG_LEVEL_MESSAGE, "resumed from*8 iterations to go");
  fake_run_resume (&third, path);
  g_test_assert_expected_messages ();
  g_assert_cmpint (rn_runner_epoch (third.runner), ==, 1);
  g_assert_cmpint (rn_runner_inner_iter (third.runner), ==, 2);
  g_assert_cmpint (rn_runner_opt_step (third.runner), ==, 14);
  g_assert_true (rn_runner_run (third.runner, &error));
  g_assert_cmpint (rn_runner_epoch (third.runner), ==, 3);
  g_assert_cmpint (rn_runner_iter (third.runner), ==, 15);
  g_assert_cmpint (rn_runner_opt_step (third.runner), ==, 22);
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
  fake_run_close (&third);
}

#define IN_WINDOW                                                                    \
  "checkpoint_config: {interval: 6, save_last: false}\n"                             \
  "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 4}\n" \
  "resume: {allow_batch_change: true}\n"

/* Gradients of a window that small batches began are no part of one of large batches. */
static void
test_batch_change_in_window (void)
{
  FakeRun first, second;
  g_autoptr (GError) error = NULL;
  static const float zero[FAKE_N];

  fake_run_open (&first, BY_ITER (8, IN_WINDOW), 10, NULL);
  fake_run_go (&first);
  g_autofree char *path = g_build_filename (first.dir, "iter_6.safetensors", NULL);
  g_autoptr (RnSafetensors) file = rn_safetensors_open (path, &error);
  g_assert_no_error (error);
  g_assert_nonnull (rn_safetensors_find (file, "pending/w")); /* of two iterations out of four */

  fake_run_open (&second, BY_ITER (8, IN_WINDOW), 5, first.dir);
  second.fake.task.batch_size = 4;
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL); /* it warns */
  fake_run_resume (&second, NULL);
  g_assert_false (rn_runner_is_window_open (second.runner));
  g_assert_cmpmem (second.fake.grads, sizeof second.fake.grads, zero, sizeof zero);
  g_assert_cmpint (rn_runner_iter (second.runner), ==, 3);
  g_assert_cmpint (rn_runner_opt_step (second.runner), ==, 1);
  g_assert_true (rn_runner_run (second.runner, &error));
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  /* Iteration 3 alone, then 4 to 7. */
  g_assert_cmpint (rn_runner_opt_step (second.runner), ==, 3);
  fake_run_remove (first.dir);
  fake_run_close (&first);
  fake_run_close (&second);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/batches/convert", test_convert);
  g_test_add_func ("/batches/world-size", test_world_size);
  g_test_add_func ("/batches/change", test_batch_change);
  g_test_add_func ("/batches/change-in-window", test_batch_change_in_window);
  return g_test_run ();
}
