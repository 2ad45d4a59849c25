#!/usr/bin/env python3
"""Writes names-torchvision.txt: what each tensor of torchvision's RetinaNet on ResNet-18 is called in MMDetection's.

The two are paired by place and not by name: both models hold the backbone, the pyramid's lateral convolutions, its output
convolutions, those of the extra levels, and the two towers with their predictors, each in the order of use. torchvision's own lists
are walked; MMDetection's names are written down from its state dict (see tests/models/parity/make_fixtures.py, which builds one).

    make-names.py > names-torchvision.txt       needs torchvision >= 0.13
"""
import torchvision
from torch import nn
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops.feature_pyramid_network import LastLevelP6P7

backbone = resnet_fpn_backbone(backbone_name='resnet18', weights=None, norm_layer=nn.BatchNorm2d,
                               returned_layers=[2, 3, 4], extra_blocks=LastLevelP6P7(256, 256))
model = torchvision.models.detection.RetinaNet(backbone, num_classes=4)
of = {id(t): name for name, t in list(model.named_parameters()) + list(model.named_buffers())}
convs = lambda modules: [m for m in modules.modules() if isinstance(m, nn.Conv2d)]


def pair(module, name):
    for own, tensor in list(module.named_parameters()) + list(module.named_buffers()):
        print(of[id(tensor)], f'{name}.{own}')


fpn, head = model.backbone.fpn, model.head
pair(model.backbone.body, 'backbone')  # the same modules under the same names in both
for i, conv in enumerate(convs(fpn.inner_blocks)):
    pair(conv, f'neck.lateral_convs.{i}.conv')
for i, conv in enumerate(convs(fpn.layer_blocks) + [fpn.extra_blocks.p6, fpn.extra_blocks.p7]):
    pair(conv, f'neck.fpn_convs.{i}.conv')
for tower, predictor, name, last in ((head.classification_head, 'cls_logits', 'cls_convs', 'retina_cls'),
                                     (head.regression_head, 'bbox_reg', 'reg_convs', 'retina_reg')):
    for i, conv in enumerate(convs(tower.conv)):
        pair(conv, f'bbox_head.{name}.{i}.conv')
    pair(getattr(tower, predictor), f'bbox_head.{last}')
