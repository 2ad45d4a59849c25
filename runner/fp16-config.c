/* fp16-config.c: the keys of `fp16:`, and the optimizer hook that they ask for. */
#include "config.h"

#include "runner/fp16-config.h"

#include "runner/base/error.h"
#include "runner/config/config.h"
#include "runner/config/schema.h"
#include "runner/runner.h"

#include <string.h>

#define CUSTOM_HOOKS "custom_hooks"
#define LOSS_SCALE 0 /* among the scaler's keys */

static const char *const level_names[] = { "O0", "O1", "O2", NULL };
static const char *const dtype_names[] = { "fp16", "bf16", "float16", "bfloat16", NULL };

/* clang-format off */
#define SCALER_KEY(i, name_, help_) \
  { .name = name_, .type = RN_KEY_NODE, .offset = G_STRUCT_OFFSET (RnFp16Config, scaler[i]), \
    .deflt = "null", .help = (help_), .flags = RN_KEY_NULLABLE }
#define UNUSED(name_) { .name = name_, .type = RN_KEY_UNUSED, .help = "of distributed runs" }
/* clang-format on */

const RnKeySpec rn_fp16_keys[] = {
  SCALER_KEY (0, "loss_scale", "as of Fp16OptimizerHook; default 512, with dtype bf16 none"),
  RN_KEY (RnFp16Config, opt_level, RN_KEY_ENUM, "O1",
          "O0: single precision, but for the loss scale; O1: what losses read is single; O2: all but the "
          "arithmetic of batch norms and losses is half",
          .names = level_names),
  { .name = "dtype",
    .type = RN_KEY_ENUM,
    .offset = G_STRUCT_OFFSET (RnFp16Config, dtype_name),
    .deflt = "fp16",
    .help = "fp16, or bf16: the range of single precision, with 8 bits of precision",
    .names = dtype_names },
  RN_KEY (RnFp16Config, force_fp32, RN_KEY_STRING_LIST, "null",
          "modules that stay in single precision: bbox_head, backbone.layer4", .flags = RN_KEY_NULLABLE),
  RN_KEY (RnFp16Config, force_half, RN_KEY_STRING_LIST, "null", "modules that are as with O2",
          .flags = RN_KEY_NULLABLE),
  SCALER_KEY (1, "min_scale", "as of Fp16OptimizerHook"),
  SCALER_KEY (2, "max_scale", "as of Fp16OptimizerHook"),
  SCALER_KEY (3, "max_skips", "as of Fp16OptimizerHook"),
  SCALER_KEY (4, "reset_scale", "as of Fp16OptimizerHook"),
  UNUSED ("coalesce"),
  UNUSED ("bucket_size_mb"),
  UNUSED ("distributed"),
  RN_KEY_END,
};

/* What the line shares with the Fp16 hooks, in the order of RnFp16Config.scaler. */
static const char *const scaler_keys[] = { "loss_scale", "min_scale", "max_scale", "max_skips",
                                           "reset_scale" };
G_STATIC_ASSERT (G_N_ELEMENTS (scaler_keys) == RN_FP16_N_SCALER);

/* A plain optimizer hook and the one with a loss scale. */
static const char *const hook_pairs[][2] = {
  { "OptimizerHook", "Fp16OptimizerHook" },
  { "GradientCumulativeOptimizerHook", "GradientCumulativeFp16OptimizerHook" },
};

static const RnNode *
get (const RnNode *map, const char *key)
{
  const RnNode *node = map != NULL ? rn_node_get (map, key) : NULL;
  return rn_node_is_null (node) ? NULL : node;
}

static gboolean
is_number (const RnNode *node)
{
  return rn_node_kind (node) == RN_NODE_INT || rn_node_kind (node) == RN_NODE_FLOAT;
}

/* ---- what the line alone says ---- */

gboolean
rn_fp16_explain (const RnNode *line, GError **error)
{
  const RnNode *level = line != NULL ? get (line, "opt_level") : NULL;

  if (level != NULL && rn_node_kind (level) == RN_NODE_STRING
      && g_ascii_strcasecmp (rn_node_as_string (level), "O3") == 0)
    return rn_node_error (level, error,
                          "O3, half precision without weights in single precision, is not in this release; "
                          "what works: O2");
  return TRUE;
}

static gboolean
check_scale (const RnNode *scale, GError **error)
{
  RnNodeKind kind = scale != NULL ? rn_node_kind (scale) : RN_NODE_NULL;

  if (kind == RN_NODE_BOOL || kind == RN_NODE_LIST
      || (kind == RN_NODE_STRING && strcmp (rn_node_as_string (scale), "dynamic") != 0))
    return rn_node_error (scale, error,
                          "must be a number, for a scale that stays; dynamic; or a map, such as "
                          "{init_scale: 65536, growth_interval: 2000}");
  return TRUE;
}

