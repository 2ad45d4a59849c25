librunner_internal_la_SOURCES += \
  runner/config/config.h \
  runner/config/describe.c \
  runner/config/diff.c runner/config/diff.h \
  runner/config/dump.c \
  runner/config/load.c \
  runner/config/merge.c \
  runner/config/node.c runner/config/node-private.h \
  runner/config/override.c \
  runner/config/reference.c \
  runner/config/scalar.c \
  runner/config/schema.c runner/config/schema.h \
  runner/config/sniff.c runner/config/sniff.h \
  runner/config/yaml-explain.c runner/config/yaml-explain.h \
  runner/config/yaml.c
