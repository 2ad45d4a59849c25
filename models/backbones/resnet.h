/*
 * resnet.h: what the two files of the ResNet backbone share: the keys, and the writing of stem and blocks.
 */
#ifndef MODELS_BACKBONES_RESNET_H
#define MODELS_BACKBONES_RESNET_H

#include "models/component.h"
#include "models/norm.h"

G_BEGIN_DECLS

#define RN_RESNET_MAX_STAGES 4

typedef enum
{
  RN_RESNET_PYTORCH, /* the stride of a bottleneck is in its 3x3 convolution */
  RN_RESNET_CAFFE,   /* in the first 1x1 convolution */
} RnResNetStyle;

typedef struct
{
  int depth;
  gboolean bottleneck; /* 1x1, 3x3, 1x1 to 4 times the channels; else two 3x3 */
  int n_blocks[RN_RESNET_MAX_STAGES];
} RnResNetShape;

typedef struct
{
  gint64 depth, num_stages, stem_channels, base_channels, frozen_stages;
  GArray *strides, *dilations, *out_indices;
  int style; /* RnResNetStyle */
  gboolean deep_stem, avg_down, norm_eval, zero_init_residual;
  const RnNode *norm_cfg, *init_cfg; /* not used after setup */
  RnPartMemory memory;

  /* from the keys */
  const RnResNetShape *shape;
  RnNormConfig norm;
  char *pretrained;
} RnResNet;

/* One residual block. */
typedef struct
{
  int width; /* channels of its 3x3 convolutions */
  int stride, dilation;
  gboolean downsample; /* the identity path has a convolution of its own */
  gboolean frozen;
} RnResNetBlock;

static inline int
rn_resnet_expansion (const RnResNet *net)
{
  return net->shape->bottleneck ? 4 : 1;
}

/* Up to and with the max pooling: a quarter of the size. */
RnValueId rn_resnet_write_stem (const RnResNet *net, RnGraph *graph, RnValueId image, gboolean frozen);
/* The scope ("layer1.0") is the caller's. */
RnValueId rn_resnet_write_block (const RnResNet *net, RnGraph *graph, RnValueId x,
                                 const RnResNetBlock *block);

G_END_DECLS

#endif
