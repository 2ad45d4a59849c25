/* strategies.c: the list of the memory strategies, and how a configuration switches them. */
#include "config.h"

#include "runner/strategies.h"

#include "runner/config/config.h"

#include <string.h>

/* clang-format off */
static const RnStrategy strategies[RN_STRATEGY_COUNT] = {
  [RN_STRATEGY_FOLD_FROZEN_BN] = {
    .id = RN_STRATEGY_FOLD_FROZEN_BN, .name = "fold_frozen_bn", .key = "memory.fold_frozen_bn",
    .lines = { "memory.fold_frozen_bn=auto" }, .off = "memory.fold_frozen_bn=false",
    .yaml = "memory: {fold_frozen_bn: auto}",
    .summary = "A batch norm on frozen statistics becomes part of its convolution, so its input is not kept.",
    .known_as = "MMEngine's efficient_conv_bn_eval",
    .result = RN_RESULT_FOLD, .is_default = TRUE, .is_planned = TRUE },
  [RN_STRATEGY_INPLACE] = {
    .id = RN_STRATEGY_INPLACE, .name = "inplace", .key = "memory.inplace",
    .lines = { "memory.inplace=true" }, .off = "memory.inplace=false",
    .yaml = "memory: {inplace: true}",
    .summary = "An op writes over an input that nobody reads later.",
    .known_as = "nn.ReLU(inplace=True), for every op that can",
    .result = RN_RESULT_BITS, .is_default = TRUE, .is_planned = TRUE },
  [RN_STRATEGY_WITH_CP] = {
    .id = RN_STRATEGY_WITH_CP, .name = "with_cp", .key = "model.backbone.with_cp",
    .lines = { "model.backbone.with_cp=true" }, .off = "model.backbone.with_cp=false",
    .yaml = "model: {backbone: {with_cp: true}}",
    .summary = "Each residual block keeps its input alone; backward computes the rest again.",
    .known_as = "with_cp, torch.utils.checkpoint",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_WITH_CP_SEGMENTS] = {
    .id = RN_STRATEGY_WITH_CP_SEGMENTS, .name = "with_cp_segments", .key = "model.backbone.with_cp",
    .lines = { "model.backbone.with_cp={segments: 2}" }, .off = "model.backbone.with_cp=false",
    .yaml = "model: {backbone: {with_cp: {segments: 2}}}",
    .summary = "The chain of blocks is cut into segments that keep their input alone; the last one is kept.",
    .known_as = "torch.utils.checkpoint.checkpoint_sequential",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_WITH_CP_SQRT] = {
    .id = RN_STRATEGY_WITH_CP_SQRT, .name = "with_cp_sqrt", .key = "model.backbone.with_cp",
    .lines = { "model.backbone.with_cp=sqrt" }, .off = "model.backbone.with_cp=false",
    .yaml = "model: {backbone: {with_cp: sqrt}}",
    .summary = "Segments of blocks whose lengths make the peak small, chosen from the sizes of tensors.",
    .known_as = "sqrt(N) checkpointing (Chen et al. 2016)",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_WITH_CP_LARGER_THAN] = {
    .id = RN_STRATEGY_WITH_CP_LARGER_THAN, .name = "with_cp_larger_than", .key = "model.backbone.with_cp",
    .lines = { "model.backbone.with_cp={larger_than: 8MiB}" }, .off = "model.backbone.with_cp=false",
    .yaml = "model: {backbone: {with_cp: {larger_than: 8MiB}}}",
    .summary = "As with_cp, for tensors above this size only.",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_HEAD_WITH_CP] = {
    .id = RN_STRATEGY_HEAD_WITH_CP, .name = "head_with_cp", .key = "model.bbox_head.with_cp",
    .lines = { "model.bbox_head.with_cp=true" }, .off = "model.bbox_head.with_cp=false",
    .yaml = "model: {bbox_head: {with_cp: true}}",
    .summary = "Each branch of the head keeps its input alone at each level; backward computes the rest again.",
    .known_as = "torch.utils.checkpoint",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_BN_RELU] = {
    .id = RN_STRATEGY_BN_RELU, .name = "bn_relu", .key = "memory.recompute",
    .lines = { "memory.recompute+=bn_relu" }, .off = "memory.recompute=none",
    .yaml = "memory: {recompute: bn_relu}",
    .summary = "Outputs of batch norms that learn, with their ReLU, are computed again from the "
               "convolution's output.",
    .known_as = "In-Place ABN, memory-efficient DenseNet",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_FROZEN] = {
    .id = RN_STRATEGY_FROZEN, .name = "frozen", .key = "memory.recompute",
    .lines = { "memory.recompute+=frozen" }, .off = "memory.recompute=none",
    .yaml = "memory: {recompute: frozen}",
    .summary = "What the frozen stages give is not kept, but computed again from the image.",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_DEPTH_FIRST] = {
    .id = RN_STRATEGY_DEPTH_FIRST, .name = "depth_first", .key = "memory.head",
    .lines = { "memory.head=depth_first" }, .off = "memory.head=all_levels",
    .yaml = "memory: {head: depth_first}",
    .summary = "Each branch of the head runs forward, loss and backward at one level before the next begins.",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_IN_BACKWARD] = {
    .id = RN_STRATEGY_IN_BACKWARD, .name = "in_backward", .key = "memory.update",
    .lines = { "memory.update=in_backward" }, .off = "memory.update=after_backward",
    .yaml = "memory: {update: in_backward}",
    .summary = "Each parameter is stepped as soon as its gradient is there, so gradients are not kept.",
    .known_as = "LOMO, optimizer step in backward",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_FP16] = {
    .id = RN_STRATEGY_FP16, .name = "fp16", .key = "fp16",
    .lines = { "fp16={loss_scale: dynamic}" }, .off = "fp16=null",
    .yaml = "fp16: {loss_scale: dynamic}",
    .summary = "Activations and the operands of convolutions are fp16; weights, sums and losses stay fp32.",
    .known_as = "fp16, torch.cuda.amp, Apex O1",
    .result = RN_RESULT_HALF, .is_planned = TRUE },
  [RN_STRATEGY_FP16_O2] = {
    .id = RN_STRATEGY_FP16_O2, .name = "fp16_o2", .key = "fp16",
    .lines = { "fp16={loss_scale: dynamic, opt_level: O2}" }, .off = "fp16=null",
    .yaml = "fp16: {loss_scale: dynamic, opt_level: O2}",
    .summary = "As fp16, and what the losses read is fp16 too.",
    .known_as = "Apex O2",
    .result = RN_RESULT_HALF, .is_planned = TRUE },
  [RN_STRATEGY_BF16] = {
    .id = RN_STRATEGY_BF16, .name = "bf16", .key = "fp16",
    .lines = { "fp16={dtype: bf16}" }, .off = "fp16=null",
    .yaml = "fp16: {dtype: bf16}",
    .summary = "As fp16, in bf16, which needs no loss scale.",
    .known_as = "torch.autocast(dtype=torch.bfloat16)",
    .result = RN_RESULT_HALF, .is_planned = TRUE },
  [RN_STRATEGY_ACCUMULATION] = {
    .id = RN_STRATEGY_ACCUMULATION, .name = "accumulation", .key = "optimizer_config.cumulative_iters",
    .lines = { "optimizer_config.type=GradientCumulativeOptimizerHook", "optimizer_config.cumulative_iters=2" },
    .off = "optimizer_config.cumulative_iters=1",
    .yaml = "optimizer_config: {type: GradientCumulativeOptimizerHook, cumulative_iters: 2}",
    .summary = "One step takes the gradients of several batches, so a batch can be smaller.",
    .known_as = "GradientCumulativeOptimizerHook",
    .result = RN_RESULT_BATCH },
  [RN_STRATEGY_MOMENTUM_BF16] = {
    .id = RN_STRATEGY_MOMENTUM_BF16, .name = "momentum_bf16", .key = "memory.momentum",
    .lines = { "memory.momentum=bf16" }, .off = "memory.momentum=fp32",
    .yaml = "memory: {momentum: bf16}",
    .summary = "The optimizer's state is stored in half the bytes.",
    .known_as = "8-bit optimizers do the same further",
    .result = RN_RESULT_STATE, .is_planned = TRUE },
  [RN_STRATEGY_MOMENTUM_HOST] = {
    .id = RN_STRATEGY_MOMENTUM_HOST, .name = "momentum_host", .key = "memory.momentum",
    .lines = { "memory.momentum=host" }, .off = "memory.momentum=fp32",
    .yaml = "memory: {momentum: host}",
    .summary = "The optimizer's state lies in host memory; one parameter's at a time comes to the device.",
    .known_as = "ZeRO-Offload",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_OFFLOAD_IDLE] = {
    .id = RN_STRATEGY_OFFLOAD_IDLE, .name = "offload_idle", .key = "memory.offload",
    .lines = { "memory.offload=idle>16" }, .off = "memory.offload=none",
    .yaml = "memory: {offload: idle>16}",
    .summary = "What no op touches for more than 16 ops waits in host memory.",
    .known_as = "vDNN, torch.autograd.graph.save_on_cpu",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_OFFLOAD_BLOCK_OUTPUTS] = {
    .id = RN_STRATEGY_OFFLOAD_BLOCK_OUTPUTS, .name = "offload_block_outputs", .key = "memory.offload",
    .lines = { "memory.offload=block_outputs" }, .off = "memory.offload=none",
    .yaml = "memory: {offload: block_outputs}",
    .summary = "What the residual blocks give waits in host memory until backward needs it.",
    .known_as = "checkpoint with CPU offload (DeepSpeed, fairscale)",
    .result = RN_RESULT_BITS, .is_planned = TRUE },
  [RN_STRATEGY_WORKSPACE_LIMIT] = {
    .id = RN_STRATEGY_WORKSPACE_LIMIT, .name = "workspace_limit", .key = "memory.workspace_limit",
    .lines = { "memory.workspace_limit=64MiB" }, .off = "memory.workspace_limit=null",
    .yaml = "memory: {workspace_limit: 64MiB}",
    .summary = "An op that needs more scratch memory takes another kernel.",
    .known_as = "TORCH_CUDNN_V8_API_LIMIT, FLAGS_conv_workspace_size_limit",
    .result = RN_RESULT_SUMMATION, .is_planned = TRUE },
  [RN_STRATEGY_BUDGET] = {
    .id = RN_STRATEGY_BUDGET, .name = "budget", .key = "memory.budget",
    .lines = { "memory.budget=auto" }, .off = "memory.budget=none",
    .yaml = "memory: {budget: auto}",
    .summary = "Chooses among the others, for the shortest step that fits; a size, such as 700MiB, in place "
               "of auto.",
    .known_as = "activation_memory_budget of torch.compile, Checkmate",
    .result = RN_RESULT_FOLD, .is_planned = TRUE },
  [RN_STRATEGY_EMPTY_CACHE] = {
    .id = RN_STRATEGY_EMPTY_CACHE, .name = "empty_cache", .key = "custom_hooks",
    .lines = { "custom_hooks+={type: EmptyCacheHook, after_iter: true}" },
    .yaml = "custom_hooks: [{type: EmptyCacheHook, after_iter: true}]",
    .summary = "Memory that the current shape does not need goes back to the system.",
    .known_as = "EmptyCacheHook, torch.cuda.empty_cache",
    .result = RN_RESULT_BITS },
  [RN_STRATEGY_PREFETCH] = {
    .id = RN_STRATEGY_PREFETCH, .name = "prefetch", .key = "data.prefetch",
    .lines = { "data.prefetch=2" }, .off = "data.prefetch=0",
    .yaml = "data: {prefetch: 2}",
    .summary = "So many batches wait, ready, while the device computes.",
    .known_as = "DataLoader(prefetch_factor)",
    .result = RN_RESULT_BITS },
};
/* clang-format on */

