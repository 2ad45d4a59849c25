/* The list of strategies: what switches them, and the rules about what does not go together. */
#include "config.h"

#include "runner/base/error.h"
#include "runner/check.h"
#include "runner/config/config.h"
#include "runner/hook-class.h"
#include "runner/strategy-rules.h"
#include "tests/runner/small-detector.h"
#include "tests/tree.h"

#include <string.h>

static RnNode *
load (const char *text)
{
  g_autoptr (GError) error = NULL;
  RnNode *root = rn_config_load_text (text, "s.yaml", NULL, &error);
  g_assert_no_error (error);
  return root;
}

static gboolean
is_on (RnStrategyId id, const RnNode *root)
{
  return rn_strategy_is_on (rn_strategy_get (id), root);
}

/* Each is switched by its own function, by its lines, and by its YAML; and nothing else is. */
static void
test_switch (void)
{
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    {
      const RnStrategy *strategy = rn_strategy_get ((RnStrategyId) id);
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = load ("x_nothing: 1"), written = load (strategy->yaml);

      g_assert_cmpint (strategy->id, ==, id);
      g_assert_true (rn_strategy_find (strategy->name) == strategy);
      g_assert_cmpint (is_on (strategy->id, root), ==, strategy->is_default);
      g_assert_true (is_on (strategy->id, written));
      if (strategy->is_default)
        {
          g_assert_true (rn_strategy_remove (strategy, root, &error));
          g_assert_false (is_on (strategy->id, root));
        }
      g_assert_true (rn_strategy_apply (strategy, root, &error));
      g_assert_no_error (error);
      for (int other = 0; other < RN_STRATEGY_COUNT; other++)
        g_assert_cmpint (is_on ((RnStrategyId) other, root), ==,
                         other == id || rn_strategy_get ((RnStrategyId) other)->is_default);
      g_assert_true (rn_strategy_remove (strategy, root, &error));
      g_assert_no_error (error);
      g_assert_false (is_on (strategy->id, root));
      /* What is off is left as it is. */
      g_assert_true (rn_strategy_remove (strategy, root, &error));
      g_assert_no_error (error);
    }
  g_assert_null (rn_strategy_find ("with_sp"));
}

/* Two strategies are items of one list, which the file may have in several forms. */
static void
test_lists (void)
{
  static const char *const forms[] = {
    "memory: {recompute: frozen}",
    "memory: {recompute: [frozen]}",
    "memory: {recompute: none}",
    "memory: {recompute: null}",
  };

  for (gsize i = 0; i < G_N_ELEMENTS (forms); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (RnNode) root = load (forms[i]);
      gboolean was_frozen = i < 2;

      g_assert_cmpint (is_on (RN_STRATEGY_FROZEN, root), ==, was_frozen);
      g_assert_true (rn_strategy_apply (rn_strategy_get (RN_STRATEGY_BN_RELU), root, &error));
      g_assert_no_error (error);
      g_assert_true (is_on (RN_STRATEGY_BN_RELU, root));
      g_assert_cmpint (is_on (RN_STRATEGY_FROZEN, root), ==, was_frozen);
      g_assert_true (rn_strategy_remove (rn_strategy_get (RN_STRATEGY_BN_RELU), root, &error));
      g_assert_false (is_on (RN_STRATEGY_BN_RELU, root));
      g_assert_cmpint (is_on (RN_STRATEGY_FROZEN, root), ==, was_frozen);
    }

  g_autoptr (GError) error = NULL;
  g_autoptr (RnNode) root = load ("custom_hooks: [{type: EMAHook}, {type: GradientCumulativeOptimizerHook, "
                                  "cumulative_iters: 4}]");
  g_assert_true (is_on (RN_STRATEGY_ACCUMULATION, root));
  g_assert_true (rn_strategy_apply (rn_strategy_get (RN_STRATEGY_EMPTY_CACHE), root, &error));
  g_assert_cmpuint (rn_node_size (rn_node_get (root, "custom_hooks")), ==, 3);
  g_assert_true (rn_strategy_remove (rn_strategy_get (RN_STRATEGY_EMPTY_CACHE), root, &error));
  g_assert_cmpuint (rn_node_size (rn_node_get (root, "custom_hooks")), ==, 2);
  g_assert_true (rn_strategy_remove (rn_strategy_get (RN_STRATEGY_ACCUMULATION), root, &error));
  g_assert_no_error (error);
  g_assert_false (is_on (RN_STRATEGY_ACCUMULATION, root));
  g_assert_cmpint (rn_node_as_int (rn_node_path (root, "custom_hooks.1.cumulative_iters")), ==, 1);

  g_autoptr (RnNode) long_name = load ("fp16: {dtype: bfloat16}");
  g_assert_true (is_on (RN_STRATEGY_BF16, long_name));
  g_assert_false (is_on (RN_STRATEGY_FP16, long_name));
}

/* ---- Rules ---- */

typedef struct
{
  RnHook hook;
} PeekHook;

