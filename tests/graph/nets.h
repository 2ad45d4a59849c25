/* nets.h: small networks that the tests of graph/ share. */
#ifndef TESTS_GRAPH_NETS_H
#define TESTS_GRAPH_NETS_H

#include "graph/passes.h"

typedef struct
{
  gboolean bn_training; /* statistics of the batch */
  gboolean frozen_stem; /* stem and the first block need no gradient */
} NetOptions;

/*
 * conv, batch norm, ReLU, max pooling; a residual block; one with stride 2 and a projection, in ResNet's
 * order; a convolution to 4 channels and focal loss over 2 anchors of 2 classes. Image 2x3x13x11.
 */
void net_residual (RnGraph *graph, const NetOptions *options);
/*
 * Three maps of 7x6, 4x3 and 2x2 cells, a feature pyramid with a fourth level on top, and a head of two
 * branches whose parameters all levels share; focal and smooth L1 loss. Groups as in RetinaNet: class and box
 * of level 0, of level 1, ...
 */
void net_pyramid (RnGraph *graph, const NetOptions *options);

#define NET_CLASSES 2
#define NET_ANCHORS 2 /* per cell */
#define NET_BATCH 2

#endif
