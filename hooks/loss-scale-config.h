/* loss-scale-config.h: the keys of the Fp16 hooks about the loss scale. */
#ifndef HOOKS_LOSS_SCALE_CONFIG_H
#define HOOKS_LOSS_SCALE_CONFIG_H

#include "hooks/loss-scaler.h"

#include <runner/engine.h>

G_BEGIN_DECLS

typedef struct
{
  const RnNode *loss_scale; /* NULL: the hook has no such key, and scales nothing */
  double min_scale, max_scale;
  gint64 max_skips;
  gboolean reset_scale;
} RnLossScaleConfig;

/* Makes a scaler as the keys say. @config: the map of the hook; NULL: it has none. */
gboolean rn_loss_scale_read (const RnLossScaleConfig *keys, const RnNode *config, RnLossScaler *scaler,
                             GError **error);
/* State in a checkpoint. A scale that stays is the configuration's; one that changes is the checkpoint's,
 * unless @reset_scale. The counts go on where scale and rule are the same. */
void rn_loss_scale_save (const RnLossScaler *scaler, RnRecord *state);
gboolean rn_loss_scale_load (RnLossScaler *scaler, gboolean reset_scale, const RnRecord *state,
                             GError **error);

G_END_DECLS

#endif