/* A line that changes nothing was meant to. */
static gboolean
check_effect (const RnFp16Config *fp16, const RnNode *line, GError **error)
{
  static const char *const keys[] = { "dtype", "force_fp32", "force_half" };

  for (gsize i = 0; fp16->opt_level == RN_AMP_O0 && i < G_N_ELEMENTS (keys); i++)
    if (get (line, keys[i]) != NULL)
      return rn_node_error (get (line, keys[i]), error,
                            "does nothing with opt_level: O0, which is single precision; leave it out, or "
                            "opt_level: O1");
  for (char **name = fp16->force_half; name != NULL && *name != NULL; name++)
    if (fp16->force_fp32 != NULL && g_strv_contains ((const char *const *) fp16->force_fp32, *name))
      return rn_node_error (get (line, "force_half"), error, "%s is in force_fp32 too; leave one out", *name);
  return TRUE;
}

/* ---- the optimizer hook ---- */

/* Its place in the file: "optimizer_config", or the one among the custom hooks. (transfer full) */
static char *
find_hook (const RnNode *optimizer_config, const RnNode *custom_hooks, const RnNode **hook)
{
  for (guint i = 0;
       custom_hooks != NULL && rn_node_kind (custom_hooks) == RN_NODE_LIST && i < rn_node_size (custom_hooks);
       i++)
    if (rn_is_optimizer_hook (rn_node_item (custom_hooks, i)))
      {
        *hook = rn_node_item (custom_hooks, i);
        return g_strdup_printf (CUSTOM_HOOKS ".%u", i);
      }
  *hook = rn_node_is_null (optimizer_config) ? NULL : optimizer_config;
  return g_strdup ("optimizer_config");
}

static const char *
type_of (const RnNode *hook)
{
  const RnNode *type = get (hook, "type");

  if (type == NULL)
    return hook_pairs[0][0];
  return rn_node_kind (type) == RN_NODE_STRING ? rn_node_as_string (type) : "";
}

static gboolean
is_scaled_type (const char *type)
{
  return g_str_equal (type, hook_pairs[0][1]) || g_str_equal (type, hook_pairs[1][1]);
}

/* The Fp16 form of @type, or NULL for a hook of somebody else. */
static const char *
scaled_type (const char *type)
{
  for (gsize i = 0; i < G_N_ELEMENTS (hook_pairs); i++)
    if (g_str_equal (type, hook_pairs[i][0]) || g_str_equal (type, hook_pairs[i][1]))
      return hook_pairs[i][1];
  return NULL;
}

static gboolean
are_equal (const RnNode *a, const RnNode *b)
{
  if (is_number (a) && is_number (b)) /* 512 and 512.0 */
    return rn_node_as_float (a) == rn_node_as_float (b);
  return rn_node_equal (a, b);
}

static gboolean
check_same (const RnFp16Config *fp16, const RnNode *hook, GError **error)
{
  for (int i = 0; i < RN_FP16_N_SCALER; i++)
    {
      const RnNode *here = get (hook, scaler_keys[i]), *there = fp16->scaler[i];
      if (here != NULL && !rn_node_is_null (there) && !are_equal (here, there))
        return rn_node_error (here, error, "differs from fp16.%s in %s; leave one out", scaler_keys[i],
                              rn_node_origin (there));
    }
  return TRUE;
}

/* bf16 has the range of single precision: nothing overflows that would not there, so a scale of 1 will do,
 * and no scale at all is the same. */
static gboolean
needs_scaler (const RnFp16Config *fp16)
{
  const RnNode *scale = fp16->scaler[LOSS_SCALE];

  for (int i = LOSS_SCALE + 1; i < RN_FP16_N_SCALER; i++)
    if (!rn_node_is_null (fp16->scaler[i]))
      return TRUE;
  if (fp16->dtype != RN_BF16)
    return TRUE;
  return !rn_node_is_null (scale) && !(is_number (scale) && rn_node_as_float (scale) == 1);
}

/* The whole list of custom hooks where one of them is changed, else the one map. */
static RnNode *
copy_hooks (const char *place, const RnNode *optimizer_config, const RnNode *custom_hooks)
{
  RnNode *tree = rn_node_new_null ("fp16");
  gboolean is_custom = g_str_has_prefix (place, CUSTOM_HOOKS);
  const RnNode *part = is_custom ? custom_hooks : optimizer_config;

  if (part != NULL)
    rn_config_set (tree, is_custom ? CUSTOM_HOOKS : place, rn_node_copy (part), NULL);
  return tree;
}

