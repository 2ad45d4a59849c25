rnincludedir = $(includedir)/runner-1/runner
rninclude_HEADERS = runner/batch.h runner/engine.h runner/export.h runner/hook.h runner/keys.h runner/node.h runner/tensor.h
nodist_rninclude_HEADERS = runner/version.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runner/runner-1.pc

librunner_internal_la_SOURCES += runner/check.c runner/check.h
librunner_internal_la_SOURCES += \
  runner/run-config-hints.c runner/run-config-hints.h runner/run-config.c runner/run-config.h
librunner_internal_la_SOURCES += \
  runner/image-files.c runner/image-files.h \
  runner/infer.c runner/infer.h \
  runner/browse.c runner/browse.h \
  runner/job.c runner/job.h \
  runner/non-finite.c runner/programs-private.h runner/programs-run.c runner/programs.c runner/programs.h \
  runner/random-batch.c runner/random-batch.h
librunner_internal_la_SOURCES += \
  runner/checkpoint-list.c runner/checkpoint-list.h \
  runner/checkpoint.c runner/checkpoint.h \
  runner/crc32c.c runner/crc32c.h \
  runner/duration.c \
  runner/engine-api.c \
  runner/eval-table.c \
  runner/evaluate.c runner/evaluate.h \
  runner/hook-api.c \
  runner/hook-class.c runner/hook-class.h \
  runner/hook-list.c runner/hook-list.h \
  runner/hook-wants.c runner/hook-wants.h \
  runner/log-buffer.c runner/log-buffer.h \
  runner/loop.c \
  runner/metrics.c \
  runner/moving-mean.c runner/moving-mean.h \
  runner/optimizer.c runner/optimizer.h \
  runner/param-io.c runner/param-io.h \
  runner/pr-chart.c runner/pr-chart.h \
  runner/process-memory.c runner/process-memory.h \
  runner/record.c runner/record.h \
  runner/report-draw.c runner/report.c runner/report.h \
  runner/resume.c \
  runner/run-log.c runner/run-log.h \
  runner/runner-private.h runner/runner.c runner/runner.h \
  runner/safetensors-format.h runner/safetensors-writer.c runner/safetensors.c runner/safetensors.h \
  runner/task.h \
  runner/train-task.c runner/train-task.h \
  runner/train.c runner/train.h \
  runner/training-hooks.c
librunner_internal_la_SOURCES += \
  runner/draw/chart.h \
  runner/draw/axis.c runner/draw/axis.h \
  runner/draw/chart.c \
  runner/draw/color.c \
  runner/draw/picture.c \
  runner/draw/picture.h \
  runner/draw/surface.c runner/draw/surface.h \
  runner/draw/show.c \
  runner/draw/show.h
librunner_internal_la_SOURCES += \
  runner/weights/pickle-globals.c runner/weights/pickle-private.h \
  runner/weights/pickle-value.c runner/weights/pickle.c runner/weights/pickle.h \
  runner/weights/torch-legacy.c \
  runner/weights/torch-writer.c runner/weights/torch-writer.h \
  runner/weights/torch-zip.c \
  runner/weights/weights-private.h \
  runner/weights/weights-torch.c \
  runner/weights/weights-types.c runner/weights/weights-types.h \
  runner/weights/weights.c runner/weights/weights.h \
  runner/weights/zip-writer.c runner/weights/zip-writer.h
librunner_internal_la_SOURCES += \
  runner/weights/convert.c runner/weights/convert.h \
  runner/weights/load-job.c \
  runner/weights/load-start.c runner/weights/load-start.h \
  runner/weights/load.c runner/weights/load.h \
  runner/weights/lookup.c runner/weights/lookup.h \
  runner/weights/names-map.c runner/weights/names-map.h \
  runner/weights/names.c runner/weights/names.h