const RnStrategy *
rn_strategy_get (RnStrategyId id)
{
  return &strategies[id];
}

const RnStrategy *
rn_strategy_find (const char *name)
{
  for (int id = 0; id < RN_STRATEGY_COUNT; id++)
    if (g_str_equal (strategies[id].name, name))
      return &strategies[id];
  return NULL;
}

const char *
rn_strategy_result_text (RnStrategyResult result)
{
  static const char *const texts[] = {
    [RN_RESULT_BITS] = "bit-equal",
    [RN_RESULT_SUMMATION] = "within fp32 summation order",
    [RN_RESULT_FOLD] = "gradients within 1e-4 of each tensor's largest entry",
    [RN_RESULT_STATE] = "optimizer state rounded to bf16",
    [RN_RESULT_HALF] = "half precision",
    [RN_RESULT_BATCH] = "as a larger batch",
  };
  return texts[result];
}

/* ---- What is on ---- */

static RnNodeKind
kind_of (const RnNode *node)
{
  return node != NULL ? rn_node_kind (node) : RN_NODE_NULL;
}

static const char *
as_text (const RnNode *node)
{
  return kind_of (node) == RN_NODE_STRING ? rn_node_as_string (node) : "";
}

static gboolean
is_true (const RnNode *node)
{
  return kind_of (node) == RN_NODE_BOOL && rn_node_as_bool (node);
}

