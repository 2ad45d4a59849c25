#include "config.h"

#include "runner/optimizer.h"

#include "runner/base/error.h"
#include "runner/base/registry.h"
#include "runner/config/schema.h"

#include <string.h>

/* The entry of `custom_keys` for parameter names that contain a text. */
typedef struct
{
  const char *part; /* lent by the configuration */
  double lr_mult, decay_mult;
} CustomKey;

typedef struct
{
  const RnNode *custom_keys;
  double bias_lr_mult, bias_decay_mult, norm_decay_mult;
} ParamwiseConfig;

/* What the keys fill. */
typedef struct
{
  double lr, momentum, dampening, weight_decay;
  gboolean nesterov;
  gboolean has_paramwise;
  ParamwiseConfig paramwise;
} Sgd;

struct _RnOptimizer
{
  const RnComponent *component;
  Sgd *sgd;
  GArray *custom_keys; /* of CustomKey, in the order in which they are tried */
};

static const RnKeySpec custom_key_keys[] = {
  RN_KEY (CustomKey, lr_mult, RN_KEY_FLOAT, "1.0", "factor of the learning rate", .min = 0, .max = 1e6),
  RN_KEY (CustomKey, decay_mult, RN_KEY_FLOAT, "1.0", "factor of the weight decay", .min = 0, .max = 1e6),
  RN_KEY_END,
};

