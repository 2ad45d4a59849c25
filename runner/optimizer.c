#include "config.h"

#include "runner/optimizer-private.h"

#include "runner/base/error.h"
#include "runner/config/schema.h"

#include <string.h>

/* The entry of `custom_keys` for parameter names that contain a text. */
typedef struct
{
  const char *part; /* lent by the configuration */
  double lr_mult, decay_mult;
} CustomKey;

struct _RnOptimizer
{
  const RnComponent *component;
  RnOptimizerBase *base; /* the component's instance */
  RnUpdateRule rule;
  double momentum;
  GArray *custom_keys; /* of CustomKey, in the order in which they are tried */
};

static const RnKeySpec custom_key_keys[] = {
  RN_KEY (CustomKey, lr_mult, RN_KEY_FLOAT, "1.0", "factor of the learning rate", .min = 0, .max = 1e6),
  RN_KEY (CustomKey, decay_mult, RN_KEY_FLOAT, "1.0", "factor of the weight decay", .min = 0, .max = 1e6),
  RN_KEY_END,
};

const RnKeySpec rn_paramwise_keys[] = {
  RN_KEY (RnParamwiseConfig, custom_keys, RN_KEY_NODE, "null",
          "part of a parameter's name -> {lr_mult, decay_mult}; the longest part wins, and the other rules "
          "do not apply",
          .flags = RN_KEY_NULLABLE),
  RN_KEY (RnParamwiseConfig, bias_lr_mult, RN_KEY_FLOAT, "1.0",
          "factor of the learning rate of biases, norm layers excepted", .min = 0, .max = 1e6),
  RN_KEY (RnParamwiseConfig, bias_decay_mult, RN_KEY_FLOAT, "1.0",
          "factor of the weight decay of biases, norm layers excepted", .min = 0, .max = 1e6),
  RN_KEY (RnParamwiseConfig, norm_decay_mult, RN_KEY_FLOAT, "1.0",
          "factor of the weight decay of norm layers", .min = 0, .max = 1e6),
  { .name = "dwconv_decay_mult", .type = RN_KEY_UNUSED, .help = "no model here has depthwise convolutions" },
  { .name = "dcn_offset_lr_mult",
    .type = RN_KEY_UNUSED,
    .help = "no model here has deformable convolutions" },
  { .name = "bypass_duplicate", .type = RN_KEY_UNUSED, .help = "a shared parameter is one parameter here" },
  RN_KEY_END,
};

void
rn_optimizers_register (void)
{
  static const RnOptimizerDesc *const all[] = { &rn_optimizer_sgd, &rn_optimizer_adam, &rn_optimizer_adamw };
  RnRegistry *registry = rn_registry_family ("optimizer");

  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    if (rn_registry_lookup (registry, all[i]->component.name) == NULL)
      rn_registry_add (registry, &all[i]->component, NULL);
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

static gboolean
read_parts (RnOptimizer *optimizer, const RnNode *config, GError **error)
{
  /* every component of the family is the head of such a descriptor */
  const RnOptimizerDesc *desc = (const RnOptimizerDesc *) (gconstpointer) optimizer->component;
  const RnOptimizerBase *base = optimizer->base;

  if (!desc->read (base, config, &optimizer->rule, &optimizer->momentum, error))
    return FALSE;
  optimizer->rule.weight_decay = base->weight_decay;
  return !base->has_paramwise
         || read_custom_keys (base->paramwise.custom_keys, optimizer->custom_keys, error);
}

RnOptimizer *
rn_optimizer_new (const RnNode *config, GError **error)
{
  rn_optimizers_register ();
  const RnComponent *component;
  RnOptimizerBase *base =
      rn_component_new (rn_registry_family ("optimizer"), config, NULL, NULL, &component, error);
  if (base == NULL)
    return NULL;

  g_autoptr (RnOptimizer) optimizer = g_new0 (RnOptimizer, 1);
  optimizer->component = component;
  optimizer->base = base;
  optimizer->custom_keys = g_array_new (FALSE, FALSE, sizeof (CustomKey));
  return read_parts (optimizer, config, error) ? g_steal_pointer (&optimizer) : NULL;
}

void
rn_optimizer_free (RnOptimizer *optimizer)
{
  if (optimizer == NULL)
    return;
  g_array_unref (optimizer->custom_keys);
  rn_component_free (optimizer->component, optimizer->base);
  g_free (optimizer);
}

double
rn_optimizer_lr (const RnOptimizer *optimizer)
{
  return optimizer->base->lr;
}

void
rn_optimizer_scale_lr (RnOptimizer *optimizer, double factor)
{
  optimizer->base->lr *= factor;
}

double
rn_optimizer_momentum (const RnOptimizer *optimizer)
{
  return optimizer->momentum;
}

RnUpdateRule
rn_optimizer_rule (const RnOptimizer *optimizer)
{
  return optimizer->rule;
}

RnUpdateRule
rn_optimizer_scheduled_rule (const RnOptimizer *optimizer, const RnNode *momentum_config)
{
  RnUpdateRule rule = optimizer->rule;

  rule.momentum = rule.momentum || !rn_node_is_null (momentum_config);
  return rule;
}

RnParamMultipliers
rn_optimizer_multipliers (const RnOptimizer *optimizer, const RnParam *param)
{
  RnParamMultipliers multipliers = { 1, 1 };
  const RnParamwiseConfig *paramwise = &optimizer->base->paramwise;

  if (!optimizer->base->has_paramwise)
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
