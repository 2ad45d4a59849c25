runner_runner_SOURCES += runner/cli/main.c runner/cli/commands.h
