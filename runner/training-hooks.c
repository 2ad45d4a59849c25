/* training-hooks.c: MMCV's register_training_hooks, and the hooks that MMDetection adds: which part of the
 * configuration becomes which hook. */
#include "config.h"

#include "runner/runner.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/config/schema.h"

#include <string.h>

typedef struct
{
  gint64 interval;
  const RnNode *hooks;
} LogConfig;

static const RnKeySpec log_keys[] = {
  RN_KEY (LogConfig, interval, RN_KEY_INT, "10", "iterations between two lines", .min = 1, .max = 1e7),
  RN_KEY (LogConfig, hooks, RN_KEY_NODE, "null", "list of loggers; default: TextLoggerHook",
          .flags = RN_KEY_NULLABLE),
  RN_KEY_END,
};

/* MMCV's policies as configurations name them. A plugin may bring more. */
/* clang-format off */
static const char *const lr_policies[] = {
  "fixed", "step", "exp", "poly", "inv", "CosineAnnealing", "FlatCosineAnnealing", "CosineRestart", "cyclic",
  "OneCycle", "LinearAnnealing", NULL
};
static const char *const momentum_policies[] = {
  "step", "CosineAnnealing", "LinearAnnealing", "cyclic", "OneCycle", NULL
};
/* clang-format on */

/* "step" becomes "StepLrUpdaterHook"; a name with a capital letter stays as it is. */
static char *
updater_name (const char *policy, const char *suffix)
{
  g_autofree char *lower = g_ascii_strdown (policy, -1);
  char *name = g_strconcat (policy, suffix, NULL);

  if (strcmp (policy, lower) == 0)
    name[0] = g_ascii_toupper (name[0]);
  return name;
}

/* Another hook in its place would leave the value as it is, and not say so. */
static gboolean
check_schedule_type (const RnNode *type, const char *suffix, GError **error)
{
  if (rn_node_kind (type) == RN_NODE_STRING && g_str_has_suffix (rn_node_as_string (type), suffix))
    return TRUE;
  return rn_node_error (type, error, "must be a hook whose name ends in %s; `runner hooks` lists them",
                        suffix);
}

/* lr_config and momentum_config: a hook by `type:`, or by the short name of its `policy:`. */
static gboolean
add_schedule (RnHookList *list, const RnNode *config, const char *suffix, const char *const *policies,
              GError **error)
{
  static const char *const skip[] = { "policy", NULL };

  if (config == NULL)
    return TRUE; /* the optimizer's value stays */
  const RnNode *policy = rn_node_get (config, "policy");
  g_autofree char *all = g_strjoinv (", ", (char **) policies);
  if (policy == NULL && rn_node_get (config, "type") == NULL)
    return rn_node_error (config, error, "needs a policy; there are: %s", all);
  if (policy == NULL)
    return check_schedule_type (rn_node_get (config, "type"), suffix, error)
           && rn_hook_list_add (list, config, NULL, NULL, error);
  if (rn_node_get (config, "type") != NULL)
    return rn_node_error (policy, error, "there is a type too, and both name the hook; leave one out");

  const char *name = rn_node_kind (policy) == RN_NODE_STRING ? rn_node_as_string (policy) : "";
  g_autofree char *type = updater_name (name, suffix);
  rn_hooks_register ();
  if (rn_registry_lookup (rn_registry_family ("hook"), type) == NULL)
    {
      const char *nearest = rn_suggest (name, policies);
      g_autofree char *hint = nearest != NULL ? g_strdup_printf ("; did you mean \"%s\"?", nearest) : NULL;
      return rn_node_error (policy, error, "no policy \"%s\"%s there are: %s", name,
                            hint != NULL ? hint : ";", all); /* "cosine" is near to several */
    }
  return rn_hook_list_add (list, config, type, skip, error);
}

static const char *const optimizer_hooks[] = { "OptimizerHook", "GradientCumulativeOptimizerHook",
                                               "Fp16OptimizerHook", "GradientCumulativeFp16OptimizerHook",
                                               NULL };

gboolean
rn_is_optimizer_hook (const RnNode *config)
{
  const RnNode *type = rn_node_get (config, "type");
  return type != NULL && rn_node_kind (type) == RN_NODE_STRING
         && g_strv_contains (optimizer_hooks, rn_node_as_string (type));
}

/* Another hook in its place would train nothing, and not say so. One of a plugin is known by its name. */
static gboolean
check_optimizer_hook (const RnNode *config, GError **error)
{
  const RnNode *type = config != NULL ? rn_node_get (config, "type") : NULL;

  if (type == NULL
      || (rn_node_kind (type) == RN_NODE_STRING
          && g_str_has_suffix (rn_node_as_string (type), "OptimizerHook")))
    return TRUE;
  g_autofree char *all = g_strjoinv (", ", (char **) optimizer_hooks);
  return rn_node_error (type, error, "no such optimizer hook; there are: %s", all);
}

/* Two of them would run the backward pass twice. It may stand among the custom hooks, alone. */
static gboolean
add_optimizer_hook (RnHookList *list, const RnRunConfig *config, GError **error)
{
  const RnNode *first = config->optimizer_config, *customs = config->custom_hooks;

  if (!check_optimizer_hook (first, error))
    return FALSE;
  for (guint i = 0; customs != NULL && rn_node_kind (customs) == RN_NODE_LIST && i < rn_node_size (customs);
       i++)
    {
      const RnNode *custom = rn_node_item (customs, i);
      if (!rn_is_optimizer_hook (custom))
        continue;
      if (first != NULL)
        return rn_node_error (custom, error,
                              "a second optimizer hook; the first is %s in %s, and a run has one: leave one "
                              "out",
                              rn_node_dotted (first), rn_node_origin (first));
      first = custom;
    }
  return (first != NULL && first != config->optimizer_config)
         || rn_hook_list_add (list, config->optimizer_config, "OptimizerHook", NULL, error);
}

