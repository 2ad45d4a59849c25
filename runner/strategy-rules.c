/* strategy-rules.c: which settings cannot work together, or leave one of them without effect. All such rules
 * that the configuration alone can tell are here; those that need the graph are the passes'. */
#include "config.h"

#include "runner/strategies.h"

#include "runner/base/error.h"
#include "runner/optimizer.h"
#include "runner/runner.h"
#include "runner/strategy-rules.h"

#include <string.h>

/* ---- What the rules look at ---- */

typedef struct
{
  const RnNode *root;
  gboolean on[RN_STRATEGY_COUNT];
  gboolean has_optimizer;
  RnUpdateRule rule;    /* with has_optimizer */
  double longest_mean;  /* with has_optimizer: the largest factor by which a state is multiplied in a step */
  const RnNode *hook;   /* the optimizer hook's; NULL: all defaults */
  gboolean can_skip;    /* a loss scale, so that a step may overflow and be left out */
  const RnWants *wants; /* NULL: not known yet */
} Facts;

static const char *
text_of (const RnNode *map, const char *key)
{
  const RnNode *node = map != NULL ? rn_node_get (map, key) : NULL;
  return node != NULL && rn_node_kind (node) == RN_NODE_STRING ? rn_node_as_string (node) : "";
}

static gboolean
is_given (const RnNode *map, const char *key)
{
  return map != NULL && !rn_node_is_null (rn_node_get (map, key));
}

static gboolean
is_one (const RnNode *scale)
{
  return scale != NULL && (rn_node_kind (scale) == RN_NODE_INT || rn_node_kind (scale) == RN_NODE_FLOAT)
         && rn_node_as_float (scale) == 1;
}

/* The hook is the one that `fp16:` has made of it. bf16 has the range of single precision, so with a scale of
 * 1 nothing overflows that would not there. */
static gboolean
can_skip (const RnNode *hook, RnDType dtype)
{
  const RnNode *scale = hook != NULL ? rn_node_get (hook, "loss_scale") : NULL;
  gboolean is_scaled = strstr (text_of (hook, "type"), "Fp16") != NULL;

  return is_scaled && !(dtype == RN_BF16 && is_one (scale));
}

static void
read_facts (Facts *facts, const RnNode *root, const RnRunConfig *config, const RnWants *wants)
{
  *facts = (Facts){ .root = root, .hook = rn_optimizer_hook_config (config), .wants = wants };
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    facts->on[id] = rn_strategy_is_on (rn_strategy_get ((RnStrategyId) id), root);
  facts->can_skip = can_skip (facts->hook, config->fp16.dtype);
  /* What is wrong in it is said where it is made for the run. */
  g_autoptr (RnOptimizer) optimizer =
      config->optimizer != NULL ? rn_optimizer_new (config->optimizer, NULL) : NULL;
  if (optimizer == NULL)
    return;
  facts->has_optimizer = TRUE;
  facts->rule = rn_optimizer_scheduled_rule (optimizer, config->momentum_config);
  facts->longest_mean = rn_optimizer_momentum (optimizer);
  if (facts->rule.kind == RN_UPDATE_ADAM)
    facts->longest_mean = MAX (facts->longest_mean, facts->rule.beta2);
}

/* ---- The rules ---- */

static gboolean
clips_norm (const Facts *facts)
{
  const RnNode *clip = facts->hook != NULL ? rn_node_get (facts->hook, "grad_clip") : NULL;
  return is_given (clip, "max_norm");
}

static gboolean
clips_window_by_value (const Facts *facts)
{
  const RnNode *clip = facts->hook != NULL ? rn_node_get (facts->hook, "grad_clip") : NULL;
  return is_given (clip, "clip_value") && facts->on[RN_STRATEGY_ACCUMULATION];
}

static gboolean
may_skip (const Facts *facts)
{
  return facts->can_skip;
}

static gboolean
divides_late (const Facts *facts)
{
  const char *normalize = text_of (facts->hook, "normalize");
  return g_str_equal (normalize, "samples") || g_str_equal (normalize, "positives");
}

static gboolean
is_mmcv (const Facts *facts)
{
  return g_str_equal (text_of (facts->hook, "compat"), "mmcv-1.7");
}

