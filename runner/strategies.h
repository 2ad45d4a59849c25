/*
 * strategies.h: the memory strategies that a configuration can switch on, as one list: what `runner
 * strategies` shows, what `plan` and `bench` try one by one, and what the tests take in pairs.
 *
 * A strategy is one setting of one key. Which of them go together is decided here and nowhere else:
 * rn_strategies_check.
 */
#ifndef RUNNER_STRATEGIES_H
#define RUNNER_STRATEGIES_H

#include <glib.h>
#include <runner/node.h>
#include "runner/hook-wants.h"
#include "runner/run-config.h"

G_BEGIN_DECLS

typedef enum
{
  RN_STRATEGY_FOLD_FROZEN_BN,
  RN_STRATEGY_INPLACE,
  RN_STRATEGY_WITH_CP,
  RN_STRATEGY_WITH_CP_SEGMENTS,
  RN_STRATEGY_WITH_CP_SQRT,
  RN_STRATEGY_WITH_CP_LARGER_THAN,
  RN_STRATEGY_HEAD_WITH_CP,
  RN_STRATEGY_BN_RELU,
  RN_STRATEGY_FROZEN,
  RN_STRATEGY_DEPTH_FIRST,
  RN_STRATEGY_IN_BACKWARD,
  RN_STRATEGY_FP16,
  RN_STRATEGY_FP16_O2,
  RN_STRATEGY_BF16,
  RN_STRATEGY_ACCUMULATION,
  RN_STRATEGY_MOMENTUM_BF16,
  RN_STRATEGY_MOMENTUM_HOST,
  RN_STRATEGY_OFFLOAD_IDLE,
  RN_STRATEGY_OFFLOAD_BLOCK_OUTPUTS,
  RN_STRATEGY_WORKSPACE_LIMIT,
  RN_STRATEGY_BUDGET,
  RN_STRATEGY_EMPTY_CACHE,
  RN_STRATEGY_PREFETCH,
  RN_STRATEGY_COUNT
} RnStrategyId;

/* What a strategy may change in the results of a run, on one device with the same kernels. */
typedef enum
{
  RN_RESULT_BITS,      /* nothing */
  RN_RESULT_SUMMATION, /* the order of sums in single precision */
  RN_RESULT_FOLD,      /* gradients, by at most 1e-4 of each tensor's largest entry */
  RN_RESULT_STATE,     /* the optimizer's state is rounded to bf16 after each step */
  RN_RESULT_HALF,      /* half precision: a run of its own, as good within the noise of seeds */
  RN_RESULT_BATCH,     /* a step takes several batches: a run of its own, as with a larger batch */
} RnStrategyResult;

typedef struct
{
  RnStrategyId id;
  const char *name;     /* "with_cp" */
  const char *key;      /* that it sets; strategies of one key exclude each other, unless it is a list */
  const char *lines[3]; /* to set it, NULL-ended, each as after --set: "model.backbone.with_cp=true" */
  const char *off;      /* the line that sets it back, as after --set */
  const char *yaml;     /* the same for a file, in flow form: "model: {backbone: {with_cp: true}}" */
  const char *summary;  /* what it does: one sentence */
  const char *known_as; /* its name in MMDetection, MMCV or PyTorch; NULL: they have none */
  RnStrategyResult result;
  gboolean is_default; /* on where the file says nothing */
  gboolean is_planned; /* changes the plan of a training step; else it works beside it */
} RnStrategy;

const RnStrategy *rn_strategy_get (RnStrategyId id);
/* NULL: there is none of that name. */
const RnStrategy *rn_strategy_find (const char *name);
/* "bit-equal", "within fp32 summation order", ... */
const char *rn_strategy_result_text (RnStrategyResult result);

/* Does the configuration ask for it? Of a configuration that rn_run_config_parse takes. */
gboolean rn_strategy_is_on (const RnStrategy *strategy, const RnNode *root);
/* Sets its lines in the tree, as --set does; what other strategies put into the same list stays. */
gboolean rn_strategy_apply (const RnStrategy *strategy, RnNode *root, GError **error);
gboolean rn_strategy_remove (const RnStrategy *strategy, RnNode *root, GError **error);

/*
 * rn_strategies_check:
 * @config: of @root, after rn_run_config_parse
 * @wants: (nullable): what hooks need, after rn_hook_list_prepare; NULL leaves out the rules about it
 *
 * Refuses settings that cannot work together, or of which one would have no effect. Errors: RN_CONFIG_ERROR
 * with file:line, the reason, and what works instead.
 */
gboolean rn_strategies_check (const RnNode *root, const RnRunConfig *config, const RnWants *wants,
                              GError **error);
/*
 * Why these two cannot be on together with the settings that rn_strategy_apply makes, in a configuration that
 * has nothing else: NULL, or the reason. Lent.
 */
const char *rn_strategies_pair_reason (RnStrategyId a, RnStrategyId b);

G_END_DECLS

#endif