static gboolean
set_key (RnNode *tree, const char *place, const char *key, RnNode *value, GError **error)
{
  g_autofree char *path = g_strconcat (place, ".", key, NULL);
  return rn_config_set (tree, path, value, error);
}

/* The hook at @place of @tree gets its Fp16 form and what the line says of the scale. */
static gboolean
change_hook (const RnFp16Config *fp16, const RnNode *line, const RnNode *hook, const char *place,
             RnNode *tree, GError **error)
{
  const char *type = type_of (hook), *scaled = scaled_type (type);

  if (!g_str_equal (type, scaled)
      && !set_key (tree, place, "type", rn_node_new_string (scaled, rn_node_origin (line)), error))
    return FALSE;
  for (int i = 0; i < RN_FP16_N_SCALER; i++)
    if (!rn_node_is_null (fp16->scaler[i]) && get (hook, scaler_keys[i]) == NULL
        && !set_key (tree, place, scaler_keys[i], rn_node_copy (fp16->scaler[i]), error))
      return FALSE;
  if (fp16->dtype == RN_BF16 && rn_node_is_null (fp16->scaler[LOSS_SCALE])
      && get (hook, scaler_keys[LOSS_SCALE]) == NULL)
    return set_key (tree, place, "loss_scale", rn_node_new_int (1, rn_node_origin (line)), error);
  return TRUE;
}

/* The part has nothing to turn off, or says what is not so. */
static gboolean
check_parts (const RnFp16Config *fp16, const RnNode *root, GError **error)
{
  static const char *const parts[] = { "model.backbone.fp16_enabled", "model.neck.fp16_enabled",
                                       "model.bbox_head.fp16_enabled" };

  for (gsize i = 0; fp16->level == RN_AMP_O0 && i < G_N_ELEMENTS (parts); i++)
    {
      const RnNode *node = rn_node_path (root, parts[i]);
      if (node != NULL && rn_node_kind (node) == RN_NODE_BOOL && rn_node_as_bool (node))
        return rn_node_error (node, error,
                              "the run computes in single precision; what turns half on: `fp16: "
                              "{loss_scale: dynamic}` at the top");
    }
  return TRUE;
}

gboolean
rn_fp16_compose (RnFp16Config *fp16, const RnNode *root, const RnNode **optimizer_config,
                 const RnNode **custom_hooks, RnNode **composed, GError **error)
{
  const RnNode *line = get (root, "fp16"), *hook;
  g_autofree char *place = find_hook (*optimizer_config, *custom_hooks, &hook);
  const char *type = type_of (hook);

  *composed = NULL;
  fp16->is_by_hook = line == NULL && is_scaled_type (type);
  fp16->level = line != NULL ? (RnAmpLevel) fp16->opt_level : fp16->is_by_hook ? RN_AMP_O1 : RN_AMP_O0;
  if (fp16->level == RN_AMP_O0)
    fp16->dtype = RN_F32;
  else
    fp16->dtype = fp16->dtype_name % 2 == 0 ? RN_F16 : RN_BF16; /* two names each */
  if (!check_parts (fp16, root, error))
    return FALSE;
  if (line == NULL)
    return TRUE;

  if (!check_effect (fp16, line, error) || !check_scale (fp16->scaler[LOSS_SCALE], error)
      || !check_same (fp16, hook, error))
    return FALSE;
  if (!needs_scaler (fp16) && !is_scaled_type (type))
    return TRUE;
  if (scaled_type (type) == NULL)
    return rn_node_error (get (hook, "type"), error,
                          "fp16 in %s has a loss scale, which %s cannot be given; what works: one of the "
                          "program's own optimizer hooks, or fp16: {dtype: bf16}",
                          rn_node_origin (line), type);
  g_autoptr (RnNode) tree = copy_hooks (place, *optimizer_config, *custom_hooks);
  if (!change_hook (fp16, line, hook, place, tree, error))
    return FALSE;
  if (g_str_has_prefix (place, CUSTOM_HOOKS))
    *custom_hooks = rn_node_get (tree, CUSTOM_HOOKS);
  else
    *optimizer_config = rn_node_get (tree, place);
  *composed = g_steal_pointer (&tree);
  return TRUE;
}

const char *
rn_fp16_describe (const RnFp16Config *fp16)
{
  static const char *const names[][2] = {
    [RN_AMP_O1] = { "fp16 O1", "bf16 O1" },
    [RN_AMP_O2] = { "fp16 O2", "bf16 O2" },
  };
  return fp16->level == RN_AMP_O0 ? "fp32" : names[fp16->level][fp16->dtype == RN_BF16];
}