static gboolean
cannot_sum_in_momentum (const Facts *facts)
{
  return facts->on[RN_STRATEGY_ACCUMULATION] && facts->has_optimizer
         && (facts->rule.kind != RN_UPDATE_SGD || !facts->rule.momentum || facts->rule.nesterov);
}

static gboolean
sums_in_half (const Facts *facts)
{
  return facts->on[RN_STRATEGY_ACCUMULATION] && facts->on[RN_STRATEGY_MOMENTUM_BF16];
}

static gboolean
has_gradients_hook (const Facts *facts)
{
  return facts->wants != NULL && facts->wants->gradients_hook != NULL;
}

static gboolean
has_whole_head_cp (const Facts *facts)
{
  return facts->on[RN_STRATEGY_HEAD_WITH_CP];
}

static gboolean
has_no_state (const Facts *facts)
{
  const char *names[RN_PARAM_MAX_STATES];
  return facts->has_optimizer && rn_update_rule_states (&facts->rule, names) == 0;
}

/* A state of bf16 is rounded by up to 2^-8 of its size in each step, so one that is multiplied by f is off by
 * up to 2^-8 / (1 - f) of it in the end: 39 % with 0.99. With 0.999 it never gets smaller, since 0.001 is
 * less than half a unit of any of its values. */
static gboolean
decays_too_slowly (const Facts *facts)
{
  return facts->has_optimizer && facts->longest_mean > 0.99;
}

static gboolean
limits_nothing (const Facts *facts)
{
  return !facts->on[RN_STRATEGY_OFFLOAD_IDLE] && !facts->on[RN_STRATEGY_OFFLOAD_BLOCK_OUTPUTS]
         && !facts->on[RN_STRATEGY_BUDGET];
}

/* @strategy is on and @applies: an error of the key @blame. */
typedef struct
{
  RnStrategyRule doc;
  const char *blame;
  gboolean (*applies) (const Facts *facts);
} Rule;

/* clang-format off */
static const Rule rules[] = {
  { { RN_STRATEGY_IN_BACKWARD, { RN_STRATEGY_FP16, RN_STRATEGY_FP16_O2 }, 2,
      "a loss scale: fp16, Fp16OptimizerHook",
      "a step whose gradients overflow is skipped, but the parameters that were stepped in backward cannot "
      "be taken back",
      "fp16: {dtype: bf16}, which needs no loss scale; or memory.update: after_backward" },
    "memory.update", may_skip },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "optimizer_config.grad_clip.max_norm",
      "the norm of all gradients is known only when the last of them is there, and by then most parameters "
      "are stepped",
      "optimizer_config.grad_clip: {type: value, clip_value: 1}, grad_clip: null, or memory.update: "
      "after_backward" },
    "memory.update", clips_norm },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "optimizer_config.grad_clip.clip_value, with accumulation",
      "the sum of a window's gradients is cut, but in backward it is only there as a part of the momentum",
      "grad_clip: null, cumulative_iters: 1, or memory.update: after_backward" },
    "memory.update", clips_window_by_value },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "optimizer_config.normalize: samples or positives",
      "what the sum of a window is divided by is known at its end only, and in backward each batch goes into "
      "the momentum at once",
      "normalize: micro, or memory.update: after_backward" },
    "memory.update", divides_late },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "optimizer_config.compat: mmcv-1.7",
      "MMCV 1.7 has no update in backward, and the sum of a window cannot be lost as there",
      "compat: none, or memory.update: after_backward" },
    "memory.update", is_mmcv },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "accumulation, with Adam, AdamW, SGD with nesterov, or SGD without momentum",
      "without gradients that are kept, the momentum of SGD is the only place where a window can be summed "
      "exactly",
      "SGD with a momentum and without nesterov, cumulative_iters: 1, or memory.update: after_backward" },
    "memory.update", cannot_sum_in_momentum },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "accumulation, with memory.momentum: bf16",
      "a window would be summed in bf16, and its later batches would be rounded away",
      "memory.momentum: fp32 or host, cumulative_iters: 1, or memory.update: after_backward" },
    "memory.update", sums_in_half },
  { { RN_STRATEGY_IN_BACKWARD, { 0 }, 0,
      "a hook that needs gradients, or is called before the step",
      "the gradients are not kept, and when the last of them is there most parameters are stepped",
      "leave out the hook, or memory.update: after_backward" },
    "memory.update", has_gradients_hook },
  { { RN_STRATEGY_DEPTH_FIRST, { RN_STRATEGY_HEAD_WITH_CP }, 1,
      NULL,
      "a depth-first head has one branch at one level at a time, so what with_cp drops of it would be "
      "computed again at once: it saves nothing and costs time",
      "one of both; memory.head: depth_first costs nothing. with_cp: sqrt and {segments: 2} go with it" },
    "model.bbox_head.with_cp", has_whole_head_cp },
  { { RN_STRATEGY_MOMENTUM_BF16, { 0 }, 0,
      "an optimizer without state: SGD without momentum",
      "there is nothing to store",
      "memory.momentum: fp32, or optimizer.momentum: 0.9" },
    "memory.momentum", has_no_state },
  { { RN_STRATEGY_MOMENTUM_BF16, { 0 }, 0,
      "an optimizer whose momentum or betas are above 0.99, such as Adam with its own betas",
      "rounding to the 8 bits of bf16 is by up to 0.4 % in each step, which is too much for a state that "
      "loses less than 1 % in one, and with 0.999 it never gets smaller at all",
      "memory.momentum: host, optimizer.betas: [0.9, 0.99], or SGD with a momentum up to 0.99" },
    "memory.momentum", decays_too_slowly },
  { { RN_STRATEGY_MOMENTUM_HOST, { 0 }, 0,
      "an optimizer without state: SGD without momentum",
      "there is nothing to store",
      "memory.momentum: fp32, or optimizer.momentum: 0.9" },
    "memory.momentum", has_no_state },
};
/* clang-format on */

