/* init.h: the distributions that new weights are drawn from, as in MMCV and PyTorch. */
#ifndef MODELS_INIT_H
#define MODELS_INIT_H

#include <math.h>
#include "graph/params.h"

G_BEGIN_DECLS

static inline RnInit
rn_init_constant (double value)
{
  return (RnInit){ .kind = RN_INIT_CONSTANT, .a = value };
}

static inline RnInit
rn_init_normal (double deviation)
{
  return (RnInit){ .kind = RN_INIT_NORMAL, .a = 0, .b = deviation };
}

/* He et al. 2015, eq. 14 with the fan-out: keeps the variance of gradients through convolution and ReLU. */
static inline RnInit
rn_init_kaiming_normal (int out_channels, int kernel)
{
  return rn_init_normal (sqrt (2.0 / ((double) out_channels * kernel * kernel)));
}

/* Glorot & Bengio 2010, eq. 16. */
static inline RnInit
rn_init_xavier_uniform (int in_channels, int out_channels, int kernel)
{
  double bound = sqrt (6.0 / (((double) in_channels + out_channels) * kernel * kernel));
  return (RnInit){ .kind = RN_INIT_UNIFORM, .a = -bound, .b = bound };
}

G_END_DECLS

#endif
