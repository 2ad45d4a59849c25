# Sources of this folder.
check_PROGRAMS += \
  tests/boxes/test-anchors \
  tests/boxes/test-assign \
  tests/boxes/test-average-precision \
  tests/boxes/test-box \
  tests/boxes/test-coco-ap \
  tests/boxes/test-coder \
  tests/boxes/test-detect \
  tests/boxes/test-nms \
  tests/boxes/test-targets

tests_boxes_test_anchors_SOURCES = tests/boxes/test-anchors.c tests/boxes/fixtures.h tests/boxes/golden.h
tests_boxes_test_assign_SOURCES = tests/boxes/test-assign.c tests/boxes/fixtures.h tests/boxes/golden.h
tests_boxes_test_average_precision_SOURCES = tests/boxes/test-average-precision.c tests/boxes/golden.h
tests_boxes_test_box_SOURCES = tests/boxes/test-box.c
tests_boxes_test_coco_ap_SOURCES = tests/boxes/test-coco-ap.c tests/boxes/golden-coco.h
tests_boxes_test_coder_SOURCES = tests/boxes/test-coder.c tests/boxes/golden.h
tests_boxes_test_detect_SOURCES = tests/boxes/test-detect.c tests/boxes/fixtures.h
tests_boxes_test_nms_SOURCES = tests/boxes/test-nms.c tests/boxes/golden.h
tests_boxes_test_targets_SOURCES = tests/boxes/test-targets.c tests/boxes/fixtures.h

EXTRA_DIST += tests/boxes/make-golden.py tests/boxes/make-golden-coco.py
