plugins_program = $(tests_program) tests/plugins/build.c tests/plugins/build.h

check_PROGRAMS += \
  tests/plugins/test-plugins

tests_plugins_test_plugins_SOURCES = tests/plugins/test-plugins.c $(plugins_program)
EXTRA_DIST += tests/plugins/odd-plugin.c