const RnNode *
rn_optimizer_hook_config (const RnRunConfig *config)
{
  const RnNode *customs = config->custom_hooks;

  for (guint i = 0; customs != NULL && rn_node_kind (customs) == RN_NODE_LIST && i < rn_node_size (customs);
       i++)
    if (rn_is_optimizer_hook (rn_node_item (customs, i)))
      return rn_node_item (customs, i);
  return config->optimizer_config;
}

static gboolean
add_if_given (RnHookList *list, const RnNode *config, const char *type, GError **error)
{
  return config == NULL || rn_hook_list_add (list, config, type, NULL, error);
}

static gboolean
add_list (RnHookList *list, const RnNode *configs, GError **error)
{
  if (configs == NULL)
    return TRUE;
  if (rn_node_kind (configs) != RN_NODE_LIST)
    return rn_node_error (configs, error, "must be a list of hooks, each a map with `type:`");
  for (guint i = 0; i < rn_node_size (configs); i++)
    if (!rn_hook_list_add (list, rn_node_item (configs, i), NULL, NULL, error))
      return FALSE;
  return TRUE;
}

static gboolean
add_loggers (RnHookList *list, const RnNode *config, gint64 *log_interval, GError **error)
{
  LogConfig log = { 0 };

  if (!rn_keys_parse (log_keys, config, &log, NULL, error))
    return FALSE;
  *log_interval = log.interval;
  if (log.hooks == NULL)
    return rn_hook_list_add (list, NULL, "TextLoggerHook", NULL, error);
  return add_list (list, log.hooks, error);
}

/* The maps of @list whose `type:` is @type. */
static void
collect (GPtrArray *found, const RnNode *list, const char *type)
{
  for (guint i = 0; list != NULL && rn_node_kind (list) == RN_NODE_LIST && i < rn_node_size (list); i++)
    {
      const RnNode *node = rn_node_get (rn_node_item (list, i), "type");
      if (node != NULL && rn_node_kind (node) == RN_NODE_STRING
          && strcmp (rn_node_as_string (node), type) == 0)
        g_ptr_array_add (found, (gpointer) rn_node_item (list, i));
    }
}

/* Their lines would be mixed in the same files. */
static gboolean
check_text_loggers (const RnRunConfig *config, GError **error)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  const RnNode *loggers = config->log_config != NULL ? rn_node_get (config->log_config, "hooks") : NULL;

  if (rn_node_is_null (loggers))
    g_ptr_array_add (found, NULL); /* there is one by default */
  collect (found, loggers, "TextLoggerHook");
  collect (found, config->custom_hooks, "TextLoggerHook");
  return found->len < 2
         || rn_node_error (g_ptr_array_index (found, 1), error,
                           "a second TextLoggerHook would write each line twice into the same files; leave "
                           "one out");
}

/* There is one list of the checkpoints to keep, and the shorter count would delete those of the other hook.
 */
static gboolean
check_checkpoint_hooks (const RnRunConfig *config, GError **error)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new ();

  if (config->checkpoint_config != NULL)
    g_ptr_array_add (found, (gpointer) config->checkpoint_config);
  collect (found, config->custom_hooks, "CheckpointHook");
  for (guint i = 0; i < found->len && found->len > 1; i++)
    {
      const RnNode *max_keep = rn_node_get (g_ptr_array_index (found, i), "max_keep_ckpts");
      if (max_keep != NULL && rn_node_kind (max_keep) == RN_NODE_INT && rn_node_as_int (max_keep) > 0)
        return rn_node_error (max_keep, error,
                              "there are two CheckpointHooks, and with this one of them deletes what the "
                              "other has saved; what works: no max_keep_ckpts in either, or one hook");
    }
  return TRUE;
}

RnHookList *
rn_training_hooks_new (const RnRunConfig *config, gint64 *log_interval, GError **error)
{
  g_autoptr (RnHookList) list = rn_hook_list_new ();

  if (!check_text_loggers (config, error) || !check_checkpoint_hooks (config, error)
      || !add_schedule (list, config->lr_config, "LrUpdaterHook", lr_policies, error)
      || !add_schedule (list, config->momentum_config, "MomentumUpdaterHook", momentum_policies, error)
      || !add_optimizer_hook (list, config, error)
      || !add_if_given (list, config->checkpoint_config, "CheckpointHook", error)
      || !rn_hook_list_add (list, NULL, "IterTimerHook", NULL, error)
      || !add_loggers (list, config->log_config, log_interval, error)
      || !add_if_given (list, config->evaluation, "EvalHook", error)
      || !add_list (list, config->custom_hooks, error))
    return NULL;
  return g_steal_pointer (&list);
}

RnHookList *
rn_schedule_hooks_new (const RnRunConfig *config, GError **error)
{
  g_autoptr (RnHookList) list = rn_hook_list_new ();

  if (!add_schedule (list, config->lr_config, "LrUpdaterHook", lr_policies, error)
      || !add_schedule (list, config->momentum_config, "MomentumUpdaterHook", momentum_policies, error)
      || !rn_hook_list_add (list, rn_optimizer_hook_config (config), "OptimizerHook", NULL, error))
    return NULL;
  return g_steal_pointer (&list);
}
