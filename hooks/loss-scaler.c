#include "config.h"

#include "hooks/loss-scaler.h"

/* The forward pass multiplies by a float, so that is what the step must divide by. */
static void
set_scale (RnLossScaler *scaler, double scale)
{
  scaler->scale = (double) (float) CLAMP (scale, scaler->min_scale, scaler->max_scale);
}

void
rn_loss_scaler_start (RnLossScaler *scaler, double scale)
{
  set_scale (scaler, scale);
  scaler->n_good = scaler->n_updates = 0;
  scaler->last_overflow = -1;
  scaler->n_skipped = scaler->n_stuck = 0;
}

static void
update_grad (RnLossScaler *scaler, gboolean is_overflow)
{
  if (is_overflow)
    {
      set_scale (scaler, scaler->scale * scaler->backoff);
      scaler->n_good = 0;
    }
  else if (++scaler->n_good >= scaler->interval)
    {
      set_scale (scaler, scaler->scale * scaler->growth);
      scaler->n_good = 0;
    }
}

static void
update_loss (RnLossScaler *scaler, gboolean is_overflow)
{
  if (is_overflow)
    {
      set_scale (scaler, scaler->scale * scaler->backoff);
      scaler->last_overflow = scaler->n_updates;
    }
  else if ((scaler->n_updates - scaler->last_overflow) % scaler->interval == 0)
    set_scale (scaler, scaler->scale * scaler->growth);
  scaler->n_updates++;
}

void
rn_loss_scaler_update (RnLossScaler *scaler, gboolean is_overflow)
{
  double before = scaler->scale;

  if (scaler->form == RN_SCALER_GRAD)
    update_grad (scaler, is_overflow);
  else if (scaler->form == RN_SCALER_LOSS)
    update_loss (scaler, is_overflow);
  if (is_overflow)
    scaler->n_skipped++;
  scaler->n_stuck = is_overflow && scaler->scale >= before ? scaler->n_stuck + 1 : 0;
}
