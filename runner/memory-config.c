/* memory-config.c: the keys of `memory:`. */
#include "config.h"

#include "runner/memory-config.h"

#include "runner/base/error.h"
#include "runner/config/schema.h"

#include <string.h>

#define IDLE "idle>"

static const char *const fold_names[] = { "false", "true", "auto", NULL };
static const char *const head_names[] = { "all_levels", "depth_first", NULL };
static const char *const update_names[] = { "after_backward", "in_backward", NULL };
static const char *const momentum_names[] = { "fp32", "bf16", "host", NULL };

/* clang-format off */
#define NODE(field, name_, help_) \
  { .name = name_, .type = RN_KEY_NODE, .offset = G_STRUCT_OFFSET (RnMemoryConfig, field), .deflt = "null", \
    .help = (help_), .flags = RN_KEY_NULLABLE }
/* clang-format on */

const RnKeySpec rn_memory_keys[] = {
  RN_KEY (RnMemoryConfig, fold_frozen_bn, RN_KEY_ENUM, "auto",
          "fold batch norms on frozen statistics into their convolutions; true: an error if there is none",
          .names = fold_names),
  RN_KEY (RnMemoryConfig, inplace, RN_KEY_BOOL, "true",
          "let an op write over an input that nobody reads later"),
  RN_KEY (RnMemoryConfig, head, RN_KEY_ENUM, "all_levels",
          "depth_first: forward, loss and backward of the head level by level", .names = head_names,
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnMemoryConfig, update, RN_KEY_ENUM, "after_backward",
          "in_backward: step each parameter as soon as its gradient is there, so that no gradients are kept",
          .names = update_names, .flags = RN_KEY_NULLABLE),
  RN_KEY (RnMemoryConfig, momentum, RN_KEY_ENUM, "fp32",
          "how the optimizer's state is stored: bf16: in half the bytes; host: in host memory",
          .names = momentum_names, .flags = RN_KEY_NULLABLE),
  NODE (recompute_node, "recompute",
        "none, or what backward computes again beside with_cp: bn_relu (outputs of batch norms that learn), "
        "frozen (the output of the frozen stages), or a list"),
  NODE (offload_node, "offload",
        "none; idle>N: what no op touches for more than N ops waits in host memory; block_outputs: what the "
        "residual blocks give"),
  NODE (pinned_node, "pinned_limit", "most host memory of offload, such as 1GiB; null: no limit"),
  NODE (
      budget_node, "budget",
      "none; a size, such as 700MiB: choose strategies for the shortest step that needs no more; auto: what "
      "the device has free"),
  NODE (workspace_node, "workspace_limit",
        "most scratch memory of one op, such as 64MiB or a number of bytes; an op that needs more takes a "
        "slower kernel"),
  RN_KEY (RnMemoryConfig, plan_cache, RN_KEY_INT, "8", "plans kept, one per batch shape", .min = 1,
          .max = 1024),
  RN_KEY_END,
};

/* null, false and "none": not asked for. */
static gboolean
is_none (const RnNode *node)
{
  if (node == NULL || rn_node_is_null (node))
    return TRUE;
  if (rn_node_kind (node) == RN_NODE_BOOL)
    return !rn_node_as_bool (node);
  return rn_node_kind (node) == RN_NODE_STRING && g_str_equal (rn_node_as_string (node), "none");
}

static gboolean
read_recompute_item (RnMemoryConfig *memory, const RnNode *node, GError **error)
{
  const char *text = rn_node_kind (node) == RN_NODE_STRING ? rn_node_as_string (node) : "";

  if (g_str_equal (text, "bn_relu"))
    memory->bn_relu = TRUE;
  else if (g_str_equal (text, "frozen"))
    memory->frozen = TRUE;
  else
    return rn_node_error (node, error,
                          "what can be computed again here: bn_relu, frozen, or a list of them; "
                          "blocks: model.backbone.with_cp");
  return TRUE;
}

static gboolean
read_recompute (RnMemoryConfig *memory, GError **error)
{
  const RnNode *node = memory->recompute_node;

  if (is_none (node))
    return TRUE;
  if (rn_node_kind (node) != RN_NODE_LIST)
    return read_recompute_item (memory, node, error);
  for (guint i = 0; i < rn_node_size (node); i++)
    if (!read_recompute_item (memory, rn_node_item (node, i), error))
      return FALSE;
  return TRUE;
}

static gboolean
read_offload (RnMemoryConfig *memory, GError **error)
{
  const RnNode *node = memory->offload_node;
  guint64 idle = 0;

  if (is_none (node))
    return TRUE;
  const char *text = rn_node_kind (node) == RN_NODE_STRING ? rn_node_as_string (node) : "";
  if (g_str_equal (text, "block_outputs"))
    memory->offload.form = RN_OFFLOAD_BLOCK_OUTPUTS;
  else if (g_str_has_prefix (text, IDLE)
           && g_ascii_string_to_unsigned (text + strlen (IDLE), 10, 1, 100000, &idle, NULL))
    {
      memory->offload.form = RN_OFFLOAD_IDLE;
      memory->offload.idle = (int) idle;
    }
  else
    return rn_node_error (node, error,
                          "needs none, idle>N with N from 1 to 100000, such as idle>16, or block_outputs");
  return TRUE;
}

static gboolean
read_budget (RnMemoryConfig *memory, GError **error)
{
  const RnNode *node = memory->budget_node;

  if (is_none (node))
    return TRUE;
  if (rn_node_kind (node) == RN_NODE_STRING && g_str_equal (rn_node_as_string (node), "auto"))
    {
      memory->budget = RN_BUDGET_AUTO;
      return TRUE;
    }
  memory->budget = RN_BUDGET_SIZE;
  return rn_node_read_size (node, "700MiB", &memory->budget_bytes, error);
}

gboolean
rn_memory_config_read (RnMemoryConfig *memory, GError **error)
{
  guint64 bytes = 0;

  if (!read_recompute (memory, error) || !read_offload (memory, error) || !read_budget (memory, error))
    return FALSE;
  if (memory->workspace_node != NULL)
    {
      if (!rn_node_read_size (memory->workspace_node, "64MiB", &bytes, error))
        return FALSE;
      memory->workspace_bytes = bytes;
    }
  if (!is_none (memory->pinned_node))
    {
      if (!rn_node_read_size (memory->pinned_node, "1GiB", &bytes, error))
        return FALSE;
      memory->offload.pinned_limit = bytes;
    }
  return TRUE;
}
