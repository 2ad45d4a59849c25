rnincludedir = $(includedir)/runner-1/runner
rninclude_HEADERS = runner/batch.h runner/engine.h runner/export.h runner/hook.h runner/keys.h runner/node.h runner/tensor.h
nodist_rninclude_HEADERS = runner/version.h

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runner/runner-1.pc
plugindir = $(libdir)/runner-1/plugins

# Where the installed program looks for plugins and profiles of devices, and where authors find the .pc file.
nodist_librunner_internal_la_SOURCES += runner/install-dirs.h
CLEANFILES += runner/install-dirs.h
runner/install-dirs.h: Makefile
	$(AM_V_GEN)$(MKDIR_P) runner && { echo '#define RN_PLUGIN_DIR "$(plugindir)"'; \
	  echo '#define RN_PKGCONFIG_DIR "$(pkgconfigdir)"'; \
	  echo '#define RN_PROFILE_DIR "$(cudaprofilesdir)"'; } > $@.tmp \
	  && { cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@; }
runner/device-profile.lo runner/plugin.lo runner/new-hook.lo: runner/install-dirs.h

# The templates of `runner new-hook`.
NEW_HOOK_FILES = runner/new-hook/hook.c.tmpl runner/new-hook/Makefile.tmpl runner/new-hook/check.sh.tmpl \
  runner/new-hook/check.yaml.tmpl runner/new-hook/README.md.tmpl
EXTRA_DIST += $(NEW_HOOK_FILES) runner/new-hook/text.awk
nodist_librunner_internal_la_SOURCES += runner/new-hook-text.h
CLEANFILES += runner/new-hook-text.h
runner/new-hook-text.h: $(NEW_HOOK_FILES) runner/new-hook/text.awk
	$(AM_V_GEN)$(MKDIR_P) runner && (cd $(srcdir) && LC_ALL=C $(AWK) -f runner/new-hook/text.awk \
	  $(NEW_HOOK_FILES)) > $@.tmp && mv $@.tmp $@
runner/new-hook.lo: runner/new-hook-text.h

librunner_internal_la_SOURCES += runner/auto-scale-lr.c runner/auto-scale-lr.h runner/check.c runner/check.h \
  runner/device-profile.c runner/device-profile.h
librunner_internal_la_SOURCES += \
  runner/device-config.c runner/device-config.h runner/open-device.c runner/open-device.h \
  runner/fp16-config.c runner/fp16-config.h \
  runner/job-precision.c runner/job-precision.h \
  runner/memory-config.c runner/memory-config.h \
  runner/run-config-hints.c runner/run-config-hints.h runner/run-config.c runner/run-config.h
librunner_internal_la_SOURCES += \
  runner/image-files.c runner/image-files.h \
  runner/infer.c runner/infer.h \
  runner/browse.c runner/browse.h \
  runner/budget.c runner/budget.h runner/fit.c runner/fit.h runner/largest-batch.c runner/largest-batch.h \
  runner/predict.c runner/predict.h \
  runner/job.c runner/job.h \
  runner/activations.c \
  runner/non-finite.c runner/programs-memory.c runner/programs-private.h runner/programs-results.c runner/programs-run.c runner/programs.c runner/programs.h \
  runner/random-batch.c runner/random-batch.h
librunner_internal_la_SOURCES += \
  runner/batches.c runner/batches.h \
  runner/checkpoint-list.c runner/checkpoint-list.h \
  runner/checkpoint.c runner/checkpoint.h \
  runner/crc32c.c runner/crc32c.h \
  runner/duration.c \
  runner/engine-api.c \
  runner/eval-table.c \
  runner/evaluate.c runner/evaluate.h \
  runner/hook-api.c \
  runner/hook-class.c runner/hook-class.h \
  runner/hook-hints.c runner/hook-hints.h \
  runner/hook-list.c runner/hook-list.h \
  runner/hook-wants.c runner/hook-wants.h \
  runner/log-buffer.c runner/log-buffer.h \
  runner/log-means.c runner/log-means.h \
  runner/loop-private.h runner/loop.c runner/losses.c runner/steps.c \
  runner/metrics.c \
  runner/moving-mean.c runner/moving-mean.h \
  runner/optimizer-adam.c runner/optimizer-private.h runner/optimizer-sgd.c runner/optimizer.c \
  runner/optimizer.h \
  runner/programs-step.c runner/task-tensors.c runner/task-tensors.h \
  runner/param-io.c runner/param-io.h \
  runner/place.c runner/place.h \
  runner/new-hook.c runner/new-hook.h \
  runner/plugin.c runner/plugin.h \
  runner/pr-chart.c runner/pr-chart.h \
  runner/process-memory.c runner/process-memory.h \
  runner/record.c runner/record.h \
  runner/report-draw.c runner/report.c runner/report.h \
  runner/resume.c \
  runner/run-history.c runner/run-history.h \
  runner/run-log.c runner/run-log.h \
  runner/runner-private.h runner/runner.c runner/runner.h \
  runner/schedule-preview.c runner/schedule-preview.h \
  runner/strategies.c runner/strategies.h runner/strategy-rules.c runner/strategy-rules.h \
  runner/safetensors-format.h runner/safetensors-writer.c runner/safetensors.c runner/safetensors.h \
  runner/task.h \
  runner/times.h \
  runner/train-task.c runner/train-task.h \
  runner/train.c runner/train.h \
  runner/training-hooks.c \
  runner/validation.c \
  runner/workflow.c runner/workflow.h
librunner_internal_la_SOURCES += \
  runner/draw/chart.h \
  runner/draw/axis.c runner/draw/axis.h \
  runner/draw/bars.c \
  runner/draw/bars.h \
  runner/draw/chart.c \
  runner/draw/color.c \
  runner/draw/picture.c \
  runner/draw/picture.h \
  runner/draw/surface.c runner/draw/surface.h runner/draw/timeline.c runner/draw/timeline.h \
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