/* As one of the texts, or a list with one of them. */
static gboolean
has_item (const RnNode *node, const char *text)
{
  for (guint i = 0; kind_of (node) == RN_NODE_LIST && i < rn_node_size (node); i++)
    if (g_str_equal (as_text (rn_node_item (node, i)), text))
      return TRUE;
  return g_str_equal (as_text (node), text);
}

static gboolean
has_hook (const RnNode *list, const char *type)
{
  for (guint i = 0; kind_of (list) == RN_NODE_LIST && i < rn_node_size (list); i++)
    if (g_str_equal (as_text (rn_node_get (rn_node_item (list, i), "type")), type))
      return TRUE;
  return FALSE;
}

/* none, null, false and 0 */
static gboolean
is_off (const RnNode *node)
{
  switch (kind_of (node))
    {
    case RN_NODE_NULL:
      return TRUE;
    case RN_NODE_BOOL:
      return !rn_node_as_bool (node);
    case RN_NODE_INT:
      return rn_node_as_int (node) == 0;
    default:
      return g_str_equal (as_text (node), "none");
    }
}

static gboolean
is_half (const RnNode *fp16, gboolean is_bf16, gboolean is_o2)
{
  const char *level = as_text (rn_node_get (fp16, "opt_level"));

  if (kind_of (fp16) != RN_NODE_MAP || rn_node_size (fp16) == 0 || g_str_equal (level, "O0"))
    return FALSE;
  if (g_str_has_prefix (as_text (rn_node_get (fp16, "dtype")), "bf")) /* bf16, bfloat16 */
    return is_bf16;
  return !is_bf16 && g_str_equal (level, "O2") == is_o2;
}

