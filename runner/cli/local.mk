# The commands are in the library too, so that program and plugins share one copy of everything.
runner_runner_SOURCES += runner/cli/program.c
librunner_internal_la_SOURCES += \
  runner/cli/bench-child.c runner/cli/bench-pairs.c runner/cli/bench-pairs.h runner/cli/bench-print.c runner/cli/bench-run.c runner/cli/bench-run.h \
  runner/cli/bench-table.c runner/cli/bench-table.h \
  runner/cli/cmd-bench.c \
  runner/cli/cmd-browse.c \
  runner/cli/cmd-config.c \
  runner/cli/cmd-convert.c \
  runner/cli/cmd-devices.c \
  runner/cli/cmd-list.c \
  runner/cli/cmd-eval.c \
  runner/cli/cmd-infer.c \
  runner/cli/cmd-new-hook.c \
  runner/cli/cmd-plan.c \
  runner/cli/plan-json.c runner/cli/plan-layers.c runner/cli/plan-measure.c runner/cli/plan-picture.c runner/cli/plan-report.h runner/cli/plan-strategies.c runner/cli/plan-text.c \
  runner/cli/cmd-report.c \
  runner/cli/cmd-schedule.c \
  runner/cli/cmd-strategies.c \
  runner/cli/cmd-synth.c \
  runner/cli/cmd-train.c \
  runner/cli/commands.h \
  runner/cli/eval-output.c runner/cli/eval-output.h \
  runner/cli/common.c \
  runner/cli/common.h \
  runner/cli/json.c \
  runner/cli/json.h \
  runner/cli/main.c \
  runner/cli/shape.c \
  runner/cli/shape.h
