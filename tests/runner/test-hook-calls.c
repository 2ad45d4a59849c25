/* What hooks may do, and what is called of them. */
#include "config.h"

#include "runner/config/config.h"
#include "runner/hook-list.h"
#include "runner/hook-wants.h"
#include "tests/runner/fake-task.h"

#include <string.h>

/* ---- Pictures ---- */

static int n_drawn;

static gboolean
draw (RnTask *task, gint64 index, double min_score, const char *path, GError **error)
{
  n_drawn++;
  return TRUE;
}

typedef struct
{
  RnHook hook;
} DrawHook;

static gboolean
draw_now (RnHook *hook, RnRunner *runner, GError **error)
{
  return rn_runner_draw_detections (runner, 0, 0.5, "x.png", error);
}

RN_HOOK_DESC (draw, DrawHook, .name = "DrawHook", .summary = "for tests", .after_iter = draw_now);

/* Behind the optimizer hook, be there a backward pass or not; and in validation, be it the first thing. */
static void
test_draw (void)
{
  static const char yaml[] = BY_ITER (
      5, "workflow: [[val, 1], [train, 5]]\n"
         "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 2, tail: drop}\n"
         "custom_hooks: [{type: DrawHook, priority: %d}]\n");

  for (int priority = 39; priority <= 41; priority += 2)
    {
      g_autofree char *text = g_strdup_printf (yaml, priority);
      g_autoptr (GError) error = NULL;
      FakeRun run;
      fake_run_open (&run, text, 5, NULL);
      run.fake.vtbl.draw = draw;
      run.fake.task.val_length = 2;
      n_drawn = 0;
      g_assert_true (rn_runner_init (run.runner, &error));
      gboolean is_ok = rn_runner_run (run.runner, &error);
      g_assert_cmpint (n_drawn, ==, priority > 40 ? 6 : 1);
      g_assert_true (is_ok == (priority > 40));
      if (!is_ok)
        g_assert_nonnull (strstr (error->message, "behind the optimizer hook"));
      fake_run_remove (run.dir);
      fake_run_close (&run);
    }
}

/* ---- Memory ---- */

typedef struct
{
  RnHook hook;
  gboolean is_wrong; /* a key: prepare fails */
  char *memory;      /* of prepare */
} GreedyHook;

static const RnKeySpec greedy_keys[] = {
  RN_KEY (GreedyHook, is_wrong, RN_KEY_BOOL, "false", "prepare fails"),
  RN_KEY_END,
};

static int n_cleared;

static gboolean
take_memory (RnHook *hook, RnWants *wants, GError **error)
{
  GreedyHook *self = (GreedyHook *) hook;

  self->memory = g_strdup ("of prepare");
  return !self->is_wrong || rn_hook_error (error, "no");
}

static void
give_back (RnHook *hook)
{
  g_free (((GreedyHook *) hook)->memory);
  n_cleared++;
}

RN_HOOK_DESC (greedy, GreedyHook, .name = "GreedyHook", .summary = "for tests", .keys = greedy_keys,
              .prepare = take_memory, .clear = give_back);

/* A run may end between prepare and init, where the data is read. */
static void
test_clear (void)
{
  static const char *const texts[] = { "{type: GreedyHook}", "{type: GreedyHook, is_wrong: true}" };

  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) config = rn_config_load_text (texts[i], "test.yaml", NULL, &error);
      g_autoptr (RnWants) wants = rn_wants_new ();
      RnHookList *list = rn_hook_list_new ();

      n_cleared = 0;
      g_assert_true (rn_hook_list_add (list, config, NULL, NULL, &error));
      g_assert_true (rn_hook_list_prepare (list, wants, &error) == (i == 0));
      rn_hook_list_free (list);
      g_assert_cmpint (n_cleared, ==, 1);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_draw, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_greedy, NULL));

  g_test_add_func ("/runner/hook-calls/draw", test_draw);
  g_test_add_func ("/runner/hook-calls/clear", test_clear);
  return g_test_run ();
}
