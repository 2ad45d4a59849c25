check_PROGRAMS += \
  tests/hooks/test-lr-policy \
  tests/hooks/test-text-logger

tests_hooks_test_lr_policy_SOURCES = tests/hooks/test-lr-policy.c
tests_hooks_test_lr_policy_LDADD = $(TEST_LIBS)
tests_hooks_test_text_logger_SOURCES = tests/hooks/test-text-logger.c $(FAKE_TASK)
tests_hooks_test_text_logger_LDADD = $(TEST_LIBS)
