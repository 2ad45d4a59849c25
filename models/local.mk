librunner_internal_la_SOURCES += \
  models/builtin.h \
  models/component.c models/component.h \
  models/detector.h \
  models/init.h \
  models/model.c models/model.h \
  models/norm.c models/norm.h \
  models/part-memory.c models/part-memory.h \
  models/pretrained.c \
  models/register.c \
  models/backbones/resnet.c models/backbones/resnet.h \
  models/backbones/resnet-block.c \
  models/detectors/retinanet.c \
  models/heads/retina-head.c \
  models/losses/focal.c \
  models/losses/l1.c \
  models/losses/smooth-l1.c \
  models/necks/fpn.c \
  models/targets/anchor-generator.c \
  models/targets/delta-xywh-coder.c \
  models/targets/max-iou-assigner.c \
  models/targets/nms.c
