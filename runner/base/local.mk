librunner_internal_la_SOURCES += \
  runner/base/arena.c runner/base/arena.h \
  runner/base/atomic-file.c runner/base/atomic-file.h \
  runner/base/built-file.c runner/base/built-file.h \
  runner/base/error.c runner/base/error.h \
  runner/base/file-kind.c runner/base/file-kind.h \
  runner/base/folder.c runner/base/folder.h \
  runner/base/json.c runner/base/json.h \
  runner/base/log.c runner/base/log.h \
  runner/base/open-file.c runner/base/open-file.h \
  runner/base/registry.c runner/base/registry.h \
  runner/base/rng.c runner/base/rng.h \
  runner/base/signals.c runner/base/signals.h \
  runner/base/size.c runner/base/size.h \
  runner/base/suggest.c \
  runner/base/trace-file.c runner/base/trace-private.h runner/base/trace.c runner/base/trace.h
