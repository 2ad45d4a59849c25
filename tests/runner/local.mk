FAKE_TASK = tests/runner/fake-task.c tests/runner/fake-task.h

check_PROGRAMS += \
  tests/runner/test-runner

tests_runner_test_runner_SOURCES = tests/runner/test-runner.c $(FAKE_TASK)
tests_runner_test_runner_LDADD = $(TEST_LIBS)
