#include "config.h"

#include "hooks/loss-scale-config.h"

#include <string.h>

/* What MMCV's scalers take as constructor arguments. */
typedef struct
{
  int mode;
  double init_scale, growth_factor, backoff_factor, scale_factor;
  gint64 growth_interval, scale_window;
} ScalerMap;

static const char *const mode_names[] = { "dynamic", "static", NULL };

enum
{
  MODE_DYNAMIC,
  MODE_STATIC,
};

#define MIN_SCALE 1e-9
#define MAX_SCALE 1e18 /* far from a float's largest number, times what a loss is divided by */

static const RnKeySpec map_keys[] = {
  RN_KEY (ScalerMap, init_scale, RN_KEY_FLOAT, "null", "first scale; default 65536, of LossScaler 2^32",
          .min = MIN_SCALE, .max = MAX_SCALE, .flags = RN_KEY_NULLABLE),
  RN_KEY (ScalerMap, growth_factor, RN_KEY_FLOAT, "2", "GradScaler: factor after growth_interval good steps",
          .min = 1, .max = 1e6),
  RN_KEY (ScalerMap, backoff_factor, RN_KEY_FLOAT, "0.5", "GradScaler: factor after an overflow", .min = 1e-6,
          .max = 1),
  RN_KEY (ScalerMap, growth_interval, RN_KEY_INT, "2000", "GradScaler: good steps in a row", .min = 1,
          .max = 1e12),
  RN_KEY (ScalerMap, mode, RN_KEY_ENUM, "dynamic", "LossScaler: static keeps init_scale",
          .names = mode_names),
  RN_KEY (ScalerMap, scale_factor, RN_KEY_FLOAT, "2", "LossScaler: factor up, and divisor down", .min = 1,
          .max = 1e6),
  RN_KEY (ScalerMap, scale_window, RN_KEY_INT, "1000", "LossScaler: steps between two rises", .min = 1,
          .max = 1e12),
  RN_KEY_END,
};

static const char *const grad_keys[] = { "growth_factor", "backoff_factor", "growth_interval", NULL };
static const char *const loss_keys[] = { "mode", "scale_factor", "scale_window", NULL };

/* GradScaler's defaults; it has no smallest scale, but below this one nothing is gained. */
static const RnLossScaler grad_scaler = { .form = RN_SCALER_GRAD,
                                          .growth = 2,
                                          .backoff = 0.5,
                                          .interval = 2000,
                                          .min_scale = 0x1p-16,
                                          .max_scale = 0x1p59 };

/* The first of @names that @map has, or NULL; also when there is no map. */
static const RnNode *
find_any (const RnNode *map, const char *const *names)
{
  const RnNode *found = NULL;
  for (; map != NULL && found == NULL && *names != NULL; names++)
    found = rn_node_get (map, *names);
  return found;
}

static gboolean
read_map (const RnNode *map, RnLossScaler *scaler, double *init_scale, GError **error)
{
  const RnNode *grad = find_any (map, grad_keys), *loss = find_any (map, loss_keys);
  ScalerMap values;

  if (!rn_node_read (map, map_keys, &values, error))
    return FALSE;
  if (grad != NULL && loss != NULL)
    return rn_node_error (
        loss, error,
        "is a key of MMCV's LossScaler, beside %s of GradScaler; what works: "
        "{init_scale, growth_factor, backoff_factor, growth_interval}, or {init_scale, mode, "
        "scale_factor, scale_window}",
        rn_node_dotted (grad));
  *scaler = grad_scaler;
  scaler->growth = values.growth_factor;
  scaler->backoff = values.backoff_factor;
  scaler->interval = values.growth_interval;
  *init_scale = 0x1p16;
  if (loss != NULL)
    {
      scaler->form = values.mode == MODE_STATIC ? RN_SCALER_STATIC : RN_SCALER_LOSS;
      scaler->growth = values.scale_factor;
      scaler->backoff = 1 / values.scale_factor;
      scaler->interval = values.scale_window;
      scaler->min_scale = 1;
      *init_scale = 0x1p32;
    }
  if (!isnan (values.init_scale))
    *init_scale = values.init_scale;
  return TRUE;
}

static gboolean
read_number (const RnNode *node, RnLossScaler *scaler, double *init_scale, GError **error)
{
  double scale = rn_node_as_float (node);

  if (!(scale >= MIN_SCALE && scale <= MAX_SCALE))
    return rn_node_error (node, error, "must be between %g and %g, not %g", MIN_SCALE, MAX_SCALE, scale);
  *scaler = (RnLossScaler){ .form = RN_SCALER_STATIC };
  *init_scale = scale;
  return TRUE;
}