static const RnKeySpec paramwise_keys[] = {
  RN_KEY (ParamwiseConfig, custom_keys, RN_KEY_NODE, "null",
          "part of a parameter's name -> {lr_mult, decay_mult}; the longest part wins, and the other rules "
          "do not apply",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (ParamwiseConfig, bias_lr_mult, RN_KEY_FLOAT, "1.0",
          "factor of the learning rate of biases, norm layers excepted", .min = 0, .max = 1e6),
  RN_KEY (ParamwiseConfig, bias_decay_mult, RN_KEY_FLOAT, "1.0",
          "factor of the weight decay of biases, norm layers excepted", .min = 0, .max = 1e6),
  RN_KEY (ParamwiseConfig, norm_decay_mult, RN_KEY_FLOAT, "1.0", "factor of the weight decay of norm layers",
          .min = 0, .max = 1e6),
  { .name = "dwconv_decay_mult", .type = RN_KEY_UNUSED, .help = "no model here has depthwise convolutions" },
  { .name = "dcn_offset_lr_mult",
    .type = RN_KEY_UNUSED,
    .help = "no model here has deformable convolutions" },
  { .name = "bypass_duplicate", .type = RN_KEY_UNUSED, .help = "a shared parameter is one parameter here" },
  RN_KEY_END,
};

static const RnKeySpec sgd_keys[] = {
  RN_KEY (Sgd, lr, RN_KEY_FLOAT, NULL, "learning rate", .min = 0, .max = 1e6, .flags = RN_KEY_REQUIRED),
  RN_KEY (Sgd, momentum, RN_KEY_FLOAT, "0.0", "factor of the step before", .min = 0, .max = 1),
  RN_KEY (Sgd, dampening, RN_KEY_FLOAT, "0.0", "part of a gradient that does not enter the momentum",
          .min = 0, .max = 1),
  RN_KEY (Sgd, weight_decay, RN_KEY_FLOAT, "0.0", "factor of the weights that is added to their gradients",
          .min = 0, .max = 1e6),
  RN_KEY (Sgd, nesterov, RN_KEY_BOOL, "false", "look ahead by one step of momentum"),
  { .name = "paramwise_cfg",
    .type = RN_KEY_MAP,
    .offset = G_STRUCT_OFFSET (Sgd, paramwise),
    .keys = paramwise_keys,
    .present = G_STRUCT_OFFSET (Sgd, has_paramwise),
    .flags = RN_KEY_NULLABLE,
    .help = "learning rate and weight decay by parameter" },
  RN_KEY_END,
};

static const RnComponent sgd_component = {
  .name = "SGD",
  .summary = "stochastic gradient descent with momentum (torch.optim.SGD)",
  .instance_size = sizeof (Sgd),
  .keys = sgd_keys,
};

void
rn_optimizers_register (void)
{
  RnRegistry *registry = rn_registry_family ("optimizer");
  if (rn_registry_lookup (registry, sgd_component.name) == NULL)
    rn_registry_add (registry, &sgd_component, NULL);
}

/* Longest first, then by alphabet, as MMCV sorts them. */
static int
compare_custom_keys (gconstpointer a, gconstpointer b)
{
  const CustomKey *x = a, *y = b;
  gsize x_length = strlen (x->part), y_length = strlen (y->part);

  if (x_length != y_length)
    return x_length > y_length ? -1 : 1;
  return strcmp (x->part, y->part);
}

static gboolean
read_custom_keys (const RnNode *map, GArray *custom_keys, GError **error)
{
  if (map == NULL)
    return TRUE;
  if (rn_node_kind (map) != RN_NODE_MAP)
    return rn_node_error (map, error,
                          "must be a map from a part of a parameter's name to {lr_mult, decay_mult}");
  for (guint i = 0; i < rn_node_size (map); i++)
    {
      CustomKey key = { 0 };
      if (!rn_keys_parse (custom_key_keys, rn_node_item (map, i), &key, NULL, error))
        return FALSE;
      key.part = rn_node_key (map, i);
      g_array_append_val (custom_keys, key);
    }
  g_array_sort (custom_keys, compare_custom_keys);
  return TRUE;
}

RnOptimizer *
rn_optimizer_new (const RnNode *config, GError **error)
{
  rn_optimizers_register ();
  const RnComponent *component;
  Sgd *sgd = rn_component_new (rn_registry_family ("optimizer"), config, NULL, NULL, &component, error);
  if (sgd == NULL)
    return NULL;

  g_autoptr (RnOptimizer) optimizer = g_new0 (RnOptimizer, 1);
  optimizer->component = component;
  optimizer->sgd = sgd;
  optimizer->custom_keys = g_array_new (FALSE, FALSE, sizeof (CustomKey));
  if (sgd->nesterov && (sgd->momentum == 0 || sgd->dampening != 0))
    {
      rn_node_error (config, error, "nesterov needs a momentum, and no dampening");
      return NULL;
    }
  if (sgd->has_paramwise && !read_custom_keys (sgd->paramwise.custom_keys, optimizer->custom_keys, error))
    return NULL;
  return g_steal_pointer (&optimizer);
}

void
rn_optimizer_free (RnOptimizer *optimizer)
{
  if (optimizer == NULL)
    return;
  g_array_unref (optimizer->custom_keys);
  rn_component_free (optimizer->component, optimizer->sgd);
  g_free (optimizer);
}

double
rn_optimizer_lr (const RnOptimizer *optimizer)
{
  return optimizer->sgd->lr;
}

void
rn_optimizer_scale_lr (RnOptimizer *optimizer, double factor)
{
  optimizer->sgd->lr *= factor;
}

double
rn_optimizer_momentum (const RnOptimizer *optimizer)
{
  return optimizer->sgd->momentum;
}

RnUpdateRule
rn_optimizer_rule (const RnOptimizer *optimizer)
{
  const Sgd *sgd = optimizer->sgd;
  return (RnUpdateRule){ .momentum = sgd->momentum != 0,
                         .nesterov = sgd->nesterov,
                         .dampening = sgd->dampening,
                         .weight_decay = sgd->weight_decay };
}

RnParamMultipliers
rn_optimizer_multipliers (const RnOptimizer *optimizer, const RnParam *param)
{
  RnParamMultipliers multipliers = { 1, 1 };
  const ParamwiseConfig *paramwise = &optimizer->sgd->paramwise;

  if (!optimizer->sgd->has_paramwise)
    return multipliers;
  for (guint i = 0; i < optimizer->custom_keys->len; i++)
    {
      const CustomKey *key = &g_array_index (optimizer->custom_keys, CustomKey, i);
      if (strstr (param->name, key->part) != NULL)
        return (RnParamMultipliers){ key->lr_mult, key->decay_mult };
    }
  if (param->is_norm)
    multipliers.decay_mult = paramwise->norm_decay_mult;
  else if (param->is_bias)
    multipliers = (RnParamMultipliers){ paramwise->bias_lr_mult, paramwise->bias_decay_mult };
  return multipliers;
}