static gboolean
is_above_one (const RnNode *node)
{
  return kind_of (node) == RN_NODE_INT && rn_node_as_int (node) > 1;
}

/* The hook may stand among the custom ones too. (transfer full) */
static char *
accumulation_key (const RnNode *root)
{
  const RnNode *customs = rn_node_get (root, "custom_hooks");

  for (guint i = 0; kind_of (customs) == RN_NODE_LIST && i < rn_node_size (customs); i++)
    if (is_above_one (rn_node_get (rn_node_item (customs, i), "cumulative_iters")))
      return g_strdup_printf ("custom_hooks.%u.cumulative_iters", i);
  return g_strdup ("optimizer_config.cumulative_iters");
}

static gboolean
accumulates (const RnNode *root)
{
  g_autofree char *key = accumulation_key (root);
  return is_above_one (rn_node_path (root, key));
}

gboolean
rn_strategy_is_on (const RnStrategy *strategy, const RnNode *root)
{
  const RnNode *node = rn_node_path (root, strategy->key);

  if (strategy->id == RN_STRATEGY_ACCUMULATION)
    return accumulates (root);
  if (node == NULL)
    return strategy->is_default;
  switch (strategy->id)
    {
    case RN_STRATEGY_WITH_CP:
    case RN_STRATEGY_HEAD_WITH_CP:
    case RN_STRATEGY_INPLACE:
      return is_true (node);
    case RN_STRATEGY_WITH_CP_SEGMENTS:
      return !rn_node_is_null (rn_node_get (node, "segments"));
    case RN_STRATEGY_WITH_CP_SQRT:
      return g_str_equal (as_text (node), "sqrt");
    case RN_STRATEGY_WITH_CP_LARGER_THAN:
      return !rn_node_is_null (rn_node_get (node, "larger_than"));
    case RN_STRATEGY_BN_RELU:
      return has_item (node, "bn_relu");
    case RN_STRATEGY_FROZEN:
      return has_item (node, "frozen");
    case RN_STRATEGY_DEPTH_FIRST:
      return g_str_equal (as_text (node), "depth_first");
    case RN_STRATEGY_IN_BACKWARD:
      return g_str_equal (as_text (node), "in_backward");
    case RN_STRATEGY_FP16:
      return is_half (node, FALSE, FALSE);
    case RN_STRATEGY_FP16_O2:
      return is_half (node, FALSE, TRUE);
    case RN_STRATEGY_BF16:
      return is_half (node, TRUE, FALSE);
    case RN_STRATEGY_MOMENTUM_BF16:
      return g_str_equal (as_text (node), "bf16");
    case RN_STRATEGY_MOMENTUM_HOST:
      return g_str_equal (as_text (node), "host");
    case RN_STRATEGY_OFFLOAD_IDLE:
      return g_str_has_prefix (as_text (node), "idle>");
    case RN_STRATEGY_OFFLOAD_BLOCK_OUTPUTS:
      return g_str_equal (as_text (node), "block_outputs");
    case RN_STRATEGY_EMPTY_CACHE:
      return has_hook (node, "EmptyCacheHook");
    case RN_STRATEGY_FOLD_FROZEN_BN:
    case RN_STRATEGY_WORKSPACE_LIMIT:
    case RN_STRATEGY_BUDGET:
    case RN_STRATEGY_PREFETCH:
      return !is_off (node);
    case RN_STRATEGY_ACCUMULATION:
    case RN_STRATEGY_COUNT:
      break;
    }
  g_return_val_if_reached (FALSE);
}

