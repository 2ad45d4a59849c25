runner_runner_SOURCES += \
  runner/cli/cmd-config.c \
  runner/cli/commands.h \
  runner/cli/common.c \
  runner/cli/common.h \
  runner/cli/main.c
