#include "config.h"
#include "models/norm.h"

#include "models/builtin.h"

typedef struct
{
  gboolean requires_grad;
  double eps, momentum;
} RnBatchNormKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnBatchNormKeys, requires_grad, RN_KEY_BOOL, "true", "gamma and beta are learned"),
  RN_KEY (RnBatchNormKeys, eps, RN_KEY_FLOAT, "1e-5", "added to the variance", .min = 1e-12, .max = 1),
  RN_KEY (RnBatchNormKeys, momentum, RN_KEY_FLOAT, "0.1", "weight of the batch in the running statistics",
          .min = 0, .max = 1),
  RN_KEY_END,
};

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnBatchNormKeys *k = self;
  *(RnNormConfig *) out =
      (RnNormConfig){ .eps = k->eps, .momentum = k->momentum, .requires_grad = k->requires_grad };
  return TRUE;
}

const RnMakerDesc rn_batch_norm_desc = {
  .component = { "BN", "batch normalisation (Ioffe & Szegedy 2015)", sizeof (RnBatchNormKeys), keys },
  .make = make,
};