static gboolean
read_form (const RnNode *node, RnLossScaler *scaler, double *init_scale, GError **error)
{
  switch (rn_node_kind (node))
    {
    case RN_NODE_INT:
    case RN_NODE_FLOAT:
      return read_number (node, scaler, init_scale, error);
    case RN_NODE_STRING:
      if (strcmp (rn_node_as_string (node), "dynamic") != 0)
        break;
      *scaler = grad_scaler;
      *init_scale = 0x1p16;
      return TRUE;
    case RN_NODE_MAP:
      return read_map (node, scaler, init_scale, error);
    case RN_NODE_NULL:
    case RN_NODE_BOOL:
    case RN_NODE_LIST:
      break;
    }
  return rn_node_error (node, error,
                        "must be a number, for a scale that stays; dynamic; or a map, such as {init_scale: "
                        "65536, growth_interval: 2000}");
}

static gboolean
check_static (const RnNode *config, GError **error)
{
  static const char *const names[] = { "min_scale", "max_scale", NULL };
  const RnNode *node = find_any (config, names);

  if (!rn_node_is_null (node))
    return rn_node_error (node, error,
                          "is for a scale that changes; what works with it: loss_scale: dynamic");
  return TRUE;
}

gboolean
rn_loss_scale_read (const RnLossScaleConfig *keys, const RnNode *config, RnLossScaler *scaler, GError **error)
{
  double init_scale = 1;

  if (!read_form (keys->loss_scale, scaler, &init_scale, error))
    return FALSE;
  if (scaler->form == RN_SCALER_STATIC)
    {
      scaler->min_scale = scaler->max_scale = init_scale;
      rn_loss_scaler_start (scaler, init_scale);
      return check_static (config, error);
    }
  if (!isnan (keys->min_scale))
    scaler->min_scale = keys->min_scale;
  if (!isnan (keys->max_scale))
    scaler->max_scale = keys->max_scale;
  if (init_scale < scaler->min_scale || init_scale > scaler->max_scale)
    return rn_node_error (keys->loss_scale, error,
                          "the first scale %g is not between min_scale %g and max_scale %g", init_scale,
                          scaler->min_scale, scaler->max_scale);
  rn_loss_scaler_start (scaler, init_scale);
  return TRUE;
}

/* ---- State ---- */

static const char *const form_names[] = { "static", "GradScaler", "LossScaler" };

void
rn_loss_scale_save (const RnLossScaler *scaler, RnRecord *state)
{
  rn_record_set_string (state, "scaler", form_names[scaler->form]);
  rn_record_set_float (state, "scale", scaler->scale);
  rn_record_set_int (state, "good_updates", scaler->n_good);
  rn_record_set_int (state, "updates", scaler->n_updates);
  rn_record_set_int (state, "last_overflow", scaler->last_overflow);
  rn_record_set_int (state, "skipped", scaler->n_skipped);
  rn_record_set_int (state, "stuck", scaler->n_stuck);
}

gboolean
rn_loss_scale_load (RnLossScaler *scaler, gboolean reset_scale, const RnRecord *state, GError **error)
{
  const char *form = rn_record_string (state, "scaler");
  double scale = rn_record_float (state, "scale", NAN);
  gint64 n_good = rn_record_int (state, "good_updates", -1), n_updates = rn_record_int (state, "updates", -1),
         last_overflow = rn_record_int (state, "last_overflow", -2),
         n_skipped = rn_record_int (state, "skipped", -1), n_stuck = rn_record_int (state, "stuck", -1);

  if (form == NULL)
    return TRUE;
  if (!(scale >= MIN_SCALE && scale <= MAX_SCALE) || n_good < 0 || n_good == G_MAXINT64 || n_updates < 0
      || n_updates == G_MAXINT64 || last_overflow < -1 || last_overflow >= n_updates || n_skipped < 0
      || n_skipped == G_MAXINT64 || n_stuck < 0 || n_stuck > n_skipped)
    return rn_hook_error (error, "the state of the loss scaler is damaged");
  scaler->n_skipped = n_skipped;
  gboolean was_static = strcmp (form, form_names[RN_SCALER_STATIC]) == 0;
  if (reset_scale || was_static != (scaler->form == RN_SCALER_STATIC))
    return TRUE;
  if (!was_static)
    scaler->scale = (double) (float) CLAMP (scale, scaler->min_scale, scaler->max_scale);
  if (scaler->scale != scale || strcmp (form, form_names[scaler->form]) != 0)
    return TRUE; /* what was counted was about another scale, or another rule */
  scaler->n_good = n_good;
  scaler->n_updates = n_updates;
  scaler->last_overflow = last_overflow;
  scaler->n_stuck = n_stuck;
  return TRUE;
}
