check_PROGRAMS += \
  tests/hooks/test-lr-policy

tests_hooks_test_lr_policy_SOURCES = tests/hooks/test-lr-policy.c
tests_hooks_test_lr_policy_LDADD = $(TEST_LIBS)