int
rn_strategy_rules_count (void)
{
  return (int) G_N_ELEMENTS (rules);
}

const RnStrategyRule *
rn_strategy_rule_get (int i)
{
  return &rules[i].doc;
}

static gboolean
check_pinned_limit (const Facts *facts, GError **error)
{
  const RnNode *node = rn_node_path (facts->root, "memory.pinned_limit");

  if (rn_node_is_null (node) || !limits_nothing (facts))
    return TRUE;
  return rn_node_error (node, error,
                        "nothing is moved to host memory that it could limit; what works: memory.offload: "
                        "idle>16, or leave it out");
}

gboolean
rn_strategies_check (const RnNode *root, const RnRunConfig *config, const RnWants *wants, GError **error)
{
  Facts facts;

  read_facts (&facts, root, config, wants);
  for (gsize i = 0; i < G_N_ELEMENTS (rules); i++)
    {
      const Rule *rule = &rules[i];
      if (!facts.on[rule->doc.strategy] || !rule->applies (&facts))
        continue;
      const RnStrategy *strategy = rn_strategy_get (rule->doc.strategy);
      const char *hook = rule->applies == has_gradients_hook ? wants->gradients_hook : NULL;
      return rn_node_error (rn_node_path (root, rule->blame), error,
                            "%s does not go with %s%s%s%s: %s; what works: %s", strategy->name,
                            rule->doc.setting != NULL ? rule->doc.setting
                                                      : rn_strategy_get (rule->doc.others[0])->name,
                            hook != NULL ? " (" : "", hook != NULL ? hook : "", hook != NULL ? ")" : "",
                            rule->doc.reason, rule->doc.instead);
    }
  return check_pinned_limit (&facts, error);
}

/* ---- Pairs ---- */

/* The values of a list stand beside each other. */
static gboolean
is_list_key (const char *key)
{
  return g_str_equal (key, "memory.recompute") || g_str_equal (key, "custom_hooks");
}

int
rn_strategy_rule_of_pair (RnStrategyId a, RnStrategyId b)
{
  for (int i = 0; i < rn_strategy_rules_count (); i++)
    {
      const RnStrategyRule *rule = rn_strategy_rule_get (i);
      for (int j = 0; j < rule->n_others; j++)
        if ((rule->strategy == a && rule->others[j] == b) || (rule->strategy == b && rule->others[j] == a))
          return i;
    }
  return -1;
}

const char *
rn_strategies_pair_reason (RnStrategyId a, RnStrategyId b)
{
  const RnStrategy *x = rn_strategy_get (a), *y = rn_strategy_get (b);
  int rule = rn_strategy_rule_of_pair (a, b);

  if (a != b && g_str_equal (x->key, y->key) && !is_list_key (x->key))
    return "one key, which has one value";
  return rule >= 0 ? rn_strategy_rule_get (rule)->reason : NULL;
}
