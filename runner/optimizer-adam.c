/* optimizer-adam.c: Adam, and AdamW, which differs in what weight decay means. */
#include "config.h"

#include "runner/optimizer-private.h"

typedef struct
{
  RnOptimizerBase base;
  GArray *betas; /* of double */
  double eps;
  gboolean amsgrad;
} Adam;

#define KEYS(decay_deflt, decay_help)                                                                     \
  { .name = "lr",                                                                                         \
    .type = RN_KEY_FLOAT,                                                                                 \
    .offset = G_STRUCT_OFFSET (RnOptimizerBase, lr),                                                      \
    .deflt = "0.001",                                                                                     \
    .min = 0,                                                                                             \
    .max = 1e6,                                                                                           \
    .help = "learning rate: about the largest change of a weight in one step" },                          \
      RN_KEY (Adam, betas, RN_KEY_FLOAT_LIST, "[0.9, 0.999]",                                             \
              "memory of the running means of gradients and of their squares; below 1; momentum_config "  \
              "changes the first",                                                                        \
              .min = 0, .max = 1),                                                                        \
      RN_KEY (Adam, eps, RN_KEY_FLOAT, "1e-8",                                                            \
              "added to the root of the mean square, against division by 0", .min = 0, .max = 1),         \
      RN_OPTIMIZER_KEY_WEIGHT_DECAY (decay_deflt, decay_help),                                            \
      RN_KEY (Adam, amsgrad, RN_KEY_BOOL, "false",                                                        \
              "divide by the largest mean square so far; takes as much memory as the gradients"),         \
      RN_OPTIMIZER_KEY_PARAMWISE, RN_OPTIMIZER_KEY_UNUSED ("foreach"), RN_OPTIMIZER_KEY_UNUSED ("fused"), \
      RN_OPTIMIZER_KEY_UNUSED ("capturable"), RN_OPTIMIZER_KEY_UNUSED ("differentiable"), RN_KEY_END

static const RnKeySpec adam_keys[] = { KEYS ("0.0",
                                             "factor of the weights that is added to their gradients") };
static const RnKeySpec adamw_keys[] = { KEYS (
    "0.01", "part of a weight that goes in each step, times the learning rate") };

static gboolean
read_rule (gconstpointer self, const RnNode *config, RnUpdateRule *rule, double *momentum, GError **error)
{
  const Adam *adam = self;
  const RnNode *node = rn_node_get (config, "betas");

  if (adam->betas->len != 2)
    return rn_node_error (node, error, "needs two numbers, such as [0.9, 0.999]");
  const double *betas = (const double *) (gconstpointer) adam->betas->data;
  if (!(betas[0] < 1 && betas[1] < 1))
    return rn_node_error (node, error, "both must be below 1, such as [0.9, 0.999]");
  *rule =
      (RnUpdateRule){ .kind = RN_UPDATE_ADAM, .beta2 = betas[1], .eps = adam->eps, .amsgrad = adam->amsgrad };
  *momentum = betas[0];
  return TRUE;
}

static gboolean
read_decoupled (gconstpointer self, const RnNode *config, RnUpdateRule *rule, double *momentum,
                GError **error)
{
  if (!read_rule (self, config, rule, momentum, error))
    return FALSE;
  rule->decoupled = TRUE;
  return TRUE;
}

const RnOptimizerDesc rn_optimizer_adam = {
  .component = { .name = "Adam",
                 .summary = "steps scaled by running means of gradients and squares (torch.optim.Adam)",
                 .instance_size = sizeof (Adam),
                 .keys = adam_keys },
  .read = read_rule,
};

const RnOptimizerDesc rn_optimizer_adamw = {
  .component = { .name = "AdamW",
                 .summary = "Adam with weight decay beside the gradients (torch.optim.AdamW)",
                 .instance_size = sizeof (Adam),
                 .keys = adamw_keys },
  .read = read_decoupled,
};