static gboolean
peek (RnHook *hook, RnRunner *runner, GError **error)
{
  return TRUE;
}

RN_HOOK_DEFINE (peek, PeekHook, .name = "PeekHook", .summary = "for tests", .before_step = peek);
RN_HOOK_DEFINE (need, PeekHook, .name = "NeedHook", .summary = "for tests", .needs = RN_NEEDS_GRADIENTS,
                .after_train_iter = peek);

#define IN_BACKWARD "memory.update=in_backward"
#define PLAIN_CLIP "optimizer_config={}"

typedef struct
{
  const char *name;
  const char *changes[6];
  const char *origin;   /* the message begins with it; NULL: accepted */
  const char *words[2]; /* that it has */
} Case;

static const Case cases[] = {
  { "plain", { PLAIN_CLIP, IN_BACKWARD }, NULL, { NULL } },
  { "clip-norm", { IN_BACKWARD }, "--set memory.update: ", { "grad_clip.max_norm: ", "clip_value" } },
  { "clip-value",
    { IN_BACKWARD, "optimizer_config={grad_clip: {type: value, clip_value: 1}}" },
    NULL,
    { NULL } },
  { "clip-value-window",
    { IN_BACKWARD, "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2, grad_clip: "
                   "{type: value, clip_value: 1}}" },
    "--set memory.update: ",
    { "grad_clip.clip_value, with accumulation: ", "cumulative_iters: 1" } },
  { "window",
    { IN_BACKWARD, "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2}" },
    NULL,
    { NULL } },
  { "window-of-one",
    { IN_BACKWARD, "optimizer_config={type: GradientCumulativeOptimizerHook}", "optimizer.momentum=0" },
    NULL,
    { NULL } },
  { "samples",
    { IN_BACKWARD,
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2, normalize: samples}" },
    "--set memory.update: ",
    { "normalize: samples or positives: ", "normalize: micro" } },
  { "positives",
    { IN_BACKWARD, PLAIN_CLIP,
      "custom_hooks=[{type: GradientCumulativeOptimizerHook, cumulative_iters: 2, normalize: positives}]",
      "~optimizer_config" },
    "--set memory.update: ",
    { "normalize: samples or positives: ", "normalize: micro" } },
  { "mmcv",
    { IN_BACKWARD,
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2, compat: mmcv-1.7}" },
    "--set memory.update: ",
    { "compat: mmcv-1.7: ", "compat: none" } },
  { "adam-window",
    { IN_BACKWARD, "optimizer={type: Adam, lr: 0.001}",
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2}" },
    "--set memory.update: ",
    { "with Adam, AdamW, SGD with nesterov", "SGD with a momentum" } },
  { "nesterov-window",
    { IN_BACKWARD, "optimizer.nesterov=true",
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2}" },
    "--set memory.update: ",
    { "with Adam, AdamW, SGD with nesterov", "without nesterov" } },
  { "no-momentum-window",
    { IN_BACKWARD, "optimizer.momentum=0",
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2}" },
    "--set memory.update: ",
    { "SGD without momentum", "SGD with a momentum" } },
  { "adam", { IN_BACKWARD, "optimizer={type: Adam, lr: 0.001}", PLAIN_CLIP }, NULL, { NULL } },
  { "bf16-momentum-window",
    { IN_BACKWARD, "memory.momentum=bf16",
      "optimizer_config={type: GradientCumulativeOptimizerHook, cumulative_iters: 2}" },
    "--set memory.update: ",
    { "with memory.momentum: bf16: ", "fp32 or host" } },
  { "fp16",
    { IN_BACKWARD, PLAIN_CLIP, "fp16={loss_scale: 512.}" },
    "--set memory.update: ",
    { "a loss scale: ", "dtype: bf16" } },
  { "fp16-hook",
    { IN_BACKWARD, "optimizer_config={type: Fp16OptimizerHook}" },
    "--set memory.update: ",
    { "a loss scale: ", "dtype: bf16" } },
  { "bf16", { IN_BACKWARD, PLAIN_CLIP, "fp16={dtype: bf16}" }, NULL, { NULL } },
  { "bf16-scaled",
    { IN_BACKWARD, PLAIN_CLIP, "fp16={dtype: bf16, loss_scale: dynamic}" },
    "--set memory.update: ",
    { "a loss scale: ", "dtype: bf16" } },
  { "needs-gradients",
    { IN_BACKWARD, PLAIN_CLIP, "custom_hooks=[{type: NeedHook}]" },
    "--set memory.update: ",
    { "(NeedHook): ", "leave out the hook" } },
  { "before-step",
    { IN_BACKWARD, PLAIN_CLIP, "custom_hooks=[{type: PeekHook}]" },
    "--set memory.update: ",
    { "(PeekHook): ", "leave out the hook" } },
  { "hooks-without-it", { PLAIN_CLIP, "custom_hooks=[{type: PeekHook}, {type: NeedHook}]" }, NULL, { NULL } },
  { "head",
    { "memory.head=depth_first", "model.bbox_head.with_cp=true" },
    "--set model.bbox_head.with_cp: ",
    { "depth_first does not go with head_with_cp: ", "{segments: 2}" } },
  { "head-sqrt", { "memory.head=depth_first", "model.bbox_head.with_cp=sqrt" }, NULL, { NULL } },
  { "bf16-of-nothing",
    { "memory.momentum=bf16", "optimizer.momentum=0" },
    "--set memory.momentum: ",
    { "SGD without momentum: ", "optimizer.momentum: 0.9" } },
  { "bf16-of-adam",
    { "memory.momentum=bf16", "optimizer={type: Adam, lr: 0.001}" },
    "--set memory.momentum: ",
    { "betas are above 0.99", "[0.9, 0.99]" } },
  { "bf16-of-short-adam",
    { "memory.momentum=bf16", "optimizer={type: AdamW, lr: 0.001, betas: [0.9, 0.99]}" },
    NULL,
    { NULL } },
  { "bf16-of-slow-momentum",
    { "memory.momentum=bf16", "optimizer.momentum=0.995" },
    "--set memory.momentum: ",
    { "momentum or betas are above 0.99", "momentum: host" } },
  { "host-of-adam", { "memory.momentum=host", "optimizer={type: Adam, lr: 0.001}" }, NULL, { NULL } },
  { "host-of-nothing",
    { "memory.momentum=host", "optimizer.momentum=0" },
    "--set memory.momentum: ",
    { "SGD without momentum: ", "optimizer.momentum: 0.9" } },
  { "host-of-later-momentum",
    { "memory.momentum=host", "optimizer.momentum=0", "momentum_config={policy: step, step: [1]}" },
    NULL,
    { NULL } },
  { "limit-of-nothing",
    { "memory.pinned_limit=1GiB" },
    "--set memory.pinned_limit: ",
    { "nothing is moved", "memory.offload" } },
  { "limit", { "memory.pinned_limit=1GiB", "memory.offload=idle>16" }, NULL, { NULL } },
};

