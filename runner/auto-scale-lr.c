#define G_LOG_DOMAIN "rn-runner"
#include "config.h"

#include "runner/auto-scale-lr.h"

#include "runner/config/schema.h"
#include "runner/runner.h"

typedef struct
{
  gboolean enable;
  gint64 base_batch_size;
} AutoScaleLr;

static const RnKeySpec auto_scale_keys[] = {
  RN_KEY (AutoScaleLr, enable, RN_KEY_BOOL, "false", "scale optimizer.lr to the images of a step"),
  RN_KEY (AutoScaleLr, base_batch_size, RN_KEY_INT, "16", "images of a step that optimizer.lr belongs to",
          .min = 1, .max = 1e9),
  RN_KEY_END,
};

gint64
rn_iters_of_step (const RnRunConfig *config)
{
  const RnNode *hook = rn_optimizer_hook_config (config);
  const RnNode *node = hook != NULL ? rn_node_get (hook, "cumulative_iters") : NULL;

  return node != NULL && rn_node_kind (node) == RN_NODE_INT ? MAX (rn_node_as_int (node), 1) : 1;
}

gboolean
rn_auto_scale_lr (const RnRunConfig *config, gint64 batch_size, RnOptimizer *optimizer, GError **error)
{
  AutoScaleLr keys = { 0 };

  if (config->auto_scale_lr == NULL)
    return TRUE;
  if (!rn_keys_parse (auto_scale_keys, config->auto_scale_lr, &keys, NULL, error))
    return FALSE;
  if (!keys.enable)
    return TRUE;

  gint64 n_iters = rn_iters_of_step (config);
  double lr = rn_optimizer_lr (optimizer);
  rn_optimizer_scale_lr (optimizer, (double) batch_size * (double) n_iters / (double) keys.base_batch_size);
  g_message ("auto_scale_lr: the learning rate is %g = %g * (%" G_GINT64_FORMAT " images * 1 process * "
             "%" G_GINT64_FORMAT " accumulated iterations) / %" G_GINT64_FORMAT,
             rn_optimizer_lr (optimizer), lr, batch_size, n_iters, keys.base_batch_size);
  if (config->lr_config != NULL && rn_node_get (config->lr_config, "max_lr") != NULL)
    g_warning ("%s: auto_scale_lr scales optimizer.lr, which max_lr stands in for: the rate of this run is "
               "not scaled",
               rn_node_origin (rn_node_get (config->lr_config, "max_lr")));
  return TRUE;
}
