librunner_internal_la_SOURCES += \
  hooks/builtin.c hooks/builtin.h \
  hooks/checkpoint.c \
  hooks/ema.c \
  hooks/eval.c \
  hooks/iter-timer.c \
  hooks/lr-policy.c hooks/lr-policy.h \
  hooks/lr-updater.c \
  hooks/momentum-updater.c \
  hooks/num-class-check.c \
  hooks/optimizer.c \
  hooks/schedule.c hooks/schedule.h \
  hooks/text-logger.c
