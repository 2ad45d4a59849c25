/* resnet-block.c: the stem and the residual blocks of ResNet (He et al. 2016, fig. 5; He et al. 2019, arXiv
 * 1812.01187, fig. 2 for the variants). */
#include "config.h"

#include "models/backbones/resnet.h"
#include "models/init.h"

/* A convolution without bias and its batch norm: all that a ResNet is made of. */
typedef struct
{
  const char *conv, *norm; /* names */
  int channels, kernel;
  int stride, dilation; /* 0 means 1 */
  gboolean frozen;
  gboolean
      zero_init; /* gamma starts at 0, so that the block starts as the identity (Goyal et al. 2017, 5.1) */
} Unit;

static RnValueId
write_unit (const RnResNet *net, RnGraph *graph, RnValueId x, const Unit *unit)
{
  int dilation = MAX (unit->dilation, 1);
  x = rn_conv2d (graph, x,
                 &(RnConv2d){
                     .name = unit->conv,
                     .out_channels = unit->channels,
                     .kernel = unit->kernel,
                     .stride = unit->stride,
                     .pad = unit->kernel / 2 * dilation,
                     .dilation = dilation,
                     .frozen = unit->frozen,
                     .weight_init = rn_init_kaiming_normal (unit->channels, unit->kernel),
                 });
  return rn_batch_norm (graph, x,
                        &(RnBatchNorm){
                            .name = unit->norm,
                            .eps = net->norm.eps,
                            .momentum = net->norm.momentum,
                            .training = graph->mode == RN_MODE_TRAIN && !net->norm_eval && !unit->frozen,
                            .frozen = unit->frozen || !net->norm.requires_grad,
                            .weight_init = unit->zero_init ? 0 : 1,
                        });
}

RnValueId
rn_resnet_write_stem (const RnResNet *net, RnGraph *graph, RnValueId image, gboolean frozen)
{
  int channels = (int) net->stem_channels;
  const Unit plain[] = { { .conv = "conv1", .norm = "bn1", .channels = channels, .kernel = 7, .stride = 2 } };
  const Unit deep[] = {
    { .conv = "stem.0", .norm = "stem.1", .channels = channels / 2, .kernel = 3, .stride = 2 },
    { .conv = "stem.3", .norm = "stem.4", .channels = channels / 2, .kernel = 3 },
    { .conv = "stem.6", .norm = "stem.7", .channels = channels, .kernel = 3 },
  };
  const Unit *units = net->deep_stem ? deep : plain;
  gsize n_units = net->deep_stem ? G_N_ELEMENTS (deep) : G_N_ELEMENTS (plain);

  RnValueId x = image;
  for (gsize i = 0; i < n_units; i++)
    {
      Unit unit = units[i];
      unit.frozen = frozen;
      x = rn_relu (graph, write_unit (net, graph, x, &unit));
    }
  return rn_max_pool2d (graph, x, 3, 2, 1);
}

static RnValueId
write_downsample (const RnResNet *net, RnGraph *graph, RnValueId x, const RnResNetBlock *block)
{
  Unit unit = {
    .conv = net->avg_down ? "downsample.1" : "downsample.0",
    .norm = net->avg_down ? "downsample.2" : "downsample.1",
    .channels = block->width * rn_resnet_expansion (net),
    .kernel = 1,
    .stride = net->avg_down ? 1 : block->stride,
    .frozen = block->frozen,
  };
  if (net->avg_down && block->stride > 1)
    x = rn_avg_pool2d (graph, x, block->stride, block->stride, TRUE);
  return write_unit (net, graph, x, &unit);
}

static RnValueId
write_basic (const RnResNet *net, RnGraph *graph, RnValueId x, const RnResNetBlock *block)
{
  x = write_unit (net, graph, x,
                  &(Unit){ .conv = "conv1",
                           .norm = "bn1",
                           .channels = block->width,
                           .kernel = 3,
                           .stride = block->stride,
                           .dilation = block->dilation,
                           .frozen = block->frozen });
  x = rn_relu (graph, x);
  return write_unit (net, graph, x,
                     &(Unit){ .conv = "conv2",
                              .norm = "bn2",
                              .channels = block->width,
                              .kernel = 3,
                              .frozen = block->frozen,
                              .zero_init = net->zero_init_residual });
}

static RnValueId
write_bottleneck (const RnResNet *net, RnGraph *graph, RnValueId x, const RnResNetBlock *block)
{
  gboolean caffe = net->style == RN_RESNET_CAFFE;
  x = write_unit (net, graph, x,
                  &(Unit){ .conv = "conv1",
                           .norm = "bn1",
                           .channels = block->width,
                           .kernel = 1,
                           .stride = caffe ? block->stride : 1,
                           .frozen = block->frozen });
  x = rn_relu (graph, x);
  x = write_unit (net, graph, x,
                  &(Unit){ .conv = "conv2",
                           .norm = "bn2",
                           .channels = block->width,
                           .kernel = 3,
                           .stride = caffe ? 1 : block->stride,
                           .dilation = block->dilation,
                           .frozen = block->frozen });
  x = rn_relu (graph, x);
  return write_unit (net, graph, x,
                     &(Unit){ .conv = "conv3",
                              .norm = "bn3",
                              .channels = 4 * block->width,
                              .kernel = 1,
                              .frozen = block->frozen,
                              .zero_init = net->zero_init_residual });
}

RnValueId
rn_resnet_write_block (const RnResNet *net, RnGraph *graph, RnValueId x, const RnResNetBlock *block)
{
  RnValueId y =
      net->shape->bottleneck ? write_bottleneck (net, graph, x, block) : write_basic (net, graph, x, block);
  RnValueId identity = block->downsample ? write_downsample (net, graph, x, block) : x;
  return rn_relu (graph, rn_add (graph, y, identity));
}