static void
test_rule (gconstpointer user_data)
{
  const Case *c = user_data;
  const char *changes[G_N_ELEMENTS (c->changes) + 8] = { SMALL_RESNET };
  g_autoptr (GError) error = NULL;
  int n = 0;

  while (changes[n] != NULL)
    n++;
  for (gsize i = 0; i < G_N_ELEMENTS (c->changes) && c->changes[i] != NULL; i++)
    changes[n++] = c->changes[i];
  g_autoptr (RnJob) job = small_detector_job ("data", "unused", changes, &error);
  gboolean is_ok = job != NULL && rn_job_check (job, &error);
  if (c->origin == NULL)
    {
      g_assert_no_error (error);
      g_assert_true (is_ok);
      return;
    }
  g_assert_false (is_ok);
  g_assert_error (error, RN_CONFIG_ERROR, RN_CONFIG_ERROR_VALUE);
  if (!g_str_has_prefix (error->message, c->origin))
    g_error ("%s: %s", c->name, error->message);
  for (gsize i = 0; i < G_N_ELEMENTS (c->words); i++)
    if (strstr (error->message, c->words[i]) == NULL)
      g_error ("%s: no \"%s\" in: %s", c->name, c->words[i], error->message);
}

/* A pair is what two strategies are, in any order; the reason is a rule's. */
static void
test_pairs (void)
{
  for (int a = 0; a < RN_STRATEGY_COUNT; a++)
    for (int b = 0; b < RN_STRATEGY_COUNT; b++)
      g_assert_cmpstr (rn_strategies_pair_reason ((RnStrategyId) a, (RnStrategyId) b), ==,
                       rn_strategies_pair_reason ((RnStrategyId) b, (RnStrategyId) a));
  g_assert_nonnull (rn_strategies_pair_reason (RN_STRATEGY_FP16, RN_STRATEGY_BF16));
  g_assert_null (rn_strategies_pair_reason (RN_STRATEGY_BN_RELU, RN_STRATEGY_FROZEN));
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    {
      const RnStrategyRule *rule = rn_strategy_rule_get (i);
      g_assert_true (rule->n_others > 0 || rule->setting != NULL);
      for (int j = 0; j < rule->n_others; j++)
        g_assert_cmpstr (rn_strategies_pair_reason (rule->others[j], rule->strategy), ==, rule->reason);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  rn_hooks_register ();
  g_assert_true (rn_hook_register (&rn_hook_desc_peek, NULL));
  g_assert_true (rn_hook_register (&rn_hook_desc_need, NULL));
  small_detector_register ();
  g_test_add_func ("/strategies/switch", test_switch);
  g_test_add_func ("/strategies/lists", test_lists);
  g_test_add_func ("/strategies/pair-reasons", test_pairs);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree char *name = g_strconcat ("/strategies/rules/", cases[i].name, NULL);
      g_test_add_data_func (name, &cases[i], test_rule);
    }
  return g_test_run ();
}
