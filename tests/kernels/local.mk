check_PROGRAMS += tests/kernels/test-kernels

tests_kernels_test_kernels_SOURCES = tests/kernels/test-kernels.c tests/kernels/cases.h tests/kernels/cases.c \
  tests/kernels/harness.h tests/kernels/harness.c
tests_kernels_test_kernels_LDADD = $(TEST_LIBS)