/* ---- Switching ---- */

static gboolean
is_recompute (const RnStrategy *strategy)
{
  return strategy->id == RN_STRATEGY_BN_RELU || strategy->id == RN_STRATEGY_FROZEN;
}

/* A list, whatever it was: one text, or none. */
static gboolean
make_list (RnNode *root, const char *key, GError **error)
{
  const RnNode *node = rn_node_path (root, key);

  if (node == NULL || kind_of (node) == RN_NODE_LIST)
    return TRUE;
  const char *item = is_off (node) ? "" : as_text (node);
  g_autofree char *line = g_strdup_printf ("%s=[%s]", key, item);
  return rn_config_override (root, line, error);
}

gboolean
rn_strategy_apply (const RnStrategy *strategy, RnNode *root, GError **error)
{
  if (rn_strategy_is_on (strategy, root))
    return TRUE;
  if (is_recompute (strategy) && !make_list (root, strategy->key, error))
    return FALSE;
  for (int i = 0; strategy->lines[i] != NULL; i++)
    if (!rn_config_override (root, strategy->lines[i], error))
      return FALSE;
  return TRUE;
}

/* The item of the list that is the strategy's, or -1. */
static int
find_item (const RnStrategy *strategy, const RnNode *list)
{
  for (guint i = 0; i < rn_node_size (list); i++)
    {
      const RnNode *item = rn_node_item (list, i);
      const char *text =
          as_text (strategy->id == RN_STRATEGY_EMPTY_CACHE ? rn_node_get (item, "type") : item);
      if (g_str_equal (text, strategy->id == RN_STRATEGY_EMPTY_CACHE ? "EmptyCacheHook" : strategy->name))
        return (int) i;
    }
  return -1;
}

gboolean
rn_strategy_remove (const RnStrategy *strategy, RnNode *root, GError **error)
{
  if (!rn_strategy_is_on (strategy, root))
    return TRUE;
  const RnNode *node = rn_node_path (root, strategy->key);
  g_autofree char *line = NULL, *key = accumulation_key (root);
  if (strategy->id == RN_STRATEGY_ACCUMULATION)
    line = g_strconcat (key, "=1", NULL);
  else if (kind_of (node) == RN_NODE_LIST)
    line = g_strdup_printf ("~%s.%d", strategy->key, find_item (strategy, node));
  return rn_config_override (root, line != NULL ? line : strategy->off, error);
}
