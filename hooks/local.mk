librunner_internal_la_SOURCES += \
  hooks/accumulation.c hooks/accumulation.h \
  hooks/best.c hooks/best.h \
  hooks/builtin.c hooks/builtin.h \
  hooks/check-invalid-loss.c \
  hooks/checkpoint.c \
  hooks/closure.c \
  hooks/counting.c hooks/counting.h \
  hooks/dist-sampler-seed.c \
  hooks/early-stopping.c \
  hooks/ema.c \
  hooks/empty-cache.c \
  hooks/eta.c hooks/eta.h \
  hooks/eval.c \
  hooks/event-file.c hooks/event-file.h \
  hooks/grad-clip.c hooks/grad-clip.h \
  hooks/iter-timer.c \
  hooks/json-log.c hooks/json-log.h \
  hooks/log-window.c hooks/log-window.h \
  hooks/loss-scale-config.c hooks/loss-scale-config.h \
  hooks/loss-scaler.c hooks/loss-scaler.h \
  hooks/lr-policy.c hooks/lr-policy.h \
  hooks/lr-updater.c \
  hooks/memory-profiler.c \
  hooks/momentum-updater.c \
  hooks/num-class-check.c \
  hooks/optimizer-hook.c hooks/optimizer-hook.h \
  hooks/optimizer-resume.c \
  hooks/optimizer.c \
  hooks/profiler.c \
  hooks/schedule.c hooks/schedule.h \
  hooks/sync-buffers.c \
  hooks/tensorboard-logger.c \
  hooks/text-line.c hooks/text-line.h \
  hooks/text-logger.c \
  hooks/unused-key.h
