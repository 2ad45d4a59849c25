librunner_internal_la_SOURCES += \
  hooks/builtin.c hooks/builtin.h \
  hooks/checkpoint.c \
  hooks/eval.c \
  hooks/iter-timer.c \
  hooks/lr-policy.c hooks/lr-policy.h \
  hooks/lr-updater.c \
  hooks/num-class-check.c \
  hooks/optimizer.c \
  hooks/text-logger.c
