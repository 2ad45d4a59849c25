plugins_program = $(tests_program) tests/plugins/build.c tests/plugins/build.h

check_PROGRAMS += \
  tests/plugins/test-hooks \
  tests/plugins/test-plugins

tests_plugins_test_hooks_SOURCES = tests/plugins/test-hooks.c $(plugins_program)
tests_plugins_test_plugins_SOURCES = tests/plugins/test-plugins.c $(plugins_program)
EXTRA_DIST += tests/plugins/every-function.c tests/plugins/odd-plugin.c

EXTRA_DIST += \
  examples/draw-detections/Makefile examples/draw-detections/README.md \
  examples/draw-detections/config.yaml examples/draw-detections/draw_detections.c \
  examples/loss-plateau/Makefile examples/loss-plateau/README.md \
  examples/loss-plateau/config.yaml examples/loss-plateau/loss_plateau.c \
  examples/print-lr/Makefile examples/print-lr/README.md \
  examples/print-lr/config.yaml examples/print-lr/print_lr.c
