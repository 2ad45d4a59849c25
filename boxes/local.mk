# Sources of this folder.
librunner_internal_la_SOURCES += \
  boxes/anchors.c boxes/anchors.h \
  boxes/assign.c boxes/assign.h \
  boxes/average-precision.c boxes/average-precision.h \
  boxes/box.h \
  boxes/coco-ap.c boxes/coco-ap.h \
  boxes/coder.c boxes/coder.h \
  boxes/detect.c boxes/detect.h \
  boxes/nms.c boxes/nms.h \
  boxes/targets.c boxes/targets.h
