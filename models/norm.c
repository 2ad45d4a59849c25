#include "config.h"
#include "models/norm.h"

#include "models/builtin.h"

static const RnKeySpec keys[] = {
  RN_KEY (RnNormConfig, requires_grad, RN_KEY_BOOL, "true", "gamma and beta are learned"),
  RN_KEY (RnNormConfig, eps, RN_KEY_FLOAT, "1e-5", "added to the variance", .min = 1e-12, .max = 1),
  RN_KEY (RnNormConfig, momentum, RN_KEY_FLOAT, "0.1", "weight of the batch in the running statistics",
          .min = 0, .max = 1),
  RN_KEY_END,
};

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  *(RnNormConfig *) out = *(const RnNormConfig *) self;
  return TRUE;
}

const RnMakerDesc rn_batch_norm_desc = {
  .component = { "BN", "batch normalisation (Ioffe & Szegedy 2015)", sizeof (RnNormConfig), keys },
  .make = make,
};
