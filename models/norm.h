/* norm.h: norm_cfg, the keys of a batch norm. */
#ifndef MODELS_NORM_H
#define MODELS_NORM_H

#include <glib.h>

G_BEGIN_DECLS

/* What family "norm" makes. */
typedef struct
{
  double eps, momentum;
  gboolean requires_grad; /* gamma and beta are learned */
} RnNormConfig;

G_END_DECLS

#endif
