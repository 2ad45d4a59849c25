/* optimizer-sgd.c: SGD. */
#include "config.h"

#include "runner/optimizer-private.h"

typedef struct
{
  RnOptimizerBase base;
  double momentum, dampening;
  gboolean nesterov;
} Sgd;

static const RnKeySpec keys[] = {
  { .name = "lr",
    .type = RN_KEY_FLOAT,
    .offset = G_STRUCT_OFFSET (RnOptimizerBase, lr),
    .min = 0,
    .max = 1e6,
    .flags = RN_KEY_REQUIRED,
    .help = "learning rate" },
  RN_KEY (Sgd, momentum, RN_KEY_FLOAT, "0.0", "factor of the step before", .min = 0, .max = 1),
  RN_KEY (Sgd, dampening, RN_KEY_FLOAT, "0.0", "part of a gradient that does not enter the momentum",
          .min = 0, .max = 1),
  RN_OPTIMIZER_KEY_WEIGHT_DECAY ("0.0", "factor of the weights that is added to their gradients"),
  RN_KEY (Sgd, nesterov, RN_KEY_BOOL, "false", "look ahead by one step of momentum"),
  RN_OPTIMIZER_KEY_PARAMWISE,
  RN_OPTIMIZER_KEY_UNUSED ("foreach"),
  RN_OPTIMIZER_KEY_UNUSED ("differentiable"),
  RN_KEY_END,
};

static gboolean
read_sgd (gconstpointer self, const RnNode *config, RnUpdateRule *rule, double *momentum, GError **error)
{
  const Sgd *sgd = self;

  if (sgd->nesterov && (sgd->momentum == 0 || sgd->dampening != 0))
    return rn_node_error (config, error, "nesterov needs a momentum, and no dampening");
  *rule = (RnUpdateRule){ .kind = RN_UPDATE_SGD,
                          .momentum = sgd->momentum != 0,
                          .nesterov = sgd->nesterov,
                          .dampening = sgd->dampening };
  *momentum = sgd->momentum;
  return TRUE;
}

const RnOptimizerDesc rn_optimizer_sgd = {
  .component = { .name = "SGD",
                 .summary = "stochastic gradient descent with momentum (torch.optim.SGD)",
                 .instance_size = sizeof (Sgd),
                 .keys = keys },
  .read = read_sgd,
};
