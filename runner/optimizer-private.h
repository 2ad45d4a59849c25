/* optimizer-private.h: what the optimizers share: a table of keys each, over a struct whose head is the same.
 */
#ifndef RUNNER_OPTIMIZER_PRIVATE_H
#define RUNNER_OPTIMIZER_PRIVATE_H

#include "runner/base/registry.h"
#include "runner/optimizer.h"

G_BEGIN_DECLS

typedef struct
{
  const RnNode *custom_keys;
  double bias_lr_mult, bias_decay_mult, norm_decay_mult;
} RnParamwiseConfig;

/* The first member of every optimizer's struct. */
typedef struct
{
  double lr, weight_decay;
  gboolean has_paramwise;
  RnParamwiseConfig paramwise;
} RnOptimizerBase;

typedef struct
{
  RnComponent component;
  /* From the filled struct @self: the rule, without weight decay, and the momentum. */
  gboolean (*read) (gconstpointer self, const RnNode *config, RnUpdateRule *rule, double *momentum,
                    GError **error);
} RnOptimizerDesc;

extern const RnOptimizerDesc rn_optimizer_sgd, rn_optimizer_adam, rn_optimizer_adamw;

extern const RnKeySpec rn_paramwise_keys[];

#define RN_OPTIMIZER_KEY_WEIGHT_DECAY(deflt_, help_)                                                         \
  {                                                                                                          \
    .name = "weight_decay", .type = RN_KEY_FLOAT, .offset = G_STRUCT_OFFSET (RnOptimizerBase, weight_decay), \
    .deflt = (deflt_), .help = (help_), .min = 0, .max = 1e6                                                 \
  }

#define RN_OPTIMIZER_KEY_PARAMWISE                                                                       \
  {                                                                                                      \
    .name = "paramwise_cfg", .type = RN_KEY_MAP, .offset = G_STRUCT_OFFSET (RnOptimizerBase, paramwise), \
    .keys = rn_paramwise_keys, .present = G_STRUCT_OFFSET (RnOptimizerBase, has_paramwise),              \
    .flags = RN_KEY_NULLABLE, .help = "learning rate and weight decay by parameter"                      \
  }

/* Keys of torch.optim that choose between ways to compute the same. */
#define RN_OPTIMIZER_KEY_UNUSED(name_)                                                           \
  {                                                                                              \
    .name = (name_), .type = RN_KEY_UNUSED, .help = "there is one way to compute an update here" \
  }

G_END_DECLS

#endif
